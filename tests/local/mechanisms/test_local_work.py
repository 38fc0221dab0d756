"""The work of reports and estimates stays small for every mechanism, also at a large ε and with many categories."""

import time
from itertools import combinations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from tests.randomness.keyed import InsecureKeyed
from tightrope import local
from tightrope.local.mechanisms.local_hashing import LinearHash
from tightrope.local.parts.kernels import finite_field_orders

CATEGORIES = 100_000
MECHANISMS = {
    "response": local.k_randomized_response,
    "erasure": lambda epsilon, k: local.response_with_erasure(epsilon, 0.01, k),
    "optimized unary": local.unary_encoding,
    "symmetric unary": lambda epsilon, k: local.unary_encoding(epsilon, k, optimized=False),
    "rappor": local.rappor,
    "hashing": local.hashing,
    "hadamard": local.hadamard,
    "subsets": local.subset_selection,
}
SECONDS = 3.0
"""CPU time that construction, a hundred reports and their estimate may take: it is below 0.5 on one idle core."""


@pytest.mark.slow
@pytest.mark.parametrize("epsilon", [0.5, 3.0, 12.0])
@pytest.mark.parametrize("name", MECHANISMS)
def test_a_hundred_reports_and_their_estimate_are_fast(name, epsilon):
    began = time.process_time()
    m = MECHANISMS[name](epsilon, CATEGORIES)
    values = np.arange(100) * (CATEGORIES // 100)
    shares = m.estimate(m.perturb(values))
    assert time.process_time() - began < SECONDS
    assert shares.value.shape == (CATEGORIES,)


@pytest.mark.slow
@pytest.mark.parametrize("k", [1000, 10_000, CATEGORIES])
@pytest.mark.parametrize("epsilon", [6.0, 12.0])
def test_many_reports_by_hashing_are_counted_fast(epsilon, k):
    m, rng = local.hashing(epsilon, k), np.random.default_rng(1)
    reports = rng.integers(0, m.possible_report_count, 100_000)
    began = time.process_time()
    tally = m.tally_reports(reports)
    assert time.process_time() - began < SECONDS
    v = k // 3
    seeds, answers = np.divmod(reports, m.linear.order)
    assert tally.counts[v] == np.count_nonzero(m.linear.hash_values(seeds, np.array(v)) == answers)


@given(epsilon=st.floats(0.1, 40), k=st.integers(2, 3000))
def test_reports_of_subsets_need_few_random_words(epsilon, k):
    """A category in a small set is rarely found by trying, so sets must seldom begin too large."""
    m, source, people = local.subset_selection(epsilon, k), InsecureKeyed(7), 20
    m.perturb(np.zeros(people, dtype=np.int64), source)
    initial = -(-k // 64) * 25
    assert source.drawn <= people * (initial + 8 * np.sqrt(m.size) + 0.2 * m.size + 60)


@pytest.mark.parametrize(("k", "size"), [(30, 1), (30, 2), (20, 18), (12, 6), (40, 39)])
def test_sets_are_uniform_apart_from_the_own_category(k, size):
    m, own = local.subset_selection(2.0, k, size=size), k // 2
    rows = m.perturb(np.full(100_000, own), InsecureKeyed(k + size))[:, 0]
    sets = np.array([sum(1 << v for v in s) for s in combinations(range(k), size)], dtype=np.uint64)
    inside = (sets >> np.uint64(own)) & np.uint64(1) == 1
    counts = np.array([np.count_nonzero(rows == s) for s in sets])
    assert counts.sum() == len(rows)
    p = float(m.true_support_probability)
    expected = len(rows) * np.where(inside, p / inside.sum(), (1 - p) / (~inside).sum())
    assert stats.chisquare(counts, expected).pvalue > 1e-5


@given(st.sampled_from(finite_field_orders()), st.integers(1, 8), st.integers(0, 60), st.data())
def test_supports_are_counted_as_by_hashing_every_value(order, length, people, data):
    while order**length > 5000:
        length -= 1
        if length <= 1:
            break
    linear = LinearHash(order, length)
    number = st.integers(0, linear.seed_count * order - 1)
    reports = np.array(data.draw(st.lists(number | st.integers(0, order - 1), min_size=people, max_size=people)))
    reports = reports.astype(np.int64)
    times = np.array(data.draw(st.lists(st.integers(0, 9), min_size=people, max_size=people)), dtype=np.int64)
    seeds, answers = np.divmod(reports, order)
    values = np.arange(linear.seed_count)
    supported = linear.hash_values(seeds[:, None], values) == answers[:, None]
    assert np.array_equal(linear.support_counts(reports), supported.sum(axis=0))
    assert np.array_equal(linear.support_counts(reports, times), (supported * times[:, None]).sum(axis=0))


@pytest.mark.parametrize(("epsilon", "k"), [(1.0, 5), (3.0, 40), (6.0, 100)])
def test_a_table_of_counts_gives_the_tally_of_the_reports(epsilon, k):
    m, rng = local.hashing(epsilon, k), np.random.default_rng(3)
    few = rng.integers(0, m.possible_report_count, m.possible_report_count // 2 + 1)
    many = np.concatenate([few, np.arange(m.possible_report_count)])
    for reports in (few, many):
        table = m.tally_of_reports(len(reports), m.count_reports(reports))
        assert np.array_equal(m.tally_reports(reports).counts, table.counts)
        assert m.tally_reports(reports).people == table.people == len(reports)
