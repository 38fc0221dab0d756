"""Questions whose conditions exclude each other cost as much as one, if each row is a person; ledgers remember it."""

from __future__ import annotations

import json
from typing import Any

import pandas as pd
import pytest

import tightrope as tr
from tests.release.former_rules import plan_by_former_rule, resume_killed_release
from tightrope.errors import InputError
from tightrope.ledger.noise_record import NoiseRecord
from tightrope.noise.worst_split import Alternative
from tightrope.release.execution import noise_record_of
from tightrope.release.planner import EVEN_ERRORS_RULE, SHARED_COST_RULE

MONTHS = [f"2024-{month:02}-03" for month in range(1, 13)]
TABLE = pd.DataFrame({
    "id": range(600),
    "g": ["abc"[i % 3] for i in range(600)],
    "n": [i % 10 for i in range(600)],
    "x": [float(i % 7) for i in range(600)],
    "d": pd.to_datetime([MONTHS[i % 12] for i in range(600)]),
})  # fmt: skip
BUDGET = tr.Budget(epsilon=1, delta=1e-6)


def session(**settings: Any) -> tr.Session:
    return tr.Session(TABLE, **{"privacy_unit": None, "budget": BUDGET, **settings})


def widths(questions: list[Any], **settings: Any) -> dict[str, float]:
    plan = session(**settings).plan(questions, budget_fraction="0.2")
    return {one.question.asked.name: one.errors_at_size(100)["half_width_95"] for one in plan.draft.query_accuracies}


def counts(*conditions: str, **options: Any) -> list[Any]:
    return [tr.count(where=where, name=f"q{place}", **options) for place, where in enumerate(conditions)]


CONDITIONS = {
    "texts": ["g == 'a'", "g == 'b'"],
    "ranges": ["n < 3", "3 <= n < 7", "n >= 7"],
    "months": [f"month(d) == {month}" for month in range(1, 13)],
    "bands": [f"cut(n, [0, 5, 8]) == {edge}" for edge in (0, 5, 8)],
    "days": ["d < '2024-02-01'", "d >= '2024-02-01' and d < '2024-03-01'", "d >= '2024-03-01' and n == 1"],
    "a rest": ["g in ['a', 'b']", "g not in ['a', 'b']", "g is None"],
}


@pytest.mark.parametrize("conditions", CONDITIONS.values(), ids=CONDITIONS)
def test_disjoint_counts_have_the_noise_of_one(conditions):
    (alone,) = widths(counts(conditions[0])).values()
    assert set(widths(counts(*conditions)).values()) == {alone}


def test_conditions_that_may_hold_together_add_up():
    assert set(widths(counts("g == 'a'", "n == 1")).values()) == {30.0}
    assert set(widths(counts("g == 'a'", "g == 'b'")).values()) == {15.0}
    assert set(widths(counts("g == 'a'", "g in ['a', 'b']")).values()) == {30.0}


def test_the_conditions_of_a_whole_plan_count_too():
    asked = [tr.count(where="n == 1", name="a"), tr.count(where="n == 2", name="b")]
    plan = session().plan(asked, budget_fraction="0.2", where="g == 'a'")
    assert [query_group.alternative for query_group in plan.draft.query_groups] == [
        Alternative(0, 0),
        Alternative(0, 1),
    ]


def test_a_total_beside_them_is_added_once():
    both = widths([*counts("g == 'a'", "g == 'b'", "g == 'c'"), tr.count()])
    assert both == widths([*counts("g == 'a'"), tr.count()]) | dict.fromkeys(("q1", "q2"), both["q0"])


def test_a_question_that_leaves_room_gets_the_accuracy_that_is_free():
    """A count beside a mean of other rows has the error that it has alone."""
    mean = tr.mean("x", bounds=(0, 10), where="g == 'a'", name="mean")
    count = tr.count(where="g == 'b'", name="count")
    both = widths([mean, count])
    assert both == pytest.approx(widths([mean]) | widths([count]), rel=0.02)
    two = widths([mean, tr.count(where="g == 'a'", name="a"), count])
    assert two["a"] > 1.4 * two["count"]
    heavy = widths([tr.count(where="g == 'a'", name="a", weight=16), count])
    assert heavy["a"] == heavy["count"] == widths([count])["count"]


@pytest.mark.parametrize("unit", [{"privacy_unit": "id", "max_rows": 1}, {"privacy_unit": "id", "max_rows": 3}])
def test_a_person_whose_rows_may_meet_several_conditions_pays_for_each(unit):
    """Every question uses rows of its own: a person may have one that meets each condition."""
    one, two = widths(counts("g == 'a'"), **unit), widths(counts("g == 'a'", "g == 'b'"), **unit)
    assert two["q0"] > 1.4 * one["q0"]


def test_groups_quantiles_and_the_bias_check_keep_the_promise():
    questions = [
        tr.count(by="n", where="g == 'a'", name="groups"),
        tr.median("x", bounds=(0, 10), where="g == 'b'", name="median"),
        tr.histogram("x", bounds=(0, 10), width=2, where="g == 'c'", name="bins"),
        tr.variance("x", bounds=(0, 10), where="g == 'a'", name="spread"),
        tr.sum("x", bounds=(0, 10), where="g == 'c'", name="sum"),
        tr.sum("n", bounds=(0, 10), where="g == 'c'", name="sum too"),
        tr.count(),
    ]
    plan = session().plan(questions, bias_check="0.1", budget_fraction="0.5")
    assert plan.draft.loss.delta(0.5) <= 0.5e-6
    answers = plan.release()
    assert len(answers.answers) == 7
    sets = {(one["where"], one["disjoint"]) for one in answers.certificate["mechanisms"]}
    assert sets == {("g == 'a'", 1), ("g == 'b'", 1), ("g == 'c'", 1), (None, None)}


def test_tallies_of_the_bias_check_take_at_most_their_part_of_each_row():
    """A row meets one condition; of what it loses, the part of its tallies is at most what was allowed."""
    questions = [
        tr.mean("x", bounds=(0, 5), where="g == 'a'", name="a"),
        tr.mean("n", bounds=(0, 5), where="g == 'a'", name="a too"),
        tr.mean("x", bounds=(0, 5), where="g == 'b'", name="b"),
    ]
    plan = session().plan(questions, bias_check="0.1")
    losses = [
        sum(1 / spec.noise_size for query_group in plan.draft.query_groups for group in query_group.composition_groups
            for spec in group.noise_specs if query_group.alternative == Alternative(0, member)
            and spec.statistic.endswith("over all groups") == tally)
        for member in (0, 1) for tally in (False, True)
    ]  # fmt: skip
    total = max(losses[0] + losses[1], losses[2] + losses[3])
    assert max(losses[1], losses[3]) <= 0.1 * total * 1.02


def test_the_answers_say_what_they_share():
    plan = session().plan([*counts("g == 'a'", "g == 'b'"), tr.count()], budget_fraction="0.2")
    notes = {one["name"]: one["notes"] for one in plan.draft.to_data()["answers"]}
    text = "No row counts both here and in 'q1': together they cost as much of the budget as one of them."
    assert text in notes["q0"] and not any("No row counts" in note for note in notes["count"])
    plan = session().plan(counts(*CONDITIONS["months"]), budget_fraction="0.2")
    assert any("'q4' and 7 others" in note for note in plan.draft.to_data()["answers"][0]["notes"])


def test_other_budgets_and_margins_of_error_use_it_too():
    plan = session().plan(counts("g == 'a'", "g == 'b'", margin_of_error=10))
    alone = session().plan(counts("g == 'a'", margin_of_error=10))
    assert plan.draft.share == alone.draft.share
    rows = [one["answers"] for one in plan.draft.accuracy_table()]
    assert [row["q0"] for row in rows] == [
        row["q0"] for row in (one["answers"] for one in alone.draft.accuracy_table())
    ]


# Ledgers.


def opened(place: Any, **settings: Any) -> tr.Session:
    budget = tr.Budget(epsilon=4, delta=1e-6)
    return tr.Session.open(TABLE, ledger=place, dataset="d", privacy_unit=None, budget=budget, **settings)


QUESTIONS = [*counts("g == 'a'", "g == 'b'"), tr.mean("x", bounds=(0, 7), where="g == 'c'", name="mean")]


def test_a_key_charged_by_the_former_rule_gives_its_answers_again(tmp_path, monkeypatch):
    with monkeypatch.context() as former:
        plan_by_former_rule(former, EVEN_ERRORS_RULE)
        first = opened(tmp_path / "ledger").plan(QUESTIONS, budget_fraction="0.25", key="march").release()
    again = opened(tmp_path / "ledger").plan(QUESTIONS, budget_fraction="0.25", key="march")
    assert again.draft.planning_rule == EVEN_ERRORS_RULE
    assert [one.rows for one in again.release()] == [one.rows for one in first]
    assert opened(tmp_path / "ledger").spent["budget_fraction"] == "0.25"
    fresh = opened(tmp_path / "ledger").plan(QUESTIONS, budget_fraction="0.25", key="april")
    assert fresh.draft.planning_rule == SHARED_COST_RULE
    answers = fresh.release()
    repeated = opened(tmp_path / "ledger").plan(QUESTIONS, budget_fraction="0.25", key="april").release()
    assert [one.rows for one in repeated] == [one.rows for one in answers]


def test_a_series_of_the_former_rule_goes_on_and_a_new_one_is_shared(tmp_path, monkeypatch):
    with monkeypatch.context() as former:
        plan_by_former_rule(former, EVEN_ERRORS_RULE)
        session = opened(tmp_path / "ledger")
        session.series(session.plan(QUESTIONS, budget_fraction="0.5"), times=3, key="monthly").next().release()
    session = opened(tmp_path / "ledger")
    series = session.series(session.plan(QUESTIONS, budget_fraction="0.5"), times=3, key="monthly")
    assert series.released == 1
    assert all(one["disjoint"] is None for one in series.next().release().certificate["mechanisms"])
    new = session.series(session.plan(QUESTIONS, budget_fraction="0.25"), times=3, key="new")
    certificate = new.next().release().certificate
    assert [one["disjoint"] for one in certificate["mechanisms"]] == [1] * len(certificate["mechanisms"])
    assert session.series(session.plan(QUESTIONS, budget_fraction="0.25"), times=3, key="new").next().release()


def test_an_unanswered_release_by_the_former_rule_is_resumed(tmp_path, monkeypatch):
    def open_session() -> tr.Session:
        return opened(tmp_path / "ledger")

    _, resumed = resume_killed_release(monkeypatch, EVEN_ERRORS_RULE, open_session, QUESTIONS)
    assert resumed.draft.planning_rule == EVEN_ERRORS_RULE
    assert len(resumed.release()) == 3


@pytest.mark.parametrize("questions", [QUESTIONS, QUESTIONS[:2]])
def test_the_record_of_noise_is_read_back_with_its_alternatives(questions):
    draft = session().plan(questions, budget_fraction="0.5").draft
    record = noise_record_of(draft)
    assert NoiseRecord.from_text(record.to_text).to_text == record.to_text
    again = NoiseRecord.from_text(record.to_text)
    assert (again.units, again.choices) == (record.units, record.choices)
    assert again.composed_loss().delta(0.5) == pytest.approx(draft.loss.delta(0.5), rel=1e-9)
    assert again.composed_loss().delta(0.5) <= 0.5e-6
    without = json.loads(record.to_text)
    for unit in without["units"]:
        del unit["alternative"]
    if len(questions) > 2:
        assert NoiseRecord.from_text(json.dumps(without)).composed_loss().delta(0.5) > 0.5e-6


@pytest.mark.parametrize("altered", [[0], [0, -1], "01", [0, 1.5], None])
def test_an_altered_alternative_is_refused(altered):
    data = json.loads(noise_record_of(session().plan(QUESTIONS, budget_fraction="0.5").draft).to_text)
    data["units"][0]["alternative"] = altered
    with pytest.raises(InputError.__mro__[1], match="changed after it was written"):
        NoiseRecord.from_text(json.dumps(data))


def test_a_ledger_of_moments_charges_them_as_one(tmp_path):
    fractions = []
    for place, questions in enumerate([QUESTIONS[:1], QUESTIONS[:2]]):
        limits = [tr.ledger.Limit("total", tr.Budget(epsilon=4, delta=1e-6), rule="moments", releases=10)]
        own = opened(tmp_path / f"ledger{place}", limits=limits)
        plan = own.plan(questions, budget_fraction="0.1")
        fractions.append(plan.draft.query_accuracies[0].errors_at_size(100)["half_width_95"])
        plan.release()
    assert fractions[1] <= fractions[0] * 1.01
