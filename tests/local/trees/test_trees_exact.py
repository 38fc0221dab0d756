"""Quantile and prefix trees by enumeration: their reports' laws against what they declare, for every pair of values."""

import math
from fractions import Fraction

import numpy as np
import pytest
from scipy import stats

from tests.local.mechanisms.channel_definitions import profile, rows_of
from tests.randomness.keyed import InsecureKeyed
from tightrope import local
from tightrope.local.mechanisms.local_hashing import hashing_with_digits
from tightrope.local.prefix_tree import PrefixTree

LEVELS = [Fraction(1), Fraction(5, 4), Fraction(2), Fraction(5, 2)]


def tree_rows(oracles, shown, parts):
    """Row of each value: a level with its part of the people, and its report of what ``shown`` says of the value."""
    rows = [rows_of(oracle) for oracle in oracles]
    shares = [Fraction(part, sum(parts)) for part in parts]
    return [
        {(level, y): shares[level] * p for level, own in enumerate(rows) for y, p in own[shown(value, level)].items()}
        for value in range(len(rows[-1]))
    ]


def check(m, rows):
    assert all(sum(row.values()) == 1 for row in rows)
    worst = {gamma: max(profile(a, b, gamma) for a in rows for b in rows) for gamma in LEVELS}
    for gamma, truth in worst.items():
        assert float(truth) <= m.loss.delta(math.log(gamma)) + 1e-14
    assert float(worst[1]) <= m.guarantee.total_variation
    odds = max(p / b[y] for a in rows for b in rows for y, p in a.items() if p)
    assert math.log(odds) <= m.guarantee.epsilon * (1 + 1e-15)


def draws(m, value, rows):
    found = m.perturb(np.full(300_000, value), InsecureKeyed(8)).astype(np.int64)
    counts = {key: 0 for key, p in rows.items() if p}
    for key, number in zip(*np.unique(found, axis=0, return_counts=True), strict=True):
        counts[tuple(key.tolist())] += int(number)
    expected = np.array([float(rows[key]) for key in counts]) * len(found)
    assert stats.chisquare(list(counts.values()), expected).pvalue > 1e-5


@pytest.mark.parametrize("epsilon", [0.4, 1.0])
def test_a_quantile_tree(epsilon):
    m = local.quantiles(epsilon, bounds=(0.0, 8.0), levels=3)
    rows = tree_rows(m.levels, lambda bin_, level: bin_ >> (2 - level), (1, 1, 1))
    check(m, rows)
    draws(m, 5.5, rows[5])


@pytest.mark.parametrize("order", [2, 3])
def test_a_prefix_tree(order):
    m = PrefixTree(1.0, 2, (hashing_with_digits(1.0, order, 1), hashing_with_digits(1.0, order, 2)))
    rows = tree_rows(m.levels, lambda value, level: value // order ** (1 - level), (1, 2))
    check(m, rows)
    draws(m, 3, rows[3])
