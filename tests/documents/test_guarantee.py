"""Guarantees and budgets: the admissible region, exact decimals, errors that teach."""

from __future__ import annotations

import math
from decimal import Decimal, localcontext
from fractions import Fraction
from statistics import NormalDist

import pytest
from hypothesis import given
from hypothesis import strategies as st

import tightrope as tr
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


@pytest.mark.parametrize(
    ("false_positive", "true_positive"),
    [("0.01", "0.05"), ("0.001", "0.01"), ("1e-6", "1e-3"), ("0.4", "0.9"), ("0.2", "0.8"), ("0.3", "0.30000001"),
     ("1e-40", "0.5"), ("0.5", "0.999999999999"), ("1e-100", "1.0000001e-100")],
)  # fmt: skip
def test_an_attackers_rates_are_a_point_that_implies_them(false_positive, true_positive):
    """δ + e^ε FPR is at most the TPR, exactly; for rates that add up to more than 1, for their complements."""
    budget = Budget(attack_rates=[(false_positive, true_positive)], delta="1e-9")
    (epsilon, delta), (first, second) = budget.points[0], budget.attack_rates[0]
    with localcontext(prec=200):
        if first + second > 1:
            first, second = 1 - second, 1 - first
        assert 0 <= delta <= second - epsilon.exp() * first
        # The best point for a Gaussian is at a flat maximum: nearly nothing is lost to the rounding of ε.
        mu = NormalDist().inv_cdf(float(second)) - NormalDist().inv_cdf(float(first))
        gaussian = tr.gaussian(scale=1, sensitivity=max(mu, 1e-9)).loss
        assert float(delta) >= gaussian.delta(float(epsilon)) * (1 - 1e-3) - 1e-8 * float(second)
    assert budget == Budget(attack_rates=[(false_positive, true_positive)], delta="1e-9")
    assert "true-positive rate" in str(budget)
    assert Budget(points=budget.points, delta="1e-9") != budget


def test_rates_stand_next_to_other_limits():
    budget = Budget(epsilon=1, attack_rates=[(0.01, 0.05), (0.1, 0.3)], delta="1e-8")
    assert len(budget.points) == 3
    assert budget.asked[:2] == ("epsilon", "attack_rates")
    assert budget.scale_by(1) == budget and budget.scale_by(1).attack_rates == budget.attack_rates
    assert budget.scale_by("0.5").points[0] == (Decimal("0.5"), Decimal("5e-9"))
    assert str(budget).startswith("epsilon 1 at delta 1e-8 and true-positive rate 0.05 at false-positive rate 0.01")


@pytest.mark.parametrize(
    ("rates", "expected"),
    [
        ([], "at least one pair"), (0.01, "at least one pair"), ([0.01], "pairs"), ([(0.01, 0.05, 1)], "pairs"),
        ([(0.05, 0.05)], "true-positive rate above"), ([(0.05, 0.01)], "true-positive rate above"),
        ([(0, 0.05)], "between 0 and 1"), ([(0.5, 1)], "between 0 and 1"), ([(math.nan, 0.5)], "finite"),
        ([(0.1, "x")], "a number"), ([("1e-101", 0.5)], "between 0 and 1"),
    ],
)  # fmt: skip
def test_rates_that_are_refused(rates, expected):
    with pytest.raises(InputError, match=expected) as error:
        Budget(attack_rates=rates, delta=1e-6)
    assert error.value.name == "attack_rates"


def test_rates_need_a_delta():
    with pytest.raises(InputError, match="missing"):
        Budget(attack_rates=[(0.01, 0.05)])
    with pytest.raises(InputError, match="the only promise"):
        Budget(attack_rates=[(0.01, 0.05)], tradeoff=lambda t: 1 - t)
