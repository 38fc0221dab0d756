"""Base class of the accounting methods, which return an interval that contains δ(ε)."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import NamedTuple

import numpy as np
import scipy

from tightrope.accounting.bounds import Interval
from tightrope.errors import PrecisionError
from tightrope.numerics.arrays import Floats

# Saddle-point approximation of the ε at which δ(ε) reaches a target: a first guess without a guarantee (theory §3).

APART = 0.02
"""Half the distance, in log c, over which K is differentiated."""
FARTHEST_SADDLE = 16.0
"""Saddle points are sought between e^{−16} and e^{16}."""


class DeltaGuess(NamedTuple):
    """An ε at which δ is about the target; there δ falls by the factor e^{−rate} a nat."""

    epsilon: float
    rate: float


def approximate_epsilon_at(cumulant: Callable[[Floats], Floats], log_target: float) -> DeltaGuess | None:
    """Return ε with log δ(ε) about ``log_target``, from K on the real axis, shape [n] to [n]; None if the search fails.

    ε(c) = K'(c) − 1/c − 1/(1+c) has its saddle at c, and there δ ≈ e^{K(c) − cε} / (c (1+c) √(2π K'')), with K'' that
    of the whole exponent. Both fall or rise with c, so c is found by bracketing.
    """

    def log_excess(log_c: float) -> float:
        return _saddle_point_values(cumulant, log_c)[1] - log_target

    try:
        ends = _bracket_sign_change(log_excess)
        if ends is None:
            return None
        log_c = float(scipy.optimize.brentq(log_excess, *ends, xtol=1e-4))
        epsilon, _ = _saddle_point_values(cumulant, log_c)
    except (PrecisionError, ValueError, OverflowError):
        return None
    return DeltaGuess(epsilon, math.exp(log_c)) if math.isfinite(epsilon) and epsilon > 0 else None


def _saddle_point_values(cumulant: Callable[[Floats], Floats], log_c: float) -> tuple[float, float]:
    """Return ε(c) and log δ there, approximately."""
    c = math.exp(log_c)
    below, here, above = cumulant(c * np.exp([-APART, 0.0, APART])).tolist()
    slope, bend = (above - below) / (2 * APART), (above - 2 * here + below) / APART**2
    epsilon = slope / c - 1 / c - 1 / (1 + c)
    curvature = (bend - slope) / c**2 + 1 / c**2 + 1 / (1 + c) ** 2
    return epsilon, here - c * epsilon - log_c - math.log1p(c) - math.log(2 * math.pi * curvature) / 2


def _bracket_sign_change(excess: Callable[[float], float]) -> tuple[float, float] | None:
    """Return two neighboring steps of log c between which the excess changes sign, walking from c = e."""
    here = 1.0
    value = excess(here)
    step = 1.0 if value > 0 else -1.0
    while abs(here) < FARTHEST_SADDLE:
        there = here + step
        if excess(there) * value <= 0:
            return min(here, there), max(here, there)
        here = there
    return None


LOST_PART = 1e-18
"""Largest relative size of an addend that is lost in the rounding of a sum."""


class Method(ABC):
    """Computes δ(ε) of one composed direction as an interval that contains the true value."""

    name: str

    @abstractmethod
    def delta(self, epsilon: float) -> Interval: ...

    def delta_upper_bound(self, epsilon: float) -> float:
        """Return a valid upper bound on δ(ε), possibly cheaper and less tight than the end of ``delta``."""
        return self.delta(epsilon)[1]

    def cheap_upper_bound(self, epsilon: float) -> float:
        """Return an upper bound on δ(ε) at negligible cost; 1 by default."""
        del epsilon
        return 1.0

    def delta_to_precision(self, epsilon: float, size: float) -> Interval:
        """Return an interval for δ(ε), as narrow as matters if δ is added to a number of this size."""
        most = self.cheap_upper_bound(epsilon)
        return (0.0, most) if most <= LOST_PART * size else self.delta(epsilon)

    def precision_limit(self, epsilon: float) -> str:
        """Return what limited the width of the bracket at ε, or an empty text."""
        del epsilon
        return ""

    def approximate_epsilon(self, target: float) -> DeltaGuess | None:
        """Return ε with δ(ε) about ``target``; None if unknown."""
        del target
        return None

    def delta_bounds_at(self, epsilons: Floats) -> tuple[Floats, Floats]:
        """Return both ends at many ε."""
        ends = np.array([self.delta(epsilon) for epsilon in epsilons.tolist()]).reshape(-1, 2)
        return ends[:, 0], ends[:, 1]


# Refine a rough guess of the ε at which δ equals a target, in few evaluations.

Point = tuple[float, float]
"""Log of the ratio of δ to the target, and the corresponding ε."""
MOST_STEPS = 12
BELOW = 1e-14
"""Relative margin by which the guess aims below the target, so that it stays below despite rounding."""
CLOSE = 1e-13


def interpolate_epsilon(
    upper: Callable[[float], float], rough: DeltaGuess, target: float, largest: float
) -> DeltaGuess:
    """Return ε by inverse interpolation of log δ at the last three points, bracketed once both sides are found.

    Return the rough guess itself if the iteration misses the target.
    """
    points: list[Point] = []
    here, low, high = rough.epsilon, 0.0, largest
    while len(points) < MOST_STEPS:
        found = upper(here)
        if not found > 0:
            return rough
        excess = math.log(found / (target * (1 - BELOW)))
        points.append((excess, here))
        if abs(excess) <= CLOSE:
            break
        low, high = (here, high) if excess > 0 else (low, here)
        # The zero of the excess: by the slope −rate from one point, else by Neville's scheme for ε as a function
        # of the excess.
        crossing_points = points[-3:]
        if len(crossing_points) == 1:
            ((crossing_excess, crossing_here),) = crossing_points
            there = crossing_here + crossing_excess / rough.rate
        else:
            (x, a), (y, b), *third = crossing_points
            line = (a * y - b * x) / (y - x) if x != y else b
            if not third or third[0][0] in (x, y):
                there = line
            else:
                ((z, c),) = third
                other = (b * z - c * y) / (z - y)
                there = (line * z - other * x) / (z - x)
        there = there if low < there < high else _midpoint_or_extension(low, high, here)
        if not abs(there - here) > 2e-16 * here:
            break
        here = there
    excess, here = min(points, key=lambda point: abs(point[0]))
    return DeltaGuess(here, rough.rate) if abs(excess) < 1 else rough


def _midpoint_or_extension(low: float, high: float, here: float) -> float:
    """Return the midpoint; while one side is unbounded, twice or half the last point."""
    if math.isinf(high):
        return 2 * here
    return (low + high) / 2 if low > 0 else here / 2
