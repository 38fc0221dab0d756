"""Root finding in a bracket, with a result on the requested side of the root.

Of a function that changes sign: ``find_crossing`` (Brent's method, on a side), ``least_size`` (the same from a guess,
on a log scale) and ``find_root`` (on either side: for guesses). Of a condition that changes from false to true:
``bisect_real``, ``bisect_integer`` and ``bisect_arrays``, and ``bracket_by_doubling``, which returns their ends.

In all of them, a point *passes* or *fails*, and the ends of the bracket are one of each, in either order; they are not
evaluated. The result is on ``side``: it was evaluated to be there, or is that end. NaN raises ``PrecisionError``: it is
on neither side.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, Literal, TypeVar

import numpy as np
import scipy

from tightrope.errors import InputError, PrecisionError
from tightrope.numerics.arrays import Floats

Side = Literal["passes", "fails"]
Real = TypeVar("Real", int, float)

EPSILON = 2.0**-52
"""Distance of 1 and the next float; scipy's tolerance is at least four times this."""
LARGEST_VALUE = 30.0
"""Function values are clipped to ± this: only a change of sign matters for a root."""
STEP_GROWTH = 4.0
"""Each step of the search for a bracket is this many times the last."""
BRACKET_STEPS = 60
MAX_HALVINGS = 1100
"""Enough halvings for neighboring floats, from any bracket."""
LARGEST_END = 1e150
"""Ends of a bracket are at most this, or at least its inverse if halved on a log scale: products do not overflow."""


def find_root(
    function: Callable[[float], float], low: float, high: float, *, within: float, relative: float = 4 * EPSILON
) -> float:
    """Return a root of a continuous function, on either side of it: for first guesses, which need no side.

    Its error is at most ``within`` + ``relative`` times the root. Raises ``ValueError`` if the values at both ends have
    the same sign, and for NaN.

    >>> round(find_root(lambda x: 2 - x * x, 0.0, 2.0, within=1e-9), 6)
    1.414214
    """
    return float(scipy.optimize.brentq(function, low, high, xtol=within, rtol=relative))


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
        value = _clip_value(excess(point), point)
        return min(value, 0.0) if point == passes else max(value, 0.0) if point == fails else value

    root = find_root(clipped_excess, min(fails, passes), max(fails, passes), within=within, relative=relative)
    # The first point from the root to the end, in growing steps, on the requested side; the end is on it.
    direction, step = 1 if end > root else -1, within + relative * abs(root)
    for _ in range(BRACKET_STEPS):
        if (end - root) * direction <= 0:
            break
        if (_clip_value(excess(root), root) <= 0) == (side == "passes"):
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
            size = math.exp(log_size)
            values[log_size] = _clip_value(above(size), size)
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


def _clip_value(value: float, point: float) -> float:
    """Return the value, clipped to ± ``LARGEST_VALUE``; raises ``PrecisionError`` for NaN."""
    if math.isnan(value):
        raise PrecisionError(f"the function of which a root is sought is not a number at {point!r}")
    return min(max(value, -LARGEST_VALUE), LARGEST_VALUE)


# Bisection: the same for a condition, which has no size that could guide the search.


def bisect_real(
    condition: Callable[[float], bool],
    fails: float,
    passes: float,
    *,
    side: Side,
    within: float = 0.0,
    relative: float = 0.0,
    halvings: int = MAX_HALVINGS,
    geometric: bool = False,
) -> float:
    """Return where ``condition`` becomes true between a point that fails and one that passes, in either order.

    The result was evaluated to be on ``side``, or is that end. A point on the other side is at most ``within`` +
    ``relative`` times the result away, or as far as ``halvings`` leave it; by default it is the neighboring float. If
    the condition changes more than once, this is one of the changes. ``geometric``: halve on a log scale, between
    positive ends. Raises ``InputError`` for infinite ends and others beyond ± 10¹⁵⁰.

    >>> bisect_real(lambda x: x * x >= 2, 0.0, 2.0, side="passes")
    1.4142135623730951
    >>> bisect_real(lambda x: x * x >= 2, 0.0, 2.0, side="fails")
    1.414213562373095
    """
    for name, end in (("fails", fails), ("passes", passes)):
        if not -LARGEST_END <= end <= LARGEST_END or (geometric and not end >= 1 / LARGEST_END):
            scale = "positive and finite" if geometric else "finite"
            raise InputError(name, end, scale, "a bracket is found by bracket_by_doubling")
    for _ in range(halvings):
        if not abs(passes - fails) > within + relative * abs(passes if side == "passes" else fails):
            break
        middle = math.sqrt(fails * passes) if geometric else (fails + passes) / 2
        if not min(fails, passes) < middle < max(fails, passes):
            break
        fails, passes = (fails, middle) if _check_verdict(condition(middle), middle) else (middle, passes)
    return passes if side == "passes" else fails


def bisect_integer(
    condition: Callable[[int], bool], fails: int, passes: int, *, side: Side, relative: float = 0.0
) -> int:
    """Return where ``condition`` becomes true between an integer that fails and one that passes, in either order.

    The result was evaluated to be on ``side``, or is that end. By default its neighbor is on the other side; with
    ``relative``, an integer at most that times the result away. Raises ``InputError`` for ends that are not integers.

    >>> bisect_integer(lambda n: n * n >= 50, 0, 50, side="passes"), bisect_integer(lambda n: n < 3, 9, 0, side="fails")
    (8, 3)
    """
    for name, end in (("fails", fails), ("passes", passes)):
        if not isinstance(end, int):
            raise InputError(name, end, "an integer", "a bracket is found by bracket_by_doubling")
    while abs(passes - fails) > max(1, relative * abs(passes if side == "passes" else fails)):
        middle = (fails + passes) // 2
        fails, passes = (fails, middle) if _check_verdict(condition(middle), middle) else (middle, passes)
    return passes if side == "passes" else fails


def bisect_arrays(
    condition: Callable[[Floats], Any], fails: Floats, passes: Floats, *, side: Side, halvings: int
) -> Floats:
    """Return, entry by entry, where ``condition`` becomes true between points that fail and points that pass.

    Every entry was evaluated to be on ``side``, or is that end; the other side is within 2^−``halvings`` of the
    distance of the ends. ``condition`` takes and returns arrays of the shape of both ends.

    >>> bisect_arrays(lambda x: x * x >= np.array([1.0, 2.0]), np.zeros(2), np.full(2, 2.0), side="passes", halvings=20)
    array([1.        , 1.41421509])
    """
    for _ in range(halvings):
        middle = (fails + passes) / 2
        verdicts = np.asarray(condition(middle))
        if verdicts.dtype != np.bool_:
            raise PrecisionError(f"the condition of which a change is sought is {verdicts.dtype} at {middle!r}")
        fails, passes = np.where(verdicts, fails, middle), np.where(verdicts, middle, passes)
    return passes if side == "passes" else fails


def bracket_by_doubling(
    condition: Callable[[Real], bool], fails: Real, first: Real, *, limit: float | None = None, factor: Real = 2
) -> tuple[Real, Real] | None:
    """Return the last point that fails and the first that passes, of ``first``, its double, and so on up to ``limit``.

    ``fails`` is the point before ``first``, assumed to fail; each point is ``factor`` times the last. Returns None if
    all points up to the limit fail; for a factor below 1, the limit is the smallest.

    >>> bracket_by_doubling(lambda n: n >= 100, 0, 1), bracket_by_doubling(lambda n: n >= 100, 0, 1, limit=99)
    ((64, 128), None)
    """
    point = first
    while limit is None or (point <= limit if factor > 1 else point >= limit):
        if _check_verdict(condition(point), point):
            return fails, point
        fails, point = point, point * factor
        if point == fails:  # 0 or ∞
            return None
    return None


def _check_verdict(verdict: bool, point: float) -> bool:
    """Return the verdict; raises ``PrecisionError`` if it is not a boolean: NaN would be true."""
    if not isinstance(verdict, (bool, np.bool_)):
        raise PrecisionError(f"the condition of which a change is sought is {verdict!r} at {point!r}")
    return bool(verdict)
