"""Persons with too many rows are found, and their rows ordered, once for all requests that share them."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest

from tests.tables.questions import ask, mean, per_person
from tightrope.tables import DistinctCount, GroupTotals, Measure, Request, bounding, open_source
from tightrope.tables.bounding import order_rows_of_persons, persons_over_bound
from tightrope.tables.expressions.parsing import parse_expression
from tightrope.tables.snapshot import share_rows

MEASURES = (Measure("rows", None, None), *mean("x", lower=-2, upper=10))


def table() -> pa.Table:
    draw = np.random.default_rng(5)
    people = [None, *draw.integers(0, 60, 399).tolist()]
    keys = draw.choice(["a", "b", "c"], 400)
    return pa.table({"person": people, "k": keys, "j": draw.integers(0, 4, 400), "x": draw.normal(3, 4, 400)})


CELLS = tuple((cell,) for cell in range(5))
SHARED = [
    ask(bounds=per_person(3), measures=MEASURES),
    ask("k", bounds=per_person(3), measures=MEASURES),
    Request((parse_expression("cell(x, -2, 10, 5)"),), CELLS, per_person(3), MEASURES),
    Request(("j",), None, per_person(3), (*MEASURES, DistinctCount("different", "k", None))),
]
ALONE = [
    Request(("k",), (("a",), (None,)), per_person(3), MEASURES),
    Request(("j",), None, per_person(3), MEASURES, parse_expression("x > 5 and k in ['a', 'b']")),
    ask("k", bounds=per_person(3, 1, 2), measures=MEASURES),
    ask("j", bounds=per_person(3, 3, 2), measures=MEASURES),
    ask("j", bounds=per_person(2), measures=MEASURES),
]
REQUESTS = [*SHARED, *ALONE]


def collect(rows: pa.Table, requests: list[Request]) -> list[GroupTotals]:
    with open_source(rows).open_snapshot(requests) as snapshot:
        return [snapshot.collect_totals(request) for request in requests]


@pytest.mark.slow
def test_every_engine_selects_the_same_rows_of_a_person(opened):
    source = opened(table())
    with source.open_snapshot(REQUESTS) as rows:
        together = [rows.collect_totals(request) for request in (*REQUESTS, *reversed(REQUESTS))]
    expected = collect(table(), REQUESTS)
    assert together == [*expected, *reversed(expected)]


def test_requests_that_share_no_rows_select_them_as_each_alone():
    alone = [collect(table(), [request])[0] for request in ALONE]
    assert collect(table(), REQUESTS)[len(SHARED) :] == alone


def test_requests_that_share_rows_use_the_same_ones():
    """All values are usable, so that every row is in a cell: each sum over groups is the sum without groups."""
    total, *by_group = collect(table(), SHARED)
    for groups in by_group:
        for name, (expected,) in total.values.items():
            assert sum(groups.values[name]) == expected, name
    people = [person for person in table()["person"].to_pylist() if person is not None]
    assert total.values["rows"] == (sum(min(3, people.count(person)) for person in set(people)),)


@pytest.mark.parametrize("person", [0, 7, 31, 59])
def test_a_person_changes_shared_requests_by_at_most_the_bound_and_alone(person: int):
    rows = table()
    is_person = pc.fill_null(pc.equal(rows["person"], person), False)
    with_all, without = (collect(part, SHARED) for part in (rows, rows.filter(pc.invert(is_person))))
    of_person = collect(rows.filter(is_person), SHARED)
    for name in ("rows", "usable", "sum"):
        for everyone, others, single in zip(with_all, without, of_person, strict=True):
            changes = changes_by_key(everyone, others, name)
            assert changes == {
                key: n for key, n in dict(zip(single.keys, single.values[name], strict=True)).items() if n
            }
            assert name == "sum" or sum(changes.values()) <= 3


def changes_by_key(everyone: GroupTotals, others: GroupTotals, name: str) -> dict[object, int]:
    """Return the differences that are not zero, by key."""
    before, after = (dict(zip(part.keys, part.values[name], strict=True)) for part in (others, everyone))
    changes = {key: total - before.get(key, 0) for key, total in after.items()}
    assert before.keys() <= after.keys()
    return {key: change for key, change in changes.items() if change}


def test_a_request_without_missing_cells_selects_rows_that_have_a_cell():
    """A person with three usable rows of many uses these three in cells, whatever the others are."""
    rows = pa.table({"person": [1] * 50, "x": [None] * 47 + [0.0, 5.0, 9.0], "k": ["a"] * 50, "j": [0] * 50})
    _, _, cells, _ = collect(rows, SHARED)
    assert cells.values["rows"] == (1, 0, 1, 0, 1)


def test_persons_are_counted_and_rows_ordered_once(monkeypatch):
    counted, ordered = [], []

    def count_persons(rows, bounds):
        counted.append(bounds)
        return persons_over_bound(rows, bounds)

    def order_rows(rows):
        ordered.append(rows)
        return order_rows_of_persons(rows)

    monkeypatch.setattr(bounding, "persons_over_bound", count_persons)
    monkeypatch.setattr(bounding, "order_rows_of_persons", order_rows)
    collect(table(), REQUESTS)
    assert len(counted) == 4  # one for bounds of three rows, one for each of the last three
    assert len(ordered) == 1 + len(ALONE)


def test_columns_of_shared_requests_fit_in_one_hashed_text():
    many = [Request((parse_expression(f"j + {number}"),), None, per_person(3), MEASURES) for number in range(40)]
    groups = share_rows(many, open_source(table()).schema)
    assert [request for group in groups for request in group.members] == many
    assert {len(group.positions) for group in groups} == {14, 6}
    assert collect(table(), many[:16])[15].keys[0] == (15,)
