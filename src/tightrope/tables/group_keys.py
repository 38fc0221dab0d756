"""Group keys: the order they are reported in, and given keys as a table that the engine can join."""

from __future__ import annotations

import math
import numbers
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import TYPE_CHECKING, Any
from uuid import UUID

from tightrope.errors import InputError, SchemaError
from tightrope.tables.backends.column_types import NANOSECONDS, is_wide, kind_of, shorten_text
from tightrope.tables.engine_calls import load_library
from tightrope.tables.expressions.expression import Term, facts_of
from tightrope.tables.schema import Kind, Schema

if TYPE_CHECKING:
    import ibis.expr.datatypes as dt
    import ibis.expr.types as ir

Key = tuple[object, ...]

_FITS: dict[Kind, Callable[[object], bool]] = {
    "integer": lambda value: isinstance(value, numbers.Integral) and not isinstance(value, bool),
    "number": lambda value: isinstance(value, (numbers.Real, Decimal)) and not isinstance(value, bool),
    "text": lambda value: isinstance(value, str),
    "boolean": lambda value: isinstance(value, bool),
    "date": lambda value: isinstance(value, date) and not isinstance(value, datetime),
    "timestamp": lambda value: isinstance(value, datetime),
}

_SAID: dict[Kind, str] = {
    "integer": "write whole numbers without quotes",
    "number": "write numbers without quotes",
    "text": "write texts in quotes; a column of a CSV file is text until its type is declared",
    "boolean": "write true and false without quotes",
    "date": "write dates as dates: 2024-12-31 in a plan file, datetime.date(2024, 12, 31) in Python",
    "timestamp": "write instants as such: 2024-12-31T00:00:00 in a plan file, datetime.datetime(...) in Python",
}


def key_sort_order(key: Key) -> tuple[tuple[Any, ...], ...]:
    """Return the sort key: entry by entry, None first, then numbers by size, text by code point, False before True.

    >>> sorted([("b", 1), (None, 2), ("B", None)], key=key_sort_order)
    [(None, 2), ('B', None), ('b', 1)]
    """
    return tuple((0,) if entry is None else (1, entry) for entry in key)


@dataclass(frozen=True, slots=True)
class GivenKeys:
    """Keys that a question names, sorted, with their form in the engine (None if no row can have that key)."""

    keys: tuple[Key, ...]
    engine_keys: tuple[Key | None, ...]
    types: tuple[Any, ...]

    def to_engine_table(self) -> ir.Table:
        """An engine table ``key0, key1, ..., number``: each key that a row can have, and its place in ``keys``."""
        pyarrow = load_library("pyarrow")
        present = [(number, key) for number, key in enumerate(self.engine_keys) if key is not None]
        columns = {
            f"key{place}": pyarrow.array([key[place] for _, key in present], kind)
            for place, kind in enumerate(self.types)
        }
        columns["number"] = pyarrow.array([number for number, _ in present], pyarrow.int32())
        return load_library("ibis").memtable(pyarrow.table(columns))


def check_key_kinds(keys: Iterable[Key], by: tuple[Term, ...], schema: Schema) -> None:
    """``SchemaError`` for a key of another kind than its column: the schema tells, before a row is read."""
    names, kinds = tuple(map(str, by)), tuple(facts_of(term, schema).kind for term in by)
    for key in keys:
        for entry, name, kind in zip(key, names, kinds, strict=True):
            _convert_entry(entry, name, kind)


def resolve_given_keys(keys: Iterable[Key], by: tuple[str, ...], types: tuple[dt.DataType, ...]) -> GivenKeys:
    """The keys checked against the columns' types and sorted.

    Raises ``SchemaError`` when a key has another type than its column, ``InputError`` when two keys are one in the
    columns' types (0.0 and -0.0, None and NaN, two instants that the column's ticks do not tell apart): a row would be
    in two groups.
    """
    forms = tuple(_KeyForm(dtype) for dtype in types)
    placed: dict[Key, Key] = {}
    taken: set[Key] = set()
    for place, key in enumerate(keys):
        canonical = tuple(map(_canonical_entry, key, by, types))
        located = _to_engine_key(canonical, forms)
        same = canonical if located is None else located
        if canonical in placed or same in taken:
            expected = "keys that are different in the types of their columns"
            raise InputError("keys", f"key {place + 1} of the list", expected, "remove it: another one equals it")
        placed[canonical] = key
        taken.add(same)
    order = sorted(placed, key=key_sort_order)
    located_keys = tuple(_to_engine_key(key, forms) for key in order)
    return GivenKeys(tuple(placed[key] for key in order), located_keys, tuple(form.arrow for form in forms))


class _KeyForm:
    """The form of one column's keys in the engine.

    The Arrow type of ``column_types.to_comparable``, texts ``shorten_texts``.
    """

    __slots__ = ("arrow", "wide")

    def __init__(self, dtype: dt.DataType) -> None:
        self.wide = is_wide(dtype)
        # The Arrow type of a column in comparable form.
        pyarrow = load_library("pyarrow")
        if dtype.is_floating():
            arrow = pyarrow.float64()
        elif dtype.is_timestamp():
            fine = dtype.scale == NANOSECONDS and dtype.timezone is None
            arrow = pyarrow.timestamp("ns" if fine else "us", tz=dtype.timezone and "UTC")
        else:
            arrow = pyarrow.string() if is_wide(dtype) or kind_of(dtype) == "text" else dtype.to_pyarrow()
        self.arrow = arrow

    def to_engine_value(self, entry: object) -> object:
        """The entry as a value of the Arrow type; raises when the column cannot hold it."""
        exact = str(entry) if self.wide and entry is not None else entry
        found = load_library("pyarrow").scalar(exact, self.arrow).as_py()
        return shorten_text(found) if isinstance(found, str) else found


def _to_engine_key(key: Key, forms: tuple[_KeyForm, ...]) -> Key | None:
    """The key in the engine's form, or None when the columns cannot hold it (300 in a column of bytes)."""
    try:
        return tuple(form.to_engine_value(entry) for form, entry in zip(forms, key, strict=True))
    except (ArithmeticError, TypeError, ValueError):  # Arrow's own errors are ValueErrors
        return None


def _canonical_entry(entry: object, name: str, dtype: dt.DataType) -> object:
    """The entry in the one form that equal keys share; ``SchemaError`` when the column holds something else.

    Instants are in UTC: Python takes the two instants of the hour that autumn repeats for equal.
    """
    kind = kind_of(dtype)
    value = _convert_entry(entry, name, kind)
    if value is None:
        return None
    if kind == "timestamp":
        if (value.tzinfo is None) != (dtype.timezone is None):
            zone = "without a time zone" if dtype.timezone is None else "with a time zone"
            raise SchemaError("key", type(entry).__name__, f"a timestamp {zone}, as column {name!r} is")
        return value if value.tzinfo is None else value.astimezone(UTC)
    if kind != "number":
        return value
    # The nearest value of a float column (0.1 in 32 bits), without a negative zero; the exact value for decimals.
    if dtype.is_decimal():
        return Decimal(repr(value)) if isinstance(value, float) else Decimal(value)
    try:
        wide = float(value)
        narrow = float(load_library("numpy").float32(wide)) if dtype.is_float32() and abs(wide) < _FLOAT32_END else wide
    except OverflowError:
        return value
    return narrow + 0.0


def _convert_entry(entry: object, name: str, kind: Kind) -> Any:
    """The entry as a Python value of this kind, None for the missing key; ``SchemaError`` when it is of another."""
    value = _to_python_value(entry, kind)
    if value is None or (isinstance(value, (float, Decimal)) and math.isnan(value)) or value != value:  # noqa: PLR0124 - NaT is not itself
        return None
    if not _FITS[kind](value):
        expected = f"of kind {kind}, as column {name!r} is"
        raise SchemaError("key", f"{type(entry).__name__} entry", expected, _SAID[kind])
    return value


def _to_python_value(entry: object, kind: Kind) -> Any:
    """The entry as a Python value: numpy's and pandas' own, and UUIDs, are taken for what they say."""
    value: Any = entry
    if type(entry).__module__ == "numpy" and hasattr(entry, "item"):
        # A day of numpy is a date; finer ones are instants, nanoseconds kept.
        finer = type(entry).__name__ == "datetime64" and str(value.dtype) != "datetime64[D]"
        value = load_library("pandas").Timestamp(entry) if finer else value.item()
    if kind == "text" and isinstance(value, UUID):
        return str(value)
    whole_day = kind == "date" and type(value).__name__ == "Timestamp" and value == value.normalize()
    return value.date() if whole_day and value.tzinfo is None else value


_FLOAT32_END = 3.4028235677973366e38
"""From here on a double rounds to infinity in 32 bits."""
