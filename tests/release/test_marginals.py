"""Releases of ``marginals``: consistent tables, honest intervals, one charge, and the same answers from a ledger."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import tightrope as tr
from tightrope.documents.release import read_result
from tightrope.errors import InsufficientBudgetError, PlanError
from tightrope.release.build_answers import AnswerBuilder, certificate_of
from tightrope.tables.request import GroupTotals

SEX, BANDS = ["F", "M"], [0, 20, 40, 60]
COLUMNS = ["sex", {"band": "cut(age, [0, 20, 40, 60])"}, "ok"]
BUDGET = tr.Budget(epsilon=1, delta=1e-8)


def people(count: int = 3000) -> pd.DataFrame:
    draw = np.random.default_rng(7)
    return pd.DataFrame(
        {
            "person": draw.integers(0, count // 3, count),
            "sex": np.array(SEX)[draw.integers(0, 2, count)],
            "age": draw.integers(0, 99, count),
            "ok": draw.integers(0, 2, count).astype(bool),
        }
    )


def question(**options: object) -> tr.marginals:
    keys = {"sex": SEX, "band": BANDS, "ok": [False, True]}
    return tr.marginals(COLUMNS, keys=keys, **options)  # type: ignore[arg-type]


@pytest.fixture(scope="module")
def plan() -> tr.release.plan.Plan:
    return tr.Session(people(), privacy_unit=None, budget=BUDGET).plan([question()])


@pytest.fixture(scope="module")
def answers(plan):
    return plan.release()


def test_every_table_is_an_answer_with_all_its_cells(answers):
    assert [answer.name for answer in answers][:3] == ["marginals", "marginals_by_sex", "marginals_by_band"]
    table = answers["marginals_by_sex_band"].to_pandas()
    assert list(table.columns) == ["sex", "band", "value", "lower", "upper"]
    assert list(zip(table["sex"], table["band"], strict=True)) == list(itertools.product(SEX, BANDS))
    half_width = answers["marginals_by_sex_band"].about["error"]["half_width_95"]
    assert np.allclose(table["upper"] - table["value"], half_width, rtol=1e-9)
    assert abs(answers["marginals"].value - 3000) < 20 * half_width


def test_tables_add_up_to_each_other(plan, answers):
    frames = {answer.key_columns: answer.to_pandas() for answer in answers}
    for names, table in frames.items():
        for fewer in (other for other in frames if set(other) < set(names)):
            sums = table.groupby(list(fewer))["value"].sum() if fewer else pd.Series([table["value"].sum()])
            assert np.allclose(sorted(sums), sorted(frames[fewer]["value"]), rtol=1e-12)
    # exactly, in fractions
    fit = plan.draft.marginal_fit
    integers = [
        np.array(part, dtype=object).reshape(measurement.shape)
        for part, measurement in zip(answers.measured, fit.group.measurements, strict=True)
    ]
    tables = fit.reconstruction.fit_tables(integers, exact=True)
    for columns, cells in tables.items():
        for axis, column in enumerate(columns):
            fewer = tuple(one for one in columns if one != column)
            assert np.all(cells.sum(axis=axis) == tables[fewer])
    assert all(isinstance(cell, Fraction) for cell in tables[0, 1].flat)


def test_plan_states_the_margin_of_error_of_each_table_next_to_that_alone(plan):
    text = str(plan)
    assert "7 tables that add up to each other" in text
    document = plan.document()
    assert all(answer.alone is not None and answer.alone.alone == 3 for answer in document.answers)
    for answer in document.answers:
        assert f"{answer.name} " in text
        assert answer.error.expected_absolute_error < answer.error.half_width_95


def test_tables_of_one_answer_document_are_read_again(answers):
    result = read_result(answers.to_json())
    assert result.measured == answers.measured
    part = result.certificate.marginals
    assert [table.answer for table in part.tables] == [answer.name for answer in answers]
    assert sum(len(integers) for integers in result.measured) > 0
    assert answers.to_csv().count("marginals_by_sex_band") == 8


def exact_totals(plan, rows: pd.DataFrame) -> GroupTotals:
    ((request,),) = ([query_group.table_request for query_group in plan.draft.query_groups],)
    return tr.tables.open_source(rows).collect_totals(request)


def test_intervals_cover_and_errors_are_those_of_the_plan(plan):
    rows = people()
    rows["band"] = pd.cut(rows["age"], [0, 20, 40, 60, 1000], right=False, labels=BANDS).astype(int)
    builder, totals = AnswerBuilder(plan.draft, certificate_of(plan.draft)), exact_totals(plan, rows)
    truth = {
        answer.name: rows.groupby(list(answer.key_columns)).size().to_numpy()
        if answer.key_columns
        else np.array([3000])
        for answer in builder.empty_answers.values()
    }
    releases = [builder.build_answers([totals]) for _ in range(400)]
    fit = plan.draft.marginal_fit
    inside, cells = 0, 0
    for table in fit.group.ordered_queries:
        values, lower, upper = (
            np.array([[row[name] for row in one[table.asked.name].rows] for one in releases])
            for name in ("value", "lower", "upper")
        )
        true = truth[table.asked.name]
        covered = (lower <= true) & (true <= upper)
        assert 0.9 <= covered.mean() <= 0.995  # cells of one release depend on each other
        inside, cells = inside + covered.sum(), cells + covered.size
        planned = float(fit.reconstruction.cell_variance(table.positions, fit.variances))
        deviation = math.sqrt(planned / len(releases))
        assert abs((values - true).mean()) < 6 * deviation
        assert 0.75 <= ((values - true) ** 2).mean() / planned <= 1.3
        expected, _ = fit.errors[table.positions].expected_error
        assert 0.8 <= np.abs(values - true).mean() / expected <= 1.2
    assert 0.94 <= inside / cells <= 0.97


def test_a_person_with_several_rows_is_charged_for_all_of_them():
    session = tr.Session(people(), privacy_unit="person", max_rows=2, budget=BUDGET)
    plan = session.plan([question(where="age < 60")])
    bounds = [group.split_bounds for query_group in plan.draft.query_groups for group in query_group.composition_groups]
    assert all(bound.largest_part == 2 for bound in bounds)
    one_row = tr.Session(people(), privacy_unit=None, budget=BUDGET).plan([question()])
    widths = [made.document().answers[-1].error.half_width_95 for made in (plan, one_row)]
    assert widths[0] > 1.5 * widths[1]
    answers = plan.release()
    assert "at most 2 rows" in answers["marginals_by_sex"].title
    assert float(plan.loss.delta(1.0)) <= 1e-8


def test_margin_of_error_takes_the_least_budget():
    session = tr.Session(people(), privacy_unit=None, budget=BUDGET)
    plan = session.plan([question(margin_of_error=40)])
    widths = [answer.error.half_width_95 for answer in plan.document().answers]
    assert 39 < max(widths) <= 40
    assert 0 < plan.budget_fraction < 1


def test_tables_weigh_alike_or_by_their_cells():
    session = tr.Session(people(), privacy_unit=None, budget=BUDGET)
    by_cells, by_tables = (
        {
            answer.name: answer.error.half_width_95
            for answer in session.plan([question(weight=weight)]).document().answers
        }
        for weight in ("cells", "tables")
    )
    assert by_tables["marginals"] < by_cells["marginals"]


def test_marginals_are_the_only_question_of_a_plan():
    session = tr.Session(people(), privacy_unit=None, budget=BUDGET)
    for questions in ([question(), tr.count()], [tr.count(), question()], [question(), question(name="b")]):
        with pytest.raises(PlanError) as caught:
            session.plan(questions)
        assert caught.value.name == "questions"


def test_bias_check_and_comparisons_are_refused():
    session = tr.Session(people(), privacy_unit="person", max_rows=2, budget=BUDGET)
    with pytest.raises(PlanError) as caught:
        session.plan([question()], bias_check=0.02)
    assert caught.value.name == "bias_check"
    with pytest.raises(PlanError):
        session.plan(
            [question()], comparisons=[tr.comparison("ratio", "marginals_by_sex", between={"sex": ("F", "M")})]
        )


def test_too_small_a_budget_is_refused():
    session = tr.Session(people(), privacy_unit=None, budget=tr.Budget(epsilon=1e-6, delta=1e-12))
    with pytest.raises(InsufficientBudgetError):
        session.plan([question()])


def test_a_ledger_returns_the_same_answers_once_charged(tmp_path: Path):
    options = {"privacy_unit": None, "budget": BUDGET, "ledger": tmp_path / "ledger.sqlite", "dataset": "people"}
    first = tr.Session.open(people(), **options).plan([question()], budget_fraction=0.5, key="one").release()
    session = tr.Session.open(people(), **options)
    again = session.plan([question()], budget_fraction=0.5, key="one").release()
    assert again.measured == first.measured
    assert again.to_data()["answers"] == first.to_data()["answers"]
    assert session.spent["budget_fraction"] == "0.5"
    with pytest.raises(Exception, match="one"):  # other tables under the same key
        session.plan([question(orders=(0, 1))], budget_fraction=0.5, key="one").release()


def test_accuracy_at_other_budgets(plan):
    rows = plan.table([tr.Budget(epsilon=2, delta=1e-8), BUDGET])
    assert rows[0]["answers"]["marginals_by_sex"] < rows[1]["answers"]["marginals_by_sex"]


@pytest.mark.parametrize(("epsilon", "delta"), [(12, 0), (16, 1e-9)])
def test_noise_that_is_nearly_always_zero_is_released(epsilon: float, delta: float):
    session = tr.Session(people(50), privacy_unit=None, budget=tr.Budget(epsilon=epsilon, delta=delta))
    plan = session.plan([tr.marginals(["ok"], keys={"ok": [False, True]}, orders=(0, 1))])
    answer = plan.release()["marginals"]
    assert answer.lower <= 50 <= answer.upper
    assert 0 < answer.about["error"]["expected_absolute_error"] < 0.01


def test_the_noise_of_the_choice_is_that_of_the_plan(plan):
    """It is not searched twice; each vector has the table of its measurement."""
    group, allocation = plan.draft.marginal_fit.group, plan.draft.allocation
    assert allocation.loss is group.selected_noise.loss
    sizes = [vector.noise_spec.eighths for vector in group.noisy_statistics]
    assert [selected.noise_spec.eighths for (selected,) in allocation.selections] == sizes
    assert plan.draft.marginal_fit.noise_tables == group.selected_noise.tables
    assert {spec.statistic for one in allocation.selections for spec in [one[0].noise_spec]} <= {
        "rows by cell of a table",
        "differences of rows by cell of a table",
    }
