"""Events that tell two laws apart, and what follows from them: ε, δ, total variation, the trade-off curve."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from tightrope.audit.hulls import concave
from tightrope.numerics.arrays import Floats

LAST_PLACES = 1e-12
"""Taken off what is said, relatively: more than the few roundings on the way."""


@dataclass(frozen=True, slots=True, eq=False)
class Rates:
    """Events A_i with Q(A_i) ≤ ``false_positive[i]`` and P(A_i) ≥ ``true_positive[i]``, all of them together.

    P is the law of the first input's scores, Q of the second's. Kept are the corners of the concave hull with (0, 0)
    and (1, 1), in ascending order: an event at random between two of them is an event, too.
    """

    false_positive: Floats
    true_positive: Floats

    @classmethod
    def of(cls, false_positive: Floats, true_positive: Floats) -> Rates:
        """The hull of these events and of the two that tell nothing."""
        x, y = np.clip([np.append(false_positive, [0, 1]), np.append(true_positive, [0, 1])], 0.0, 1.0)
        order = np.lexsort((-y, x))
        return cls(*_hull(x[order], y[order]))

    def joined(self, other: Rates) -> Rates:
        """The hull of both: they must hold together."""
        x = np.concatenate([self.false_positive, other.false_positive])
        return Rates.of(x, np.concatenate([self.true_positive, other.true_positive]))

    def delta(self, epsilon: float) -> float:
        """A lower bound on the larger of the two directions' δ(ε): sup P(A) − e^ε Q(A), and the same of not-A."""
        found, missed = self.true_positive, 1 - self.true_positive
        with np.errstate(over="ignore", invalid="ignore"):
            gamma = np.exp(min(epsilon, 700.0))
            gains = np.concatenate([found - gamma * self.false_positive, 1 - self.false_positive - gamma * missed])
        return _lower(float(gains.max()))

    def epsilon(self, delta: float) -> float:
        """A lower bound on the ε at this δ: log of (P(A) − δ)/Q(A) and of the same of not-A, or 0."""
        gains = np.concatenate([self.true_positive, 1 - self.false_positive]) - delta
        costs = np.concatenate([self.false_positive, 1 - self.true_positive])
        some = gains > 0
        if not some.any():
            return 0.0
        with np.errstate(divide="ignore"):
            return _lower(float(np.log(gains[some] / costs[some]).max()))

    def total_variation(self) -> float:
        """A lower bound on the total variation: δ at ε = 0."""
        return self.delta(0.0)

    def true_positives_at(self, false_positive: Floats) -> Floats:
        """What the best attack finds at these false-positive rates, at least."""
        return np.asarray(np.interp(false_positive, self.false_positive, self.true_positive), dtype=np.float64)


def _lower(value: float) -> float:
    """Safely below, and never below 0."""
    return max(0.0, value - LAST_PLACES * (1 + abs(value))) if math.isfinite(value) else max(0.0, value)


def _hull(x: Floats, y: Floats) -> tuple[Floats, Floats]:
    """Corners of the concave hull of points in ascending x, the highest first where x is the same; up to (1, 1)."""
    rising = np.append(True, y[1:] > np.maximum.accumulate(y)[:-1])
    return concave(np.append(x[rising], 1.0), np.append(y[rising], 1.0))
