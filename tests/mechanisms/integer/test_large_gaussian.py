"""The discrete Gaussian without a table: what it declares, against sums in high precision."""

import math
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from mpmath import mp, mpf

from tightrope.errors import InputError
from tightrope.mechanisms.discrete.gaussian_sampling import LargeGaussian
from tightrope.mechanisms.gaussian import DiscreteGaussian, discrete_gaussian, gaussian, tabulated_gaussian
from tightrope.randomness.bits import InsecureSeeded


def law(scale, reach=None):
    """Unnormalized P(X = x), x = 0.., and the sum over all integers."""
    weights = [mp.exp(-(mpf(x) ** 2) / (2 * mpf(scale) ** 2)) for x in range(reach or math.ceil(14 * scale) + 3)]
    return weights, 2 * mp.fsum(weights) - 1


@pytest.mark.parametrize("scale", [1.0, 1.5, 3.0, 10.0, 64.0, 100.3])
def test_normal_quantiles_of_the_law_are_close_together(scale):
    """u_{k+1} − u_k ≤ 1/√(σ² − ½), the one inequality that the certificate rests on."""
    with mp.workdps(60):
        weights, total = law(scale)
        beyond = mpf(0)
        upper = []
        for x in range(len(weights) - 1, 0, -1):
            beyond += weights[x]
            if x <= 9 * scale:
                upper.append(-mp.sqrt(2) * mp.erfinv(2 * beyond / total - 1))
        upper.reverse()  # u_1, u_2, …
        steps = [2 * upper[0], *(b - a for a, b in pairwise(upper))]
        assert max(steps) <= 1 / mp.sqrt(mpf(scale) ** 2 - mpf(1) / 2)
        assert max(steps) > 1 / mpf(scale)  # a Gaussian of the same scale would promise too much


def exact_delta(scale, shift, epsilon):
    """Σ (p(x) − e^ε p(x − d))₊ in 40 digits."""
    with mp.workdps(40):
        weights, total = law(scale, math.ceil(14 * scale) + shift)  # q at every x where p is not nothing
        reach = len(weights) - 1
        at = lambda x: weights[abs(x)] if abs(x) <= reach else mpf(0)  # noqa: E731
        gamma = mp.exp(mpf(epsilon))
        gains = (at(x) - gamma * at(x - shift) for x in range(-reach, reach + 1))
        return mp.fsum(gain for gain in gains if gain > 0) / total


@given(st.sampled_from([64.0, 71.3]), st.integers(1, 300), st.floats(-4, 9))
@settings(deadline=None, max_examples=40)
def test_the_certificate_is_above_the_truth_and_close(scale, shift, standardized):
    noise = LargeGaussian.from_scale(scale, shift)
    mu = shift / scale
    epsilon = mu * standardized + mu * mu / 2
    truth, found = exact_delta(scale, shift, epsilon), noise.loss.delta(epsilon)
    assert truth <= found
    assert found <= truth * (1 + mpf(12) * (1 + max(standardized, 0) ** 2) / scale**2) + mpf(10) ** -30


def test_smaller_shifts_are_covered():
    promised = LargeGaussian.from_scale(64, 100).loss.delta([0.2, 1.0, 3.0])
    for shift in (1, 10, 50, 99):
        assert all(exact_delta(64, shift, e) <= d for e, d in zip([0.2, 1.0, 3.0], promised, strict=True))


def test_composition_is_that_of_gaussians():
    noise = LargeGaussian.from_scale(1e9, 10**8)
    known = (100 * gaussian(scale=1e9, sensitivity=1e8).loss).epsilon(1e-6)
    assert known <= (100 * noise.loss).epsilon(1e-6) <= known * (1 + 1e-13)
    assert noise.loss.infinite_mass == 0.0
    sampled = noise.loss.poisson_sample(0.01)
    assert (1000 * sampled).epsilon(1e-6) < (1000 * noise.loss).epsilon(1e-6)


@pytest.mark.parametrize("scale", [64.0, 100.3])
def test_errors_and_intervals(scale):
    noise = LargeGaussian.from_scale(scale)
    with mp.workdps(40):
        weights, total = law(scale)
        first = 2 * mp.fsum(x * w for x, w in enumerate(weights)) / total
        second = 2 * mp.fsum(x * x * w for x, w in enumerate(weights)) / total
        assert abs(noise.mean_absolute_error / first - 1) < 1 / (60 * scale**4) + 1e-15
        assert abs(noise.mean_squared_error / second - 1) < 1e-14
    assert noise.worst_error == math.inf
    sums = np.cumsum([float(w / total) for w in [*weights[:0:-1], *weights]])
    reach = len(weights) - 1
    inside = 2 * np.cumsum([float(w / total) for w in weights]) - float(1 / total)
    for p in (1e-6, 0.01, 0.3, 0.5, 0.700001, 0.975, 1 - 1e-9):
        assert abs(noise.quantile(p) - (int(np.searchsorted(sums, p)) - reach)) <= 1
        width = noise.half_width(p)
        assert inside[max(width, 0)] >= p or p < inside[0]
        assert width - np.searchsorted(inside, p) <= 1


@pytest.mark.parametrize("scale", [1e5 + 0.5, 1e9])
def test_draws_have_the_declared_moments(scale):
    noise = discrete_gaussian(scale=scale)
    draws = noise.sample(200_000, InsecureSeeded(8)).astype(float)
    assert abs(np.abs(draws).mean() / noise.mean_absolute_error - 1) < 0.008
    assert abs((draws**2).mean() / noise.mean_squared_error - 1) < 0.015
    assert abs((np.abs(draws) <= noise.half_width(0.95)).mean() - 0.95) < 0.003
    assert abs((draws <= noise.quantile(0.2)).mean() - 0.2) < 0.005


def test_release():
    noise = discrete_gaussian(scale=1e9)
    assert isinstance(noise.release(5), int)
    assert noise.release(np.arange(6).reshape(2, 3)).shape == (2, 3)
    assert isinstance(int(noise.release(np.array([2**63 - 1]))[0]), int)
    with pytest.raises(InputError, match="value"):
        noise.release(1.5)


def test_the_public_name_picks_the_table_where_there_is_one():
    assert isinstance(discrete_gaussian(scale=1e3), DiscreteGaussian)
    assert isinstance(discrete_gaussian(scale=100_001), LargeGaussian)
    assert tabulated_gaussian(scale=3, sensitivity=2) == discrete_gaussian(scale=3, sensitivity=2)
    with pytest.raises(InputError, match="coarser"):
        tabulated_gaussian(scale=1e6)


@pytest.mark.parametrize("scale", [0.0, -1.0, 1.1e9, math.nan, math.inf, "1e6", None, True])
def test_nonsense_scales(scale):
    with pytest.raises(InputError, match="scale"):
        discrete_gaussian(scale=scale)
    with pytest.raises(InputError, match="scale"):
        LargeGaussian.from_scale(scale)


@pytest.mark.parametrize("sensitivity", [0, -1, 1.0, None, True, 10**400])
def test_nonsense_sensitivities(sensitivity):
    with pytest.raises(InputError, match="sensitivity"):
        discrete_gaussian(scale=1e6, sensitivity=sensitivity)


def test_a_scale_below_the_envelope():
    with pytest.raises(InputError, match="scale"):
        LargeGaussian.from_scale(63.9)
