"""What doubles lose, how far they reach, and conversions that say to which side they err."""

from __future__ import annotations

import math
from decimal import Decimal
from fractions import Fraction
from typing import Literal

Direction = Literal["down", "up"]

ROUND_OFF = 2.0**-53
"""Unit round-off of doubles: fl(x) = x (1 + e) with |e| at most this."""
OVERFLOW = 300.0
"""Beyond e^300 exponentials are formed with their peak pulled out: products of two stay in double precision."""
SUBNORMAL = 1e-290
"""Below this numbers begin to lose digits, or will where they are multiplied."""


def rounded(value: float, direction: Direction, *, error: float = 0.0) -> float:
    """A double beyond every number that ``value`` may stand for, off as it is by ``error``, relatively, and a rounding.

    0 and the infinities stay.

    >>> rounded(1.0, "down") < 1 < rounded(1.0, "up") < rounded(1.0, "up", error=1e-15)
    True
    """
    if value == 0 or math.isinf(value):
        return value
    sign = 1 if direction == "up" else -1
    return math.nextafter(value + sign * abs(value) * error, sign * math.inf)


def to_float(number: Fraction | Decimal | int, direction: Direction) -> float:
    """The nearest double that is not on the other side of an exact number.

    >>> to_float(Fraction(1, 3), "down") < Fraction(1, 3) < to_float(Fraction(1, 3), "up")
    True
    """
    nearest, exact = float(number), Fraction(number)
    beyond = nearest < exact if direction == "up" else nearest > exact
    return math.nextafter(nearest, math.inf if direction == "up" else -math.inf) if beyond else nearest
