"""The cells in which the values of a group are counted: equal parts of a range, around round numbers."""

from __future__ import annotations

import math
from dataclasses import dataclass

from tightrope.engines.expressions.cells import Cell
from tightrope.engines.expressions.leaves import Column, literal
from tightrope.engines.expressions.terms import Term
from tightrope.errors import PlanError
from tightrope.release.questions.fixed_point import WIDEST_VALUE

BLOCKS, CELLS = 50, 80
"""Blocks of the range, and cells of a block: about the least noise in a count of what lies below an edge, and a number
of cells that divides round ranges at round numbers, where many values lie.
"""
ALL_CELLS = BLOCKS * CELLS
SLACK, ROUNDINGS = 1e-6, 16
"""Of a cell, and in units of the last place of the farther end: values at an edge may be counted on either side of it,
by rounding."""
FURTHER_DIGITS = 20
"""Of the number that stands for a cell."""
DOUBLES = 64
"""A cell holds so many at least."""


@dataclass(frozen=True, slots=True)
class Grid:
    """``ALL_CELLS`` cells over a range; the last reaches to its end."""

    low: float
    high: float

    def __post_init__(self) -> None:
        between, far = (self.low, self.high), max(abs(self.low), abs(self.high))
        if not far <= WIDEST_VALUE:
            expected = f"a range within {WIDEST_VALUE:g} of zero"
            raise PlanError("between", between, expected, "measure in larger units, so that the numbers are smaller")
        if not self.width >= ALL_CELLS * DOUBLES * math.ulp(far):
            expected = f"a range of which doubles tell {ALL_CELLS * DOUBLES:,} values apart"
            raise PlanError("between", between, expected, "move its zero nearer, or widen it: it is cut into cells")

    def cell(self, column: Term) -> Cell:
        """In which of them a value lies, clamped to the range."""
        part = Column(column) if isinstance(column, str) else column
        half = (self.high - self.low) / (2 * ALL_CELLS)
        return Cell(part, literal(self.low - half), literal(self.high - half), literal(ALL_CELLS))

    @property
    def width(self) -> float:
        """Of the range."""
        return self.high - self.low

    def edge(self, cell: float, outwards: float = 0.0) -> float:
        """The number at so many cells from the beginning of the grid, inside the range."""
        if cell >= ALL_CELLS:
            return self.high
        place = self.low + (cell + outwards - 0.5) / ALL_CELLS * self.width
        return min(max(place, self.low), self.high)

    def held(self, first: int, last: int) -> tuple[float, float]:
        """What lies in the cells from the first to the last, which may lie beyond the range."""
        rounded = ROUNDINGS * math.ulp(max(abs(self.low), abs(self.high))) * ALL_CELLS / self.width
        return self.edge(first, outwards=-SLACK - rounded), self.edge(last + 1, outwards=SLACK + rounded)

    def middle(self, cell: int) -> float:
        """The number of a cell with the fewest digits; of the last, where all that is beyond the range lies, its end.

        >>> [Grid(0, end).middle(cell) for end, cell in ((30, 267), (365, 22), (40, 400), (1, 1333))]
        [2.0, 2.0, 4.0, 0.3332]
        """
        if cell == ALL_CELLS - 1:
            return self.high
        middle = self.low + cell / ALL_CELLS * self.width
        first, end = self.edge(cell), self.edge(cell + 1)
        digits = -math.floor(math.log10(self.width))
        tries = (round(middle, count) for count in range(digits, digits + FURTHER_DIGITS))
        return next((found for found in tries if first <= found < end), middle)
