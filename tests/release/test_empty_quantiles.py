"""Quantiles of groups with few rows or none: intervals hold, and a count of the same rows shows this."""

from __future__ import annotations

import os

import numpy as np
import pyarrow as pa
import pytest
from scipy.stats import binom

import tightrope as tr
from tightrope.queries.query import Query
from tightrope.release.answers import Answers

RELEASES = int(os.environ.get("TIGHTROPE_SMALL_GROUPS", "60"))
SIZES = (0, 1, 2, 5)
VALUES = {size: np.sort(np.random.default_rng(size).uniform(0, 100, size)) for size in SIZES}
TABLE = pa.table({
    "g": [str(size) for size in SIZES for _ in range(size)] + ["large"] * 3_000,
    "x": [*np.concatenate([VALUES[size] for size in SIZES]), *np.linspace(40, 60, 3_000)],
})  # fmt: skip
GROUPS = {"by": "g", "keys": [*map(str, SIZES), "large"]}


def released(questions: list[Query], times: int = RELEASES) -> list[Answers]:
    """Answers to the questions, with new noise each time; the table is read once."""
    plan = tr.Session(TABLE, privacy_unit=None, budget=tr.Budget(epsilon=1, delta=1e-8)).plan(questions)
    builder = plan._table_release.prepare_answers()
    requests = [query_group.table_request for query_group in plan.draft.query_groups]
    with plan._table_release.table.open_snapshot(requests) as rows:
        exact = [rows.collect_totals(request) for request in requests]
    return [builder.build_answers(exact) for _ in range(times)]


@pytest.mark.parametrize("qs", [(0.5,), (0.25, 0.5, 0.9)], ids=["selected", "counted"])
@pytest.mark.parametrize("with_count", [True, False])
def test_intervals_of_small_groups_hold(qs: tuple[float, ...], with_count: bool):
    questions: list[Query] = [tr.quantile("x", q, bounds=(0, 100), **GROUPS) for q in qs]
    questions += [tr.count(**GROUPS)] if with_count else []
    missed = dict.fromkeys(SIZES[1:], 0)
    for answers in released(questions):
        for q, answer in zip(qs, answers, strict=False):
            by_group = {row["g"]: row for row in answer.rows}
            for size in missed:
                row = by_group[str(size)]
                truth = VALUES[size][int(np.ceil(q * size)) - 1]
                missed[size] += row["value"] is not None and not row["lower"] <= truth <= row["upper"]
    for wrong in missed.values():
        assert wrong <= binom.ppf(1 - 1e-6, RELEASES * len(qs), 0.05)


def test_a_group_that_may_be_empty_has_no_value():
    """Of an empty group a value is shown only if the count is wrong, too; of a large one it always is."""
    shown = {"0": 0, "large": 0}
    for answers in released([tr.median("x", bounds=(0, 100), **GROUPS), tr.count(**GROUPS)]):
        for row in answers[0].rows:
            if row["value"] is None:
                assert (row["lower"], row["upper"]) == (0, 100)
            if row["g"] in shown:
                shown[row["g"]] += row["value"] is not None
    assert shown["large"] == RELEASES
    assert shown["0"] <= binom.ppf(1 - 1e-6, RELEASES, 0.025)


def test_only_a_count_of_the_same_rows_suppresses():
    """A total serves every group; a count under another condition says nothing about these rows."""

    def values(table_rows: int, question: Query, condition: str | None) -> list[float | None]:
        columns = {name: pa.array([number] * table_rows, pa.float64()) for name, number in (("x", 50), ("y", 1))}
        session = tr.Session(pa.table(columns), privacy_unit=None, budget=tr.Budget(epsilon=4, delta=1e-8))
        answers = session.plan([tr.median("x", bounds=(0, 100), where=condition), question]).release()
        return [row["value"] for row in answers[0].rows]

    assert any(values(0, tr.count(where="y > 0"), "y > 0") == [None] for _ in range(6))
    assert any(values(0, tr.count(), None) == [None] for _ in range(6))
    assert values(2_000, tr.count(), None) == [50.0]
    assert values(2_000, tr.count(where="y > 5"), None) == [50.0]
