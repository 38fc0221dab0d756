"""Losses that add up: a multiset of laws, one direction each, with parameters fixed in advance."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Self

import numpy as np

from tightrope.accounting.bounds import Interval, outward
from tightrope.accounting.distributions.base import LossLaw
from tightrope.accounting.distributions.gaussian import GaussianLaw
from tightrope.numerics.arrays import Complexes, Floats
from tightrope.numerics.rounding import ROUND_OFF


@dataclass(frozen=True, slots=True, eq=False)
class Composition:
    """Sum of independent losses: ``counts[i]`` copies of ``laws[i]``."""

    laws: tuple[LossLaw, ...]
    counts: tuple[int, ...]

    @classmethod
    def of(cls, law: LossLaw) -> Self:
        return cls((law,), (1,))

    def __add__(self, other: Composition) -> Composition:
        """Equal laws are counted together; all Gaussians become one."""
        if len(other.laws) == 1:
            return self._with(other.laws[0], other.counts[0])
        counted: dict[LossLaw, int] = {}
        for law, count in [*zip(self.laws, self.counts, strict=True), *zip(other.laws, other.counts, strict=True)]:
            counted[law] = counted.get(law, 0) + count
        return _merged(counted)

    def _with(self, law: LossLaw, count: int) -> Composition:
        """One law more: what sums of many are made of."""
        laws, counts = list(self.laws), list(self.counts)
        if type(law) is GaussianLaw:
            places = [i for i, known in enumerate(laws) if type(known) is GaussianLaw]
            parts = [(known, n) for known, n in zip(laws, counts, strict=True) if type(known) is GaussianLaw]
            for place in reversed(places):
                del laws[place], counts[place]
            law, count = GaussianLaw.of([*parts, (law, count)]), 1
        elif law in laws:
            counts[laws.index(law)] += count
            return Composition(self.laws, tuple(counts))
        return Composition((*laws, law), (*counts, count))

    def __mul__(self, count: int) -> Composition:
        if count == 0:
            return Composition((), ())
        return _merged({law: count * n for law, n in zip(self.laws, self.counts, strict=True)})

    def reverse(self) -> Composition:
        return Composition(tuple(law.reverse() for law in self.laws), self.counts)

    def trimmed(self, mass: float) -> Composition:
        """At most this mass of the largest losses counted as infinite, all together: δ is no less, by no more."""
        share = mass / max(1, sum(self.counts))
        return Composition(tuple(law.trimmed(share) for law in self.laws), self.counts)

    @property
    def infinite_mass(self) -> float:
        """1 − Π(1 − δ_i)^k, without cancellation."""
        chances = self._infinite
        return chances[0][0] if self._alone else any_of(chances)

    @property
    def infinite_bounds(self) -> Interval:
        """The infinite mass from below and above: as exact as its only law's, or off by some roundings."""
        mass, error = self.infinite_mass, max((law.infinite_error for law in self.laws), default=0.0)
        error += 0.0 if self._alone or mass == 0 or any(p == 1 for p, _ in self._infinite) else 8 * ROUND_OFF
        return outward(mass, mass * error) if error else (mass, mass)

    @property
    def _infinite(self) -> list[tuple[float, int]]:
        return [(law.infinite_mass, n) for law, n in self._pairs() if law.infinite_mass > 0]

    @property
    def _alone(self) -> bool:
        """Whether a single step has an infinite loss."""
        return [n for _, n in self._infinite] == [1]

    @property
    def slack(self) -> float:
        """Bound on the rounding error of the summed loss, in nats."""
        return math.fsum(n * law.slack for law, n in self._pairs())

    @property
    def inexact(self) -> float:
        """Relative error of the masses of finite laws, all together, beyond rounding."""
        return math.fsum(n * law.inexact for law, n in self._pairs())

    @property
    def largest(self) -> float:
        """Supremum of the finite total loss; −∞ where some step has none."""
        ends = [n * law.largest for law, n in self._pairs()]
        return -math.inf if -math.inf in ends else sum(ends) if math.inf in ends else math.fsum(ends)

    def log_moment(self, z: Complexes) -> Complexes | None:
        """K = Σ k_i K_i; None when one law does not know its own."""
        parts = [(law.log_moment(z), n) for law, n in self._pairs()]
        known = [n * moment for moment, n in parts if moment is not None]
        return sum(known, 0 * z) if len(known) == len(parts) else None

    def moments(self, z: Complexes) -> tuple[Complexes, Floats]:
        """K on a line of equal Re z, every law's known, and a bound on its error at each z."""
        total, error = np.zeros(np.shape(z), dtype=np.complex128), np.zeros(np.shape(z))
        for law, count in self._pairs():
            known = law.enclosed(z)
            if known is not None:
                total, error = total + count * known[0], error + count * known[1]
        return total, error

    def log_decay(self, c: float, y: float) -> float:
        """Log of a bound on |M(c+iy')|/M(c) for |y'| ≥ y."""
        factors = [(law.decay(c, y), n) for law, n in self._pairs()]
        return math.fsum(n * (math.log(factor) if factor > 0 else -math.inf) for factor, n in factors)

    def _pairs(self) -> list[tuple[LossLaw, int]]:
        return list(zip(self.laws, self.counts, strict=True))


def any_of(chances: Iterable[tuple[float, int]]) -> float:
    """1 − Π(1 − p)^n, without cancellation."""
    logs = [n * math.log1p(-p) if p < 1 else -math.inf for p, n in chances]
    return 0.0 - math.expm1(math.fsum(logs))


def _merged(counted: dict[LossLaw, int]) -> Composition:
    """All Gaussians as one."""
    parts = [(law, n) for law, n in counted.items() if type(law) is GaussianLaw]
    rest = {law: n for law, n in counted.items() if type(law) is not GaussianLaw}
    if parts:
        rest[GaussianLaw.of(parts)] = 1
    return Composition(tuple(rest), tuple(rest.values()))
