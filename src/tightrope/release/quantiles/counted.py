"""Several quantiles from noisy counts of the same cells and blocks: they cost what one costs, and never cross."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import ClassVar

import numpy as np

from tightrope.design.allocation.units import Spend, eighths
from tightrope.engines.request import Measure
from tightrope.release.quantiles.cumulative import Edges, heaped
from tightrope.release.quantiles.grid import ALL_CELLS, BLOCKS, CELLS, Grid
from tightrope.release.questions.node import Integers, Noises, Record
from tightrope.release.questions.vector import Noise, Vector

BLOCK, CELL = "rows by block", "rows by cell"
NORMAL = 0.7978845608028654
"""E|Z| of the normal law: a sum of so many noises is nearly one."""


@dataclass(frozen=True, slots=True)
class Counted:
    """Where the estimate of how many rows lie below crosses what the quantile wants."""

    grid: Grid
    q: float
    size: float

    notes: ClassVar[tuple[str, ...]] = (
        f"values are counted in {ALL_CELLS:,} equal parts of the range, and in blocks of them: both counts are "
        "paid for once, however many quantiles are read from them",
        "a value between two edges of the grid is a guess: the round number of its cell where that has far more rows "
        "than those around it; the interval reaches to the edges",
        "where the noisy count is below 1 the quantile is withheld and the interval is the whole range",
    )

    @property
    def levels(self) -> tuple[str, str]:
        """What its vectors are called: questions of one weight share them."""
        size = eighths(self.size)
        return f"{BLOCK} {size}", f"{CELL} {size}"

    def vectors(self) -> tuple[Vector, ...]:
        """Counts by block and by cell. A row is in one of each."""
        outer, inner = self.levels
        return _counts(outer, BLOCK, self.size, CELLS), _counts(inner, CELL, self.size, 1)

    def record(self, integers: Integers, noises: Noises) -> Record:
        """Where the estimate of the excess crosses zero; ``usable`` is the noisy number of values."""
        blocks, cells = (np.asarray(integers[name], dtype=np.float64) for name in self.levels)
        usable = int(blocks.sum())
        if usable < 1:
            return {"value": None, "lower": self.grid.low, "upper": self.grid.high, "usable": usable}
        edges = self._edges(noises)
        excess = edges.excess(blocks, cells.reshape(BLOCKS, CELLS))
        lower, upper = self.grid.held(*edges.held(excess))
        place = edges.place(excess)
        alone = heaped(cells, int(place), noises[self.levels[1]].mean_absolute)
        value = self.grid.middle(int(place)) if alone else self.grid.edge(place)
        return {"value": value, "lower": min(lower, value), "upper": max(upper, value), "usable": usable}

    def errors(self, noises: Noises, people: int) -> tuple[float, float]:
        """For values that are spread evenly over the range; where they lie closer together, errors are smaller."""
        edges = self._edges(noises)
        block, cell = int(self.q * BLOCKS), CELLS // 2
        expected = NORMAL * float(edges.spread[block, cell]) / people + 0.25 / ALL_CELLS
        half = float(edges.reach[block, cell]) / people + 1 / ALL_CELLS
        return min(expected, 1.0) * self.grid.width, min(half, 1.0) * self.grid.width

    def withheld(self, noises: Noises, people: int) -> float:
        """P(the noisy count is below 1), at most."""
        return self._edges(noises).at_most(people)

    def _edges(self, noises: Noises) -> Edges:
        outer, inner = (noises[name] for name in self.levels)
        return _shared(outer, inner, self.q)


def _counts(name: str, statistic: str, size: float, block: int) -> Vector:
    """Rows of each block of so many cells: a row is in one of them."""
    return Vector(Measure(name, None, None), Spend(statistic, eighths(size), True), 1, exclusive=name, block=block)


@lru_cache(maxsize=64)
def _shared(outer: Noise, inner: Noise, q: float) -> Edges:
    """Computed once for all groups."""
    return Edges.of(outer.tails, inner.tails, q, BLOCKS, CELLS)
