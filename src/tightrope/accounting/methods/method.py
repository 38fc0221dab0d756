"""Base class of the accounting methods, which return an interval that contains δ(ε)."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from tightrope.accounting.bounds import Interval
from tightrope.errors import PrecisionError
from tightrope.numerics.arrays import Floats
from tightrope.numerics.root_finding import find_root

# Saddle-point approximation of the ε at which δ(ε) reaches a target: a first guess without a guarantee (theory §3).

DIFFERENCE_STEP = 0.02
"""Half the distance, in log c, over which K is differentiated."""
MAX_LOG_SADDLE = 16.0
"""Saddle points are sought between e^{−16} and e^{16}."""


class EpsilonGuess(NamedTuple):
    """An ε at which δ is about the target; there δ falls by the factor e^{−decay_rate} a nat."""

    epsilon: float
    decay_rate: float


def approximate_epsilon_at(cumulant: Callable[[Floats], Floats], log_target: float) -> EpsilonGuess | None:
    """Return ε with log δ(ε) about ``log_target``, from K on the real axis, shape [n] to [n]; None if the search fails.

    ε(c) = K'(c) − 1/c − 1/(1+c) has its saddle at c, and there δ ≈ e^{K(c) − cε} / (c (1+c) √(2π K'')), with K'' that
    of the whole exponent. Both fall or rise with c, so c is found by bracketing.
    """

    def log_excess(log_c: float) -> float:
        return _saddle_point_values(cumulant, log_c)[1] - log_target

    try:
        # Walk from c = e to two neighboring steps of log c between which the excess changes sign.
        position, first_excess = 1.0, log_excess(1.0)
        step = 1.0 if first_excess > 0 else -1.0
        while not log_excess(position + step) * first_excess <= 0:
            position += step
            if abs(position) >= MAX_LOG_SADDLE:
                return None
        low, high = min(position, position + step), max(position, position + step)
        log_c = find_root(log_excess, low, high, within=1e-4)
        epsilon, _ = _saddle_point_values(cumulant, log_c)
    except (PrecisionError, ValueError, OverflowError):
        return None
    return EpsilonGuess(epsilon, math.exp(log_c)) if math.isfinite(epsilon) and epsilon > 0 else None


def _saddle_point_values(cumulant: Callable[[Floats], Floats], log_c: float) -> tuple[float, float]:
    """Return ε(c) and log δ there, approximately."""
    c = math.exp(log_c)
    below, middle, above = cumulant(c * np.exp([-DIFFERENCE_STEP, 0.0, DIFFERENCE_STEP])).tolist()
    slope, bend = (above - below) / (2 * DIFFERENCE_STEP), (above - 2 * middle + below) / DIFFERENCE_STEP**2
    epsilon = slope / c - 1 / c - 1 / (1 + c)
    curvature = (bend - slope) / c**2 + 1 / c**2 + 1 / (1 + c) ** 2
    return epsilon, middle - c * epsilon - log_c - math.log1p(c) - math.log(2 * math.pi * curvature) / 2


NEGLIGIBLE_PART = 1e-18
"""An addend of at most this relative size does not change a sum."""


class Method(ABC):
    """Computes δ(ε) of one composed direction as an interval that contains the true value."""

    name: str

    @abstractmethod
    def delta(self, epsilon: float) -> Interval: ...

    def delta_upper_bound(self, epsilon: float) -> float:
        """Return a valid upper bound on δ(ε), possibly cheaper and less tight than the end of ``delta``."""
        return self.delta(epsilon)[1]

    def delta_lower_bound(self, epsilon: float) -> float:
        """Return the lower end of ``delta``."""
        return self.delta(epsilon)[0]

    def quick_delta_upper_bound(self, epsilon: float) -> float:
        """Return an upper bound on δ(ε) at negligible cost; 1 by default."""
        del epsilon
        return 1.0

    def delta_to_precision(self, epsilon: float, size: float) -> Interval:
        """Return an interval for δ(ε), as narrow as matters if δ is added to a number of this size."""
        upper = self.quick_delta_upper_bound(epsilon)
        return (0.0, upper) if upper <= NEGLIGIBLE_PART * size else self.delta(epsilon)

    def precision_limit(self, epsilon: float) -> str:
        """Return what limited the width of the bracket at ε, or an empty text."""
        del epsilon
        return ""

    def approximate_epsilon_at(self, target: float) -> EpsilonGuess | None:
        """Return ε with δ(ε) about ``target``; None by default, and if no approximation exists."""
        del target
        return None

    def delta_bounds_at(self, epsilons: Floats) -> tuple[Floats, Floats]:
        """Return both ends at many ε."""
        ends = np.array([self.delta(epsilon) for epsilon in epsilons.tolist()]).reshape(-1, 2)
        return ends[:, 0], ends[:, 1]


MAX_STEPS = 12
AIM_MARGIN = 1e-14
"""Relative margin by which the guess aims below the target, so that it stays below despite rounding."""
STOP_MARGIN = 1e-13
"""Relative distance from the target at which the iteration stops."""


def interpolate_epsilon(
    delta_at_epsilon: Callable[[float], float], rough: EpsilonGuess, target: float, largest: float
) -> EpsilonGuess:
    """Refine a rough guess of the ε at which δ equals the target, in few evaluations.

    Inverse interpolation of log δ at the last three points, bracketed once both sides are found. Returns the rough
    guess itself if the iteration misses the target.
    """
    points: list[tuple[float, float]] = []  # log of the ratio of δ to the target, and ε
    epsilon, low, high = rough.epsilon, 0.0, largest
    while len(points) < MAX_STEPS:
        delta = delta_at_epsilon(epsilon)
        if not delta > 0:
            return rough
        excess = math.log(delta / (target * (1 - AIM_MARGIN)))
        points.append((excess, epsilon))
        if abs(excess) <= STOP_MARGIN:
            break
        low, high = (epsilon, high) if excess > 0 else (low, epsilon)
        following = _zero_of_excess(points[-3:], rough.decay_rate)
        if not low < following < high:  # the midpoint; while one side is unbounded, twice or half the last point
            following = 2 * epsilon if math.isinf(high) else (low + high) / 2 if low > 0 else epsilon / 2
        if not abs(following - epsilon) > 2e-16 * epsilon:
            break
        epsilon = following
    excess, epsilon = min(points, key=lambda point: abs(point[0]))
    return EpsilonGuess(epsilon, rough.decay_rate) if abs(excess) < 1 else rough


def _zero_of_excess(points: list[tuple[float, float]], decay_rate: float) -> float:
    """Return the ε of zero excess from up to three points (excess, ε).

    By the slope −``decay_rate`` from one point, else by Neville's scheme for ε as a function of the excess.
    """
    if len(points) == 1:
        ((excess, epsilon),) = points
        return epsilon + excess / decay_rate
    (x, a), (y, b), *third = points
    line = (a * y - b * x) / (y - x) if x != y else b
    if not third or third[0][0] in (x, y):
        return line
    ((z, c),) = third
    other = (b * z - c * y) / (z - y)
    return (line * z - other * x) / (z - x)
