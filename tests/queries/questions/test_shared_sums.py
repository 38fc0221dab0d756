"""A sum beside a mean or variance of the same values uses their noisy numbers, if no margin of error grows."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
import pytest

import tightrope as tr
from tightrope.release.planner import EVEN_ERRORS_RULE, SHARED_COST_RULE
from tightrope.verify.check import check_document
from tightrope.verify.claims import CONFIRMED, worst_verdict

VALUES = [float(i % 7) for i in range(400)] + [math.nan] * 10
TABLE = pd.DataFrame({"id": range(410), "x": VALUES, "y": 1.0, "g": ["a", "b"] * 205})
LARGE = tr.Budget(epsilon=8, delta=1e-6)


def planned(questions: list[Any], budget: tr.Budget | None = None, **settings: Any) -> Any:
    unit = {"privacy_unit": None, "budget": budget or tr.Budget(epsilon=1, delta=1e-6), **settings}
    return tr.Session(TABLE, **unit).plan(questions)


def errors(draft: Any) -> dict[str, tuple[float, float]]:
    at_size = {one.question.asked.name: one.errors_at_size(1000) for one in draft.query_accuracies}
    return {name: (one["half_width_95"], one["expected_absolute_error"]) for name, one in at_size.items()}


def by_former_rule(plan: Any) -> Any:
    return replace(plan.draft.planner, rule=EVEN_ERRORS_RULE).make_draft()


def beside(kind: Any, bounds: tuple[float, float], **options: Any) -> list[Any]:
    return [kind("x", bounds=bounds, name="other", **options), tr.sum("x", bounds=bounds, name="sum", **options)]


@pytest.mark.parametrize("delta", [1e-6, 0])
@pytest.mark.parametrize("bounds", [(0, 10), (-10, 10), (-3, 10), (100, 110), (-1, 0)])
def test_both_get_more_accurate_than_with_noise_of_their_own(bounds, delta):
    plan = planned(beside(tr.mean, bounds), tr.Budget(epsilon=1, delta=delta))
    assert plan.draft.planning_rule == SHARED_COST_RULE
    shared, own = errors(plan.draft), errors(by_former_rule(plan))
    assert shared["other"][0] < 0.6 * own["other"][0]
    assert shared["sum"][0] < 0.97 * own["sum"][0] and shared["sum"][1] < 0.97 * own["sum"][1]


@pytest.mark.parametrize("kind", [tr.mean, tr.variance, tr.standard_deviation])
@pytest.mark.parametrize("weights", [(1, 4), (1, 1), (16, 1)])
@pytest.mark.parametrize("bounds", [(0, 10), (-9, 10), (1000, 1001)])
def test_no_margin_of_error_grows(kind, weights, bounds):
    questions = [kind("x", bounds=bounds, name="other", weight=weights[0])]
    plan = planned([*questions, tr.sum("x", bounds=bounds, name="sum", weight=weights[1])])
    shared, own = errors(plan.draft), errors(by_former_rule(plan))
    assert all(shared[name][0] <= 1.02 * own[name][0] for name in own)


def test_the_sum_of_a_range_around_zero_needs_no_count():
    plan = planned(beside(tr.mean, (-10, 10)))
    assert [
        len(vectors) for query_group in plan.draft.query_groups for vectors in query_group.vectors_by_query.values()
    ] == [2, 1]


@pytest.mark.parametrize("kind", [tr.mean, tr.variance])
@pytest.mark.parametrize("bounds", [(0, 7), (-8, 8), (2, 4), (-1e-3, 1e6)])
def test_almost_without_noise_it_is_the_sum_of_the_clamped_values(kind, bounds):
    """Missing values count in neither the sum nor the number of values."""
    answers = planned(beside(kind, bounds), LARGE).release()
    truth = np.nansum(np.clip(TABLE["x"], *bounds))
    assert answers["sum"].value == pytest.approx(truth, abs=(bounds[1] - min(bounds[0], 0)) * 6)
    assert answers["sum"].lower <= answers["sum"].value <= answers["sum"].upper


@pytest.mark.parametrize(
    ("kind", "bounds"), [(tr.mean, (0, 10)), (tr.mean, (-2, 10)), (tr.mean, (100, 110)), (tr.variance, (0, 10))]
)
def test_intervals_hold_and_the_stated_error_is_the_mean_error(kind, bounds):
    plan = planned(beside(kind, bounds))
    accuracy = next(one for one in plan.draft.query_accuracies if one.question.asked.name == "sum")
    noises, draws = accuracy.noises_by_name, 20_000
    assert len(noises) == 2
    sampled = {name: np.asarray(noise.noise_mechanism.sample(draws)) for name, noise in noises.items()}
    records = [
        accuracy.question.estimate({name: int(one[i]) for name, one in sampled.items()}, noises) for i in range(draws)
    ]
    value, lower, upper = (np.array([one[name] for one in records]) for name in ("value", "lower", "upper"))
    covered = np.mean((lower <= 0) & (upper >= 0))
    half_width, expected = errors(plan.draft)["sum"]
    assert 0.945 < covered < 0.965
    assert np.all(np.abs((upper - lower) / 2 - half_width) < 1e-6 * half_width)
    assert np.mean(np.abs(value)) == pytest.approx(expected, rel=0.04)
    assert np.mean(np.abs(value)) < expected * 1.02
    tail = accuracy.question.estimate(dict.fromkeys(noises, 0), noises, 1e-9)
    assert tail["upper"] > 2 * half_width


def test_sums_that_add_up_keep_noise_of_their_own():
    """Least squares makes a total and its parts consistent, for which their noise must be independent."""
    questions = [*beside(tr.mean, (0, 10)), tr.sum("x", bounds=(0, 10), by="y > 0", name="parts")]
    plan = planned(questions)
    assert plan.draft.planning_rule < SHARED_COST_RULE
    assert {name for answer_set in plan.draft.sums.joined for name in answer_set.answers} == {"sum", "parts"}


def test_other_values_are_not_shared():
    questions = [tr.mean("x", bounds=(0, 10)), tr.sum("x", bounds=(0, 9)), tr.sum("y", bounds=(0, 10))]
    assert planned(questions).draft.planning_rule < SHARED_COST_RULE


@pytest.mark.parametrize("settings", [{}, {"privacy_unit": "id", "max_rows": 3}])
@pytest.mark.parametrize("costs", ["0", "0.05"])
def test_groups_persons_and_comparisons_are_released_and_verified(settings, costs):
    session = tr.Session(TABLE, **{"privacy_unit": None, "budget": LARGE, **settings})
    questions = [
        *beside(tr.mean, (0, 10), by="g"),
        tr.variance("y", bounds=(0, 2), name="v"),
        tr.sum("y", bounds=(0, 2)),
    ]
    compared = [tr.comparison("difference", "sum", between={"g": ("a", "b")})]
    answers = session.plan(questions, bias_check=costs, comparisons=compared).release()
    rows = {row["g"]: row["value"] for row in answers["sum"].rows}
    for key, own in TABLE.groupby("g"):
        assert rows[key] == pytest.approx(own["x"].sum(), abs=200)
    claims = check_document(answers.to_json())
    assert worst_verdict(claims) == CONFIRMED, [one for one in claims if one.verdict != CONFIRMED]
    served = [one["answers"] for one in json.loads(answers.to_json())["certificate"]["mechanisms"]]
    assert ["other", "sum"] in served and ["v", "sum_y"] in served


def test_the_answer_says_what_it_shares():
    data = {one["name"]: one["notes"] for one in planned(beside(tr.mean, (0, 10))).draft.to_data()["answers"]}
    assert any("computed from the noisy numbers of the mean" in note for note in data["sum"])
    assert not any("computed from the noisy numbers of the mean" in note for note in data["other"])
