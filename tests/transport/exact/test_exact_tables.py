"""Laws, exact plans and alias tables by row: whole numbers from the float that comes in to the word that decides."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse

from tests.randomness.scripted import Scripted
from tightrope.errors import InputError, PrecisionError
from tightrope.randomness.alias_sampler import TOTAL
from tightrope.transport.exact.plan import ExactDistribution, exact_plan
from tightrope.transport.exact.tables import RowTables, choose_by_row, choose_by_row_numpy, quantize_weights

WEIGHTS = st.dictionaries(st.integers(0, 40), st.integers(0, 10**30), min_size=1, max_size=12).filter(
    lambda row: sum(row.values()) > 0
)
LAWS = st.lists(st.floats(0, 1), min_size=1, max_size=8).filter(lambda law: sum(law) > 1e-3)


@given(LAWS)
def test_a_law_is_what_its_floats_say(values: list[float]) -> None:
    floats = np.array(values) / sum(values)
    law = ExactDistribution.from_probabilities("law", floats)
    whole = sum(Fraction(value) for value in floats.tolist())
    assert [law[x] for x in range(len(law))] == [Fraction(value) / whole for value in floats.tolist()]
    assert sum(law.masses) == law.total


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ([0.5, 0.4], "sum of law"),
        ([0.5, -0.1, 0.6], "not negative"),
        ([0.5, float("nan")], "NaN"),
        ([0.5, float("inf")], r"law\[1\]=inf"),
        ([], "no empty law"),
        ([[0.5, 0.5]], "flatten"),
        (["a"], "a list of probabilities"),
    ],
)
def test_what_is_no_law_is_refused(values: list[float], message: str) -> None:
    with pytest.raises(InputError, match=message):
        ExactDistribution.from_probabilities("law", values)


@given(WEIGHTS)
def test_quantized_weights_are_within_one_unit(row: dict[int, int]) -> None:
    weights, whole = quantize_weights(row), sum(row.values())
    assert sum(weights.values()) == TOTAL
    assert all(abs(Fraction(weights.get(y, 0)) - Fraction(row[y] * TOTAL, whole)) < 1 for y in row)


@given(st.lists(WEIGHTS, min_size=1, max_size=6))
def test_columns_hold_the_weights(rows: list[dict[int, int]]) -> None:
    tables = RowTables.from_weights(rows, 41)
    for x, row in enumerate(rows):
        assert tables.row_weights(x) == dict(sorted(quantize_weights(row).items()))


def test_equal_rows_share_one_table() -> None:
    tables = RowTables.from_weights([{0: 1, 1: 2}, {2: 1}, {0: 2, 1: 4}], 3)
    assert tables.starts[0] == tables.starts[2] != tables.starts[1]


def test_rows_without_weight_are_refused() -> None:
    for row in ({}, {0: 0}, {0: 2, 1: -1}):
        with pytest.raises(InputError, match="weights >= 0"):
            RowTables.from_weights([row], 2)


def test_the_compiled_loop_draws_the_same() -> None:
    rng = np.random.default_rng(3)
    tables = RowTables.from_weights([dict(enumerate(rng.integers(1, 9, n).tolist())) for n in (1, 2, 5, 17)], 17)
    words, rows = rng.integers(0, 2**64, 5000, dtype=np.uint64), rng.integers(0, 4, 5000)
    words[:40] = np.resize(tables.edges.high, 40)  # ties
    layout = (tables.starts, tables.shifts, tables.edges.high, tables.own, tables.other)
    slow, plain, fast = (np.empty(5000, np.int64) for _ in range(3))
    ties = choose_by_row_numpy(words, rows, layout, slow)
    with np.errstate(over="ignore"):
        assert choose_by_row(words, rows, layout, plain) == ties > 0
    assert np.array_equal(slow, plain)
    numba = pytest.importorskip("numba")
    assert numba.njit(choose_by_row)(words, rows, layout, fast) == ties
    assert np.array_equal(slow, fast)


def test_a_low_word_decides_where_the_high_word_is_that_of_the_edge() -> None:
    weight = (1 << 126) + 5
    tables = RowTables.from_weights([{0: weight, 1: TOTAL - weight}], 2)
    edge = int(tables.edges.high[0])
    rows = np.zeros(1, dtype=np.int64)
    drawn = [int(tables.draw_outcomes(rows, Scripted([[edge], [low]]))[0]) for low in (4, 5)]
    assert drawn == [0, 1]


def test_frequencies_are_those_of_the_row() -> None:
    tables = RowTables.from_weights([{0: 1, 3: 3}, {1: 5, 2: 5, 3: 10}], 4)
    for row, shares in ((0, [0.25, 0, 0, 0.75]), (1, [0, 0.25, 0.25, 0.5])):
        seen = np.bincount(tables.draw_outcomes(np.full(400_000, row)), minlength=4) / 400_000
        assert np.all(np.abs(seen - shares) < 5.5 * 0.5 / np.sqrt(400_000))
        assert np.any(np.abs(seen - np.roll(shares, 1)) > 0.1)


@given(LAWS, LAWS)
def test_marginals_of_an_exact_plan_are_exact(first: list[float], second: list[float]) -> None:
    source, target = (
        ExactDistribution.from_probabilities("law", np.array(values) / sum(values)) for values in (first, second)
    )
    plan = exact_plan(sparse.coo_array(np.outer(source.float_masses, target.float_masses)), source, target)
    for x in range(len(source)):
        assert Fraction(sum(w for (a, _), w in plan.entries.items() if a == x), plan.total) == source[x]
    for y in range(len(target)):
        assert Fraction(sum(w for (_, b), w in plan.entries.items() if b == y), plan.total) == target[y]
    assert all(weight > 0 for weight in plan.entries.values())
    assert plan.unplanned_mass < Fraction(1, 10**12)


def test_a_plan_that_is_none_is_refused() -> None:
    law = ExactDistribution.from_probabilities("law", [0.5, 0.5])
    with pytest.raises(PrecisionError, match="misses its marginals"):
        exact_plan(sparse.coo_array([[0.5, 0.0], [0.0, 0.4]]), law, law)


def test_rows_that_are_one_object_share_a_table() -> None:
    """A map has thousands of points that nobody has; their row is laid out once, wherever it stands."""
    whole, single = dict.fromkeys(range(2000), 1), {3: 1}
    tables = RowTables.from_weights([whole, single, *[whole] * 3000, dict(whole)], 2000)
    assert len(set(tables.starts.tolist())) == 2
    assert tables.row_weights(0) == tables.row_weights(3001) == tables.row_weights(3002)
    assert tables.row_weights(1) == {3: TOTAL}
