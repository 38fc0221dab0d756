"""Error rates of events that distinguish two distributions, and the bounds that follow from them.

The bounds are on ε, δ, the total variation and the trade-off curve.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
from scipy import special

from tightrope.numerics.arrays import Floats, Integers

Indices = int | Integers
LOOP_POINTS = 64
"""Up to this many points are processed one by one."""
PROBABILITY_ROUNDING = 1e-12
"""Relative safety margin of the bounds, larger than the rounding errors of their few operations."""
RANK_RATIO = 1.08
"""Ranks grow by this factor from either end: between two of them a bound is smaller by at most this factor."""
BETA_ROUNDING = 1e-9
"""Relative error of the inverse of the incomplete beta function, with a margin; the absolute error is 1e-5 of it."""


def concave_hull(x: Floats, y: Floats) -> tuple[Floats, Floats]:
    """Return the corners of the least concave function above points of ascending x, from the first to the last point.

    >>> [corners.tolist() for corners in concave_hull(np.array([0.0, 1, 2]), np.array([0.0, 0.4, 1]))]
    [[0.0, 2.0], [0.0, 1.0]]
    """
    # Points below the chord of their neighbors are no corners: remove them, in alternate passes, while that helps.
    previous_count = len(x) + 1
    while LOOP_POINTS < len(x) < previous_count:
        previous_count = len(x)
        for start in (1, 2):
            middle = np.arange(start, len(x) - 1, 2)
            below = middle[_below_chord(x, y, middle - 1, middle, middle + 1)]
            x, y = np.delete(x, below), np.delete(y, below)
    corners: list[int] = []
    for i in range(len(x)):
        while len(corners) > 1 and _below_chord(x, y, corners[-2], corners[-1], i):
            corners.pop()
        corners.append(i)
    return x[corners], y[corners]


def _below_chord(x: Floats, y: Floats, left: Indices, middle: Indices, right: Indices) -> Any:
    """Return whether the middle point is on or below the chord from the left to the right point."""
    return (y[middle] - y[left]) * (x[right] - x[left]) <= (y[right] - y[left]) * (x[middle] - x[left])


@dataclass(frozen=True, slots=True, eq=False)
class Rates:
    """Events A_i with Q(A_i) ≤ ``false_positive[i]`` and P(A_i) ≥ ``true_positive[i]``, all of them together.

    P is the distribution of the first input's scores, Q that of the second's. The rates are the corners of the concave
    hull with (0, 0) and (1, 1), in ascending order; a point between two corners is reached by choosing between their
    events at random.
    """

    false_positive: Floats
    true_positive: Floats

    @classmethod
    def from_events(cls, false_positive: Floats, true_positive: Floats) -> Rates:
        """Return the hull of these events, the empty event and the certain event."""
        x, y = np.clip([np.append(false_positive, [0, 1]), np.append(true_positive, [0, 1])], 0.0, 1.0)
        order = np.lexsort((-y, x))
        # Points in ascending x, the highest first for equal x, without those that are no higher than an earlier one.
        sorted_x, sorted_y = x[order], y[order]
        is_higher = np.append(True, sorted_y[1:] > np.maximum.accumulate(sorted_y)[:-1])
        return cls(*concave_hull(np.append(sorted_x[is_higher], 1.0), np.append(sorted_y[is_higher], 1.0)))

    def join_hulls(self, other: Rates) -> Rates:
        """Return the hull of both; the bounds of both must hold together."""
        x = np.concatenate([self.false_positive, other.false_positive])
        return Rates.from_events(x, np.concatenate([self.true_positive, other.true_positive]))

    def delta(self, epsilon: float) -> float:
        """Return a lower bound on the larger of the two directions' δ(ε).

        The maximum of P(A) − e^ε Q(A) and Q(Aᶜ) − e^ε P(Aᶜ) over the events A.
        """
        with np.errstate(over="ignore", invalid="ignore"):
            gamma = np.exp(min(epsilon, 700.0))
            of_events = self.true_positive - gamma * self.false_positive
            of_complements = 1 - self.false_positive - gamma * (1 - self.true_positive)
        return _round_down(float(max(of_events.max(), of_complements.max())))

    def epsilon(self, delta: float) -> float:
        """Return a lower bound on the ε at this δ.

        The maximum of 0, log((P(A) − δ)/Q(A)) and log((Q(Aᶜ) − δ)/P(Aᶜ)) over the events A.
        """
        gains = np.concatenate([self.true_positive, 1 - self.false_positive]) - delta
        costs = np.concatenate([self.false_positive, 1 - self.true_positive])
        positive = gains > 0
        if not positive.any():
            return 0.0
        with np.errstate(divide="ignore"):
            return _round_down(float(np.log(gains[positive] / costs[positive]).max()))

    def total_variation(self) -> float:
        """Return a lower bound on the total variation: δ at ε = 0."""
        return self.delta(0.0)

    def true_positives_at(self, false_positive: Floats) -> Floats:
        """Return a lower bound on the best attack's true-positive rate at these false-positive rates."""
        return np.asarray(np.interp(false_positive, self.false_positive, self.true_positive), dtype=np.float64)


def _round_down(value: float) -> float:
    """Return the value reduced by ``PROBABILITY_ROUNDING``, at least 0."""
    return max(0.0, value - PROBABILITY_ROUNDING * (1 + abs(value))) if math.isfinite(value) else max(0.0, value)


@lru_cache(maxsize=16)
def lower_bounds_by_count(runs: int, failure: float) -> Floats:
    """Return lower bounds on P(score > t), by the number c of ``runs`` scores that are above t; shape [runs + 1].

    They hold for all t together, except with probability ``failure``. They do not decrease in c, and are 0 at c = 0.

    The maximum of two bounds, each with half of ``failure`` (docs/proofs/audit.md):

    - Dvoretzky, Kiefer and Wolfowitz, with Massart's constant: c/n − √(log(2/β)/2n). It is tighter in the middle.
    - Clopper and Pearson, at a fixed set of ranks: the probability to exceed the k-th largest score is stochastically
      at least Beta(k, n + 1 − k), also with ties. Between ranks the bound of the next lower rank is used. It is
      tighter at both ends, which determine ε.

    >>> band = lower_bounds_by_count(1000, 0.01)
    >>> bool(band[0] == 0 and 0.4 < band[500] < 0.5 and band[1000] > 0.98)
    True
    """
    # Ranks in 1..runs, dense at both ends, which depend on `runs` alone.
    step_count = math.ceil(math.log(runs + 1) / math.log(RANK_RATIO)) + 1
    low_ranks = np.unique(np.minimum(np.ceil(RANK_RATIO ** np.arange(step_count)).astype(np.int64), runs))
    low_ranks = low_ranks[low_ranks <= (runs + 1) // 2]
    ranks = np.unique(np.concatenate([low_ranks, runs + 1 - low_ranks]))
    at_ranks = clopper_pearson_lower(ranks, runs, failure / 2 / len(ranks))
    clopper_pearson = np.concatenate([[0.0], at_ranks])[np.searchsorted(ranks, np.arange(runs + 1), side="right")]
    massart = np.arange(runs + 1) / runs - math.sqrt(math.log(2 / failure) / (2 * runs)) - BETA_ROUNDING / 1e5
    band: Floats = np.maximum(clopper_pearson, massart)
    band.flags.writeable = False
    return band


@lru_cache(maxsize=16)
def upper_bounds_by_count(runs: int, failure: float) -> Floats:
    """Return upper bounds on P(score > t), by the number of ``runs`` scores above t; see ``lower_bounds_by_count``."""
    band: Floats = 1 - lower_bounds_by_count(runs, failure)[::-1]
    band.flags.writeable = False
    return band


def clopper_pearson_lower(counts: Integers, runs: int, failure: float) -> Floats:
    """Return Clopper and Pearson's lower bound for each count of ``runs``; each fails with probability ``failure``."""
    positive = np.maximum(counts, 1)
    exact = special.betaincinv(positive, runs + 1 - positive, failure)
    return np.where(counts > 0, np.maximum(exact * (1 - BETA_ROUNDING) - BETA_ROUNDING / 1e5, 0.0), 0.0)
