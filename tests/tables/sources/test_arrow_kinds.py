"""Opening Arrow batches loads no engine: the kinds that we give without one are those that it would give."""

from __future__ import annotations

import json
import subprocess
import sys
import threading
import time

import ibis
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import tightrope as tr
from tightrope.errors import SchemaError
from tightrope.tables import open_source
from tightrope.tables.backends.column_types import MAX_DECIMAL_DIGITS, arrow_kind, kind_of
from tightrope.tables.engine_calls import LazyValue
from tightrope.tables.materialize import storage_type

TYPES = (
    *(pa.bool_(), pa.int8(), pa.int64(), pa.uint8(), pa.uint64(), pa.float16(), pa.float32(), pa.float64()),
    *(pa.decimal128(38, 0), pa.decimal128(10, 2), pa.decimal128(10, -2), pa.decimal256(38, 0), pa.decimal256(20, 3)),
    *(pa.decimal256(76, 0), pa.decimal256(76, 3), pa.decimal32(5, 1), pa.decimal64(10, 0)),
    *(pa.string(), pa.large_string(), pa.string_view(), pa.null(), pa.binary(), pa.large_binary(), pa.binary(16)),
    *(pa.date32(), pa.date64(), pa.timestamp("s"), pa.timestamp("ns"), pa.timestamp("ns", "Europe/Oslo")),
    *(pa.timestamp("us", "+05:00"), pa.time32("s"), pa.time64("ns"), pa.duration("s"), pa.month_day_nano_interval()),
    *(pa.list_(pa.int8()), pa.list_(pa.int8(), 3), pa.struct({"a": pa.int8()}), pa.map_(pa.string(), pa.int8())),
    *(pa.dictionary(pa.int8(), pa.string()), pa.dictionary(pa.int8(), pa.int64()), pa.uuid(), pa.json_(), pa.bool8()),
    pa.run_end_encoded(pa.int32(), pa.string()),
)


def by_ibis(stored: pa.DataType) -> str:
    """The kind of the ibis type; ibis raises errors of several kinds for what it does not know."""
    if pa.types.is_decimal256(stored):  # DuckDB reads none, however few digits it has
        return "other"
    if pa.types.is_decimal(stored) and stored.precision > MAX_DECIMAL_DIGITS:
        return "other"
    try:
        return kind_of(ibis.dtype(stored))
    except Exception:
        return "other"


@pytest.mark.parametrize("given", TYPES, ids=str)
def test_every_arrow_type_has_the_kind_of_its_ibis_type(given):
    stored = storage_type(given)
    assert arrow_kind(stored) == by_ibis(stored)


@pytest.mark.parametrize("digits", [(38, 2), (20, 0), (76, 3)], ids=str)
def test_a_wide_decimal_is_refused_when_it_is_planned(tmp_path, digits):
    """It was offered as a number, and the engine failed at the release."""
    table = pa.table({"x": pa.array([1, 2], pa.int64()).cast(pa.decimal256(*digits))})
    pq.write_table(table, tmp_path / "a.parquet")
    for source in (table, tmp_path / "a.parquet"):
        session = tr.Session(source, privacy_unit=None, budget=tr.Budget(epsilon=1, delta=1e-8))
        with pytest.raises(SchemaError, match=r"the type decimal256.*at most 38 digits"):
            session.plan([tr.sum("x", bounds=(0, 5))])


def test_a_schema_is_read_without_an_engine():
    code = (
        "import sys, json, pyarrow, tightrope.tables as e;"
        "e.open_source(pyarrow.table({'a': [1], 'b': ['x']}));"
        "print(json.dumps(sorted({'ibis', 'duckdb', 'sqlglot'} & set(sys.modules))))"
    )
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert json.loads(ran.stdout) == []


def test_jobs_get_one_connection():
    table = open_source(pa.table({"a": [1, 2]}))
    with table.select_columns(["a"]) as (backend, rows), table.select_columns(["a"]) as (other, _):
        assert other is backend
        assert rows.count().execute() == 2


def test_once_is_once_in_every_thread():
    made, got = [], []

    def make() -> object:
        time.sleep(0.01)
        made.append(object())
        return made[-1]

    once = LazyValue(make)
    threads = [threading.Thread(target=lambda: got.append(once())) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(made) == 1
    assert set(got) == set(made)
