"""At the edges of ε, δ and the number of steps: brackets hold together, δ does not rise, ε ends on the private side."""

from __future__ import annotations

import math

import pytest

import tightrope as tr

LAWS = {
    "gaussian": tr.gaussian(scale=1),
    "laplace": tr.laplace(scale=1),
    "triple": tr.approx_dp(1.0, delta=1e-6),
    "discrete laplace": tr.discrete_laplace(scale=3),
    "discrete gaussian": tr.discrete_gaussian(scale=3),
    "large gaussian": tr.discrete_gaussian(scale=1e6),
    "truncated laplace": tr.truncated_laplace(epsilon=1, delta=1e-5),
    "bounded range": tr.bounded_range(epsilon=0.5),
}
LOSSES = {name: mechanism.loss for name, mechanism in LAWS.items()}
LOSSES["sampled gaussian"] = tr.gaussian(scale=1).loss.poisson_sample(0.01)
EPSILONS = (-700.0, -1e-6, 0.0, 1e-6, 1.0, 700.0)
DELTAS = (0.0, 1e-300, 1e-6, 0.5, 1 - 1e-9)
counts = pytest.mark.parametrize("count", [1, 2, 1000, 10**6])


@counts
@pytest.mark.parametrize("name", LOSSES)
def test_delta(name, count):
    loss = count * LOSSES[name]
    before = 1.0
    for epsilon in EPSILONS:
        lower, upper = loss.delta_bounds(epsilon)
        assert 0 <= lower <= upper <= 1
        assert lower <= before * (1 + 1e-12)
        assert upper >= -math.expm1(epsilon) * (1 - 1e-13)  # no pair has less below 0
        before = upper


@counts
@pytest.mark.parametrize("name", LOSSES)
def test_epsilon(name, count):
    loss = count * LOSSES[name]
    for delta in DELTAS:
        lower, upper = loss.epsilon_bounds(delta)
        assert 0 <= lower <= upper
        if math.isfinite(upper):
            assert loss.delta(upper) <= delta * (1 + 1e-12) + math.ulp(0.0)


@pytest.mark.parametrize("more", [5e-324, 1e-320, 1e-300, 1e-200, 1e-30])
@pytest.mark.parametrize("count", [1, 3])
@pytest.mark.parametrize("name", ["laplace", "triple", "discrete laplace", "truncated laplace", "bounded range"])
def test_no_epsilon_is_beyond_the_largest_finite_loss(name, count, more):
    """The search ended some roundings above it: 1.0000000000000056 at δ = 1e-320 where 1 is true at δ = 0."""
    loss = count * LOSSES[name]
    lost = loss.delta(1e6)
    reach = max(total.largest_loss + total.rounding_error_bound for total in (loss.remove, loss.add))
    assert loss.epsilon(lost + max(more, 2 * math.ulp(lost))) <= math.nextafter(reach, math.inf)
