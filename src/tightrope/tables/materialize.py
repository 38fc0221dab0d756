"""The snapshot: a table in a private connection, filled once, then sealed.

It is free of foreign macros, collations, views and settings, and every scan of it sees the same rows. Its columns are
called ``c0, c1, ...``: no name of the user's reaches the engine.
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

# Arrow columns in the few types that are stored, by rules that look at one value at a time.
#
# What a type cannot say is missing, never an error: an instant out of range, a day with a time of day, text that is
# not UTF-8. Otherwise one person's value could stop everybody's answer.

A_DAY = 86_400_000
_TICKS = {"s": 1_000_000, "ms": 1_000}
"""Microseconds in a tick."""
NO_TIME = np.iinfo(np.int64).min
"""The missing instant of numpy and pandas: it is unequal to every value, itself included, and unordered."""


def storage_schema(schema: Any) -> Any:
    """The schema that ``normalize_batch`` gives for a batch of this one."""
    arrow = load_library("pyarrow")
    return arrow.schema([arrow.field(field.name, storage_type(field.type)) for field in schema])


def storage_type(given: Any) -> Any:
    """The type that is stored: dictionaries spelled out, days of one width, instants in UTC."""
    arrow = load_library("pyarrow")
    types = arrow.types
    if types.is_dictionary(given):
        return storage_type(given.value_type)
    if types.is_timestamp(given):
        fine = given.unit == "ns" and given.tz is None
        return arrow.timestamp("ns" if fine else "us", tz=given.tz and "UTC")
    rules = (
        (types.is_fixed_size_binary, arrow.binary()),
        (types.is_float16, arrow.float32()),
        (types.is_date64, arrow.date32()),
        (types.is_null, arrow.string()),
        (lambda kind: str(kind) == "string_view", arrow.large_string()),
    )
    return next((stored for test, stored in rules if test(given)), given)


def normalize_batch(batch: Any, schema: Any) -> Any:
    """A record batch in ``storage_schema``; columns that need no rule are not copied."""
    columns = [_normalize_column(column, field.type) for column, field in zip(batch.columns, schema, strict=True)]
    return load_library("pyarrow").RecordBatch.from_arrays(columns, schema=schema)


def drop_long_texts(batch: Any, longest: int | None) -> Any:
    """The batch without texts of more bytes than this: they are missing. In a dictionary, before it is spelled out."""
    if longest is None:
        return batch
    columns = [_drop_long_entries(column, longest) for column in batch.columns]
    return load_library("pyarrow").RecordBatch.from_arrays(columns, schema=batch.schema)


def _drop_long_entries(column: Any, longest: int) -> Any:
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


def _normalize_column(column: Any, wanted: Any) -> Any:
    arrow = load_library("pyarrow")
    types, given = arrow.types, column.type
    if types.is_dictionary(given):
        return _normalize_column(column.dictionary_decode(), wanted)
    if types.is_timestamp(given):
        return _normalize_instants(column, wanted)
    if types.is_date64(given):
        # Milliseconds that are a whole number of days, as days.
        ticks, missing = _ticks_and_missing(column)
        days, rest = np.divmod(ticks, A_DAY)
        missing = missing | (rest != 0) | (np.abs(days) > np.iinfo(np.int32).max)
        return _masked_array(np.where(missing, 0, days).astype(np.int32), missing, load_library("pyarrow").date32())
    if types.is_string(wanted) or types.is_large_string(wanted):
        return drop_invalid_utf8(column.cast(wanted) if given != wanted else column)
    return column if given == wanted else column.cast(wanted)


def drop_invalid_utf8(column: Any) -> Any:
    """Return a column of text in which invalid UTF-8 is missing."""
    try:
        column.validate(full=True)
    except load_library("pyarrow").ArrowInvalid:
        raw = column.cast("large_binary").to_pylist()
        return load_library("pyarrow").array([_decode_text(entry) for entry in raw], column.type)
    return column


def _decode_text(entry: bytes | None) -> str | None:
    try:
        return None if entry is None else entry.decode()
    except UnicodeDecodeError:
        return None


def _normalize_instants(column: Any, wanted: Any) -> Any:
    """Convert to microseconds and UTC; values that do not fit in 64 bits are missing."""
    ticks, missing = _ticks_and_missing(column)
    gone = ticks == NO_TIME
    factor = _TICKS.get(column.type.unit)
    if factor is not None:
        reach = np.iinfo(np.int64).max // factor
        missing = missing | (ticks > reach) | (ticks < -reach)
        ticks = np.where(missing, 0, ticks) * factor
    elif column.type.unit == "ns" and wanted.unit == "us":
        ticks = ticks // 1_000
    elif column.type.unit == wanted.unit and not np.any(gone):
        return column.view(wanted)
    return _masked_array(ticks, missing | gone, wanted)


def _ticks_and_missing(column: Any) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
    """The numbers behind a column of times, and which of them are missing."""
    missing = np.asarray(column.is_null())
    return column.view("int64").fill_null(0).to_numpy(zero_copy_only=False), missing


def _masked_array(values: NDArray[Any], missing: NDArray[np.bool_], wanted: Any) -> Any:
    return load_library("pyarrow").array(values, mask=missing).view(wanted)


TABLE = "tightrope_rows"


@dataclass(frozen=True, slots=True)
class RowSource:
    """The source of rows: the Arrow schema of ``read_batches``, and a function that iterates over them, each row once.

    ``parquet_files`` are files that hold the same rows, if there are such: what needs no rule is read from them without
    a detour. ``check_unchanged`` raises where the source has changed; ``read_batches`` do so by themselves.
    """

    schema: Any
    read_batches: Callable[[], Iterable[Any]]
    parquet_files: tuple[Path, ...] = ()
    check_unchanged: Callable[[], None] = lambda: None


@contextmanager
def materialize_rows(rows: RowSource, longest: int | None = None) -> Iterator[tuple[Any, ir.Table]]:
    """A back end and the one table in it: all the rows, settled, under their names.

    A text of more than ``longest`` bytes is missing: it is left out before anything else is done with it.

    Errors of the batches pass as they are; errors of the engine are ``EngineError``.
    """
    backend = engine_call("open a room of our own", open_connection)
    try:
        if not _copy_from_parquet(backend.con, rows, longest):
            batches = (drop_long_texts(batch, longest) for batch in rows.read_batches())
            schema = storage_schema(rows.schema)
            arrow = load_library("pyarrow")
            stored = arrow.schema([arrow.field(f"c{place}", field.type) for place, field in enumerate(schema)])
            engine_call("make the table", lambda: backend.con.from_arrow(stored.empty_table()).create(TABLE))
            for fill_batch in batches:
                _store_batch(backend.con, drop_long_texts(normalize_batch(fill_batch, schema), longest), stored)
        engine_call("shut the room", lambda: seal_connection(backend))
        table = engine_call("read the room's own schema", lambda: backend.table(TABLE))
        names = {name: table[f"c{place}"] for place, name in enumerate(rows.schema.names)}
        yield backend, table.select(**names)
    finally:
        engine_call("leave the room", backend.disconnect)


DIRECT = {
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
"""Arrow types for which DuckDB reads from a Parquet file exactly what Arrow does, and what it calls them."""


def _copy_from_parquet(connection: Any, rows: RowSource, longest: int | None) -> bool:
    """Return whether DuckDB itself read the rows from their files, as no rule applied to them."""
    if not rows.parquet_files or not all(str(field.type) in DIRECT for field in rows.schema):
        return False
    rows.check_unchanged()
    duckdb = load_library("duckdb")
    places = [glob.escape(str(path.absolute())) for path in rows.parquet_files]
    columns = []
    for place, field in enumerate(rows.schema):
        column = duckdb.ColumnExpression(field.name)
        if longest is not None and DIRECT[str(field.type)] == "VARCHAR":  # texts that are too long are missing
            fits = duckdb.FunctionExpression("strlen", column) <= duckdb.ConstantExpression(longest)
            column = duckdb.CaseExpression(fits, column)
        columns.append(column.alias(f"c{place}"))
    try:
        found = connection.read_parquet(places, hive_partitioning=False).select(*columns)
        if list(map(str, found.types)) != [DIRECT[str(field.type)] for field in rows.schema]:
            return False
        found.create(TABLE)
    except duckdb.Error:  # text that is not UTF-8, say: batch by batch, by rule
        return False
    rows.check_unchanged()
    return True


def _store_batch(connection: Any, batch: Any, stored: Any) -> None:
    arrow = load_library("pyarrow")
    rows = arrow.Table.from_batches([arrow.RecordBatch.from_arrays(batch.columns, schema=stored)])
    engine_call("store a batch of rows", lambda: connection.from_arrow(rows).insert_into(TABLE))
