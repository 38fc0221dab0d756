"""Choices among the cells of a group, by their exact counts: a quantile's cell, and how far around it to reach.

With below_k the rows in the cells before cell k and n all of them, the excess at the left edge of cell k is E_k =
below_k − q n, in millionths of a row a whole number, which one row moves by −q or 1 − q. The cell of the quantile has
E_k < 0 ≤ E_{k+1}. What lies beyond either end of the range is clamped to it: there the excess is without bound.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tightrope.mechanisms.choices.exponential import Distances, ExponentialChoice

PARTS = 1_000_000
"""Excesses are counted in so many parts of a row: many more than the steps of any noise."""
MOST_EXCESS = 1 << 60
"""Beyond, excesses are Python's numbers."""
MISSED = 0.05
"""How often an interval whose width is chosen may leave the quantile out."""

Counts = NDArray[Any]


@dataclass(frozen=True, slots=True)
class QuantileChoice:
    """The cell below which ``below`` millionths of the rows lie; or a number of cells ``around`` it.

    ``around`` is the name of the vector that chose the cell.
    """

    below: int
    around: str | None = None

    @property
    def sensitivity(self) -> int:
        """By how much one row moves a distance, at most."""
        return max(self.below, PARTS - self.below)

    def chosen(self, counts: Counts, law: ExponentialChoice, named: int) -> int:
        """The place of a cell, or a number of cells on either side of the one ``named``."""
        excess = self.excess(counts)
        if self.around is None:
            return law.choose(cell_distances(excess))
        return half_widths(len(counts))[law.choose(width_distances(excess, named, self.target(law, len(counts))))]

    def excess(self, counts: Counts) -> Distances:
        """E_0, …, E_c of c cells."""
        exact = PARTS * int(counts.sum(dtype=object)) < MOST_EXCESS
        before = np.concatenate([[0], np.cumsum(counts.astype(np.int64 if exact else np.object_))])
        found: Distances = PARTS * before - self.below * before[-1]
        return found

    def target(self, law: ExponentialChoice, cells: int) -> int:
        """The excess that is sought on either side: beyond it, few intervals leave the quantile out."""
        return law.reach(len(half_widths(cells)), MISSED)


def millionths(q: float) -> int | None:
    """The number as it is written; None where it is no whole number of millionths.

    >>> millionths(0.9), millionths(1 / 3)
    (900000, None)
    """
    exact = Fraction(repr(q)) * PARTS
    return int(exact) if exact.denominator == 1 else None


def cell_distances(excess: Distances) -> Distances:
    """How far the excess 0 lies outside each cell: max(0, E_k, −E_{k+1})."""
    found: Distances = np.maximum(np.maximum(excess[:-1], -excess[1:]), 0)
    return found


def half_widths(cells: int) -> list[int]:
    """Numbers of cells on either side that are chosen from, each about √2 times the last; the last holds all.

    >>> half_widths(20)
    [0, 1, 2, 3, 4, 5, 6, 8, 11, 16, 20]
    """
    found = [0]
    while found[-1] < cells:
        found.append(min(cells, max(found[-1] + 1, round(2 ** ((len(found) - 1) / 2)))))
    return found


def width_distances(excess: Distances, centre: int, target: int) -> Distances:
    """How far ``target`` lies outside (G_{i−1}, G_i], where G_i = min(−E_{k−w}, E_{k+w+1}) for the i-th width w.

    G does not fall with i, and is without bound where both ends of an interval are those of the range; as long as the
    quantile is not in the i-th interval, G_i ≤ 0. G_{−1} is below everything.
    """
    cells = len(excess) - 1
    beyond = max(int(np.max(np.abs(excess))), target) + target
    widths = np.array(half_widths(cells))
    left, right = centre - widths, centre + widths + 1
    low = np.where(left <= 0, beyond, -excess[np.maximum(left, 0)])
    high = np.where(right >= cells, beyond, excess[np.minimum(right, cells)])
    reached = np.minimum(low, high)
    previous = np.concatenate([[-beyond], reached[:-1]])
    found: Distances = np.maximum(np.maximum(previous - target, target - reached), 0)
    return found
