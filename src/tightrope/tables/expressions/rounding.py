"""Functions that round numbers: to a grid, to a remainder, to a part of a range; and the logarithm.

They are computed in doubles, with the operations that IEEE 754 fixes to the last bit, so that engines agree.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from functools import cached_property
from typing import TYPE_CHECKING, Literal, final

from tightrope.errors import InputError
from tightrope.tables.engine_calls import load_library
from tightrope.tables.expressions.arithmetic import (
    double_to_integer,
    integer_to_double,
    limit_integers,
    missing_outside_range,
    numeric_kind,
)
from tightrope.tables.expressions.leaves import Value, double_literal
from tightrope.tables.expressions.tree import (
    EXACT_INTEGER_END,
    MAX_LISTED_VALUES,
    NUMBERS,
    ExpressionTree,
    SourceRows,
    ValueFacts,
)
from tightrope.tables.schema import Schema

if TYPE_CHECKING:
    import ibis.expr.types as ir

MAX_CELL_PARTS = 10_000
"""Most parts of ``cell``."""
MAX_GRID_TERM = 10**15
"""Largest numerator and denominator of a grid's width: doubles hold both exactly."""
LOGARITHM_SCALE = 2**30
"""Logarithms are rounded to multiples of one divided by this, because engines' logarithms differ in the last bits."""
LARGEST_DOUBLE = math.nextafter(math.inf, 0.0)


@final
@dataclass(frozen=True)
class GridValue(ExpressionTree):
    """A multiple of a width: the largest one that is not above x, or the nearest one, the upper one of two.

    The width is a decimal: ``round(0.31, 0.1)`` is the double 0.3, the nearest one to three tenths. With p/q for the
    width, the multiple is k = ⌊x q / p⌋, or the nearest integer to x q / p; the value is k p / q, and missing from
    k = 2⁵³ on. Each step is monotone in x, rounding included.
    """

    direction: Literal["floor", "round"]
    part: ExpressionTree
    width: Value | None = None

    def __post_init__(self) -> None:
        is_number = self.width is None or self.width.kind in NUMBERS
        if not is_number or not (self.grid > 0 and max(self.grid.as_integer_ratio()) <= MAX_GRID_TERM):
            expected = f"{self.direction}(x, width) with a positive number for the width"
            raise InputError(self.direction, str(self.width), expected, "such as 5 or 0.01; leave it out for integers")
        super().__post_init__()

    @cached_property
    def grid(self) -> Fraction:
        """The exact width."""
        return Fraction(1) if self.width is None else Fraction(Decimal(repr(self.width.value)))

    @property
    def operand_mentions(self) -> int:  # type: ignore[override]
        """Two if it is rounded to the nearest multiple, which takes the floor of the double, too."""
        return 1 if self.direction == "floor" else 2

    @property
    def child_nodes(self) -> tuple[ExpressionTree, ...]:
        """The number, and the width if it is given."""
        return (self.part,) if self.width is None else (self.part, self.width)

    def __str__(self) -> str:
        return f"{self.direction}({', '.join(map(str, self.child_nodes))})"

    def infer_column_facts(self, schema: Schema) -> ValueFacts:
        """Return the range, from the ends of the operand's range; its multiples if they are few."""
        numeric_kind((self.part,), schema)
        kind: Literal["integer", "number"] = "integer" if self.grid.denominator == 1 else "number"
        facts = self.part.infer_column_facts(schema)
        ends = [self._multiple_index(end) for end in (facts.lower, facts.upper)]
        if None in ends:
            lower, upper = (
                infinite if end is None else self._value_of_index(end)
                for end, infinite in zip(ends, (-math.inf, math.inf), strict=True)
            )
            return ValueFacts(kind, lower, upper)
        first, last = (end for end in ends if end is not None)
        lower, upper = self._value_of_index(first), self._value_of_index(last)
        if not last - first < MAX_LISTED_VALUES or not max(abs(lower), abs(upper)) < EXACT_INTEGER_END:
            return limit_integers(kind, lower, upper)
        # Very close multiples may be the same double.
        values = tuple(dict.fromkeys(self._value_of_index(index) for index in range(first, last + 1)))
        listed = tuple(map(int, values)) if kind == "integer" else values
        is_exact = max(abs(facts.lower), abs(facts.upper)) < EXACT_INTEGER_END
        return ValueFacts(kind, lower, upper, listed, facts.never_missing and is_exact)

    def _multiple_index(self, x: float) -> int | None:
        """Return k as the engine computes it; None if it is missing."""
        position = x * float(self.grid.denominator) / float(self.grid.numerator)
        if not abs(position) < EXACT_INTEGER_END:
            return None
        below = math.floor(position)
        return below if self.direction == "floor" else math.floor(2 * position) - below

    def _value_of_index(self, index: int) -> float:
        return float(index) * float(self.grid.numerator) / float(self.grid.denominator)

    def to_engine_column(self, rows: SourceRows) -> ir.Column:
        """Compute it in doubles; with y for the position on the grid, the nearest integer is ⌊2y⌋ − ⌊y⌋."""
        x = double_operand(self.part, rows)
        numerator, denominator = map(float, self.grid.as_integer_ratio())
        position = x * double_literal(denominator) / double_literal(numerator)
        bounded = missing_outside_range(position, double_literal(EXACT_INTEGER_END))
        index = bounded.floor().cast("int64")
        if self.direction == "round":
            index = (bounded * double_literal(2.0)).floor().cast("int64") - index
        value = index.cast("float64") * double_literal(numerator)
        return double_to_integer(value) if denominator == 1 else value / double_literal(denominator)


@final
@dataclass(frozen=True)
class Remainder(ExpressionTree):
    """The remainder of x divided by a positive number, from 0 to below it, also of a negative x, as Python's ``%``."""

    part: ExpressionTree
    divisor: Value
    operand_mentions = 2

    def __post_init__(self) -> None:
        is_number = self.divisor.kind in NUMBERS
        if not (is_number and 0 < self.divisor.value < EXACT_INTEGER_END):  # type: ignore[operator]
            raise InputError("mod", str(self.divisor), "mod(x, divisor) with a positive number below 2^53")
        super().__post_init__()

    @property
    def child_nodes(self) -> tuple[ExpressionTree, ...]:
        """The number and the divisor."""
        return self.part, self.divisor

    def __str__(self) -> str:
        return f"mod({self.part}, {self.divisor})"

    def infer_column_facts(self, schema: Schema) -> ValueFacts:
        """Return the range; the integers of it if they are few."""
        kind, facts = numeric_kind(self.child_nodes, schema), self.part.infer_column_facts(schema)
        divisor = float(self.divisor.value)
        if kind == "number":
            return ValueFacts(kind, 0.0, divisor)  # of a tiny negative x, it is rounded up to the divisor
        is_itself = facts.lower >= 0 and facts.upper < divisor
        lower, upper = (facts.lower, facts.upper) if is_itself else (0.0, divisor - 1)
        if not upper - lower < MAX_LISTED_VALUES:
            return ValueFacts(kind, lower, upper)
        values = tuple(range(int(lower), int(upper) + 1))
        return ValueFacts(kind, lower, upper, values, facts.never_missing and is_itself)

    def to_engine_column(self, rows: SourceRows) -> ir.Column:
        """Compute the engine's remainder of doubles, which is exact and has the sign of x; add the divisor below 0."""
        ibis, divisor = load_library("ibis"), double_literal(float(self.divisor.value))
        remainder = double_operand(self.part, rows) % divisor
        result = ibis.ifelse(remainder < double_literal(0.0), divisor, double_literal(0.0)) + remainder
        is_integer = numeric_kind(self.child_nodes, rows.schema) == "integer"
        return result.cast("int64") if is_integer else result.nullif(double_literal(math.nan))


@final
@dataclass(frozen=True)
class Logarithm(ExpressionTree):
    """The logarithm, natural or to a base, rounded to a multiple of 2⁻³⁰; missing for numbers that are not positive.

    The rounding makes engines agree, and the logarithms of powers of the base exact: ``floor(log(x, 10))`` is the
    number of digits less one. Infinity counts as the largest double.
    """

    part: ExpressionTree
    base: Value | None = None

    def __post_init__(self) -> None:
        is_number = self.base is None or self.base.kind in NUMBERS
        if not (is_number and (self.base is None or 2 <= float(self.base.value) < math.inf)):
            remedy = "leave it out for the natural logarithm"
            raise InputError("log", str(self.base), "log(x, base) with a base of at least 2", remedy)
        super().__post_init__()

    @property
    def child_nodes(self) -> tuple[ExpressionTree, ...]:
        """The number, and the base if it is given."""
        return (self.part,) if self.base is None else (self.part, self.base)

    @property
    def _base_logarithm(self) -> float:
        return 1.0 if self.base is None else math.log(float(self.base.value))

    def __str__(self) -> str:
        return f"log({', '.join(map(str, self.child_nodes))})"

    def infer_column_facts(self, schema: Schema) -> ValueFacts:
        """Return the range from the ends of the operand's range, with a margin for rounding."""
        numeric_kind((self.part,), schema)
        facts, margin = self.part.infer_column_facts(schema), 1 / LOGARITHM_SCALE
        lower, upper = -math.inf, math.inf
        if facts.lower > 0:
            lower = math.log(min(facts.lower, LARGEST_DOUBLE)) / self._base_logarithm - margin
        if 0 < facts.upper < math.inf:
            upper = math.log(facts.upper) / self._base_logarithm + margin
        return ValueFacts("number", lower, upper)

    def to_engine_column(self, rows: SourceRows) -> ir.Column:
        """Take the engine's logarithm of positive numbers, and round it; other numbers are missing before."""
        ibis, zero = load_library("ibis"), double_literal(0.0)
        x = self.part.to_engine_column(rows).cast("float64")
        positive = ibis.least(ibis.greatest(x, zero), double_literal(LARGEST_DOUBLE)).nullif(zero)
        scaled = positive.ln() / double_literal(self._base_logarithm) * double_literal(LOGARITHM_SCALE)
        units = (scaled + double_literal(0.5)).floor().cast("int64")
        return units.cast("float64") / double_literal(LOGARITHM_SCALE)


@final
@dataclass(frozen=True)
class Cell(ExpressionTree):
    """⌊(clip(x, lower, upper) − lower) / width⌋, at most ``cells`` − 1, in doubles: the same bits on every engine."""

    part: ExpressionTree
    lower: Value
    upper: Value
    cells: Value
    operand_mentions = 2

    def __post_init__(self) -> None:
        are_numbers = self.lower.kind in NUMBERS and self.upper.kind in NUMBERS and self.cells.kind == "integer"
        if not are_numbers or not (1 <= self.cell_count <= MAX_CELL_PARTS and self._has_valid_width):
            shown = f"{self.lower}, {self.upper}, {self.cells}"
            raise InputError("cell", shown, f"cell(x, lowest, highest, parts) with at most {MAX_CELL_PARTS:,} parts")
        super().__post_init__()

    @property
    def cell_count(self) -> int:
        """The number of parts."""
        return int(self.cells.value)

    @property
    def _has_valid_width(self) -> bool:
        """Return whether the width, and the range divided by it, are accurate enough as doubles."""
        length = float(self.upper.value) - float(self.lower.value)
        return 0 < length < math.inf and self.cell_width > 0 and length / self.cell_width < 2 * MAX_CELL_PARTS

    @property
    def cell_width(self) -> float:
        """The width of one part."""
        return (float(self.upper.value) - float(self.lower.value)) / self.cell_count

    @property
    def child_nodes(self) -> tuple[ExpressionTree, ...]:
        """The value, the ends of the range, and the number of parts."""
        return self.part, self.lower, self.upper, self.cells

    def __str__(self) -> str:
        return f"cell({self.part}, {self.lower}, {self.upper}, {self.cells})"

    def infer_column_facts(self, schema: Schema) -> ValueFacts:
        """Return the facts of the integers 0 to ``cells`` − 1."""
        numeric_kind((self.part,), schema)
        return ValueFacts("integer", 0.0, float(self.cell_count - 1), tuple(range(self.cell_count)))

    def to_engine_column(self, rows: SourceRows) -> ir.Column:
        """Compute the number of the part; missing values stay missing."""
        ibis, x = load_library("ibis"), self.part.to_engine_column(rows).cast("float64")
        low, high = double_literal(float(self.lower.value)), double_literal(float(self.upper.value))
        clipped = ibis.least(ibis.greatest(x, low), high)
        cell = ((clipped - low) / double_literal(self.cell_width)).floor().cast("int64")
        return ibis.ifelse(x.notnull(), ibis.least(cell, self.cell_count - 1), ibis.null("int64"))


def double_operand(part: ExpressionTree, rows: SourceRows) -> ir.Column:
    """Return a number's column in doubles; integers that a double would round are missing."""
    column = part.to_engine_column(rows)
    return integer_to_double(column) if column.type().is_integer() else column.cast("float64")
