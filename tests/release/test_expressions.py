"""Conditions, derived columns and derived groups: from Python and from a plan file to the pages, person by person."""

from __future__ import annotations

import datetime as dt
import json
import random
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from typer.testing import CliRunner

import tightrope as tr
from tightrope.cli.main import app
from tightrope.documents.privacy_unit import PrivacyUnit
from tightrope.errors import InputError, PlanError, SchemaError
from tightrope.queries.query import Query
from tightrope.queries.query_group import group_queries
from tightrope.tables import Request, open_source

pytestmark = pytest.mark.usefixtures("planned_once")

BUDGET = tr.Budget(epsilon=20, delta=1e-9)
MONTHS = pd.date_range("2024-01-01", periods=366, freq="D")


@pytest.fixture(scope="module")
def flights() -> pd.DataFrame:
    draw = np.random.default_rng(5)
    return pd.DataFrame({
        "tail": [f"t{number}" for number in range(366)],
        "departed": MONTHS,
        "distance": draw.uniform(0, 1000, 366).round(),
        "delay": [None if number % 10 == 0 else float(number % 61) for number in range(366)],
        "carrier": [("A", "B")[number % 2] for number in range(366)],
    })  # fmt: skip


def session(frame: pd.DataFrame) -> tr.Session:
    return tr.Session(frame, privacy_unit="tail", max_rows=1, budget=BUDGET)


def near(value: float, truth: float, half: float) -> bool:
    """Within a half-width that holds 95 % of the time, and four times that always, nearly."""
    return abs(value - truth) <= 4 * half


def test_a_condition_counts_only_the_rows_for_which_it_is_true(flights: pd.DataFrame) -> None:
    plan = session(flights).plan([tr.count(where="delay > 30"), tr.count(name="all")], where="carrier == 'A'")
    answers = plan.release()
    kept = flights[flights.carrier == "A"]
    for answer, truth in zip(answers, (int((kept.delay > 30).sum()), len(kept)), strict=True):
        row = answer.rows[0]
        assert near(row["value"], truth, row["upper"] - row["value"])
    assert [answer.about["question"] for answer in answers] == [
        "number of rows where carrier == 'A' and delay > 30",
        "number of rows where carrier == 'A'",
    ]


def test_few_known_groups_are_listed_by_themselves(flights: pd.DataFrame) -> None:
    plan = session(flights).plan([tr.count(by={"month": "month(departed)"})])
    (unit,) = plan._draft.query_groups[0].composition_groups
    assert [spend.statistic for spend in unit.noise_specs] == ["count"]
    answer = plan.release()[0]
    assert [row["month"] for row in answer.rows] == [None, *range(1, 13)]
    assert answer.about["keys"] == "given"
    assert any("follow from the question" in note for note in answer.about["notes"])
    truth = [0, *flights.groupby(flights.departed.dt.month).size()]
    for row, exact in zip(answer.rows, truth, strict=True):
        assert near(row["value"], exact, row["upper"] - row["value"])


@pytest.mark.parametrize(
    ("by", "keys"),
    [
        ("weekday(departed)", [(day,) for day in (None, *range(1, 8))]),
        ("delay > 30", [(None,), (False,), (True,)]),
        ("delay is None", [(False,), (True,)]),
        ("cut(distance, [0, 250, 500])", [(None,), (0,), (250,), (500,)]),
        ("case(delay > 30, 'late', 'fine')", [("fine",), ("late",)]),
        ("cut(departed, ['2024-01-01'])", [(None,), (dt.date(2024, 1, 1),)]),
        (["delay is None", "delay > 30"], [(a, b) for a in (False, True) for b in (None, False, True)]),
        (["carrier", "delay > 30"], None),
        ("lower(carrier)", None),
        ("carrier", None),
        ("year(departed)", None),
    ],
)
def test_which_groups_are_known(flights: pd.DataFrame, by: Any, keys: list[tuple[object, ...]] | None) -> None:
    table, person = open_source(flights), PrivacyUnit("tail", 1, 1, 1)
    (query_group,) = group_queries([tr.count(by=by)], person, table.schema)
    assert query_group.keys == (None if keys is None else tuple(keys))
    assert (query_group.key_count is None) == (keys is not None)


def test_given_keys_of_an_expression_are_taken(flights: pd.DataFrame) -> None:
    answer = session(flights).plan([tr.count(by="month(departed)", keys=[6, 7])]).release()[0]
    assert [row["month(departed)"] for row in answer.rows] == [6, 7]
    with pytest.raises(SchemaError, match="integer"):
        session(flights).plan([tr.count(by="month(departed)", keys=["June"])])


def test_derived_columns_are_measured(flights: pd.DataFrame) -> None:
    hours = tr.column("delay") / 60
    answers = (
        session(flights)
        .plan([
            tr.mean(hours, bounds=(0, 1), name="hours"),
            tr.sum("delay > 30", name="late"),
            tr.mean("clip(delay, 10, 20)", name="clipped"),
            tr.proportion("delay > 30", name="share"),
            tr.regression("delay / 60", "distance / 1000", bounds=(0, 1), on_bounds=(0, 1), name="slope"),
        ])
        .release()
    )  # fmt: skip
    truth = (flights.delay / 60).mean(), (flights.delay > 30).sum(), flights.delay.clip(10, 20).mean()
    known = flights.dropna()
    truth = (*truth, (known.delay > 30).mean(), np.polyfit(known.distance / 1000, known.delay / 60, 1)[0])
    for answer, exact in zip(answers, truth, strict=True):
        row = answer.rows[0]
        assert near(row["value"], float(exact), row["upper"] - row["value"])
    assert "clip(delay, 10, 20) (clamped to [10, 20])" in answers["clipped"].about["question"]


@pytest.mark.parametrize(
    ("question", "error", "told"),
    [
        (lambda: tr.count(where="distance"), SchemaError, "a condition"),
        (lambda: tr.count(where="distanse > 1"), SchemaError, "did you mean 'distance'"),
        (lambda: tr.count(where=5), PlanError, "a condition"),
        (lambda: tr.count(where=""), PlanError, "a condition"),
        (lambda: tr.count(by=[tr.column("carrier"), "carrier"]), PlanError, "different columns"),
        (lambda: tr.count(by={"value": "month(departed)"}), PlanError, "answers use these names"),
        (lambda: tr.count(by={"": "month(departed)"}), PlanError, "a column's name"),
        (lambda: tr.count(by=5), PlanError, "a column's name"),
        (lambda: tr.sum("delay / 60"), PlanError, "no range of its own"),
        (lambda: tr.sum("delay"), PlanError, "bounds: missing"),
        (lambda: tr.sum("lower(carrier)", bounds=(0, 1)), SchemaError, "needs numbers"),
        (lambda: tr.mean("delay +", bounds=(0, 1)), InputError, "is not valid"),
    ],
)
def test_what_cannot_be_asked_is_said_before_anything_is_spent(
    flights: pd.DataFrame, question: Any, error: type[Exception], told: str
) -> None:
    with pytest.raises(error, match=told):
        session(flights).plan([question()])


PLAN = """
title = "Flights"
where = "distance < 900"

[source]
path = "flights.parquet"

[privacy_unit]
column = "tail"
max_rows = 1

[budget]
epsilon = 20
delta = 1e-9

[[question]]
kind = "count"
by = ["month(departed)", { far = "distance > 500" }]
where = "carrier == 'A'"

[[question]]
kind = "mean"
column = "delay / 60"
bounds = [0, 1]
by = { late = "delay > 30" }
name = "hours"
"""


def test_a_plan_file_says_the_same(flights: pd.DataFrame, tmp_path: Path) -> None:
    flights.to_parquet(tmp_path / "flights.parquet")
    (tmp_path / "plan.toml").write_text(PLAN, encoding="utf-8")
    shown = CliRunner().invoke(app, ["plan", str(tmp_path / "plan.toml")])
    assert shown.exit_code == 0, shown.output
    assert "where distance < 900 and carrier == 'A'" in " ".join(shown.output.split())
    done = CliRunner().invoke(app, ["release", str(tmp_path / "plan.toml")])
    assert done.exit_code == 0, done.output
    (result,) = tmp_path.rglob("result.json")
    answers = json.loads(result.read_text(encoding="utf-8"))["answers"]
    assert [len(answer["rows"]) for answer in answers] == [13 * 3, 3]
    assert {row["far"] for row in answers[0]["rows"]} == {None, False, True}
    certificate = json.loads(next(tmp_path.rglob("certificate.json")).read_text(encoding="utf-8"))
    assert {part["where"] for part in certificate["mechanisms"]} == {
        "distance < 900",
        "distance < 900 and carrier == 'A'",
    }
    assert ["month(departed)", "distance > 500"] in [part["by"] for part in certificate["mechanisms"]]
    page = next(tmp_path.rglob("report.html")).read_text(encoding="utf-8")
    assert "distance &lt; 900 and carrier == &#39;A&#39;" in page


def test_a_mistake_in_a_plan_file_says_where_it_is(flights: pd.DataFrame, tmp_path: Path) -> None:
    flights.to_parquet(tmp_path / "flights.parquet")
    wrong = PLAN.replace("month(departed)", "mnth(departed)")
    (tmp_path / "plan.toml").write_text(wrong, encoding="utf-8")
    shown = CliRunner().invoke(app, ["plan", str(tmp_path / "plan.toml")])
    assert shown.exit_code == 2
    assert "did you mean 'month'" in " ".join(shown.output.split())


ARROW = pa.schema([("person", "string"), ("key", "string"), ("x", "float64"), ("day", "date32")])
SCHEMA = open_source(ARROW.empty_table()).schema
KEYS, DAYS = ("a", "A", None, "b"), (None, dt.date(2024, 1, 31), dt.date(1999, 12, 31), dt.date(2024, 6, 2))
VALUES = (None, 0.0, -0.0, float("nan"), float("inf"), 3.0, -1e308, 1e308, 7.5)
QUESTIONS: tuple[Query, ...] = (
    tr.count(by="month(day)", where="x > 1 or key == 'a'"),
    tr.count(by={"low": "lower(key)"}, where="x is not None"),
    tr.sum("clip(x * x, -2, 9)", by="cut(x, [0, 1.5, 7])", where="not key in ['b']"),
    tr.mean("case(x > 3, 1, key is None, 5, x)", bounds=(-1, 4), by=["weekday(day)", "x / x > 0"]),
    tr.count(by="case(x * 1e308 > 0, 'up', x < 0, 'down', None)", where="(x > 1) == (key < 'b') or day > '2000-01-01'"),
)


def people(draw: random.Random, names: list[str]) -> list[tuple[Any, ...]]:
    return [
        (name, draw.choice(KEYS), draw.choice(VALUES), draw.choice(DAYS))
        for name in names
        for _ in range(draw.randrange(1, 9))
    ]


def integers(rows: list[tuple[Any, ...]], request: Request) -> dict[tuple[Any, ...], tuple[int, ...]]:
    columns = list(zip(*rows, strict=True))
    table = pa.table([pa.array(column, one.type) for column, one in zip(columns, ARROW, strict=True)], schema=ARROW)
    found = open_source(table).collect_totals(request)
    return {
        (group, name): value
        for name, values in found.values.items()
        for group, value in zip(found.keys, values, strict=True)
    }


@pytest.mark.parametrize("seed", range(12))
def test_a_person_moves_every_integer_at_most_by_what_is_declared(seed: int) -> None:
    """Neighbors stay neighbors: rows that a condition leaves out take nothing, and nobody else's rows move."""
    draw = random.Random(seed)
    there = people(draw, [f"p{number}" for number in range(8)])
    more = there + people(draw, ["newcomer"])
    draw.shuffle(more)
    person = PrivacyUnit("person", draw.choice((1, 3, 5)), 2, draw.choice((1, 2, 5)))
    for query_group in group_queries(QUESTIONS, person, SCHEMA):
        before, after = integers(there, query_group.table_request), integers(more, query_group.table_request)
        moved = {place: after.get(place, 0) - before.get(place, 0) for place in {*before, *after}}
        for vector in query_group.noisy_statistics:
            steps = [abs(moved[place]) for place in moved if place[1] == vector.statistic_name and moved[place] != 0]
            assert all(step <= query_group.bounds.max_rows_per_group * vector.sensitivity for step in steps)
            assert sum(steps) <= query_group.bounds.max_rows * vector.sensitivity
            assert len(steps) <= query_group.bounds.max_groups


def test_rows_that_are_left_out_take_nothing_from_a_persons_allowance() -> None:
    rows = [("p", "a", float(number), None) for number in range(50)]
    (query_group,) = group_queries([tr.count(where="x > 44")], PrivacyUnit("person", 5, 5, 1), SCHEMA)
    assert list(integers(rows, query_group.table_request).values()) == [5]
