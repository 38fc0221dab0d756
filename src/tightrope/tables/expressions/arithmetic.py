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
from tightrope.tables.engine_calls import load
from tightrope.tables.expressions.leaves import Value, common, double, in_kind
from tightrope.tables.expressions.tree import ADDED, NUMBERS, TIMES, WHOLE, Facts, Rows, Tree, inside
from tightrope.tables.schema import Kind, Schema

if TYPE_CHECKING:
    import ibis.expr.types as ir

OPERATIONS: dict[str, tuple[int, Callable[[Any, Any], Any]]] = {
    "+": (ADDED, add),
    "-": (ADDED, sub),
    "*": (TIMES, mul),
    "/": (TIMES, truediv),
}
"""How tightly each binds, and what it does."""


@final
@dataclass(frozen=True)
class Arithmetic(Tree):
    """Two numbers; ``/`` gives a number always, the others whole numbers from whole numbers."""

    operation: str
    left: Tree
    right: Tree

    @property
    def operands(self) -> tuple[Tree, ...]:
        """Both sides."""
        return self.left, self.right

    @property
    def binding(self) -> int:  # type: ignore[override]
        """That of the operation."""
        return OPERATIONS[self.operation][0]

    def __str__(self) -> str:
        return f"{inside(self.left, self.binding)} {self.operation} {inside(self.right, self.binding + 1)}"

    def facts(self, schema: Schema) -> Facts:
        """The range: operations on doubles are monotone, rounding included, so the ends decide."""
        kind = numeric(self.operands, schema)
        left, right = self.left.facts(schema), self.right.facts(schema)
        if self.operation == "/":
            return Facts("number", *_quotients(left, right))
        return _limited(kind, *_ends(OPERATIONS[self.operation][1], left, right))

    def compiled(self, rows: Rows) -> ir.Column:
        """In doubles, NaN and what is too large to be whole missing."""
        kind = numeric(self.operands, rows.schema)
        whole = kind == "integer" and self.operation != "/"
        left, right = (
            exact(part.compiled(rows)) if whole else part.compiled(rows).cast("float64") for part in self.operands
        )
        right = right.nullif(double(0.0)) if self.operation == "/" else right
        found = OPERATIONS[self.operation][1](left, right)
        return as_whole(found) if whole else found.nullif(double(math.nan))


@final
@dataclass(frozen=True)
class Absolute(Tree):
    """|x|."""

    part: Tree

    @property
    def operands(self) -> tuple[Tree, ...]:
        """The number."""
        return (self.part,)

    def __str__(self) -> str:
        return f"abs({self.part})"

    def facts(self, schema: Schema) -> Facts:
        """From zero, where the range has zero in it."""
        kind, own = numeric(self.operands, schema), self.part.facts(schema)
        ends = abs(own.lower), abs(own.upper)
        return _limited(kind, 0.0 if own.lower <= 0 <= own.upper else min(ends), max(ends))

    def compiled(self, rows: Rows) -> ir.Column:
        """Exact where it is whole."""
        own = self.part.compiled(rows)
        whole = numeric(self.operands, rows.schema) == "integer"
        return exact(own).abs().cast("int64") if whole else own.abs()


@final
@dataclass(frozen=True)
class Extreme(Tree):
    """The least or the largest of numbers; missing where one of them is."""

    largest: bool
    choices: tuple[Tree, ...]
    mentions = 2

    @property
    def operands(self) -> tuple[Tree, ...]:
        """The numbers."""
        return self.choices

    def __str__(self) -> str:
        return f"{'max' if self.largest else 'min'}({', '.join(map(str, self.choices))})"

    def facts(self, schema: Schema) -> Facts:
        """Ends by ends."""
        kind, every = numeric(self.choices, schema), [part.facts(schema) for part in self.choices]
        choose = max if self.largest else min
        return Facts(kind, choose(own.lower for own in every), choose(own.upper for own in every))

    def compiled(self, rows: Rows) -> ir.Column:
        """By the engine, which leaves out what is missing: so that is asked first."""
        ibis, kind = load("ibis"), numeric(self.choices, rows.schema)
        columns = [in_kind(part, kind, rows) for part in self.choices]
        known = reduce(and_, [column.notnull() for column in columns])
        found = ibis.greatest(*columns) if self.largest else ibis.least(*columns)
        return ibis.ifelse(known, found, ibis.null(found.type()))


@final
@dataclass(frozen=True)
class Clip(Tree):
    """x moved to the nearer end of a range."""

    part: Tree
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
    def operands(self) -> tuple[Tree, ...]:
        """The number and its ends."""
        return self.part, self.lower, self.upper

    def __str__(self) -> str:
        return f"clip({self.part}, {self.lower}, {self.upper})"

    def facts(self, schema: Schema) -> Facts:
        """The range, and that of the part within it."""
        kind, own = numeric(self.operands, schema), self.part.facts(schema)
        low, high = float(self.lower.value), float(self.upper.value)
        return Facts(kind, min(max(own.lower, low), high), min(max(own.upper, low), high))

    def compiled(self, rows: Rows) -> ir.Column:
        """Missing where the part is."""
        ibis, kind = load("ibis"), numeric(self.operands, rows.schema)
        own, low, high = (in_kind(part, kind, rows) for part in self.operands)
        return ibis.ifelse(own.notnull(), ibis.least(ibis.greatest(own, low), high), ibis.null(own.type()))


def numeric(parts: tuple[Tree, ...], schema: Schema) -> Kind:
    """The common kind of numbers; raises ``InputError`` where one is none."""
    for part in parts:
        if (kind := part.facts(schema).kind) not in NUMBERS:
            # What makes a number of what is none.
            if kind in ("date", "timestamp"):
                number_of = f"days({part}) counts days: the difference of two of them is a number"
            else:
                found = "case(condition, 1, 0) makes a number of a condition"
                number_of = found if kind == "boolean" else "make it a number where the table is made"
            raise InputError("expression", f"{part} ({kind})", "a number, to be computed with", number_of)
    return common(parts, schema)


def exact(whole: ir.Column) -> ir.Column:
    """64-bit integers as doubles; missing where a double would round. Each is mentioned once: texts stay short."""
    return _below(whole, load("ibis").literal(WHOLE, "int64")).cast("float64")


def as_whole(number: ir.Column) -> ir.Column:
    """Doubles that are whole as 64-bit integers; missing where they may have been rounded."""
    return _below(number, double(WHOLE)).cast("int64")


def _below(x: ir.Column, end: ir.Scalar) -> ir.Column:
    """x, missing from ±``end`` on. ``greatest`` makes −end of what is missing, and that is missing again."""
    ibis, low = load("ibis"), -end
    return ibis.least(ibis.greatest(x, low), end).nullif(end).nullif(low)


def _ends(operation: Callable[[Any, Any], Any], left: Facts, right: Facts) -> tuple[float, float]:
    found = [
        operation(a, b)
        for a, b in itertools.product((left.lower, left.upper), (right.lower, right.upper))
    ]  # fmt: skip
    if operation is mul:
        found = [0.0 if math.isnan(end) else end for end in found]  # 0 · ∞: what is infinite there is missing
    return (-math.inf, math.inf) if any(map(math.isnan, found)) else (min(found), max(found))


def _quotients(left: Facts, right: Facts) -> tuple[float, float]:
    if right.lower <= 0 <= right.upper:
        return -math.inf, math.inf
    return _ends(truediv, left, right)


def _limited(kind: Kind, lower: float, upper: float) -> Facts:
    """Whole numbers that are computed stay below 2⁵³."""
    if kind != "integer":
        return Facts(kind, lower, upper)
    end = float(WHOLE)
    return Facts(kind, min(max(lower, -end), end), max(min(upper, end), -end))
