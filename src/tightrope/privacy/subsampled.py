"""Poisson sampling of any law: each record takes part with probability q, independently (theory §2, add-remove).

A is the output law without the record, B with it. Removing it compares (1−q)A + qB with A; adding it compares A
with (1−q)A + qB. The two directions compose separately; the worse is taken at the end.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from tightrope.privacy.cells import Cells, mixed_loss, multiples
from tightrope.privacy.law import Floats, LossLaw

ROUND_OFF = 2.0**-53
STEEP = 30.0
"""Beyond this loss e^l is not formed."""
Map = Callable[[Floats], Floats]


@dataclass(frozen=True, slots=True)
class PoissonRemove(LossLaw):
    """Law of ((1−q)A + qB, A), from ``base``, the law of (B, A)."""

    base: LossLaw
    rate: float

    @property
    def infinite_mass(self) -> float:
        return self.rate * self.base.infinite_mass

    @property
    def opposite_mass(self) -> float:
        return self.base.opposite_mass if self.rate == 1 else 0.0

    @property
    def largest(self) -> float:
        if self.base.largest > STEEP:
            return self.base.largest + math.log(self.rate) + math.log1p(math.exp(-self.base.largest) / self.rate)
        return math.log1p(self.rate * math.expm1(self.base.largest))

    @property
    def infinite_error(self) -> float:
        return self.base.infinite_error + 4e-16

    @property
    def slack(self) -> float:
        """A loss moves by no more than the base's; the largest is rounded."""
        return self.base.slack + rounding_of(self.largest, self.base.largest)

    def profile(self, epsilon: Floats) -> Floats | None:
        """E_γ((1−q)A + qB ‖ A) = q E_γ'(B ‖ A) with γ' = (γ − 1 + q)/q; 1 − γ where γ' ≤ 0."""
        inner, _ = self._inner(epsilon)
        base = self.base.profile(inner)
        excess = np.expm1(np.minimum(epsilon, 30.0))
        return None if base is None else np.where(excess > -self.rate, self.rate * base, -excess)

    def profile_error(self, epsilon: Floats) -> Floats:
        """The base's at ε', and what the rounding of ε' may change."""
        return carried_error(self.base, *self._inner(epsilon))

    def _inner(self, epsilon: Floats) -> tuple[Floats, Floats]:
        """ε' = log γ' and a bound on its rounding error."""
        excess = np.expm1(np.minimum(epsilon, 30.0))
        reached = np.maximum(excess / self.rate, -1 + 1e-16)
        inner = np.where(epsilon > 30, epsilon - math.log(self.rate), np.log1p(reached))
        return inner, ROUND_OFF * 4 * (1 + np.abs(inner) + np.abs(reached) / (1 + reached))

    def cells(self, step: float) -> Cells:
        """Cut where the sampled loss is a multiple of the step, l = log(1 + (e^λ − 1)/q); other laws as they come."""
        return cut_for(self, step).poisson_remove(self.rate)

    def reverse(self) -> LossLaw:
        return PoissonAdd(self.base.reverse(), self.rate)


@dataclass(frozen=True, slots=True)
class PoissonAdd(LossLaw):
    """Law of (A, (1−q)A + qB), from ``base``, the law of (A, B)."""

    base: LossLaw
    rate: float

    @property
    def infinite_mass(self) -> float:
        return self.base.infinite_mass if self.rate == 1 else 0.0

    @property
    def opposite_mass(self) -> float:
        return self.rate * self.base.opposite_mass

    @property
    def largest(self) -> float:
        """−log(1−q), or less where the base's loss is bounded."""
        if self.rate == 1:
            return self.base.largest
        top = math.inf if self.base.infinite_mass > 0 else self.base.largest
        return -float(mixed_loss(np.array(-top), self.rate))

    @property
    def infinite_error(self) -> float:
        return self.base.infinite_error + 4e-16

    @property
    def slack(self) -> float:
        """A loss moves by no more than the base's; the largest is rounded."""
        return self.base.slack + rounding_of(self.largest, self.base.largest)

    def profile(self, epsilon: Floats) -> Floats | None:
        """E_γ(A ‖ (1−q)A + qB) = w E_γ'(A ‖ B) with w = 1 − γ(1−q) and γ' = γq/w; 0 where w ≤ 0."""
        inner, _ = self._inner(epsilon)
        base, weight = self.base.profile(inner), self._weight(epsilon)
        return None if base is None else np.where(weight > 0, np.maximum(weight, 0) * base, 0.0)

    def profile_error(self, epsilon: Floats) -> Floats:
        """The base's at ε', and what the rounding of ε' and of w may change."""
        inner, error = self._inner(epsilon)
        return carried_error(self.base, inner, error) + error

    def _weight(self, epsilon: Floats) -> Floats:
        return np.asarray(-np.expm1(np.minimum(epsilon + math.log1p(-self.rate), 30.0)))

    def _inner(self, epsilon: Floats) -> tuple[Floats, Floats]:
        """ε' = log γ' and a bound on its rounding error: w cancels near ε = −log(1−q)."""
        weight = np.maximum(self._weight(epsilon), 1e-300)
        inner = epsilon + math.log(self.rate) - np.log(weight)
        rounding = (np.abs(epsilon) + abs(math.log1p(-self.rate))) * np.exp(np.minimum(epsilon, 30.0)) / weight
        return inner, ROUND_OFF * 4 * (2 + np.abs(inner) + np.abs(epsilon) + rounding)

    def cells(self, step: float) -> Cells:
        """Cut where the sampled loss is a multiple of the step; the map is that of removing, mirrored."""
        mirrored = _cut(
            self.base, step, lambda loss: -_mapped(-loss, self.rate), lambda loss: -_unmapped(-loss, self.rate)
        )
        return mirrored.poisson_add(self.rate)

    def reverse(self) -> LossLaw:
        return PoissonRemove(self.base.reverse(), self.rate)


def rounding_of(largest: float, base: float) -> float:
    """What a largest loss computed from the base's is off by; one that has no end is not off."""
    if not math.isfinite(largest):
        return 0.0
    return 8 * ROUND_OFF * (abs(largest) + (base if STEEP < base < math.inf else 0.0))


def cut_for(law: PoissonRemove, step: float) -> Cells:
    """The base of a sampled law, cut where the sampled loss is a multiple of the step, and at 0."""
    return _cut(law.base, step, lambda loss: _mapped(loss, law.rate), lambda loss: _unmapped(loss, law.rate))


def _cut(base: LossLaw, step: float, there: Map, back: Map) -> Cells:
    """The base cut where its mapped loss is a multiple of the step."""
    outline = base.cells(math.inf)
    ends = there(np.array([np.min(outline.lower), np.max(outline.upper)]))
    edges = back(multiples(float(ends[0]), float(ends[1]), step))
    cut = base.cut(np.append(edges[np.isfinite(edges)], 0.0))
    return base.cells(step) if cut is None else cut


def _mapped(loss: Floats, rate: float) -> Floats:
    return mixed_loss(np.minimum(loss, 600.0), rate)


def _unmapped(loss: Floats, rate: float) -> Floats:
    with np.errstate(divide="ignore", invalid="ignore"):
        small = np.log1p(np.expm1(np.minimum(loss, 600.0)) / rate)
    return np.where(np.isnan(small), -np.inf, small)


def carried_error(base: LossLaw, inner: Floats, error: Floats) -> Floats:
    """Relative error of the base's profile at ε', where ε' itself is off by as much as ``error``."""
    here, before = base.profile(inner), base.profile(inner - error)
    if here is None or before is None:
        return np.zeros_like(inner)
    with np.errstate(divide="ignore", invalid="ignore"):
        moved = np.where(here > 0, (before - here) / here, 0.0)
    return np.asarray(base.profile_error(inner) + 2 * moved + 4 * ROUND_OFF)
