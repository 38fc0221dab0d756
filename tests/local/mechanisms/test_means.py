"""Means: unbiased, as exact as the papers say, certified from the cells that are sampled."""

import math
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from tests.randomness.keyed import InsecureKeyed
from tests.randomness.scripted import Scripted
from tightrope import local
from tightrope.accounting.neighbors import Neighbors
from tightrope.errors import InputError
from tightrope.local.mechanisms import bounded_mean
from tightrope.local.mechanisms.means import round_randomly

MAKERS = {"duchi": local.duchi, "piecewise": local.piecewise, "hybrid": local.hybrid}
values = st.floats(-3, 5)


def papers(name, epsilon, x):
    """Variance at x in [−1, 1], Wang et al. 2019."""
    half = math.exp(epsilon / 2)
    bit = ((math.exp(epsilon) + 1) / math.expm1(epsilon)) ** 2 - x * x
    cell = x * x / (half - 1) + (half + 3) / (3 * (half - 1) ** 2)
    share = 1 - 1 / half if epsilon > 0.61 else 0.0
    return {"duchi": bit, "piecewise": cell, "hybrid": share * cell + (1 - share) * bit}[name]


@pytest.mark.parametrize("name", MAKERS)
@given(epsilon=st.floats(0.2, 6), x=st.floats(-1, 1))
def test_variances_are_the_papers(name, epsilon, x):
    assert MAKERS[name](epsilon).variance_at(x) == pytest.approx(papers(name, epsilon, x), rel=1e-3)


@pytest.mark.parametrize("name", MAKERS)
@pytest.mark.parametrize("epsilon", [0.5, 1.0, 3.0])
@pytest.mark.parametrize("x", [-3.0, 0.7, 5.0])
def test_unbiased_with_the_declared_variance(name, epsilon, x):
    m = MAKERS[name](epsilon, bounds=(-3.0, 5.0))
    decoded = m.decode_reports(m.perturb(np.full(400_000, x), InsecureKeyed(7)))
    assert abs(decoded.mean() - x) < 4.5 * math.sqrt(m.variance_at(x) / len(decoded))
    assert decoded.var() == pytest.approx(m.variance_at(x), rel=0.02)
    assert m.variance_at(x) <= m.worst_variance * (1 + 1e-12)


@pytest.mark.parametrize("name", MAKERS)
@given(epsilon=st.floats(1e-3, 60))
def test_epsilon_is_never_exceeded(name, epsilon):
    m = MAKERS[name](epsilon)
    up, down = m.report_change_probabilities
    assert m.guarantee.epsilon <= epsilon
    assert m.loss.delta(epsilon) == 0
    assert up > down > 0
    assert up + down <= 1
    assert m.loss.neighbors is Neighbors.LOCAL


def cell_row(m, start):
    """Probabilities of all cells, exactly."""
    inside, outside = m.window_probability / m.length, (1 - m.window_probability) / bounded_mean.WINDOW_STEPS
    return [inside if start <= y < start + m.length else outside for y in range(m.possible_report_count)]


def test_the_window_by_enumeration(monkeypatch):
    monkeypatch.setattr(bounded_mean, "WINDOW_STEPS", 8)
    m = local.piecewise(1.0, bounds=(0.0, 8.0))
    rows = [cell_row(m, start) for start in range(9)]
    assert m.length == 5
    assert all(sum(row) == 1 for row in rows)
    up, down = m.report_change_probabilities
    for gamma in (Fraction(1), Fraction(3, 2), Fraction(5, 2)):
        gaps = [sum(max(p - gamma * q, 0) for p, q in zip(a, b, strict=True)) for a in rows for b in rows]
        assert max(gaps) == max(up - gamma * down, 0)
    base, slope = m._cell_mean_line()
    for start, row in enumerate(rows):
        mean = sum(y * p for y, p in enumerate(row))
        assert mean == base + slope * start
        square = sum((y - mean) ** 2 * p for y, p in enumerate(row))
        assert m.variance_at(float(start)) == pytest.approx(float(square / slope**2), rel=1e-12)
    draws = m.perturb(np.full(200_000, 3.0), InsecureKeyed(4))
    expected = np.array([float(p) for p in rows[3]]) * len(draws)
    assert stats.chisquare(np.bincount(draws, minlength=m.possible_report_count), expected).pvalue > 1e-5
    wrong = np.array([float(p) for p in cell_row(replace(m, inside=int(m.inside * 1.02)), 3)]) * len(draws)
    assert stats.chisquare(np.bincount(draws, minlength=m.possible_report_count), wrong).pvalue < 1e-5


@pytest.mark.slow
@pytest.mark.parametrize("name", MAKERS)
def test_no_distinguisher_gets_above_the_curve_and_two_per_cent_are_caught(name):
    """Five million reports of people at either end; cells are joined by the sixteenth part, bits are their own."""
    m, people = MAKERS[name](1.0), 1_250_000
    planted = {
        "duchi": lambda m: replace(m, response=replace(m.response, weight=int(m.response.weight * 0.96))),
        "piecewise": lambda m: replace(m, inside=int(m.inside * 1.02)),
        "hybrid": lambda m: replace(m, window=replace(m.window, inside=int(m.window.inside * 1.02))),
    }[name](m)

    def excess(sampled):
        cells = (m.possible_report_count - 2) // 16 if m.possible_report_count > 2 else 1
        edges = [0, m.possible_report_count - 2 if name == "hybrid" else m.possible_report_count]
        found = []
        for seed in (0, 10):
            ends = [sampled.perturb(np.full(people, x), InsecureKeyed(seed + i)) for i, x in enumerate((-1.0, 1.0))]
            low = [np.where(r >= edges[1], r, r // cells).astype(np.int64) for r in ends]
            found.append([np.bincount(r, minlength=m.possible_report_count + 1) / people for r in low])
        out = []
        for level in (0.0, 0.5, 1.0):
            gamma = math.exp(level)
            chosen = found[0][0] > gamma * found[0][1]
            p, q = (float(side[chosen].sum()) for side in found[1])
            out.append((p - gamma * q - m.loss.delta(level)) / math.sqrt((p + gamma**2 * q) / people + 1e-12))
        return out

    assert max(excess(m)) < 4.5
    assert max(excess(planted)) > 4.5


@pytest.mark.parametrize("name", MAKERS)
def test_intervals_cover(name):
    m = MAKERS[name](1.0, bounds=(0.0, 10.0))
    people = np.linspace(0, 10, 2000) ** 2 / 10
    source = InsecureKeyed(3)
    found = [m.estimate(m.perturb(people, source)) for _ in range(500)]
    covered = np.mean([s.lower <= people.mean() <= s.upper for s in found])
    assert 0.92 <= covered <= 0.985
    narrow = np.mean([abs(s.value - people.mean()) < 0.6 * (s.upper - s.lower) / 2 for s in found])
    assert narrow < 0.85
    assert found[0].value.shape == ()
    assert found[0].people == 2000


def test_rounding_at_random_is_exact():
    numbers = np.array([0.0, 0.25, 0.25, 7.0, 1 - 2**-53, 1 - 2**-53])
    words = np.array([0, 2**62 - 1, 2**62, 0, 2**64 - 2**11 - 1, 2**64 - 2**11], dtype=np.uint64)
    assert round_randomly(numbers, words).tolist() == [0, 1, 0, 7, 1, 0]


def test_the_bit_by_hand():
    m = local.duchi(math.log(3) * (1 + 1e-9))
    half = 2**63
    reports = m.perturb([1.0, 1.0, -1.0], Scripted([[half] * 3, [m.response.weight, m.response.weight - 1, half]]))
    assert reports.tolist() == [1, 0, 0]
    assert m.decode_reports([0, 1]) == pytest.approx([-2, 2], rel=1e-8)


@pytest.mark.parametrize("name", MAKERS)
@pytest.mark.parametrize("bad", [[1.5], [math.nan], [math.inf], ["a"], [None], 0.5, [[0.5]]])
def test_values(name, bad):
    with pytest.raises(InputError, match="values"):
        MAKERS[name](1.0).perturb(bad)


@pytest.mark.parametrize("name", MAKERS)
@pytest.mark.parametrize("bad", [(1, 1), (2, 1), (0, math.inf), (math.nan, 1), (0,), [0, 1], 3, (-1e308, 1.7e308)])
def test_bounds(name, bad):
    with pytest.raises(InputError):
        MAKERS[name](1.0, bounds=bad)


@pytest.mark.parametrize("name", MAKERS)
@pytest.mark.parametrize("epsilon", [0, -1, math.inf, math.nan, "1", True])
def test_epsilon(name, epsilon):
    with pytest.raises(InputError, match="epsilon"):
        MAKERS[name](epsilon)


@pytest.mark.parametrize("name", MAKERS)
def test_reports(name):
    m = MAKERS[name](1.0)
    with pytest.raises(InputError, match="outside"):
        m.decode_reports([m.possible_report_count])
    with pytest.raises(InputError, match="at least 2"):
        m.estimate(m.perturb([0.0]))
    assert len(m.perturb([])) == 0
    assert m.decode_reports(m.perturb(np.array([1, -1, 0]))).shape == (3,)


@pytest.mark.parametrize("name", MAKERS)
@pytest.mark.parametrize("epsilon", [4.0, 6.0, 8.0])
@pytest.mark.parametrize("x", [-1.0, 0.9, 1.0])
def test_intervals_cover_where_reports_happen_to_agree(name, epsilon, x):
    """At an end and a large ε nearly all reports are equal: their own spread would promise an interval of width 0."""
    m, source = MAKERS[name](epsilon), InsecureKeyed(11)
    for people in (10, 100, 400):
        found = [m.estimate(m.perturb(np.full(people, x), source)) for _ in range(300)]
        assert np.mean([s.lower <= x <= s.upper for s in found]) >= 0.915
        assert all(s.lower < s.upper for s in found)


def test_two_bits_have_an_interval():
    found = local.duchi(1.0).estimate([1, 1])
    assert found.lower < -1 < 1 < found.value <= found.upper


def test_no_population_has_less_spread_than_one_value():
    """Var of a decoded report = E V(X) + Var X, at least V(E X)."""
    for make in MAKERS.values():
        m, rng = make(3.0), np.random.default_rng(3)
        for _ in range(20):
            people = rng.choice([-1.0, -0.4, 0.0, 0.7, 1.0], 3)
            weights = rng.dirichlet(np.ones(3))
            mean = float(weights @ people)
            spread = float(weights @ [m.variance_at(x) + x * x for x in people.tolist()]) - mean**2
            assert m.least_report_variance(mean) <= spread * (1 + 1e-6)
        assert m.least_report_variance(7.0) == m.variance_at(1.0)


@pytest.mark.parametrize("name", MAKERS)
@pytest.mark.parametrize("value", [1.01, -2, math.nan, math.inf, "0"])
def test_variances_are_of_values_that_can_be(name, value):
    with pytest.raises(InputError, match="value"):
        MAKERS[name](1.0).variance_at(value)


def silent(epsilon, eta):
    return local.duchi(epsilon, bounds=(-3.0, 5.0), total_variation=eta)


@given(epsilon=st.floats(0.01, 20), share=st.floats(0.001, 1))
def test_silence_keeps_both_promises_at_the_declared_variance(epsilon, share):
    tanh = math.tanh(epsilon / 2)
    m = silent(epsilon, share * tanh)
    assert m.guarantee.epsilon <= epsilon
    assert m.guarantee.total_variation <= share * tanh * (1 + 1e-15)
    assert m.variance_at(1.0) == pytest.approx(16 / (share * tanh**2), rel=1e-6)


@pytest.mark.parametrize("x", [-3.0, 0.7, 5.0])
def test_silence_is_unbiased_and_intervals_cover(x):
    m = silent(2.0, 0.3)
    decoded = m.decode_reports(m.perturb(np.full(400_000, x), InsecureKeyed(7)))
    assert abs(decoded.mean() - x) < 4.5 * math.sqrt(m.variance_at(x) / len(decoded))
    assert decoded.var() == pytest.approx(m.variance_at(x), rel=0.02)
    runs = m.perturb(np.full(400_000, x), InsecureKeyed(8)).reshape(400, 1000)
    found = [m.estimate(run) for run in runs]
    assert 0.92 <= np.mean([shares.lower <= x <= shares.upper for shares in found]) <= 0.985


def test_an_eta_that_is_no_constraint_is_plain_duchi():
    assert silent(1.0, 0.9).response == local.duchi(1.0).response
    with pytest.raises(InputError, match="total_variation"):
        silent(1.0, 0.0)
