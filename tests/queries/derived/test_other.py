"""Rows in groups that are not shown: what is counted, what one person changes, and what is refused."""

from __future__ import annotations

import itertools

import pandas as pd
import pytest

import tightrope as tr
from tightrope.documents.release import read_result
from tightrope.errors import PlanError
from tightrope.queries.top_k import LEFT_OVER
from tightrope.release import build_answers
from tightrope.tables import open_source

BUDGET = tr.Budget(epsilon=3, delta="1e-6")
LARGE = {"a": 900, "b": 700}
SMALL = {f"small {place}": 1 + place % 3 for place in range(40)}


def table(extra: list[str] | None = None) -> pd.DataFrame:
    """Two large groups and forty small ones, a row a person but for the one who has the extra rows."""
    keys = [key for key, rows in (LARGE | SMALL).items() for _ in range(rows)]
    people = [*range(len(keys)), *([-1] * len(extra or []))]
    return pd.DataFrame({"who": people, "g": [*keys, *(extra or [])]})


def session(frame: pd.DataFrame, rows: int = 1) -> tr.Session:
    return tr.Session(frame, privacy_unit="who", budget=BUDGET, max_rows=rows)


def test_it_is_the_rows_that_are_not_shown(monkeypatch):
    monkeypatch.setattr(build_answers, "_add_noise", lambda noise, exact: list(exact))
    shown, left = session(table()).plan([tr.count(by="g"), tr.suppressed_count(by="g")]).release()
    assert {row["g"]: row["value"] for row in shown.rows} == LARGE
    (row,) = left.rows
    assert set(row) == {"value", "lower", "upper"}
    assert row["lower"] < row["value"] == sum(SMALL.values()) < row["upper"]


def test_a_real_release_has_it_everywhere():
    answers = session(table()).plan([tr.suppressed_count(by="g"), tr.count(by="g"), tr.top_k(1, by="g")]).release()
    left = answers["suppressed_count_by_g"]
    assert answers[0].name == "suppressed_count_by_g"
    assert list(left.to_pandas().columns) == ["value", "lower", "upper"]
    worst = left.about["error"]["worst_error"]
    assert worst is None or abs(left.rows[0]["value"] - sum(SMALL.values())) <= worst
    written = read_result(answers.to_json())
    found = next(answer for answer in written.answers if answer.name == "suppressed_count_by_g")
    assert (found.keys, found.by) == ("none", ())
    assert not any("are suppressed" in note for note in found.notes)
    assert "suppressed_count_by_g" in answers.to_csv()


@pytest.mark.parametrize("extra", [["a"] * 9, ["small 1"] * 9, ["new"] * 9, ["a", "b", "new", "small 2", "other"] * 2])
@pytest.mark.parametrize("rows", [1, 3])
def test_whatever_is_shown_a_person_adds_no_more_than_declared(extra, rows):
    """Which groups are shown is chance: for every set of them that chance may choose."""
    sums = []
    for frame in (table(), table(extra)):
        draft = session(frame, rows).plan([tr.count(by="g"), tr.suppressed_count(by="g")]).draft
        (query_group,) = draft.query_groups
        with open_source(frame).open_snapshot([query_group.table_request]) as counted:
            exact = counted.collect_totals(query_group.table_request)
        (vector,) = (one for one in query_group.noisy_statistics if one.over_all_groups)
        sums.append(dict(zip(exact.keys, exact.values[vector.statistic_name], strict=True)))
    without, with_person = sums
    keys = [("a",), ("b",), ("small 1",), ("small 2",), ("new",), ("other",)]
    for size in range(len(keys) + 1):
        for shown in itertools.combinations(keys, size):
            left = [sum(n for key, n in found.items() if key not in shown) for found in (without, with_person)]
            assert abs(left[1] - left[0]) <= vector.sensitivity == rows


def test_its_noise_is_charged_and_certified():
    alone = session(table()).plan([tr.count(by="g")])
    both = session(table()).plan([tr.count(by="g"), tr.suppressed_count(by="g")])
    assert float(both.draft.loss.epsilon(1e-6)) <= 3
    errors = [plan.draft.query_accuracies[0].errors_at_size(100)["expected_absolute_error"] for plan in (alone, both)]
    assert errors[1] > errors[0]
    mechanisms = both.release().certificate["mechanisms"]
    by_statistic = {one["statistic"]: one for one in mechanisms}
    own, counts = by_statistic["rows in groups that are not shown"], by_statistic["count"]
    assert list(own["answers"]) == ["suppressed_count_by_g"]
    assert len(own["by"]) == 0
    assert int(own["sensitivity_per_row"]) == 1
    assert own["together"] != counts["together"]


def test_a_person_with_more_rows_adds_all_of_them():
    plan = session(table(["a", "new"] * 3), rows=3).plan([tr.count(by="g"), tr.suppressed_count(by="g")])
    (vector,) = (one for one in plan.draft.query_groups[0].noisy_statistics if one.over_all_groups)
    assert vector.statistic_name.endswith(LEFT_OVER)
    assert vector.sensitivity == 3


def test_beside_what_bounding_cost():
    plan = session(table(["a", "new"] * 3), rows=3).plan(
        [tr.count(by="g"), tr.suppressed_count(by="g")], bias_check="0.1"
    )
    answers = plan.release()
    assert len(answers) == 2
    assert len(answers.bias) == 1


@pytest.mark.parametrize(
    ("questions", "message"),
    [
        (lambda: [tr.suppressed_count()], "by"),
        (lambda: [tr.suppressed_count(by="g", keys=["a"])], "listed"),
        (lambda: [tr.suppressed_count(by="g")], "another question, whose groups are shown"),
        (
            lambda: [tr.count(by="g", where="g == 'a'"), tr.suppressed_count(by="g")],
            "another question, whose groups are shown",
        ),
        (lambda: [tr.count(by={"h": "g == 'a'"}), tr.suppressed_count(by={"h": "g == 'a'"})], "discovered"),
    ],
)
def test_what_makes_no_sense_is_refused_and_taught(questions, message):
    with pytest.raises(PlanError, match=message):
        session(table()).plan(questions())
