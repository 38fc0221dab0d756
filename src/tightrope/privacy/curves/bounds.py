"""A pair of numbers with the truth between them."""

from __future__ import annotations

from typing import NamedTuple

from tightrope.numerics.arrays import Floats


class Bounds(NamedTuple):
    """``lower <= truth <= upper``, rounding included.

    >>> Bounds(0.25, 0.5).upper
    0.5
    """

    lower: float | Floats
    upper: float | Floats
