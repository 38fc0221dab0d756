"""Frames: pandas, polars and Arrow in memory, all as Arrow in types that the engine can read; and Spark's."""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from tightrope.engines.backends.column_types import kind_of, schema_of
from tightrope.engines.backends.duckdb import connect
from tightrope.engines.guard import guarded, load
from tightrope.engines.schema import Column, Kind, Schema
from tightrope.engines.table import Table, check_names
from tightrope.errors import InputError

if TYPE_CHECKING:
    import ibis.expr.types as ir


def open_arrow(table: Any, source_kind: str = "arrow") -> Table:
    """An Arrow table."""
    schema = _schema(table.schema)
    return Table(schema, source_kind, connect(), lambda names: _memtable(table, names))


def open_pandas(frame: Any) -> Table:
    """A pandas frame; its index is not a column. Object columns take the type that Arrow finds in their values."""
    check_names(frame.columns)
    from_pandas = load("pyarrow").Table.from_pandas
    return open_arrow(guarded("read the frame's columns", lambda: from_pandas(frame, preserve_index=False)), "pandas")


def open_polars(frame: Any) -> Table:
    """A polars frame."""
    return open_arrow(guarded("read the frame's columns", frame.to_arrow), "polars")


def open_polars_lazy(frame: Any) -> Table:
    """A lazy polars frame: the data is computed when a question is asked, and only the columns of that question."""
    empty = guarded("find the lazy frame's columns", lambda: frame.collect_schema().to_frame().to_arrow())

    def loaded(names: Sequence[str]) -> ir.Table:
        chosen = list(names) or empty.column_names[:1]
        return _memtable(guarded("compute the lazy frame", lambda: frame.select(chosen).collect().to_arrow()), chosen)

    return Table(_schema(empty.schema), "polars", connect(), loaded)


def open_spark(frame: Any) -> Table:
    """A Spark frame, classic or connected. ibis sets the session's time zone to UTC.

    Timestamps come without a zone, instants in UTC: ibis does not tell Spark's two kinds apart.
    """
    if not hasattr(frame, "sparkSession"):
        raise InputError("source", type(frame), "a Spark frame", "call its to_spark() first")  # pandas on Spark
    ibis = load("ibis")
    load("pyspark", "spark")
    backend = guarded("connect to the Spark session", lambda: ibis.pyspark.connect(frame.sparkSession))
    name = f"tightrope_{uuid.uuid4().hex}"
    guarded("name the Spark frame", lambda: frame.createOrReplaceTempView(name))
    table = guarded("read the schema of the Spark frame", lambda: backend.table(name))
    return Table(schema_of(table.schema()), "spark", backend, lambda _: table)


def _schema(arrow: Any) -> Schema:
    """The names and kinds of an Arrow schema; types that the engine does not know are ``other``."""
    check_names(arrow.names)
    return Schema(tuple(Column(field.name, _kind(_plain(field.type))) for field in arrow))


def _kind(arrow_type: Any) -> Kind:
    try:
        return kind_of(load("ibis").dtype(arrow_type))
    except Exception:  # ibis raises KeyError, ValueError, TypeError and its own for types it does not know
        return "other"


def _memtable(table: Any, names: Sequence[str]) -> ir.Table:
    """The named columns (the first one, if none is named: rows can still be counted) as an ibis table."""
    chosen = table.select(list(names) or table.column_names[:1])
    pyarrow = load("pyarrow")
    plain = pyarrow.schema([pyarrow.field(field.name, _plain(field.type)) for field in chosen.schema])
    return guarded("read the frame's columns", lambda: load("ibis").memtable(chosen.cast(plain)))


def _plain(arrow_type: Any) -> Any:
    """The type without an encoding: dictionaries spelled out, half floats, binary and dates of one width."""
    types = load("pyarrow").types
    if types.is_dictionary(arrow_type):
        return _plain(arrow_type.value_type)
    if types.is_fixed_size_binary(arrow_type):
        return load("pyarrow").binary()
    if types.is_float16(arrow_type):
        return load("pyarrow").float32()
    return load("pyarrow").date32() if types.is_date64(arrow_type) else arrow_type
