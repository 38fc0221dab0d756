"""ε(δ) inverts δ(ε) from the private side; the trade-off function is its dual (theory §1)."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

import tightrope as tr
from tests.laws.losses import EPSILONS, GAUSSIANS, SINGLE, SMOOTH, triples

DELTAS = st.floats(-12, -0.05).map(lambda power: 10.0**power)
RATES = st.floats(0, 1)
CHEAP = st.one_of(SINGLE, SMOOTH, st.builds(lambda k, loss: k * loss, st.integers(1, 30), triples()))


@given(CHEAP, DELTAS)
def test_the_epsilon_that_is_returned_is_private(loss: tr.PrivacyLoss, delta: float) -> None:
    lower, upper = loss.epsilon_bounds(delta)
    assert 0 <= lower <= upper
    if math.isfinite(upper):
        assert loss.delta(upper) <= delta
        assert upper == loss.epsilon(delta)
    else:
        assert delta <= loss.infinite_mass


@given(CHEAP, DELTAS)
def test_and_it_is_the_least(loss: tr.PrivacyLoss, delta: float) -> None:
    """Below the lower end nothing can be private."""
    lower = loss.epsilon_bounds(delta).lower
    if 0 < lower < math.inf:
        assert loss.delta_bounds(lower * (1 - 1e-6)).upper > delta


@given(CHEAP, DELTAS, DELTAS)
def test_a_smaller_delta_costs_more_epsilon(loss: tr.PrivacyLoss, first: float, second: float) -> None:
    low, high = sorted((first, second))
    assert loss.epsilon(low) >= loss.epsilon(high) * (1 - 1e-9)


@given(CHEAP, RATES, EPSILONS)
def test_the_tradeoff_is_consistent_with_delta(loss: tr.PrivacyLoss, rate: float, epsilon: float) -> None:
    """f(t) ≥ 1 − δ(ε) − e^ε t for every ε, up to the search; and never above 1 − t."""
    error = loss.tradeoff(rate)
    assert 0 <= error <= 1 - rate + 1e-12
    assert error >= 1 - loss.delta(epsilon) - math.exp(epsilon) * rate - 1e-7
    assert loss.true_positive_rate(rate) == pytest.approx(1 - error, abs=1e-15)


@given(CHEAP, RATES, RATES)
def test_the_tradeoff_falls(loss: tr.PrivacyLoss, first: float, second: float) -> None:
    """It is the smaller of two convex functions, one a direction, so it need not be convex itself."""
    low, high = sorted((first, second))
    assert loss.tradeoff(high) <= loss.tradeoff(low) + 1e-7


@given(GAUSSIANS, st.floats(0.001, 0.999))
def test_the_tradeoff_of_a_gaussian_is_the_closed_form(loss: tr.PrivacyLoss, rate: float) -> None:
    """Φ(Φ⁻¹(1−t) − μ), from below."""
    from scipy import special

    mu = 2 * special.ndtri((1 + loss.total_variation()) / 2)
    exact = float(special.ndtr(special.ndtri(1 - rate) - mu))
    assert exact - 1e-7 <= loss.tradeoff(rate) <= exact + 1e-9


@given(st.floats(0.05, 4), st.floats(0, 0.4), st.floats(0, 1), RATES)
def test_the_tradeoff_of_a_triple_is_four_lines(epsilon: float, delta: float, share: float, rate: float) -> None:
    """GI Cor. 1."""
    eta = delta + share * (1 - delta) * math.tanh(epsilon / 2)
    loss = tr.approx_dp(epsilon, delta=delta, total_variation=eta).loss
    lines = [0, 1 - delta - math.exp(epsilon) * rate, math.exp(-epsilon) * (1 - delta - rate), 1 - eta - rate]
    assert loss.tradeoff(rate) == pytest.approx(max(lines), abs=1e-7)
    assert loss.tradeoff(rate) <= max(lines) + 1e-12


@given(triples(), st.integers(2, 30), DELTAS)
def test_composition_never_lowers_epsilon(step: tr.PrivacyLoss, count: int, delta: float) -> None:
    assert (count * step).epsilon(delta) >= step.epsilon(delta) * (1 - 1e-9)
