"""How likely noise lies beyond any place: the exact tail probabilities in floats, for many places at once."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

import numpy as np

from tightrope.mechanisms.integer.widened import Widened
from tightrope.mechanisms.tables.box_table import AnyTable, BoxTable
from tightrope.numerics.arrays import Floats
from tightrope.randomness.choice import TOTAL

NEGLIGIBLE = 1e-22
"""An endless table is listed until less than this is left; further on this much counts as left."""


@dataclass(frozen=True, slots=True, eq=False)
class Tails:
    """P(Y > y) for y = 0, 1, … of a table, stretched ``factor`` times. Sums of positive terms: relative error 1e−11."""

    factor: float
    table: Floats

    @classmethod
    def of(cls, noise: Widened) -> Self:
        """Those of the integers that run."""
        weights = _weights(noise.table)
        left = 0.0 if noise.table.tail is None else weights[-1]
        return cls(float(noise.factor), np.append(np.cumsum(weights[::-1])[::-1], left))

    def beyond(self, place: Floats) -> Floats:
        """P(X > x) at whole numbers of either sign.

        The rest of the cell of the table that x lies in, and all later cells (``Widened.survival``).
        """
        x = np.where(place < 0, -place - 1, place)
        m = self.factor
        y = np.floor(x / m)
        left = m - 1 - (x - y * m)
        low, high = left * (left + 1) / 2, (m * (m - 1) - (m - 1 - left) * (m - left)) / 2
        before, here, after = self._at(y - 1), self._at(y), self._at(y + 1)
        cell = (before - here) * low + (here - after) * high
        tail = (cell + (m * m - m * (m - 1) / 2) * here + m * (m - 1) / 2 * after) / (m * m)
        return np.where(place < 0, 1 - tail, tail)

    def smooth(self, place: Floats) -> Floats:
        """P(X + V > t) at any t, V uniform on (−½, ½): continuous, symmetric and unimodal as X is."""
        x = np.floor(place + 0.5)
        part = place + 0.5 - x
        return (1 - part) * self.beyond(x - 1) + part * self.beyond(x)

    def _at(self, y: Floats) -> Floats:
        """P(Y > y) for whole y ≥ −1."""
        found = self.table[np.minimum(np.maximum(y, 0), len(self.table) - 1).astype(np.int64)]
        return np.where(y < 0, 1 - self.table[0], found)


def _weights(table: AnyTable) -> Floats:
    """P(Y = 1), P(Y = 2), …, and what is left."""
    if isinstance(table, BoxTable):
        return table.listed()
    half = np.array([w / TOTAL for w in table.half])
    if table.tail is None:
        return half
    block = np.array([w / TOTAL for w in table.tail.block])
    left, parts = table.tail.escape_in / TOTAL, [half]
    while left > NEGLIGIBLE:
        parts.append(left * block)
        left *= table.tail.escape / TOTAL
    return np.concatenate([*parts, [left]])
