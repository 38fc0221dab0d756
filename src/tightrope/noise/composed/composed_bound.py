"""Tests that the noise of several releases must withstand, and the bounds that follow from counts.

1. Counts of answers beyond two thresholds: lower bounds on the tails, and on the cost (``ComposedBound``).
2. Sums of integer scores: an upper limit to a weighted mean of the drops (``ScoreTest``).
3. How far drops may be scaled up (``largest_scale``, ``level_cap``).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from itertools import chain, zip_longest
from typing import Self

import numpy as np
import scipy

from tightrope.documents.noise import Argument
from tightrope.mechanisms.discrete.integer_weights import ONE
from tightrope.noise.composed.composed_curve import Indices
from tightrope.noise.program.certificate import CostBound
from tightrope.noise.program.closed_form import cost_from_tails, round_down
from tightrope.numerics.arrays import Floats
from tightrope.numerics.root_finding import find_crossing
from tightrope.numerics.rounding import ROUND_OFF

# 1. Lower bounds on the tails of the noise of k releases: counts of answers beyond thresholds must be private.
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


# 2. Sums of integer scores, and the limit that they set to the drops of every noise.
#
# Let c(w) = (P(X ≥ w) + P(X ≥ w + 1))/2 and the *drop* d = P(X ≥ w) − P(X ≥ w + 1), with ties split at random. An
# answer scores j or more, for the level c drawn at random from cell j, with probability c_j + D_j/2, and −j or less
# with c_j − D_j/2; for the neighboring table it is the reverse. Here c_j is the mean level, and D_j the mean drop, of
# the cell. If the k answers meet (ε, δ), the sum T of the scores has P(T ≥ t) − e^ε P(T ≤ −t) ≤ δ, and the left side
# increases in every D_j. Branch and bound proves that no drops with Σ λ_j D_j ≥ L have this property.
#
# **Rounding.** Values of the recursion are at most 1 + e^ε in absolute value, each step is monotone and does not
# increase errors, and its own is below ``_ScoreRecursion.step_error``.

MAX_BOXES = 900
"""No more boxes of drops are examined."""
MAX_STATES = 2_000_000
"""No more sums are examined, over all steps and boxes."""
REACH_FACTOR = 4 / 3
"""Sums beyond the threshold by this factor are not distinguished."""


@dataclass(frozen=True, slots=True, eq=False)
class ScoreTest:
    """The test of ``count`` releases at (ε, δ) by the sum of scores from −m to m at a threshold.

    ``levels`` are lower and upper bounds on the mean levels of the cells, ``weights`` are λ_j, and ``caps`` upper
    bounds on the drops.
    """

    point: tuple[float, float]
    count: int
    threshold: int
    levels: tuple[Floats, Floats]
    weights: Floats
    caps: Floats

    @property
    def reach(self) -> int:
        """Sums beyond this are not distinguished."""
        return min(self.count * len(self.weights), math.ceil(REACH_FACTOR * self.threshold))

    @property
    def max_boxes(self) -> int:
        """The number of boxes that may be examined."""
        return max(1, min(MAX_BOXES, MAX_STATES // (self.count * (2 * self.reach + 1))))

    def excludes(self, limit: float) -> bool:
        """Return whether it is proven that no noise has Σ λ_j D_j ≥ ``limit``."""
        recursion = _ScoreRecursion.from_test(self)
        boxes = _DropBoxes(np.zeros((1, len(self.weights))), self.caps[None, :])
        examined = 0
        while True:
            boxes = boxes.with_total(self.weights, limit)
            examined += len(boxes.low)
            if examined > self.max_boxes:
                return False
            if len(boxes.low) == 0:
                return True
            boxes = boxes.selected(~recursion.proves(boxes, limit)).halves(self.weights)

    def least_excluded(self, reached: float, steps: tuple[float, ...]) -> float:
        """Return the first of ``reached`` times each step that is excluded; infinity if none is."""
        return next((reached * step for step in steps if self.excludes(reached * step)), math.inf)


@dataclass(frozen=True, slots=True, eq=False)
class _DropBoxes:
    """Boxes of drops: a row of lower and one of upper ends for each box."""

    low: Floats
    high: Floats

    def with_total(self, weights: Floats, limit: float) -> _DropBoxes:
        """Return the parts of the boxes where Σ λ_j D_j can reach the limit."""
        slack = self.high @ weights * (1 + 64 * ROUND_OFF) - limit * (1 - 64 * ROUND_OFF)
        least = self.high * (1 - 4 * ROUND_OFF) - np.maximum(slack, 0.0)[:, None] / weights * (1 + 64 * ROUND_OFF)
        return _DropBoxes(np.maximum(self.low, least), self.high).selected(slack >= 0)

    def selected(self, chosen: np.ndarray) -> _DropBoxes:
        """Return the chosen boxes."""
        return _DropBoxes(self.low[chosen], self.high[chosen])

    def halves(self, weights: Floats) -> _DropBoxes:
        """Return both halves of each box, cut at a weighted side that matters most: outer levels count more."""
        levels = np.arange(len(weights))
        importance = weights * (1 + 2 * np.abs(levels - levels.mean()))
        rows = np.arange(len(self.low))
        widest = np.argmax(importance * (self.high - self.low), axis=1)
        middle = (self.low[rows, widest] + self.high[rows, widest]) / 2
        upper_ends, lower_ends = self.high.copy(), self.low.copy()
        upper_ends[rows, widest] = lower_ends[rows, widest] = middle
        return _DropBoxes(np.vstack([self.low, lower_ends]), np.vstack([upper_ends, self.high]))


@dataclass(frozen=True, slots=True, eq=False)
class _ScoreRecursion:
    """Lower bounds on P(T ≥ t) − e^ε P(T ≤ −t) if the drops of every step are chosen, knowing the sum so far."""

    test: ScoreTest
    gamma: float

    @classmethod
    def from_test(cls, test: ScoreTest) -> Self:
        return cls(test, math.exp(test.point[0]) * (1 + 8 * ROUND_OFF))

    def step_error(self, limit: float) -> float:
        """Return an upper bound on the rounding error of one step."""
        score_count, least_weight = len(self.test.weights), float(self.test.weights.min())
        return 64 * (score_count + 4) * ROUND_OFF * (1 + self.gamma) * (1 + limit / least_weight)

    def proves(self, boxes: _DropBoxes, limit: float) -> np.ndarray:
        """Return for each box whether none of its drops with Σ λ_j D_j ≥ ``limit`` meet the point."""
        test = self.test
        sums = np.arange(-test.reach, test.reach + 1)
        values = np.where(sums >= test.threshold, 1.0, 0.0) - self.gamma * (sums <= -test.threshold)
        values = np.broadcast_to(values, (len(boxes.low), len(sums)))
        rest = np.maximum(0.0, limit - boxes.low @ test.weights)
        for _ in range(test.count):
            values = self._values_before(values, boxes, rest)
        allowed = test.point[1] * (1 + 8 * ROUND_OFF) + test.count * self.step_error(limit)
        return np.asarray(values[:, test.reach] >= allowed)

    def _values_before(self, values: Floats, boxes: _DropBoxes, rest: Floats) -> Floats:
        """Return the values before one more answer, from those after it."""
        test, length, score_count = self.test, values.shape[1], len(self.test.weights)
        low_levels, high_levels = test.levels
        padded = np.empty((len(values), length + 2 * score_count))
        padded[:, :score_count] = -self.gamma
        padded[:, score_count : score_count + length] = values
        padded[:, score_count + length :] = values[:, -1:]
        rises = np.lib.stride_tricks.sliding_window_view(np.diff(padded, axis=1), length, axis=1)
        upward, downward = rises[:, score_count:], rises[:, score_count - 1 :: -1]
        bends, slopes = upward - downward, (upward + downward) / 2
        before = values + np.einsum("j,bjn->bn", low_levels, bends)
        before -= np.einsum("j,bjn->bn", high_levels - low_levels, np.maximum(-bends, 0.0))
        before += np.einsum("bj,bjn->bn", boxes.low, slopes)
        # The drops that lose the least value for each unit of the total that is still missing come first.
        prices = slopes / test.weights[:, None]
        order = np.argsort(prices, axis=1)
        room = (test.weights * (boxes.high - boxes.low))[np.arange(len(values))[:, None, None], order]
        left = rest[:, None, None] - np.cumsum(room, axis=1) + room
        before += (np.clip(left, 0.0, room) * np.take_along_axis(prices, order, 1)).sum(axis=1)
        return np.maximum.accumulate(before, axis=1)


# 3. How far drops may be scaled up, in floats. Only the caps have to be proven, by counts.

DROP_TOLERANCE = 1e-9
"""Tolerance of the logarithm of the largest scale."""
SCALE_LOGARITHMS = (-14.0, 7.0)
"""The range of this logarithm."""
CAP_TOLERANCE = 1e-6
"""Relative tolerance of caps."""


@dataclass(frozen=True, slots=True, eq=False)
class _ScoreSums:
    """The probabilities of the sum of ``count`` scores from −m to m, in floats."""

    probabilities: Floats
    middle: int

    @classmethod
    def from_drops(cls, levels: Floats, drops: Floats, count: int) -> Self:
        up, down = levels + drops / 2, np.maximum(levels - drops / 2, 0.0)
        rise, fall = up - np.append(up[1:], 0.0), down - np.append(down[1:], 0.0)
        step = np.concatenate([fall[::-1], [1 - up[0] - down[0]], rise])
        length = count * (len(step) - 1) + 1
        size = scipy.fft.next_fast_len(length, real=True)
        power = scipy.fft.irfft(scipy.fft.rfft(step, size) ** count, size)[:length]
        return cls(np.maximum(power, 0.0), count * len(levels))

    def margins(self, gamma: float) -> Floats:
        """Return P(T ≥ t) − γ P(T ≤ −t) for t = 1, 2, …"""
        at_least = np.cumsum(self.probabilities[: self.middle : -1])[::-1]
        at_most = np.cumsum(self.probabilities[: self.middle])[::-1]
        return np.asarray(at_least - gamma * at_most)

    def probabilities_at(self, sums: Indices) -> Floats:
        """Return the probabilities of these sums."""
        places = sums + self.middle
        is_inside = (places >= 0) & (places < len(self.probabilities))
        return np.where(is_inside, self.probabilities[np.where(is_inside, places, 0)], 0.0)


def largest_scale(levels: Floats, drops: Floats, point: tuple[float, float], count: int) -> tuple[float, int]:
    """Return the scale at which the drops break the point, and the threshold where they do so."""
    gamma, delta = math.exp(point[0]), point[1]

    def margins_at(log_scale: float) -> Floats:
        scaled = np.minimum(math.exp(log_scale) * drops, 2 * levels)
        return _ScoreSums.from_drops(levels, scaled, count).margins(gamma)

    log_scale = find_crossing(
        lambda size: delta - float(margins_at(size).max()), *SCALE_LOGARITHMS, side="passes", within=DROP_TOLERANCE
    )
    return math.exp(log_scale), 1 + int(np.argmax(margins_at(log_scale)))


def threshold_slopes(levels: Floats, drops: Floats, gamma: float, count: int, threshold: int) -> Floats:
    """Return how fast P(T ≥ t) − γ P(T ≤ −t) grows with the drop of each cell."""
    others = _ScoreSums.from_drops(levels, np.minimum(drops, 2 * levels), count - 1)
    scores: Indices = np.arange(1, len(levels) + 1)
    above = others.probabilities_at(threshold - scores) + others.probabilities_at(threshold + scores - 1)
    below = others.probabilities_at(scores - threshold) + others.probabilities_at(1 - scores - threshold)
    return np.asarray((above + gamma * below) * count / 2)


def level_cap(low: float, high: float, point: tuple[float, float], count: int) -> float:
    """Return an upper bound on the mean drop at a mean level between ``low`` and ``high``."""
    counted = CountedTails((point,), count)

    def shortfall(drop: float) -> float:
        return counted.shortfall(low + drop / 2, max(high - drop / 2, 0.0))

    return find_crossing(shortfall, 0.0, 2 * high, side="passes", relative=CAP_TOLERANCE)
