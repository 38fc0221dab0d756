"""The least integer noise for a trade-off function."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import stats

from tightrope.documents import Budget
from tightrope.errors import InputError
from tightrope.mechanisms.discrete.integer_tables import geometric_table
from tightrope.mechanisms.pairs import from_points
from tightrope.noise.least_noise import ERROR, least_noise, meets_tradeoff, tradeoff_table


def gaussian(mu):
    return lambda t: float(stats.norm.cdf(stats.norm.ppf(1 - t) - mu))


def triple(epsilon, delta, variation=1.0):
    def tradeoff(t):
        first, second = 1 - delta - math.exp(epsilon) * t, math.exp(-epsilon) * (1 - delta - t)
        return max(0.0, first, second, 1 - variation - t)

    return tradeoff


@pytest.mark.parametrize("mu", [0.2, 1.0, 3.0])
def test_gaussian_privacy_is_the_rounded_gaussian(mu):
    noise = least_noise(Budget(tradeoff=gaussian(mu)))
    rounded = 2 * sum(stats.norm.cdf(-mu * (k - 0.5)) for k in range(1, 400))
    assert noise.mean_absolute_error == pytest.approx(rounded, rel=1e-8)
    found = noise.certificate
    assert found.lower <= rounded * (1 + 1e-12)
    assert rounded <= found.upper * (1 + 1e-12)
    assert found.gap < 1e-7


@pytest.mark.parametrize("budget", [(1, 1e-6), (1, 0), (0.5, 0.1), (1, 1e-3, 0.3), (2, 0, 0.2)])
def test_a_triple_gives_its_closed_form(budget):
    epsilon, delta, *variation = budget
    noise = least_noise(Budget(tradeoff=triple(*budget)))
    same = least_noise(Budget(epsilon=epsilon, delta=delta, total_variation=variation[0] if variation else None))
    assert noise.mean_absolute_error == pytest.approx(same.mean_absolute_error, rel=1e-7)
    assert noise.certificate.lower <= same.mean_absolute_error


def test_the_curve_of_a_composition():
    """f may be any curve that is computed: here of a list of points."""
    loss = from_points([(1, 1e-6), (0.3, 1e-2)]).loss
    curve = Budget(tradeoff=lambda t: float(loss.tradeoff(t)) if 0 < t < 1 else float(t == 0) * (1 - 1e-6))
    noise, same = least_noise(curve), least_noise(Budget(points=[(1, 1e-6), (0.3, 1e-2)]))
    assert noise.mean_absolute_error == pytest.approx(same.mean_absolute_error, rel=1e-6)


@pytest.mark.parametrize("tradeoff", [gaussian(1.0), triple(1, 1e-3), triple(1, 0)])
def test_the_errors_of_every_test_lie_above_f(tradeoff):
    """The curve of (X, X + 1) is the polygon through the errors of all half-lines: also between its vertices."""
    table = least_noise(Budget(tradeoff=tradeoff)).table
    ends = range(-len(table.half) - 3, len(table.half) + 4)
    beyond = [float(table.survival_probability(k) if k >= 0 else 1 - table.survival_probability(-k - 1)) for k in ends]
    first, second = [1 - b for b in beyond[:-1]], beyond[1:]
    for rate in np.linspace(0.001, 0.999, 57).tolist():
        assert np.interp(rate, first, second) >= tradeoff(rate) - 1e-15


def test_a_law_that_tells_more_is_noticed():
    strict = gaussian(1.0)
    table = tradeoff_table(strict)
    assert meets_tradeoff(table, strict, 6)
    assert not meets_tradeoff(table, gaussian(0.999), 6)
    assert not meets_tradeoff(geometric_table(0.5), strict, 6)
    assert not meets_tradeoff(table, lambda t: strict(t) + ERROR * 4, 6)


@pytest.mark.parametrize(
    ("tradeoff", "said"),
    [
        (lambda t: 1 - t, "cells can meet"),
        (lambda t: 0.0, "above 0"),
        (lambda t: 1 - t * t, "convex"),
        (lambda t: max(0.0, 1 - 2 * t), "inverse"),
        (lambda t: min(1.0, 2 * t), "decreasing"),
        (lambda t: float("nan"), "between 0 and 1"),
        (lambda t: 1.5 - t, "between 0 and 1"),
        (lambda t: None, "number"),
        (lambda t: 1 / t, "number"),
        ("f", "function"),
    ],
)
def test_nonsense_curves(tradeoff, said):
    with pytest.raises(InputError, match=said):
        least_noise(Budget(tradeoff=tradeoff))


@pytest.mark.parametrize(
    "others", [{"epsilon": 1}, {"delta": 0}, {"points": [(1, 0)]}, {"total_variation": 0.2}, {"attack_success": 0.6}]
)
def test_a_curve_says_everything(others):
    with pytest.raises(InputError, match="only promise"):
        Budget(tradeoff=gaussian(1.0), **others)


@pytest.mark.parametrize("how", [{"sensitivity": 2}, {"releases": 2}, {"integer": False}])
def test_a_curve_is_for_one_integer_release_of_sensitivity_one(how):
    with pytest.raises(InputError, match="tradeoff"):
        least_noise(Budget(tradeoff=gaussian(1.0)), **how)
