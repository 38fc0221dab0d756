"""A series of dates of one table: each release uses the rows of one date, all have the noise reserved for them."""

from __future__ import annotations

import datetime
from pathlib import Path

import numpy as np
import pyarrow
import pytest

import tightrope as tr
from tightrope.errors import InputError, InsufficientBudgetError
from tightrope.ledger import Ledger
from tightrope.ledger.check import check_ledger
from tightrope.release.plan_file import forecast_release, load_plan_file

pytestmark = pytest.mark.usefixtures("planned_once")
BUDGET = tr.Budget(epsilon=8, delta="1e-6")
MONTHS = np.repeat(np.arange(1, 13), 1000 * np.arange(1, 13))
TABLE = pyarrow.table(
    {
        "user": np.arange(len(MONTHS)) // 2,
        "month": MONTHS,
        "day": [datetime.date(2024, month, 1) for month in MONTHS],
        "city": ["Ulm", "Bern"] * (len(MONTHS) // 2),
    }
)
QUESTIONS = [tr.count(by="city", keys=["Ulm", "Bern"]), tr.count(name="ulm", where="city == 'Ulm'")]


@pytest.fixture
def place(tmp_path: Path) -> Path:
    return tmp_path / "visits.ledger"


def session(place: Path) -> tr.Session:
    return tr.Session.open(TABLE, privacy_unit="user", max_rows=2, budget=BUDGET, ledger=place, dataset="visits")


def test_twelve_months_of_one_table_under_one_budget(place):
    tables = []
    for month in range(1, 13):
        opened = session(place)
        series = opened.series(opened.plan(QUESTIONS), key="monthly", date="month", dates=range(1, 13))
        assert (series.released, series.times) == (month - 1, 12)
        answers = series.next().release()
        for value in answers["count_by_city"].to_pandas()["value"]:
            assert abs(value - 500 * month) < 200
        assert abs(answers["ulm"].value - 500 * month) < 200
        wheres = {mechanism.where for mechanism in answers.certificate_data.mechanisms}
        assert wheres == {f"month == {month}", f"month == {month} and city == 'Ulm'"}
        tables.append(answers.certificate_data.tables)
        again = series.next(f"monthly {month}/12").release()
        assert again["ulm"].value == answers["ulm"].value
    assert all(table == tables[0] for table in tables)
    with pytest.raises(InsufficientBudgetError, match="all 12 releases"):
        series.next()
    assert session(place).spent["budget_fraction"] == "1"
    assert check_ledger(Ledger(place)).problems == ()


def test_dates_and_expressions_are_dates_of_a_series(place):
    opened = session(place)
    first = opened.plan([tr.count()], budget_fraction="0.5", where="city == 'Ulm'")
    days = [datetime.date(2024, 11, 1), datetime.date(2024, 12, 1)]
    by_day = opened.series(first, key="daily", date="day", dates=days).next().release()
    assert by_day.certificate_data.mechanisms[0].where == "day == '2024-11-01' and city == 'Ulm'"
    assert abs(by_day["count"].value - 5500) < 100
    by_quarter = opened.series(first, key="quarterly", date="quarter(day)", dates=[4, 3]).next().release()
    assert abs(by_quarter["count"].value - 500 * (10 + 11 + 12)) < 100


def test_the_bias_check_and_consistent_totals_are_of_the_date(place):
    opened = session(place)
    questions = [tr.count(), tr.count(by="city", keys=["Ulm", "Bern"], where="city in ['Ulm', 'Bern']")]
    plan = opened.plan(questions, bias_check="0.1")
    answers = opened.series(plan, key="monthly", date="month", dates=[3, 1]).next().release()
    assert abs(answers["count"].value - 3000) < 100 and answers.bias
    assert {(mechanism.where or "").partition(" and ")[0] for mechanism in answers.certificate_data.mechanisms} == {
        "month == 3"
    }


def test_a_plan_with_another_filter_is_refused_and_both_are_shown(place):
    opened = session(place)
    january, february = (opened.plan([tr.count(where=f"month == {m}")], budget_fraction="0.5") for m in (1, 2))
    opened.series(january, times=12, key="monthly")
    said = r"the series 'monthly' filters on month == 1, this plan on month == 2; give each .* own series key.*dates"
    with pytest.raises(InputError, match=said):
        opened.series(february, times=12, key="monthly")


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        (
            {"questions": [tr.count(by="city")]},
            "the questions count: number of rows, this plan count_by_city: number of rows by city",
        ),
        ({"times": 6}, "has the times 12, this plan 6"),
        ({"budget_fraction": "0.25"}, "has the budget epsilon"),
        ({"date": "month", "dates": range(1, 13)}, "has the dates nothing, this plan month == 1"),
    ],
)
def test_a_plan_that_differs_otherwise_is_told_how(place, changes, said):
    opened = session(place)
    opened.series(opened.plan([tr.count()], budget_fraction="0.5"), times=12, key="monthly")
    plan = opened.plan(changes.pop("questions", [tr.count()]), budget_fraction=changes.pop("budget_fraction", "0.5"))
    with pytest.raises(InputError, match=said):
        opened.series(plan, key="monthly", **({"times": 12} | changes))


def test_other_dates_are_another_series(place):
    opened = session(place)
    plan = opened.plan([tr.count()], budget_fraction="0.5")
    opened.series(plan, key="monthly", date="month", dates=[1, 2])
    with pytest.raises(InputError, match="has the dates month == 2, this plan month == 3"):
        opened.series(plan, key="monthly", date="month", dates=[1, 3])


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"date": "month"}, "dates: missing"),
        ({"dates": [1, 2]}, "date: missing"),
        ({}, "times: missing"),
        ({"date": "month", "dates": [1, 2], "times": 3}, "times: 3, but there are 2 dates"),
        ({"date": "month", "dates": [1, 1]}, "one value is repeated"),
        ({"date": "month", "dates": ["January", "May"]}, "month"),
        ({"date": "month", "dates": [True, False]}, "integers, texts or dates"),
        ({"date": "mnth", "dates": [1, 2]}, "did you mean 'month'"),
    ],
)
def test_wrong_dates_are_refused_before_anything_is_reserved(place, given, said):
    opened = session(place)
    with pytest.raises(InputError, match=said):
        opened.series(opened.plan([tr.count()]), key="monthly", **given)
    assert opened.spent["budget_fraction"] == "0"


def test_a_plan_file_declares_the_dates(tmp_path):
    import pyarrow.parquet

    pyarrow.parquet.write_table(TABLE, tmp_path / "visits.parquet")
    file = tmp_path / "plan.toml"
    file.write_text(
        '[source]\npath = "visits.parquet"\n[privacy_unit]\ncolumn = "user"\nmax_rows = 2\n'
        "[budget]\nepsilon = 8\ndelta = 1e-6\n"
        '[ledger]\nseries = "2024"\ndate = "day"\ndates = [2024-01-01, 2024-02-01]\n[[question]]\nkind = "count"\n'
    )
    for month in (1, 2):
        plan = load_plan_file(file)
        answers = plan.release_plan().release()
        assert abs(answers["count"].value - 1000 * month) < 60
        forecast = forecast_release(load_plan_file(file), plan.make_plan())
        assert forecast.would_refuse == (month == 2)
    with pytest.raises(InsufficientBudgetError, match="all 2 releases of the series '2024'"):
        load_plan_file(file).release_plan()
    file.write_text(file.read_text().replace('date = "day"\n', ""))
    with pytest.raises(InputError, match="date"):
        load_plan_file(file)
