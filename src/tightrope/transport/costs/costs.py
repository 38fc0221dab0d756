"""What it costs to move a unit of mass: one interface, and the plain matrix.

A cost knows its pairs; which method solves it is decided in ``optimal``. ``points``, ``line``, ``grid`` and ``graph``
say the same as a matrix in linear memory.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Self

import numpy as np
from numpy.typing import ArrayLike

from tightrope.errors import InputError
from tightrope.numerics.arrays import Floats, Integers
from tightrope.numerics.distributions import in_doubles, law, probabilities

PAIRS_AT_ONCE = 1 << 17
"""Pairs that are priced at a time: one megabyte, so that they stay in the cache."""

LOG_LARGEST = 700.0
"""Floats end at exp(709.8); sums of two costs must fit too."""


Marks = np.ndarray[tuple[int], np.dtype[np.bool_]]


class Cost(ABC):
    """c_ij ≥ 0 for a source i < n and a target j < m."""

    __slots__ = ()

    @property
    @abstractmethod
    def shape(self) -> tuple[int, int]:
        """(n, m)."""

    @abstractmethod
    def ceiling(self) -> float:
        """At least every c_ij, at little cost."""

    def differ(self, rows: Integers, columns: Integers) -> Marks:
        """Whether a source is elsewhere than a target, whatever floats make of the cost."""
        return np.asarray(self.pairs(rows, columns) > 0)

    def least_exact(self) -> float:
        """Smaller positive costs may have lost digits, or all of them."""
        return float(np.finfo(float).tiny)

    @abstractmethod
    def pairs(self, rows: Integers, columns: Integers) -> Floats:
        """c_ij for paired indices."""

    @abstractmethod
    def block(self, rows: Integers) -> Floats:
        """c_ij for these rows and every column, [len(rows), m]."""

    @abstractmethod
    def take(self, rows: Integers, columns: Integers) -> Cost:
        """The cost between some of the sources and some of the targets."""

    @abstractmethod
    def power(self, exponent: float) -> Cost:
        """c_ij^exponent."""

    def matrix(self) -> Floats:
        """All of it, [n, m]."""
        return self.block(np.arange(self.shape[0]))

    def blocks(self) -> Iterator[tuple[Integers, Floats]]:
        """Some rows at a time, so that the matrix is never built: their indices and c_ij."""
        rows, columns = self.shape
        step = max(1, PAIRS_AT_ONCE // columns)
        for start in range(0, rows, step):
            some = np.arange(start, min(start + step, rows))
            yield some, self.block(some)

    def column_room(self, u: Floats, lowered: float = 0.0) -> Floats:
        """min_i c_ij − u_i for every j: the largest v that goes with u (the c-transform).

        ``lowered``: for costs that are all less by this share of themselves.
        """
        found = np.full(self.shape[1], np.inf)
        for rows, costs in self.blocks():
            np.minimum(found, (_less(costs, lowered) - u[rows, None]).min(axis=0), out=found)
        return found

    def row_room(self, v: Floats, lowered: float = 0.0) -> Floats:
        """min_j c_ij − v_j for every i: the largest u that goes with v."""
        return np.concatenate([(_less(costs, lowered) - v).min(axis=1) for _, costs in self.blocks()])


@dataclass(frozen=True, slots=True, eq=False)
class Matrix(Cost):
    """Costs that are written down, [n, m]."""

    values: Floats

    @property
    def shape(self) -> tuple[int, int]:
        rows, columns = self.values.shape
        return rows, columns

    def ceiling(self) -> float:
        return float(self.values.max())

    def pairs(self, rows: Integers, columns: Integers) -> Floats:
        found: Floats = self.values[rows, columns]
        return found

    def block(self, rows: Integers) -> Floats:
        found: Floats = self.values[rows]
        return found

    def take(self, rows: Integers, columns: Integers) -> Self:
        return type(self)(self.values[np.ix_(rows, columns)])

    def power(self, exponent: float) -> Self:
        return self if exponent == 1 else type(self)(self.values**exponent)

    def matrix(self) -> Floats:
        return self.values


def _less(costs: Floats, share: float) -> Floats:
    return costs * (1 - share) if share else costs


CostLike = Cost | ArrayLike
"""A cost, or a table of costs [n, m]."""


def powered(cost: Cost, exponent: float) -> Cost:
    """c_ij^exponent; ``InputError`` where floats do not hold that: it overflows, or all of it falls below their digits.

    >>> powered(as_cost([[2.0]]), 3).matrix().tolist()
    [[8.0]]
    """
    largest = cost.ceiling()
    if largest > 0 and not exponent * abs(math.log(largest)) < LOG_LARGEST:
        remedy = "give costs in a unit near the largest, or ask for p=math.inf"
        raise InputError("p", exponent, f"small enough for {largest:.3g} to the power p to be a float", remedy)
    return cost.power(exponent)


def as_cost(cost: CostLike) -> Cost:
    """``cost`` itself, or a table of costs as a ``Matrix``.

    Raises ``InputError`` where it is not two-dimensional, is empty, or has a cost that is negative, NaN or infinite.

    >>> as_cost([[0, 1], [1, 0]]).shape
    (2, 2)
    """
    return cost if isinstance(cost, Cost) else Matrix(_table(cost))


def _table(cost: ArrayLike) -> Floats:
    expected = "a cost: a table [n, m], or transport.grid, points, line or graph"
    try:
        values = np.array(cost, dtype=np.float64, order="C")
    except (TypeError, ValueError):
        raise InputError("cost", cost, expected, "for example transport.grid((100, 100))") from None
    if values.ndim != 2 or values.size == 0:
        raise InputError("cost", cost, expected, "one row a source, one column a target; neither may be empty")
    wrong = ~((values >= 0) & (values < np.inf))
    if wrong.any():
        i, j = np.argwhere(wrong)[0]
        remedy = "forbid a move by a large finite cost"
        raise InputError(f"cost[{i}, {j}]", float(values[i, j]), "a finite number >= 0", remedy)
    return values


# Laws on finitely many points, turned into integers that sum to a power of two.
#
# Integer masses make transport exact: sums, flows and comparisons have no rounding. A law of floats is a law of
# integers to within one unit a point.


def divided_law(name: str, values: ArrayLike, size: int) -> Floats:
    """A law of shape [size], divided by its sum where that is further from 1 than roundings of a sum.

    A law that was divided once stays as it is: dividing two laws by sums that differ in the last digit makes masses
    differ that were alike, and what that is worth hangs on the cost. Raises ``InputError`` as ``numerics.laws.law``.
    """
    masses = probabilities(name, in_doubles(name, values), size)
    total = float(masses.sum())
    return masses if abs(total - 1) <= 4 * np.finfo(float).eps else masses / total


def group_shares(values: Sequence[float] | None, count: int) -> Floats:
    """Shares of ``count`` groups, equal where none are given; they are checked as a law is."""
    return np.full(count, 1 / count) if values is None else law("weights", values, count)


def whole_masses(masses: Floats, bits: int) -> Integers:
    """Integers that sum to 2^bits, within about one unit of ``masses`` · 2^bits; no positive mass becomes zero.

    ``bits`` at most 61. What rounding leaves is spread over the largest masses, so that it changes them least.

    >>> whole_masses(np.array([1 / 3, 1 / 3, 1 / 3]), 4).tolist()
    [6, 5, 5]
    """
    total = 1 << bits
    found = np.rint(np.ldexp(masses, bits)).astype(np.int64)
    found[(found == 0) & (masses > 0)] = 1
    missing = total - int(found.sum())
    while missing:
        # Give out at most one part of `missing` to each of the larger half; returns what was given.
        # What is taken away (`missing` < 0) comes from masses above one unit, and leaves them one: none vanishes.
        able = np.flatnonzero(found > (0 if missing > 0 else 1))
        half = max(1, len(able) // 2)
        if half < len(able):
            able = able[np.argpartition(-found[able], half - 1)[:half]]
        part = max(1, abs(missing) // len(able))
        chosen = np.sort(able)[: abs(missing) // part]
        given = np.full(len(chosen), part) if missing > 0 else -np.minimum(part, found[chosen] - 1)
        found[chosen] += given
        missing -= int(given.sum())
    return found
