"""From a rough guess of the ε at which δ is a target to a close one, in few evaluations."""

from __future__ import annotations

import math
from collections.abc import Callable

from tightrope.privacy.engines.saddle import Guess

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
        there = _crossing(points[-3:], rough.rate)
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


def _crossing(points: list[Point], rate: float) -> float:
    """Where the excess is 0: at the slope −rate from one point, else by Neville's scheme for ε as a function of it."""
    if len(points) == 1:
        ((excess, here),) = points
        return here + excess / rate
    (x, a), (y, b), *third = points
    line = (a * y - b * x) / (y - x) if x != y else b
    if not third or third[0][0] in (x, y):
        return line
    ((z, c),) = third
    other = (b * z - c * y) / (z - y)
    return (line * z - other * x) / (z - x)
