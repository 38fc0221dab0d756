"""Numbers for people keep their direction and their meaning."""

from __future__ import annotations

from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tightrope.documents import numbers

FINITE = st.floats(-1e12, 1e12, allow_nan=False)
_READ = str.maketrans({"−": "-", "⁻": "-", **dict(zip("⁰¹²³⁴⁵⁶⁷⁸⁹", "0123456789", strict=True))})


def read_back(shown: str) -> Decimal:
    plain = shown.replace(",", "").removesuffix(" %").translate(_READ)
    mantissa, _, power = plain.partition(" × 10")
    return Decimal(mantissa).scaleb(int(power) if power else 0)


@given(FINITE, st.integers(0, 9))
def test_fixed_rounds_outwards(value: float, decimals: int) -> None:
    down, up = (read_back(numbers.fixed_text(value, decimals, way)) for way in (numbers.DOWN, numbers.UP))
    assert down <= Decimal(repr(value)) <= up
    assert up - down <= Decimal(1).scaleb(-decimals)


@given(st.floats(1e-300, 1e300), st.integers(1, 6))
def test_significant_rounds_up(value: float, count: int) -> None:
    assert read_back(numbers.significant_text(value, count, numbers.UP)) >= Decimal(repr(value))


@given(st.floats(0, 1))
def test_percent_rounds_up_and_stays_close(share: float) -> None:
    shown, exact = read_back(numbers.percent_text(share, numbers.UP)), Decimal(repr(share)) * 100
    assert exact <= shown <= max(exact + Decimal("0.1"), exact * Decimal("1.2"))


@given(st.floats(1e-300, 0.999))
def test_a_chance_is_never_understated(probability: float) -> None:
    words = numbers.one_in_text(probability).removeprefix("1 in ").replace(",", "")
    words = words.replace(" million", "e6").replace(" billion", "e9").translate(_READ)
    times = Decimal(10) ** int(words[2:]) if probability < 1e-12 else Decimal(words)
    assert 1 / times >= Decimal(repr(probability)) * Decimal("0.999999999999")


@pytest.mark.parametrize(
    ("half_widths", "expected"), [([15], 0), ([1.5], 1), ([0.02], 3), ([0.0], 2), ([1e-30], 9), ([150, 0.1, 150], 0)]
)
def test_digits_follow_the_noise(half_widths: list[float], expected: int) -> None:
    assert numbers.decimals_for(half_widths) == expected


@pytest.mark.parametrize(("value", "shown"), [(None, "–"), (1e300, "1 × 10³⁰⁰"), (-0.0, "0"), (1234.0, "1,234")])
def test_missing_and_extreme_numbers(value: float | None, shown: str) -> None:
    assert numbers.fixed_text(value, 0) == shown


def test_impossible_chance() -> None:
    assert numbers.one_in_text(0.0) == "never"


@pytest.mark.parametrize("missing", [1e-3, 1e-7, 1e-9, 1e-12, 2.0**-53])
def test_what_is_rounded_down_is_never_all(missing: float) -> None:
    shown = numbers.percent_text(1 - missing, numbers.DOWN)
    assert shown != "100 %"
    assert read_back(shown) <= 100 * Decimal(repr(1 - missing))
    assert numbers.percent_text(1.0, numbers.DOWN) == "100 %"
