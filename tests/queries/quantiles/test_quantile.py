"""Quantiles from a table to an answer: right, honest, few chosen and many counted, safe for persons with many rows."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from typer.testing import CliRunner

import tightrope as tr
from tightrope.cli.main import app
from tightrope.documents.privacy_unit import PrivacyUnit
from tightrope.errors import InputError, PlanError
from tightrope.queries.cell_counts import ALL_CELLS, CellGrid, has_heaped_values
from tightrope.queries.query_group import group_queries
from tightrope.release.build_answers import AnswerBuilder, certificate_of
from tightrope.release.plan_file import make_question
from tightrope.tables import Column, Schema, open_source

pytestmark = pytest.mark.usefixtures("planned_once")

BUDGET = tr.Budget(epsilon=2, delta=1e-9)
MANY = (0.1, 0.5, 0.75, 0.9)
"""So many that they are read from counts."""
SCHEMA = Schema((Column("x", "number"), Column("sex", "text"), Column("age", "integer")))


@pytest.fixture(scope="module")
def people() -> pd.DataFrame:
    draw = np.random.default_rng(3)
    values = draw.lognormal(3, 0.7, 6_000)
    values[::50] = np.nan
    values[1::50] = np.inf
    return pd.DataFrame({"x": values, "sex": ["f", "m"] * 3_000, "who": np.arange(6_000) // 2})


def test_values_and_intervals(people: pd.DataFrame) -> None:
    session = tr.Session(people, privacy_unit="who", max_rows=2, budget=BUDGET)
    asked = [
        *tr.quantiles("x", MANY, bounds=(0, 100)),
        tr.median("x", bounds=(0, 100), by="sex", keys=["f", "m", "none"]),
    ]
    answers = session.plan(asked).release()
    clamped = people.x.clip(0, 100)
    # Standard deviations over forty releases: 0.11, 0.18 and 0.91; seven of them are never reached by chance.
    for answer, q, seven in zip(answers, MANY, (0.8, 1.3, 3.5, 6.5), strict=False):
        truth, row = float(clamped.quantile(q)), answer.rows[0]
        assert abs(row["value"] - truth) < seven
        assert row["lower"] <= row["value"] <= row["upper"]
        assert row["lower"] - seven <= truth <= row["upper"] + seven
    values = [answers[place].rows[0]["value"] for place in range(len(MANY))]
    assert values == sorted(values)
    groups = {row["sex"]: row for row in answers[len(MANY)].rows}
    assert abs(groups["f"]["value"] - clamped[people.sex == "f"].median()) < 3
    assert set(groups["none"]) == {"sex", "value", "lower", "upper"}
    assert 0 <= groups["none"]["lower"] <= groups["none"]["value"] <= groups["none"]["upper"] <= 100


@pytest.mark.parametrize(("heap", "said"), [(40.0, 40.0), (39.999999, 40.0), (0.0, 0.0), (1e9, 100.0)])
def test_a_heap_is_said_as_the_round_number_that_it_is(heap: float, said: float) -> None:
    """Most people lie at one number; the noise would have to be ten standard deviations to move the median off it."""
    values = [*np.linspace(0.001, 99.999, 1_000), *[heap] * 4_000]
    session = tr.Session(pd.DataFrame({"x": values}), privacy_unit=None, budget=BUDGET)
    row = session.plan([tr.median("x", bounds=(0, 100))]).release()[0].rows[0]
    assert row["value"] == said
    assert row["lower"] <= min(heap, 100.0) <= row["upper"]


def test_values_that_lie_all_over_a_cell_are_no_heap() -> None:
    cells = np.full(100, 10.0)
    assert not any(has_heaped_values(cells, place, 2.0) for place in range(101))
    cells[[0, 50, 99]] = 60.0
    assert [place for place in range(100) if has_heaped_values(cells, place, 2.0)] == [0, 50, 99]
    assert not has_heaped_values(cells, 50, 3.0)


def test_many_quantiles_cost_what_one_costs() -> None:
    def widths(questions: list[Any]) -> float:
        session = tr.Session(pd.DataFrame({"x": [1.0]}), privacy_unit=None, budget=BUDGET)
        return session.plan(questions).accuracies()[0].errors_at_size(1_000)["half_width_95"]

    four = tr.quantiles("x", MANY, bounds=(0, 1))
    assert widths(four) == widths([*four, tr.quantile("x", 0.95, bounds=(0, 1))])
    assert widths([*four, tr.quantile("x", 0.25, bounds=(0, 2), name="other")]) > widths(four)
    assert widths(tr.quantiles("x", MANY[:2], bounds=(0, 1))) == widths(four)
    assert widths([tr.median("x", bounds=(0, 1))]) < 0.8 * widths(tr.quantiles("x", [0.5, 0.6], bounds=(0, 1)))


def test_a_share_that_is_no_millionth_is_counted() -> None:
    """Excesses of choices are whole millionths of a row; what is written otherwise is not rounded to one."""
    chosen, counted = (
        group_queries([tr.quantile("x", q, bounds=(0, 1))], PrivacyUnit(None, 1, 1, 1), SCHEMA)[0]
        for q in (0.333333, 1 / 3)
    )
    assert [vector.choice is None for vector in (*chosen.noisy_statistics, *counted.noisy_statistics)] == [
        False,
        False,
        True,
        True,
    ]


def test_an_empty_group_is_said_to_be_anywhere() -> None:
    """Its interval is the whole range but 5 % of the time: in forty groups, at most sixteen are narrower."""
    groups = [str(n) for n in range(40)]
    session = tr.Session(pd.DataFrame({"x": [1.0], "g": ["0"]}), privacy_unit=None, budget=BUDGET)
    rows = session.plan([tr.median("x", bounds=(0, 1), by="g", keys=groups)]).release()[0].rows
    assert len(rows) == 40
    assert sum((row["lower"], row["upper"]) != (0, 1) for row in rows) <= 16


def test_what_the_engine_is_asked() -> None:
    person = PrivacyUnit("who", 4, 2, 3)
    schema = Schema((*SCHEMA.columns, Column("who", "integer")))
    asked = [
        *tr.quantiles("x", MANY, bounds=(0, 10), by="sex", keys=["f"]),
        *tr.quantiles("x", MANY, bounds=(0, 10)),
    ]
    grouped, alone = group_queries(asked, person, schema)
    assert [str(term) for term in grouped.by] == ["sex", f"cell(x, -0.00125, 9.99875, {ALL_CELLS})"]
    assert len(grouped.noisy_statistics) == len(alone.noisy_statistics) == len(grouped.composition_groups) == 2
    assert (grouped.bounds.max_rows, grouped.bounds.max_rows_per_group, grouped.bounds.max_groups) == (4, 4, 4)
    assert (alone.bounds.max_rows, alone.bounds.max_rows_per_group, alone.bounds.max_groups) == (2, 2, 2)
    for unit in (*grouped.composition_groups, *alone.composition_groups):
        assert len(unit.noise_specs) == 1
    assert (
        grouped.composition_groups[0].split_bounds.largest_part
        == grouped.composition_groups[0].split_bounds.groups
        == 4
    )


def test_a_choice_looks_at_whole_groups() -> None:
    """Whatever cells a person's rows fall in: four rows move one group by four, or four groups by one."""
    schema = Schema((*SCHEMA.columns, Column("who", "integer")))
    asked = [
        tr.quantile("x", 0.9, bounds=(0, 10), by="sex", keys=["f", "m", "none"]),
        tr.median("x", bounds=(0, 10), name="all"),
    ]
    grouped, alone = group_queries(asked, PrivacyUnit("who", 4, 2, 3), schema)
    assert [[vector.sensitivity for vector in query_group.noisy_statistics] for query_group in (grouped, alone)] == [
        [18 * 10**5] * 2,
        [10**6] * 2,
    ]
    for query_group, groups in ((grouped, 3), (alone, 1)):
        assert all(
            unit.split_bounds.groups == min(groups, unit.split_bounds.rows) for unit in query_group.composition_groups
        )
        assert {unit.split_bounds.largest_part for unit in query_group.composition_groups} == {
            unit.split_bounds.rows for unit in query_group.composition_groups
        }
        assert all(spend.is_selection for unit in query_group.composition_groups for spend in unit.noise_specs)


@pytest.mark.parametrize("seed", range(8))
def test_a_person_moves_each_level_at_most_by_their_rows(seed: int) -> None:
    """In whatever cells they fall: that is what the units allow for."""
    draw = random.Random(seed)
    rows = [
        (
            f"p{n}",
            draw.choice(("f", "m", None)),
            draw.choice((0.0, -0.0, 3.3, 10.0, 99.0, None, float("nan"), float("-inf"))),
        )
        for n in range(9)
        for _ in range(3)
    ]
    more = [*rows, *[("new", draw.choice(("f", "m")), draw.uniform(-2, 12)) for _ in range(draw.randrange(1, 12))]]
    draw.shuffle(more)
    bound = draw.choice((1, 3, 5))
    schema = pa.schema([("who", "string"), ("sex", "string"), ("x", "float64")])
    asked = tr.quantiles("x", MANY, bounds=(0, 10), by="sex", keys=["f", "m"])
    (query_group,) = group_queries(
        asked, PrivacyUnit("who", bound, bound, bound), open_source(schema.empty_table()).schema
    )
    before, after = (
        open_source(
            pa.table(
                [pa.array(c, f.type) for c, f in zip(zip(*found, strict=True), schema, strict=True)], schema=schema
            )
        ).collect_totals(query_group.table_request)
        for found in (rows, more)
    )
    assert before.keys == after.keys
    for vector in query_group.noisy_statistics:
        block = vector.block
        assert block is not None
        counts = [
            np.asarray(found.values[vector.statistic_name]).reshape(-1, block).sum(axis=1) for found in (before, after)
        ]
        moved = np.abs(counts[1] - counts[0])
        assert moved.sum() <= bound
        assert (query_group.group_contribution().most_rows, query_group.group_contribution().largest_part) == (
            bound,
            bound,
        )


def test_a_plan_file_says_the_same(people: pd.DataFrame, tmp_path: Path) -> None:
    people.to_parquet(tmp_path / "people.parquet")
    (tmp_path / "plan.toml").write_text(
        '[source]\npath = "people.parquet"\n[privacy_unit]\ncolumn = "who"\nmax_rows = 2\n'
        "[budget]\nepsilon = 2\ndelta = 1e-9\n"
        '[[question]]\nkind = "quantile"\ncolumn = "x"\nbounds = [0, 100]\n'
        '[[question]]\nkind = "quantile"\ncolumn = "clip(x / 10, 0, 10)"\nq = 0.9\nby = "sex"\nkeys = ["f"]\n'
        'where = "x > 1"\n',
    )
    done = CliRunner().invoke(app, ["release", str(tmp_path / "plan.toml")])
    assert done.exit_code == 0, done.output
    result = json.loads(next(tmp_path.rglob("result.json")).read_text(encoding="utf-8"))
    first, second = result["answers"]
    assert first["question"] == "median of x (clamped to [0, 100])"
    assert second["question"].startswith("0.9 quantile of clip(x / 10, 0, 10) (clamped to [0, 10]) by sex where x > 1")
    assert abs(first["rows"][0]["value"] - people.x.median()) < 1.5
    mechanisms = result["certificate"]["mechanisms"]
    assert [part["family"] for part in mechanisms] == ["exponential mechanism"] * 4
    assert [part["choice"]["below"] for part in mechanisms] == ["500000"] * 2 + ["900000"] * 2
    assert [part["sensitivity_per_row"] for part in mechanisms] == ["1000000"] * 2 + ["1800000"] * 2
    assert [part["choice"]["target"] is None for part in mechanisms] == [True, False] * 2
    assert make_question(tr.quantile, {"column": "x", "bounds": [0, 1]}) == tr.median("x", bounds=(0, 1))


@pytest.mark.parametrize(
    ("ask", "told"),
    [
        (lambda: tr.quantile("x", 0, bounds=(0, 1)), "above 0 and below 1"),
        (lambda: tr.quantile("x", float("nan"), bounds=(0, 1)), "q"),
        (lambda: tr.median("x"), "bounds: missing"),
        (lambda: tr.median("x", bounds=(0, 1), by="sex"), "cannot be discovered"),
        (lambda: tr.median("x", bounds=(0, 1), by="sex", keys=["f"], max_rows_per_group=1), "left out"),
        (lambda: tr.median("x", bounds=(0, 1), max_groups=1), "left out"),
        (lambda: tr.median("x", bounds=(0, 1), by="sex", keys=[str(n) for n in range(300)]), "at most 250 groups"),
        (lambda: tr.median("sex", bounds=(0, 1)), "number"),
        (lambda: tr.quantiles("x", [0.5], bounds=(0, 1), name="no")[0], "left out"),
        (lambda: tr.quantiles("x", [], bounds=(0, 1)), r"at least one .* qs=\[\]; .*0.25, 0.5, 0.75"),
        (lambda: tr.quantiles("x", 0.5, bounds=(0, 1)), "a list of at least one"),
        (lambda: tr.quantile("x", [0.1, 0.5], bounds=(0, 1)), r"one number.*tr.quantiles"),
    ],
)
def test_what_cannot_be_asked_is_said_first(ask: Any, told: str) -> None:
    with pytest.raises(InputError, match=told):
        group_queries([ask()], PrivacyUnit(None, 1, 1, 1), SCHEMA)


def test_groups_that_follow_from_an_expression_are_listed() -> None:
    (query_group,) = group_queries([tr.median("x", bounds=(0, 1), by="age > 30")], PrivacyUnit(None, 1, 1, 1), SCHEMA)
    assert query_group.keys is not None
    assert len(query_group.keys) == 3 * ALL_CELLS


@pytest.mark.parametrize("value", [-0.9999999993872373, -0.9999999999, -1.0])
def test_an_interval_holds_where_a_cell_is_few_doubles_wide(value: float) -> None:
    """Found with equal values beside an edge, which the engine counted in the next cell: no release held them."""
    bounds = (-1.0, -0.9999999959917405)
    session = tr.Session(pd.DataFrame({"x": [value] * 2_000}), privacy_unit=None, budget=tr.Budget(epsilon=1, delta=0))
    (row,) = session.plan([tr.median("x", bounds=bounds)]).release()[0].rows
    assert row["lower"] <= value <= row["upper"]


@pytest.mark.parametrize(
    "bounds", [(0, 1e-320), (0, 5e-324), (1.0, 1.0 + 1e-12), (-1e308, 1e308), (1e300, 2e300), (-1.7e308, 0)]
)
def test_a_range_that_cannot_be_cut_is_refused_in_words_about_it(bounds: tuple[float, float]) -> None:
    session = tr.Session(pd.DataFrame({"x": [0.5]}), privacy_unit=None, budget=tr.Budget(epsilon=1, delta=0))
    for asked in ([tr.median("x", bounds=bounds)], tr.quantiles("x", [0.2, 0.4], bounds=bounds)):
        with pytest.raises(PlanError, match="bounds"):
            session.plan(asked)


@pytest.mark.parametrize("order", [1, -1])
def test_a_question_that_lists_the_same_cells_is_another_task(order: int) -> None:
    session = tr.Session(pd.DataFrame({"x": [1.0, 2.0, 7.0]}), privacy_unit=None, budget=tr.Budget(epsilon=1, delta=0))
    cells = str(CellGrid(0, 10).cell_expression("x"))
    plan = session.plan([tr.median("x", bounds=(0, 10)), tr.count(by=cells, keys=list(range(ALL_CELLS)))][::order])
    answers = {answer.question.kind: answer for answer in plan.release()}
    assert len(answers["count"].rows) == ALL_CELLS and len(answers["quantile"].rows) == 1
    assert "exponential mechanism" in str(plan)


@pytest.mark.parametrize(("epsilon", "people"), [(4, 100), (1, 100), (1, 1_000)])
def test_errors_are_those_of_evenly_spread_rows(epsilon: int, people: int, runs: int = 1_200) -> None:
    values = (np.arange(people) + 0.5) / people * 10
    table = pd.DataFrame({"x": values})
    plan = tr.Session(table, privacy_unit=None, budget=tr.Budget(epsilon=epsilon, delta=0)).plan(
        [tr.median("x", bounds=(0, 10))], expected_rows=people
    )
    stated = plan.accuracies()[0].errors_at_size(people)
    draw = AnswerBuilder(plan.draft, certificate_of(plan.draft)).build_answers
    exact = [open_source(table).collect_totals(query_group.table_request) for query_group in plan.draft.query_groups]
    rows = [draw(exact)[0].rows[0] for _ in range(runs)]
    error = np.mean([abs(row["value"] - values[people // 2 - 1]) for row in rows])
    half = np.mean([(row["upper"] - row["lower"]) / 2 for row in rows])
    assert error == pytest.approx(stated["expected_absolute_error"], rel=0.25)
    assert half == pytest.approx(stated["half_width_95"], rel=0.05)


@pytest.mark.parametrize("end", [30, 45, 60, 120, 180, 365])
def test_a_whole_number_in_a_cell_stands_for_it(end: int):
    """Stays of two days had a median of 2.0025: cells are around numbers of four digits, not always of the fewest."""
    grid = CellGrid(0, end)
    for value in range(1, end):
        cell = int(value / end * ALL_CELLS + 0.5)
        assert grid.edge_value(cell) <= value < grid.edge_value(cell + 1)
        assert grid.representative_value(cell) == value
    numbers = [grid.representative_value(cell) for cell in range(ALL_CELLS)]
    assert numbers == sorted(numbers)
    assert all(grid.edge_value(cell) <= number <= grid.edge_value(cell + 1) for cell, number in enumerate(numbers))


def test_several_quantiles_never_cross_where_their_intervals_do():
    """A value outside an interval of its own was moved into it: q = 0.999 fell below q = 0.95 in 1 of 300 releases."""
    session = tr.Session(pd.DataFrame({"x": [0.0, 1.0]}), privacy_unit=None, budget=tr.Budget(epsilon=1, delta=1e-6))
    plan = session.plan(tr.quantiles("x", [0.75, 0.95, 0.999], bounds=(0, 1)))
    (query_group,), (noises,) = plan.draft.query_groups, plan.draft.noises_by_query_group
    for seed in (660, 1035, *range(40)):  # of 1 500 these two crossed
        draw = np.random.default_rng(seed)
        own = {n.vector.statistic_name: n for n in noises}
        integers = {
            name: [int(count) for count in halves(noise) + np.rint(draw.laplace(0, noise.mean_absolute, parts(noise)))]
            for name, noise in own.items()
        }
        records = [question.estimate(integers, own) for question in query_group.ordered_queries]
        found = [record["value"] for record in records if record["value"] is not None]
        assert found == sorted(found)
        assert all(record["lower"] <= record["value"] <= record["upper"] for record in records if found)


def parts(noise: Any) -> int:
    return ALL_CELLS // int(noise.vector.block)


def halves(noise: Any) -> np.ndarray:
    """Half of the rows in the first cell, half in the last: by cell, or by block of cells."""
    counts = np.zeros(parts(noise), dtype=int)
    counts[0] = counts[-1] = 25
    return counts
