"""What every privacy profile obeys (theory §1), asked of the brackets: no two of them may contradict."""

from __future__ import annotations

import math

from hypothesis import given
from hypothesis import strategies as st

import tightrope as tr
from tests.laws.losses import ANY, EPSILONS, SINGLE

ROUNDING = 1e-12


@given(ANY, EPSILONS)
def test_between_the_trivial_bounds(loss: tr.PrivacyLoss, epsilon: float) -> None:
    lower, upper = loss.delta_bounds(epsilon)
    trivial = -math.expm1(min(epsilon, 0.0))
    assert 0 <= lower <= upper <= 1
    assert upper >= trivial
    assert loss.delta(epsilon) == upper


@given(ANY, EPSILONS, EPSILONS)
def test_never_rises_with_epsilon(loss: tr.PrivacyLoss, first: float, second: float) -> None:
    low, high = sorted((first, second))
    assert loss.delta_bounds(high).lower <= loss.delta_bounds(low).upper
    if loss.method != "grid":
        assert loss.delta(high) <= loss.delta(low) * (1 + 1e-9) + 1e-300


@given(ANY, EPSILONS, EPSILONS, st.floats(0, 1))
def test_convex_in_the_exponential_of_epsilon(loss: tr.PrivacyLoss, a: float, b: float, share: float) -> None:
    gamma = share * math.exp(a) + (1 - share) * math.exp(b)
    bounds = loss.delta_bounds(math.log(gamma)).lower
    chord = share * loss.delta(a) + (1 - share) * loss.delta(b)
    assert bounds <= chord * (1 + ROUNDING) + ROUNDING * gamma


@given(SINGLE, EPSILONS)
def test_the_two_orders_mirror_each_other(loss: tr.PrivacyLoss, epsilon: float) -> None:
    """δ_QP(−ε) = 1 − e^{−ε}(1 − δ_PQ(ε))."""
    one, other = (tr.PrivacyLoss(way, way) for way in (loss.remove, loss.add))
    lower, upper = one.delta_bounds(epsilon)
    mirrored = other.delta_bounds(-epsilon)
    factor = math.exp(-epsilon)
    assert mirrored.lower <= 1 - factor * (1 - upper) + ROUNDING * (1 + factor)
    assert mirrored.upper >= 1 - factor * (1 - lower) - ROUNDING * (1 + factor)


@given(ANY)
def test_total_variation_is_delta_at_zero(loss: tr.PrivacyLoss) -> None:
    assert loss.total_variation() == loss.delta(0)
    assert loss.infinite_mass <= loss.total_variation() * (1 + 1e-9)


@given(ANY, EPSILONS)
def test_never_below_the_mass_of_infinite_loss(loss: tr.PrivacyLoss, epsilon: float) -> None:
    assert loss.delta(epsilon) >= loss.infinite_mass * (1 - 1e-12)
    assert loss.delta(1e6) <= loss.infinite_mass * (1 + 1e-9) + 1e-300


@given(ANY, st.lists(EPSILONS, min_size=1, max_size=3))
def test_arrays_answer_like_their_entries(loss: tr.PrivacyLoss, epsilons: list[float]) -> None:
    assert loss.delta(epsilons).tolist() == [loss.delta(epsilon) for epsilon in epsilons]
