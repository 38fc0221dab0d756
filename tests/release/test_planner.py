"""Even relative errors: with equal weights every question's error is the same multiple of its error alone."""

from __future__ import annotations

import json

import numpy as np
import pandas as pd
import pytest

import tightrope as tr
from tests.release.former_rules import plan_by_former_rule, resume_killed_release
from tightrope.errors import InputError, InsufficientBudgetError, PlanError
from tightrope.ledger.noise_record import NoiseRecord
from tightrope.noise.worst_split import EIGHTHS
from tightrope.release.execution import release_claim
from tightrope.release.planner import EVEN_ERRORS_RULE, ONE_SIZE_RULE, commensurate_sizes
from tightrope.verify.check import check_document
from tightrope.verify.claims import CONFIRMED, NOT_CONFIRMED, REFUTED, worst_verdict

KEYS = ["a", "b", "c"]


@pytest.fixture
def session():
    table = pd.DataFrame({"id": [1, 2, 3], "city": KEYS, "x": [1.0, 2.0, 3.0]})
    return tr.Session(table, privacy_unit="id", max_rows=60, budget=tr.Budget(epsilon=1, delta=1e-6))


def widths(plan):
    return {one.question.asked.name: one.errors_at_size(1000)["half_width_95"] for one in plan.accuracies()}


def small(name="small", **options):
    return tr.count(by="city", keys=KEYS, max_rows_per_group=1, max_groups=1, name=name, **options)


def large(name, above, **options):
    return tr.count(by="city", keys=KEYS, where=f"x > {above}", name=name, **options)


def test_a_cheap_question_costs_little_next_to_expensive_ones(session):
    questions = [small(), large("a", 0), large("b", 1), large("c", 2)]
    alone = {one.asked.name: widths(session.plan([one]))[one.asked.name] for one in questions}
    together = widths(session.plan(questions))
    ratios = [together[name] / alone[name] for name in alone]
    assert together["small"] < 15  # 728 with one common size in rows
    assert max(ratios) <= 1.05 * min(ratios)


@pytest.mark.parametrize("weight", [2, 4, 16, 64, 1 / 64])
def test_a_weight_divides_the_relative_error_by_its_root(session, weight):
    for other in (large("other", 1), small("other")):
        alone = widths(session.plan([large("one", 0)]))["one"], widths(session.plan([other]))["other"]
        found = widths(session.plan([large("one", 0, weight=weight), other]))
        relative = (found["other"] / alone[1]) / (found["one"] / alone[0])
        assert relative == pytest.approx(np.sqrt(weight), rel=0.05 if other.asked.max_groups is None else 0.12)


def test_the_largest_and_the_smallest_weight_may_be_in_one_plan(session):
    found = widths(session.plan([large("one", 0, weight=64), large("other", 1, weight=1 / 64)]))
    assert found["other"] / found["one"] == pytest.approx(64, rel=0.05)
    for weight in (65, 1 / 65):
        with pytest.raises(PlanError, match="from 1/64 to 64") as refusal:
            large("one", 0, weight=weight)
        assert refusal.value.name == "weight"


@pytest.mark.parametrize("question", [
    tr.count(by="city", weight=4), tr.mean("x", bounds=(0, 3)), tr.median("x", bounds=(0, 3)),
    tr.variance("x", bounds=(0, 3), by="city", keys=KEYS), tr.count_distinct(),
])  # fmt: skip
def test_a_plan_of_one_question_is_the_same_by_both_rules(session, question):
    draft = session.plan([question]).draft
    assert draft.planning_rule == ONE_SIZE_RULE and draft.plan_by_previous_rule is None
    assert all(
        vector.noise_spec.eighths in EIGHTHS
        for query_group in draft.query_groups
        for vector in query_group.noisy_statistics
    )


def test_equal_needs_keep_eighths():
    assert commensurate_sizes([1.0, 1.0, 0.5, 0.25]) == [8, 8, 4, 2]
    sizes = [1.0, 0.577, 0.0316, 7.3]
    units = commensurate_sizes(sizes)
    scale = units[0] / sizes[0]
    assert all(unit == pytest.approx(scale * size, rel=0.045) for unit, size in zip(units, sizes, strict=True))


@pytest.mark.parametrize("rows", [4, 60])
def test_certificates_with_far_apart_weights_are_confirmed(rows):
    table = pd.DataFrame({"id": [1, 2, 3], "city": KEYS, "x": [1.0, 2.0, 3.0]})
    session = tr.Session(table, privacy_unit="id", max_rows=rows, budget=tr.Budget(epsilon=1, delta=1e-6))
    questions = [large("a", 0), large("b", 1, weight=4), small("c", weight=64)]
    claims = check_document(json.dumps(session.plan(questions).release().certificate))
    assert worst_verdict(claims) == CONFIRMED, [claim for claim in claims if claim.verdict in (NOT_CONFIRMED, REFUTED)]


def test_a_plan_of_equal_questions_keeps_its_noise():
    """One common size, as for a plan in which only bounds are compared."""
    session = tr.Session(pd.DataFrame({"x": [1.0]}), privacy_unit=None, budget=tr.Budget(epsilon=1, delta=1e-6))
    plan = session.plan([tr.count(where=f"x > {n}", name=f"n{n}", weight=4 if n else 1) for n in range(3)])
    specs = [vector.noise_spec for query_group in plan.draft.query_groups for vector in query_group.noisy_statistics]
    assert [spec.eighths for spec in specs] == [8, 4, 4]


def test_quantiles_of_several_weights_share_the_finest_counts(session):
    questions = [tr.quantile("x", q, bounds=(0, 3), weight=weight) for q, weight in ((0.5, 4), (0.9, 1))]
    plan = session.plan([*questions, small()])
    (query_group, _) = plan.draft.query_groups
    assert len(query_group.noisy_statistics) == 2
    assert [len(answer.rows) for answer in plan.release()] == [1, 1, 3]


def test_a_plan_says_what_a_question_would_have_alone_and_what_a_weight_buys(session):
    questions = [small(), large("a", 0), large("b", 1)]
    alone = widths(session.plan([small()]))["small"]
    plan = session.plan(questions)
    part = plan.document().answers[0].alone
    assert (part.rows, part.half_width_95, part.alone, part.weight) == (None, widths(plan)["small"], alone, 4)
    heavier = widths(session.plan([small(weight=4), *questions[1:]]))
    assert part.weighted == pytest.approx(heavier["small"], rel=0.1, abs=1)  # an integer
    assert part.others_times == pytest.approx(heavier["a"] / widths(plan)["a"], rel=0.05)
    expected = f"if it were the only question of the plan: ± {alone:g}; with weight = 4 in place of 1: about ±"
    assert expected in str(plan)
    assert "with weight = 256" not in str(session.plan([small(weight=64), large("a", 0)]))
    assert "alone it would" not in str(session.plan([small()]))
    assert session.plan([small()]).document().answers[0].alone is None


def test_an_almost_free_question_hardly_changes_another(session):
    plan = session.plan([small(weight=1 / 64), large("a", 0, weight=64)])
    assert [answer.alone is None for answer in plan.document().answers] == [False, True]


def test_the_table_of_budgets_has_the_errors_of_plans_with_these_budgets():
    table = pd.DataFrame({"id": [1, 2, 3], "city": KEYS, "x": [1.0, 2.0, 3.0]})
    questions = [small(), large("a", 0), tr.mean("x", bounds=(0, 3))]
    budgets = [tr.Budget(epsilon=epsilon, delta=1e-3) for epsilon in ("0.3", 4)]

    def planned(budget):
        session = tr.Session(table, privacy_unit="id", max_rows=8, max_rows_per_group=1, budget=budget)
        return session.plan(questions, expected_rows=1000)

    rows = planned(tr.Budget(epsilon=1, delta=1e-3)).table(budgets)
    for row, budget in zip(rows, budgets, strict=True):
        shown = {name: value if isinstance(value, float) else value["1000"] for name, value in row["answers"].items()}
        assert shown == pytest.approx(widths(planned(budget)), rel=0.01)


@pytest.mark.parametrize("part", ["0.02", "0.2"])
def test_bias_checks_keep_their_part_beside_uneven_questions(session, part):
    questions = [small(), large("a", 0), tr.sum("x", bounds=(0, 3), by="city", keys=KEYS)]
    without, checked = session.plan(questions), session.plan(questions, bias_check=part)
    tallies = sum(len(query_group.diagnostic_counts) for query_group in checked.draft.query_groups)
    assert tallies >= 3
    for name, width in widths(checked).items():
        assert width <= widths(without)[name] * 1.03 / (1 - float(part))
    claims = check_document(json.dumps(checked.release().certificate))
    assert worst_verdict(claims) in (
        CONFIRMED,
        NOT_CONFIRMED,
    )  # grids of very different tables can be too long to confirm


def test_noise_that_would_be_useless_is_refused():
    table = pd.DataFrame({"id": [1, 2, 3], "city": KEYS, "x": [1.0, 2.0, 3.0]})
    session = tr.Session(table, privacy_unit="id", max_rows=10_000, budget=tr.Budget(epsilon="0.05", delta=1e-6))
    with pytest.raises(InsufficientBudgetError, match="needs noise of about"):
        session.plan([small(), large("a", 0)])


# A ledger goes on by the rule of each entry.


def opened(place):
    table = pd.DataFrame({"id": [1, 2, 3], "city": KEYS, "x": [1.0, 2.0, 3.0]})
    budget = tr.Budget(epsilon=4, delta=1e-6)
    return tr.Session.open(table, ledger=place, dataset="d", privacy_unit="id", max_rows=4, budget=budget)


QUESTIONS = [small(), large("a", 0), tr.mean("x", bounds=(0, 3))]


def test_a_key_charged_by_the_former_rule_gives_its_answers_again(tmp_path, monkeypatch):
    with monkeypatch.context() as former:
        plan_by_former_rule(former, ONE_SIZE_RULE)
        first = opened(tmp_path / "ledger").plan(QUESTIONS, budget_fraction="0.25", key="march").release()
    session = opened(tmp_path / "ledger")
    again = session.plan(QUESTIONS, budget_fraction="0.25", key="march")
    assert again.draft.planning_rule == ONE_SIZE_RULE
    assert [one.rows for one in again.release()] == [one.rows for one in first]
    assert session.spent["budget_fraction"] == "0.25"
    fresh = session.plan(QUESTIONS, budget_fraction="0.25", key="april")
    assert fresh.draft.planning_rule == EVEN_ERRORS_RULE
    assert widths(fresh)["small"] < widths(again)["small"]
    april = fresh.release()
    assert [one.rows for one in session.plan(QUESTIONS, budget_fraction="0.25", key="april").release()] == [
        one.rows for one in april
    ]
    assert session.spent["budget_fraction"] == "0.5"
    assert session.plan(QUESTIONS[:2], budget_fraction="0.25", key="march").draft.planning_rule == EVEN_ERRORS_RULE
    with pytest.raises(InputError, match="march"):
        session.plan(QUESTIONS[:2], budget_fraction="0.25", key="march").release()


def test_entries_state_their_rule_unless_it_is_the_first(tmp_path, monkeypatch):
    session = opened(tmp_path / "ledger")
    rules = []
    for questions in (QUESTIONS, QUESTIONS[:1]):
        claim = release_claim(session.plan(questions, budget_fraction="0.25").draft, "key", None)
        rules.append(json.loads(claim.noise_record).get("planning_rule"))
        assert NoiseRecord.from_text(claim.noise_record).to_text == claim.noise_record
    assert rules == [EVEN_ERRORS_RULE, None]


def test_an_unanswered_release_by_the_former_rule_is_resumed(tmp_path, monkeypatch):
    def open_session():
        return opened(tmp_path / "ledger")

    session, resumed = resume_killed_release(monkeypatch, ONE_SIZE_RULE, open_session, QUESTIONS)
    assert resumed.draft.planning_rule == ONE_SIZE_RULE
    assert len(resumed.release()) == 3 and session.spent["budget_fraction"] == "0.25"
    next_plan = session.plan(QUESTIONS, budget_fraction="0.25")
    assert session.resumed(next_plan) is next_plan


def test_a_series_of_the_former_rule_goes_on(tmp_path, monkeypatch):
    with monkeypatch.context() as former:
        plan_by_former_rule(former, ONE_SIZE_RULE)
        session = opened(tmp_path / "ledger")
        session.series(session.plan(QUESTIONS, budget_fraction="0.5"), times=3, key="monthly").next().release()
    session = opened(tmp_path / "ledger")
    series = session.series(session.plan(QUESTIONS, budget_fraction="0.5"), times=3, key="monthly")
    assert series.released == 1
    assert series.next().release().certificate["epsilon"] < 2
    other = session.series(session.plan(QUESTIONS, budget_fraction="0.25"), times=3, key="new")
    assert other.next().draft.planning_rule == EVEN_ERRORS_RULE
