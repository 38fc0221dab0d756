"""Columns of Python objects: each value fits the declared kind or is missing, whatever the other values are."""

from __future__ import annotations

import datetime
import math
import numbers
from collections.abc import Callable, Collection, Mapping, Sequence
from decimal import Decimal
from typing import Any, cast, get_args

from tightrope.engines.guard import guarded, load
from tightrope.engines.schema import Kind
from tightrope.errors import InputError, SchemaError, listed, nearest

DECLARED = tuple(kind for kind in get_args(Kind) if kind != "other")
ARROW_TYPES: Mapping[str, str] = {
    "integer": "int64",
    "number": "float64",
    "text": "large_string",
    "boolean": "bool",
    "date": "date32",
    "timestamp": "timestamp[us]",
}
"""The Arrow type of a declared kind."""


def untyped(column: Any) -> bool:
    """Whether a pandas column holds Python objects, itself or as its categories."""
    dtype = column.dtype
    return str(getattr(getattr(dtype, "categories", None), "dtype", dtype)) == "object"


def arrow_type(column: Any, kind: str | None) -> Any:
    """The Arrow type of a pandas column, found without looking at a value; a type that no kind has where none is."""
    arrow = load("pyarrow")
    if kind is not None:
        return arrow.type_for_alias(ARROW_TYPES[kind])
    if untyped(column):
        return arrow.binary()
    empty = guarded("find the frame's columns", lambda: arrow.Array.from_pandas(column.head(0)))
    return empty.type


def column(column: Any, wanted: Any, kind: str | None) -> Any:
    """A pandas column as Arrow."""
    arrow = load("pyarrow")
    if kind is not None:
        return guarded("read the frame's columns", lambda: arrow.array([fitted(one, kind) for one in column], wanted))
    made = guarded("read the frame's columns", lambda: _made(column))
    return made if made.type == wanted else guarded("read the frame's columns", lambda: made.cast(wanted))


def _made(column: Any) -> Any:
    """Text in which some letter is no character (a lone half of a pair) is missing, not an error."""
    made_of = load("pyarrow").Array.from_pandas
    try:
        return made_of(column)
    except UnicodeEncodeError:
        return made_of(column.map(lambda one: fitted(one, "text")).astype(object), type=load("pyarrow").large_string())


def check_types(types: Mapping[str, str], open_to: Collection[str], names: Sequence[str]) -> None:
    """Raise unless each declared column is there and waits for a type, and each kind is one."""
    for name, kind in types.items():
        if name not in names:
            raise SchemaError(
                "types", name, f"for one of the columns {listed(tuple(names))}", nearest(name, tuple(names))
            )
        if kind not in DECLARED:
            raise InputError(
                "types", {name: kind}, f"one of {listed(DECLARED)} for each column", nearest(kind, DECLARED)
            )
        if name not in open_to:
            raise InputError("types", name, "a column without a type of its own", "leave it out, or cast the column")


def fitted(value: object, kind: str) -> object:
    """What a value is in a column of that kind; None where it does not fit.

    A value may be of any class, and fail in any way when it is asked: then it is missing, and nobody else is.
    """
    try:
        return _FITTED[kind](value)
    except Exception:  # whatever somebody's class raises
        return None


def _integer(value: object) -> int | None:
    whole = isinstance(value, numbers.Integral) and not isinstance(value, bool)
    return int(value) if whole and -(1 << 63) <= int(value) < 1 << 63 else None  # type: ignore[call-overload]


def _number(value: object) -> float | None:
    if isinstance(value, bool) or not isinstance(value, (numbers.Real, Decimal)):
        return None
    try:
        return _unmoved(value, float(value))
    except OverflowError:  # a whole number or a fraction beyond all doubles
        return math.inf if value > cast(Any, 0) else -math.inf
    except ValueError:  # a signalling NaN
        return None


def _unmoved(value: Any, made: float) -> float | None:
    """The double, unless it is a whole number that the value is not: rounded, it would be another person's."""
    moved = abs(made) < 2.0**53 and made == math.floor(made) and made != value
    return None if moved else made


def _text(value: object) -> str | None:
    """The letters that it holds, whatever its class says of them; half a letter cannot be encoded."""
    return str.encode(value).decode() if isinstance(value, str) else None


def _boolean(value: object) -> bool | None:
    return bool(value) if type(value).__name__ in ("bool", "bool_") else None


def _date(value: object) -> datetime.date | None:
    return value if isinstance(value, datetime.date) and not isinstance(value, datetime.datetime) else None


def _timestamp(value: object) -> datetime.datetime | None:
    """Of the years that Python's calendar has, in microseconds; pandas has more of both."""
    if not isinstance(value, datetime.datetime) or value.tzinfo is not None:
        return None
    day, time = (value.year, value.month, value.day), (value.hour, value.minute, value.second, value.microsecond)
    return datetime.datetime(*day, *time)  # raises for NaT, whose year is no number


_FITTED: Mapping[str, Callable[[object], object]] = {
    "integer": _integer,
    "number": _number,
    "text": _text,
    "boolean": _boolean,
    "date": _date,
    "timestamp": _timestamp,
}
"""What a value is in a column of each kind; None where it does not fit."""
