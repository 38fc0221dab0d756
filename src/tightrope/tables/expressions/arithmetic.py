"""Arithmetic: + - * /, and the functions of numbers."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import reduce
from operator import add, and_, mul, sub, truediv
from typing import TYPE_CHECKING, Any, final

from tightrope.errors import InputError
from tightrope.tables.engine_calls import load_library
from tightrope.tables.expressions.leaves import Value, column_in_kind, common_kind, double_literal
from tightrope.tables.expressions.tree import (
    ADDED,
    NUMBERS,
    TIMES,
    WHOLE,
    ExpressionTree,
    SourceRows,
    ValueFacts,
    parenthesize_part,
)
from tightrope.tables.schema import Kind, Schema

if TYPE_CHECKING:
    import ibis.expr.types as ir

OPERATIONS: dict[str, tuple[int, Callable[[Any, Any], Any]]] = {
    "+": (ADDED, add),
    "-": (ADDED, sub),
    "*": (TIMES, mul),
    "/": (TIMES, truediv),
}
"""The binding strength of each operator, and its function."""


@final
@dataclass(frozen=True)
class Arithmetic(ExpressionTree):
    """Two numbers; ``/`` always gives a number, the others integers from integers."""

    operation: str
    left: ExpressionTree
    right: ExpressionTree

    @property
    def child_nodes(self) -> tuple[ExpressionTree, ...]:
        """Both sides."""
        return self.left, self.right

    @property
    def binding_strength(self) -> int:  # type: ignore[override]
        """The binding strength of the operation."""
        return OPERATIONS[self.operation][0]

    def __str__(self) -> str:
        return (
            f"{parenthesize_part(self.left, self.binding_strength)} {self.operation} "
            f"{parenthesize_part(self.right, self.binding_strength + 1)}"
        )

    def infer_facts(self, schema: Schema) -> ValueFacts:
        """The range: operations on doubles are monotone, rounding included, so the ends decide."""
        kind = numeric_kind(self.child_nodes, schema)
        left, right = self.left.infer_facts(schema), self.right.infer_facts(schema)
        if self.operation == "/":
            if right.lower <= 0 <= right.upper:
                return ValueFacts("number")
            return ValueFacts("number", *_range_of_ends(truediv, left, right))
        return _limit_integers(kind, *_range_of_ends(OPERATIONS[self.operation][1], left, right))

    def to_engine_column(self, rows: SourceRows) -> ir.Column:
        """Computed in doubles; NaN and integers that are too large become missing."""
        kind = numeric_kind(self.child_nodes, rows.schema)
        whole = kind == "integer" and self.operation != "/"
        left, right = (
            integer_to_double(part.to_engine_column(rows)) if whole else part.to_engine_column(rows).cast("float64")
            for part in self.child_nodes
        )
        right = right.nullif(double_literal(0.0)) if self.operation == "/" else right
        found = OPERATIONS[self.operation][1](left, right)
        return double_to_integer(found) if whole else found.nullif(double_literal(math.nan))


@final
@dataclass(frozen=True)
class Absolute(ExpressionTree):
    """|x|."""

    part: ExpressionTree

    @property
    def child_nodes(self) -> tuple[ExpressionTree, ...]:
        """The number."""
        return (self.part,)

    def __str__(self) -> str:
        return f"abs({self.part})"

    def infer_facts(self, schema: Schema) -> ValueFacts:
        """From zero, where the range has zero in it."""
        kind, own = numeric_kind(self.child_nodes, schema), self.part.infer_facts(schema)
        ends = abs(own.lower), abs(own.upper)
        return _limit_integers(kind, 0.0 if own.lower <= 0 <= own.upper else min(ends), max(ends))

    def to_engine_column(self, rows: SourceRows) -> ir.Column:
        """Exact for integers."""
        own = self.part.to_engine_column(rows)
        whole = numeric_kind(self.child_nodes, rows.schema) == "integer"
        return integer_to_double(own).abs().cast("int64") if whole else own.abs()


@final
@dataclass(frozen=True)
class Extreme(ExpressionTree):
    """The least or the largest of numbers; missing where one of them is."""

    largest: bool
    choices: tuple[ExpressionTree, ...]
    mentions = 2

    @property
    def child_nodes(self) -> tuple[ExpressionTree, ...]:
        """The numbers."""
        return self.choices

    def __str__(self) -> str:
        return f"{'max' if self.largest else 'min'}({', '.join(map(str, self.choices))})"

    def infer_facts(self, schema: Schema) -> ValueFacts:
        """Ends by ends."""
        kind, every = numeric_kind(self.choices, schema), [part.infer_facts(schema) for part in self.choices]
        choose = max if self.largest else min
        return ValueFacts(kind, choose(own.lower for own in every), choose(own.upper for own in every))

    def to_engine_column(self, rows: SourceRows) -> ir.Column:
        """By the engine, which leaves out what is missing: so that is asked first."""
        ibis, kind = load_library("ibis"), numeric_kind(self.choices, rows.schema)
        columns = [column_in_kind(part, kind, rows) for part in self.choices]
        known = reduce(and_, [column.notnull() for column in columns])
        found = ibis.greatest(*columns) if self.largest else ibis.least(*columns)
        return ibis.ifelse(known, found, ibis.null(found.type()))


@final
@dataclass(frozen=True)
class Clip(ExpressionTree):
    """x moved to the nearer end of a range."""

    part: ExpressionTree
    lower: Value
    upper: Value
    mentions = 2

    def __post_init__(self) -> None:
        ends = self.lower, self.upper
        numbers = all(isinstance(end, Value) and end.kind in NUMBERS for end in ends)
        if not numbers or not float(self.lower.value) <= float(self.upper.value):
            raise InputError("clip", f"{ends[0]}, {ends[1]}", "clip(x, lowest, highest) with two numbers in order")
        super().__post_init__()

    @property
    def child_nodes(self) -> tuple[ExpressionTree, ...]:
        """The number and its ends."""
        return self.part, self.lower, self.upper

    def __str__(self) -> str:
        return f"clip({self.part}, {self.lower}, {self.upper})"

    def infer_facts(self, schema: Schema) -> ValueFacts:
        """The range, and the part's range within it."""
        kind, own = numeric_kind(self.child_nodes, schema), self.part.infer_facts(schema)
        low, high = float(self.lower.value), float(self.upper.value)
        return ValueFacts(kind, min(max(own.lower, low), high), min(max(own.upper, low), high))

    def to_engine_column(self, rows: SourceRows) -> ir.Column:
        """Missing where the part is."""
        ibis, kind = load_library("ibis"), numeric_kind(self.child_nodes, rows.schema)
        own, low, high = (column_in_kind(part, kind, rows) for part in self.child_nodes)
        return ibis.ifelse(own.notnull(), ibis.least(ibis.greatest(own, low), high), ibis.null(own.type()))


def numeric_kind(parts: tuple[ExpressionTree, ...], schema: Schema) -> Kind:
    """Return the common kind of numbers; raises ``InputError`` if one is not a number."""
    for part in parts:
        if (kind := part.infer_facts(schema).kind) not in NUMBERS:
            # Suggested conversions to a number.
            if kind in ("date", "timestamp"):
                number_of = f"days({part}) counts days: the difference of two of them is a number"
            else:
                found = "case(condition, 1, 0) makes a number of a condition"
                number_of = found if kind == "boolean" else "make it a number where the table is made"
            raise InputError("expression", f"{part} ({kind})", "a number, to be computed with", number_of)
    return common_kind(parts, schema)


def integer_to_double(whole: ir.Column) -> ir.Column:
    """64-bit integers as doubles; missing where a double would round. Each is mentioned once: texts stay short."""
    return _missing_beyond(whole, load_library("ibis").literal(WHOLE, "int64")).cast("float64")


def double_to_integer(number: ir.Column) -> ir.Column:
    """Doubles that are whole as 64-bit integers; missing where they may have been rounded."""
    return _missing_beyond(number, double_literal(WHOLE)).cast("int64")


def _missing_beyond(x: ir.Column, end: ir.Scalar) -> ir.Column:
    """x, missing from ±``end`` on. ``greatest`` makes −end of what is missing, and that is missing again."""
    ibis, low = load_library("ibis"), -end
    return ibis.least(ibis.greatest(x, low), end).nullif(end).nullif(low)


def _range_of_ends(operation: Callable[[Any, Any], Any], left: ValueFacts, right: ValueFacts) -> tuple[float, float]:
    found = [
        operation(a, b)
        for a, b in itertools.product((left.lower, left.upper), (right.lower, right.upper))
    ]  # fmt: skip
    if operation is mul:
        found = [0.0 if math.isnan(end) else end for end in found]  # 0 · ∞: what is infinite there is missing
    return (-math.inf, math.inf) if any(map(math.isnan, found)) else (min(found), max(found))


def _limit_integers(kind: Kind, lower: float, upper: float) -> ValueFacts:
    """Whole numbers that are computed stay below 2⁵³."""
    if kind != "integer":
        return ValueFacts(kind, lower, upper)
    end = float(WHOLE)
    return ValueFacts(kind, min(max(lower, -end), end), max(min(upper, end), -end))
