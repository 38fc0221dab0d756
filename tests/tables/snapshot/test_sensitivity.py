"""The promise that everything rests on: a person changes the engine's integers by that person's own bounded rows.

Random tables, many in one engine table (a column tells them apart and is part of every key), each with and without one
person, rows shuffled anew. Planted bugs show that the check has power.
"""

from __future__ import annotations

import math
from collections import defaultdict
from dataclasses import dataclass
from decimal import Decimal
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tightrope.tables import (
    ContributionBounds,
    FixedPoint,
    GroupTotals,
    Measure,
    Request,
    bounding,
    materialize,
    open_source,
)
from tightrope.tables import bounding as rows
from tightrope.tables.backends.duckdb import open_connection

FIXED = FixedPoint(-2.0, 10.0, Decimal("0.5"), 3)
MEASURES = (Measure("rows", None, None), Measure("usable", "x", None), Measure("sum", "x", FIXED))
LARGEST = max(abs(FIXED.to_units(FIXED.lower)), abs(FIXED.to_units(FIXED.upper)))
TABLES = 80
NEWCOMER = "newcomer"
NAN = float("nan")

Row = tuple[int, str | None, str | None, float | None]  # table, person, key, x
Totals = dict[object, tuple[int, ...]]


@dataclass
class Seen:
    """How many tables there were, and how many had what."""

    tables: int = 0
    over_bound: int = 0
    nan: int = 0
    unique_key: int = 0


def person_rows(draw: np.random.Generator, table: int, person: str, keys: list[str | None]) -> list[Row]:
    many = draw.integers(1, 4) if draw.random() < 0.3 else draw.integers(4, 14)
    values = [None, NAN, -math.inf, math.inf, 0.25, 0.75, 1e6, *draw.normal(4, 8, 3)]
    chosen = [keys[i] for i in draw.integers(0, len(keys), many)]
    return [
        (table, f"{table} {person}", key, values[i]) for key, i in zip(chosen, draw.integers(0, 10, many), strict=True)
    ]


def random_table(draw: np.random.Generator, table: int) -> list[Row]:
    keys: list[str | None] = ["a", "b", "c", "", None][: draw.integers(1, 6)]
    people = [f"p{i}" for i in range(draw.integers(0, 6))]
    own = [*keys, "only here"] if draw.random() < 0.8 else keys
    found = [row for person in people for row in person_rows(draw, table, person, keys)]
    nobody: list[Row] = [(table, None, "a", 1.0)] * int(draw.integers(0, 2))
    return found + nobody + person_rows(draw, table, NEWCOMER, own)


def is_newcomer(row: Row) -> bool:
    return row[1] is not None and row[1].endswith(NEWCOMER)


def collected(draw: np.random.Generator, chosen: list[Row], request: Request) -> Totals:
    shuffled = [chosen[i] for i in draw.permutation(len(chosen))]
    types = [pa.int64(), pa.string(), pa.string(), pa.float64()]
    columns = [pa.array(column, kind) for column, kind in zip(zip(*shuffled, strict=True), types, strict=True)]
    answer = open_source(pa.table(columns, ["table", "person", "key", "x"])).collect_totals(request)
    return totals(answer)


def totals(answer: GroupTotals) -> Totals:
    return dict(zip(answer.keys, zip(*answer.values.values(), strict=True), strict=True))


def plain(chosen: list[Row]) -> Totals:
    """The totals by key without any bounding, in plain Python."""
    found: dict[object, list[int]] = defaultdict(lambda: [0, 0, 0])
    for table, _, key, x in chosen:
        usable = x is not None and not math.isnan(x)
        added = (1, int(usable), FIXED.to_units(x) if usable else 0)
        found[table, key] = [a + b for a, b in zip(found[table, key], added, strict=True)]
    return {key: tuple(values) for key, values in found.items()}


def check_promise(with_it: Totals, without: Totals, alone: Totals) -> None:
    """The newcomer changes each integer by exactly what the newcomer's rows give alone."""
    nothing = (0, 0, 0)
    for key in {**with_it, **without, **alone}:
        change = [a - b for a, b in zip(with_it.get(key, nothing), without.get(key, nothing), strict=True)]
        assert change == list(alone.get(key, nothing)), f"key {key}: one person changed other people's totals"


def check_bounds(alone: Totals, own: list[Row], bounds: ContributionBounds) -> bool:
    """One person's totals keep the bounds, use as much as they allow, and all when within. True if over a bound."""
    counts = [values[0] for values in alone.values() if values[0]]
    assert sum(counts) <= bounds.max_rows
    assert max(counts) <= bounds.max_rows_per_group
    assert len(counts) <= bounds.max_groups
    assert all(abs(values[2]) <= LARGEST * values[1] <= LARGEST * values[0] for values in alone.values())
    raw = plain(own)
    sizes = sorted((values[0] for values in raw.values()), reverse=True)
    over = sum(sizes) > bounds.max_rows or sizes[0] > bounds.max_rows_per_group or len(sizes) > bounds.max_groups
    assert over or alone == raw
    assert sum(counts) >= min(bounds.max_rows, bounds.max_groups, len(sizes))
    return over


def check_batch(seed: int, bounds: ContributionBounds, given_keys: bool, seen: Seen, tables: int = TABLES) -> None:
    draw = np.random.default_rng(seed)
    batch = [random_table(draw, table) for table in range(tables)]
    everyone = [row for table in batch for row in table]
    newcomers = [row for row in everyone if is_newcomer(row)]
    keys = tuple((table, key) for table in range(tables) for key in ("a", None, "only here")) if given_keys else None
    request = Request(("table", "key"), keys, bounds, MEASURES)
    alone = collected(draw, newcomers, request)
    rest = collected(draw, [row for row in everyone if not is_newcomer(row)] or [(0, None, None, None)], request)
    check_promise(collected(draw, everyone, request), rest, alone)
    for number, table in enumerate(batch):
        own = [row for row in table if is_newcomer(row) and (keys is None or (number, row[2]) in keys)]
        mine = {key: values for key, values in alone.items() if key[0] == number and values[0]}
        if own:
            count(seen, table, own, check_bounds(mine, own, bounds))


def count(seen: Seen, table: list[Row], own: list[Row], over: bool) -> None:
    seen.tables += 1
    seen.over_bound += over
    seen.nan += any(row[3] is not None and math.isnan(row[3]) for row in table)
    seen.unique_key += any(row[2] == "only here" for row in own)


BOUNDS = st.builds(ContributionBounds, st.just("person"), st.integers(1, 6), st.integers(1, 4), st.integers(1, 4))


def check_many(examples: int) -> Seen:
    seen = Seen()

    @settings(max_examples=examples, deadline=None, derandomize=True, database=None)
    @given(st.integers(0, 2**32), BOUNDS, st.booleans())
    def many(seed: int, bounds: ContributionBounds, given_keys: bool) -> None:
        check_batch(seed, bounds, given_keys, seen)

    many()
    return seen


@pytest.mark.slow
def test_one_person_changes_the_integers_by_their_own_bounded_rows():
    seen = check_many(examples=40)
    assert seen.tables >= 2200
    assert min(seen.over_bound, seen.nan, seen.unique_key) >= seen.tables / 2, seen


@settings(max_examples=12, deadline=None)
@given(st.integers(0, 2**32), BOUNDS)
def test_one_person_changes_the_total_of_all_rows_by_their_own(seed, bounds):
    draw = np.random.default_rng(seed)
    table = random_table(draw, 0)
    own = [row for row in table if is_newcomer(row)]
    request = Request((), None, bounds, MEASURES)
    alone = collected(draw, own, request)
    rest = collected(draw, [row for row in table if not is_newcomer(row)] or [(0, None, None, None)], request)
    check_promise(collected(draw, table, request), rest, alone)
    assert alone[()][0] == min(bounds.max_rows, bounds.max_rows_per_group, len(own))


def test_threads_and_memory_do_not_change_the_answer(monkeypatch):
    draw = np.random.default_rng(5)
    everyone = [row for table in range(200) for row in random_table(draw, table)]
    names = ["table", "person", "key", "x"]
    table = open_source(pa.table([pa.array(column) for column in zip(*everyone, strict=True)], names))
    request = Request(("table", "key"), None, ContributionBounds("person", 4, 2, 3), MEASURES)
    answers = []
    for threads, memory in [(1, "100MB"), (2, "1GB"), (7, "1GB")]:
        monkeypatch.setattr(materialize, "open_connection", partial(limited, threads, memory))
        answers.append(table.collect_totals(request))
    assert answers[0] == answers[1] == answers[2]


def limited(threads: int, memory: str) -> Any:
    backend = open_connection()
    backend.settings["threads"] = threads
    backend.settings["memory_limit"] = memory
    return backend


def no_bounding(narrow, bounds):
    return narrow.table.filter(False).select("person")


def scan_order(table, narrow):
    return [table["person"]]


def no_clamp(x, fixed_point):
    return x.clip(-1e7, 1e7)  # so that infinity still fits in 64 bits


def heavy_by_others(narrow, bounds):
    """Who is over a bound is decided by how many rows all persons have together."""
    crowd = narrow.table.count() > 1000
    return narrow.table.filter(crowd).select("person").distinct()


def nan_is_clamped(source, measure):
    table = source.table
    value = (
        rows.fixed_point_units(table[measure.column].cast("float64"), FIXED)
        if measure.fixed_point
        else table["x"].notnull()
    )
    return value.cast("int64")


BUGS = {
    "no bounding": (bounding, "persons_over_bound", no_bounding),
    "bounding in scan order": (bounding, "row_order", scan_order),
    "all groups are kept": (bounding, "group_order", scan_order),
    "no clamp": (rows, "clamp_column", no_clamp),
    "others decide": (bounding, "persons_over_bound", heavy_by_others),
    "NaN is clamped": (rows, "_row_contribution", nan_is_clamped),
}


@pytest.mark.parametrize("bug", BUGS)
def test_a_planted_bug_is_caught(monkeypatch, bug):
    bounds = ContributionBounds("person", 3, 2, 2)
    check_batch(1, bounds, False, Seen())
    monkeypatch.setattr(*BUGS[bug])
    with pytest.raises(AssertionError):
        check_batch(1, bounds, False, Seen())
