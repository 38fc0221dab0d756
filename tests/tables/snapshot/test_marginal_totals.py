"""Tables of counts of the same rows: every engine, and every neighbor."""

from __future__ import annotations

import itertools
from collections import Counter
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from tests.tables.every_engine import ENGINES
from tightrope.errors import InputError
from tightrope.tables import ContributionBounds, Measure, open_source
from tightrope.tables.request import GroupTotals, MarginalRequest, table_name

VALUES = (("a", "b", None), (0, 1, 2, 3), (None, False, True))
TABLES = tuple(table for order in (0, 1, 2, 3) for table in itertools.combinations(range(3), order))
COUNT = (Measure("rows", None, None),)


def rows_of(draw: np.random.Generator, count: int) -> pa.Table:
    """Rows with values that are not listed, too."""
    texts, flags = np.array(["a", "b", None, "c"], dtype=object), np.array([True, False, None], dtype=object)
    return pa.table(
        {
            "person": pa.array(draw.integers(0, 25, count)),
            "text": pa.array(texts[draw.integers(0, 4, count)].tolist(), "string"),
            "number": pa.array(draw.integers(-1, 5, count)),
            "flag": pa.array(flags[draw.integers(0, 3, count)].tolist(), "bool"),
        }
    )


def request(bounds: ContributionBounds) -> MarginalRequest:
    return MarginalRequest(("text", "number", "flag"), None, bounds, COUNT, column_values=VALUES, tables=TABLES)


EACH_ROW = ContributionBounds(None, 1, 1, 1)


def of_persons(rows: int) -> ContributionBounds:
    return ContributionBounds("person", rows, rows, rows)


def counted(totals: GroupTotals) -> dict[tuple[int, ...], np.ndarray]:
    return {
        table: np.array(totals.values[table_name(table)]).reshape([len(VALUES[column]) for column in table])
        for table in TABLES
    }


def test_rows_with_another_value_are_in_no_table():
    rows = rows_of(np.random.default_rng(1), 500)
    tables = counted(open_source(rows).collect_totals(request(EACH_ROW)))
    records = zip(*(rows[name].to_pylist() for name in ("text", "number", "flag")), strict=True)
    listed = Counter(row for row in records if all(value in VALUES[i] for i, value in enumerate(row)))
    for cell in itertools.product(*(range(len(values)) for values in VALUES)):
        assert tables[0, 1, 2][cell] == listed[tuple(VALUES[i][j] for i, j in enumerate(cell))]


@pytest.mark.parametrize("bounds", [EACH_ROW, of_persons(1), of_persons(4), of_persons(100)])
def test_all_tables_count_the_same_rows(bounds: ContributionBounds):
    tables = counted(open_source(rows_of(np.random.default_rng(2), 400)).collect_totals(request(bounds)))
    for table in TABLES:
        others = tuple(axis for axis in range(3) if axis not in table)
        assert np.array_equal(tables[table], tables[0, 1, 2].sum(axis=others))


@pytest.mark.parametrize("most", [1, 3])
def test_one_person_more_changes_each_table_by_the_same_few_rows(most: int):
    draw = np.random.default_rng(3)
    for _ in range(12):
        rows = rows_of(draw, int(draw.integers(1, 200)))
        person = int(draw.integers(0, 25))
        without = rows.filter(pa.compute.not_equal(rows["person"], person))
        with_person, fewer = (
            counted(open_source(one).collect_totals(request(of_persons(most)))) for one in (rows, without)
        )
        added = {table: with_person[table] - fewer[table] for table in TABLES}
        assert added[()] <= most
        for table in TABLES:
            assert np.all(added[table] >= 0)
            assert added[table].sum() == added[()]


@pytest.mark.slow
@pytest.mark.parametrize("engine", [name for name in ENGINES if name != "arrow"])
def test_every_engine_counts_the_same(tmp_path: Path, engine: str):
    rows = rows_of(np.random.default_rng(4), 600)
    here, there = ENGINES["arrow"](rows, tmp_path), ENGINES[engine](rows, tmp_path)
    for bounds in (EACH_ROW, of_persons(2)):
        assert there.collect_totals(request(bounds)) == here.collect_totals(request(bounds))


def test_no_rows_are_zeros_in_every_cell():
    tables = counted(open_source(rows_of(np.random.default_rng(5), 0)).collect_totals(request(EACH_ROW)))
    assert all(not np.any(table) for table in tables.values())


@pytest.mark.parametrize(
    ("changed", "parameter"),
    [
        ({"tables": ((1, 0),)}, "tables"),
        ({"tables": ((3,),)}, "tables"),
        ({"column_values": VALUES[:2]}, "column_values"),
    ],
)
def test_tables_of_other_columns_are_refused(changed: dict[str, object], parameter: str):
    options: dict[str, object] = {"column_values": VALUES, "tables": TABLES, **changed}
    with pytest.raises(InputError) as caught:
        MarginalRequest(("text", "number", "flag"), None, EACH_ROW, COUNT, **options)  # type: ignore[arg-type]
    assert caught.value.name == parameter
