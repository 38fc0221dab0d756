"""Hundreds of millions of draws against the certified weights, by a test that sees a bias of 5 parts in 10 000.

The words are a repeatable AES stream, so these tests are not left to chance: the same draws pass, and the same biased
draws are caught, each time.
"""

import math

import numpy as np
import pytest
from scipy import stats

from tests.randomness.keyed import InsecureKeyed
from tightrope.mechanisms.discrete.gaussian_sampling import LargeGaussian
from tightrope.mechanisms.discrete.integer_tables import gaussian_table
from tightrope.mechanisms.discrete.scaled_noise import widened_gaussian
from tightrope.mechanisms.gaussian import discrete_gaussian
from tightrope.mechanisms.laplace import discrete_laplace
from tightrope.randomness.alias_sampler import TOTAL, AliasSampler

CHUNK = 1 << 24
LEVEL = 1e-5
"""Draws from the right law give a smaller p-value once in 100 000 seeds."""


def p_value(draw, chunks, shares, bins=lambda values: values):
    """Chi-square of many draws against the shares of their bins."""
    source, counts = InsecureKeyed(2024), np.zeros(len(shares))
    for _ in range(chunks):
        counts += np.bincount(bins(draw(CHUNK, source)), minlength=len(shares))
    return stats.chisquare(counts, np.array(shares) * (chunks * CHUNK / math.fsum(shares))).pvalue


def single(reach):
    """Bins of one number each, −reach + 1 … reach − 1, between two for all beyond."""
    return lambda values: np.clip(values, -reach, reach) + reach


def single_shares(table, reach):
    """What a table says of these bins."""
    inner = [table.center, *table.half[: reach - 1]]
    inner += [
        float(table.survival_probability(x - 1) - table.survival_probability(x)) * TOTAL
        for x in range(len(inner), reach)
    ]
    beyond = float(table.survival_probability(reach - 1))
    return [beyond, *(weight / TOTAL for weight in [*inner[:0:-1], *inner]), beyond]


def weights_of(shares_in_percent, bias=0.0):
    """Weights with these shares; the first one larger by ``bias`` of itself, the others smaller in proportion."""
    first = int(TOTAL * shares_in_percent[0] * (1 + bias)) // 100
    left = TOTAL - first
    rest = [left * share // sum(shares_in_percent[1:]) for share in shares_in_percent[1:]]
    return [first, *rest[:-1], left - sum(rest[:-1])]


@pytest.mark.slow
def test_four_hundred_million_draws_and_a_planted_bias():
    percents = [30, 25, 20, 15, 10]
    shares = [percent / 100 for percent in percents]
    assert p_value(AliasSampler.from_weights(weights_of(percents)).draw_outcomes, 24, shares) > LEVEL
    assert p_value(AliasSampler.from_weights(weights_of(percents, bias=5e-4)).draw_outcomes, 24, shares) < LEVEL


@pytest.mark.slow
def test_a_hundred_million_draws_of_a_large_table():
    noise, bins = gaussian_table(100.0), single(400)
    shares = single_shares(noise, 400)
    assert p_value(noise.sample, 6, shares, bins) > LEVEL
    assert p_value(gaussian_table(100.5).sample, 1, shares, bins) < LEVEL


@pytest.mark.slow
def test_the_exact_gaussian_at_1000_against_the_table():
    shares, bins = single_shares(gaussian_table(1000.0), 3500), single(3500)
    assert p_value(LargeGaussian.from_scale(1000.0).sample, 4, shares, bins) > LEVEL
    assert p_value(LargeGaussian.from_scale(1006.0).sample, 2, shares, bins) < LEVEL


def gaussian_bins(scale, reach=256):
    """Bins of 2^k numbers, some 1/50 of the scale, and the shares of N(0, σ²): those of the law but for 10/σ²."""
    bits = int(scale).bit_length() - 6
    edges = (np.arange(-reach, reach + 1) * 2.0**bits - 0.5) / scale
    shares = np.diff(stats.norm.cdf([-np.inf, *edges, np.inf]))
    return (lambda values: np.clip(values >> bits, -reach - 1, reach) + reach + 1), shares


@pytest.mark.slow
@pytest.mark.parametrize("scale", [1e6, 1e9])
def test_the_exact_gaussian_at_large_scales(scale):
    bins, shares = gaussian_bins(scale)
    noise = discrete_gaussian(scale=scale)
    assert p_value(noise.sample, 3, shares, bins) > LEVEL
    assert p_value(discrete_gaussian(scale=scale * 0.995).sample, 1, shares, bins) < LEVEL


@pytest.mark.slow
def test_moments_and_lowest_digits_of_the_exact_gaussian():
    noise = discrete_gaussian(scale=1e9)
    whole = noise.sample(CHUNK, InsecureKeyed(1))
    draws = whole / 1e9
    moments = [draws.mean(), (draws**2).mean() - 1, (draws**3).mean(), (draws**4).mean() - 3]
    deviations = np.sqrt(np.array([1, 2, 15, 96]) / CHUNK)
    assert np.all(np.abs(moments) < 4.5 * deviations)
    assert stats.chisquare(np.bincount(whole & 1023, minlength=1024)).pvalue > LEVEL


@pytest.mark.slow
def test_the_widened_gaussian_at_1e9():
    """Its law is within 3e-6 of the Gaussian's: too close for these bins to tell."""
    bins, shares = gaussian_bins(1e9)
    assert p_value(widened_gaussian(scale=1e9).sample, 2, shares, bins) > LEVEL
    assert p_value(widened_gaussian(scale=1.005e9).sample, 1, shares, bins) < LEVEL


@pytest.mark.slow
def test_the_laplace_with_its_tail():
    noise, bins = discrete_laplace(scale=20.0), single(260)
    assert len(noise.table.half) < 200  # the tail is drawn some 10 000 times
    shares = single_shares(noise.table, 260)
    assert p_value(noise.sample, 3, shares, bins) > LEVEL
    assert p_value(discrete_laplace(scale=20.2).sample, 1, shares, bins) < LEVEL
