"""Conversions to doubles end on the side that was asked for, and no further than they must."""

from __future__ import annotations

import math
from decimal import Decimal
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tightrope.numerics.rounding import round_outward, to_float

EXACT = st.fractions(max_denominator=10**30)


@given(EXACT)
def test_conversions_keep_the_side_and_are_the_nearest(exact: Fraction) -> None:
    down, up = to_float(exact, "down"), to_float(exact, "up")
    assert down <= exact <= up
    assert up in (down, math.nextafter(down, math.inf))


def test_exact_numbers_stay() -> None:
    assert to_float(Decimal("0.5"), "up") == to_float(Fraction(1, 2), "down") == 0.5
    assert to_float(Decimal("0.1"), "down") < Decimal("0.1")


@given(st.floats(1e-300, 1e300), st.sampled_from([0.0, 1e-15, 1e-9]), st.booleans())
def test_rounding_covers_the_error(value: float, error: float, negative: bool) -> None:
    value = -value if negative else value
    room = abs(Fraction(value)) * Fraction(error)
    assert Fraction(round_outward(value, "up", error=error)) > Fraction(value) + room * (1 - Fraction(1, 10**6))
    assert Fraction(round_outward(value, "down", error=error)) < Fraction(value) - room * (1 - Fraction(1, 10**6))


@pytest.mark.parametrize("value", [0.0, math.inf, -math.inf])
def test_zero_and_infinity_stay(value: float) -> None:
    assert round_outward(value, "up") == round_outward(value, "down") == value
