"""Histograms: which parts there are, what they count, and what cannot be asked."""

from __future__ import annotations

import datetime as dt

import numpy as np
import pandas as pd
import pytest

import tightrope as tr
from tightrope.documents.privacy_unit import PrivacyUnit
from tightrope.errors import InputError, SchemaError
from tightrope.queries.query_group import group_queries
from tightrope.release.plan_file import make_question
from tightrope.tables import Column, Schema, open_source

BUDGET = tr.Budget(epsilon=20, delta=1e-9)
SCHEMA = Schema((Column("age", "integer"), Column("x", "number"), Column("day", "date"), Column("sex", "text")))
PERSON = PrivacyUnit(None, 1, 1, 1)


@pytest.fixture(scope="module")
def people() -> pd.DataFrame:
    ages = [None, -3, 0, 17, 18, 64, 65, 99] * 50
    return pd.DataFrame({"age": pd.array(ages, dtype="Int64"), "sex": ["f", "m"] * 200})


def test_parts_begin_at_the_edges_and_the_last_has_no_end(people: pd.DataFrame) -> None:
    session = tr.Session(people, privacy_unit=None, budget=BUDGET)
    plan = session.plan([tr.histogram("age", edges=[0, 18, 65])])
    answer = plan.release()["histogram_age"]
    assert [row["age"] for row in answer.rows] == [None, 0, 18, 65]
    for row in answer.rows:
        assert abs(row["value"] - 100) <= 4 * (row["upper"] - row["value"])
    assert answer.about["question"] == "histogram of age in 3 parts from 0 to 65 and beyond"


def test_all_parts_cost_what_one_count_costs() -> None:
    def half(question: object) -> float:
        frame = pd.DataFrame({"age": [1]})
        return (
            tr.Session(frame, privacy_unit=None, budget=BUDGET)
            .plan([question])
            .accuracies()[0]
            .errors_at_size(100)["half_width_95"]
        )  # type: ignore[list-item]

    assert half(tr.histogram("age", width=1, bounds=(0, 100))) == half(tr.count())


@pytest.mark.parametrize(
    ("asked", "keys"),
    [
        ({"edges": [0, 2.5]}, [(None,), (0.0,), (2.5,)]),
        ({"edges": range(0, 3)}, [(None,), (0,), (1,), (2,)]),
        ({"width": 10, "bounds": (0, 30)}, [(None,), (0,), (10,), (20,), (30,)]),
        ({"width": 0.1, "bounds": (0, 0.3)}, [(None,), (0.0,), (0.1,), (0.2,), (0.3,)]),
        ({"width": 20, "bounds": (-10, 25)}, [(None,), (-10,), (10,)]),
        ({"edges": [1], "by": "sex", "keys": ["f", "m"]}, [("f", None), ("f", 1), ("m", None), ("m", 1)]),
        ({"edges": [1], "by": "sex"}, None),
        ({"edges": [1], "by": "age > 5"}, [(a, b) for a in (None, False, True) for b in (None, 1)]),
    ],
)
def test_which_parts_there_are(asked: dict[str, object], keys: list[tuple[object, ...]] | None) -> None:
    (query_group,) = group_queries([tr.histogram("x", **asked)], PERSON, SCHEMA)  # type: ignore[arg-type]
    assert query_group.keys == (None if keys is None else tuple(keys))
    assert (query_group.key_count is None) == (keys is not None)


def test_days_and_expressions_are_cut_too() -> None:
    days = tr.histogram("day", edges=[dt.date(2024, 1, 1), "2024-07-01"], by="sex", keys=["f"])
    (query_group,) = group_queries([days], PERSON, SCHEMA)
    assert query_group.keys == tuple(("f", day) for day in (None, dt.date(2024, 1, 1), dt.date(2024, 7, 1)))
    (query_group,) = group_queries([tr.histogram(tr.column("age") / 10, edges=[0, 5])], PERSON, SCHEMA)
    assert str(query_group.by[0]) == "cut(age / 10, [0, 5])"


def test_days_are_counted(people: pd.DataFrame) -> None:
    frame = people.assign(day=[dt.date(2024, 1 + number % 12, 1) for number in range(400)])
    frame["day"] = frame["day"].astype("date32[pyarrow]")
    counted = tr.Session(frame, privacy_unit=None, budget=BUDGET).plan(
        [tr.histogram("day", edges=["2024-01-01", "2024-07-01"])]
    )
    rows = counted.release()[0].rows
    assert [row["day"] for row in rows] == [None, dt.date(2024, 1, 1), dt.date(2024, 7, 1)]
    truth = [0, *np.bincount([0 if day.month < 7 else 1 for day in frame["day"]])]
    for row, exact in zip(rows, truth, strict=True):
        assert abs(row["value"] - exact) <= 4 * (row["upper"] - row["value"])


def test_a_plan_file_says_the_same() -> None:
    for entry, asked in (
        ({"edges": [0, 18, 65]}, tr.histogram("age", edges=[0, 18, 65])),
        ({"width": 10, "bounds": [0, 100]}, tr.histogram("age", width=10, bounds=(0, 100))),
    ):
        assert make_question(tr.histogram, {"kind": "histogram", "column": "age", **entry}) == asked


@pytest.mark.parametrize(
    ("asked", "told"),
    [
        ({}, "given, or else width"),
        ({"edges": [1, 2], "width": 1}, "given, or else width"),
        ({"width": 1}, "bounds: missing"),
        ({"width": 0, "bounds": (0, 1)}, "width"),
        ({"width": 1e-9, "bounds": (0, 1)}, "fewer than"),
        ({"edges": [2, 1]}, "rising|increasing"),
        ({"edges": []}, "rising|increasing"),
        ({"edges": [True]}, "rising|increasing"),
        ({"edges": [float("nan")]}, "finite"),
        ({"edges": 5}, "rising|increasing"),
        ({"edges": [1], "bounds": (0, 1)}, "without bounds"),
        ({"edges": [1], "by": "age"}, "another column"),
    ],
)
def test_what_cannot_be_asked(asked: dict[str, object], told: str) -> None:
    with pytest.raises(InputError, match=told):
        tr.histogram("age", **asked)  # type: ignore[arg-type]


def test_text_has_no_parts() -> None:
    with pytest.raises(InputError, match="'sex' is a column of text, but 'histogram' needs numbers"):
        group_queries([tr.histogram("sex", edges=[1, 2])], PERSON, SCHEMA)
    with pytest.raises(SchemaError, match="did you mean 'age'"):
        group_queries([tr.histogram("agee", edges=[1, 2])], PERSON, open_source(pd.DataFrame({"age": [1]})).schema)
