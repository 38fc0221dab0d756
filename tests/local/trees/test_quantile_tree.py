"""Quantiles from a tree of bins."""

import math
import os

import numpy as np
import pytest
from scipy import stats

from tests.randomness.keyed import InsecureKeyed
from tightrope import local
from tightrope.errors import InputError

PEOPLE = 20_000
STUDIES = int(os.environ.get("TIGHTROPE_STUDIES", "60"))
"""Simulated studies of each population; 2000 take some minutes."""
AT = [0.1, 0.25, 0.5, 0.9]


def test_shares_below_edges_are_unbiased_with_the_declared_error():
    m, source = local.quantiles(1.0, bounds=(0.0, 1.0), levels=4), InsecureKeyed(1)
    values = np.linspace(0, 1, PEOPLE) ** 2
    truth = np.array([np.mean(values < edge / 16) for edge in range(1, 16)])
    found = [m.shares_below_edges(m.perturb(values, source)) for _ in range(150)]
    shares, errors = (np.array(part) for part in zip(*found, strict=True))
    error = errors.mean(axis=0)
    assert np.all(np.abs(shares.mean(axis=0) - truth) < 4.5 * error / math.sqrt(150))
    assert shares.std(axis=0) == pytest.approx(error, rel=0.25)


@pytest.mark.parametrize(("epsilon", "levels"), [(1.0, 5), (3.0, 8)])
def test_intervals_cover(epsilon, levels):
    m, source = local.quantiles(epsilon, bounds=(-10.0, 10.0), levels=levels), InsecureKeyed(2)
    values = np.clip(np.linspace(-3, 3, PEOPLE) ** 3 / 3, -10, 10)
    truth = np.quantile(values, AT)
    found = [m.estimate(m.perturb(values, source), AT) for _ in range(150)]
    covered = np.mean([(s.lower <= truth) & (truth <= s.upper) for s in found])
    assert covered >= 0.93
    assert np.mean([s.upper - s.lower for s in found]) < 6
    error = np.mean([s.value for s in found], axis=0) - truth
    assert np.all(np.abs(error) < 0.8)


POPULATIONS = {
    "even": np.linspace(0, 1, PEOPLE),
    "one end": np.linspace(0, 1, PEOPLE) ** 4,
    "narrow": np.linspace(-1, 1, PEOPLE) ** 3 / 50 + 0.4,
    "two points": np.repeat([0.2, 0.7], PEOPLE // 2),
    "few": np.linspace(0, 1, 300),
}


def ranks(values, ends):
    return np.searchsorted(np.sort(values), ends) / len(values)


@pytest.mark.parametrize(("epsilon", "levels"), [(1.0, 10), (4.0, 6)])
@pytest.mark.parametrize("name", POPULATIONS)
def test_every_quantile_is_covered(name, epsilon, levels):
    m, source, values = local.quantiles(epsilon, bounds=(0.0, 1.0), levels=levels), InsecureKeyed(3), POPULATIONS[name]
    truth = np.quantile(values, AT, method="inverted_cdf")
    found = [m.estimate(m.perturb(values, source), AT) for _ in range(STUDIES)]
    held = np.sum([(s.lower <= truth) & (truth <= s.upper) for s in found], axis=0)
    assert np.all(held >= stats.binom.ppf(1e-10, STUDIES, 0.95))


@pytest.mark.parametrize("name", ["even", "one end"])
def test_intervals_are_of_the_size_of_the_error(name):
    """Seven standard deviations of the error in ranks at most; ends at any noisy edge made it 14."""
    m, source, values = local.quantiles(1.0, bounds=(0.0, 1.0)), InsecureKeyed(4), POPULATIONS[name]
    found = [m.estimate(m.perturb(values, source), AT) for _ in range(40)]
    error = np.sqrt(np.mean([(ranks(values, s.value) - AT) ** 2 for s in found], axis=0))
    width = np.mean([ranks(values, s.upper) - ranks(values, s.lower) for s in found], axis=0)
    assert np.all(width < 0.25)
    assert np.all(error < 0.07)
    assert np.mean(width) < 7 * np.mean(error)


def test_the_distribution_rises():
    m = local.quantiles(0.5, bounds=(0.0, 1.0), levels=8)
    reports = m.perturb(POPULATIONS["even"], InsecureKeyed(5))
    raw, error = m.shares_below_edges(reports)
    rising, same = m.cumulative_shares(reports)
    assert np.any(np.diff(raw) < 0)
    assert np.all(np.diff(rising) >= 0)
    assert 0 <= rising[0] <= rising[-1] <= 1
    truth = np.arange(1, m.bin_count) / m.bin_count
    assert np.sum((rising - truth) ** 2) <= np.sum((raw - truth) ** 2)
    assert np.array_equal(error, same)


def test_one_report_a_level_is_enough_to_know_nothing():
    m = local.quantiles(1.0, bounds=(0.0, 1.0), levels=3)
    rows = np.concatenate([np.array([[level, 0]]) for level in range(3)])
    found = m.estimate(rows, AT)
    assert np.all(found.lower == 0)
    assert np.all(found.upper == 1)


def test_sure_ends():
    m = local.quantiles(0.1, bounds=(0.0, 8.0), levels=3)
    found = m.estimate(m.perturb([5.0] * 30 + [1.0] * 30), [0.01, 0.99])
    assert np.all(found.lower >= 0)
    assert np.all(found.upper <= 8)
    assert np.all((found.lower <= found.value) & (found.value <= found.upper))


def test_shapes_follow_the_question():
    m = local.quantiles(1.0, bounds=(0.0, 1.0), levels=3)
    rows = m.perturb(np.linspace(0, 1, 900))
    assert m.estimate(rows).value.shape == ()
    assert m.estimate(rows, [[0.5, 0.6]]).lower.shape == (1, 2)


def test_the_loss_covers_every_level():
    m = local.quantiles(1.0, bounds=(0.0, 1.0), levels=6)
    assert m.bin_count == 64
    assert m.guarantee.epsilon <= 1.0
    assert m.loss.delta(1.0) == 0
    average = np.mean([oracle.guarantee.total_variation for oracle in m.levels])
    assert m.guarantee.total_variation == pytest.approx(average, rel=1e-12)
    assert m.loss.total_variation() == pytest.approx(average, rel=1e-12)


@pytest.mark.parametrize("values", [[1.5], [math.nan], ["a"], [[0.5]]])
def test_values(values):
    with pytest.raises(InputError, match="values"):
        local.quantiles(1.0, bounds=(0.0, 1.0)).perturb(values)


def test_options():
    with pytest.raises(InputError, match="levels"):
        local.quantiles(1.0, bounds=(0.0, 1.0), levels=17)
    with pytest.raises(InputError, match="levels"):
        local.quantiles(1.0, bounds=(0.0, 1.0), levels=0)
    with pytest.raises(InputError, match="bounds"):
        local.quantiles(1.0, bounds=(1.0, 0.0))
    m = local.quantiles(1.0, bounds=(0.0, 1.0), levels=2)
    rows = m.perturb(np.linspace(0, 1, 100))
    for at in (0, 1, 1.5, math.nan):
        with pytest.raises(InputError, match="at"):
            m.estimate(rows, at)


def test_reports():
    m = local.quantiles(1.0, bounds=(0.0, 1.0), levels=2)
    with pytest.raises(InputError, match="shape of reports"):
        m.estimate([1, 2])
    with pytest.raises(InputError, match="levels"):
        m.estimate([[2, 0]])
    with pytest.raises(InputError, match="reports of a level"):
        m.estimate([[0, 0]])
