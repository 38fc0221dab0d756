"""Root finding by Brent's method in a bracket, with a result on the requested side of the root."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Literal

import scipy

Side = Literal["passes", "fails"]

LARGEST_VALUE = 30.0
"""Function values are clipped to ± this: only a change of sign matters for a root."""
STEP_GROWTH = 4.0
"""Each step of the search for a bracket is this many times the last."""
BRACKET_STEPS = 60


def find_crossing(
    excess: Callable[[float], float],
    fails: float,
    passes: float,
    *,
    side: Side,
    within: float = 5e-324,
    relative: float = 1e-15,
) -> float:
    """Return where ``excess`` falls to 0 between a point that fails and one that passes, in either order.

    A point passes if its excess is ≤ 0. The result was evaluated to be on ``side``, or is that end, whose side is
    assumed; its error is little more than ``within`` + ``relative`` times the point.

    >>> find_crossing(lambda x: 2 - x * x, 0.0, 2.0, side="passes") ** 2 >= 2
    True
    """
    end = passes if side == "passes" else fails

    def clipped_excess(point: float) -> float:
        value = min(max(excess(point), -LARGEST_VALUE), LARGEST_VALUE)
        return min(value, 0.0) if point == passes else max(value, 0.0) if point == fails else value

    root = float(
        scipy.optimize.brentq(clipped_excess, min(fails, passes), max(fails, passes), xtol=within, rtol=relative)
    )
    # The first point from the root to the end, in growing steps, on the requested side; the end is on it.
    direction, step = 1 if end > root else -1, within + relative * abs(root)
    for _ in range(BRACKET_STEPS):
        if (end - root) * direction <= 0:
            break
        if (excess(root) <= 0) == (side == "passes"):
            return root
        root, step = root + direction * step, 2 * step
    return end


def least_size(
    above: Callable[[float], float], guess: float, *, width: float, within: float, limits: tuple[float, float]
) -> float:
    """Return the least size with ``above(size)`` ≤ 0, to a factor of 1 + 2 ``within``; larger sizes must pass, too.

    ``above`` is the log of δ over the allowed δ. The root is bracketed from ``guess`` in steps that begin at
    ``width``, on a log scale. The result was evaluated to pass: the lower end if that passes, ∞ if the upper end
    fails.

    >>> round(least_size(lambda size: 1 - math.log(size), 1.0, width=0.1, within=1e-9, limits=(1e-3, 1e3)), 6)
    2.718282
    """
    ends = math.log(limits[0]), math.log(limits[1])
    values: dict[float, float] = {}

    def clipped_excess(log_size: float) -> float:
        if log_size not in values:
            values[log_size] = min(max(above(math.exp(log_size)), -LARGEST_VALUE), LARGEST_VALUE)
        return values[log_size]

    # Step from the guess until a size fails below one that passes.
    point = min(max(math.log(guess), ends[0]), ends[1])
    upwards = clipped_excess(point) > 0
    end = ends[1] if upwards else ends[0]
    while point != end:
        following = min(point + width, end) if upwards else max(point - width, end)
        if (clipped_excess(following) > 0) != upwards:
            low, high = min(point, following), max(point, following)
            return math.exp(find_crossing(clipped_excess, low, high, side="passes", within=within))
        point, width = following, STEP_GROWTH * width
    return math.inf if upwards else math.exp(end)
