"""Lower bounds on the cost of noise for several releases, from the numbers of answers beyond two thresholds."""

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
from tightrope.numerics.root_finding import find_crossing
from tightrope.numerics.rounding import ROUND_OFF

# Lower bounds on the tails of the noise of k releases: counts of answers beyond thresholds must be private.
#
# Let H = P(X ≥ x) and H' = P(X ≥ x + Δ). Of k answers that a person may change by −Δ, let T be the number that are at
# least x less the number that are at most −x − Δ: a sum of k steps +1, 0, −1 with probabilities H, 1 − H − H', H' for
# one table, and −T for the other. If the answers meet the guarantee, so does this pair. The least H' for which it
# does increases with H: a recursion for lower bounds on all tails (docs/proofs/composed-noise.md).
#
# **Rounding.** H is lowered and H' raised by a few units in the last place, so that the probabilities that are
# computed with are on the safe side of both. All sums and products are of positive terms: probabilities of T have
# relative errors of at most (4 log2 k + 16)(k + 8) u, and tails are moved by that to the safe side.

UNDERFLOW_ERROR = 1e-290
"""Upper bound on the effect of underflow on a sum."""
LARGEST_EXPONENT = 300.0
"""Points with a larger ε are ignored here: e^ε would overflow in sums."""
SMALLEST_TAIL = 1e-30
"""Smaller tails are ignored."""
TAIL_TOLERANCE = 1e-13
"""Relative tolerance of the search for the next tail."""
MAX_COUNTED_TAILS = 20_000


@dataclass(frozen=True, slots=True)
class CountedTails:
    """Lower bounds on the tails of the noise of ``count`` releases that together meet every point (ε_i, δ_i)."""

    points: tuple[tuple[float, float], ...]
    count: int

    def tails_from_center(self) -> list[float]:
        """Return c, g(c), g(g(c)), …: lower bounds on P(X ≥ x), P(X ≥ x + Δ), … for symmetric X where 2x ≤ Δ + 1.

        With P(X ≥ x) < c the mirrored tail P(X ≥ x − Δ) would be above 1 − c.

        >>> tails = CountedTails(((1.0, 1e-6),), 1).tails_from_center()  # one release: the closed form
        >>> abs(tails[0] - (1 - 1e-6) / (1 + math.e)) < 1e-12
        True
        """

        def shortfall(tail: float) -> float:
            return self.shortfall(1 - tail, tail)

        return self._follow_tails(_largest_excluded(shortfall, 0.5))

    def tails_from_half(self) -> list[float]:
        """Return g(½), g(g(½)), …: lower bounds on P(X ≥ x + Δ), P(X ≥ x + 2Δ), … if P(X ≥ x) is at least ½."""
        return self._follow_tails(self.next_tail(0.5))

    def next_tail(self, tail: float) -> float:
        """Return g(tail): the bound on P(X ≥ x + Δ) for every distribution with P(X ≥ x) at least ``tail``."""
        return _largest_excluded(lambda shifted_tail: self.shortfall(tail, shifted_tail), tail)

    def shortfall(self, tail: float, shifted_tail: float) -> float:
        """Return a lower bound on how much smaller δ would have to be to exclude a pair of tails.

        If it is not positive, no distribution has P(X ≥ x) ≥ ``tail`` and P(X ≥ x + Δ) < ``shifted_tail``.
        """
        counts = _SignedCounts.from_rates(self.count, tail, shifted_tail)
        return min(self._point_shortfall(point, counts) for point in self.points)

    def _point_shortfall(self, point: tuple[float, float], counts: _SignedCounts) -> float:
        epsilon, delta = point
        if not epsilon <= LARGEST_EXPONENT:
            return math.inf
        if delta == 0:  # all k answers at once
            return counts.down_rate - counts.up_rate * math.exp(-epsilon / self.count) * (1 - 16 * ROUND_OFF)
        gamma, allowed = math.exp(epsilon) * (1 + 8 * ROUND_OFF), delta * (1 + 8 * ROUND_OFF)
        return allowed - float((counts.at_least - gamma * counts.at_most).max())

    def _follow_tails(self, first: float) -> list[float]:
        tails = [first]
        while tails[-1] > SMALLEST_TAIL and len(tails) < MAX_COUNTED_TAILS:
            tails.append(self.next_tail(tails[-1]))
        return tails[:-1] if tails[-1] <= 0 else tails


@dataclass(frozen=True, slots=True, eq=False)
class _SignedCounts:
    """Lower bounds on P(T ≥ t) and upper bounds on P(T ≤ −t) for t = 1..k, T a sum of k steps +1, 0, −1."""

    up_rate: float
    down_rate: float
    at_least: Floats
    at_most: Floats

    @classmethod
    def from_rates(cls, count: int, up: float, down: float) -> _SignedCounts:
        """Return the bounds for steps +1 with probability ``up`` or more, and −1 with ``down`` or less."""
        up, down = up * (1 - 8 * ROUND_OFF), down * (1 + 8 * ROUND_OFF)
        step = np.array([down, max(1 - up - down, 0.0), up])
        step /= step.sum()
        weights = np.ones(1)
        for digit in f"{count:b}":  # the count-th power, by squaring
            weights = np.convolve(weights, weights)
            if digit == "1":
                weights = np.convolve(weights, step)
        error = (4 * math.log2(count) + 16) * (count + 8) * ROUND_OFF
        at_least, at_most = np.cumsum(weights[:count:-1])[::-1], np.cumsum(weights[:count])[::-1]
        return cls(up, down, at_least * (1 - error) - UNDERFLOW_ERROR, at_most * (1 + error) + UNDERFLOW_ERROR)


def _largest_excluded(shortfall: Callable[[float], float], above: float) -> float:
    """Return nearly the largest number below ``above`` whose shortfall is not positive; or 0."""
    return find_crossing(shortfall, above, 0.0, side="passes", relative=TAIL_TOLERANCE)


MAX_COUNTED_RELEASES = 200
"""At most this many counts enter the bound: more releases are added up in groups first, or the others are ignored."""
COUNTED = (
    "Of `count` answers, each the sum of `together` releases and changed by a person by width = sensitivity times "
    "together, the number that is at least x, less the number that is at most -x - width, is a sum of steps 1, 0, -1 "
    "with probabilities P(X >= x), the rest, P(X >= x + width) for one table, and its negative for the other; every "
    "point holds between these two laws. So symmetric X has P(X >= x + j width) >= center[j] for 1 <= x <= "
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
        return counted.tails_from_center(), [] if self._total_shift == 1 else counted.tails_from_half()

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
