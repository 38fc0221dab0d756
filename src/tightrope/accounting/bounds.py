"""Lower and upper bounds on a number."""

from __future__ import annotations

import math
from typing import NamedTuple

from tightrope.numerics.arrays import Floats


class Bounds(NamedTuple):
    """``lower <= truth <= upper``, rounding included.

    >>> Bounds(0.25, 0.5).upper
    0.5
    """

    lower: float | Floats
    upper: float | Floats


# What every method returns: an interval that contains δ(ε).

Interval = tuple[float, float]


def round_outward(value: float, error: float) -> Interval:
    """Return value ∓ error inside [0, 1], each end one step further out; an exact zero stays one."""
    if value == error == 0:
        return 0.0, 0.0
    low, high = value - error, value + error
    return max(0.0, math.nextafter(low, -1.0)), min(1.0, math.nextafter(high, 2.0))


def join_bounds(low: float, high: float, error: float) -> Interval:
    """Return the interval around two values, either of which may be off by the error."""
    return round_outward(low, error)[0], round_outward(high, error)[1]
