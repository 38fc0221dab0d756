"""Even relative errors: with equal weights every question's error is the same multiple of its error alone."""

from __future__ import annotations

import json

import numpy as np
import pandas as pd
import pytest

import tightrope as tr
from tightrope.errors import PlanError
from tightrope.release.relative_sizes import commensurate_sizes
from tightrope.verify.check import check_document
from tightrope.verify.claims import CONFIRMED, OPEN, REFUTED, worst_verdict

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


@pytest.mark.parametrize("weight", [2, 4, 100, 1000])
def test_a_weight_divides_the_relative_error_by_its_root(session, weight):
    for other in (large("other", 1), small("other")):
        alone = widths(session.plan([large("one", 0)]))["one"], widths(session.plan([other]))["other"]
        found = widths(session.plan([large("one", 0, weight=weight), other]))
        relative = (found["other"] / alone[1]) / (found["one"] / alone[0])
        assert relative == pytest.approx(np.sqrt(weight), rel=0.05 if other.asked.max_groups is None else 0.12)


def test_larger_ratios_are_refused(session):
    with pytest.raises(PlanError, match="1000 times") as refusal:
        session.plan([large("one", 0, weight=1001), large("other", 1)])
    assert refusal.value.name == "weight"


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
    questions = [large("a", 0), large("b", 1, weight=4), small("c", weight=100)]
    claims = check_document(json.dumps(session.plan(questions).release().certificate))
    assert worst_verdict(claims) == CONFIRMED, [claim for claim in claims if claim.verdict in (OPEN, REFUTED)]


def test_a_plan_of_equal_questions_keeps_its_noise():
    """One common size, as for a plan in which only bounds are compared."""
    session = tr.Session(pd.DataFrame({"x": [1.0]}), privacy_unit=None, budget=tr.Budget(epsilon=1, delta=1e-6))
    plan = session.plan([tr.count(where=f"x > {n}", name=f"n{n}", weight=4 if n else 1) for n in range(3)])
    specs = [vector.noise_spec for task in plan.draft.tasks for vector in task.noisy_statistics]
    assert [spec.eighths for spec in specs] == [8, 4, 4]


def test_a_plan_says_what_a_question_would_have_alone_and_what_a_weight_buys(session):
    questions = [small(), large("a", 0), large("b", 1)]
    alone = widths(session.plan([small()]))["small"]
    line = next(line for line in str(session.plan(questions)).split("\n") if line.startswith("small: ±"))
    assert f"alone it would be about ± {alone:.0f}" in line.replace("± 3.1", "± 3")
    heavier = widths(session.plan([small(weight=4), large("a", 0), large("b", 1)]))["small"]
    stated = float(line.split("four times its weight: about ± ")[1].split(",")[0])
    assert stated == pytest.approx(heavier, rel=0.1)
    assert "alone it would" not in str(session.plan([small()]))
