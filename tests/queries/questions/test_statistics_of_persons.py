"""Statistics of persons: the exact values by pandas, coverage, titles, plan files, and what is refused."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy import stats

import tightrope as tr
from tightrope.errors import InputError, PlanError, SchemaError
from tightrope.release.build_answers import AnswerBuilder, certificate_of
from tightrope.release.plan_file import load_plan_file

BUDGET = tr.Budget(epsilon=1, delta=1e-8)
RELEASES, BY_LUCK = 40, 1e-9
CITIES = ["a", "b", "c"]


def visits(n: int = 12_000) -> pd.DataFrame:
    """Visits of guests, some of whom have very many."""
    rng = np.random.default_rng(7)
    guest = np.where(rng.random(n) < 0.3, rng.integers(0, 200, n), rng.integers(0, 2_000, n))
    bill = rng.gamma(2, 20, n).round(2)
    table = pd.DataFrame({"guest": guest, "city": rng.choice(CITIES, n, p=[0.5, 0.3, 0.2]), "bill": bill})
    table.loc[rng.random(n) < 0.05, "bill"] = np.nan
    return table


def session(**bounds: int) -> tr.Session:
    settings: dict[str, Any] = {"max_rows": 2, **bounds}
    return tr.Session(visits(), privacy_unit=("guest", "a guest"), budget=BUDGET, **settings)


QUESTIONS = [
    tr.mean("*", per_person="count", bounds=(0, 40), name="visits"),
    tr.histogram("*", per_person="count", edges=[1, 2, 5, 10, 20], name="by_visits"),
    tr.mean("bill", per_person="sum", bounds=(0, 1_000), name="spent"),
    tr.proportion("bill > 100", per_person="any", name="big"),
    tr.mean("bill > 100", per_person="count", bounds=(0, 5), name="big_bills"),
    tr.standard_deviation("*", per_person="count", bounds=(0, 40), name="spread", where="city == 'a'"),
]


def true_values() -> dict[str, dict[tuple[object, ...], float]]:
    table = visits()
    guests = table.groupby("guest")
    counts, sums = guests.size(), guests["bill"].sum(min_count=1).dropna()
    known = table.dropna(subset=["bill"])
    large = (known["bill"] > 100).groupby(known["guest"])
    bins = pd.cut(counts, [1, 2, 5, 10, 20, np.inf], right=False, labels=[1, 2, 5, 10, 20])
    in_a = table[table["city"] == "a"].groupby("guest").size().clip(0, 40)
    no_bill = len(counts) - len(large)  # a guest without a known bill has 0 bills over 100
    return {
        "visits": {(): counts.clip(0, 40).mean()},
        "by_visits": {(edge,): float(number) for edge, number in bins.value_counts().items()} | {(None,): 0.0},
        "spent": {(): sums.clip(0, 1_000).mean()},
        "big": {(): large.any().mean()},
        "big_bills": {(): large.sum().clip(0, 5).sum() / (len(large) + no_bill)},
        "spread": {(): in_a.std(ddof=0)},
    }


@pytest.mark.statistics
def test_intervals_cover_the_values_of_persons_whatever_the_bound_on_rows() -> None:
    opened, truth = session(), true_values()
    plan = opened.plan(QUESTIONS)
    exact = [opened._table.collect_totals(query_group.table_request) for query_group in plan.draft.query_groups]
    builder = AnswerBuilder(plan.draft, certificate_of(plan.draft))
    held = dict.fromkeys(truth, 0)
    for _ in range(RELEASES):
        for answer in builder.build_answers(exact):
            for row in answer.rows:
                value = truth[answer.name][tuple(row[column] for column in answer.key_columns)]
                held[answer.name] += row["lower"] <= value <= row["upper"]
    for name, number in held.items():
        assert stats.binom.cdf(number, RELEASES * len(truth[name]), 0.95) > BY_LUCK, (name, number)


def test_a_person_in_several_groups_has_a_value_in_each_up_to_the_bound() -> None:
    plan = session(max_rows=3).plan([tr.mean("*", per_person="count", bounds=(0, 20), by="city", keys=CITIES)])
    (part,) = plan.to_data()["answers"]
    assert part["label"] == "Mean of rows per guest (clamped to [0, 20]) by city"  # in all three groups
    assert part["over"] == "each guest counts once in each of at most 3 groups"
    fewer = session(max_rows=2).plan([tr.mean("*", per_person="count", bounds=(0, 20), by="city", keys=CITIES)])
    assert fewer.to_data()["answers"][0]["label"].endswith("(each guest counts once in each of at most 2 groups)")
    assert (part["max_rows"], part["max_rows_per_group"], part["max_groups"]) == (3, 1, 3)
    opened = session(max_rows=3)
    (query_group,) = plan.draft.query_groups
    totals = opened._table.collect_totals(query_group.table_request)
    counts = visits().groupby(["city", "guest"]).size()
    usable = totals.values[next(name for name in totals.values if "usable" in name)]
    assert list(usable) == [len(counts[city]) for city in CITIES]
    bounded = session(max_rows=1).plan([tr.mean("*", per_person="count", bounds=(0, 20), by="city", keys=CITIES)])
    totals = opened._table.collect_totals(bounded.draft.query_groups[0].table_request)
    assert sum(totals.values[next(name for name in totals.values if "usable" in name)]) == visits()["guest"].nunique()


def test_titles_say_what_is_counted_and_noise_is_that_of_one_row_a_person() -> None:
    plan = session(max_rows=2).plan(QUESTIONS)
    labels = {part["name"]: part["label"] for part in plan.to_data()["answers"]}
    assert labels["visits"] == "Mean of rows per guest (clamped to [0, 40])"
    assert labels["spent"] == "Mean of sum of bill per guest (clamped to [0, 1000])"
    assert labels["big"] == "Share of persons (each a guest) with a row where bill > 100"
    assert labels["by_visits"].startswith("Histogram of rows per guest in 5 parts")
    assert labels["spread"] == "Standard deviation of rows per guest (clamped to [0, 40]) where city == 'a'"
    parts = {part["name"]: part for part in plan.to_data()["answers"]}
    assert parts["visits"]["over"] == "each guest counts once" and parts["visits"]["max_rows"] == 1
    assert not any("left out: the answer" in note for note in parts["visits"]["notes"])
    one_row = session(max_rows=1).plan([tr.count(name="n")]).noises()[0][0]
    whole = session(max_rows=50).plan([tr.histogram("*", per_person="count", edges=[1, 3], name="h")]).noises()[0][0]
    assert whole.table == one_row.table


def test_counts_of_rows_and_of_persons_are_not_made_consistent() -> None:
    opened = tr.Session(visits(), privacy_unit="guest", max_rows=1, budget=BUDGET)
    plan = opened.plan([tr.count(), tr.histogram("*", per_person="count", edges=[1, 2])])
    assert plan.draft.consistent_fits == ()


PLAN = """
[source]
path = "visits.parquet"
[privacy_unit]
column = "guest"
noun = "a guest"
max_rows = 2
[budget]
epsilon = 1
delta = 1e-8
bias_check = 0.02
[[question]]
kind = "mean"
column = "*"
per_person = "count"
bounds = [0, 40]
[[question]]
kind = "quantile"
column = "bill"
per_person = "sum"
bounds = [0, 1000]
q = 0.9
[[question]]
kind = "proportion"
column = "bill > 100"
per_person = "any"
"""


def test_a_plan_file_asks_about_persons_and_its_release_is_verified(tmp_path: Path) -> None:
    from typer.testing import CliRunner

    from tightrope.cli.main import app

    visits().to_parquet(tmp_path / "visits.parquet")
    (tmp_path / "plan.toml").write_text(PLAN)
    answers = load_plan_file(tmp_path / "plan.toml").release_plan().release()
    assert [answer.name for answer in answers] == [
        "mean_rows_per_person",
        "quantile_0.9_bill_per_person",
        "proportion_bill > 100_per_person",
    ]
    counts = visits().groupby("guest").size()
    assert abs(answers[0].value - counts.clip(0, 40).mean()) < 2
    sums = visits().groupby("guest")["bill"].sum()
    assert abs(answers[1].value - sums.quantile(0.9)) < 400  # a random choice, rarely off by more than 100
    (tmp_path / "result.json").write_text(answers.to_json())
    result = CliRunner().invoke(app, ["verify", str(tmp_path / "result.json")])
    assert result.exit_code == 0, result.output


@pytest.mark.parametrize(
    ("make", "error", "text"),
    [
        (lambda: tr.count(per_person="count"), PlanError, "per_person"),
        (lambda: tr.proportion("bill > 1", per_person="count"), PlanError, '"any"'),
        (lambda: tr.mean("bill", per_person="largest", bounds=(0, 1)), PlanError, "per_person"),
        (lambda: session().plan([tr.mean("*", per_person="sum", bounds=(0, 1))]), PlanError, "counts rows"),
        (lambda: session().plan([tr.mean("bill", per_person="count", bounds=(0, 1))]), InputError, "condition"),
        (lambda: session().plan([tr.mean("city", per_person="sum", bounds=(0, 1))]), InputError, "numbers"),
        (lambda: session().plan([tr.mean("*", per_person="count")]), PlanError, "bounds"),
        (
            lambda: tr.Session(visits(), privacy_unit=None, budget=BUDGET).plan(
                [tr.mean("*", per_person="count", bounds=(0, 1))]
            ),
            PlanError,
            "one value",
        ),
    ],
)
def test_what_is_not_of_persons_is_refused(make: Any, error: type[Exception], text: str) -> None:
    with pytest.raises(error, match=text):
        make()


def test_a_plan_that_uses_all_rows_of_each_person_says_nothing_of_rows_beyond_the_bound() -> None:
    of_persons = tr.mean("bill", per_person="sum", bounds=(0, 1_000))
    assert "are left out; if these are most rows" not in str(session().plan([of_persons]))
    assert "are left out; if these are most rows" in str(session().plan([of_persons, tr.count()]))


@pytest.mark.parametrize(
    "question",
    [
        tr.mean("city", bounds=(0, 1)),
        tr.median("city", bounds=(0, 1)),
        tr.histogram("city", edges=[0, 1]),
        tr.mean("city", bounds=(0, 1), per_person="sum"),
        tr.median("city", bounds=(0, 1), per_person="sum"),
        tr.histogram("city", edges=[0, 1], per_person="sum"),
    ],
    ids=str,
)
def test_texts_are_refused_in_the_same_words_for_rows_and_persons(question: Any) -> None:
    words = f"'city' is a column of text, but '{question.kind}' needs numbers; say number\\(city\\)"
    with pytest.raises(SchemaError, match=words):
        session().plan([question])
