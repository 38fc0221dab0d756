"""Events that tell two laws apart, and what follows from them: ε, δ, total variation, the trade-off curve."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
from scipy import special

from tightrope.numerics.arrays import Floats, Integers

# Concave hulls of points in the plane, as a cord stretched over them from left to right.

Places = int | Integers
ONE_BY_ONE = 64
"""Points that are gone through one by one."""


def concave_hull(x: Floats, y: Floats) -> tuple[Floats, Floats]:
    """Corners of the least concave function above points of ascending x, from the first point to the last.

    >>> [corners.tolist() for corners in concave_hull(np.array([0.0, 1, 2]), np.array([0.0, 0.4, 1]))]
    [[0.0, 2.0], [0.0, 1.0]]
    """
    # Without most of the points below the chord of their neighbors, every second at a time: none is a corner.
    thinned_x = x
    thinned_y = y
    left = len(thinned_x) + 1
    while ONE_BY_ONE < len(thinned_x) < left:
        left = len(thinned_x)
        for start in (1, 2):
            middle = np.arange(start, len(thinned_x) - 1, 2)
            low = middle[_below_chord(thinned_x, thinned_y, middle - 1, middle, middle + 1)]
            thinned_x, thinned_y = np.delete(thinned_x, low), np.delete(thinned_y, low)
    x, y = thinned_x, thinned_y
    kept: list[int] = []
    for i in range(len(x)):
        while len(kept) > 1 and _below_chord(x, y, kept[-2], kept[-1], i):
            kept.pop()
        kept.append(i)
    return x[kept], y[kept]


def _below_chord(x: Floats, y: Floats, left: Places, middle: Places, right: Places) -> Any:
    """Return whether the middle is on or below the chord."""
    return (y[middle] - y[left]) * (x[right] - x[left]) <= (y[right] - y[left]) * (x[middle] - x[left])


LAST_PLACES = 1e-12
"""Relative safety margin of the bounds: more than the few roundings on the way."""


@dataclass(frozen=True, slots=True, eq=False)
class Rates:
    """Events A_i with Q(A_i) ≤ ``false_positive[i]`` and P(A_i) ≥ ``true_positive[i]``, all of them together.

    P is the law of the first input's scores, Q of the second's. Kept are the corners of the concave hull with (0, 0)
    and (1, 1), in ascending order: an event at random between two of them is an event, too.
    """

    false_positive: Floats
    true_positive: Floats

    @classmethod
    def from_events(cls, false_positive: Floats, true_positive: Floats) -> Rates:
        """The hull of these events and of the two that tell nothing."""
        x, y = np.clip([np.append(false_positive, [0, 1]), np.append(true_positive, [0, 1])], 0.0, 1.0)
        order = np.lexsort((-y, x))
        # Corners of the concave hull of points in ascending x, the highest first where x is the same; up to (1, 1).
        hull_x = x[order]
        hull_y = y[order]
        rising = np.append(True, hull_y[1:] > np.maximum.accumulate(hull_y)[:-1])
        return cls(*concave_hull(np.append(hull_x[rising], 1.0), np.append(hull_y[rising], 1.0)))

    def join_hulls(self, other: Rates) -> Rates:
        """The hull of both: they must hold together."""
        x = np.concatenate([self.false_positive, other.false_positive])
        return Rates.from_events(x, np.concatenate([self.true_positive, other.true_positive]))

    def delta(self, epsilon: float) -> float:
        """A lower bound on the larger of the two directions' δ(ε): sup P(A) − e^ε Q(A), and the same of not-A."""
        found, missed = self.true_positive, 1 - self.true_positive
        with np.errstate(over="ignore", invalid="ignore"):
            gamma = np.exp(min(epsilon, 700.0))
            gains = np.concatenate([found - gamma * self.false_positive, 1 - self.false_positive - gamma * missed])
        return _round_down(float(gains.max()))

    def epsilon(self, delta: float) -> float:
        """A lower bound on the ε at this δ: log of (P(A) − δ)/Q(A) and of the same of not-A, or 0."""
        gains = np.concatenate([self.true_positive, 1 - self.false_positive]) - delta
        costs = np.concatenate([self.false_positive, 1 - self.true_positive])
        some = gains > 0
        if not some.any():
            return 0.0
        with np.errstate(divide="ignore"):
            return _round_down(float(np.log(gains[some] / costs[some]).max()))

    def total_variation(self) -> float:
        """A lower bound on the total variation: δ at ε = 0."""
        return self.delta(0.0)

    def true_positives_at(self, false_positive: Floats) -> Floats:
        """A lower bound on the best attack's true-positive rate at these false-positive rates."""
        return np.asarray(np.interp(false_positive, self.false_positive, self.true_positive), dtype=np.float64)


def _round_down(value: float) -> float:
    """Safely below, and never below 0."""
    return max(0.0, value - LAST_PLACES * (1 + abs(value))) if math.isfinite(value) else max(0.0, value)


# Lower bounds on the probability of every event {score > t} at once, from how often each was seen.
#
# Two bounds, each with half of the chance to fail (docs/proofs/audit.md):
#
# - Dvoretzky–Kiefer–Wolfowitz with Massart's constant: a seen share less √(log(2/β)/2n), at every threshold; -
# Clopper and Pearson's at a fixed set of ranks, a union over them: of k largest scores the smallest is exceeded with
# a probability that is at least Beta(k, n + 1 − k) in law, ties or not. Between ranks the next lower one stands.
#
# The first is the tighter in the middle, the second at both ends, where ε is decided.

RATIO = 1.08
"""Ranks grow by this factor from either end: between two of them a bound is off by no more."""
BETA_ROUNDING = 1e-9
"""Relative; the inverse of the incomplete beta function is better than that. Absolute: five places less."""


@lru_cache(maxsize=16)
def at_least(runs: int, failure: float) -> Floats:
    """[c]: what P(score > t) is at least where c of ``runs`` scores were above t, shape [runs + 1].

    For every t together, but for a chance of ``failure``. It does not decrease in c, and it is 0 at c = 0.

    >>> band = at_least(1000, 0.01)
    >>> bool(band[0] == 0 and 0.4 < band[500] < 0.5 and band[1000] > 0.98)
    True
    """
    # Whole numbers in 1..runs, dense at both ends; they hang on `runs` alone.
    ranks_steps = math.ceil(math.log(runs + 1) / math.log(RATIO)) + 1
    low = np.unique(np.minimum(np.ceil(RATIO ** np.arange(ranks_steps)).astype(np.int64), runs))
    low = low[low <= (runs + 1) // 2]
    ranks = np.unique(np.concatenate([low, runs + 1 - low]))
    exact = safe_share(ranks, runs, failure / 2 / len(ranks))
    steps = np.concatenate([[0.0], exact])[np.searchsorted(ranks, np.arange(runs + 1), side="right")]
    flat = np.arange(runs + 1) / runs - math.sqrt(math.log(2 / failure) / (2 * runs)) - BETA_ROUNDING / 1e5
    band: Floats = np.maximum(steps, flat)
    band.flags.writeable = False
    return band


@lru_cache(maxsize=16)
def at_most(runs: int, failure: float) -> Floats:
    """[c]: what P(score > t) is at most where c of ``runs`` scores were above t; for every t together."""
    band: Floats = 1 - at_least(runs, failure)[::-1]
    band.flags.writeable = False
    return band


def safe_share(seen: Integers, runs: int, failure: float) -> Floats:
    """Clopper and Pearson's lower bound on a probability for each count ≥ 0, each but for a chance of ``failure``."""
    some = np.maximum(seen, 1)
    exact = special.betaincinv(some, runs + 1 - some, failure)
    return np.where(seen > 0, np.maximum(exact * (1 - BETA_ROUNDING) - BETA_ROUNDING / 1e5, 0.0), 0.0)
