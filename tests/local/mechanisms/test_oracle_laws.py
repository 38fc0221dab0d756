"""Every mechanism for categories: what it declares is what its definition gives, and what it draws."""

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from mpmath import mp
from scipy import stats

from tests.local.mechanisms.channel_definitions import MAKERS, pairs, profile, rows_of, supports
from tests.randomness.keyed import InsecureKeyed
from tightrope import local
from tightrope.accounting.neighbors import Neighbors
from tightrope.local.mechanisms.oracle import FrequencyOracle

names = st.sampled_from(sorted(MAKERS))


@pytest.mark.parametrize("name", MAKERS)
@pytest.mark.parametrize(("epsilon", "k"), [(1.0, 4), (0.3, 3), (2.5, 5)])
def test_the_channel_has_what_is_declared(name, epsilon, k):
    m = MAKERS[name](epsilon, k)
    rows = rows_of(m)
    assert isinstance(m, FrequencyOracle)
    assert all(sum(row.values()) == 1 for row in rows)
    for x, v in pairs(m):
        chance = sum(p for y, p in rows[x].items() if supports(m, y, v))
        assert chance == (m.true_support_probability if x == v else m.false_support_probability)
    up, down = m.report_change_probabilities
    for x, v in pairs(m):
        if x != v:
            worst = max(p / rows[v][y] for y, p in rows[x].items() if p)
            assert worst == up / down
            assert profile(rows[x], rows[v], 1) == up - down
            assert profile(rows[v], rows[x], Fraction(3, 2)) == max(up - Fraction(3, 2) * down, 0)


@pytest.mark.parametrize("name", MAKERS)
@pytest.mark.parametrize("epsilon", [0.01, 0.5, 1.0, 3.0])
def test_the_loss_is_that_of_the_channel(name, epsilon):
    m = MAKERS[name](epsilon, 4)
    rows = rows_of(m)
    for level in (-0.3, 0.0, 0.2 * epsilon, 0.9 * epsilon):
        gamma = math.exp(level)
        truth = float(max(profile(rows[x], rows[v], Fraction(gamma)) for x, v in pairs(m) if x != v))
        low, high = m.loss.delta_bounds(math.log(gamma)).lower, m.loss.delta(math.log(gamma))
        assert low <= truth * (1 + 1e-12)
        assert truth * (1 - 1e-12) <= high <= truth * (1 + 1e-9) + 1e-14
    assert m.loss.neighbors is Neighbors.LOCAL
    assert m.loss.delta(epsilon) == 0


@given(names, st.floats(1e-3, 60), st.integers(2, 200))
def test_epsilon_is_never_exceeded_and_well_used(name, epsilon, k):
    m = MAKERS[name](epsilon, max(k, 3))
    up, down = m.report_change_probabilities
    with mp.workdps(50):
        realized = mp.log(mp.mpf((up / down).numerator) / (up / down).denominator)
        assert realized <= m.guarantee.epsilon <= realized * (1 + 1e-14)
    assert m.guarantee.epsilon <= epsilon
    assert realized >= min(epsilon, 30) * (1 - 1e-6)
    assert up - down <= Fraction(m.guarantee.total_variation)
    assert 0 < m.false_support_probability < m.true_support_probability <= 1


@pytest.mark.parametrize("name", MAKERS)
@pytest.mark.parametrize("seed", [1, 2])
def test_reports_follow_the_channel_and_a_wrong_epsilon_is_seen(name, seed):
    m, wrong = MAKERS[name](1.0, 4), MAKERS[name](1.15, 4)
    for x in range(4):
        reports = m.perturb(np.full(200_000, x), InsecureKeyed(10 * seed + x)).reshape(-1).astype(np.int64)
        assert p_value(reports, rows_of(m)[x]) > 1e-5
        if wrong.true_support_probability != m.true_support_probability:
            assert p_value(reports, rows_of(wrong)[x]) < 1e-9


def p_value(reports, row):
    letters = [y for y, p in row.items() if p]
    counts = np.bincount(reports, minlength=max(row) + 1)
    assert counts.sum() == counts[letters].sum(), "a report that nobody can make"
    expected = np.array([float(row[y]) for y in letters]) * len(reports)
    return stats.chisquare(counts[letters], expected).pvalue


@pytest.mark.parametrize("name", MAKERS)
@given(k=st.integers(3, 150), n=st.integers(1, 300), data=st.data())
def test_tallies_count_supports_and_add_up(name, k, n, data):
    m = MAKERS[name](1.0, k)
    values = np.array(data.draw(st.lists(st.integers(0, k - 1), min_size=n, max_size=n)))
    reports = m.perturb(values)
    tally = m.tally_reports(reports)
    assert tally.people == n
    flat = [sum(int(w) << 64 * i for i, w in enumerate(row)) for row in reports.reshape(n, -1).tolist()]
    for v in {0, k // 2, k - 1}:
        assert tally.counts[v] == sum(supports(m, report, v) for report in flat)
    cut = n // 2
    both = m.tally_reports(reports[:cut]) + m.tally_reports(reports[cut:])
    assert np.array_equal(both.counts, tally.counts)
    assert (both.people, both.answered) == (tally.people, tally.answered)


def test_variances_by_enumeration():
    """The variance of one report's part of the estimate, from the channel."""
    for make in MAKERS.values():
        m = make(1.0, 4)
        base, rows = m.false_support_probability / m.answer_probability, rows_of(m)
        heard = 1 if m.answer_probability == 1 else None
        for x, declared in ((1, m.report_variances[0]), (0, m.report_variances[1])):
            parts = {y: supports(m, y, 0) - base * (heard or (y != m.k)) for y in rows[x]}
            mean = sum(p * parts[y] for y, p in rows[x].items()) / (
                m.true_support_probability - m.false_support_probability
            )
            square = (
                sum(p * parts[y] ** 2 for y, p in rows[x].items())
                / (m.true_support_probability - m.false_support_probability) ** 2
            )
            assert mean == (x == 0)
            assert square - mean**2 == declared
        assert m.estimate_variance(0.25, 10) == pytest.approx(
            float(m.report_variances[0] * 3 + m.report_variances[1]) / 40, rel=1e-15
        )


def test_known_variances():
    """Formulas of the papers, per person."""
    e = math.e
    least = 4 * e / (e - 1) ** 2
    assert float(local.k_randomized_response(1.0, 100).report_variances[0]) == pytest.approx(
        (e + 98) / (e - 1) ** 2, rel=1e-9
    )
    assert float(local.hadamard(1.0, 100).report_variances[0]) == pytest.approx(((e + 1) / (e - 1)) ** 2, rel=1e-9)
    assert least <= float(local.unary_encoding(1.0, 100).report_variances[0]) <= least * (1 + 1.01e-4)
    root = math.sqrt(e)
    symmetric = float(local.unary_encoding(1.0, 100, optimized=False).report_variances[0])
    assert symmetric == pytest.approx(root / (root - 1) ** 2, rel=1e-4)
    assert local.subset_selection(1.0, 1024).mean_variance < least
    assert float(local.hashing(1.0, 1024).report_variances[0]) <= 1.004 * least


def test_silence_is_what_gi_says():
    for epsilon, eta in [(1.0, 0.3), (0.5, 0.2), (3.0, 0.05)]:
        m = local.binary_with_erasure(epsilon, eta)
        grown = math.expm1(epsilon)
        assert float(m.true_support_probability) == pytest.approx(eta * math.exp(epsilon) / grown, rel=1e-12)
        assert float(m.false_support_probability) == pytest.approx(eta / grown, rel=1e-12)
        assert float(1 - m.answer_probability) == pytest.approx(1 - eta / math.tanh(epsilon / 2), rel=1e-9)
        assert m.true_support_probability - m.false_support_probability <= Fraction(eta)
    plain = local.binary_with_erasure(1.0, 0.9)
    assert plain.silence == 0
    assert plain.true_support_probability == local.k_randomized_response(1.0, 2).true_support_probability
