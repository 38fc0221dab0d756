"""Poisson samples that are cut to a largest batch, against sums over all sizes and against the mechanism itself."""

from __future__ import annotations

import itertools
import math

import mpmath as mp
import numpy as np
import pytest

import tightrope as tr
from tests.accounting.sampled.test_replace_one import one_step, replaced
from tightrope.accounting.distributions.composition import Composition
from tightrope.accounting.methods.grid import GridMethod
from tightrope.errors import InputError


def truncated(scale: float, rate: float, m: int, n: int) -> tr.PrivacyLoss:
    return tr.gaussian(scale=scale).loss.truncated_poisson_sample(rate, m, n)


def gaussian_delta(mu: mp.mpf, epsilon: mp.mpf) -> mp.mpf:
    return mp.ncdf(mu / 2 - epsilon / mu) - mp.exp(epsilon) * mp.ncdf(-mu / 2 - epsilon / mu)


def sum_over_sizes(mu: float, rate: float, m: int, n: int, epsilon: float) -> mp.mpf:
    """Return δ(ε) of one step if the size of the sample of the others is published."""
    q, others = mp.mpf(rate), n - 1
    # Much larger samples have a probability below 1e-60 in these tests.
    chances = {k: mp.binomial(others, k) * q**k * (1 - q) ** (others - k) for k in range(m, min(n, m + 400))}
    total = (1 - mp.fsum(chances.values())) * one_step(mu, rate, epsilon)
    for k, chance in chances.items():
        p = q * m / (k + 1)
        total += chance * p * gaussian_delta(2 * mp.mpf(mu), mp.log(1 + mp.expm1(mp.mpf(epsilon)) / p))
    return total


@pytest.mark.parametrize(("rate", "m", "n"), [(0.3, 3, 8), (0.1, 1, 5), (0.5, 6, 12)])
@pytest.mark.parametrize("epsilon", [0.1, 1.0])
def test_one_step_is_the_sum_over_all_sizes_if_there_are_few(rate: float, m: int, n: int, epsilon: float) -> None:
    bounds = truncated(1.0, rate, m, n).delta_bounds(epsilon)
    with mp.workdps(30):
        truth = sum_over_sizes(1.0, rate, m, n, epsilon)
    assert mp.mpf(bounds.lower) <= truth <= mp.mpf(bounds.upper)
    assert bounds.upper - bounds.lower <= 1e-9 * bounds.upper


@pytest.mark.parametrize(("m", "most"), [(100, 1.02), (130, 1.001), (170, 1.000001)])
def test_ranges_of_sizes_are_an_upper_bound_and_near(m: int, most: float) -> None:
    upper = truncated(1.0, 0.01, m, 10_000).delta(0.1)
    with mp.workdps(30):
        truth = sum_over_sizes(1.0, 0.01, m, 10_000, 0.1)
    assert truth <= upper <= most * truth


@pytest.mark.parametrize("m", [1, 2, 3])
@pytest.mark.parametrize(("record", "other"), [(1.0, -1.0), (1.0, 0.0), (-1.0, 0.5)])
def test_the_mechanism_itself_loses_no_more(m: int, record: float, other: float) -> None:
    """Every sample and every cut of three records and one that is replaced, in one dimension."""
    rate, scale, grid = 0.4, 1.0, np.linspace(-12, 12, 4801)
    rest = [1.0, -1.0, 0.6]

    def density(value: float) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
        records, total = [value, *rest], np.zeros_like(grid)
        for sampled in itertools.product([False, True], repeat=len(records)):
            chosen = [v for v, is_in in zip(records, sampled, strict=True) if is_in]
            chance = math.prod(rate if is_in else 1 - rate for is_in in sampled)
            batches = list(itertools.combinations(chosen, min(m, len(chosen))))
            for batch in batches:
                total += chance / len(batches) * np.exp(-((grid - sum(batch)) ** 2) / 2)
        return total / math.sqrt(2 * math.pi) * (grid[1] - grid[0])

    p, q = density(record), density(other)
    loss = truncated(scale, rate, m, len(rest) + 1)
    for epsilon in (0.0, 0.2, 0.8):
        gamma = math.exp(epsilon)
        real = max(np.sum(np.maximum(p - gamma * q, 0)), np.sum(np.maximum(q - gamma * p, 0)))
        assert real <= loss.delta(epsilon)
        assert real > 0 or epsilon > 0


def test_composed_batches_agree_with_a_grid_and_lie_between() -> None:
    step = truncated(1.5, 0.2, 12, 15)
    low, high = GridMethod(Composition.from_distribution(step.remove.laws[0]) * 20).delta(0.5)
    bounds = (20 * step).delta_bounds(0.5)
    assert low <= bounds.upper
    assert bounds.lower <= high
    assert high - low <= 0.02 * high
    assert bounds.upper - bounds.lower <= 1e-8 * bounds.upper
    assert (20 * replaced(1.5, 0.2)).delta(0.5) < bounds.upper


def test_a_cut_that_is_never_reached_costs_nothing() -> None:
    assert (100 * truncated(2, 0.1, 50, 50)).delta(0.5) == (100 * replaced(2, 0.1)).delta(0.5)
    rarely = (100 * truncated(2, 0.01, 60, 1000)).delta(0.5)
    assert rarely == pytest.approx((100 * replaced(2, 0.01)).delta(0.5), rel=1e-6)


def test_wrong_sizes_are_refused() -> None:
    loss = tr.gaussian(scale=1).loss
    for rate, m, n in [(0.0, 1, 2), (1.0, 1, 2), (0.1, 0, 2), (0.1, 3, 2)]:
        with pytest.raises(InputError):
            loss.truncated_poisson_sample(rate, m, n)
    with pytest.raises(InputError, match="Gaussian noise"):
        tr.laplace(scale=1).loss.truncated_poisson_sample(0.1, 5, 10)
    with pytest.raises(InputError, match="for a group"):
        loss.group(2).truncated_poisson_sample(0.1, 5, 10)
