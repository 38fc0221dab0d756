"""Hand-checked numbers of each law, and the exactness that single laws promise."""

from __future__ import annotations

import math

import pytest

import tightrope as tr


def test_laplace_profile_between_and_beyond_the_atoms() -> None:
    loss = tr.laplace(scale=0.5).loss
    assert loss.delta(1) == pytest.approx(1 - math.exp(-0.5), rel=1e-14)
    assert loss.delta(2) <= 1e-300
    assert loss.delta(3) <= 1e-300
    assert loss.delta(-2) == pytest.approx(1 - math.exp(-2), rel=1e-14)
    assert loss.epsilon(0) == pytest.approx(2, rel=1e-12)


def test_only_the_ratio_of_sensitivity_and_scale_matters() -> None:
    for family in (tr.gaussian, tr.laplace):
        for epsilon in (0.0, 0.3, 1.0):
            wide, narrow = (family(scale=4 * s, sensitivity=s).loss.delta(epsilon) for s in (1, 16))
            assert wide == narrow


def test_a_triple_is_clipped_to_what_is_possible() -> None:
    loose, tight = tr.approx_dp(1, total_variation=0.9).loss, tr.approx_dp(1).loss
    assert loose.delta(0.3) == tight.delta(0.3)
    assert tight.total_variation() == pytest.approx(math.tanh(0.5), rel=1e-14)
    small = tr.approx_dp(1, delta=0.3, total_variation=0.1).loss
    assert small.infinite_mass == pytest.approx(0.1)
    assert small.delta(5) == pytest.approx(0.1)


def test_no_privacy_and_perfect_privacy() -> None:
    assert tr.approx_dp(1, delta=1).loss.delta(100) == 1
    assert tr.approx_dp(1, delta=1).loss.epsilon(0.5) == math.inf
    perfect = tr.approx_dp(1, total_variation=0).loss
    assert perfect.delta(1) == pytest.approx(0, abs=1e-15)
    assert perfect.tradeoff(0.25) == pytest.approx(0.75, abs=1e-9)


def test_epsilon_is_infinite_below_the_infinite_mass() -> None:
    loss = 10 * tr.approx_dp(0.1, delta=1e-6).loss
    assert loss.epsilon(1e-6) == math.inf
    assert loss.epsilon_bounds(1e-6).lower == math.inf
    assert loss.epsilon(1.1e-5) < 1.01


def test_points_are_hulled_in_the_exponential_of_epsilon() -> None:
    """Between two points the profile is the chord in γ = e^ε (a chord in ε would be unsafe)."""
    loss = tr.from_points([(0, 0.4), (2, 0.1)]).loss
    gamma = math.exp(1)
    share = (gamma - 1) / math.expm1(2)
    assert loss.delta(1) == pytest.approx(0.4 + share * (0.1 - 0.4), rel=1e-12)
    assert loss.delta(2) == pytest.approx(0.1, rel=1e-12)
    assert loss.delta(50) == pytest.approx(0.1, rel=1e-12)


def test_a_point_above_the_hull_changes_nothing() -> None:
    few, more = tr.from_points([(0.5, 1e-3), (1, 1e-6)]).loss, tr.from_points([(0.5, 1e-3), (0.7, 0.5), (1, 1e-6)]).loss
    for epsilon in (-1.0, 0.0, 0.6, 0.8, 2.0):
        assert few.delta(epsilon) == pytest.approx(more.delta(epsilon), rel=1e-12)


def test_a_pair_is_asked_in_both_orders() -> None:
    """δ is the worse order: one direction alone would be half of it."""
    p, q = [0.99, 0.01, 0.0], [0.9, 0.0, 0.1]
    loss = tr.from_pair(p, q).loss
    assert loss.delta(math.log(2)) == pytest.approx(0.1, rel=1e-12)
    assert loss.delta(math.log(2)) == pytest.approx(tr.from_pair(q, p).loss.delta(math.log(2)), rel=1e-14)


def test_sampling_with_certainty_is_no_sampling() -> None:
    step = tr.gaussian(scale=2).loss
    assert step.poisson_sample(1).delta(0.3) == step.delta(0.3)
    assert step.poisson_sample(1.0).method == "closed form"


def test_total_variation_of_a_sampled_step_is_the_rate_times_its_own() -> None:
    step = tr.gaussian(scale=1).loss
    for rate in (0.5, 0.01):
        assert step.poisson_sample(rate).total_variation() == pytest.approx(rate * step.total_variation(), rel=2e-2)


@pytest.mark.parametrize("delta", [1e-6, 1e-100, 1e-200, 1e-290])
def test_tiny_deltas_keep_their_digits(delta: float) -> None:
    """δ(ε(δ)) returns to δ, far below where a Fourier accountant has noise."""
    loss = 50 * tr.gaussian(scale=10).loss + 20 * tr.laplace(scale=5).loss
    lower, upper = loss.epsilon_bounds(delta)
    assert upper - lower <= 1e-9 * upper
    assert loss.delta(upper) == pytest.approx(delta, rel=1e-6)
    assert loss.delta(upper) <= delta


def test_gdp_is_exact_under_composition() -> None:
    whole, single = 100 * tr.gaussian(scale=10).loss, tr.gaussian(scale=1).loss
    assert whole.delta(1) == pytest.approx(single.delta(1), rel=1e-13)
