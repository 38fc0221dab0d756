"""Composition: a sum of independent losses in one direction, with parameters fixed in advance."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Self

import numpy as np

from tightrope.accounting.bounds import Interval, round_outward
from tightrope.accounting.distributions.base import LossDistribution
from tightrope.accounting.distributions.gaussian import GaussianLossDistribution
from tightrope.numerics.arrays import Complexes, Floats
from tightrope.numerics.rounding import ROUND_OFF


@dataclass(frozen=True, slots=True, eq=False)
class Composition:
    """Sum of independent losses: ``counts[i]`` copies of ``laws[i]``."""

    laws: tuple[LossDistribution, ...]
    counts: tuple[int, ...]

    @classmethod
    def from_distribution(cls, law: LossDistribution) -> Self:
        return cls((law,), (1,))

    def __add__(self, other: Composition) -> Composition:
        """Count equal distributions together and merge all Gaussians into one."""
        if len(other.laws) == 1:
            return self._add_distribution(other.laws[0], other.counts[0])
        counted: dict[LossDistribution, int] = {}
        for law, count in [*zip(self.laws, self.counts, strict=True), *zip(other.laws, other.counts, strict=True)]:
            counted[law] = counted.get(law, 0) + count
        return _merge_gaussians(counted)

    def _add_distribution(self, law: LossDistribution, count: int) -> Composition:
        """Add one distribution; sums are built from many such steps."""
        laws, counts = list(self.laws), list(self.counts)
        if type(law) is GaussianLossDistribution:
            indices = [i for i, known in enumerate(laws) if type(known) is GaussianLossDistribution]
            parts = [
                (known, n) for known, n in zip(laws, counts, strict=True) if type(known) is GaussianLossDistribution
            ]
            for index in reversed(indices):
                del laws[index], counts[index]
            law, count = GaussianLossDistribution.from_steps([*parts, (law, count)]), 1
        elif law in laws:
            counts[laws.index(law)] += count
            return Composition(self.laws, tuple(counts))
        return Composition((*laws, law), (*counts, count))

    def __mul__(self, count: int) -> Composition:
        if count == 0:
            return Composition((), ())
        return _merge_gaussians({law: count * n for law, n in zip(self.laws, self.counts, strict=True)})

    def reverse_distribution(self) -> Composition:
        return Composition(tuple(law.reverse_distribution() for law in self.laws), self.counts)

    def trim_tail(self, mass: float) -> Composition:
        """Count at most this mass of the largest losses, in total, as infinite: δ grows by at most this mass."""
        step_mass = mass / max(1, sum(self.counts))
        return Composition(tuple(law.trim_tail(step_mass) for law in self.laws), self.counts)

    @property
    def infinite_mass(self) -> float:
        """1 − Π(1 − δ_i)^k, without cancellation."""
        chances = self._infinity_masses
        return chances[0][0] if self._has_one_infinity_mass else any_of(chances)

    @property
    def infinite_bounds(self) -> Interval:
        """Bounds on the infinite mass: as accurate as a single distribution's, or a few roundings wider."""
        mass, error = self.infinite_mass, max((law.infinite_error for law in self.laws), default=0.0)
        error += (
            0.0
            if self._has_one_infinity_mass or mass == 0 or any(p == 1 for p, _ in self._infinity_masses)
            else 8 * ROUND_OFF
        )
        return round_outward(mass, mass * error) if error else (mass, mass)

    @property
    def _infinity_masses(self) -> list[tuple[float, int]]:
        return [(law.infinite_mass, n) for law, n in self._distribution_counts() if law.infinite_mass > 0]

    @property
    def _has_one_infinity_mass(self) -> bool:
        """Return whether exactly one step has an infinite loss."""
        return [n for _, n in self._infinity_masses] == [1]

    @property
    def rounding_bound(self) -> float:
        """Bound on the rounding error of the summed loss, in nats."""
        return math.fsum(n * law.rounding_bound for law, n in self._distribution_counts())

    @property
    def relative_mass_error(self) -> float:
        """Relative error of the masses of all finite distributions together, beyond rounding."""
        return math.fsum(n * law.relative_mass_error for law, n in self._distribution_counts())

    @property
    def largest_loss(self) -> float:
        """Supremum of the finite total loss; −∞ if some step has no finite loss."""
        ends = [n * law.largest_loss for law, n in self._distribution_counts()]
        return -math.inf if -math.inf in ends else sum(ends) if math.inf in ends else math.fsum(ends)

    def log_moment(self, z: Complexes) -> Complexes | None:
        """Return K = Σ k_i K_i; None if one of them is unknown."""
        parts = [(law.log_moment(z), n) for law, n in self._distribution_counts()]
        known = [n * moment for moment, n in parts if moment is not None]
        return sum(known, 0 * z) if len(known) == len(parts) else None

    def log_moments(self, z: Complexes) -> tuple[Complexes, Floats]:
        """Return K on a line of equal Re z, with every K_i known, and a bound on its error at each z."""
        total, error = np.zeros(np.shape(z), dtype=np.complex128), np.zeros(np.shape(z))
        for law, count in self._distribution_counts():
            known = law.enclose_cumulant(z)
            if known is not None:
                total, error = total + count * known[0], error + count * known[1]
        return total, error

    def log_decay(self, c: float, y: float) -> float:
        """Return log of a bound on |M(c+iy')|/M(c) for |y'| ≥ y."""
        factors = [(law.moment_decay_bound(c, y), n) for law, n in self._distribution_counts()]
        return math.fsum(n * (math.log(factor) if factor > 0 else -math.inf) for factor, n in factors)

    def _distribution_counts(self) -> list[tuple[LossDistribution, int]]:
        return list(zip(self.laws, self.counts, strict=True))


def any_of(chances: Iterable[tuple[float, int]]) -> float:
    """Return 1 − Π(1 − p)^n, without cancellation."""
    logs = [n * math.log1p(-p) if p < 1 else -math.inf for p, n in chances]
    return 0.0 - math.expm1(math.fsum(logs))


def _merge_gaussians(counted: dict[LossDistribution, int]) -> Composition:
    """Merge all Gaussians into one."""
    parts = [(law, n) for law, n in counted.items() if type(law) is GaussianLossDistribution]
    rest = {law: n for law, n in counted.items() if type(law) is not GaussianLossDistribution}
    if parts:
        rest[GaussianLossDistribution.from_steps(parts)] = 1
    return Composition(tuple(rest), tuple(rest.values()))
