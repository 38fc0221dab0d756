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
    EXACT_INTEGER_END,
    NUMBERS,
    PRODUCT_BINDING,
    SUM_BINDING,
    ExpressionTree,
    SourceRows,
    ValueFacts,
    parenthesize_part,
)
from tightrope.tables.schema import Kind, Schema

if TYPE_CHECKING:
    import ibis.expr.types as ir

OPERATIONS: dict[str, tuple[int, Callable[[Any, Any], Any]]] = {
    "+": (SUM_BINDING, add),
    "-": (SUM_BINDING, sub),
    "*": (PRODUCT_BINDING, mul),
    "/": (PRODUCT_BINDING, truediv),
}
"""The binding strength of each operator, and its function."""


@final
@dataclass(frozen=True)
class Arithmetic(ExpressionTree):
    """An operation on two numbers: of two integers an integer, except for ``/``, which always gives a number."""

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

    def infer_column_facts(self, schema: Schema) -> ValueFacts:
        """Return the range, which follows from the operands' ends: rounded operations are monotone, too."""
        kind = numeric_kind(self.child_nodes, schema)
        left, right = self.left.infer_column_facts(schema), self.right.infer_column_facts(schema)
        if self.operation == "/":
            if right.lower <= 0 <= right.upper:
                return ValueFacts("number")
            return ValueFacts("number", *_range_of_ends(truediv, left, right))
        return limit_integers(kind, *_range_of_ends(OPERATIONS[self.operation][1], left, right))

    def to_engine_column(self, rows: SourceRows) -> ir.Column:
        """Compute in doubles; NaN, and integers that are too large, become missing."""
        kind = numeric_kind(self.child_nodes, rows.schema)
        is_integer = kind == "integer" and self.operation != "/"
        columns = [part.to_engine_column(rows) for part in self.child_nodes]
        left, right = (integer_to_double(column) if is_integer else column.cast("float64") for column in columns)
        right = right.nullif(double_literal(0.0)) if self.operation == "/" else right
        result = OPERATIONS[self.operation][1](left, right)
        return double_to_integer(result) if is_integer else result.nullif(double_literal(math.nan))


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

    def infer_column_facts(self, schema: Schema) -> ValueFacts:
        """Return the range of the absolute values; it begins at 0 if the operand's range contains 0."""
        kind, facts = numeric_kind(self.child_nodes, schema), self.part.infer_column_facts(schema)
        ends = abs(facts.lower), abs(facts.upper)
        return limit_integers(kind, 0.0 if facts.lower <= 0 <= facts.upper else min(ends), max(ends))

    def to_engine_column(self, rows: SourceRows) -> ir.Column:
        """Return the absolute value, exact for integers."""
        column = self.part.to_engine_column(rows)
        is_integer = numeric_kind(self.child_nodes, rows.schema) == "integer"
        return integer_to_double(column).abs().cast("int64") if is_integer else column.abs()


@final
@dataclass(frozen=True)
class Extreme(ExpressionTree):
    """The smallest or the largest of several numbers; missing if one of them is."""

    largest: bool
    choices: tuple[ExpressionTree, ...]
    operand_mentions = 2

    @property
    def child_nodes(self) -> tuple[ExpressionTree, ...]:
        """The numbers."""
        return self.choices

    def __str__(self) -> str:
        return f"{'max' if self.largest else 'min'}({', '.join(map(str, self.choices))})"

    def infer_column_facts(self, schema: Schema) -> ValueFacts:
        """Return the range: the extreme of the lower ends and the extreme of the upper ends."""
        kind, facts = numeric_kind(self.choices, schema), [part.infer_column_facts(schema) for part in self.choices]
        choose = max if self.largest else min
        return ValueFacts(kind, choose(part.lower for part in facts), choose(part.upper for part in facts))

    def to_engine_column(self, rows: SourceRows) -> ir.Column:
        """Return the engine's extreme, which ignores missing values, where no operand is missing."""
        ibis, kind = load_library("ibis"), numeric_kind(self.choices, rows.schema)
        columns = [column_in_kind(part, kind, rows) for part in self.choices]
        all_present = reduce(and_, [column.notnull() for column in columns])
        extreme = ibis.greatest(*columns) if self.largest else ibis.least(*columns)
        return ibis.ifelse(all_present, extreme, ibis.null(extreme.type()))


@final
@dataclass(frozen=True)
class Clip(ExpressionTree):
    """x clamped to a range: a value outside becomes the nearer end."""

    part: ExpressionTree
    lower: Value
    upper: Value
    operand_mentions = 2

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

    def infer_column_facts(self, schema: Schema) -> ValueFacts:
        """Return the operand's range, clamped."""
        kind, facts = numeric_kind(self.child_nodes, schema), self.part.infer_column_facts(schema)
        low, high = float(self.lower.value), float(self.upper.value)
        return ValueFacts(kind, min(max(facts.lower, low), high), min(max(facts.upper, low), high))

    def to_engine_column(self, rows: SourceRows) -> ir.Column:
        """Clamp in the engine; missing values stay missing."""
        ibis, kind = load_library("ibis"), numeric_kind(self.child_nodes, rows.schema)
        x, low, high = (column_in_kind(part, kind, rows) for part in self.child_nodes)
        return ibis.ifelse(x.notnull(), ibis.least(ibis.greatest(x, low), high), ibis.null(x.type()))


def numeric_kind(parts: tuple[ExpressionTree, ...], schema: Schema) -> Kind:
    """Return the common kind of numbers; raises ``InputError`` if one is not a number."""
    for part in parts:
        if (kind := part.infer_column_facts(schema).kind) not in NUMBERS:
            if kind in ("date", "timestamp"):
                remedy = f"days({part}) counts days, and two such counts can be subtracted"
            elif kind == "boolean":
                remedy = "case(condition, 1, 0) turns a condition into a number"
            else:
                remedy = "convert it to a number where the table is made"
            raise InputError("expression", f"{part} ({kind})", "a number", remedy)
    return common_kind(parts, schema)


def integer_to_double(integers: ir.Column) -> ir.Column:
    """Return 64-bit integers as doubles; those that a double would round are missing.

    The column occurs once in the result, so that the engine's query stays short.
    """
    return missing_outside_range(integers, load_library("ibis").literal(EXACT_INTEGER_END, "int64")).cast("float64")


def double_to_integer(number: ir.Column) -> ir.Column:
    """Return integral doubles as 64-bit integers; those that may have been rounded are missing."""
    return missing_outside_range(number, double_literal(EXACT_INTEGER_END)).cast("int64")


def missing_outside_range(x: ir.Column, end: ir.Scalar) -> ir.Column:
    """Return x where −``end`` < x < ``end``, else a missing value. A missing x passes: ``greatest`` gives −``end``."""
    ibis, low = load_library("ibis"), -end
    return ibis.least(ibis.greatest(x, low), end).nullif(end).nullif(low)


def _range_of_ends(operation: Callable[[Any, Any], Any], left: ValueFacts, right: ValueFacts) -> tuple[float, float]:
    results = [
        operation(a, b)
        for a, b in itertools.product((left.lower, left.upper), (right.lower, right.upper))
    ]  # fmt: skip
    if operation is mul:
        results = [0.0 if math.isnan(end) else end for end in results]  # 0 · ∞: values are finite, their bound is not
    return (-math.inf, math.inf) if any(map(math.isnan, results)) else (min(results), max(results))


def limit_integers(kind: Kind, lower: float, upper: float) -> ValueFacts:
    """Return the facts of a computed number; the range of an integer ends at ±2⁵³."""
    if kind != "integer":
        return ValueFacts(kind, lower, upper)
    end = float(EXACT_INTEGER_END)
    return ValueFacts(kind, min(max(lower, -end), end), max(min(upper, end), -end))
