"""The leaves of expressions: columns and literals."""

from __future__ import annotations

import datetime
import keyword
import math
import unicodedata
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, final

from tightrope.errors import InputError
from tightrope.tables.backends.column_types import to_comparable
from tightrope.tables.engine_calls import load_library
from tightrope.tables.expressions.tree import (
    FIXED_SIZE_BYTES,
    MAX_TEXT_BYTES,
    NUMBERS,
    ExpressionTree,
    SourceRows,
    ValueFacts,
    boolean_facts,
)
from tightrope.tables.schema import Kind, Schema

if TYPE_CHECKING:
    import ibis.expr.types as ir

ENGINE_TYPES: dict[str, str] = {"integer": "int64", "number": "float64", "text": "string", "boolean": "boolean"}
"""The engine's type of each kind that has a single one."""
INTEGER_LIMIT = 2**63
"""Integers are at least minus this, and below it."""
MAX_SHOWN_BITS = 200
"""Integers of more bits are not shown in errors, because Python refuses to print very long ones."""
FOREIGN_CONSTANTS = {"true": "True", "false": "False", "null": "None", "TRUE": "True", "FALSE": "False", "NULL": "None"}
"""Constants of other languages and their form here; a column of such a name is written with ``column("...")``."""
TIME_KINDS: tuple[Kind, ...] = ("date", "timestamp")


@final
@dataclass(frozen=True)
class ColumnRef(ExpressionTree):
    """The value of a column in this row."""

    name: str
    is_exact = True

    def __post_init__(self) -> None:
        if not (isinstance(self.name, str) and self.name) or not _is_storable_text(self.name):
            raise InputError("column", self.name, "the name of a column, as text")
        super().__post_init__()

    def __str__(self) -> str:
        plain = self.name.isidentifier() and not keyword.iskeyword(self.name) and self.name not in FOREIGN_CONSTANTS
        return self.name if plain and unicodedata.is_normalized("NFKC", self.name) else f"column({self.name!r})"

    @property
    def own_columns(self) -> tuple[str, ...]:
        """The column itself."""
        return (self.name,)

    @property
    def max_value_bytes(self) -> int:
        """The limit of a text, because the column's kind is known only with a schema."""
        return MAX_TEXT_BYTES

    def infer_column_facts(self, schema: Schema) -> ValueFacts:
        """Return its kind; its values are unknown, except for a boolean column."""
        column = schema.find_column(self.name)
        column.refuse_other_kind("column", "be part of an expression")
        return boolean_facts() if column.kind == "boolean" else ValueFacts(column.kind)

    def to_engine_column(self, rows: SourceRows) -> ir.Column:
        """Cast to the single type of its kind (64 bits, doubles without NaN, UTC); other values are missing."""
        column = rows.table[self.name]
        kind = rows.schema.find_column(self.name).kind
        if kind == "integer":
            return column.try_cast("int64")
        if kind == "number":
            return column.cast("float64").nullif(double_literal(math.nan))
        if kind == "timestamp":
            return convert_to_utc(to_comparable(column.try_cast(column.type().copy(scale=6))))
        return column if kind == "boolean" else convert_to_utc(to_comparable(column))


@final
@dataclass(frozen=True)
class Value(ExpressionTree):
    """A literal. ``kind`` tells 1, 1.0 and true apart."""

    value: bool | int | float | str
    kind: Literal["boolean", "integer", "number", "text"]
    is_exact = True

    def __str__(self) -> str:
        return repr(self.value)

    @property
    def max_value_bytes(self) -> int:
        """The size of the literal."""
        return len(self.value.encode()) if isinstance(self.value, str) else FIXED_SIZE_BYTES

    def infer_column_facts(self, schema: Schema) -> ValueFacts:
        """Return the literal as the single possible value."""
        del schema
        lower, upper = (-math.inf, math.inf) if self.kind == "text" else (float(self.value), float(self.value))
        return ValueFacts(self.kind, lower, upper, (self.value,), never_missing=True)

    def to_engine_column(self, rows: SourceRows) -> ir.Column:
        """Return the literal in the type of its kind."""
        del rows
        if self.kind == "number":
            return double_literal(float(self.value))
        return load_library("ibis").literal(self.value, ENGINE_TYPES[self.kind])


def to_literal(value: object) -> Value:
    """Return the literal of a Python value; days and instants become text, the form in which they are compared.

    Raises ``InputError`` for anything other than a finite number of 64 bits, text, truth value, date or datetime.
    """
    plain: Any = value.item() if type(value).__module__ == "numpy" and hasattr(value, "item") else value
    plain = plain.isoformat() if isinstance(plain, datetime.date) else plain
    if isinstance(plain, bool):
        return Value(plain, "boolean")
    if isinstance(plain, int) and -INTEGER_LIMIT <= plain < INTEGER_LIMIT:
        return Value(int(plain), "integer")
    if isinstance(plain, float) and math.isfinite(plain):
        return Value(float(plain) + 0.0, "number")
    if isinstance(plain, str) and _is_storable_text(plain):
        return Value(str(plain), "text")
    expected = "a finite number of 64 bits, a text, true or false"
    remedy = "test for a missing value with is_missing(), in a text with x is None" if plain is None else ""
    raise InputError("literal", _short_value(plain), expected, remedy)


def double_literal(number: float) -> ir.Scalar:
    """Return the engine's double with exactly these bits.

    It is cast from text, which engines parse to the nearest double; SQL would read 0.1 as a decimal.
    """
    return load_library("ibis").literal(repr(float(number))).cast("float64")


def common_kind(parts: tuple[ExpressionTree, ...], schema: Schema) -> Kind:
    """Return the kind in which operands are compared or chosen; raises ``InputError`` without a common kind.

    Integers together with numbers become numbers; a literal text together with days or instants becomes one of them.
    """
    kinds = {part.infer_column_facts(schema).kind for part in parts}
    if kinds == set(NUMBERS):
        return "number"
    time_kind = next((kind for kind in TIME_KINDS if kinds == {kind, "text"}), None)
    if time_kind is not None and all(
        (isinstance(part, Value) and part.kind == "text")
        for part in parts
        if part.infer_column_facts(schema).kind == "text"
    ):
        for part in parts:
            _ = parse_instant(str(part.value), time_kind) if isinstance(part, Value) else None
        return time_kind
    if len(kinds) > 1:
        shown = " and ".join(f"{part} ({part.infer_column_facts(schema).kind})" for part in parts[:2])
        raise InputError.from_text("expression", f"{shown} are not parts of one kind; {_cast_advice(kinds)}")
    return kinds.pop()


def column_in_kind(part: ExpressionTree, kind: Kind, rows: SourceRows) -> ir.Column:
    """Return the operand's column in this kind: its own kind, or the ``common_kind`` of several operands."""
    if kind in TIME_KINDS and isinstance(part, Value):
        return load_library("ibis").literal(parse_instant(str(part.value), kind))
    column = part.to_engine_column(rows)
    return column.cast("float64") if kind == "number" else column


def parse_instant(text: str, kind: Kind) -> datetime.date:
    """Return the day, or the instant in UTC without a zone, of an ISO text; raises ``InputError`` for other texts.

    An instant without a zone is taken as UTC.
    """
    try:
        instant = datetime.datetime.fromisoformat(text)
        if kind == "date":
            day = datetime.date.fromisoformat(text)
            # Some versions of Python ignore what follows a day: "2024010814" would be January 8.
            if instant != datetime.datetime.combine(day, datetime.time.min):
                raise ValueError(text)
            return day
        return instant.replace(tzinfo=None) - (instant.utcoffset() or datetime.timedelta())
    except (ValueError, OverflowError):
        example = "'2024-12-31'" if kind == "date" else "'2024-12-31T18:00:00'"
        raise InputError(kind, text, f"a {kind} such as {example}") from None


def is_day_text(text: str) -> bool:
    """Return whether a text is a day, without a time of day.

    >>> is_day_text("2024-12-31"), is_day_text("2024-12-31T00:00"), is_day_text("soon")
    (True, False, False)
    """
    try:
        parse_instant(text, "date")
    except InputError:
        return False
    return True


def convert_to_utc(column: ir.Column) -> ir.Column:
    """Return instants that have a zone as UTC times without one; the session's zone is UTC, on Spark too."""
    dtype = column.type()
    return column.cast(dtype.copy(timezone=None)) if dtype.is_timestamp() and dtype.timezone else column


def _cast_advice(kinds: set[Kind]) -> str:
    if "boolean" in kinds and set(NUMBERS) & kinds:
        return "case(condition, 1, 0) turns a condition into a number"
    return "a column of a CSV file is text until its type is declared" if "text" in kinds else "compare like with like"


def _is_storable_text(text: str) -> bool:
    """Return whether every engine can store the text: valid UTF-8, without a null character."""
    return "\x00" not in text and not any("\ud800" <= character <= "\udfff" for character in text)


def _short_value(value: object) -> object:
    small = isinstance(value, int) and value.bit_length() <= MAX_SHOWN_BITS
    return value if small or isinstance(value, (str, float, type(None))) else type(value).__name__


# The value of a person, computed from all of their rows: see ``tables.bounding.person_rows``.

PERSON_VALUE_COLUMN = "person_value"
"""The name of the column with the values of persons, in a table with one row per person and group."""
PersonAggregate = Literal["count", "sum", "any"]


@final
@dataclass(frozen=True)
class PersonValue(ExpressionTree):
    """A number or truth value of a person: of their rows, it is computed before persons are counted.

    "count" is the number of rows, or of those for which the condition ``part`` is true; "sum" the sum of the values of
    ``part`` that are present, each rounded to a multiple of ``step``, missing without any; "any" is whether the
    condition is true for a row, missing if it is missing for all.
    """

    aggregate: PersonAggregate
    part: ExpressionTree | None
    step: str = "1"
    """The step of a sum, a decimal."""

    def __str__(self) -> str:
        if self.part is None:
            return "rows per person"
        return {
            "count": f"rows per person with {self.part}",
            "sum": f"sum of {self.part} per person",
            "any": f"at least one row per person with {self.part}",
        }[self.aggregate]

    @property
    def child_nodes(self) -> tuple[ExpressionTree, ...]:
        """The condition, or the number that is added up."""
        return () if self.part is None else (self.part,)

    def infer_column_facts(self, schema: Schema) -> ValueFacts:
        """Return an integer, a number or a truth value; raises ``InputError`` for a part of another kind."""
        kind = None if self.part is None else self.part.infer_column_facts(schema).kind
        if self.aggregate == "sum" and kind not in (*NUMBERS, "boolean"):
            raise InputError("per_person", str(self.part), f"a column of numbers, but it is {kind}")
        if self.aggregate != "sum" and kind not in (None, "boolean"):
            raise InputError("per_person", str(self.part), f"a condition, but it is {kind}", "such as delay > 15")
        if self.aggregate == "any":
            return boolean_facts()
        return ValueFacts("integer", lower=0.0) if self.aggregate == "count" else ValueFacts("number")

    def to_engine_column(self, rows: SourceRows) -> ir.Column:
        """Return the column of a table with one row per person and group."""
        return rows.table[PERSON_VALUE_COLUMN]


def find_person_value(term: str | ExpressionTree | None) -> PersonValue | None:
    """Return the value of a person that a term uses; None without one."""
    if isinstance(term, PersonValue):
        return term
    parts = term.child_nodes if isinstance(term, ExpressionTree) else ()
    return next((found for part in parts if (found := find_person_value(part)) is not None), None)
