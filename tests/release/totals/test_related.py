"""Parts and totals are fitted to each other exactly where they are proven to be about the same rows."""

from __future__ import annotations

import math

import numpy as np
import pandas as pd
import pytest

import tightrope as tr
from tightrope.release.consistency import BOUNDED_REASON, DISCOVERED_REASON, ConsistentFit

pytestmark = pytest.mark.usefixtures("planned_once")

FLAGS = [True, False, None]
STATES = ["a", "b", "c"]


def table() -> pd.DataFrame:
    """What breaks sums: missing and strange keys and values, nobody's rows, persons with more rows than count."""
    rng = np.random.default_rng(7)
    rows = 900
    age = rng.choice([-5.0, 0.0, -0.0, 17.99, 18.0, 64.5, 65.0, 400.0, math.inf, -math.inf, math.nan], rows)
    return pd.DataFrame({
        "person": pd.array(rng.choice([*range(60), None], rows), dtype="Int64"),
        "age": age,
        "flag": pd.array(rng.choice([True, False, None], rows), dtype="boolean"),
        "state": rng.choice(["a", "b", "c", "d", "", "A", None], rows),
        "number": pd.array(rng.choice([1, 2, 3, None], rows), dtype="Int64"),
        "day": pd.to_datetime(rng.choice(["2024-01-31", "2024-07-01", "1677-09-22", "NaT"], rows)),
        "x": rng.choice([1.0, 2.5, math.nan, 1e9, -math.inf], rows),
        "flag 2": pd.array(rng.choice([True, False, None], rows, p=[0.1, 0.1, 0.8]), dtype="boolean"),
        "state 2": rng.choice(["a", "b", "c", "zz", None], rows),
        "large": pd.array(rng.choice([2**53, 2**53 + 1, 2**53 + 2], rows), dtype="Int64"),
    })  # fmt: skip


TABLE = table()
WIDER, EITHER = "state in ['a', 'b', 'z']", "state in ['a', 'b'] or age > 3"
IN_DOUBLES = f"large in [{2.0**53!r}]"
IN_STATES = "state in ['a', 'b', 'c']"
EACH_ROW = {
    "parts of a range": [tr.count(), tr.histogram("age", edges=[0, 18, 65])],
    "truth values": [tr.count(), tr.count(by="flag", keys=FLAGS)],
    "conditions": [tr.count(), tr.count(by="age > 18"), tr.count(by="x is None")],
    "months": [tr.count(), tr.count(by={"m": "month(day)"}), tr.count(by=["month(day)", "weekday(day)"])],
    "cases": [tr.count(), tr.count(by={"s": "case(state == 'a', 'a', state is None, None, 'other')"})],
    "cases of numbers": [tr.count(), tr.count(by={"s": "case(age > 18, 0.1, age > 0, 2, 0.3)"})],
    "a column of truth values and all of them": [
        tr.count(where="state == 'a'"),
        tr.count(by=["flag", "x > 2"], where="state == 'a'", keys={"flag": FLAGS, "x > 2": FLAGS}),
    ],
    "sums": [tr.sum("x", bounds=(0, 9)), tr.sum("x", bounds=(0, 9), by="flag", keys=FLAGS, name="parts")],
    "groups by groups": [
        tr.count(by="state", keys=STATES),
        tr.count(by=["state", "flag"], keys={"state": STATES, "flag": FLAGS}),
        tr.histogram("age", edges=[0, 18, 65], by="state", keys=STATES),
    ],
    "listed, and no other counts": [
        tr.count(where=IN_STATES),
        tr.count(by="state", keys=[*STATES, "zz"], where=IN_STATES),
    ],
    "a list of whole numbers": [
        tr.count(where="number in [1, 2] and age > 0"),
        tr.count(by="number", keys=[1, 2], where="number in [1, 2] and age > 0"),
    ],
    "what is missing is left out": [
        tr.count(where="flag is not None"),
        tr.count(by="flag", keys=[True, False], where="flag is not None"),
    ],
    "columns that are called like one another": [
        tr.count(where="flag is not None"),
        tr.count(by="flag", keys=[True, False], where="flag is not None", name="two"),
        tr.count(by="flag", keys=FLAGS, where="flag is not None", name="three"),
        tr.count(by="flag 2", keys=FLAGS, where="flag is not None", name="other"),
    ],
    "three levels": [
        tr.count(),
        tr.histogram("age", edges=[0, 18, 65]),
        tr.count(by="flag", keys=FLAGS),
        tr.histogram("age", edges=[0, 18, 65], by="flag", keys=FLAGS, name="both"),
    ],
}
OF_PERSONS = {
    "parts of a range": [tr.count(), tr.histogram("age", edges=[0, 18, 65]), tr.count(by="flag", keys=FLAGS)],
    "cells": [tr.count(), tr.histogram("age", edges=[0, 18, 65], by="flag", keys=FLAGS)],
}


def session(person: str | None, rows: int | None = None, epsilon: float = 1) -> tr.Session:
    bounds = {} if rows is None else {"max_rows": rows}
    return tr.Session(TABLE, privacy_unit=person, budget=tr.Budget(epsilon=epsilon, delta=1e-6), **bounds)


def exact(opened: tr.Session, plan: tr.Plan) -> dict[str, dict[tuple[object, ...], int]]:
    """What the engine counts, by question and key, without noise."""
    found = {}
    for query_group in plan.draft.query_groups:
        own = opened._table.collect_totals(query_group.table_request)
        for question, vectors in query_group.vectors_by_query.items():
            (vector,) = vectors.values()
            found[question.asked.name] = dict(zip(own.keys, own.values[vector.statistic_name], strict=True))
    return found


def check_truth_is_left_alone(opened: tr.Session, questions: list[tr.Question]) -> None:
    plan = opened.plan(questions)
    (fitted,) = plan.draft.consistent_fits
    assert set(fitted.joined.answers) == {question.name for question in questions}
    truth = exact(opened, plan)
    tables = [fitted._noisy_table(place, truth[name]) for place, name in enumerate(fitted.joined.answers)]
    for before, after in zip(tables, fitted.least_squares.fit_tables(tables), strict=True):
        assert (before == after).all()
    assert sum(map(len, truth.values())) > len(truth)


@pytest.mark.parametrize("name", EACH_ROW)
def test_what_is_joined_is_consistent_before_noise_where_each_row_is_a_person(name):
    check_truth_is_left_alone(session(None), EACH_ROW[name])


@pytest.mark.parametrize("rows", [1, 4])
@pytest.mark.parametrize("name", OF_PERSONS)
def test_what_is_joined_is_consistent_before_noise_whatever_the_bound_leaves_out(name, rows):
    opened = session("person", rows)
    check_truth_is_left_alone(opened, OF_PERSONS[name])
    assert {joined.agreement_level for joined in opened.plan(OF_PERSONS[name]).draft.sums.joined} == {"total"}


APART = {
    "other keys count in the total": (
        (None, None),
        [tr.count(), tr.count(by="state", keys=STATES)],
        "where='state in [...]'",
    ),
    "a condition that lets more pass": (
        (None, None),
        [tr.count(where=WIDER), tr.count(by="state", keys=["a", "b"], where=WIDER)],
        "rows of other groups",
    ),
    "either condition": (
        (None, None),
        [tr.count(where=EITHER), tr.count(by="state", keys=["a", "b"], where=EITHER)],
        "rows of other groups",
    ),
    "the missing key is not listed": (
        (None, None),
        [tr.count(), tr.count(by="flag", keys=[True, False])],
        "where='flag is not None'",
    ),
    "whole numbers beside numbers, which are compared in doubles": (
        (None, None),
        [tr.count(where=IN_DOUBLES), tr.count(by="large", keys=[2**53], where=IN_DOUBLES)],
        "rows of other groups",
    ),
    "discovered": ((None, None), [tr.count(), tr.count(by="state")], DISCOVERED_REASON),
    "no full grid": (
        (None, None),
        [tr.count(), tr.count(by=["flag", "age > 3"], keys=[(True, True), (False, False)])],
        "not all combinations",
    ),
    "rows in a group are bounded": (
        ("person", 3),
        [tr.count(), tr.count(by="flag", keys=FLAGS, max_rows_per_group=1)],
        BOUNDED_REASON,
    ),
    "groups of a person are bounded": (
        ("person", 3),
        [tr.count(), tr.count(by="flag", keys=FLAGS, max_groups=1)],
        BOUNDED_REASON,
    ),
    "other rows of a person, other values": (
        ("person", 3),
        [tr.sum("x", bounds=(0, 9)), tr.sum("x", bounds=(0, 9), by="flag", keys=FLAGS)],
        BOUNDED_REASON,
    ),
    "other rows of a person, other groups": (
        ("person", 3),
        [tr.count(by="flag", keys=FLAGS), tr.histogram("age", edges=[0, 18], by="flag", keys=FLAGS)],
        BOUNDED_REASON,
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", APART)
def test_a_pair_that_is_not_provably_consistent_is_left_alone_and_said_to_be(name):
    """Fitted to each other they would be biased: here the rows that are counted differ."""
    (person, rows), questions, why = APART[name]
    plan = session(person, rows).plan(questions)
    assert plan.draft.sums.joined == ()
    (note,) = [note for note in plan.to_data()["answers"][1]["notes"] if "need not add up" in note]
    assert why in note
    answers = plan.release()
    assert all(
        isinstance(row["value"], int | float) and "noisy" not in row for answer in answers for row in answer.rows
    )
    assert answers.certificate["consistent"] == ()


@pytest.mark.parametrize(
    "questions",
    [
        [tr.count(), tr.sum("x", bounds=(0, 9), by="flag", keys=FLAGS)],
        [tr.sum("x", bounds=(0, 9)), tr.sum("x", bounds=(0, 8), by="flag", keys=FLAGS, name="other bounds")],
        [tr.count(where="age > 3"), tr.count(by="flag", keys=FLAGS)],
        [tr.histogram("age", edges=[0, 18]), tr.count(by="flag", keys=FLAGS)],
        [tr.count(by="flag", keys=FLAGS), tr.count(by="flag", keys=FLAGS, name="again")],
    ],
)
def test_other_numbers_other_ranges_other_rows_and_parts_without_a_total_stay_as_they_are(questions):
    draft = session(None).plan(questions).draft
    assert draft.sums.joined == ()
    assert dict(draft.sums.notes_by_answer) == {}


def test_a_person_counts_once_and_with_one_row_each_it_is_the_count_of_rows():
    questions = [tr.count_distinct(), tr.count_distinct(by="flag", keys=FLAGS)]
    assert session("person", 3).plan(questions).draft.sums.joined == ()
    check_truth_is_left_alone(session("person", 1), questions)


def test_parts_add_up_to_totals_in_what_is_released():
    plan = session(None).plan(EACH_ROW["three levels"])
    total, ages, flags, both = plan.release()
    (value,) = [row["value"] for row in total.rows]
    for parts in (ages, flags, both):
        assert math.fsum(row["value"] for row in parts.rows) == pytest.approx(value, abs=1e-9)
    for flag in flags.rows:
        own = [row["value"] for row in both.rows if row["flag"] is flag["flag"]]
        assert math.fsum(own) == pytest.approx(flag["value"], abs=1e-9)
    assert all(
        row["lower"] < row["value"] < row["upper"] for answer in (total, ages, flags, both) for row in answer.rows
    )
    assert any(row["value"] != row["noisy"] for row in both.rows)


def test_what_is_released_is_least_squares_of_what_was_drawn():
    plan = session(None).plan(EACH_ROW["groups by groups"])
    answers = plan.release()
    (fitted,) = plan.draft.consistent_fits
    drawn = {a.name: {tuple(row[c] for c in a.question.key_columns): row["noisy"] for row in a.rows} for a in answers}
    again = fitted.fitted_records(drawn)
    for answer in answers:
        assert [row["value"] for row in answer.rows] == [record["value"] for record in again[answer.name]]


def test_the_plan_shows_the_smaller_error_and_each_answer_says_why():
    plan = session(None).plan(EACH_ROW["parts of a range"])
    for accuracy, answer in zip(plan.accuracies(), plan.to_data()["answers"], strict=True):
        (noise,) = accuracy.own_noises
        assert answer["error"]["half_width_95"] < 0.95 * noise.half_width()
        assert answer["error"]["expected_absolute_error"] < noise.mean_absolute
        assert any("Adjusted to add up" in note for note in answer["notes"])


def test_more_groups_than_can_be_fitted_in_a_moment_stay_as_they_are():
    days = {"by": ["month(day)", "day(day)", "weekday(day)"], "name": "days"}
    plan = session(None).plan([tr.count(), tr.count(**days)])
    assert plan.draft.sums.joined != ()
    hours = {"by": ["month(day)", "day(day)", "hour(day)", "age > 18"], "name": "hours"}
    plan = session(None).plan([tr.count(), tr.count(**hours, keys=every("month", "day", "hour"))])
    assert plan.draft.sums.joined == ()
    assert any("too many groups" in note for note in plan.accuracies()[1].reader_notes())


def every(*units: str) -> dict[str, list[object]]:
    """All values of parts of an instant, with what is missing, and of a truth value."""
    ends = {"month": (1, 12), "day": (1, 31), "hour": (0, 23)}
    listed = {f"{unit}(day)": [None, *range(ends[unit][0], ends[unit][1] + 1)] for unit in units}
    return {**listed, "age > 18": FLAGS}


def test_where_noise_is_nearly_always_nothing_nothing_is_mixed():
    plan = session(None, epsilon=20).plan(EACH_ROW["parts of a range"])
    assert len(plan.draft.sums.joined) == 1
    assert plan.draft.consistent_fits == ()
    assert all(any("intervals would become longer" in note for note in one.reader_notes()) for one in plan.accuracies())
    assert all(isinstance(row["value"], int) for answer in plan.release() for row in answer.rows)


def test_wanted_accuracy_takes_less_of_the_budget():
    questions = EACH_ROW["truth values"]
    fitted = session(None).plan(questions, margin_of_error={"count": 60})
    alone = session(None).plan([tr.count(), tr.count(by="flag", keys=[True, False])], margin_of_error={"count": 60})
    assert fitted.budget_fraction < alone.budget_fraction
    assert fitted.accuracies()[0].errors_at_size(1)["half_width_95"] <= 60


@pytest.mark.parametrize("keys", [[True], [1.5]])
def test_no_condition_is_recommended_that_would_not_do(keys):
    by = "flag" if keys == [True] else "x"
    plan = session(None).plan([tr.count(), tr.count(by=by, keys=keys)])
    (note,) = [note for note in plan.to_data()["answers"][1]["notes"] if "need not add up" in note]
    assert note.endswith("rows of other groups count there.")


def test_what_least_squares_cannot_do_fails_before_it_is_paid_for(monkeypatch):
    """It failed after the charge where two divisions had taken each other's name."""
    opened = session(None)
    plan = opened.plan([tr.count(), tr.count(by="flag", keys=FLAGS)])
    monkeypatch.setattr(ConsistentFit, "_cell_index", lambda *_: {}["no such key"])
    with pytest.raises(KeyError):
        plan.release()
    assert opened.spent["budget_fraction"] == "0"
