"""Ranges that are read from the data, at a price."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

import tightrope as tr
from tests.engines.every_engine import ENGINES
from tightrope.engines import Measure, PersonBounds, Request
from tightrope.errors import BudgetRefused, InputError, PlanError, SchemaError
from tightrope.release.costs.suggested import covering


def session(values: np.ndarray) -> tr.Session:
    budget = tr.Budget(epsilon=2, delta=1e-8)
    return tr.Session(pa.table({"x": values}), person=None, budget=budget)


def test_a_range_holds_nearly_all_values_and_is_charged():
    """Bounded noise never makes a full part of the axis an empty one, nor an empty one of 99 % a full one."""
    values = np.concatenate([np.full(5_000, -30.0), np.full(20_000, 40.0), np.full(5_000, 1_500.0)])
    opened = session(values)
    found = opened.suggest_bounds("x", share="0.5")
    assert found.between == (-50.0, 2_000.0)
    assert opened.spent["share"] == "0.5"
    assert "charged" in str(found)
    assert "-50.0" in str(found)
    assert found.answers.certificate["mechanisms"]
    with pytest.raises(BudgetRefused):
        opened.suggest_bounds("x", share="0.6")


def test_too_few_rows_give_no_range():
    found = session(np.array([5.0])).suggest_bounds("x", share="0.001")
    assert found.between is None
    assert "too small" in found.warning


def test_outliers_are_left_outside():
    counts = [0, 5, 0, 990, 0, 5]
    assert covering([0, 1, 2, 5, 10, 20], counts) == (5, 10)
    assert covering([0, 1], [3, 4]) == (0, 1)


def visits(each: dict[int, int]) -> pa.Table:
    """So many persons (values) with so many rows (keys)."""
    persons = [(rows, number) for rows, many in each.items() for number in range(many)]
    return pa.table({"nr": [f"{rows} {number}" for rows, number in persons for _ in range(rows)]})


def by_person(each: dict[int, int], bound: int = 1) -> tr.Session:
    budget = tr.Budget(epsilon=2, delta=1e-8)
    return tr.Session(visits(each), person="nr", rows_per_person=bound, budget=budget)


def test_a_bound_on_rows_is_suggested_and_charged():
    """700, 250 and 50 persons: bounded noise cannot move the nine tenths elsewhere."""
    opened = by_person({1: 700, 6: 250, 90: 50})
    found = opened.suggest_rows_per_person(share="0.5")
    assert found.rows_per_person == 6
    assert opened.spent["share"] == "0.5"
    assert "charged" in str(found)
    noise = found.answers.certificate["mechanisms"][0]
    assert (noise["rows"], noise["groups"], noise["sensitivity_per_row"]) == (1, 1, "1")
    by_rows = {row["rows"]: row["value"] for row in found.answers[0].rows}
    assert abs(by_rows[5] - 250) < 100
    assert by_person({1: 3}).suggest_rows_per_person(share="0.001").rows_per_person is None
    with pytest.raises(PlanError, match="everybody has one"):
        session(np.array([1.0])).suggest_rows_per_person(share="0.1")


@pytest.mark.parametrize("engine", ["arrow", "duckdb", "spark", "postgres"])
def test_persons_are_counted_by_their_rows_on_every_engine(tmp_path: Path, engine: str):
    """With and without one person: one place moves by one, whatever rows they have."""
    table = pa.concat_tables([visits({1: 5, 2: 3, 9: 2}), pa.table({"nr": pa.array([None] * 4, pa.string())})])
    request = Request((), ((),), PersonBounds("nr", 1, 1, 1), (Measure("persons", None, None),), None, (1, 2, 3, 9))
    found = ENGINES[engine](table, tmp_path).collect(request)
    assert found.keys == ((1,), (2,), (3,), (9,))
    assert found.values == {"persons": (5, 3, 0, 2)}
    one_more = pa.concat_tables([table, pa.table({"nr": ["new"] * 500})])
    assert ENGINES[engine](one_more, tmp_path).collect(request).values == {"persons": (5, 3, 0, 3)}


def test_steps_that_are_none_are_refused():
    one = (Measure("persons", None, None),)
    for steps, bounds in (((2, 3), PersonBounds("nr", 1, 1, 1)), ((1, 1), PersonBounds("nr", 1, 1, 1)),
                          ((1, 2), PersonBounds("nr", 2, 2, 1)), ((1, 2), PersonBounds(None, 1, 1, 1))):  # fmt: skip
        with pytest.raises(InputError, match="steps"):
            Request((), ((),), bounds, one, None, steps)


def test_a_column_without_an_axis_is_refused_in_words_about_it():
    opened = tr.Session(pa.table({"dest": ["a", "b"]}), person=None, budget=tr.Budget(epsilon=1, delta=1e-8))
    with pytest.raises(SchemaError, match=r"column of numbers, not of text.*'dest'"):
        opened.suggest_bounds("dest", share=0.1)
    assert opened.spent["share"] == "0"
