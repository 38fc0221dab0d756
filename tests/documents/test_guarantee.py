"""Guarantees and budgets: the admissible region, exact decimals, errors that teach."""

from __future__ import annotations

import math
from decimal import Decimal
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tightrope.documents import Budget, Guarantee
from tightrope.errors import InputError


@given(st.floats(0, 50), st.floats(0, 1), st.floats(0, 1))
def test_triples_are_admissible_after_construction(epsilon, delta, eta):
    triple = Guarantee(epsilon, delta, eta)
    assert triple.delta <= triple.total_variation <= triple.delta + (1 - triple.delta) * math.tanh(epsilon / 2) + 1e-15
    assert 0.5 <= triple.attack_success <= 1


def test_special_cases():
    assert Guarantee(0.0, 0.2).total_variation == 0.2
    assert Guarantee(1.0, 1.0).total_variation == 1.0
    assert Guarantee(1.0, 0.3, 0.1).delta == 0.1
    assert Guarantee(math.inf, 0.3).total_variation == 1.0


@pytest.mark.parametrize("bad", [math.nan, -1.0, "1", None, True, 1j])
def test_bad_epsilon_is_named(bad):
    with pytest.raises(InputError, match="epsilon="):
        Guarantee(bad)


@pytest.mark.parametrize("bad", [math.nan, math.inf, -0.1, 1.1, "x", None])
def test_bad_probabilities_are_named(bad):
    with pytest.raises(InputError, match="delta="):
        Guarantee(1.0, bad)
    with pytest.raises(InputError, match="total_variation="):
        Guarantee(1.0, 0.0, bad)


def test_budgets_are_exact_decimals():
    parts = [Budget(epsilon=1, delta=1e-8).scale_by("0.1") for _ in range(10)]
    assert sum(part.points[0][0] for part in parts) == 1
    assert sum(part.delta for part in parts) == Decimal("1e-8")
    assert Budget(epsilon=0.1, delta=0).points == ((Decimal("0.1"), Decimal(0)),)


def test_all_of_several_promises_are_kept():
    budget = Budget(epsilon=1, attack_success=0.55, delta="1e-8")
    assert budget.points == ((Decimal(1), Decimal("1e-8")), (Decimal(0), Decimal("0.10")))
    assert Budget(points=[(1, 1e-6), (0.5, 1e-3)]).delta == Decimal("1e-6")


@pytest.mark.parametrize(
    "arguments",
    [
        {}, {"epsilon": 1}, {"delta": 1e-6}, {"epsilon": 0, "delta": 1e-6}, {"epsilon": -1, "delta": 1e-6},
        {"epsilon": math.nan, "delta": 1e-6}, {"epsilon": math.inf, "delta": 1e-6}, {"epsilon": "one", "delta": 1e-6},
        {"epsilon": True, "delta": 1e-6}, {"epsilon": 1, "delta": 1}, {"epsilon": 1, "delta": -1e-9},
        {"epsilon": 1, "delta": math.nan}, {"attack_success": 0.4, "delta": 1e-6}, {"attack_success": 1, "delta": 1e-6},
        {"points": [], "delta": 1e-6}, {"points": [(1,)], "delta": 1e-6}, {"points": [(1, 2)], "delta": 1e-6},
        {"epsilon": 1e9, "delta": 1e-6}, {"total_variation": 0.1}, {"total_variation": 1, "delta": 0},
        {"total_variation": math.nan, "delta": 0}, {"total_variation": 0.1, "attack_success": 0.55, "delta": 0},
        {"epsilon": 1, "delta": 1e-6, "tradeoff": lambda t: 1 - t}, {"delta": 0, "tradeoff": lambda t: 1 - t},
        {"tradeoff": "f"},
    ],
)  # fmt: skip
def test_nonsense_budgets_teach(arguments):
    with pytest.raises(InputError, match=r"expected .* got |^\w+: "):
        Budget(**arguments)


def test_a_total_variation_is_a_point_and_so_is_an_attack_success():
    asked = Budget(epsilon=1, delta=0, total_variation=0.1)
    assert asked == Budget(epsilon=1, delta=0, attack_success=0.55)
    assert asked.points == ((Decimal(1), Decimal(0)), (Decimal(0), Decimal("0.1")))
    assert asked.total_variation == Decimal("0.1")
    assert Budget(epsilon=1, delta=0).total_variation is None


def test_floats_are_rounded_to_the_private_side():
    budget = Budget(points=[(0.1, "0.3"), (1, 0.2)])
    assert all(
        Fraction(found) <= Fraction(asked) < Fraction(math.nextafter(found, 2.0))
        for pair, exact in zip(budget.rounded_points, budget.points, strict=True)
        for found, asked in zip(pair, exact, strict=True)
    )


def test_a_trade_off_function_is_neither_shared_nor_written_down():
    budget = Budget(tradeoff=lambda t: 1 - t)
    assert str(budget) == "a trade-off function"
    for refused in (lambda: budget.scale_by(1), budget.to_data, lambda: budget.rounded_points):
        with pytest.raises(InputError, match=r"tradeoff.*state points"):
            refused()


@pytest.mark.parametrize("share", [0, -1, 1.0001, "half", math.nan])
def test_shares_are_parts(share):
    with pytest.raises(InputError, match="budget_fraction="):
        Budget(epsilon=1, delta=1e-6).scale_by(share)
