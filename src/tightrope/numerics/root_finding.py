"""Root finding by Brent's method in a bracket, with a result on the requested side of the root."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Literal

import scipy

Side = Literal["passes", "fails"]

CAPPED = 30.0
"""Function values are clipped to ± this: only a change of sign matters for a root."""
WIDENED = 4.0
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

    def capped_excess(place: float) -> float:
        value = min(max(excess(place), -CAPPED), CAPPED)
        return min(value, 0.0) if place == passes else max(value, 0.0) if place == fails else value

    root = float(
        scipy.optimize.brentq(capped_excess, min(fails, passes), max(fails, passes), xtol=within, rtol=relative)
    )
    return _on_side(lambda place: (excess(place) <= 0) == (side == "passes"), root, end, within + relative * abs(root))


def _on_side(right: Callable[[float], bool], root: float, end: float, step: float) -> float:
    """Return the first point from the root to the end, in growing steps, on the right side; the end is on it."""
    towards = 1 if end > root else -1
    for _ in range(BRACKET_STEPS):
        if (end - root) * towards <= 0:
            break
        if right(root):
            return root
        root, step = root + towards * step, 2 * step
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
    seen: dict[float, float] = {}

    def capped_excess(place: float) -> float:
        if place not in seen:
            seen[place] = min(max(above(math.exp(place)), -CAPPED), CAPPED)
        return seen[place]

    around = _find_bracket(capped_excess, min(max(math.log(guess), ends[0]), ends[1]), width, ends)
    if around is None:
        return math.inf
    low, high = around
    if low == high:
        return math.exp(high)
    return math.exp(find_crossing(capped_excess, low, high, side="passes", within=within))


def _find_bracket(
    above: Callable[[float], float], here: float, width: float, ends: tuple[float, float]
) -> tuple[float, float] | None:
    """Return a point that fails below one that passes; the lower end twice if it passes, None if the upper fails."""
    upwards = above(here) > 0
    end = ends[1] if upwards else ends[0]
    while here != end:
        there = min(here + width, end) if upwards else max(here - width, end)
        if (above(there) > 0) != upwards:
            return (here, there) if upwards else (there, here)
        here, width = there, WIDENED * width
    return None if upwards else (end, end)
