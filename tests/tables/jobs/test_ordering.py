"""Rows that are written in an order of their own."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.tables.every_engine import ENGINES
from tightrope.errors import EngineError, InputError
from tightrope.tables import open_source
from tightrope.tables.jobs import write_sorted_columns

KEPT = {
    "day": pa.array([18_000, None] * 500, pa.date32()),
    "at": pa.array([1_600_000_000_000_000] * 1000, pa.timestamp("us", tz="UTC")),
    "name": pa.array([f"n{k % 7}" for k in range(1000)]),
    "share": pa.array([float("nan"), None, 1.5, -np.inf] * 250),
}


def draw(batch: Any) -> Any:
    """x modulo 3."""
    values = np.asarray(batch.column(0)) % 3
    return pa.RecordBatch.from_arrays([pa.array(values, pa.int64())], names=["x"])


def release(numbers: list[int], folder: Path, name: str, keep: tuple[str, ...] = ()) -> pa.Table:
    rows = open_source(pa.table({"x": numbers, **{column: KEPT[column] for column in keep}}))
    out = folder / name
    assert write_sorted_columns(rows, ["x"], draw, pa.schema([("x", pa.int64())]), out, keep=keep) == len(numbers)
    return pq.read_table(out)


def test_places_of_rows_do_not_show_where_they_stood(tmp_path: Path) -> None:
    numbers = list(range(1000))
    there, back = (release(order, tmp_path, f"{order[0]}.parquet") for order in (numbers, numbers[::-1]))
    assert there.equals(back)
    assert there["x"].to_pylist() == [0] * 334 + [1] * 333 + [2] * 333


def test_rows_stay_together_and_keep_their_types(tmp_path: Path) -> None:
    found = release(list(range(1000)), tmp_path, "[a]*.parquet", tuple(KEPT))
    wanted = pa.table({"x": [k % 3 for k in range(1000)], **KEPT})
    assert found.schema.types == wanted.schema.types
    assert sorted(map(str, found.to_pylist())) == sorted(map(str, wanted.to_pylist()))
    assert sorted(entry.name for entry in tmp_path.iterdir()) == ["[a]*.parquet"]


def test_nothing_is_left_where_it_fails(tmp_path: Path) -> None:
    def broken(batch: Any) -> Any:
        raise ValueError("secret")

    rows, schema = open_source(pa.table({"x": [1]})), pa.schema([("x", pa.int64())])
    with pytest.raises(EngineError) as caught:
        write_sorted_columns(rows, ["x"], broken, schema, tmp_path / "a.parquet")
    assert "secret" not in str(caught.value)
    assert not list(tmp_path.iterdir())
    with pytest.raises(InputError, match=r"out\.csv"):
        write_sorted_columns(rows, ["x"], draw, schema, tmp_path / "out.csv")
    (tmp_path / "b.parquet").touch()
    with pytest.raises(InputError, match="does not exist yet"):
        write_sorted_columns(rows, ["x"], draw, schema, tmp_path / "b.parquet")


def test_an_expression_on_spark_is_written_in_parts_like_a_frame(tmp_path: Path) -> None:
    frame = ENGINES["spark"](pa.table({"x": [3, 1, 2]}), tmp_path)
    out = tmp_path / "parts"
    with frame.select_columns(["x"]) as (_, expression):
        rows = open_source(expression)
        assert write_sorted_columns(rows, ["x"], draw, pa.schema([("x", pa.int64())]), out) == 3
    assert sorted(pq.read_table(out)["x"].to_pylist()) == [0, 1, 2]
