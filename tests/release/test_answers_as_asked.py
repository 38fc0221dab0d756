"""Answers come in the order in which they were asked: who unpacks them by place has the right ones."""

from __future__ import annotations

import pandas as pd
import pytest

import tightrope as tr
from tightrope.release.documents.plan_file import load

FRAME = pd.DataFrame({"city": ["a", "b"] * 500, "age": [30, 50] * 500})
NAMES = ["count", "count_by_city", "mean_age", "mean_age_by_city", "median_age", "count_distinct_by_city"]


def asked() -> list[tr.release.Question]:
    """Totals and groups in turn: they are gathered in three passes."""
    keys, ages = ["a", "b"], (0, 100)
    return [
        tr.count(),
        tr.count(by="city", keys=keys),
        tr.mean("age", between=ages),
        tr.mean("age", between=ages, by="city", keys=keys),
        tr.median("age", between=ages),
        tr.count_distinct(by="city", keys=keys),
    ]


@pytest.mark.parametrize("turn", range(3))
def test_whoever_unpacks_them_has_the_right_ones(turn: int) -> None:
    questions, names = asked()[turn:] + asked()[:turn], NAMES[turn:] + NAMES[:turn]
    plan = tr.Session(FRAME, person=None, budget=tr.Budget(epsilon=20, delta="1e-8")).plan(questions, costs=0.1)
    assert [question.name for question in plan.questions] == names
    assert [accuracy.question.name for accuracy in plan.accuracies()] == names
    assert [answer["name"] for answer in plan.to_data()["answers"]] == names
    answers = plan.release()
    assert [answer.question.name for answer in answers] == names
    assert [len(answer.rows) for answer in answers] == [2 if name.endswith("city") else 1 for name in names]
    total, *_ = answers if turn == 0 else [answers["count"]]
    assert total.rows[0]["value"] == pytest.approx(1000, abs=20)
    assert [answer.name for answer in answers.result().answers] == names


def test_a_file_keeps_its_order(tmp_path) -> None:
    FRAME.to_parquet(tmp_path / "t.parquet")
    entries = ['kind = "count"', 'kind = "count"\nby = ["city"]', 'kind = "mean"\ncolumn = "age"\nbetween = [0, 100]']
    questions = "\n".join(f"[[question]]\n{entry}" for entry in entries)
    head = '[source]\npath = "t.parquet"\n[person]\neach_row = true\n[budget]\nepsilon = 1\ndelta = 1e-8\n'
    (tmp_path / "plan.toml").write_text(head + questions)
    plan = load(tmp_path / "plan.toml").release_plan()
    assert [question.name for question in plan.questions] == ["count", "count_by_city", "mean_age"]
