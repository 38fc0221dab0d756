"""What bounding and clamping cost: counted beside the questions, charged with them, and right."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

import tightrope as tr
from tightrope.documents.document import to_json_text
from tightrope.documents.release import read_result
from tightrope.errors import InputError, PlanError
from tightrope.release.bias_check import (
    MANY_TIMES,
    DiagnosticCount,
    NoisyCount,
    _share_with_interval,
    diagnostic_name,
)
from tightrope.release.plan import Plan
from tightrope.tables import open_source

BUDGET = tr.Budget(epsilon=4, delta=1e-6)
PEOPLE, EACH = 3_000, 10
QUESTIONS = (tr.count(by="city"), tr.mean("x", bounds=(0, 100), by="city"), tr.proportion("odd"))


def people() -> pa.Table:
    draw = np.random.default_rng(5)
    rows = PEOPLE * EACH
    x = draw.normal(50, 40, rows)
    return pa.table({
        "nr": np.arange(rows) % PEOPLE,
        "city": draw.choice(["a", "b", "c"], rows),
        "x": pa.array(x, mask=draw.random(rows) < 0.2),
        "odd": x > 60,
    })  # fmt: skip


def planned(rows: int | None, costs: object = "0.1", questions=QUESTIONS, **said: object) -> Plan:
    person = {"privacy_unit": None} if rows is None else {"privacy_unit": "nr", "max_rows": rows}
    session = tr.Session(people(), budget=BUDGET, **person)  # type: ignore[arg-type]
    return session.plan(list(questions), bias_check=costs, **said)  # type: ignore[arg-type]


def exact(plan: Plan, table: pa.Table) -> dict[str, int]:
    """The integers before the noise, by the names of tallies."""
    found: dict[str, int] = {}
    with open_source(table).open_snapshot(
        [query_group.table_request for query_group in plan.draft.query_groups]
    ) as rows:
        for query_group in plan.draft.query_groups:
            values = rows.collect_totals(query_group.table_request).values
            found |= {
                f"{v.disjoint_set} {v.statistic_name}": sum(values[v.statistic_name])
                for v in query_group.diagnostic_counts
            }
    return found


def test_every_share_is_what_the_table_says():
    """Bounded noise is never farther than its worst error; nothing here is left to luck."""
    plan, table = planned(2), people().to_pandas()
    answers = plan.release()
    worst = {
        n.vector.statistic_name: n.noise_mechanism.worst_error
        for own in plan.noises()
        for n in own
        if n.vector.over_all_groups
    }
    assert all(np.isfinite(reach) for reach in worst.values())
    counts = exact(plan, people())
    assert counts["used used"] == 2 * PEOPLE
    assert counts["all all"] == EACH * PEOPLE
    by_kind = {(cost.kind, cost.column): cost for cost in answers.bias}
    assert set(by_kind) == {
        ("left out", None), ("below", "x"), ("above", "x"), ("missing", "x"), ("missing", "odd"),
    }  # fmt: skip
    left_out = by_kind["left out", None]
    assert left_out.answers == ("count_by_city", "mean_x_by_city", "proportion_odd")
    reach_used, reach_all = worst["used"], worst["all"]
    least = 1 - (2 * PEOPLE + reach_used) / max(EACH * PEOPLE - reach_all, 1)
    assert left_out.share is not None
    assert left_out.share >= min(max(least, 0), 1) - 1e-12
    assert "were not used" in left_out.statement
    below = table.groupby("nr").head(10)["x"].lt(0).mean()
    x_below, x_missing = (diagnostic_name(DiagnosticCount(what, "x", (0.0, 100.0))) for what in ("below", "missing"))
    assert counts[f"{x_below} {x_below}"] == pytest.approx(below * 2 * PEOPLE, rel=0.5)
    assert counts[f"{x_missing} {x_missing}"] == pytest.approx(0.2 * 2 * PEOPLE, rel=0.5)


def test_nothing_is_counted_where_nothing_was_asked():
    plan = planned(2, 0)
    assert plan.document().bias_check is None
    assert plan.release().bias == ()
    assert "bias_check = 0.02" in str(plan)


@pytest.mark.parametrize("rows", [None, 2])
def test_it_takes_no_more_than_was_said_and_all_is_certified(rows: int | None):
    without, plan = planned(rows, 0), planned(rows, "0.05")
    assert plan.loss.delta(4) <= 1e-6
    halves = [
        [accuracy.errors_at_size(1_000)["half_width_95"] for accuracy in made.accuracies()] for made in (without, plan)
    ]
    for before, after in zip(*halves, strict=True):
        assert after <= before * 1.15 + 1  # whole numbers
    shown = plan.document().bias_check
    assert shown is not None
    assert shown.budget_fraction == "0.05"
    assert all(count.half_width_95 > 0 for count in shown.counts)
    statistics = {mechanism.statistic for mechanism in plan.release().certificate_data.mechanisms}
    assert {count.statistic for count in shown.counts} <= statistics


def test_one_person_adds_no_more_than_the_sensitivity():
    """With and without each of some persons, hostile ones included; one row is in one tally of a column only."""
    table = people().slice(0, 4_000)
    strange = {"nr": [10**6] * 400, "city": ["z"] * 400, "x": [None, np.inf, -np.inf, 1e300] * 100, "odd": [None] * 400}
    everybody = pa.concat_tables([table, pa.table(strange, schema=table.schema)])
    plan = planned(3)
    most = {
        f"{v.disjoint_set} {v.statistic_name}": v.sensitivity
        for query_group in plan.draft.query_groups
        for v in query_group.diagnostic_counts
    }
    assert most["used used"] == 3
    assert most["all all"] == 3 * MANY_TIMES
    every = exact(plan, everybody)
    assert every["all all"] == sum(
        min(count, 3 * MANY_TIMES) for count in np.unique(everybody["nr"], return_counts=True)[1]
    )
    for person in (0, 17, 10**6):
        without = exact(plan, everybody.filter(pa.compute.not_equal(everybody["nr"], person)))
        for name, count in every.items():
            assert 0 <= count - without[name] <= most[name], name
    alone = planned(None)
    shared = [
        own
        for query_group in alone.draft.query_groups
        for own in query_group.composition_sets
        if own[0].over_all_groups and len(own) > 1
    ]
    assert [len(own) for own in shared] == [3]
    frame = everybody.filter(pa.compute.less(everybody["nr"], 50))
    counts = exact(alone, frame)
    for row in range(0, frame.num_rows, 20):
        rest = pa.concat_tables([frame.slice(0, row), frame.slice(row + 1)])
        changed = exact(alone, rest)
        own = {v.statistic_name for v in shared[0]}
        assert sum(counts[k] - changed[k] for k in counts if any(k.endswith(f" {name}") for name in own)) <= 1


def test_columns_that_are_asked_about_twice_are_counted_once():
    twice = planned(
        2, "0.3", (tr.mean("x", bounds=(0, 100)), tr.sum("x", bounds=(0, 100)), tr.median("x", bounds=(0, 100)))
    )
    names = [
        vector.statistic_name for query_group in twice.draft.query_groups for vector in query_group.diagnostic_counts
    ]
    assert sum(name.startswith("below") for name in names) == 1
    below = next(cost for cost in twice.release().bias if cost.kind == "below")
    assert below.answers == ("mean_x", "sum_x", "median_x")


@pytest.mark.parametrize("costs", [-0.1, 0.5, "much", True])
def test_a_part_that_is_none_is_refused(costs: object):
    with pytest.raises(InputError, match="bias_check"):
        planned(2, costs)


def test_a_part_that_is_too_small_says_what_would_do():
    with pytest.raises(PlanError, match="times as much"):
        planned(1, "0.0001")


def test_a_result_and_a_ledger_keep_them(tmp_path: Path):
    said = {"privacy_unit": "nr", "max_rows": 2, "budget": BUDGET, "ledger": tmp_path / "l", "dataset": "people"}
    first = tr.Session.open(people(), **said).plan([tr.count()], bias_check="0.1", key="one").release()  # type: ignore[arg-type]
    again = tr.Session.open(people(), **said).plan([tr.count()], bias_check="0.1", key="one").release()  # type: ignore[arg-type]
    assert first.bias == again.bias != ()
    assert read_result(to_json_text(first.result())).bias == first.bias


def test_a_share_is_told_of_counts_that_stand_out_and_never_as_narrower_than_the_noise():
    """A lucky draw of a count that is mostly noise was told as a share; a draw below zero as nothing at all."""
    assert _share_with_interval(NoisyCount(50, 10, 90), NoisyCount(200, 60, 340)) is None
    assert _share_with_interval(NoisyCount(-90, -140, -40), NoisyCount(1_000, 950, 1_050)) == (
        0.0,
        0.0,
        pytest.approx(50 / 950),
    )
    value, lower, upper = _share_with_interval(NoisyCount(1_100, 1_060, 1_140), NoisyCount(1_000, 960, 1_040)) or (
        0,
        0,
        0,
    )
    assert (value, upper) == (1.0, 1.0)
    assert lower == pytest.approx(1 - 40 / 960)


def test_what_was_moved_is_said_of_the_answers_that_read_the_column_so():
    plan = planned(2, questions=(tr.mean("x", bounds=(0, 100)), tr.proportion("odd")))
    about = {
        name: said
        for query_group in plan.draft.query_groups
        for name, said in query_group.queries_by_diagnostic.items()
    }
    pairs = {said for name, said in about.items() if name.startswith(("below", "above", "missing"))}
    assert pairs == {("mean_x",), ("proportion_odd",)}


@pytest.mark.parametrize("column", ["odd", "x > 60"])
def test_truth_values_that_are_added_up_have_ends_as_numbers_do(column: str) -> None:
    """Such a plan was made, and refused when it was released: no order was known of truth values and numbers."""
    plan = planned(None, questions=(tr.sum(column, bounds=(0.25, 1)),))
    plan.release()
    odd = people()["x"].to_numpy(zero_copy_only=False) > 60 if column == "odd" else None
    counts = {name.split()[-2]: count for name, count in exact(plan, people()).items()}
    missing = people()["x"].null_count if odd is None else 0
    known = people().to_pandas()["odd" if odd is not None else "x"]
    below = int((~known).sum()) if odd is not None else int((known <= 60).sum())
    assert (counts["below"], counts["above"], counts["missing"]) == (below, 0, missing)
