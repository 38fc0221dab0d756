"""Composition: a sum of independent losses in one direction, with parameters fixed in advance."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Self

import numpy as np

from tightrope.accounting.bounds import Interval, probability_error_bounds
from tightrope.accounting.distributions.base import LossDistribution
from tightrope.accounting.distributions.gaussian import GaussianLossDistribution
from tightrope.accounting.distributions.profile import RenyiLossDistribution
from tightrope.numerics.arrays import Complexes, Floats
from tightrope.numerics.rounding import ROUND_OFF

MERGED_KINDS = (GaussianLossDistribution, RenyiLossDistribution)
"""Distributions of which many steps are one of the same kind."""


@dataclass(frozen=True, slots=True, eq=False)
class Composition:
    """Sum of independent losses: ``counts[i]`` copies of ``laws[i]``."""

    laws: tuple[LossDistribution, ...]
    counts: tuple[int, ...]

    @classmethod
    def from_distribution(cls, distribution: LossDistribution) -> Self:
        return cls((distribution,), (1,))

    def __add__(self, other: Composition) -> Composition:
        """Return the composition of both; equal distributions are counted together.

        Gaussians are merged into one, and so are distributions that declared Rényi divergences imply.
        """
        if len(other.laws) == 1:
            return self._add_distribution(other.laws[0], other.counts[0])
        counts_by_distribution: dict[LossDistribution, int] = {}
        for distribution, count in [*self._distribution_counts(), *other._distribution_counts()]:
            counts_by_distribution[distribution] = counts_by_distribution.get(distribution, 0) + count
        return _merge_kinds(counts_by_distribution)

    def _add_distribution(self, distribution: LossDistribution, count: int) -> Composition:
        """Return the composition with one more distribution, without counting all of them again."""
        distributions, counts = list(self.laws), list(self.counts)
        if (kind := type(distribution)) in MERGED_KINDS:
            indices = [i for i, part in enumerate(distributions) if type(part) is kind]
            same_kind = [(part, n) for part, n in self._distribution_counts() if type(part) is kind]
            for index in reversed(indices):
                del distributions[index], counts[index]
            distribution, count = _merge_steps([*same_kind, (distribution, count)]), 1
        elif distribution in distributions:
            counts[distributions.index(distribution)] += count
            return Composition(self.laws, tuple(counts))
        return Composition((*distributions, distribution), (*counts, count))

    def __mul__(self, count: int) -> Composition:
        if count == 0:
            return Composition((), ())
        return _merge_kinds({distribution: count * n for distribution, n in self._distribution_counts()})

    def reverse_distribution(self) -> Composition:
        return Composition(tuple(distribution.reverse_distribution() for distribution in self.laws), self.counts)

    def trim_tail(self, mass: float) -> Composition:
        """Count at most this mass of the largest losses, in total, as infinite: δ grows by at most this mass."""
        step_mass = mass / max(1, sum(self.counts))
        return Composition(tuple(distribution.trim_tail(step_mass) for distribution in self.laws), self.counts)

    @property
    def infinite_mass(self) -> float:
        """1 − Π(1 − δ_i)^k, without cancellation."""
        masses = self._infinity_masses
        return masses[0][0] if self._has_one_infinity_mass else probability_of_any(masses)

    @property
    def infinite_bounds(self) -> Interval:
        """Bounds on the infinite mass: those of the one distribution that has some, or a few roundings wider."""
        mass, error = (
            self.infinite_mass,
            max((distribution.infinity_mass_error for distribution in self.laws), default=0.0),
        )
        error += (
            0.0
            if self._has_one_infinity_mass or mass == 0 or any(p == 1 for p, _ in self._infinity_masses)
            else 8 * ROUND_OFF
        )
        return probability_error_bounds(mass, mass * error) if error else (mass, mass)

    @property
    def _infinity_masses(self) -> list[tuple[float, int]]:
        return [
            (distribution.infinite_mass, n)
            for distribution, n in self._distribution_counts()
            if distribution.infinite_mass > 0
        ]

    @property
    def _has_one_infinity_mass(self) -> bool:
        """Return whether exactly one step has an infinite loss."""
        return [n for _, n in self._infinity_masses] == [1]

    @property
    def rounding_error_bound(self) -> float:
        """Bound on the rounding error of the summed loss, in nats."""
        return math.fsum(n * distribution.rounding_error_bound for distribution, n in self._distribution_counts())

    @property
    def relative_mass_error(self) -> float:
        """Relative error of the masses of all finite distributions together, beyond rounding."""
        return math.fsum(n * distribution.relative_mass_error for distribution, n in self._distribution_counts())

    @property
    def largest_loss(self) -> float:
        """Supremum of the finite total loss; −∞ if some step has no finite loss."""
        ends = [n * distribution.largest_loss for distribution, n in self._distribution_counts()]
        return -math.inf if -math.inf in ends else sum(ends) if math.inf in ends else math.fsum(ends)

    def log_moment(self, z: Complexes) -> Complexes | None:
        """Return K = Σ k_i K_i; None if one of them is unknown."""
        parts = [(distribution.log_moment(z), n) for distribution, n in self._distribution_counts()]
        log_moments = [n * moment for moment, n in parts if moment is not None]
        return sum(log_moments, 0 * z) if len(log_moments) == len(parts) else None

    def log_moments(self, z: Complexes) -> tuple[Complexes, Floats]:
        """Return K on a line of equal Re z, with every K_i known, and a bound on its error at each z."""
        total, error = np.zeros(np.shape(z), dtype=np.complex128), np.zeros(np.shape(z))
        for distribution, count in self._distribution_counts():
            enclosure = distribution.enclose_cumulant(z)
            if enclosure is not None:
                total, error = total + count * enclosure[0], error + count * enclosure[1]
        return total, error

    def log_decay(self, c: float, y: float) -> float:
        """Return log of a bound on |M(c+iy')|/M(c) for |y'| ≥ y."""
        factors = [(distribution.moment_decay_bound(c, y), n) for distribution, n in self._distribution_counts()]
        return math.fsum(n * (math.log(factor) if factor > 0 else -math.inf) for factor, n in factors)

    def _distribution_counts(self) -> list[tuple[LossDistribution, int]]:
        return list(zip(self.laws, self.counts, strict=True))


def probability_of_any(probabilities: Iterable[tuple[float, int]]) -> float:
    """Return the probability 1 − Π(1 − p)^n of at least one of independent events, without cancellation.

    Each entry is a probability p and the number n of its events.
    """
    logs = [n * math.log1p(-p) if p < 1 else -math.inf for p, n in probabilities]
    return 0.0 - math.expm1(math.fsum(logs))


def _merge_kinds(counts: dict[LossDistribution, int]) -> Composition:
    """Return the composition of these numbers of copies, with all distributions of a merged kind as one."""
    merged = {part: n for part, n in counts.items() if type(part) not in MERGED_KINDS}
    for kind in MERGED_KINDS:
        steps = [(part, n) for part, n in counts.items() if type(part) is kind]
        if steps:
            merged[_merge_steps(steps)] = 1
    return Composition(tuple(merged), tuple(merged.values()))


def _merge_steps(steps: Sequence[tuple[LossDistribution, int]]) -> LossDistribution:
    """Return many steps of one merged kind as one distribution."""
    gaussians = [(part, n) for part, n in steps if isinstance(part, GaussianLossDistribution)]
    if gaussians:
        return GaussianLossDistribution.from_steps(gaussians)
    return RenyiLossDistribution.from_steps([(part, n) for part, n in steps if isinstance(part, RenyiLossDistribution)])
