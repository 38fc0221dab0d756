"""Lower bounds on the cost of noise for several releases, from the number of answers above a threshold."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from itertools import chain, zip_longest

import numpy as np

from tightrope.documents.noise import Argument, NoiseCertificate
from tightrope.mechanisms.discrete.integer_weights import ONE
from tightrope.mechanisms.discrete.noise_table import NoiseTable
from tightrope.noise.program.certificate import CertificateBuilder, CostBound, certified_cost, table_certificate
from tightrope.noise.program.closed_form import cost_from_tails, round_down
from tightrope.numerics.arrays import Floats
from tightrope.numerics.root_finding import bisect_real
from tightrope.numerics.rounding import ROUND_OFF

# Lower bounds on the tails of the noise of k releases: the number of answers beyond a threshold must be private.
#
# With H = P(X ≥ x) and H' = P(X ≥ x + Δ), of k answers that a person may change by Δ the number beyond x + Δ is
# Binomial(k, H') or Binomial(k, H). If the answers meet the guarantee, so does this pair, in both directions.
# The least H' for which it does increases with H: a recursion for lower bounds on all tails
# (docs/proofs/composed-noise.md).
#
# **Rounding.** Binomial weights relative to the largest are products of at most k ratios with relative errors of 4 u,
# and all sums are of positive terms: tails have relative errors of at most (16 k + 64) u, and are moved by that to the
# safe side.

UNDERFLOW_ERROR = 1e-290
"""Upper bound on the effect of underflow on a sum."""
LARGEST_EXPONENT = 300.0
"""Points with a larger ε are ignored here: e^ε would overflow in sums."""
THRESHOLD_HALVINGS = 44
SMALLEST_TAIL = 1e-30
"""Smaller tails are ignored."""
MAX_COUNTED_TAILS = 20_000


@dataclass(frozen=True, slots=True)
class CountedTails:
    """Lower bounds on the tails of the noise of ``count`` releases that together meet every point (ε_i, δ_i)."""

    points: tuple[tuple[float, float], ...]
    count: int

    def from_center(self) -> list[float]:
        """Return c, g(c), g(g(c)), …: lower bounds on P(X ≥ x), P(X ≥ x + Δ), … for symmetric X where 2x ≤ Δ + 1.

        With P(X ≥ x) < c the mirrored tail P(X ≥ x − Δ) would be above 1 − c.

        >>> tails = CountedTails(((1.0, 1e-6),), 1).from_center()  # one release: the closed form
        >>> abs(tails[0] - (1 - 1e-6) / (1 + math.e)) < 1e-12
        True
        """
        return self._follow_tails(
            _largest_true(lambda tail: self._excludes_tail(self._mirrored_counts(tail), tail), 0.5)
        )

    def from_half(self) -> list[float]:
        """Return g(½), g(g(½)), …: lower bounds on P(X ≥ x + Δ), P(X ≥ x + 2Δ), … if P(X ≥ x) is at least ½."""
        return self._follow_tails(self.next_tail(0.5))

    def next_tail(self, tail: float) -> float:
        """Return g(tail): the bound on P(X ≥ x + Δ) for every distribution with P(X ≥ x) at least ``tail``."""
        near = _BinomialTails.from_rate(self.count, tail)
        return _largest_true(lambda shifted_tail: self._excludes_tail(near, shifted_tail), tail)

    def _excludes_tail(self, near: _BinomialTails, other: float) -> bool:
        """Return whether P(X ≥ x) ≥ near.rate with P(X ≥ x + Δ) < ``other`` provably violates a point."""
        far = _BinomialTails.from_rate(self.count, other)
        return any(self._violates_point(point, near, far) for point in self.points)

    def _mirrored_counts(self, tail: float) -> _BinomialTails:
        return _BinomialTails.from_rate(self.count, math.nextafter(1 - tail, 0.0))

    def _violates_point(self, point: tuple[float, float], near: _BinomialTails, far: _BinomialTails) -> bool:
        epsilon, delta = point
        if not epsilon <= LARGEST_EXPONENT:
            return False
        if delta == 0:  # all k answers at once
            return far.rate <= near.rate * math.exp(-epsilon / self.count) * (1 - 16 * ROUND_OFF)
        gamma, allowed = math.exp(epsilon) * (1 + 8 * ROUND_OFF), delta * (1 + 8 * ROUND_OFF)
        excess_at_least = near.lower_bounds(near.at_least) - gamma * far.upper_bounds(far.at_least)
        excess_at_most = far.lower_bounds(far.at_most) - gamma * near.upper_bounds(near.at_most)
        return max(float(excess_at_least.max()), float(excess_at_most.max())) >= allowed

    def _follow_tails(self, first: float) -> list[float]:
        tails = [first]
        while tails[-1] > SMALLEST_TAIL and len(tails) < MAX_COUNTED_TAILS:
            tails.append(self.next_tail(tails[-1]))
        return tails[:-1] if tails[-1] <= 0 else tails


@dataclass(frozen=True, slots=True, eq=False)
class _BinomialTails:
    """P(N ≥ n) and P(N ≤ n) for n = 0..k, N Binomial(k, rate)."""

    rate: float
    at_least: Floats
    at_most: Floats

    @classmethod
    def from_rate(cls, count: int, rate: float) -> _BinomialTails:
        n = np.arange(count, dtype=np.float64)
        ratios = (count - n) / (n + 1) * (rate / (1 - rate))
        mode = int(np.searchsorted(-ratios, -1.0))
        down = np.cumprod(1 / ratios[:mode][::-1])[::-1]
        weights = np.concatenate([down, [1.0], np.cumprod(ratios[mode:])])
        whole = weights.sum()
        return cls(rate, np.cumsum(weights[::-1])[::-1] / whole, np.cumsum(weights) / whole)

    @property
    def relative_error(self) -> float:
        return (16 * len(self.at_most) + 64) * ROUND_OFF

    def lower_bounds(self, tails: Floats) -> Floats:
        """Lower bounds on the tails."""
        return np.asarray(tails * (1 - self.relative_error) - UNDERFLOW_ERROR, dtype=np.float64)

    def upper_bounds(self, tails: Floats) -> Floats:
        """Upper bounds on the tails."""
        return np.asarray(tails * (1 + self.relative_error) + UNDERFLOW_ERROR, dtype=np.float64)


def _largest_true(statement: Callable[[float], bool], above: float) -> float:
    """Return the largest number below ``above`` for which the statement holds, nearly; or 0."""
    return bisect_real(statement, above, 0.0, side="passes", halvings=THRESHOLD_HALVINGS)


MAX_COUNTED_RELEASES = 200
"""More releases are added up in groups before they are counted, or only this many are counted."""
COUNTED = (
    "Of `count` answers, each the sum of `together` releases and changed by a person by width = sensitivity times "
    "together, the number that is at least x + width is binomial with rates P(X >= x + width) and P(X >= x); every "
    "point holds between these two laws, both ways. So symmetric X has P(X >= x + j width) >= center[j] for 1 <= x <= "
    "(width + 1)/2 and >= half[j] for larger x <= width, and one release costs at least phi(0) + 2 sum_x (phi(x) - "
    "phi(x-1)) P(X >= x), with the squared error divided by together. Proof: docs/proofs/composed-noise.md."
)


@dataclass(frozen=True)
class ComposedBound:
    """A lower bound on the cost of the noise of each of several releases that meet a guarantee together."""

    single_bound: CostBound
    releases: int

    @property
    def releases_per_sum(self) -> int:
        """Releases that are added up before they are counted: variances add up, other costs do not."""
        return -(-self.releases // MAX_COUNTED_RELEASES) if self.single_bound.cost.power == 2 else 1

    @property
    def sum_count(self) -> int:
        """The number of these sums that are counted."""
        return min(self.releases // self.releases_per_sum, MAX_COUNTED_RELEASES)

    @cached_property
    def tail_bounds(self) -> tuple[list[float], list[float]]:
        """Lower bounds on P(X ≥ x + jΔ), from the center and from ½."""
        counted = CountedTails(self.single_bound.privacy_target.without_cap_point.points, self.sum_count)
        return counted.from_center(), [] if self._total_shift == 1 else counted.from_half()

    @property
    def _total_shift(self) -> int:
        return self.single_bound.sensitivity * self.releases_per_sum

    def _cell_tail_bounds(self) -> Iterator[float]:
        """Yield lower bounds on P(X ≥ 1), P(X ≥ 2), …"""
        inner_cells = (self._total_shift + 1) // 2
        periods = zip_longest(*self.tail_bounds, fillvalue=0.0)
        return chain.from_iterable(
            [near] * inner_cells + [far] * (self._total_shift - inner_cells) for near, far in periods
        )

    @cached_property
    def lower_bound(self) -> float:
        """The lower bound on the cost of one release, rounded down."""
        cost_of_sum = cost_from_tails(
            [int(Fraction(tail) * ONE) for tail in self._cell_tail_bounds()], self.single_bound.cost
        )
        return round_down(Fraction(cost_of_sum) / self.releases_per_sum)

    @property
    def bound_argument(self) -> Argument:
        """The reason why the bound holds."""
        center, half = self.tail_bounds
        numbers = {
            "points": [list(point) for point in self.single_bound.privacy_target.without_cap_point.points],
            "count": self.sum_count,
            "together": self.releases_per_sum,
            "centre": center,
            "half": half,
        }
        return Argument("theorem", COUNTED, numbers)


@dataclass(frozen=True)
class ComposedProof(CertificateBuilder):
    """Builds the certificate of noise for several releases under one budget."""

    bound: ComposedBound

    def build_certificate(self, table: NoiseTable) -> NoiseCertificate:
        single_bound = self.bound.single_bound
        upper = certified_cost(table, single_bound.cost)
        bound_and_argument = (self.bound.lower_bound, self.bound.bound_argument)
        return table_certificate(
            table, single_bound, bound_and_argument, upper, "unimodal", releases=self.bound.releases
        )
