"""Checks of arguments."""

from __future__ import annotations

import math
from collections.abc import Callable
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pytest

from tightrope.errors import InputError
from tightrope.numerics import checks

ALWAYS_WRONG = [math.nan, True, False, np.True_, "1", None, 1j, [1], 10**400, Decimal("NaN"), Decimal("sNaN")]
RANGES: list[tuple[Callable[..., float], list[object], list[object]]] = [
    (checks.check_finite, [0, -1, 1e308, Fraction(1, 3), Decimal("0.1"), np.float32(2)], [math.inf, -math.inf]),
    (checks.check_positive, [5e-324, 1, np.int64(3)], [0, -0.0, -1, math.inf]),
    (checks.check_non_negative, [0, 1], [-5e-324, math.inf, -math.inf]),
    (checks.check_probability, [0, 1, 0.5], [-5e-324, 1.0000000000000002, math.inf]),
    (checks.check_inner_probability, [5e-324, 0.5], [0, 1]),
]


@pytest.mark.parametrize(("check", "good", "bad"), RANGES, ids=lambda case: getattr(case, "__name__", ""))
def test_what_passes_and_what_does_not(check: Callable[..., float], good: list[object], bad: list[object]) -> None:
    for value in good:
        assert check("x", value) == float(value)
        assert type(check("x", value)) is float
    for value in [*bad, *ALWAYS_WRONG]:
        with pytest.raises(InputError, match="expected x to be") as refused:
            check("x", value, "try one")
        assert "try one" in str(refused.value)
        assert refused.value.name == "x"


def test_whole_numbers() -> None:
    assert checks.check_integer("k", 3) == 3
    assert checks.check_integer("k", np.int8(3)) == 3
    assert type(checks.check_integer("k", np.int8(3))) is int
    assert checks.check_integer("k", 0, at_least=0) == 0
    for wrong in (0, -1, 3.0, math.nan, True, "3", None, Fraction(3)):
        with pytest.raises(InputError):
            checks.check_integer("k", wrong)


def test_a_list_with_something_in_it() -> None:
    checks.check_nonempty("points", [1])
    with pytest.raises(InputError, match="points"):
        checks.check_nonempty("points", [])


def test_long_values_are_cut() -> None:
    with pytest.raises(InputError) as refused:
        checks.check_finite("x", "a" * 10_000)
    assert len(str(refused.value)) < 300
