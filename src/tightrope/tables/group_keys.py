"""Group keys: their order in reports, and the keys given in a question as a table that the engine can join."""

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
from tightrope.tables.expressions.expression import Term, term_facts
from tightrope.tables.schema import Kind, Schema

if TYPE_CHECKING:
    import ibis.expr.datatypes as dt
    import ibis.expr.types as ir

Key = tuple[object, ...]
_FLOAT32_OVERFLOW = 3.4028235677973366e38
"""Doubles from here on round to infinity in 32 bits."""

_KIND_TESTS: dict[Kind, Callable[[object], bool]] = {
    "integer": lambda value: isinstance(value, numbers.Integral) and not isinstance(value, bool),
    "number": lambda value: isinstance(value, (numbers.Real, Decimal)) and not isinstance(value, bool),
    "text": lambda value: isinstance(value, str),
    "boolean": lambda value: isinstance(value, bool),
    "date": lambda value: isinstance(value, date) and not isinstance(value, datetime),
    "timestamp": lambda value: isinstance(value, datetime),
}

_KIND_REMEDIES: dict[Kind, str] = {
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
    """The keys given in a question, sorted, and their values in the engine (None for a key that no row can have).

    ``types`` are the Arrow types of the key columns. ``numbers`` are the keys' numbers; if empty, their indexes.
    """

    keys: tuple[Key, ...]
    engine_keys: tuple[Key | None, ...]
    types: tuple[Any, ...]
    numbers: tuple[int, ...] = ()

    def to_engine_table(self) -> ir.Table:
        """Return an engine table ``key0, key1, ..., number``: keys that rows can have, and their numbers."""
        pyarrow = load_library("pyarrow")
        numbered = zip(self.numbers or range(len(self.keys)), self.engine_keys, strict=True)
        present = [(number, key) for number, key in numbered if key is not None]
        columns = {
            f"key{index}": pyarrow.array([key[index] for _, key in present], arrow_type)
            for index, arrow_type in enumerate(self.types)
        }
        columns["number"] = pyarrow.array([number for number, _ in present], pyarrow.int32())
        return load_library("ibis").memtable(pyarrow.table(columns))


def check_key_kinds(keys: Iterable[Key], by: tuple[Term, ...], schema: Schema) -> None:
    """Raise ``SchemaError`` for a key entry of another kind than its column; needs the schema, reads no row."""
    names, kinds = tuple(map(str, by)), tuple(term_facts(term, schema).kind for term in by)
    for key in keys:
        for entry, name, kind in zip(key, names, kinds, strict=True):
            _convert_entry(entry, name, kind)


def resolve_given_keys(keys: Iterable[Key], by: tuple[str, ...], types: tuple[dt.DataType, ...]) -> GivenKeys:
    """Return the keys, checked against the columns' types and sorted.

    Raises ``SchemaError`` when a key has another type than its column, ``InputError`` when two keys are equal in the
    columns' types (0.0 and -0.0, None and NaN, two instants that differ by less than the column's precision): a row
    would be in two groups.
    """
    forms = tuple(_KeyForm(dtype) for dtype in types)
    given_keys: dict[Key, Key] = {}  # by canonical key
    seen: set[Key] = set()
    for index, key in enumerate(keys):
        canonical = tuple(map(_canonical_entry, key, by, types))
        engine_key = _to_engine_key(canonical, forms)
        identity = canonical if engine_key is None else engine_key
        if canonical in given_keys or identity in seen:
            text = f"key {index + 1} and an earlier one are not different in the types of their columns; remove it"
            raise InputError.from_text("keys", text)
        given_keys[canonical] = key
        seen.add(identity)
    order = sorted(given_keys, key=key_sort_order)
    engine_keys = tuple(_to_engine_key(key, forms) for key in order)
    return GivenKeys(tuple(given_keys[key] for key in order), engine_keys, tuple(form.arrow_type for form in forms))


class _KeyForm:
    """The form of one column's keys in the engine: the type of ``to_comparable``, with texts as ``shorten_texts``."""

    __slots__ = ("arrow_type", "is_wide")

    def __init__(self, dtype: dt.DataType) -> None:
        self.is_wide = is_wide(dtype)
        pyarrow = load_library("pyarrow")
        if dtype.is_floating():
            self.arrow_type = pyarrow.float64()
        elif dtype.is_timestamp():
            has_nanoseconds = dtype.scale == NANOSECONDS and dtype.timezone is None
            self.arrow_type = pyarrow.timestamp("ns" if has_nanoseconds else "us", tz=dtype.timezone and "UTC")
        elif self.is_wide or kind_of(dtype) == "text":
            self.arrow_type = pyarrow.string()
        else:
            self.arrow_type = dtype.to_pyarrow()

    def to_engine_value(self, entry: object) -> object:
        """Return the entry as a value of the Arrow type; raises when the column cannot hold it."""
        exact = str(entry) if self.is_wide and entry is not None else entry
        value = load_library("pyarrow").scalar(exact, self.arrow_type).as_py()
        return shorten_text(value) if isinstance(value, str) else value


def _to_engine_key(key: Key, forms: tuple[_KeyForm, ...]) -> Key | None:
    """Return the key in the engine's form, or None if the columns cannot hold it (300 in a column of bytes)."""
    try:
        return tuple(form.to_engine_value(entry) for form, entry in zip(forms, key, strict=True))
    except (ArithmeticError, TypeError, ValueError):  # Arrow's own errors are ValueErrors
        return None


def _canonical_entry(entry: object, name: str, dtype: dt.DataType) -> object:
    """Return the entry in a canonical form, the same for equal keys; ``SchemaError`` for another kind.

    Instants are converted to UTC, because Python compares the repeated hour in autumn as equal.
    """
    kind = kind_of(dtype)
    value = _convert_entry(entry, name, kind)
    if value is None:
        return None
    if kind == "timestamp":
        if (value.tzinfo is None) != (dtype.timezone is None):
            zone = "without a time zone" if dtype.timezone is None else "with a time zone"
            raise SchemaError("key", f"{type(entry).__name__} entry", f"a timestamp {zone}, as column {name!r} is")
        return value if value.tzinfo is None else value.astimezone(UTC)
    if kind != "number":
        return value
    # The nearest value of a float column (0.1 in 32 bits), without a negative zero; the exact value for decimals.
    if dtype.is_decimal():
        return Decimal(repr(value)) if isinstance(value, float) else Decimal(value)
    try:
        wide = float(value)
        narrow = (
            float(load_library("numpy").float32(wide)) if dtype.is_float32() and abs(wide) < _FLOAT32_OVERFLOW else wide
        )
    except OverflowError:
        return value
    return narrow + 0.0


def _convert_entry(entry: object, name: str, kind: Kind) -> Any:
    """Return the entry as a Python value of this kind, None for the missing key; ``SchemaError`` for another kind."""
    value = _to_python_value(entry, kind)
    if value is None or (isinstance(value, (float, Decimal)) and math.isnan(value)) or value != value:  # noqa: PLR0124 - NaT is not itself
        return None
    if not _KIND_TESTS[kind](value):
        expected = f"of kind {kind}, as column {name!r} is"
        raise SchemaError("key", f"{type(entry).__name__} entry", expected, _KIND_REMEDIES[kind])
    return value


def _to_python_value(entry: object, kind: Kind) -> Any:
    """Return the entry as a Python value; scalars of numpy and pandas, and UUIDs for text, are converted."""
    value: Any = entry
    if type(entry).__module__ == "numpy" and hasattr(entry, "item"):
        # A numpy day becomes a date; finer units become instants with nanoseconds.
        is_instant = type(entry).__name__ == "datetime64" and str(value.dtype) != "datetime64[D]"
        value = load_library("pandas").Timestamp(entry) if is_instant else value.item()
    if kind == "text" and isinstance(value, UUID):
        return str(value)
    is_midnight = kind == "date" and type(value).__name__ == "Timestamp" and value == value.normalize()
    return value.date() if is_midnight and value.tzinfo is None else value
