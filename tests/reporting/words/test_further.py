"""Parts of a range, lines and places, as people read them: on the page, in a notebook and in a table."""

from __future__ import annotations

import csv
import datetime as dt
import io

import pandas as pd
import pytest

import tightrope as tr
from tightrope.documents.escaping import range_part_text
from tightrope.reporting import html
from tightrope.reporting.wording.answers import extra_columns, shown_answer, shown_answers
from tightrope.reporting.wording.partial_release import PartialAnswer


@pytest.fixture(scope="module")
def answers() -> tr.release.answers.Answers:
    values = [-40.0, -5.0, 12.0, 70.0, None] * 400
    frame = pd.DataFrame({"x": values, "y": list(range(2_000)), "g": ["a", "a", "a", "b", None] * 400})
    opened = tr.Session(frame, privacy_unit=None, budget=tr.Budget(epsilon=16, delta="1e-8"))
    return opened.plan([
        tr.histogram("x", edges=[-60, 0, 60]),
        tr.regression("x", on="y", bounds=(-60, 100), on_bounds=(0, 2_000)),
        tr.top_k(2, by="g", keys=["a", "b", "c"]),
        tr.count(by="g"),
        tr.count(),
    ]).release()  # fmt: skip


def test_parts_have_two_ends_wherever_people_read_them(answers):
    shown = shown_answers(answers.result())[0]
    assert {row.key_labels for row in shown.rows} == {
        ("−60 to 0",), ("0 to 60",), ("60 and above",), ("missing or below −60",),
    }  # fmt: skip
    for page in (html(answers.result()), answers[0]._repr_html_()):
        assert "−60 to 0" in page
        assert "missing or below −60" in page


def test_days_are_parts_too():
    edges = ("2024-01-01", "2024-07-01")
    assert range_part_text("2024-01-01", edges) == "2024-01-01 to 2024-07-01"
    assert range_part_text("2024-07-01", edges) == "2024-07-01 and above"
    frame = pd.DataFrame({"day": [dt.date(2024, 3, 1)] * 500})
    opened = tr.Session(frame, privacy_unit=None, budget=tr.Budget(epsilon=8, delta="1e-8"), types={"day": "date"})
    made = opened.plan([tr.histogram("day", edges=[dt.date(2024, 1, 1), dt.date(2024, 7, 1)])]).release()
    labels = [row.key_labels[0] for row in shown_answers(made.result())[0].rows]
    assert "2024-01-01 to 2024-07-01" in labels


def test_a_line_shows_where_it_meets_the_axis_and_groups_their_places(answers):
    named = {shown.name: shown for shown in shown_answers(answers.result())}
    line, top = named["regression_x_y"], named["top_k_by_g"]
    assert extra_columns(line)[0] == ("intercept", "from", "to")
    assert all(extra_columns(line)[1][0])
    assert extra_columns(top) == (("rank",), [("1",), ("2",)])
    page = html(answers.result())
    assert "intercept" in page
    assert ">rank<" in page
    assert set(extra_columns(named["count"])[0]) <= {"before adjustment"}


def test_a_group_that_is_hidden_behind_others_may_have_any_place():
    row = {"value": 5, "lower": 4, "upper": 6, "best_rank": 2, "worst_rank": None, "g": "a"}
    assert extra_columns(shown_answer(PartialAnswer(by=("g",), rows=(row,))))[1] == [("2 or later",)]


def test_a_missing_group_is_no_total(answers):
    lines = list(csv.DictReader(io.StringIO(answers.to_csv(), newline="")))
    of_groups = {line["missing"] for line in lines if line["question"] == "count_by_g"}
    assert of_groups == {"", "g"}
    total = next(line for line in lines if line["question"] == "count")
    missing = next(line for line in lines if line["missing"] == "g")
    assert (total["question"], total["g"], total["missing"]) == ("count", "", "")
    assert missing["g"] == ""


def test_what_is_counted_is_what_a_person_is():
    frame = pd.DataFrame({"tail": ["a", "b"], "g": [1, 2]})
    budget = tr.Budget(epsilon=1, delta="1e-8")
    opened = tr.Session(frame, privacy_unit=("tail", "an aircraft"), max_rows=1, budget=budget)
    (answer,) = opened.plan([tr.count_distinct()]).document().answers
    assert "each aircraft counted once" in answer.meaning
    assert "person" not in answer.meaning
