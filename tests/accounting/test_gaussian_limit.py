"""The central limit of a composition: its μ, and bounds around the trade-off curve that the exact one keeps."""

from __future__ import annotations

import math

import pytest

import tightrope as tr

SAMPLED = [(6.4e-5, 1.0, 156_250), (1e-4, 2.0, 10_000), (0.01, 1.0, 1_000), (0.5, 3.0, 100)]


@pytest.mark.parametrize(("rate", "scale", "steps"), SAMPLED)
def test_mu_of_dpsgd_is_that_of_the_papers(rate, scale, steps):
    """μ → q √(k (e^{1/σ²} − 1)), however small the rate."""
    loss = steps * tr.gaussian(scale=scale).loss.poisson_sample(rate)
    limit = rate * math.sqrt(steps * math.expm1(scale**-2))
    assert loss.gaussian_limit().mu == pytest.approx(limit, rel=max(1e-6, rate))


@pytest.mark.parametrize(
    "loss",
    [
        10_000 * tr.approx_dp(0.01).loss,
        100 * tr.laplace(scale=10).loss,
        100 * tr.gaussian(scale=10).loss,
        156_250 * tr.gaussian(scale=1).loss.poisson_sample(6.4e-5),
        1_000 * tr.gaussian(scale=1).loss.poisson_sample(0.01),
        1_000 * tr.gaussian(scale=2).loss.subset_sample(1, 1_000),
        1_000 * tr.laplace(scale=2).loss.subset_sample(1, 1_000),
        1_000 * tr.laplace(scale=2).loss.poisson_sample(1e-3),
    ],
)
@pytest.mark.parametrize("rate", [0.01, 0.1, 0.5, 0.9])
def test_bounds_hold_the_exact_curve(loss, rate):
    bounds, exact = loss.gaussian_limit().tradeoff_bounds(rate), loss.tradeoff_bounds(rate)
    assert bounds.lower <= exact.upper
    assert exact.lower <= bounds.upper


def test_small_rates_have_a_narrow_one():
    loss = 156_250 * tr.gaussian(scale=1).loss.poisson_sample(6.4e-5)
    bounds = loss.gaussian_limit().tradeoff_bounds(0.1)
    assert bounds.upper - bounds.lower < 0.05
