"""Rounding error and range of doubles, and conversions that round in a stated direction."""

from __future__ import annotations

import math
from decimal import Decimal
from fractions import Fraction
from typing import Literal

Direction = Literal["down", "up"]

ROUND_OFF = 2.0**-53
"""Unit round-off of doubles: fl(x) = x (1 + e) with |e| at most this."""
OVERFLOW = 300.0
"""Above e^300 exponentials are computed with the peak factored out, so that products of two do not overflow."""
SUBNORMAL = 1e-290
"""Smaller numbers lose digits, directly or in products."""


def round_outward(value: float, direction: Direction, *, error: float = 0.0) -> float:
    """Return a double beyond every number within a relative ``error`` and one rounding of ``value``.

    0 and the infinities are unchanged.

    >>> round_outward(1.0, "down") < 1 < round_outward(1.0, "up") < round_outward(1.0, "up", error=1e-15)
    True
    """
    if value == 0 or math.isinf(value):
        return value
    sign = 1 if direction == "up" else -1
    return math.nextafter(value + sign * abs(value) * error, sign * math.inf)


def to_float(number: Fraction | Decimal | int, direction: Direction) -> float:
    """Return the nearest double on the given side of an exact number.

    >>> to_float(Fraction(1, 3), "down") < Fraction(1, 3) < to_float(Fraction(1, 3), "up")
    True
    """
    nearest, exact = float(number), Fraction(number)
    beyond = nearest < exact if direction == "up" else nearest > exact
    return math.nextafter(nearest, math.inf if direction == "up" else -math.inf) if beyond else nearest
