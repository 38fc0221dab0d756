"""Persons who cannot exceed a bound are left out before the others are counted; the totals stay the same."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from tightrope.tables import ContributionBounds, GroupTotals, Measure, Request, open_source
from tightrope.tables.backends import duckdb
from tightrope.tables.backends.duckdb import drop_rare_persons, open_connection
from tightrope.tables.engine_calls import engine_call
from tightrope.tables.expressions.parsing import parse_expression

ROWS = 20_000
PERSONS: dict[str, Any] = {
    "integers": lambda ids: pa.array(ids, mask=ids % 97 == 0),
    "negative integers": lambda ids: pa.array(ids - ROWS // 2, pa.int16()),
    "integers far apart": lambda ids: pa.array((ids - 77) * 10**14),
    "large integers": lambda ids: pa.array(ids.astype(np.uint64) + np.uint64(2**64 - ROWS - 1)),
    "integers of 32 bits": lambda ids: pa.array(ids + (2**32 - ROWS), pa.uint32()),
    "texts": lambda ids: pa.array([f"person {number}" * (1 + number % 9) for number in ids]),
    "floats": lambda ids: pa.array(np.where(ids % 2, ids, -0.0)),
    "days": lambda ids: pa.array(ids.astype("datetime64[D]")),
}


def table(kind: str, *, heavy: int = 300) -> pa.Table:
    """Most persons have one to three rows, every hundredth one ``heavy``."""
    draw = np.random.default_rng(5)
    sizes = np.where(np.arange(ROWS) % 100 == 0, heavy, 1 + np.arange(ROWS) % 3)
    ids = draw.permutation(np.repeat(np.arange(ROWS), sizes)[:ROWS])
    return pa.table({"person": PERSONS[kind](ids), "city": draw.integers(0, 5, ROWS), "n": draw.integers(0, 9, ROWS)})


def totals(rows: pa.Table, requests: list[Request]) -> list[GroupTotals]:
    with open_source(rows).open_snapshot(requests) as snapshot:
        return [snapshot.collect_totals(request) for request in requests]


def requests(max_rows: int) -> list[Request]:
    bounds, wider = (ContributionBounds("person", most, most, most) for most in (max_rows, max_rows + 1))
    measures = (Measure("rows", None, None),)
    return [
        Request(("city",), None, bounds, measures),
        Request((), None, bounds, measures, where=parse_expression("n > 4")),
        Request(("city",), ((1,), (3,)), wider, measures),
    ]


@pytest.mark.parametrize("kind", PERSONS)
@pytest.mark.parametrize("max_rows", [1, 3, 400])
def test_totals_are_those_of_all_persons(kind: str, max_rows: int, monkeypatch: pytest.MonkeyPatch) -> None:
    rows = table(kind)
    expected = totals(rows, requests(max_rows))
    monkeypatch.setattr(duckdb, "FEWEST_COUNTED_ROWS", 1)
    monkeypatch.setattr(duckdb, "LARGEST_SHARE_OF_ROWS", 1.0)
    for bits in (25, 10, 3):  # in few buckets, persons with few rows are kept, too
        monkeypatch.setattr(duckdb, "BUCKET_BITS", bits)
        assert totals(rows, requests(max_rows)) == expected


@pytest.mark.parametrize(("heavy", "shared", "fewer"), [(300, 1.0, True), (300, 0.4, False), (4, 0.4, True)])
def test_rows_of_persons_over_the_bound_are_kept_and_most_others_are_not(
    heavy: int, shared: float, *, fewer: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(duckdb, "FEWEST_COUNTED_ROWS", 1)
    monkeypatch.setattr(duckdb, "LARGEST_SHARE_OF_ROWS", shared)
    rows, backend = table("integers", heavy=heavy), open_connection()
    stored = engine_call("store the rows", lambda: backend.create_table("rows", rows.select(["person"])))
    persons = stored.filter(stored.person.notnull())
    kept = backend.to_pyarrow(drop_rare_persons(backend, persons, 3))["person"].to_pylist()
    counts: dict[int, int] = {}
    for person in rows["person"].to_pylist():
        if person is not None:
            counts[person] = counts.get(person, 0) + 1
    over_bound = {person: count for person, count in counts.items() if count > 3}
    assert over_bound
    assert {person: kept.count(person) for person in over_bound} == over_bound
    assert (len(kept) < 1.1 * sum(over_bound.values())) == fewer


@pytest.mark.parametrize(("kind", "exactly"), [("negative integers", True), ("integers far apart", False)])
def test_numbers_of_persons_in_a_short_range_are_counted_one_by_one(
    kind: str, *, exactly: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With few buckets for the others, several persons share one."""
    monkeypatch.setattr(duckdb, "FEWEST_COUNTED_ROWS", 1)
    monkeypatch.setattr(duckdb, "BUCKET_BITS", 15)
    rows, backend = table(kind, heavy=4), open_connection()
    stored = engine_call("store the rows", lambda: backend.create_table("rows", rows.select(["person"])))
    kept = sorted(backend.to_pyarrow(drop_rare_persons(backend, stored, 3))["person"].to_pylist())
    persons, counts = np.unique(rows["person"].to_numpy(), return_counts=True)
    over_bound = np.repeat(persons[counts > 3], counts[counts > 3]).tolist()
    assert over_bound
    assert (kept == over_bound) == exactly
    assert set(over_bound) <= set(kept)


def test_counts_of_a_person_do_not_begin_again_at_zero(monkeypatch: pytest.MonkeyPatch) -> None:
    """With counts of 16 bits a person with 65 536 rows would have none, and all rows would be used."""
    rows = pa.table({"person": pa.array([7] * 65_536 + [*range(100, 60_000)]), "n": [1] * 125_436})
    monkeypatch.setattr(duckdb, "FEWEST_COUNTED_ROWS", 1)
    monkeypatch.setattr(duckdb, "LARGEST_SHARE_OF_ROWS", 1.0)
    request = Request((), None, ContributionBounds("person", 2, 2, 2), (Measure("rows", None, None),))
    (found,) = totals(rows, [request])
    assert found.values["rows"] == (59_902,)
