"""The least budget for an accuracy: it does, a little less does not, and more is never asked for by a looser wish."""

from __future__ import annotations

import itertools
import time
from decimal import Decimal

import pandas as pd
import pytest
from typer.testing import CliRunner

import tightrope as tr
from tightrope.cli.main import app
from tightrope.errors import InputError, InsufficientBudgetError, PlanError
from tightrope.release.plan_file import load_plan_file

TABLE = pd.DataFrame({"who": [1, 2], "city": ["a", "b"], "x": [1.0, 2.0], "y": [1.0, 3.0]})


@pytest.fixture
def session():
    return tr.Session(TABLE, privacy_unit="who", max_rows=3, budget=tr.Budget(epsilon=2, delta="1e-8"))


def half(plan, name, rows=1):
    return next(a.errors_at_size(rows)["half_width_95"] for a in plan.accuracies() if a.question.name == name)


@pytest.mark.parametrize(
    ("question", "wish", "rows"),
    [
        (tr.count(by="city"), 40, None),
        (tr.count(by="city", keys=["a", "b"]), "5%", 600),
        (tr.sum("x", bounds=(0, 10)), 99.5, None),
        (tr.mean("x", bounds=(0, 10), by="city"), "0.5", 800),
        (tr.regression("x", on="y", bounds=(0, 10), on_bounds=(0, 5)), Decimal("0.25"), 4_000),
    ],
    ids=str,
)
def test_the_least_budget_does_and_less_does_not(session, question, wish, rows):
    plan = session.plan([question], margin_of_error={question.name: wish}, expected_rows=rows)
    target = 0.05 * 600 if wish == "5%" else float(wish)
    assert half(plan, question.name, rows or 1) <= target
    assert 0 < plan.budget_fraction < 1
    assert plan.budget == session.budget.scale_by(plan.budget_fraction)
    less = session.plan([question], budget_fraction=plan.budget_fraction * Decimal("0.99"), expected_rows=rows)
    assert half(less, question.name, rows or 1) > target
    assert len(plan.budget_fraction.as_tuple().digits) <= 4


def test_a_plan_of_that_share_is_the_same_plan(session):
    questions = [tr.count(by="city", margin_of_error=60), tr.mean("x", bounds=(0, 10))]
    found = session.plan(questions)
    plain = session.plan([tr.count(by="city"), tr.mean("x", bounds=(0, 10))], budget_fraction=found.budget_fraction)
    assert half(found, "count_by_city") == half(plain, "count_by_city") <= 60
    assert found.loss.epsilon(1e-9) == plain.loss.epsilon(1e-9)
    found.release()
    assert session.spent["budget_fraction"] == str(found.budget_fraction)


def test_looser_wishes_take_no_more(session):
    shares = [
        session.plan([tr.count(by="city")], margin_of_error={"count_by_city": w}).budget_fraction
        for w in (15, 20, 40, 41, 200)
    ]
    assert all(less >= more * Decimal("0.997") for less, more in itertools.pairwise(shares))
    assert shares[0] > 3 * shares[-1]


def test_all_wishes_hold_together_and_beside_them_the_rest(session):
    questions = [tr.count(by="city"), tr.sum("x", bounds=(0, 10), by="city", margin_of_error=700)]
    plan = session.plan(questions, margin_of_error={"count_by_city": 90})
    assert half(plan, "count_by_city") <= 90
    assert half(plan, "sum_x_by_city") <= 700


def test_what_does_not_fit_is_refused_with_what_would(session):
    with pytest.raises(InsufficientBudgetError, match=r"within 0\.2 % of the smallest possible") as refused:
        session.plan([tr.count()], margin_of_error={"count": 2})
    epsilon = str(refused.value).rpartition("epsilon=")[2].split()[0]
    richer = tr.Session(TABLE, privacy_unit="who", max_rows=3, budget=tr.Budget(epsilon=epsilon, delta="1e-8"))
    assert half(richer.plan([tr.count()]), "count") <= 2
    with pytest.raises(InsufficientBudgetError, match="is not enough"):
        session.plan([tr.count(margin_of_error=20)], budget_fraction="0.01")
    assert session.spent["budget_fraction"] == "0"


def test_no_budget_is_enough_for_some_wishes(session):
    question = tr.mean("x", bounds=(0, 10))
    with pytest.raises(InsufficientBudgetError, match="no budget suffices"):
        session.plan([question], margin_of_error={question.name: 1e-12}, expected_rows=3)


def test_it_takes_less_than_five_seconds(session):
    start = time.process_time()
    session.plan([tr.count(by="city"), tr.mean("x", bounds=(0, 10), by="city")], margin_of_error={"count_by_city": 40})
    assert time.process_time() - start < 5


def test_the_frontier_shows_what_less_and_more_buys(session):
    rows = session.plan([tr.count(by="city")], margin_of_error={"count_by_city": 40}).frontier()
    halves = [row["answers"]["count_by_city"] for row in rows]
    assert len(rows) == 9
    assert halves == sorted(halves, reverse=True)
    assert halves[4] <= 40 < halves[3]


@pytest.mark.parametrize(
    ("within", "rows", "said"),
    [
        ({"count": -1}, None, "above 0"),
        ({"count": "many"}, None, "above 0"),
        ({"cuont": 5}, None, "did you mean 'count'"),
        ({"count": "5%"}, None, "expected_rows"),
        ({"mean_x": 5}, None, "expected_rows"),
        ({"mean_x": "5%"}, 100, "only counts"),
    ],
)
def test_wishes_that_cannot_be_read_are_refused(session, within, rows, said):
    with pytest.raises((PlanError, InputError), match=said):
        session.plan([tr.count(), tr.mean("x", bounds=(0, 10))], margin_of_error=within, expected_rows=rows)


PLAN = """
[source]
path = "t.parquet"
[privacy_unit]
column = "who"
max_rows = 3
[budget]
epsilon = 2
delta = 1e-8
[[question]]
kind = "count"
by = "city"
"""


def test_a_plan_file_and_the_command_say_the_same(session, tmp_path):
    TABLE.to_parquet(tmp_path / "t.parquet")
    path = tmp_path / "plan.toml"
    path.write_text(PLAN + "margin_of_error = 40\n")
    share = load_plan_file(path).make_plan().budget_fraction
    assert share == session.plan([tr.count(by="city", margin_of_error=40)]).budget_fraction
    path.write_text(PLAN)
    result = CliRunner().invoke(app, ["plan", str(path), "--margin-of-error", "count_by_city=40"])
    assert result.exit_code == 0, result.output
    assert f"A release of this plan takes {share} of the whole budget;" in " ".join(result.output.split())
    refused = CliRunner().invoke(app, ["plan", str(path), "--margin-of-error", "count_by_city"])
    assert refused.exit_code == 2


def test_where_a_box_is_refused_the_least_budget_is_sought_with_noise_of_their_own():
    """A box of many rows has too many losses at a small share: the search ended there, at twice the least share."""
    table = pd.DataFrame({"p": [0, 1], "x": [1.0, 2.0], "y": [1.0, 3.0], "city": ["a", "b"]})
    session = tr.Session(table, privacy_unit="p", max_rows=24, budget=tr.Budget(epsilon=8, delta=1e-6))
    questions = [tr.sum(name, bounds=(0, 100), by="city", keys=["a", "b"]) for name in "xy"]
    names = [question.name for question in questions]
    plan = session.plan(questions, margin_of_error=dict.fromkeys(names, 19_761))
    less = session.plan(questions, budget_fraction=plan.budget_fraction * Decimal("0.98"))
    assert max(half(plan, name) for name in names) <= 19_761 < max(half(less, name) for name in names)


def test_a_loose_margin_beside_a_tight_one_does_not_matter(session):
    questions = [tr.count(), tr.sum("x", bounds=(0, 10))]
    plan = session.plan(questions, margin_of_error={"count": 30, "sum_x": 10**18})
    assert half(plan, "count") <= 30
    assert plan.budget_fraction == session.plan(questions, margin_of_error={"count": 30}).budget_fraction


@pytest.mark.parametrize("margin", [90_000, 10**18, "1e300"])
def test_the_search_ends_where_noise_would_be_useless(session, margin):
    plan = session.plan([tr.count()], margin_of_error={"count": margin})
    assert half(plan, "count") <= 90_000
    assert plan.budget_fraction < Decimal("0.01")
