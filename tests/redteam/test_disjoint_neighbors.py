"""Random conditions over hostile rows: with one row more, the questions of at most one condition of each set change.

Each row is a person. The plan's sets are those of the planner; the integers are read from the table with and without
the row. ``TIGHTROPE_CONDITIONS=500`` tries more plans than CI does.
"""

from __future__ import annotations

import datetime as dt
import math
import os
from collections import Counter, defaultdict
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import tightrope as tr
from tests.redteam.test_neighboring_plans import check_unit
from tightrope.documents.privacy_unit import PrivacyUnit
from tightrope.queries import query_group
from tightrope.queries.query_group import QueryGroup, group_queries, with_alternatives
from tightrope.tables import Table, open_source
from tightrope.tables.expressions import disjoint
from tightrope.tables.request import GroupTotals

PLANS = int(os.environ.get("TIGHTROPE_CONDITIONS", "8"))
ROW = PrivacyUnit(None, 1, 1, 1)
FIELDS = {"g": "string", "n": "int64", "x": "float64", "f": "float32", "flag": "bool", "d": "date32"}
ARROW = pa.schema(list(FIELDS.items()))
VALUES: dict[str, tuple[Any, ...]] = {
    "g": (None, "a", "A", "b", " a", "a ", "á", "a\u0301", "", "2024-01-01", "20240101", "2024-01-01T00:00"),
    "n": (None, 0, 1, 2, 5, -1, 2**53 - 1, 2**53, 2**53 + 1, -(2**63), 2**63 - 1),
    "x": (None, math.nan, 0.0, -0.0, 0.1, 0.3, 0.30000000000000004, 5.0, 1e308, math.inf, -math.inf),
    "f": (None, math.nan, 0.1, 0.2, 0.30000001, 16777216.0),
    "flag": (None, True, False),
    "d": (None, dt.date(1, 1, 1), dt.date(2024, 2, 29), dt.date(2024, 3, 1), dt.date(9999, 12, 31)),
}
Row = tuple[Any, ...]


def pick(draw: np.random.Generator, choices: Any) -> Any:
    return choices[int(draw.integers(len(choices)))]


def simple_condition(draw: np.random.Generator) -> str:
    name = pick(draw, list(FIELDS))
    known = [
        value
        for value in VALUES[name]
        if value is not None and not (isinstance(value, float) and not math.isfinite(value))
    ]
    literals = [repr(value.isoformat() if isinstance(value, dt.date) else value) for value in known]
    term = pick(draw, {"g": ("g", "lower(g)"), "d": ("d", "d", "month(d)", "year(d)")}.get(name, (name,)))
    literals = ["1", "2", "3", "2024"] if "(d)" in term else literals
    forms = [
        f"{term} is None",
        f"{term} in [{pick(draw, literals)}, {pick(draw, literals)}]",
        f"{term} == {pick(draw, literals)}",
    ]
    if name == "flag":
        return str(pick(draw, ["flag", "not flag", *forms]))
    if name == "n":
        literals = [*literals, "0.5", "9007199254740992.0"]
    if name == "g":
        forms += [
            f"{term} != {pick(draw, literals)}",
            f"{term} not in [{pick(draw, literals)}, {pick(draw, literals)}]",
        ]
    else:
        forms += [f"{term} {sign} {pick(draw, literals)}" for sign in ("<", "<=", ">", ">=", "!=")] * 2
    return str(pick(draw, forms))


def condition(draw: np.random.Generator, earlier: list[str]) -> str:
    """Often one that is built from an earlier condition, so that many exclude each other."""
    text = simple_condition(draw)
    if earlier and draw.random() < 0.6:
        text = f"not ({pick(draw, earlier)})"
    if draw.random() < 0.4:
        text = f"({text}) {pick(draw, ('and', 'or'))} ({simple_condition(draw)})"
    return text


def question(draw: np.random.Generator, name: str, where: str) -> tr.Question:
    options = {"name": name, "where": where}
    kinds = [
        lambda: tr.count(**options),
        lambda: tr.count(by="g", **options),
        lambda: tr.mean("x", bounds=(-2, 10), **options),
        lambda: tr.proportion("n > 1", **options),
        lambda: tr.histogram("x", bounds=(0, 8), width=2, **options),
        lambda: tr.variance("f", bounds=(0, 1), by="flag", keys=[True, False], **options),
        lambda: tr.median("x", bounds=(0, 10), **options),
        lambda: tr.count_distinct("g", **options),
    ]
    return pick(draw, kinds)()


def rows_of(draw: np.random.Generator, count: int) -> list[Row]:
    return [tuple(pick(draw, VALUES[name]) for name in FIELDS) for _ in range(count)]


def source(rows: list[Row]) -> Table:
    columns = list(zip(*rows, strict=True)) or [()] * len(FIELDS)
    return open_source(
        pa.table([pa.array(column, field.type) for column, field in zip(columns, ARROW, strict=True)], ARROW.names)
    )


def totals(rows: list[Row], query_groups: tuple[QueryGroup, ...]) -> list[GroupTotals]:
    requests = [query_group.table_request for query_group in query_groups]
    with source(rows).open_snapshot(requests) as snapshot:
        return [snapshot.collect_totals(request) for request in requests]


def planned(draw: np.random.Generator) -> tuple[QueryGroup, ...]:
    earlier: list[str] = []
    questions = []
    for place in range(6):
        earlier.append(condition(draw, earlier))
        questions.append(question(draw, f"q{place}", earlier[-1]))
    schema = source([]).schema
    return with_alternatives(group_queries(questions, ROW, schema, weighted=False), schema)


def attack(seed: int, seen: Counter[str]) -> None:
    draw = np.random.default_rng([77, seed])
    query_groups = planned(draw)
    rows = rows_of(draw, 8)
    base = totals(rows, query_groups)
    for newcomer in rows_of(draw, 6):
        changed: defaultdict[int, set[int]] = defaultdict(set)
        for group, here, there in zip(query_groups, base, totals([newcomer, *rows], query_groups), strict=True):
            moved = sum(check_unit(group, own, there, here) for own in group.composition_sets)
            seen["moved"] += moved > 0
            if moved and group.alternative is not None:
                changed[group.alternative.set_number].add(group.alternative.member)
        assert all(len(members) == 1 for members in changed.values()), (
            newcomer,
            [str(group.where) for group in query_groups],
        )
        seen["in a set"] += len(changed)
    seen["sets"] += len({group.alternative.set_number for group in query_groups if group.alternative is not None})
    seen["members"] += sum(group.alternative is not None for group in query_groups)


def run(plans: int) -> Counter[str]:
    seen: Counter[str] = Counter()
    for seed in range(plans):
        attack(seed, seen)
    return seen


def test_one_row_changes_the_questions_of_one_condition_of_each_set() -> None:
    seen = run(PLANS)
    assert seen["sets"] >= PLANS / 2 and seen["members"] >= PLANS
    assert seen["in a set"] >= PLANS and seen["moved"] > seen["in a set"]


BUGS = {
    "everything excludes": (query_group, "exclude_each_other", lambda one, other: one is not None),
    "a missing value has no test": (disjoint, "_can_all_hold", lambda tests: len(tests) < 2),
}


@pytest.mark.parametrize("bug", BUGS)
def test_a_planted_bug_is_caught(monkeypatch: pytest.MonkeyPatch, bug: str) -> None:
    monkeypatch.setattr(*BUGS[bug])
    with pytest.raises(AssertionError):
        run(PLANS)
