"""The leaves of expressions: columns and literals."""

from __future__ import annotations

import datetime
import keyword
import math
import unicodedata
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, final

from tightrope.errors import InputError, SchemaError
from tightrope.tables.backends.column_types import to_comparable
from tightrope.tables.engine_calls import load_library
from tightrope.tables.expressions.tree import (
    FIXED_SIZE_BYTES,
    LONGEST_TEXT,
    NUMBERS,
    ExpressionTree,
    SourceRows,
    ValueFacts,
    boolean_facts,
)
from tightrope.tables.schema import Kind, Schema

if TYPE_CHECKING:
    import ibis.expr.types as ir

ENGINE: dict[str, str] = {"integer": "int64", "number": "float64", "text": "string", "boolean": "boolean"}
"""The engine's type of each kind that has just one."""
INTEGER_LIMIT = 2**63
SHOWN_BITS = 200
"""Larger integers are not shown in errors: Python cannot print the largest."""
ELSEWHERE = {"true": "True", "false": "False", "null": "None", "TRUE": "True", "FALSE": "False", "NULL": "None"}
"""Constants of other languages; write a column of such a name with ``column``."""
TIMES: tuple[Kind, ...] = ("date", "timestamp")


@final
@dataclass(frozen=True)
class ColumnRef(ExpressionTree):
    """The value of a column in this row."""

    name: str

    def __post_init__(self) -> None:
        if not (isinstance(self.name, str) and self.name) or not _is_storable_text(self.name):
            raise InputError("column", self.name, "the name of a column, as text")
        super().__post_init__()

    def __str__(self) -> str:
        plain = self.name.isidentifier() and not keyword.iskeyword(self.name) and self.name not in ELSEWHERE
        return self.name if plain and unicodedata.is_normalized("NFKC", self.name) else f"column({self.name!r})"

    @property
    def own_columns(self) -> tuple[str, ...]:
        """Itself."""
        return (self.name,)

    @property
    def max_value_bytes(self) -> int:
        """The limit for a text; the schema determines whether it is one."""
        return LONGEST_TEXT

    def infer_facts(self, schema: Schema) -> ValueFacts:
        """Its kind; nothing is known of its values, but of a truth value's."""
        kind = schema.find_column(self.name).kind
        if kind == "other":
            expected = "a number, text, boolean, date or timestamp to be computed with"
            raise SchemaError("column", self.name, expected, "cast it first")
        return boolean_facts() if kind == "boolean" else ValueFacts(kind)

    def to_engine_column(self, rows: SourceRows) -> ir.Column:
        """Cast to the one type of its kind: 64 bits, doubles without NaN, UTC; other values are missing."""
        column = rows.table[self.name]
        kind = rows.schema.find_column(self.name).kind
        if kind == "integer":
            return column.try_cast("int64")
        if kind == "number":
            return column.cast("float64").nullif(double_literal(math.nan))
        if kind == "timestamp":
            return in_utc(to_comparable(column.try_cast(column.type().copy(scale=6))))
        return column if kind == "boolean" else in_utc(to_comparable(column))


@final
@dataclass(frozen=True)
class Value(ExpressionTree):
    """A literal. ``kind`` tells 1, 1.0 and true apart."""

    value: bool | int | float | str
    kind: Literal["boolean", "integer", "number", "text"]

    def __str__(self) -> str:
        return repr(self.value)

    @property
    def max_value_bytes(self) -> int:
        """Its own bytes."""
        return len(self.value.encode()) if isinstance(self.value, str) else FIXED_SIZE_BYTES

    def infer_facts(self, schema: Schema) -> ValueFacts:
        """All of them."""
        del schema
        number = -math.inf if self.kind == "text" else float(self.value)
        top = math.inf if self.kind == "text" else number
        return ValueFacts(self.kind, number, top, (self.value,), never_missing=True)

    def to_engine_column(self, rows: SourceRows) -> ir.Column:
        """The literal in its one type."""
        del rows
        if self.kind == "number":
            return double_literal(float(self.value))
        return load_library("ibis").literal(self.value, ENGINE[self.kind])


def to_literal(value: object) -> Value:
    """The literal of a Python value; days and instants are text, as they are where they are compared.

    Raises ``InputError`` for anything other than a finite number of 64 bits, text, truth value, date or datetime.
    """
    found: Any = value.item() if type(value).__module__ == "numpy" and hasattr(value, "item") else value
    found = found.isoformat() if isinstance(found, datetime.date) else found
    if isinstance(found, bool):
        return Value(found, "boolean")
    if isinstance(found, int) and -INTEGER_LIMIT <= found < INTEGER_LIMIT:
        return Value(int(found), "integer")
    if isinstance(found, float) and math.isfinite(found):
        return Value(float(found) + 0.0, "number")
    if isinstance(found, str) and _is_storable_text(found):
        return Value(str(found), "text")
    expected = "a finite number of 64 bits, a text, true or false"
    raise InputError("literal", _short_value(found), expected, "x is None asks whether x is missing" * (found is None))


def double_literal(number: float) -> ir.Scalar:
    """The double with exactly these bits: SQL reads 0.1 as a decimal, text it parses to the nearest double."""
    return load_library("ibis").literal(repr(float(number))).cast("float64")


def common_kind(parts: tuple[ExpressionTree, ...], schema: Schema) -> Kind:
    """Return the kind in which parts are compared or chosen; raises ``InputError`` without a common kind.

    Integers combined with numbers are numbers; a text combined with a day or an instant is one, too.
    """
    kinds = {part.infer_facts(schema).kind for part in parts}
    if kinds == set(NUMBERS):
        return "number"
    time = next((kind for kind in TIMES if kinds == {kind, "text"}), None)
    if time is not None and all(
        (isinstance(part, Value) and part.kind == "text") for part in parts if part.infer_facts(schema).kind == "text"
    ):
        for part in parts:
            _ = parse_instant(str(part.value), time) if isinstance(part, Value) else None
        return time
    if len(kinds) > 1:
        shown = " and ".join(f"{part} ({part.infer_facts(schema).kind})" for part in parts[:2])
        raise InputError("expression", shown, "made of parts of one kind", _cast_advice(kinds))
    return kinds.pop()


def column_in_kind(part: ExpressionTree, kind: Kind, rows: SourceRows) -> ir.Column:
    """A part in this kind, either its own or ``common_kind``."""
    if kind in TIMES and isinstance(part, Value):
        return load_library("ibis").literal(parse_instant(str(part.value), kind))
    own = part.to_engine_column(rows)
    return own.cast("float64") if kind == "number" else own


def parse_instant(text: str, kind: Kind) -> datetime.date:
    """A day, or an instant in UTC (taken for UTC where it has no zone); raises ``InputError``."""
    try:
        if kind == "date":
            return datetime.date.fromisoformat(text)
        found = datetime.datetime.fromisoformat(text)
        return found.replace(tzinfo=None) - (found.utcoffset() or datetime.timedelta())
    except (ValueError, OverflowError):
        example = "'2024-12-31'" if kind == "date" else "'2024-12-31T18:00:00'"
        raise InputError(kind, text, f"a {kind} such as {example}") from None


def in_utc(column: ir.Column) -> ir.Column:
    """Instants with a zone as the clock of UTC shows them; the engine's own clock does, here and on Spark."""
    dtype = column.type()
    return column.cast(dtype.copy(timezone=None)) if dtype.is_timestamp() and dtype.timezone else column


def _cast_advice(kinds: set[Kind]) -> str:
    if "boolean" in kinds and set(NUMBERS) & kinds:
        return "case(condition, 1, 0) makes a number of a condition"
    return "a column of a CSV file is text until its type is declared" if "text" in kinds else "compare like with like"


def _is_storable_text(text: str) -> bool:
    """Return whether every engine can hold the text: UTF-8, without a null."""
    return "\x00" not in text and not any("\ud800" <= letter <= "\udfff" for letter in text)


def _short_value(value: object) -> object:
    small = isinstance(value, int) and value.bit_length() <= SHOWN_BITS
    return value if small or isinstance(value, (str, float, type(None))) else type(value).__name__
