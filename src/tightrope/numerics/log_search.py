"""The least size that keeps a budget, by how far the logarithm of δ is off: bracketed, then Brent's method."""

from __future__ import annotations

import math
from collections.abc import Callable

from scipy import optimize

CAPPED = 30.0
"""Logs of δ over what is allowed are cut here: a root is where they change sign."""
WIDENED = 4.0
"""Each step of the search for a bracket is so many times the last."""
BRACKET_STEPS = 60


def least_size(
    above: Callable[[float], float], guess: float, *, width: float, within: float, limits: tuple[float, float]
) -> float:
    """The least size with ``above(size)`` ≤ 0, to a factor of 1 + 2 ``within``; larger sizes must keep more.

    ``above`` is a log of δ over what is allowed. It is bracketed from ``guess`` in steps that begin at ``width``, on a
    log scale. What is returned was seen to pass; the lower limit where that passes, ∞ where the upper one does not.

    >>> round(least_size(lambda size: 1 - math.log(size), 1.0, width=0.1, within=1e-9, limits=(1e-3, 1e3)), 6)
    2.718282
    """
    ends = math.log(limits[0]), math.log(limits[1])
    seen: dict[float, float] = {}

    def capped(place: float) -> float:
        if place not in seen:
            seen[place] = min(max(above(math.exp(place)), -CAPPED), CAPPED)
        return seen[place]

    around = _bracket(capped, min(max(math.log(guess), ends[0]), ends[1]), width, ends)
    if around is None:
        return math.inf
    low, high = around
    if low == high:
        return math.exp(high)
    root = float(optimize.brentq(capped, low, high, xtol=within, rtol=1e-15))
    return math.exp(_passing(capped, root, high, within))


def _bracket(
    above: Callable[[float], float], here: float, width: float, ends: tuple[float, float]
) -> tuple[float, float] | None:
    """A place that fails below one that passes; the lower end twice where it passes, None where the upper end fails."""
    upwards = above(here) > 0
    end = ends[1] if upwards else ends[0]
    while here != end:
        there = min(here + width, end) if upwards else max(here - width, end)
        if (above(there) > 0) != upwards:
            return (here, there) if upwards else (there, here)
        here, width = there, WIDENED * width
    return None if upwards else (end, end)


def _passing(above: Callable[[float], float], root: float, high: float, within: float) -> float:
    """The first place from the root upwards, in growing steps, that passes; ``high`` does."""
    step = within
    for _ in range(BRACKET_STEPS):
        if root >= high:
            break
        if above(root) <= 0:
            return root
        root, step = root + step, 2 * step
    return high
