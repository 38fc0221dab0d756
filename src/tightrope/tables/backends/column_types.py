"""Conversions of ibis columns: their kinds as users see them, and comparable forms of keys and persons.

In a comparable form the engine's ``=`` is the equality of values.
"""

from __future__ import annotations

import datetime
import hashlib
from collections.abc import Mapping
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import numpy as np

from tightrope.tables.engine_calls import load_library
from tightrope.tables.schema import Column, Kind, Schema

if TYPE_CHECKING:
    import ibis.expr.datatypes as dt
    import ibis.expr.schema as sch
    import ibis.expr.types as ir
    import pyarrow as pa

_KINDS: tuple[tuple[str, Kind], ...] = (
    ("is_boolean", "boolean"),
    ("is_integer", "integer"),
    ("is_floating", "number"),
    ("is_decimal", "number"),
    ("is_string", "text"),
    ("is_uuid", "text"),
    ("is_null", "text"),  # a column in which all values are NULL
    ("is_date", "date"),
    ("is_timestamp", "timestamp"),
)

_ARROW_KINDS: tuple[tuple[str, Kind], ...] = (
    ("is_boolean", "boolean"),
    ("is_integer", "integer"),
    ("is_floating", "number"),
    ("is_string", "text"),
    ("is_large_string", "text"),
    ("is_null", "text"),
    ("is_date", "date"),
    ("is_timestamp", "timestamp"),
)
MAX_DECIMAL_DIGITS = 38
NANOSECONDS = 9
DIGEST_LENGTH = 64
"""Characters of a digest: SHA-256 in hexadecimal digits. Shorter texts are not replaced by a digest."""


def schema_of(columns: sch.Schema, source_types: Mapping[str, str] | None = None) -> Schema:
    """Return the names and kinds of an ibis schema; ``source_types`` are the source's own names of types."""
    own_names = source_types or {}
    return Schema(
        tuple(Column(name, kind_of(dtype), own_names.get(name, str(dtype))) for name, dtype in columns.items())
    )


def kind_of(dtype: dt.DataType) -> Kind:
    """Return the kind of an ibis type; decimals without fraction, such as DuckDB's HUGEINT, are integers."""
    if is_wide(dtype):
        return "integer"
    return next((kind for test, kind in _KINDS if getattr(dtype, test)()), "other")


def arrow_kind(given: Any) -> Kind:
    """Return the kind of a stored Arrow type: that of its ibis type, without loading ibis.

    A ``decimal256`` is "other", because DuckDB cannot read it.
    """
    types = load_library("pyarrow").types
    if given == wide_integer_type():
        return "integer"
    if types.is_decimal(given):
        is_supported = not types.is_decimal256(given) and given.precision <= MAX_DECIMAL_DIGITS and given.scale >= 0
        return "other" if not is_supported else "integer" if given.scale == 0 else "number"
    return next((kind for test, kind in _ARROW_KINDS if getattr(types, test)(given)), "other")


def wide_integer_type() -> pa.DataType:
    """Return the Arrow type of integers of 128 bits, which DuckDB stores as HUGEINT."""
    arrow = load_library("pyarrow")
    return arrow.opaque(arrow.binary(16), "hugeint", "DuckDB")


def wide_integers(texts: pa.Array) -> pa.Array:
    """Return the integers of 128 bits whose decimal digits are given as texts.

    >>> import pyarrow
    >>> wide_integers(pyarrow.array(["-2", None])).storage.to_pylist()[0].hex()
    'feffffffffffffffffffffffffffffff'
    """
    arrow = load_library("pyarrow")
    decimals = texts.cast(arrow.decimal256(39, 0))
    bits = np.frombuffer(decimals.buffers()[1], np.uint8).reshape(-1, 32)[decimals.offset :][: len(texts), :16]
    buffers = [decimals.is_valid().buffers()[1] if texts.null_count else None, arrow.py_buffer(bits.tobytes())]
    storage = arrow.Array.from_buffers(arrow.binary(16), len(texts), buffers)
    return arrow.ExtensionArray.from_storage(wide_integer_type(), storage)


def ibis_type(stored: pa.DataType) -> dt.DataType:
    """Return the ibis type of a stored Arrow type."""
    ibis = load_library("ibis")
    if stored == wide_integer_type():
        return ibis.dtype(f"decimal({MAX_DECIMAL_DIGITS}, 0)")
    return ibis.dtype(stored)


def is_wide(dtype: dt.DataType) -> bool:
    """Return whether the type holds integers that may not fit in 64 bits."""
    return bool(dtype.is_decimal() and dtype.scale == 0)


def to_portable_types(rows: ir.Table) -> ir.Table:
    """Return the rows in types that Arrow represents exactly; columns of other types are cast to text.

    A cast is not a function, so the user's macros cannot replace it.
    """
    columns = {name: rows[name] for name in rows.columns}
    return rows.select(
        **{name: column.cast("string") if _needs_text(column) else column for name, column in columns.items()}
    )


def _needs_text(column: ir.Column) -> bool:
    """Return whether a column is read as text: integers beyond 64 bits, UUIDs, and columns without a type."""
    dtype = column.type()
    return bool(is_wide(dtype) or dtype.is_uuid() or dtype.is_null())


def to_comparable(column: ir.Column) -> ir.Column:
    """Return the column in a form in which the engine's ``=`` is the equality of keys and persons.

    - NaN is NULL, and -0.0 is 0.0;
    - wide integers (128 bits do not fit in a decimal), UUIDs and enums are text;
    - instants have microseconds and are in UTC (in local time the repeated hour in autumn would be one key);
    - days and instants outside the calendar are NULL.

    Apart from these rules, different values stay different.
    """
    dtype = column.type()
    if dtype.is_floating():
        wide = column.cast("float64")
        return load_library("ibis").ifelse(wide.isnan(), None, wide + 0.0)
    if _needs_text(column):
        return column.cast("string")
    if dtype.is_timestamp() and (dtype.scale != NANOSECONDS or dtype.timezone is not None):
        return _within_calendar(column.try_cast(dtype.copy(scale=6, timezone=dtype.timezone and "UTC")))
    return _within_calendar(column) if dtype.is_date() else column  # nanoseconds end in 2262


def shorten_texts(column: ir.Column) -> ir.Column:
    """Return the column with texts of more than 63 characters replaced by their SHA-256 digests.

    Different texts stay different: shorter texts are not digests, and it is infeasible to find two texts with the same
    digest. So the values that are sorted, hashed and grouped are small, however long one person's texts are.
    """
    if not column.type().is_string():
        return column
    return load_library("ibis").ifelse(column.length() < DIGEST_LENGTH, column, column.hexdigest("sha256"))


def shorten_text(text: str) -> str:
    """Return one text as ``shorten_texts`` does in the engine.

    >>> shorten_text("Oslo"), shorten_text("x" * 64)[:8]
    ('Oslo', '7ce10097')
    """
    return text if len(text) < DIGEST_LENGTH else hashlib.sha256(text.encode()).hexdigest()


def person_identity(column: ir.Column) -> ir.Column:
    """Return a column of persons in comparable form; a float that may have been rounded is NULL.

    These are floats that are not integers, and those from 2^53 on (in 32 bits: 2^24). Two persons whose numbers were
    rounded to one float would be bounded as one person, so that removing one of them could add rows of the other.
    """
    identity = shorten_texts(to_comparable(column))
    if not column.type().is_floating():
        return identity
    end = 2.0**24 if column.type().is_float32() or column.type().is_float16() else 2.0**53
    ibis = load_library("ibis")
    exact = ibis.ifelse(identity.abs() < end, identity, None)  # before floor, which fails on Spark beyond 64 bits
    return ibis.ifelse(exact == exact.floor(), exact, None)


def _within_calendar(column: ir.Column) -> ir.Column:
    """Return days or instants with those outside the years 1 to 9999 as NULL, so that they cannot cause an error."""
    dtype = column.type()
    zone = datetime.UTC if dtype.is_timestamp() and dtype.timezone else None
    first, last = datetime.datetime(1, 1, 1, tzinfo=zone), datetime.datetime(9999, 12, 31, tzinfo=zone)
    ends = (first.date(), last.date()) if dtype.is_date() else (first, last)
    return load_library("ibis").ifelse(column.between(*ends), column, None)


def decode_key(value: Any, kind: Kind) -> object:
    """Return the Python value of a key entry that the engine returned from a ``to_comparable`` column."""
    if value is None or kind != "integer":
        return value
    return int(Decimal(value)) if isinstance(value, str) else int(value)
