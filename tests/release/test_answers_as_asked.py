"""Answers come in the order in which they were asked: who unpacks them by place has the right ones."""

from __future__ import annotations

import json

import pandas as pd
import pytest

import tightrope as tr
from tightrope.release.execution import restore_answers, stored_text
from tightrope.release.plan_file import load_plan_file

FRAME = pd.DataFrame({"city": ["a", "b"] * 500, "age": [30, 50] * 500})
NAMES = ["count", "count_by_city", "mean_age", "mean_age_by_city", "median_age", "count_distinct_by_city"]


def asked() -> list[tr.release.Query]:
    """Totals and groups in turn: they are gathered in three passes."""
    keys, ages = ["a", "b"], (0, 100)
    return [
        tr.count(),
        tr.count(by="city", keys=keys),
        tr.mean("age", bounds=ages),
        tr.mean("age", bounds=ages, by="city", keys=keys),
        tr.median("age", bounds=ages),
        tr.count_distinct(by="city", keys=keys),
    ]


@pytest.mark.parametrize("turn", range(3))
def test_whoever_unpacks_them_has_the_right_ones(turn: int) -> None:
    questions, names = asked()[turn:] + asked()[:turn], NAMES[turn:] + NAMES[:turn]
    plan = tr.Session(FRAME, privacy_unit=None, budget=tr.Budget(epsilon=20, delta="1e-8")).plan(
        questions, bias_check=0.1
    )
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
    entries = ['kind = "count"', 'kind = "count"\nby = ["city"]', 'kind = "mean"\ncolumn = "age"\nbounds = [0, 100]']
    questions = "\n".join(f"[[question]]\n{entry}" for entry in entries)
    head = '[source]\npath = "t.parquet"\n[privacy_unit]\neach_row = true\n[budget]\nepsilon = 1\ndelta = 1e-8\n'
    (tmp_path / "plan.toml").write_text(head + questions)
    plan = load_plan_file(tmp_path / "plan.toml").release_plan()
    assert [question.name for question in plan.questions] == ["count", "count_by_city", "mean_age"]


def test_one_key_gives_each_answer_to_its_question_in_whichever_order_it_is_asked(tmp_path) -> None:
    """Questions in turn or by their groups are one plan to a ledger: what was paid is found again, by name."""

    def answers(order: list[int]) -> tr.release.Answers:
        budget = tr.Budget(epsilon=20, delta="1e-8")
        session = tr.Session.open(FRAME, privacy_unit=None, budget=budget, ledger=tmp_path / "l.ledger", dataset="d")
        return session.plan([asked()[place] for place in order], budget_fraction="0.5", key="one").release()

    first, again = answers([0, 1, 2, 3]), answers([0, 2, 1, 3])
    assert [answer.name for answer in again] == [NAMES[place] for place in (0, 2, 1, 3)]
    assert {one.name: one.rows for one in first} == {one.name: one.rows for one in again}
    assert first.certificate["entry"] == again.certificate["entry"]


def test_a_session_takes_no_ledger() -> None:
    with pytest.raises(TypeError, match="ledger"):
        tr.Session(FRAME, privacy_unit=None, budget=tr.Budget(epsilon=1, delta=0), ledger="a.ledger")


def test_answers_that_an_earlier_version_kept_are_those_of_their_questions() -> None:
    """It kept them in the order of the passes over the table, and without their names."""
    plan = tr.Session(FRAME, privacy_unit=None, budget=tr.Budget(epsilon=20, delta="1e-8")).plan(asked())
    answers, draft = plan.release(), plan.draft
    said = json.loads(stored_text(answers))
    by_pass = [question.name for query_group in draft.query_groups for question in query_group.ordered_queries]
    assert by_pass != NAMES
    kept = said.pop("answers")
    older = json.dumps({"rows": [kept[name] for name in by_pass], **said})
    for text in (older, stored_text(answers)):
        assert [(one.name, one.rows) for one in restore_answers(text, draft)] == [
            (one.name, one.rows) for one in answers
        ]
