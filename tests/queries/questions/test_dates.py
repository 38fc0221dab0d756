"""Histograms and quantiles of dates and timestamps: their bins, their answers, and what documents hold."""

from __future__ import annotations

import datetime as dt
import json
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from typer.testing import CliRunner

import tightrope as tr
from tightrope.cli.main import app
from tightrope.documents.document import plain_data
from tightrope.errors import InputError, PlanError
from tightrope.reporting import html
from tightrope.reporting.charts.plots import answers_chart

FIRST = dt.datetime(2024, 1, 1)
STAYS = pd.DataFrame({
    "at": [FIRST + dt.timedelta(hours=7 * place, microseconds=place) for place in range(1_001)],
    "day": [(FIRST + dt.timedelta(hours=7 * place)).date() for place in range(1_001)],
    "x": [float(place) for place in range(1_001)],
})  # fmt: skip
YEAR = ("2024-01-01", "2024-12-31")


def session(epsilon: float = 20) -> tr.Session:
    budget = tr.Budget(epsilon=epsilon, delta=1e-8)
    return tr.Session(STAYS, privacy_unit=None, budget=budget, types={"day": "date"})


@pytest.mark.parametrize(
    ("width", "bounds", "number", "second", "last"),
    [
        ("year", ("2020-02-29", "2024-12-31"), 5, "2021-01-01", "2024-01-01"),
        ("quarter", ("2024-01-15", "2024-12-31"), 4, "2024-04-01", "2024-10-01"),
        ("month", YEAR, 12, "2024-02-01", "2024-12-01"),
        ("month", ("9999-10-15", "9999-12-31"), 3, "9999-11-01", "9999-12-01"),
        ("week", ("2024-01-03", "2024-01-31"), 5, "2024-01-08", "2024-01-29"),
        ("day", ("2024-02-28", "2024-03-01"), 3, "2024-02-29", "2024-03-01"),
        (1e300, ("2024-01-01", dt.date.max), 1, None, "2024-01-01"),
        (30, YEAR, 13, "2024-01-31", "2024-12-26"),
        (1, (dt.date(9999, 12, 30), dt.date(9999, 12, 31)), 2, "9999-12-31", "9999-12-31"),
        ("hour", ("2024-01-01T22:30", "2024-01-02"), 3, "2024-01-01T23:00:00", "2024-01-02T00:00:00"),
        (0.5, (dt.datetime(2024, 1, 1), dt.date(2024, 1, 2)), 3, "2024-01-01T12:00:00", "2024-01-02T00:00:00"),
        ("month", ("2024-01-31T12:00", "2024-03-31"), 3, "2024-02-01T00:00:00", "2024-03-01T00:00:00"),
    ],
)
def test_bins_begin_where_units_of_the_calendar_do(
    width: Any, bounds: Any, number: int, second: str | None, last: str
) -> None:
    edges = tr.histogram("at", width=width, bounds=bounds).asked.part_edges
    assert (len(edges), edges[1] if len(edges) > 1 else None, edges[-1]) == (number, second, last)


def test_a_histogram_of_dates_counts_the_rows_of_each_month() -> None:
    plan = session().plan([tr.histogram("day", width="month", bounds=YEAR), tr.histogram("at", edges=YEAR)])
    months, halves = answers = plan.release()
    table = months.to_pandas().set_index("day")["value"]
    true = STAYS["day"].map(lambda day: day.replace(day=1)).value_counts()
    assert list(table.index[1:]) == [dt.date(2024, month, 1) for month in range(1, 13)]
    assert all(abs(table[month] - true.get(month, 0)) <= 3 for month in table.index[1:])
    assert list(halves.to_pandas()["at"]) == [None, dt.date(2024, 1, 1), dt.date(2024, 12, 31)]
    assert "2024-02-01 to 2024-03-01" in html(answers.result())


def test_the_bins_of_instants_with_a_time_of_day_are_instants() -> None:
    edges = ["2024-01-01T06:00", "2024-07-01T06:00"]
    (answer,) = session().plan([tr.histogram("at", edges=edges)]).release()
    assert list(answer.to_pandas()["at"])[1:] == [pd.Timestamp(edge) for edge in edges]
    assert answer.document.edges == ("2024-01-01T06:00:00", "2024-07-01T06:00:00")


@pytest.mark.parametrize("counted", [False, True], ids=["chosen", "counted"])
def test_a_median_of_dates_is_a_date_near_the_true_one(counted: bool) -> None:
    questions = [tr.median("day", bounds=YEAR), tr.median("at", bounds=(FIRST, dt.date(2024, 12, 31)))]
    if counted:
        questions += [tr.quantile("day", 0.9, bounds=YEAR), tr.quantile("at", 0.9, bounds=(FIRST, "2024-12-31"))]
    answers = session().plan(questions).release()
    for place, column in enumerate(("day", "at")):
        answer, true = answers[place], STAYS[column].sort_values().iloc[500]
        value, lower, upper = answer.value, answer.lower, answer.upper
        assert type(value) is type(lower) is type(upper) is (dt.date if column == "day" else dt.datetime)
        assert lower <= value <= upper
        assert abs(value - (true if column == "day" else true.to_pydatetime())) <= dt.timedelta(days=8)
        assert answer.to_pandas()["value"][0] == value
        assert answer.to_arrow()["value"].to_pylist() == [value]


def test_documents_hold_days_and_the_unit_that_says_so() -> None:
    plan = session().plan([tr.median("day", bounds=YEAR, by="x > 500"), tr.median("at", bounds=YEAR)], bias_check=0.1)
    answers = plan.release()
    by_date, of_instants = answers.result().answers
    assert (by_date.unit, of_instants.unit) == ("days since 1970-01-01", "days since 1970-01-01 00:00 UTC")
    record = by_date.rows[-1]
    shown = answers[0].to_pandas().iloc[-1]
    assert all(float(record[name]).is_integer() for name in ("value", "lower", "upper"))
    assert dt.date(1970, 1, 1) + dt.timedelta(days=record["value"]) == shown["value"]
    assert shown["value"].isoformat() in answers.to_csv()
    assert f">{shown['value']}<" in answers[0]._repr_html_()
    page = html(answers.result())
    assert shown["value"].isoformat() in page
    assert "days since 1970" not in page
    assert "the values of day were below 2024-01-01" in answers.bias[0].statement


def test_charts_label_their_axis_with_dates() -> None:
    plan = session().plan(
        [tr.median("day", bounds=YEAR, by="x > 500"), tr.median("day", bounds=YEAR, by="month(at)", name="m")]
    )
    for answer in plan.release():
        figure = answers_chart(plain_data(answer.document))
        figure.canvas.draw()
        (axes,) = figure.axes
        axis = axes.xaxis if answer.name != "m" else axes.yaxis
        labels = [label.get_text() for label in axis.get_ticklabels()]
        assert any(label.startswith("2024-") for label in labels), labels


def test_the_words_of_a_question_are_the_same_before_and_after_planning() -> None:
    question = tr.quantile("at", 0.9, bounds=("2024-01-01", "2024-12-31T12:00"))
    plan = session().plan([question])
    assert str(question) == "0.9 quantile of at between 2024-01-01 00:00:00 and 2024-12-31 12:00:00"
    released = plan.release()[0].document.question
    assert released == "0.9 quantile of at (clamped to [2024-01-01 00:00:00, 2024-12-31 12:00:00])"
    assert "Margins of error are in days." in str(plan)


@pytest.mark.parametrize(
    ("make", "told"),
    [
        (lambda: tr.histogram("day", width="fortnight", bounds=YEAR), "year, quarter, month, week, day"),
        (lambda: tr.histogram("day", width="hour", bounds=YEAR), "year, quarter, month, week, day"),
        (lambda: tr.histogram("day", width=0.5, bounds=YEAR), "a whole number of days"),
        (lambda: tr.histogram("day", width=1, bounds=("1000-01-01", "2024-01-01")), "at most 2,000 parts"),
        (lambda: tr.histogram("at", width="hour", bounds=("1000-01-01T00:00", "2024-01-01")), "at most 2,000 parts"),
        (lambda: tr.histogram("x", width="month", bounds=(0, 1)), "a unit of the calendar with dates as bounds"),
        (lambda: tr.histogram("day", width=1, bounds=YEAR[::-1]), "the first date must be before the second"),
        (lambda: tr.histogram("day", width=1, bounds=("2024-01-01", 5)), "two numbers or two dates"),
        (lambda: tr.median("day", bounds=("2024-01-01", "soon")), "two numbers or two dates"),
        (lambda: tr.median("day", bounds=YEAR, unit="days"), "the answer is a date"),
        (lambda: tr.mean("day", bounds=YEAR), "dates are for median, quantile and histogram"),
        (lambda: session().plan([tr.median("day", bounds=(0, 1))]), "or dates as bounds, such as"),
        (lambda: session().plan([tr.median("x", bounds=YEAR)]), "'x' is a column of kind number"),
        (lambda: session().plan([tr.median("day", bounds=(FIRST, "2024-12-31"))]), "leave out the time of day"),
        (lambda: session().plan([tr.histogram("day", edges=[FIRST])]), "a date such as"),
    ],
)
def test_refusals_name_what_to_write(make: Any, told: str) -> None:
    with pytest.raises((PlanError, InputError), match=told):
        make()


PLAN = """document = "plan"
version = 2
where = "week(day) >= '2024-01-01' and quarter(at) <= 4"
[source]
path = "stays.parquet"
[privacy_unit]
each_row = true
[budget]
epsilon = 2
delta = 1e-8
[[question]]
kind = "median"
column = "day"
bounds = [2024-01-01, 2024-12-31]
[[question]]
kind = "quantile"
column = "at"
q = 0.9
bounds = ["2024-01-01", 2024-12-31T12:00:00]
[[question]]
kind = "histogram"
column = "day"
width = "quarter"
bounds = [2024-01-01, 2024-12-31]
[[question]]
kind = "count"
by = { month = "date_trunc('month', day)" }
keys = [2024-01-01, 2024-02-01]
"""


def test_a_plan_file_with_dates_is_planned_released_and_verified(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    STAYS.to_parquet("stays.parquet")
    Path("plan.toml").write_text(PLAN, encoding="utf-8")
    planned = CliRunner().invoke(app, ["plan", "plan.toml", "--table"], env={"COLUMNS": "300"})
    assert planned.exit_code == 0, planned.output
    assert "median_day" in planned.stdout
    released = CliRunner().invoke(app, ["release", "plan.toml"], env={"COLUMNS": "300"})
    assert released.exit_code == 0, released.output
    result = json.loads(Path("result.json").read_text(encoding="utf-8"))
    median = result["answers"][0]["rows"][0]
    day = dt.date(1970, 1, 1) + dt.timedelta(days=median["value"])
    assert day.isoformat() in released.stdout
    assert " days" in released.stdout
    assert day.isoformat() in Path("results.csv").read_text(encoding="utf-8")
    for name in ("certificate.json", "result.json"):
        verified = CliRunner().invoke(app, ["verify", name])
        assert verified.exit_code == 0, verified.output
