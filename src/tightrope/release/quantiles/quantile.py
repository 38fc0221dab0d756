"""Quantiles of a column: where a share of its values lies below, from noisy counts of a grid on two levels."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Self, Unpack, final

import numpy as np

from tightrope.design.allocation.units import Spend, eighths
from tightrope.engines.expressions.cells import Cell
from tightrope.engines.expressions.leaves import Column, literal
from tightrope.engines.expressions.terms import Term
from tightrope.engines.request import Measure
from tightrope.engines.schema import Schema
from tightrope.errors import PlanError
from tightrope.numerics.checks import finite
from tightrope.release.quantiles.cumulative import Edges, heaped
from tightrope.release.questions.asked import Asked, Asking, Given, asking, spelled_out
from tightrope.release.questions.node import Integers, Noises, Record
from tightrope.release.questions.of_column import OfColumn, column_term, declared
from tightrope.release.questions.vector import Noise, Vector

BLOCKS, CELLS = 50, 80
"""Blocks of the range, and cells of a block: about the least noise in a count of what lies below an edge, and a number
of cells that divides round ranges at round numbers, where many values lie.
"""
BLOCK, CELL = "rows by block", "rows by cell"
MEDIAN = 0.5
SLACK = 1e-6
"""Of a cell: values at an edge may be counted on either side of it, by rounding."""
NORMAL = 0.7978845608028654
"""E|Z| of the normal law: a sum of so many noises is nearly one."""


@final
@dataclass(frozen=True, slots=True)
class Quantile(OfColumn):
    """The least value that at least a share ``q`` of the clamped values of each group do not exceed."""

    q: float

    kind = "quantile"
    meaning = "The value that a share of all values does not exceed"
    additive = False
    uniform = False
    notes = (
        f"values are counted in {BLOCKS * CELLS:,} equal parts of the range, and in blocks of them: both counts are "
        "paid for once, however many quantiles are read from them",
        "a value between two edges of the grid is a guess: the round number of its cell where that has far more rows "
        "than those around it; the interval reaches to the edges",
        "where the noisy count is below 1 the quantile is withheld and the interval is the whole range",
        "of the bounds on a person only that on all rows applies to groups of quantiles",
    )
    entries = ("column", "between", "q")

    def meaning_for(self, means: str) -> str:
        """Which share lies below: half of all, or 90 %."""
        del means
        return f"The value that {'half' if self.q == MEDIAN else f'{100 * self.q:g} %'} of all values do not exceed"

    @property
    def what(self) -> str:
        """Which quantile."""
        return "median" if self.q == MEDIAN else f"{self.q:g} quantile"

    @classmethod
    def at(cls, column: object, q: object, between: object, asked: Asking) -> Self:
        """The question, checked; raises ``PlanError`` naming what is wrong."""
        term, share = column_term("column", column), finite("q", q, "0.5 is the median")
        if not 0 < share < 1:
            raise PlanError("q", q, "above 0 and below 1", "0.5 is the median")
        named = ("median",) if share == MEDIAN else ("quantile", f"{share:g}")
        found = Asked.of(*named, str(term), **asked)
        if found.groups_per_person is not None or (found.by and found.rows_per_group is not None):
            remedy = "rows_per_person bounds all groups of quantiles together"
            raise PlanError("rows_per_group", found.rows_per_group, "left out, as groups_per_person", remedy)
        return cls(found, term, declared(term, between), share)

    @classmethod
    def from_entry(cls, entry: Mapping[str, Any]) -> Self:
        """The column, its range and the share: the median where that is left out."""
        return cls.at(entry.get("column"), entry.get("q", MEDIAN), entry.get("between"), asking(entry))

    def settled(self, schema: Schema, where: Term | None = None) -> Self:
        """Raises ``PlanError`` where its groups would have to be discovered."""
        found = OfColumn.settled(self, schema, where)
        if found.by and found.keys is None:
            remedy = "list the groups with keys=[...]: those of quantiles cannot be discovered"
            raise PlanError("keys", None, "given", remedy)
        return found

    @property
    def cell(self) -> Cell:
        """The grid: cells of equal width around round numbers, where many values lie; the last reaches to the end."""
        (low, high), column = self.between, self.column
        part = Column(column) if isinstance(column, str) else column
        half = (high - low) / (2 * BLOCKS * CELLS)
        return Cell(part, literal(low - half), literal(high - half), literal(BLOCKS * CELLS))

    @property
    def levels(self) -> tuple[str, str]:
        """What its vectors are called: questions of one weight share them."""
        size = eighths(self.asked.size)
        return f"{BLOCK} {size}", f"{CELL} {size}"

    def vectors(self) -> tuple[Vector, ...]:
        """Counts by block and by cell. A row is in one of each."""
        outer, inner = self.levels
        return _counts(outer, BLOCK, self.asked.size, CELLS), _counts(inner, CELL, self.asked.size, 1)

    def record(self, integers: Integers, noises: Noises) -> Record:
        """Where the estimate of the excess crosses zero; ``usable`` is the noisy number of values."""
        low, high = self.between
        blocks, cells = (np.asarray(integers[name], dtype=np.float64) for name in self.levels)
        usable = int(blocks.sum())
        if usable < 1:
            return {"value": None, "lower": low, "upper": high, "usable": usable}
        edges = self._edges(noises)
        excess = edges.excess(blocks, cells.reshape(BLOCKS, CELLS))
        first, last = edges.held(excess)
        lower, upper = self._edge(first, outwards=-SLACK), self._edge(last + 1, outwards=SLACK)
        place = edges.place(excess)
        alone = heaped(cells, int(place), noises[self.levels[1]].mean_absolute)
        value = self._middle(int(place)) if alone else self._edge(place)
        return {
            "value": min(max(value, lower), upper),
            "lower": lower,
            "upper": upper,
            "usable": usable,
        }

    def errors(self, noises: Noises, people: int) -> tuple[float, float]:
        """For values that are spread evenly over the range; where they lie closer together, errors are smaller."""
        edges, (low, high) = self._edges(noises), self.between
        block, cell = int(self.q * BLOCKS), CELLS // 2
        expected = NORMAL * float(edges.spread[block, cell]) / people + 0.25 / (BLOCKS * CELLS)
        half = float(edges.reach[block, cell]) / people + 1 / (BLOCKS * CELLS)
        return min(expected, 1.0) * (high - low), min(half, 1.0) * (high - low)

    def withheld(self, noises: Noises, people: int) -> float:
        """P(the noisy count is below 1), at most."""
        return self._edges(noises).at_most(people)

    def _edges(self, noises: Noises) -> Edges:
        outer, inner = (noises[name] for name in self.levels)
        return _shared(outer, inner, self.q)

    def _edge(self, cell: float, outwards: float = 0.0) -> float:
        """The number at so many cells from the beginning of the grid, inside the range."""
        (low, high), grid = self.between, self.cell
        if cell >= grid.parts_of:
            return high
        return min(max(float(grid.lower.value) + (cell + outwards) * grid.width, low), high)

    def _middle(self, cell: int) -> float:
        """The round number of a cell; of the last, where all that is beyond the range lies, its end."""
        (low, high), cells = self.between, BLOCKS * CELLS
        return high if cell == cells - 1 else low + cell / cells * (high - low)


def _counts(name: str, statistic: str, size: float, block: int) -> Vector:
    """Rows of each block of so many cells: a row is in one of them."""
    return Vector(Measure(name, None, None), Spend(statistic, eighths(size), True), 1, exclusive=name, block=block)


@lru_cache(maxsize=64)
def _shared(outer: Noise, inner: Noise, q: float) -> Edges:
    """Computed once for all groups."""
    return Edges.of(outer.tails, inner.tails, q, BLOCKS, CELLS)


@spelled_out
def quantile(
    column: Given, q: float, *, between: tuple[float, float] | None = None, **asked: Unpack[Asking]
) -> Quantile:
    """The value that a share ``q`` of a column's values does not exceed, each value clamped to ``between``.

    Values are counted on a grid of ``between``; all quantiles of one column, range and groups are read from the same
    noisy counts: they cost what one costs and never cross. Groups are listed with ``keys``, or follow from expressions.
    The other keywords are those of ``count``. Raises ``PlanError`` naming what is wrong.

    >>> quantile("income", 0.9, between=(0, 200_000)).name
    'quantile_0.9_income'
    """
    return Quantile.at(column, q, between, asked)


@spelled_out
def median(column: Given, *, between: tuple[float, float] | None = None, **asked: Unpack[Asking]) -> Quantile:
    """The median of a column: ``quantile`` with q = 0.5.

    >>> str(median("income", between=(0, 200_000)))
    'median of income between 0 and 200000'
    """
    return Quantile.at(column, MEDIAN, between, asked)


def quantiles(
    column: Given, qs: Sequence[float], *, between: tuple[float, float] | None = None, **asked: Unpack[Asking]
) -> list[Quantile]:
    """One question for each of several quantiles, at the cost of one: ``session.plan([*tr.quantiles(...), ...])``.

    >>> [str(one) for one in quantiles("age", [0.25, 0.75], between=(0, 100))]
    ['0.25 quantile of age between 0 and 100', '0.75 quantile of age between 0 and 100']
    """
    if asked.get("name") is not None:
        raise PlanError("name", asked.get("name"), "left out", "each quantile has a name of its own")
    return [Quantile.at(column, q, between, asked) for q in qs]
