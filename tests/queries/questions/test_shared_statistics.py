"""Questions that need equal sums of the same rows share one draw of noise, which is charged once."""

from __future__ import annotations

import json
import math

import numpy as np
import pandas as pd
import pytest

import tightrope as tr
from tightrope.ledger import Ledger
from tightrope.release.build_answers import AnswerBuilder, certificate_of
from tightrope.verify.check import check_document
from tightrope.verify.claims import CONFIRMED, worst_verdict

RANDOM = np.random.default_rng(20)
VALUES = np.concatenate([RANDOM.normal(60, 15, 380), [math.nan] * 20]).round(2)
TABLE = pd.DataFrame({"id": np.arange(400) // 2, "x": VALUES, "y": VALUES * 2 + RANDOM.normal(0, 5, 400)})
BOUNDS, DRAWS = (0, 100), 400


def session(**options):
    return tr.Session(TABLE, privacy_unit="id", max_rows=2, budget=tr.Budget(epsilon=1, delta=1e-6), **options)


def half_widths(plan):
    return {one.question.asked.name: one.errors_at_size(1000)["half_width_95"] for one in plan.accuracies()}


def spread():
    return [tr.variance("x", bounds=BOUNDS), tr.standard_deviation("x", bounds=BOUNDS)]


def pair(make, **options):
    return make("x", "y", bounds=BOUNDS, other_bounds=(0, 200), **options)


@pytest.mark.parametrize(
    ("questions", "vectors"),
    [
        (spread(), 3),
        ([tr.mean("x", bounds=BOUNDS), tr.mean("x", bounds=BOUNDS, name="again")], 2),
        ([tr.mean("x", bounds=BOUNDS), *spread()], 3),
        ([pair(tr.covariance), pair(tr.correlation)], 6),
        ([tr.mean("x", bounds=BOUNDS), tr.mean("x", bounds=(0, 50), name="other")], 3),
        ([tr.mean("x", bounds=BOUNDS), tr.variance("x", bounds=(0, 50))], 4),
        ([tr.mean("x", bounds=BOUNDS), tr.mean("y", bounds=BOUNDS)], 4),
        ([tr.mean("x", bounds=BOUNDS), tr.mean("x", bounds=BOUNDS, where="y > 0", name="other")], 4),
        ([tr.quantile("x", 0.5, bounds=BOUNDS), tr.quantile("x", 0.9, bounds=BOUNDS)], 2),
    ],
)
def test_equal_sums_have_one_mechanism_and_others_their_own(questions, vectors):
    plan = session().plan(questions)
    certificate = plan.release().certificate
    assert len(certificate["mechanisms"]) == vectors
    assert sorted({name for one in certificate["mechanisms"] for name in one["answers"]}) == sorted(half_widths(plan))
    claims = check_document(json.dumps(certificate))
    assert worst_verdict(claims) == CONFIRMED, [claim for claim in claims if claim.verdict != CONFIRMED]


def test_a_second_question_about_the_same_sums_costs_nothing():
    (alone,) = half_widths(session().plan(spread()[:1])).values()
    assert half_widths(session().plan(spread()))["variance_x"] == pytest.approx(alone, rel=1e-6)
    both = half_widths(session().plan([tr.mean("x", bounds=BOUNDS), *spread()[:1]]))
    (mean_alone,) = half_widths(session().plan([tr.mean("x", bounds=BOUNDS)])).values()
    assert both["variance_x"] < 1.2 * alone and both["mean_x"] < 1.6 * mean_alone


def test_the_standard_deviation_is_the_root_of_the_variance_of_the_same_draw():
    variance, deviation = (answer.rows[0] for answer in session().plan(spread()).release())
    for end in ("value", "lower", "upper"):
        assert deviation[end] == math.sqrt(max(variance[end], 0))
    assert variance["usable"] == deviation["usable"]


def test_the_larger_weight_sets_the_noise_of_shared_sums():
    light, heavy = tr.mean("x", bounds=BOUNDS), tr.mean("x", bounds=BOUNDS, weight=16, name="heavy")
    other = tr.count(where="x > 50")
    found = half_widths(session().plan([light, heavy, other]))
    assert found["mean_x"] == found["heavy"] == half_widths(session().plan([heavy, other]))["heavy"]


def test_every_interval_holds_the_truth_in_19_of_20_draws():
    questions = [tr.mean("x", bounds=BOUNDS), *spread(), tr.mean("x", bounds=BOUNDS, name="again", weight=4)]
    plan = session().plan(questions)
    builder = AnswerBuilder(plan.draft, certificate_of(plan.draft))
    exact = []
    for query_group in plan.draft.query_groups:
        request = query_group.table_request
        with plan._table_release.table.open_snapshot([request]) as rows:
            exact.append(rows.collect_totals(request))
    clipped = TABLE["x"].dropna().clip(*BOUNDS)
    truth = {"mean_x": clipped.mean(), "variance_x": clipped.var(ddof=0), "again": clipped.mean()}
    truth["standard_deviation_x"] = math.sqrt(truth["variance_x"])
    inside = dict.fromkeys(truth, 0)
    for _ in range(DRAWS):
        for answer in builder.build_answers(exact):
            inside[answer.name] += answer.rows[0]["lower"] <= truth[answer.name] <= answer.rows[0]["upper"]
    assert min(inside.values()) >= 0.95 * DRAWS - 6 * math.sqrt(0.95 * 0.05 * DRAWS), inside


def test_a_mean_beside_a_variance_has_the_same_value_with_hardly_any_noise():
    table = pd.DataFrame({"x": np.repeat(VALUES, 1000)})
    budget = tr.Budget(epsilon=30, delta=1e-6)
    answers = (
        tr.Session(table, privacy_unit=None, budget=budget).plan([tr.mean("x", bounds=BOUNDS), *spread()]).release()
    )
    clipped = table["x"].dropna().clip(*BOUNDS)
    assert answers["mean_x"].value == pytest.approx(clipped.mean(), abs=1e-3)
    assert answers["variance_x"].value == pytest.approx(clipped.var(ddof=0), abs=0.1)


def test_counts_that_add_up_keep_noise_of_their_own():
    """Least squares with their totals needs independent noise."""
    table = pd.DataFrame({"x": [1.0, 60.0]})
    questions = [tr.count(), *(tr.count(by="x > 50", keys=[True, False], name=name) for name in ("a", "b"))]
    plan = tr.Session(table, privacy_unit=None, budget=tr.Budget(epsilon=1, delta=1e-6)).plan(questions)
    assert sum(len(query_group.noisy_statistics) for query_group in plan.draft.query_groups) == 3


def test_a_ledger_charges_and_checks_shared_sums(tmp_path):
    options = {"privacy_unit": "id", "max_rows": 2, "budget": tr.Budget(epsilon=1, delta=1e-6)}
    opened = tr.Session.open(TABLE, ledger=tmp_path / "ledger", dataset="d", **options)
    first = opened.plan(spread(), budget_fraction="0.5", key="one").release()
    again = opened.plan(spread(), budget_fraction="0.5", key="one").release()
    assert [one.rows for one in first] == [one.rows for one in again]
    assert opened.spent["budget_fraction"] == "0.5"
    assert Ledger(tmp_path / "ledger").open_account("d").current_state().releases == 1
