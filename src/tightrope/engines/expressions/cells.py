"""A range in equal parts: the number of the part that a value lies in, for counts over fine grids."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, final

from tightrope.engines.expressions.arithmetic import numeric
from tightrope.engines.expressions.facts import NUMBERS, Facts, Rows
from tightrope.engines.expressions.leaves import Value, double
from tightrope.engines.expressions.tree import Tree
from tightrope.engines.guard import load
from tightrope.engines.schema import Schema
from tightrope.errors import InputError

if TYPE_CHECKING:
    import ibis.expr.types as ir

MOST_PARTS = 10_000


@final
@dataclass(frozen=True)
class Cell(Tree):
    """⌊(clip(x, lower, upper) − lower) / width⌋, at most ``cells`` − 1, in doubles: the same bits on every engine."""

    part: Tree
    lower: Value
    upper: Value
    cells: Value
    mentions = 2

    def __post_init__(self) -> None:
        numbers = self.lower.kind in NUMBERS and self.upper.kind in NUMBERS and self.cells.kind == "integer"
        if not numbers or not (1 <= self.parts_of <= MOST_PARTS and self._divides):
            shown = f"{self.lower}, {self.upper}, {self.cells}"
            raise InputError("cell", shown, f"cell(x, lowest, highest, parts) with at most {MOST_PARTS:,} parts")
        super().__post_init__()

    @property
    def parts_of(self) -> int:
        """How many parts there are."""
        return int(self.cells.value)

    @property
    def _divides(self) -> bool:
        """Whether doubles hold the width, and the range in widths."""
        length = float(self.upper.value) - float(self.lower.value)
        return 0 < length < math.inf and self.width > 0 and length / self.width < 2 * MOST_PARTS

    @property
    def width(self) -> float:
        """Of one part."""
        return (float(self.upper.value) - float(self.lower.value)) / self.parts_of

    @property
    def parts(self) -> tuple[Tree, ...]:
        """The number, its range, and how many parts that has."""
        return self.part, self.lower, self.upper, self.cells

    def __str__(self) -> str:
        return f"cell({self.part}, {self.lower}, {self.upper}, {self.cells})"

    def facts(self, schema: Schema) -> Facts:
        """0 to cells − 1."""
        numeric((self.part,), schema)
        return Facts("integer", 0.0, float(self.parts_of - 1), tuple(range(self.parts_of)))

    def compiled(self, rows: Rows) -> ir.Column:
        """Missing where the number is."""
        ibis, x = load("ibis"), self.part.compiled(rows).cast("float64")
        low, high = double(float(self.lower.value)), double(float(self.upper.value))
        clipped = ibis.least(ibis.greatest(x, low), high)
        number = ((clipped - low) / double(self.width)).floor().cast("int64")
        return ibis.ifelse(x.notnull(), ibis.least(number, self.parts_of - 1), ibis.null("int64"))
