"""Minimum and maximum without the values that are farthest out: how many, where they lie, and what labels say."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from fractions import Fraction
from functools import cache
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

import tightrope as tr
from tightrope.errors import PlanError
from tightrope.mechanisms.discrete.integer_tables import geometric_table
from tightrope.mechanisms.exponential import (
    PARTS,
    ExponentialChoice,
    QuantileChoice,
    cell_distances,
    half_widths,
    rows_to_leave_out,
    width_distances,
)
from tightrope.queries.cell_counts import ALL_CELLS
from tightrope.queries.query import Query
from tightrope.release.answers import Answers
from tightrope.release.plan import Plan
from tightrope.verify.check import check_document
from tightrope.verify.claims import REFUTED

BUDGET = tr.Budget(epsilon=1, delta=1e-8)
BY_LUCK = 1e-9
counts_of_cells = st.lists(st.integers(0, 3) | st.sampled_from([0, 0, 50]), min_size=1, max_size=40)
extremes = st.builds(QuantileChoice, st.sampled_from([0, PARTS]), left_out=st.integers(0, 12))


@cache
def noise_law(scale: float, factor: int) -> ExponentialChoice:
    return ExponentialChoice.from_table(geometric_table(scale), factor)


def target_cell(choice: QuantileChoice, counts: Sequence[int]) -> int:
    """The cell of the minimum or maximum without the rows left out; without other rows, the far end of the range."""
    rows = [cell for cell, count in enumerate(counts) for _ in range(count)]
    if len(rows) <= choice.left_out:
        return 0 if choice.below else len(counts) - 1
    return rows[-1 - choice.left_out] if choice.below else rows[choice.left_out]


@given(extremes, counts_of_cells, st.data())
@settings(deadline=None, max_examples=200)
def test_a_row_moves_distances_by_one_row_at_most(choice: QuantileChoice, counts: list[int], data: st.DataObject):
    cell, center = (data.draw(st.integers(0, len(counts) - 1)) for _ in range(2))
    target = data.draw(st.integers(0, 20)) * PARTS
    without = choice.excess_at_edges(np.array(counts))
    added = choice.excess_at_edges(np.array(counts) + (np.arange(len(counts)) == cell))
    assert choice.distance_sensitivity == PARTS
    assert np.max(np.abs(cell_distances(without) - cell_distances(added))) <= PARTS
    assert np.max(np.abs(width_distances(without, center, target) - width_distances(added, center, target))) <= PARTS


@given(extremes, counts_of_cells)
def test_the_target_has_distance_0_and_cells_beyond_all_rows_the_rows_left_out(
    choice: QuantileChoice, counts: list[int]
):
    distances = cell_distances(choice.excess_at_edges(np.array(counts)))
    if sum(counts) > choice.left_out:
        assert distances[target_cell(choice, counts)] == 0
        filled = np.flatnonzero(counts)
        beyond = distances[filled[-1] + 1 :] if choice.below else distances[: filled[0]]
        assert all(beyond >= choice.left_out * PARTS)


@given(extremes, counts_of_cells, st.sampled_from([(0.3, 10), (3.0, 1_000_001), (8.0, 250_000), (40.0, 50_000)]))
@settings(deadline=None, max_examples=100)
def test_intervals_miss_the_target_5_percent_of_the_time_at_most(
    choice: QuantileChoice, counts: list[int], parameters: tuple[float, int]
):
    law, widths, cell = noise_law(*parameters), half_widths(len(counts)), target_cell(choice, counts)
    excess, target = choice.excess_at_edges(np.array(counts)), choice.target_excess(law, len(counts))
    for center in range(len(counts)):
        weights = law.candidate_weights(width_distances(excess, center, target))
        missed = sum(weight for width, weight in zip(widths, weights, strict=True) if abs(cell - center) > width)
        assert Fraction(missed, sum(weights)) <= Fraction(1, 20)


@pytest.mark.parametrize("scale", [3.0, 40.0])
def test_cells_beyond_all_rows_are_rarely_chosen_and_one_row_fewer_would_not_do(scale: float):
    """Exactly, by the weights: one row far from the end, so that nearly all cells are beyond it."""
    value, width = noise_law(scale, 250_000), noise_law(0.3, 10)
    rows = rows_to_leave_out(value, width, ALL_CELLS)

    def chance_beyond(left_out: int) -> Fraction:
        counts = np.zeros(ALL_CELLS, dtype=np.int64)
        counts[1] = 10_000
        excess = QuantileChoice(PARTS, left_out=left_out).excess_at_edges(counts)
        weights = value.candidate_weights(cell_distances(excess))
        return Fraction(sum(weights[2:]), sum(weights))

    assert chance_beyond(rows) <= Fraction(1, 20) < 3 * chance_beyond(rows - math.ceil(rows / 5))


def heights(rows: int = 4_000) -> pd.DataFrame:
    random = np.random.default_rng(5)
    return pd.DataFrame({"x": random.lognormal(3, 0.8, rows).clip(0, 990), "g": np.arange(rows) % 2})


def draws(opened: tr.Session, plan: Plan, times: int) -> list[Answers]:
    builder = plan._table_release.prepare_answers()
    exact = [opened._table.collect_totals(query_group.table_request) for query_group in plan.draft.query_groups]
    return [builder.build_answers(exact) for _ in range(times)]


def left_out_of(plan: Plan) -> list[int]:
    return [accuracy.question.rows_without_value for accuracy in plan.draft.query_accuracies]


@pytest.mark.parametrize("kind", ["minimum", "maximum"])
def test_values_lie_inside_of_all_rows_and_intervals_hold(kind: str):
    opened = tr.Session(heights(), privacy_unit=None, budget=BUDGET)
    plan = opened.plan([getattr(tr, kind)("x", bounds=(0, 1_000))])
    (left_out,), values, cell = left_out_of(plan), np.sort(heights()["x"]), 1_000 / ALL_CELLS
    truth = values[left_out] if kind == "minimum" else values[-1 - left_out]
    held = inside = 0
    times = 200
    for (answer,) in draws(opened, plan, times):
        (row,) = answer.rows
        held += row["lower"] <= truth <= row["upper"]
        beyond = values < row["value"] - cell if kind == "minimum" else values > row["value"] + cell
        not_beyond_all = row["value"] >= values[0] - cell if kind == "minimum" else row["value"] <= values[-1] + cell
        inside += not_beyond_all and beyond.sum() <= 2 * left_out
    assert stats.binom.cdf(held, times, 0.95) > BY_LUCK
    assert stats.binom.cdf(inside, times, 0.95) > BY_LUCK


def test_titles_state_what_is_left_out_wherever_they_stand(tmp_path: Path):
    plan = tr.Session(heights(), privacy_unit=None, budget=BUDGET).plan([tr.maximum("x", bounds=(0, 1_000))])
    (left_out,) = left_out_of(plan)
    title = f"aximum of all but the {left_out} largest values of x (clamped to [0 1000])"
    answers = plan.release()
    answers.report(tmp_path / "report.html")
    page = (tmp_path / "report.html").read_text(encoding="utf-8")
    texts = {"plan": str(plan), "answer": repr(answers.answers[0]), "csv": answers.to_csv(), "json": answers.to_json()}
    for name, text in {**texts, "page": page}.items():
        assert title in text.replace(",", ""), name
    assert "the true maximum is the value of one person" in str(plan)


def test_the_number_left_out_follows_from_the_noise_and_falls_with_the_budget():
    def left_out(epsilon: float, rows: int, max_rows: int = 1) -> int:
        table = heights(rows).assign(who=np.arange(rows))
        session = tr.Session(table, privacy_unit="who", max_rows=max_rows, budget=tr.Budget(epsilon=epsilon, delta=0))
        return left_out_of(session.plan([tr.maximum("x", bounds=(0, 1_000))]))[0]

    assert left_out(1, 40) == left_out(1, 4_000)
    assert left_out(1, 40) <= 50
    assert left_out(4, 40) < left_out(1, 40) / 3
    assert left_out(1, 40, max_rows=3) > 2 * left_out(1, 40)


def test_few_rows_are_suppressed_by_a_count_of_the_same_rows():
    questions: list[Query] = [tr.maximum("x", bounds=(0, 1_000)), tr.count()]
    opened = tr.Session(heights(60), privacy_unit=None, budget=BUDGET)
    plan = opened.plan(questions)
    assert left_out_of(plan)[0] > 60
    for answers in draws(opened, plan, 5):
        assert [answers[0].rows[0][name] for name in ("value", "lower", "upper")] == [None, 0, 1_000]
    assert "or less (by its interval), the value is suppressed" in str(plan)
    opened = tr.Session(heights(4_000), privacy_unit=None, budget=BUDGET)
    assert all(answers[0].rows[0]["value"] is not None for answers in draws(opened, opened.plan(questions), 5))


def test_extremes_and_quantiles_of_one_column_stand_together_and_are_verified():
    table = heights().assign(who=np.arange(4_000) // 2)
    questions = [
        tr.minimum("x", bounds=(0, 1_000)),
        *tr.quantiles("x", [0.25, 0.75], bounds=(0, 1_000)),
        tr.maximum("x", bounds=(0, 1_000)),
        tr.maximum("x", bounds=(0, 500), by="g", keys=[0, 1], name="by_g"),
        tr.minimum("*", bounds=(0, 10), per_person="count"),
    ]
    plan = tr.Session(table, privacy_unit="who", max_rows=2, budget=BUDGET).plan(questions)
    assert [question.counted for question in plan.draft.questions if isinstance(question, tr.quantile)] == [True, True]
    answers = plan.release()
    low, quarter, _, high = (answer.rows[0]["value"] for answer in answers.answers[:4])
    assert low < quarter < high
    document = json.loads(answers.to_json())

    def refuted() -> list[str]:
        return [claim.name for claim in check_document(json.dumps(document)) if claim.verdict == REFUTED]

    assert not refuted()
    for mechanism in document["certificate"]["mechanisms"]:
        if mechanism["choice"] is not None and mechanism["choice"]["left_out"] is not None:
            mechanism["choice"]["left_out"] = str(int(mechanism["choice"]["left_out"]) - 1)
    assert sum("rows left out" in name for name in refuted()) == 4


def test_dates_have_a_first_and_a_last():
    days = pd.DataFrame({"day": pd.date_range("2024-01-01", periods=366).repeat(40)})
    session = tr.Session(days, privacy_unit=None, budget=BUDGET)
    first, last = session.plan(
        [
            tr.minimum("day", bounds=("2023-01-01", "2025-12-31")),
            tr.maximum("day", bounds=("2023-01-01", "2025-12-31")),
        ]
    ).release()
    assert str(first.value).startswith("2024-01") and str(last.value).startswith("2024-12")


def test_wrong_options_are_refused():
    with pytest.raises(PlanError) as raised:
        tr.maximum("x", bounds=(0, 1), by="g", keys=[1], max_groups=2)
    assert raised.value.name == "max_rows_per_group"
    with pytest.raises(PlanError, match=r"tr\.minimum"):
        tr.quantile("x", 1, bounds=(0, 1))
