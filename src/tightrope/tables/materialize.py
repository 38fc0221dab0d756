"""Copies rows into a table of a private DuckDB connection, in a few portable types, and seals the connection.

A sealed connection cannot open files or change settings. It has none of the user's macros, collations, views and
settings, and every scan sees the same rows. The columns are called ``c0, c1, ...``, so that users' names do not reach
the engine.

A value that its stored type cannot represent becomes missing, never an error: an instant out of range, a day with a
time of day, text that is not UTF-8. Otherwise one person's value could stop the whole release. Each value is converted
by itself.
"""

from __future__ import annotations

import glob
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from tightrope.tables.backends.duckdb import open_connection, seal_connection
from tightrope.tables.engine_calls import engine_call, load_library

if TYPE_CHECKING:
    import ibis.expr.types as ir
    import pyarrow as pa
    from ibis.backends import BaseBackend

MILLISECONDS_PER_DAY = 86_400_000
_MICROSECONDS_PER_TICK = {"s": 1_000_000, "ms": 1_000}
NOT_A_TIME = np.iinfo(np.int64).min
"""The missing instant of numpy and pandas (NaT): it is unequal to every value, itself included, and unordered."""
TABLE = "tightrope_rows"
"""Name of the table with the copied rows."""
UUID, BOOLEANS_OF_8_BITS = "arrow.uuid", "arrow.bool8"
"""Arrow's extension types that are stored as texts and booleans; other extension types are not supported."""
DUCKDB_TYPES = {
    "int8": "TINYINT",
    "int16": "SMALLINT",
    "int32": "INTEGER",
    "int64": "BIGINT",
    "uint8": "UTINYINT",
    "uint16": "USMALLINT",
    "uint32": "UINTEGER",
    "uint64": "UBIGINT",
    "float": "FLOAT",
    "double": "DOUBLE",
    "bool": "BOOLEAN",
    "string": "VARCHAR",
    "large_string": "VARCHAR",
    "date32[day]": "DATE",
}
"""Arrow types that DuckDB reads from a Parquet file exactly as Arrow does, and DuckDB's names of them."""


def storage_schema(schema: pa.Schema) -> pa.Schema:
    """Return the schema of the batches that ``normalize_batch`` makes of batches with this schema."""
    arrow = load_library("pyarrow")
    return arrow.schema([arrow.field(field.name, storage_type(field.type)) for field in schema])


def storage_type(given: pa.DataType) -> pa.DataType:
    """Return the stored type of an Arrow type: dictionaries and runs decoded, days in 32 bits, instants in UTC."""
    arrow = load_library("pyarrow")
    types = arrow.types
    if types.is_dictionary(given) or types.is_run_end_encoded(given):
        return storage_type(given.value_type)
    if isinstance(given, arrow.BaseExtensionType):
        return {UUID: arrow.string(), BOOLEANS_OF_8_BITS: arrow.bool_()}.get(given.extension_name, given)
    if types.is_timestamp(given):
        has_nanoseconds = given.unit == "ns" and given.tz is None
        return arrow.timestamp("ns" if has_nanoseconds else "us", tz=given.tz and "UTC")
    rules = (
        (types.is_fixed_size_binary, arrow.binary()),
        (types.is_float16, arrow.float32()),
        (types.is_date64, arrow.date32()),
        (types.is_null, arrow.string()),
        (lambda arrow_type: str(arrow_type) == "string_view", arrow.large_string()),
    )
    return next((stored for applies, stored in rules if applies(given)), given)


def normalize_batch(batch: pa.RecordBatch, schema: pa.Schema) -> pa.RecordBatch:
    """Return a record batch in ``storage_schema``; columns that need no conversion are not copied."""
    pairs = zip(batch.columns, schema, strict=True)
    columns = engine_call(
        "convert the rows", lambda: [_normalize_column(column, field.type) for column, field in pairs]
    )
    return load_library("pyarrow").RecordBatch.from_arrays(columns, schema=schema)


def drop_long_texts(batch: pa.RecordBatch, longest: int | None) -> pa.RecordBatch:
    """Return the batch without texts of more than ``longest`` bytes, which become missing; dictionaries are kept."""
    if longest is None:
        return batch
    columns = [_drop_long_entries(column, longest) for column in batch.columns]
    return load_library("pyarrow").RecordBatch.from_arrays(columns, schema=batch.schema)


def _drop_long_entries(column: pa.Array, longest: int) -> pa.Array:
    """Return a column in which texts of more than ``longest`` bytes are missing."""
    arrow, compute, given = load_library("pyarrow"), load_library("pyarrow.compute"), column.type
    if arrow.types.is_dictionary(given):
        entries = _drop_long_entries(column.dictionary, longest)
        if entries is column.dictionary:
            return column
        return arrow.DictionaryArray.from_arrays(column.indices, entries, ordered=given.ordered)
    if not (arrow.types.is_string(given) or arrow.types.is_large_string(given)):
        return column
    too_long = compute.greater(compute.binary_length(column), longest)
    if not compute.any(too_long).as_py():
        return column
    return compute.if_else(too_long, arrow.scalar(None, given), column)


def _normalize_column(column: pa.Array, stored_type: pa.DataType) -> pa.Array:
    """Return a column in its stored type; values that do not fit are missing."""
    column = _decode_column(column)
    types, given = load_library("pyarrow").types, column.type
    if types.is_timestamp(given):
        return _normalize_instants(column, stored_type)
    if types.is_date64(given):
        milliseconds, missing = _ticks_and_missing(column)
        days, time_of_day = np.divmod(milliseconds, MILLISECONDS_PER_DAY)
        missing = missing | (time_of_day != 0) | (np.abs(days) > np.iinfo(np.int32).max)
        return _masked_array(np.where(missing, 0, days).astype(np.int32), missing, load_library("pyarrow").date32())
    if types.is_string(stored_type) or types.is_large_string(stored_type):
        return drop_invalid_utf8(column.cast(stored_type) if given != stored_type else column)
    return column if given == stored_type else column.cast(stored_type)


def _decode_column(column: pa.Array) -> pa.Array:
    """Return a column with dictionaries, runs, UUIDs and booleans of 8 bits as plain values."""
    arrow = load_library("pyarrow")
    given = column.type
    if arrow.types.is_run_end_encoded(given):
        rows = np.arange(column.offset, column.offset + len(column))
        runs = np.searchsorted(column.run_ends.to_numpy(), rows, side="right")
        return _decode_column(column.values).take(arrow.array(runs))
    if arrow.types.is_dictionary(given):
        if str(given.value_type) == "string_view":  # Arrow does not decode these
            column = arrow.DictionaryArray.from_arrays(column.indices, column.dictionary.cast(arrow.large_string()))
        return _decode_column(column.dictionary_decode())
    extension_name = given.extension_name if isinstance(given, arrow.BaseExtensionType) else None
    if extension_name == UUID:
        return _uuid_texts(column.storage)
    return column.storage.cast(arrow.bool_()) if extension_name == BOOLEANS_OF_8_BITS else column


def _uuid_texts(column: pa.Array) -> pa.Array:
    """Return values of 16 bytes as texts such as 'a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11'."""
    arrow = load_library("pyarrow")
    raw = b"".join(column.fill_null(bytes(16)).to_pylist())
    digits = np.frombuffer(raw.hex().encode(), np.uint8).reshape(-1, 32)
    texts = np.insert(digits, [8, 12, 16, 20], ord("-"), axis=1)
    filled = arrow.Array.from_buffers(arrow.binary(36), len(column), [None, arrow.py_buffer(texts.tobytes())])
    return load_library("pyarrow.compute").if_else(column.is_valid(), filled, arrow.scalar(None, filled.type))


def drop_invalid_utf8(column: pa.Array) -> pa.Array:
    """Return a column of text in which invalid UTF-8 is missing."""
    try:
        column.validate(full=True)
    except load_library("pyarrow").ArrowInvalid:
        texts: list[str | None] = []
        for entry in column.cast("large_binary").to_pylist():
            try:
                texts.append(None if entry is None else entry.decode())
            except UnicodeDecodeError:
                texts.append(None)
        return load_library("pyarrow").array(texts, column.type)
    return column


def _normalize_instants(column: pa.Array, stored_type: pa.DataType) -> pa.Array:
    """Convert to microseconds and UTC; values that do not fit in 64 bits are missing."""
    ticks, missing = _ticks_and_missing(column)
    is_nat = ticks == NOT_A_TIME
    factor = _MICROSECONDS_PER_TICK.get(column.type.unit)
    if factor is not None:
        largest = np.iinfo(np.int64).max // factor
        missing = missing | (ticks > largest) | (ticks < -largest)
        ticks = np.where(missing, 0, ticks) * factor
    elif column.type.unit == "ns" and stored_type.unit == "us":
        ticks = ticks // 1_000
    elif column.type.unit == stored_type.unit and not np.any(is_nat):
        return column.view(stored_type)
    return _masked_array(ticks, missing | is_nat, stored_type)


def _ticks_and_missing(column: pa.Array) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
    """Return the integers that a column of times stores, and which of them are missing."""
    missing = np.asarray(column.is_null())
    return column.view("int64").fill_null(0).to_numpy(zero_copy_only=False), missing


def _masked_array(values: NDArray[Any], missing: NDArray[np.bool_], stored_type: pa.DataType) -> pa.Array:
    return load_library("pyarrow").array(values, mask=missing).view(stored_type)


@dataclass(frozen=True, slots=True)
class RowSource:
    """A source of rows: the Arrow schema, and ``read_batches``, which iterates over all rows as record batches.

    ``parquet_files`` are files with the same rows, if there are any: DuckDB reads them itself if no value needs
    conversion. ``check_unchanged`` raises if the source has changed; ``read_batches`` checks this by itself.
    """

    schema: pa.Schema
    read_batches: Callable[[], Iterable[pa.RecordBatch]]
    parquet_files: tuple[Path, ...] = ()
    check_unchanged: Callable[[], None] = lambda: None


@contextmanager
def materialize_rows(rows: RowSource, longest: int | None = None) -> Iterator[tuple[BaseBackend, ir.Table]]:
    """Yield a private back end and its table of all rows, in their stored types, under their original names.

    A text of more than ``longest`` bytes becomes missing before it is processed further.

    Errors of ``read_batches`` are raised unchanged; errors of the engine become ``EngineError``.
    """
    backend = engine_call("open a private connection", open_connection)
    try:
        if not _copy_from_parquet(backend.con, rows, longest):
            batches = (drop_long_texts(batch, longest) for batch in rows.read_batches())
            schema = storage_schema(rows.schema)
            arrow = load_library("pyarrow")
            stored = arrow.schema([arrow.field(f"c{index}", field.type) for index, field in enumerate(schema)])
            engine_call("make the table", lambda: backend.con.from_arrow(stored.empty_table()).create(TABLE))
            for batch in batches:
                _store_batch(backend.con, drop_long_texts(normalize_batch(batch, schema), longest), stored)
        engine_call("seal the private connection", lambda: seal_connection(backend))
        table = engine_call("read the schema of the copied rows", lambda: backend.table(TABLE))
        columns = {name: table[f"c{index}"] for index, name in enumerate(rows.schema.names)}
        yield backend, table.select(**columns)
    finally:
        engine_call("close the private connection", backend.disconnect)


def _copy_from_parquet(connection: Any, rows: RowSource, longest: int | None) -> bool:
    """Copy the rows from their Parquet files with DuckDB; return False, without a table, if values need conversion."""
    if not rows.parquet_files or not all(str(field.type) in DUCKDB_TYPES for field in rows.schema):
        return False
    rows.check_unchanged()
    duckdb = load_library("duckdb")
    paths = [glob.escape(str(path.absolute())) for path in rows.parquet_files]
    columns = []
    for index, field in enumerate(rows.schema):
        column = duckdb.ColumnExpression(field.name)
        if longest is not None and DUCKDB_TYPES[str(field.type)] == "VARCHAR":
            fits = duckdb.FunctionExpression("strlen", column) <= duckdb.ConstantExpression(longest)
            column = duckdb.CaseExpression(fits, column)
        columns.append(column.alias(f"c{index}"))
    try:
        relation = connection.read_parquet(paths, hive_partitioning=False).select(*columns)
        if list(map(str, relation.types)) != [DUCKDB_TYPES[str(field.type)] for field in rows.schema]:
            return False
        relation.create(TABLE)
    except duckdb.Error:  # for example text that is not UTF-8
        return False
    rows.check_unchanged()
    return True


def _store_batch(connection: Any, batch: pa.RecordBatch, stored: pa.Schema) -> None:
    arrow = load_library("pyarrow")
    rows = arrow.Table.from_batches([arrow.RecordBatch.from_arrays(batch.columns, schema=stored)])
    engine_call("store a batch of rows", lambda: connection.from_arrow(rows).insert_into(TABLE))
