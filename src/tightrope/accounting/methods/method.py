"""What every engine answers: an interval that holds δ(ε)."""

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

# Where δ(ε) reaches a target, by the saddle-point approximation: a first guess, never a guarantee (theory §3).

APART = 0.02
"""Half the distance, in log c, over which K is differentiated."""
FARTHEST_SADDLE = 16.0
"""Saddle points are sought between e^{−16} and e^{16}."""


class Guess(NamedTuple):
    """δ(ε) is about the target here, and falls by the factor e^{−rate} a nat."""

    epsilon: float
    rate: float


def guess(cumulant: Callable[[Floats], Floats], log_target: float) -> Guess | None:
    """About where log δ(ε) = ``log_target``, from K on the real axis, shape [n] to [n]; None where that fails.

    ε(c) = K'(c) − 1/c − 1/(1+c) has its saddle at c, and there δ ≈ e^{K(c) − cε} / (c (1+c) √(2π K'')), with K'' that
    of the whole exponent. Both fall or rise with c, so c is found by bracketing.
    """

    def excess(log_c: float) -> float:
        return _at(cumulant, log_c)[1] - log_target

    try:
        ends = _bracket(excess)
        if ends is None:
            return None
        log_c = float(scipy.optimize.brentq(excess, *ends, xtol=1e-4))
        epsilon, _ = _at(cumulant, log_c)
    except (PrecisionError, ValueError, OverflowError):
        return None
    return Guess(epsilon, math.exp(log_c)) if math.isfinite(epsilon) and epsilon > 0 else None


def _at(cumulant: Callable[[Floats], Floats], log_c: float) -> tuple[float, float]:
    """ε(c) and log δ there, approximately."""
    c = math.exp(log_c)
    below, here, above = cumulant(c * np.exp([-APART, 0.0, APART])).tolist()
    slope, bend = (above - below) / (2 * APART), (above - 2 * here + below) / APART**2
    epsilon = slope / c - 1 / c - 1 / (1 + c)
    curvature = (bend - slope) / c**2 + 1 / c**2 + 1 / (1 + c) ** 2
    return epsilon, here - c * epsilon - log_c - math.log1p(c) - math.log(2 * math.pi * curvature) / 2


def _bracket(excess: Callable[[float], float]) -> tuple[float, float] | None:
    """Two neighbouring steps of log c between which the excess changes sign, walking from c = e."""
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
"""What is added to a number and is no more than this part of it is lost in its rounding."""


class Engine(ABC):
    """Computes δ(ε) of one composed direction as an interval that holds the truth."""

    name: str

    @abstractmethod
    def delta(self, epsilon: float) -> Interval: ...

    def upper(self, epsilon: float) -> float:
        """The upper end alone, where that is cheaper: it may be less tight than that of ``delta``, never unsafe."""
        return self.delta(epsilon)[1]

    def ceiling(self, epsilon: float) -> float:
        """An upper bound on δ(ε) that costs next to nothing; 1 where there is none."""
        del epsilon
        return 1.0

    def delta_to_precision(self, epsilon: float, size: float) -> Interval:
        """An interval that holds δ(ε), as narrow as matters where δ is added to a number of this size."""
        most = self.ceiling(epsilon)
        return (0.0, most) if most <= LOST_PART * size else self.delta(epsilon)

    def why(self, epsilon: float) -> str:
        """What kept the bracket at ε from being narrower, where that is known."""
        del epsilon
        return ""

    def guess(self, target: float) -> Guess | None:
        """About where δ(ε) is ``target``; None where nothing is known."""
        del target
        return None

    def deltas(self, epsilons: Floats) -> tuple[Floats, Floats]:
        """Both ends at many ε."""
        ends = np.array([self.delta(epsilon) for epsilon in epsilons.tolist()]).reshape(-1, 2)
        return ends[:, 0], ends[:, 1]


# From a rough guess of the ε at which δ is a target to a close one, in few evaluations.

Point = tuple[float, float]
"""Log of δ over the target, and the ε where it is that."""
MOST_STEPS = 12
BELOW = 1e-14
"""The guess is meant to be this much below the target, relative to it: then it keeps it."""
CLOSE = 1e-13


def closer(upper: Callable[[float], float], rough: Guess, target: float, largest: float) -> Guess:
    """By inverse interpolation of log δ at the last three places, between places on both sides once they are known.

    The rough guess itself where that does not lead to the target.
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
        # Where the excess is 0: at the slope −rate from one point, else by Neville's scheme for ε as a function
        # of it.
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
        there = there if low < there < high else _between(low, high, here)
        if not abs(there - here) > 2e-16 * here:
            break
        here = there
    excess, here = min(points, key=lambda point: abs(point[0]))
    return Guess(here, rough.rate) if abs(excess) < 1 else rough


def _between(low: float, high: float, here: float) -> float:
    """The middle, or a place twice as far, or half as far out, while one side is open."""
    if math.isinf(high):
        return 2 * here
    return (low + high) / 2 if low > 0 else here / 2
