"""Argument validation: each check returns the value in its canonical type or raises ``InputError``.

Comparisons are written ``if not lower <= x <= upper`` so that NaN does not pass.
"""

from __future__ import annotations

import math
import numbers
from collections.abc import Sequence
from decimal import Decimal
from fractions import Fraction

from tightrope.errors import InputError

Real = float | int | Decimal | Fraction


def _to_float(name: str, value: object, expected: str, remedy: str) -> float:
    """Return a float from any real number; strings, booleans and complex numbers are rejected."""
    if isinstance(value, bool) or not isinstance(value, (numbers.Real, Decimal)):
        raise InputError(name, value, expected, remedy)
    try:
        return float(value)
    except (OverflowError, ValueError):
        raise InputError(name, value, expected, remedy) from None


def check_number(name: str, value: object, remedy: str = "") -> float:
    """Return any real number, or ±∞."""
    expected = "a number"
    number = _to_float(name, value, expected, remedy)
    if math.isnan(number):
        raise InputError(name, value, expected, remedy)
    return number


def check_finite(name: str, value: object, remedy: str = "") -> float:
    """Return any finite real number."""
    expected = "a finite number"
    number = _to_float(name, value, expected, remedy)
    if not math.isfinite(number):
        raise InputError(name, value, expected, remedy)
    return number


def check_positive(name: str, value: object, remedy: str = "") -> float:
    """Return a finite number above zero."""
    expected = "a finite number > 0"
    number = _to_float(name, value, expected, remedy)
    if not 0 < number < math.inf:
        raise InputError(name, value, expected, remedy)
    return number


def check_non_negative(name: str, value: object, remedy: str = "") -> float:
    """Return a finite number, zero or above."""
    expected = "a finite number >= 0"
    number = _to_float(name, value, expected, remedy)
    if not 0 <= number < math.inf:
        raise InputError(name, value, expected, remedy)
    return number


def check_probability(name: str, value: object, remedy: str = "") -> float:
    """Return a number in [0, 1]."""
    expected = "a probability in [0, 1]"
    number = _to_float(name, value, expected, remedy)
    if not 0 <= number <= 1:
        raise InputError(name, value, expected, remedy)
    return number


def check_inner_probability(name: str, value: object, remedy: str = "") -> float:
    """Return a number strictly between 0 and 1."""
    expected = "a number strictly between 0 and 1"
    number = _to_float(name, value, expected, remedy)
    if not 0 < number < 1:
        raise InputError(name, value, expected, remedy)
    return number


def check_integer(name: str, value: object, at_least: int = 1, remedy: str = "") -> int:
    """Return an integer ≥ ``at_least``; 3.0 is rejected because it hides a computation that may give 2.9999."""
    expected = f"a whole number >= {at_least}"
    if isinstance(value, bool) or not isinstance(value, numbers.Integral):
        raise InputError(name, value, expected, remedy)
    if not int(value) >= at_least:
        raise InputError(name, value, expected, remedy)
    return int(value)


def check_nonempty(name: str, value: Sequence[object], remedy: str = "") -> None:
    """Check that a sequence has at least one element."""
    if not isinstance(value, (list, tuple)) or len(value) == 0:
        raise InputError(name, value, "a list with at least one entry", remedy)
