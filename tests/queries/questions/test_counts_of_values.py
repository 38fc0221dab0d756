"""Counts of different values: what a person may change, what is said of them, and what they are no part of."""

from __future__ import annotations

import json

import pandas as pd
import pytest

import tightrope as tr
from tightrope.errors import PlanError, SchemaError
from tightrope.release.plan_file import load_plan_file
from tightrope.verify.check import check_document
from tightrope.verify.claims import CONFIRMED, worst_verdict

pytestmark = pytest.mark.usefixtures("planned_once")

PEOPLE = 600
TABLE = pd.DataFrame({
    "who": [place // 2 for place in range(2 * PEOPLE)],
    "g": ["a", "b"] * PEOPLE,
    "product": [f"p{place % 150}" for place in range(2 * PEOPLE)],
    "price": [float(place % 7) for place in range(2 * PEOPLE)],
})  # fmt: skip
HEAD = (
    '[source]\npath = "t.parquet"\n[privacy_unit]\ncolumn = "who"\nmax_rows = 2\n[budget]\nepsilon = 9\ndelta = 1e-8\n'
)


def session(rows: int = 2, epsilon: float = 20) -> tr.Session:
    return tr.Session(TABLE, privacy_unit="who", max_rows=rows, budget=tr.Budget(epsilon=epsilon, delta=1e-8))


def test_values_are_counted_once_whoever_has_them():
    questions = [
        tr.count_distinct("product"),
        tr.count_distinct("product", by="g", keys=["a", "b", "none"]),
        tr.count_distinct("price > 3", where="g == 'a'"),
        tr.count_distinct(tr.column("product").prefix(2), name="chapters"),
    ]
    truths = ([150], [75, 75, 0], [2], [9])
    for answer, expected in zip(session(epsilon=60).plan(questions).release(), truths, strict=True):
        assert [abs(row["value"] - truth) <= 4 for row, truth in zip(answer.rows, expected, strict=True)]
        assert all(row["lower"] <= row["value"] <= row["upper"] for row in answer.rows)


def test_it_costs_what_a_count_of_rows_costs():
    ((rows,), (values,)) = (
        session(3, 1).plan([question]).accuracies() for question in (tr.count(), tr.count_distinct("product"))
    )
    assert values.errors_at_size(1_000) == rows.errors_at_size(1_000)
    (bound,) = session(3).plan([tr.count_distinct("product", by="g", max_rows_per_group=1)]).to_data()["answers"]
    assert (bound["max_rows"], bound["max_rows_per_group"]) == (3, 1)


def test_groups_are_found_by_their_rows_and_values_are_a_number_of_their_own():
    table = pd.DataFrame({"who": range(900), "g": ["a"] * 900, "v": [1] * 450 + [None] * 450})
    opened = tr.Session(table, privacy_unit="who", max_rows=1, budget=tr.Budget(epsilon=20, delta=1e-8))
    values, rows = opened.plan([tr.count_distinct("v", by="g"), tr.count(by="g")]).release()
    assert abs(values.rows[0]["value"] - 1) <= 4 and abs(rows.rows[0]["value"] - 900) <= 4


def test_a_total_is_no_sum_of_its_parts():
    """Each value is in both groups: what counts of rows may be fitted to would halve them."""
    table = pd.DataFrame(
        {"who": range(800), "flag": [True, False] * 400, "v": [place // 2 % 100 for place in range(800)]}
    )
    opened = tr.Session(table, privacy_unit=None, budget=tr.Budget(epsilon=1, delta=1e-8))
    questions = [tr.count_distinct("v"), tr.count_distinct("v", by="flag", keys=[True, False])]
    plan = opened.plan(questions)
    assert all("consistent" not in note for answer in plan.to_data()["answers"] for note in answer.get("notes", ()))
    total, parts = plan.release()
    assert abs(total.rows[0]["value"] - 100) < 60 and all(abs(row["value"] - 100) < 60 for row in parts.rows)


def test_what_is_said_of_them():
    plan = session().plan([tr.count_distinct("product", by="g")])
    (answer,) = plan.to_data()["answers"]
    assert answer["question"] == "number of different values of product by g"
    assert "rows beyond the limits" in str(plan) and "The number of different values" in str(plan)
    assert tr.count_distinct("product", by="g").name == "count_distinct_product_by_g"
    assert tr.count_distinct(by="g").name == "count_distinct_by_g"


def test_what_cannot_be_asked_is_refused_while_it_is_free():
    lists = tr.Session(pd.DataFrame({"v": [[1], [2]]}), privacy_unit=None, budget=tr.Budget(epsilon=1, delta=1e-8))
    with pytest.raises(SchemaError, match="Python objects of no declared type"):
        lists.plan([tr.count_distinct("v")])
    with pytest.raises(PlanError, match="column"):
        tr.count_distinct(3)
    with pytest.raises(SchemaError, match="nowhere"):
        session().plan([tr.count_distinct("nowhere")])
    with pytest.raises(PlanError, match="only counts accept a percentage of rows"):
        session().plan([tr.count_distinct("product", margin_of_error="5%")], expected_rows=100)
    with pytest.raises(PlanError, match=r"leave it out.*with less noise"):
        session().plan([tr.count_distinct("who")])
    assert session().plan([tr.count_distinct("product", margin_of_error=50)]).budget_fraction < 1


def test_a_plan_file_asks_it_and_what_is_written_is_confirmed(tmp_path):
    TABLE.to_parquet(tmp_path / "t.parquet")
    entries = '[[question]]\nkind = "count_distinct"\ncolumn = "product"\n', 'by = "g"\nkeys = ["a", "b"]\n'
    costs = "bias_check = 0.1\n"
    (tmp_path / "plan.toml").write_text(HEAD + costs + entries[0] + entries[0] + entries[1])
    answers = load_plan_file(tmp_path / "plan.toml").make_plan().release()
    assert worst_verdict(check_document(json.dumps(answers.certificate))) == CONFIRMED
    assert [len(answer.rows) for answer in answers] == [1, 2]
