"""Lower and upper bounds on a number."""

from __future__ import annotations

import math
from enum import StrEnum
from typing import NamedTuple, Self

from tightrope.numerics.arrays import Floats


class _Ends(NamedTuple):
    lower: float | Floats
    upper: float | Floats


class Bounds(_Ends):
    """``lower <= true value <= upper``, rounding included; ``true_value_of`` says what has the true value.

    >>> Bounds(0.25, 0.5).upper
    0.5
    """

    true_value_of: str

    def __new__(cls, lower: float | Floats, upper: float | Floats, true_value_of: str = "") -> Self:
        bounds = super().__new__(cls, lower, upper)
        bounds.true_value_of = true_value_of
        return bounds


class TrueValueOf(StrEnum):
    """The mechanisms whose δ bounds enclose. An upper bound always holds; a lower one is for these mechanisms alone."""

    MECHANISMS = "these mechanisms, on data that differ by the full sensitivity"
    GUARANTEES = "the worst mechanisms with these guarantees, such as randomized response; others may lose less"
    PAIRS = "these dominating pairs of distributions; the mechanisms themselves may lose less"

    def with_other(self, other: TrueValueOf) -> TrueValueOf:
        """Return it for a composition of both.

        >>> TrueValueOf.GUARANTEES.with_other(TrueValueOf.MECHANISMS).name
        'GUARANTEES'
        """
        order = list(TrueValueOf)
        return max(self, other, key=order.index)


# What every method returns: an interval that contains δ(ε).

Interval = tuple[float, float]


def probability_error_bounds(value: float, error: float) -> Interval:
    """Return value ∓ error inside [0, 1], each end one step further out; an exact zero stays one."""
    if value == error == 0:
        return 0.0, 0.0
    low, high = value - error, value + error
    return max(0.0, math.nextafter(low, -1.0)), min(1.0, math.nextafter(high, 2.0))


def join_bounds(low: float, high: float, error: float) -> Interval:
    """Return the interval around two values, either of which may be off by the error."""
    return probability_error_bounds(low, error)[0], probability_error_bounds(high, error)[1]
