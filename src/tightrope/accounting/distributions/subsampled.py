"""Poisson sampling of any law: each record takes part with probability q, independently (theory §2, add-remove).

A is the output law without the record, B with it. Removing it compares (1−q)A + qB with A; adding it compares A
with (1−q)A + qB. The two directions compose separately; the worse is taken at the end.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from tightrope.accounting.distributions.atoms import Atoms
from tightrope.accounting.distributions.base import Ends, LossLaw, by_sign, middle, spread, times
from tightrope.accounting.distributions.flat_moment import (
    INNER,
    FlatMoment,
    asked_above,
    asked_below,
    mixed,
    modulus,
    slope,
)
from tightrope.accounting.distributions.line_moment import Enclosed
from tightrope.accounting.distributions.loss_cells import Cells, mixed_loss, multiples
from tightrope.numerics.arrays import Complexes, Floats
from tightrope.numerics.rounding import ROUND_OFF

SEEN = 1e-12
"""Masses that add up to one but for this, or less, do so but for their rounding."""
STEEP_LOSS = 30.0
"""Losses of cells beyond this are mapped by a sum of logarithms, with their own rounding."""
EVERYWHERE = (-math.inf, math.inf)
Map = Callable[[Floats], Floats]


@dataclass(frozen=True, slots=True)
class PoissonRemove(LossLaw):
    """Law of ((1−q)A + qB, A), from ``base``, the law of (B, A)."""

    base: LossLaw
    rate: float

    @property
    def integrated(self) -> bool:
        return True

    @property
    def infinite_mass(self) -> float:
        return self.rate * self.base.infinite_mass

    @property
    def opposite_mass(self) -> float:
        return self.base.opposite_mass if self.rate == 1 else 0.0

    @property
    def largest(self) -> float:
        top = self.base.largest
        return top if math.isinf(top) or self.rate == 1 else float(mixed(np.array(top), self.rate))

    @property
    def infinite_error(self) -> float:
        return self.base.infinite_error + 4e-16

    @property
    def slack(self) -> float:
        """A loss moves by a share of what the base's does, the larger the loss, and is rounded."""
        return slope(self.base.largest, self.rate) * self.base.slack + rounding_of(self.largest, self.base.largest)

    def deltas(self, epsilon: Ends) -> Ends | None:
        """E_γ((1−q)A + qB ‖ A) = q E_γ'(B ‖ A) with γ' = (γ − 1 + q)/q, for γ ≥ 1."""
        base = self.base.deltas(asked_above(epsilon, self.rate))
        return None if base is None else times(base, self.rate * (1 - INNER), self.rate * (1 + INNER))

    def profile(self, epsilon: Floats) -> Floats | None:
        return middle(by_sign(epsilon, self.deltas, self.reverse().deltas))

    def profile_error(self, epsilon: Floats) -> Floats:
        return spread(by_sign(epsilon, self.deltas, self.reverse().deltas), np.shape(epsilon))

    def cells(self, step: float) -> Cells:
        """Cut where the sampled loss is a multiple of the step, l = log(1 + (e^λ − 1)/q); other laws as they come."""
        return self.between(step, *EVERYWHERE)

    def between(self, step: float, low: float, high: float) -> Cells:
        return _complete(cut_for(self, step, (low, high))).poisson_remove(self.rate)

    def evenly(self, count: int) -> Cells:
        return _complete(self.base.evenly(count)).poisson_remove(self.rate)

    def reverse(self) -> LossLaw:
        return PoissonAdd(self.base.reverse(), self.rate)

    def log_moment(self, z: Complexes) -> Complexes | None:
        known = self.enclosed(z)
        return None if known is None else known[0]

    def enclosed(self, z: Complexes) -> tuple[Complexes, Floats] | None:
        """E_A (1 − q + q e^l)^{z+1}, for Laplace-type bases."""
        moment = _flat(self.base, self.rate)
        return None if moment is None else moment.log_power(z + 1)

    def decay(self, c: float, y: float) -> float:
        moment = _flat(self.base, self.rate)
        return 1.0 if moment is None else _modulus(self, moment, complex(c, y), c + 1)


@dataclass(frozen=True, slots=True)
class PoissonAdd(LossLaw):
    """Law of (A, (1−q)A + qB), from ``base``, the law of (A, B)."""

    base: LossLaw
    rate: float

    @property
    def integrated(self) -> bool:
        return True

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
        return -math.log1p(-self.rate) if top == math.inf else -float(mixed(np.array(-top), self.rate))

    @property
    def infinite_error(self) -> float:
        return self.base.infinite_error + 4e-16

    @property
    def slack(self) -> float:
        """A loss moves by a share of what the base's does, the larger the more it is below 0, and is rounded."""
        steepest = slope(self.base.reverse().largest, self.rate)
        return steepest * self.base.slack + rounding_of(self.largest, self.base.largest)

    def deltas(self, epsilon: Ends) -> Ends | None:
        """E_γ(A ‖ (1−q)A + qB) = w E_γ'(A ‖ B) with w = 1 − γ(1−q) and γ' = γq/w; 0 where w ≤ 0.

        For fixed ε and q it is the largest of w A(S) − γq B(S) over events S, so it falls with w as with ε.
        """
        weights, inner = asked_below(epsilon, self.rate)
        base = self.base.deltas(inner)
        return None if base is None else times(base, *weights)

    def profile(self, epsilon: Floats) -> Floats | None:
        return middle(by_sign(epsilon, self.deltas, self.reverse().deltas))

    def profile_error(self, epsilon: Floats) -> Floats:
        return spread(by_sign(epsilon, self.deltas, self.reverse().deltas), np.shape(epsilon))

    def cells(self, step: float) -> Cells:
        """Cut where the sampled loss is a multiple of the step; the map is that of removing, mirrored."""
        return self.between(step, *EVERYWHERE)

    def between(self, step: float, low: float, high: float) -> Cells:
        there, back = (lambda loss: -_mapped(-loss, self.rate)), (lambda loss: -_unmapped(-loss, self.rate))
        return _cut(self.base, (step, low, high), there, back).poisson_add(self.rate)

    def evenly(self, count: int) -> Cells:
        return self.base.evenly(count).poisson_add(self.rate)

    def reverse(self) -> LossLaw:
        return PoissonRemove(self.base.reverse(), self.rate)

    def log_moment(self, z: Complexes) -> Complexes | None:
        known = self.enclosed(z)
        return None if known is None else known[0]

    def enclosed(self, z: Complexes) -> tuple[Complexes, Floats] | None:
        """E_A (1 − q + q e^l)^{−z}, l the loss of (B, A), for Laplace-type bases."""
        moment = _flat(self.base.reverse(), self.rate)
        return None if moment is None else moment.log_power(-z)

    def decay(self, c: float, y: float) -> float:
        moment = _flat(self.base.reverse(), self.rate)
        return 1.0 if moment is None else _modulus(self, moment, complex(c, y), -c)


def _flat(base: LossLaw, rate: float) -> FlatMoment | None:
    """Moments of the sampled law, where the base is of Laplace type."""
    return FlatMoment.of(base.flat, rate, opposite=base.opposite_mass)


def _modulus(law: PoissonRemove | PoissonAdd, moment: FlatMoment, place: complex, power: float) -> float:
    """A bound on the modulus from ``place`` on."""

    def enclosed(z: Complexes) -> Enclosed:
        return moment.log_power(z + 1 if isinstance(law, PoissonRemove) else -z)

    return modulus(enclosed, place, moment.atoms(power), moment.swing(power), moment.span)


def rounding_of(largest: float, base: float) -> float:
    """What losses up to a largest one, mapped from the base's, are off by; one that has no end is not off."""
    if not math.isfinite(largest):
        return 0.0
    return INNER * (abs(largest) + (base if STEEP_LOSS < base < math.inf else 0.0))


def cut_for(law: PoissonRemove, step: float, within: tuple[float, float] = EVERYWHERE) -> Cells:
    """The base of a sampled law, cut where the sampled loss is a multiple of the step, and at 0."""
    return _cut(law.base, (step, *within), lambda loss: _mapped(loss, law.rate), lambda loss: _unmapped(loss, law.rate))


def _complete(cells: Cells) -> Cells:
    """The same, with what is missing of Q as an outcome that P never gives: this dominates.

    A cell whose mass under P is no double holds none of Q either, though all of it may lie there.
    """
    missing = 1 - cells.opposite_mass - math.fsum(cells.q)
    return replace(cells, opposite_mass=cells.opposite_mass + missing) if missing > SEEN else cells


def _cut(base: LossLaw, evenly: tuple[float, float, float], there: Map, back: Map) -> Cells:
    """The base cut where its mapped loss is a multiple of a step, from one loss to another."""
    step, first, last = evenly
    outline = base.cells(math.inf)
    ends = there(np.array([np.min(outline.lower), np.max(outline.upper)]))
    edges = back(multiples(max(float(ends[0]), first), min(float(ends[1]), last), step))
    cut = base.cut(np.append(edges[np.isfinite(edges)], 0.0))
    return base.cells(step) if cut is None else cut


def _mapped(loss: Floats, rate: float) -> Floats:
    return mixed_loss(np.minimum(loss, 600.0), rate)


def _unmapped(loss: Floats, rate: float) -> Floats:
    with np.errstate(divide="ignore", invalid="ignore"):
        small = np.log1p(np.expm1(np.minimum(loss, 600.0)) / rate)
    return np.where(np.isnan(small), -np.inf, small)


# Poisson sampling of a finite law, which stays finite (theory §2, add-remove).
#
# With B the outputs with the record and A those without it, an outcome of loss l = log B/A has mass (1−q)A + qB
# against A: the loss becomes log(1 − q + q e^l). What only A has keeps the loss log(1−q); what only B has stays
# infinite.


def sampled_remove(base: Atoms, rate: float) -> Atoms:
    """Law of ((1−q)A + qB, A), 0 < q < 1, from that of (B, A)."""
    losses = np.append(mixed(base.losses, rate), math.log1p(-rate))
    alone = (1 - rate) * (base.opposite_mass + base.absent)
    masses = np.append(rate * base.masses + (1 - rate) * base.opposite, alone)
    return _finite(PoissonRemove(base, rate), base, (losses, masses))


def sampled_add(base: Atoms, rate: float) -> Atoms:
    """Law of (A, (1−q)A + qB), 0 < q < 1, from that of (A, B), whose infinite loss is what only A has."""
    losses = np.append(-mixed(-base.losses, rate), -math.log1p(-rate))
    return _finite(PoissonAdd(base, rate), base, (losses, np.append(base.masses, base.infinite_mass)))


def _finite(law: PoissonRemove | PoissonAdd, base: Atoms, atoms: tuple[Floats, Floats]) -> Atoms:
    """A loss moves by a share of what the base's did; a mass by e^slack, since it holds one of either side.

    A single step asks the base, whose losses are not rounded anew, and of which each keeps its own digits.
    """
    losses, masses = atoms
    farthest = base.largest if isinstance(law, PoissonRemove) else -float(np.min(base.losses, initial=math.inf))
    slack = slope(farthest + base.slack, law.rate) * base.slack + INNER * float(np.max(np.abs(losses), initial=0.0))
    outside = {"infinite_mass": law.infinite_mass, "opposite_mass": law.opposite_mass}
    found = Atoms.gather(losses, masses, **outside, slack=slack)
    inexact = base.inexact + math.expm1(min(base.slack, 1.0)) + 8 * ROUND_OFF
    slacks = base.slack * _share(law, found.losses) * (1 + 1e-9) + INNER * np.abs(found.losses)
    return replace(found, inexact=inexact, formula=law if base.reversible else None, slacks=slacks)


def _share(law: PoissonRemove | PoissonAdd, losses: Floats) -> Floats:
    """Of the sampled part in a loss, 1 − (1 − q) e^{∓l}: by so much it moves with the base's."""
    sign = -1 if isinstance(law, PoissonRemove) else 1
    with np.errstate(over="ignore"):
        return np.clip(1 - (1 - law.rate) * np.exp(sign * losses), 0.0, 1.0) + 8 * ROUND_OFF
