"""Unbiased, as exact as theory says, with intervals that cover what they promise; these tests notice what is not."""

from dataclasses import replace

import numpy as np
import pytest

from tests.local.mechanisms.channel_definitions import MAKERS
from tests.randomness.keyed import InsecureKeyed

RUNS, USERS, CELLS = 400, 4000, 24
LOWEST, HIGHEST = 0.94, 0.965


def population(people=USERS, cells=CELLS):
    """A Zipf-like split, the last values empty."""
    shares = 1 / np.arange(1, cells + 1) ** 1.2
    shares[-6:] = 0
    counts = np.floor(people * shares / shares.sum()).astype(int)
    counts[0] += people - counts.sum()
    return np.repeat(np.arange(cells), counts), counts / people


def runs(m, seed=1, **options):
    """Estimates of many runs, and the truth."""
    values, truth = population()
    source = InsecureKeyed(seed)
    return [m.estimate(m.perturb(values, source), **options) for _ in range(RUNS)], truth


def theory(m, truth):
    other, own = m.report_variances
    return (float(other) * (1 - truth) + float(own) * truth) / USERS


@pytest.mark.slow
@pytest.mark.parametrize("name", MAKERS)
def test_errors_and_coverage(name):
    m = MAKERS[name](1.0, CELLS)
    found, truth = runs(m)
    values = np.array([shares.value for shares in found])
    variance = theory(m, truth)
    assert np.abs((values.mean(axis=0) - truth) / np.sqrt(variance / RUNS)).max() < 4.5
    assert np.mean((values - truth) ** 2) == pytest.approx(variance.mean(), rel=0.05)
    covered = np.mean([(s.lower <= truth) & (truth <= s.upper) for s in found])
    assert LOWEST <= covered <= HIGHEST
    narrow = np.mean([np.abs(s.value - truth) < 0.8 * (s.upper - s.lower) / 2 for s in found])
    assert narrow < LOWEST - 0.03, "intervals a fifth too narrow would pass"


@pytest.mark.slow
def test_a_wrong_chance_makes_a_bias_that_is_seen():
    m = MAKERS["response"](1.0, CELLS)
    wrong = replace(m, weight=int(m.weight * 1.02))
    values, truth = population(400_000)
    estimate = m.estimate(wrong.perturb(values, InsecureKeyed(3)))
    assert np.any((estimate.value - truth) ** 2 > 20 * float(m.report_variances[0]) / 400_000)


def test_simultaneous_intervals_are_wider_and_hold_together():
    m = MAKERS["subsets"](1.0, CELLS)
    found, truth = runs(m, seed=5, simultaneous=True)
    together = np.mean([np.all((s.lower <= truth) & (truth <= s.upper)) for s in found])
    assert together >= 0.9
    alone, _ = runs(m, seed=5)
    assert np.all(found[0].upper - found[0].lower > 1.4 * (alone[0].upper - alone[0].lower))
    assert found[0].simultaneous
    assert not alone[0].simultaneous


def test_confidence_is_kept_and_orders_the_widths():
    m = MAKERS["hadamard"](1.0, CELLS)
    reports = m.perturb(population()[0])
    wide, narrow = m.estimate(reports, confidence=0.99), m.estimate(reports, confidence=0.5)
    assert np.all(wide.lower < narrow.lower)
    assert np.all(narrow.upper < wide.upper)
    assert np.array_equal(wide.value, narrow.value)
    assert (wide.confidence, wide.people, len(wide)) == (0.99, USERS, CELLS)


@pytest.mark.parametrize("name", MAKERS)
def test_estimates_of_one_report_are_finite(name):
    m = MAKERS[name](1.0, 5)
    shares = m.estimate(m.perturb([4]))
    assert np.all(np.isfinite([shares.value, shares.lower, shares.upper]))
    assert np.all(shares.lower <= shares.value)
    assert np.all(shares.value <= shares.upper)


@pytest.mark.parametrize("name", ["response", "erasure", "optimized unary", "hadamard"])
@pytest.mark.parametrize(("people", "holders"), [(20, 20), (20, 0), (5, 1), (100, 99)])
def test_intervals_cover_with_few_people_at_the_edges(name, people, holders):
    """At a large ε a single lie is rare, and no normal law knows of it."""
    m, source = MAKERS[name](6.0, 4), InsecureKeyed(21)
    values, truth = np.repeat([2, 0], [holders, people - holders]), holders / people
    found = [m.estimate(m.perturb(values, source)) for _ in range(400)]
    assert np.mean([s.lower[2] <= truth <= s.upper[2] for s in found]) >= 0.93
    assert all(s.lower[2] <= s.value[2] <= s.upper[2] for s in found)
