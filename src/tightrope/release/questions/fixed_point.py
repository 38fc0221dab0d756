"""The grid on which a column's values are added up: fine enough to cost nothing, coarse enough never to overflow."""

from __future__ import annotations

import math
from decimal import Decimal

from tightrope.engines.request import FixedPoint
from tightrope.errors import PlanError

RANGE_DIGITS = 8
"""Decimal digits of half the range that a value keeps: rounding to the grid is below 1e−8 of it."""
NARROWEST_RANGE = 1e-250
"""Below it, a step that is fine enough is too small for a double."""
WIDEST_VALUE = 1e290
"""Beyond it, sums of many rows and their errors are too large for a double."""
ROUNDINGS = 8
"""Units in the last place of the farther bound that a value counted on the grid and brought back may be off by."""
WIDEST_GRID = 2.0**60
"""Grid points from zero to the farther bound, at most."""


def grid(between: tuple[float, float], *, centred: bool) -> FixedPoint:
    """The fixed point of a column clamped to ``between``; a decimal step, so that decimal data lie on it exactly.

    ``centred``: integers are counted from the midpoint (for means: half the sensitivity).
    """
    low, high = between
    reach = (high - low) / 2 if centred else max(abs(low), abs(high))
    if not max(abs(low), abs(high)) <= WIDEST_VALUE:
        expected = f"a range within {WIDEST_VALUE:g} of zero"
        raise PlanError("between", between, expected, "measure in larger units, so that the numbers are smaller")
    if not reach >= NARROWEST_RANGE:
        expected = f"a range that reaches to {NARROWEST_RANGE:g} at least"
        raise PlanError("between", between, expected, "measure in smaller units, so that the numbers are larger")
    finest = math.ceil(math.log10(max(abs(low), abs(high)) / WIDEST_GRID))
    step = Decimal(1).scaleb(max(math.floor(math.log10(reach)) - RANGE_DIGITS, finest))
    plain = FixedPoint(low, high, step, 0)
    centre = (plain.to_units(low) + plain.to_units(high)) // 2 if centred else 0
    return FixedPoint(low, high, step, centre)


def rounding(between: tuple[float, float]) -> float:
    """How far doubles may move what is counted from a middle and brought back: intervals are wider by it."""
    return ROUNDINGS * math.ulp(max(map(abs, between)))


def row_sensitivity(fixed: FixedPoint) -> int:
    """Most that one row, added or removed, changes the integer sum: the larger end, from the integers themselves."""
    return max(abs(fixed.to_units(fixed.lower)), abs(fixed.to_units(fixed.upper)), 1)
