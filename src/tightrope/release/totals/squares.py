"""Weighted least squares between tables of noisy numbers that count the same rows by different axes.

Table q has axes S_q and independent noise of variance v_q in every cell. Its part along a set U ⊆ S_q is what is left
of its margin over U when all means along axes of U are taken off. Parts along different U are orthogonal, and every
table with U ⊆ S_q says the same of the part along U, with a variance in proportion to v_q · Π_{i ∈ S_q − U} d_i. So
least squares weighs part by part, by one over that, and puts the parts together again: exactly, in fractions.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import reduce
from itertools import chain, combinations
from operator import add, mul
from typing import Any

import numpy as np
from numpy.typing import NDArray

NO_WEIGHT = Fraction(0)
Axes = frozenset[int]
Table = NDArray[Any]
"""Fractions in one dimension an axis, of length 1 where a table does not have it."""


@dataclass(frozen=True, slots=True)
class Squares:
    """Tables over axes of these ``sizes``: which axes each has, and the variance of its noise."""

    sizes: tuple[int, ...]
    own: tuple[Axes, ...]
    variances: tuple[Fraction, ...]

    def fitted(self, tables: Sequence[Table]) -> list[Table]:
        """The tables that agree with each other and are nearest to these."""
        parts = {along: self._agreed(tables, along) for along in _each(self.own)}
        return [_sum(parts[along] / self._cells(own - along) for along in _within(own)) for own in self.own]

    def _agreed(self, tables: Sequence[Table], along: Axes) -> Table:
        weights = self._weights(along)
        return _sum(weight * self._part(tables[place], place, along) for place, weight in weights.items())

    def _part(self, table: Table, place: int, along: Axes) -> Table:
        for axis in self.own[place]:
            total = table.sum(axis=axis, keepdims=True)
            table = table - total / self.sizes[axis] if axis in along else total
        return table

    def _weights(self, along: Axes) -> dict[int, Fraction]:
        """How much each table that has these axes says of the part along them."""
        precise = {
            place: 1 / (variance * self._cells(own - along))
            for place, (own, variance) in enumerate(zip(self.own, self.variances, strict=True))
            if along <= own
        }
        return {place: weight / sum(precise.values()) for place, weight in precise.items()}

    def influences(self, place: int) -> Iterator[tuple[int, Fraction, int]]:
        """With which weights noise enters a fitted number of table ``place``: (table, weight, of how many cells).

        The same for every cell: what counts is on which of the shared axes another cell agrees with it.
        """
        weights = {along: self._weights(along) for along in _within(self.own[place])}
        for other in range(len(self.own)):
            shared, more = self.own[place] & self.own[other], self._cells(self.own[other] - self.own[place])
            for same in _within(shared):
                parts = (self._kept(place, along, same) * weights[along][other] for along in _within(shared))
                weight = sum(parts, start=NO_WEIGHT)
                cells = more * math.prod(self.sizes[axis] - 1 for axis in shared - same)
                if weight and cells:
                    yield other, weight, cells

    def _kept(self, place: int, along: Axes, same: Axes) -> Fraction:
        """What a cell's part along these axes says of another that agrees with it on the same ones."""
        kept = _product(Fraction((axis in same) * self.sizes[axis] - 1, self.sizes[axis]) for axis in along)
        return kept / self._cells(self.own[place] - along)

    def _cells(self, axes: Axes) -> int:
        return math.prod(self.sizes[axis] for axis in axes)


def blank(sizes: Sequence[int], own: Axes) -> Table:
    """A table of zeros with these axes."""
    return np.full([size if axis in own else 1 for axis, size in enumerate(sizes)], NO_WEIGHT, dtype=object)


def _sum(tables: Iterable[Table]) -> Table:
    return reduce(add, tables)


def _product(factors: Iterable[Fraction]) -> Fraction:
    return reduce(mul, factors, Fraction(1))


def _within(axes: Axes) -> Iterator[Axes]:
    """Every subset."""
    return map(frozenset, chain.from_iterable(combinations(sorted(axes), size) for size in range(len(axes) + 1)))


def _each(own: Iterable[Axes]) -> set[Axes]:
    return {along for axes in own for along in _within(axes)}
