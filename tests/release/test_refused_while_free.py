"""What the schema tells is refused before the budget is spent; and answers show themselves in a few words."""

from __future__ import annotations

import datetime
from typing import Any

import pandas as pd
import pytest

import tightrope as tr
from tightrope.errors import InsufficientBudgetError, PlanError, SchemaError

pytestmark = pytest.mark.usefixtures("planned_once")

TABLE = pd.DataFrame({
    "tail": pd.array([f"N{number}" for number in range(200)] * 2, dtype="str"),
    "month": [number % 12 + 1 for number in range(400)],
    "carrier": pd.array(["AA", "UA"] * 200, dtype="str"),
    "late": [True, False] * 200,
    "day": pd.to_datetime(["2024-01-01"] * 400),
})  # fmt: skip


@pytest.fixture
def session() -> tr.Session:
    budget = tr.Budget(epsilon=1, delta=1e-6)
    return tr.Session(TABLE, privacy_unit=("tail", "an aircraft"), max_rows=2, budget=budget)


@pytest.mark.parametrize(
    ("by", "keys", "said"),
    [
        ("carrier", [1, 2], "in quotes"),
        ("month", ["1", "2"], "without quotes"),
        ("month", [1.5], "whole numbers"),
        ("late", [0, 1], "true and false"),
        (["carrier", "month"], [("AA", 1), ("UA", "2")], "whole numbers"),
    ],
)
def test_keys_of_the_wrong_kind_are_refused_by_the_plan(session: tr.Session, by: Any, keys: list[Any], said: str):
    with pytest.raises(SchemaError, match=said):
        session.plan([tr.count(by=by, keys=keys)])


def test_keys_that_only_the_column_type_refuses_cost_nothing(session: tr.Session) -> None:
    """A time zone is known when the table is read: still before the charge."""
    zoned = datetime.datetime(2024, 1, 1, tzinfo=datetime.UTC)
    plan = session.plan([tr.count(by="day", keys=[zoned])])
    with pytest.raises(SchemaError, match=r"without a time zone.*nothing was spent"):
        plan.release()
    assert session.spent["budget_fraction"] == "0"
    assert not plan.charged


@pytest.mark.parametrize("by", ["tail", ["carrier", "tail"]])
def test_groups_that_can_never_be_shown_are_refused(session: tr.Session, by: Any) -> None:
    with pytest.raises(PlanError, match="a group of one person is never large enough"):
        session.plan([tr.count(by=by)])
    assert session.plan([tr.count(by="tail", keys=["N1"])]).budget.epsilon == 1


def test_answers_show_themselves_in_a_few_words(session: tr.Session) -> None:
    answers = session.plan([tr.count(by="carrier"), tr.count()]).release()
    assert str(answers) == repr(answers)
    assert repr(answers).splitlines() == [
        "<Answers: epsilon 1 at delta 1e-06, .certificate holds the guarantee>",
        "<Answer 'count_by_carrier': Number of rows by carrier (using at most 2 rows per aircraft); "
        "2 groups in .to_pandas()>",
        "<Answer 'count': Number of rows (using at most 2 rows per aircraft); one value in .to_pandas()>",
    ]


def test_an_empty_budget_is_not_told_to_plan_with_nothing(session: tr.Session) -> None:
    session.plan([tr.count()]).release()
    with pytest.raises(InsufficientBudgetError, match="0 is left") as refused:
        session.plan([tr.count()]).release()
    assert "share=0" not in str(refused.value)


def test_a_plan_in_python_has_the_numbers_of_the_terminal(session: tr.Session) -> None:
    text = str(session.plan([tr.count(by="carrier"), tr.sum("month", bounds=(0, 5_000_000), by="carrier")]))
    assert "e+" not in text
    assert "with 10,000 rows: 95 % margin of error ±" in text
    assert "probability of suppression: 0" in text


def test_a_range_is_said_to_the_last_digit() -> None:
    assert str(tr.sum("x", bounds=(-1_234_567, 2_500_000.5))) == "sum of x between -1234567 and 2500000.5"
