"""Arrow columns in the few types that are stored, by rules that look at one value at a time.

What a type cannot say is missing, never an error: an instant out of range, a day with a time of day, text that is not
UTF-8. Otherwise one person's value could stop everybody's answer.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from tightrope.engines.guard import load

A_DAY = 86_400_000
_TICKS = {"s": 1_000_000, "ms": 1_000}
"""Microseconds in a tick."""
NO_TIME = np.iinfo(np.int64).min
"""What numpy and pandas take for no instant: it equals nothing, itself included, and has no place in an order."""


def settled_schema(schema: Any) -> Any:
    """The schema that ``settled`` gives for a batch of this one."""
    arrow = load("pyarrow")
    return arrow.schema([arrow.field(field.name, settled_type(field.type)) for field in schema])


def settled_type(given: Any) -> Any:
    """The type that is stored: dictionaries spelled out, days of one width, instants in UTC."""
    arrow = load("pyarrow")
    types = arrow.types
    if types.is_dictionary(given):
        return settled_type(given.value_type)
    if types.is_timestamp(given):
        fine = given.unit == "ns" and given.tz is None
        return arrow.timestamp("ns" if fine else "us", tz=given.tz and "UTC")
    rules = (
        (types.is_fixed_size_binary, arrow.binary()),
        (types.is_float16, arrow.float32()),
        (types.is_date64, arrow.date32()),
        (types.is_null, arrow.string()),
        (_is_text_view, arrow.large_string()),
    )
    return next((stored for test, stored in rules if test(given)), given)


def settled(batch: Any, schema: Any) -> Any:
    """A record batch in ``settled_schema``; columns that need no rule are not copied."""
    columns = [_column(column, field.type) for column, field in zip(batch.columns, schema, strict=True)]
    return load("pyarrow").RecordBatch.from_arrays(columns, schema=schema)


def within(batch: Any, longest: int | None) -> Any:
    """The batch without texts of more bytes than this: they are missing. In a dictionary, before it is spelled out."""
    if longest is None:
        return batch
    columns = [_within(column, longest) for column in batch.columns]
    return load("pyarrow").RecordBatch.from_arrays(columns, schema=batch.schema)


def _within(column: Any, longest: int) -> Any:
    arrow, compute, given = load("pyarrow"), load("pyarrow.compute"), column.type
    if arrow.types.is_dictionary(given):
        entries = _within(column.dictionary, longest)
        return column if entries is column.dictionary else _with_entries(column, entries)
    if not (arrow.types.is_string(given) or arrow.types.is_large_string(given)):
        return column
    too_long = compute.greater(compute.binary_length(column), longest)
    if not compute.any(too_long).as_py():
        return column
    return compute.if_else(too_long, arrow.scalar(None, given), column)


def _with_entries(column: Any, entries: Any) -> Any:
    dictionary = load("pyarrow").DictionaryArray
    return dictionary.from_arrays(column.indices, entries, ordered=column.type.ordered)


def _column(column: Any, wanted: Any) -> Any:
    arrow = load("pyarrow")
    types, given = arrow.types, column.type
    if types.is_dictionary(given):
        return _column(column.dictionary_decode(), wanted)
    if types.is_timestamp(given):
        return _instants(column, wanted)
    if types.is_date64(given):
        return _days(column)
    if types.is_string(wanted) or types.is_large_string(wanted):
        return readable(column.cast(wanted) if given != wanted else column)
    return column if given == wanted else column.cast(wanted)


def readable(column: Any) -> Any:
    """A column of text in which what is not UTF-8 is missing."""
    try:
        column.validate(full=True)
    except load("pyarrow").ArrowInvalid:
        raw = column.cast("large_binary").to_pylist()
        return load("pyarrow").array([_decoded(entry) for entry in raw], column.type)
    return column


def _decoded(entry: bytes | None) -> str | None:
    try:
        return None if entry is None else entry.decode()
    except UnicodeDecodeError:
        return None


def _instants(column: Any, wanted: Any) -> Any:
    """In microseconds and UTC; what does not fit in 64 bits is missing."""
    ticks, missing = _whole(column)
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
    return _of(ticks, missing | gone, wanted)


def _days(column: Any) -> Any:
    """Milliseconds that are a whole number of days, as days."""
    ticks, missing = _whole(column)
    days, rest = np.divmod(ticks, A_DAY)
    missing = missing | (rest != 0) | (np.abs(days) > np.iinfo(np.int32).max)
    return _of(np.where(missing, 0, days).astype(np.int32), missing, load("pyarrow").date32())


def _whole(column: Any) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
    """The numbers behind a column of times, and which of them are missing."""
    missing = np.asarray(column.is_null())
    return column.view("int64").fill_null(0).to_numpy(zero_copy_only=False), missing


def _of(values: NDArray[Any], missing: NDArray[np.bool_], wanted: Any) -> Any:
    return load("pyarrow").array(values, mask=missing).view(wanted)


def _is_text_view(given: Any) -> bool:
    return str(given) == "string_view"
