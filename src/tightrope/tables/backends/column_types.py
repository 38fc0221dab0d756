"""From an engine's types to the kinds that users see, and to a form in which equal means equal.

Works on ibis' data types and expressions.
"""

from __future__ import annotations

import datetime
import hashlib
from decimal import Decimal
from typing import TYPE_CHECKING, Any

from tightrope.tables.engine_calls import load_library
from tightrope.tables.schema import Column, Kind, Schema

if TYPE_CHECKING:
    import ibis.expr.datatypes as dt
    import ibis.expr.schema as sch
    import ibis.expr.types as ir

_KINDS: tuple[tuple[str, Kind], ...] = (
    ("is_boolean", "boolean"),
    ("is_integer", "integer"),
    ("is_floating", "number"),
    ("is_decimal", "number"),
    ("is_string", "text"),
    ("is_uuid", "text"),
    ("is_null", "text"),  # a column of nothing but NULLs
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
WIDEST_DECIMAL = 38
NANOSECONDS = 9
DIGEST = 64
"""Letters of a digest: SHA-256 in hexadecimal digits. A text with fewer letters stands for itself."""


def schema_of(columns: sch.Schema) -> Schema:
    """The names and kinds of an ibis schema."""
    return Schema(tuple(Column(name, kind_of(dtype)) for name, dtype in columns.items()))


def kind_of(dtype: dt.DataType) -> Kind:
    """The kind of an ibis type; decimals without fraction are integers (DuckDB's HUGEINT arrives as one)."""
    if is_wide(dtype):
        return "integer"
    return next((kind for test, kind in _KINDS if getattr(dtype, test)()), "other")


def arrow_kind(given: Any) -> Kind:
    """Return the kind of an Arrow type as stored, the kind of its ibis type, without loading ibis.

    A ``decimal256`` is "other" for every precision: DuckDB reads none.
    """
    types = load_library("pyarrow").types
    if types.is_decimal(given):
        held = not types.is_decimal256(given) and given.precision <= WIDEST_DECIMAL and given.scale >= 0
        return "other" if not held else "integer" if given.scale == 0 else "number"
    return next((kind for test, kind in _ARROW_KINDS if getattr(types, test)(given)), "other")


def is_wide(dtype: dt.DataType) -> bool:
    """Return whether the type holds integers that may not fit in 64 bits."""
    return bool(dtype.is_decimal() and dtype.scale == 0)


def to_portable_types(rows: ir.Table) -> ir.Table:
    """The rows in types that Arrow carries without loss: what has no Arrow type of its own travels as text.

    Casts are not functions, so a macro cannot replace one.
    """
    columns = {name: rows[name] for name in rows.columns}
    return rows.select(
        **{name: column.cast("string") if _as_text(column) else column for name, column in columns.items()}
    )


def _as_text(column: ir.Column) -> bool:
    dtype = column.type()
    return bool(is_wide(dtype) or dtype.is_uuid() or dtype.is_null())


def to_comparable(column: ir.Column) -> ir.Column:
    """The column in a form in which the engine's ``=`` is the equality of keys and persons.

    NaN is NULL, -0.0 is 0.0, wide integers, UUIDs and enums are text (128 bits do not fit in a decimal), instants are
    in UTC (in local time the hour that autumn repeats would be one key) and have microseconds; days outside the
    calendar are NULL. Injective but for these rules.
    """
    dtype = column.type()
    if dtype.is_floating():
        wide = column.cast("float64")
        return load_library("ibis").ifelse(wide.isnan(), None, wide + 0.0)
    if _as_text(column):
        return column.cast("string")
    if dtype.is_timestamp() and (dtype.scale != NANOSECONDS or dtype.timezone is not None):
        return _within_calendar(column.try_cast(dtype.copy(scale=6, timezone=dtype.timezone and "UTC")))
    return _within_calendar(column) if dtype.is_date() else column  # nanoseconds end in 2262


def shorten_texts(column: ir.Column) -> ir.Column:
    """A ``to_comparable`` column in at most 63 letters a value: texts of more are their digests, all else is as it is.

    Different texts stay different: shorter texts are not digests, and it is infeasible to find two texts with
    one SHA-256. So what is sorted, hashed and grouped is small, however long one person's texts are.
    """
    if not column.type().is_string():
        return column
    return load_library("ibis").ifelse(column.length() < DIGEST, column, column.hexdigest("sha256"))


def shorten_text(text: str) -> str:
    """``shorten_texts`` of one text.

    >>> shorten_text("Oslo"), shorten_text("x" * 64)[:8]
    ('Oslo', '7ce10097')
    """
    return text if len(text) < DIGEST else hashlib.sha256(text.encode()).hexdigest()


def person_identity(column: ir.Column) -> ir.Column:
    """``to_comparable`` for persons: a float that is not an integer, or too large to differ from the next, is NULL.

    Two people whose numbers were rounded to one float would be bounded as one, and who leaves could bring back rows of
    the other.
    """
    made = shorten_texts(to_comparable(column))
    if not column.type().is_floating():
        return made
    end = 2.0**24 if column.type().is_float32() or column.type().is_float16() else 2.0**53
    near = load_library("ibis").ifelse(made.abs() < end, made, None)  # first: Spark cannot floor beyond 64-bit integers
    return load_library("ibis").ifelse(near == near.floor(), near, None)


def _within_calendar(column: ir.Column) -> ir.Column:
    """Days outside the years 1 to 9999, and infinite ones, are NULL: a row with one must not stop the others."""
    dtype = column.type()
    zone = datetime.UTC if dtype.is_timestamp() and dtype.timezone else None
    first, last = datetime.datetime(1, 1, 1, tzinfo=zone), datetime.datetime(9999, 12, 31, tzinfo=zone)
    ends = (first.date(), last.date()) if dtype.is_date() else (first, last)
    return load_library("ibis").ifelse(column.between(*ends), column, None)


def decode_key(value: Any, kind: Kind) -> object:
    """A key as it came from the engine's ``to_comparable`` column, as the Python value of its kind."""
    if value is None or kind != "integer":
        return value
    return int(Decimal(value)) if isinstance(value, str) else int(value)
