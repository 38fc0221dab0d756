"""The ``Cost`` interface, explicit cost matrices, and the conversion of distributions to integer masses.

A cost computes c_ij for pairs of points; ``optimal`` selects the solver. ``points``, ``line``, ``grid`` and ``graph``
represent a matrix of costs in linear memory. With integer masses, transport is exact: sums, flows and comparisons have
no rounding.
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
from tightrope.numerics.distributions import check_probabilities, distribution_in_doubles, normalize_distribution

PAIRS_PER_BLOCK = 1 << 17
"""Number of pairs computed at a time: one megabyte, which fits the cache."""

MAX_LOG_COST = 700.0
"""Largest logarithm of a cost: floats overflow at exp(709.8), and sums of two costs must not."""

BoolArray = np.ndarray[tuple[int], np.dtype[np.bool_]]


class Cost(ABC):
    """Costs c_ij ≥ 0 for a source i < n and a target j < m."""

    __slots__ = ()

    @property
    @abstractmethod
    def matrix_shape(self) -> tuple[int, int]:
        """The numbers of sources and targets, (n, m)."""

    @abstractmethod
    def cost_upper_bound(self) -> float:
        """Return an upper bound on all c_ij, computed quickly."""

    def locations_differ(self, rows: Integers, columns: Integers) -> BoolArray:
        """Return for each pair whether source and target are different locations.

        Override it if a positive distance can have cost 0.
        """
        return np.asarray(self.pair_costs(rows, columns) > 0)

    def smallest_exact_cost(self) -> float:
        """Return the threshold below which a positive cost may have lost precision (subnormal numbers)."""
        return float(np.finfo(float).tiny)

    @abstractmethod
    def pair_costs(self, rows: Integers, columns: Integers) -> Floats:
        """Return c_ij for paired indices."""

    @abstractmethod
    def row_costs(self, rows: Integers) -> Floats:
        """Return c_ij for these rows and every column, [len(rows), m]."""

    @abstractmethod
    def select_points(self, rows: Integers, columns: Integers) -> Cost:
        """Return the cost between a subset of the sources and a subset of the targets."""

    @abstractmethod
    def raise_to_power(self, exponent: float) -> Cost:
        """Return the cost c_ij^exponent."""

    def to_matrix(self) -> Floats:
        """Return the matrix, [n, m]."""
        return self.row_costs(np.arange(self.matrix_shape[0]))

    def row_blocks(self) -> Iterator[tuple[Integers, Floats]]:
        """Yield blocks of rows, so that the matrix is never built: their indices and c_ij."""
        rows, columns = self.matrix_shape
        step = max(1, PAIRS_PER_BLOCK // columns)
        for start in range(0, rows, step):
            indices = np.arange(start, min(start + step, rows))
            yield indices, self.row_costs(indices)

    def column_potentials(self, u: Floats, cost_reduction: float = 0.0) -> Floats:
        """Return min_i c_ij − u_i for every j: the largest feasible v for u (the c-transform).

        ``cost_reduction``: the fraction by which every cost is reduced.
        """
        potentials = np.full(self.matrix_shape[1], np.inf)
        for rows, costs in self.row_blocks():
            np.minimum(potentials, (_reduce_costs(costs, cost_reduction) - u[rows, None]).min(axis=0), out=potentials)
        return potentials

    def row_potentials(self, v: Floats, cost_reduction: float = 0.0) -> Floats:
        """Return min_j c_ij − v_j for every i: the largest feasible u for v."""
        return np.concatenate(
            [(_reduce_costs(costs, cost_reduction) - v).min(axis=1) for _, costs in self.row_blocks()]
        )


@dataclass(frozen=True, slots=True, eq=False)
class Matrix(Cost):
    """Explicit costs, [n, m]."""

    values: Floats

    @property
    def matrix_shape(self) -> tuple[int, int]:
        rows, columns = self.values.shape
        return rows, columns

    def cost_upper_bound(self) -> float:
        return float(self.values.max())

    def pair_costs(self, rows: Integers, columns: Integers) -> Floats:
        selected_costs: Floats = self.values[rows, columns]
        return selected_costs

    def row_costs(self, rows: Integers) -> Floats:
        selected_costs: Floats = self.values[rows]
        return selected_costs

    def select_points(self, rows: Integers, columns: Integers) -> Self:
        return type(self)(self.values[np.ix_(rows, columns)])

    def raise_to_power(self, exponent: float) -> Self:
        return self if exponent == 1 else type(self)(self.values**exponent)

    def to_matrix(self) -> Floats:
        return self.values


def _reduce_costs(costs: Floats, cost_reduction: float) -> Floats:
    return costs * (1 - cost_reduction) if cost_reduction else costs


CostLike = Cost | ArrayLike
"""A cost, or a table of costs [n, m]."""


def raise_cost_to_power(cost: Cost, exponent: float) -> Cost:
    """Return the cost c_ij^exponent after checking its range.

    Raises ``InputError`` if the largest cost to this power would overflow or underflow; smaller ones may become 0.

    >>> raise_cost_to_power(as_cost([[2.0]]), 3).to_matrix().tolist()
    [[8.0]]
    """
    largest = cost.cost_upper_bound()
    if largest > 0 and not exponent * abs(math.log(largest)) < MAX_LOG_COST:
        remedy = "rescale the costs so that the largest is near 1, or use p=math.inf"
        raise InputError("p", exponent, f"small enough for {largest:.3g} to the power p to be a float", remedy)
    return cost.raise_to_power(exponent)


def as_cost(cost: CostLike) -> Cost:
    """Return ``cost`` itself, or a table of costs as a ``Matrix``.

    Raises ``InputError`` unless it is two-dimensional and not empty, with finite costs >= 0.

    >>> as_cost([[0, 1], [1, 0]]).matrix_shape
    (2, 2)
    """
    if isinstance(cost, Cost):
        return cost
    expected = "a two-dimensional array or one of transport.grid, points, line, graph"
    try:
        values = np.array(cost, dtype=np.float64, order="C")
    except (TypeError, ValueError):
        raise InputError("cost", cost, expected, "for example transport.grid((100, 100))") from None
    if values.ndim != 2 or values.size == 0:
        raise InputError("cost", cost, expected, "give one row per source and one column per target")
    is_invalid = ~((values >= 0) & (values < np.inf))
    if is_invalid.any():
        i, j = np.argwhere(is_invalid)[0]
        remedy = "to forbid a move, use a large finite cost" if values[i, j] == np.inf else ""
        raise InputError(f"cost[{i}, {j}]", float(values[i, j]), "a finite number >= 0", remedy)
    return Matrix(values)


def normalize_if_needed(name: str, values: ArrayLike, size: int) -> Floats:
    """Return a distribution of shape [size], divided by its sum if that differs from 1 by more than rounding.

    A sum within rounding of 1 is left alone: dividing would turn equal masses of two distributions into unequal ones,
    which can matter for large costs. Raises ``InputError`` for an invalid distribution (``check_probabilities``).
    """
    masses = check_probabilities(name, distribution_in_doubles(name, values), size)
    total = float(masses.sum())
    return masses if abs(total - 1) <= 4 * np.finfo(float).eps else masses / total


def group_weights(values: Sequence[float] | None, count: int) -> Floats:
    """Return the weights of ``count`` groups, equal by default; they are validated like a distribution."""
    return np.full(count, 1 / count) if values is None else normalize_distribution("weights", values, count)


def round_to_integer_masses(masses: Floats, bits: int) -> Integers:
    """Return integers near ``masses`` · 2^bits that sum to 2^bits; positive masses stay positive.

    ``bits`` is at most 61. Each integer differs by about 1, by more if many tiny masses were raised to 1. The rounding
    remainder is spread over the largest masses, where it matters least.

    >>> round_to_integer_masses(np.array([1 / 3, 1 / 3, 1 / 3]), 4).tolist()
    [6, 5, 5]
    """
    total = 1 << bits
    integers = np.rint(np.ldexp(masses, bits)).astype(np.int64)
    integers[(integers == 0) & (masses > 0)] = 1
    missing = total - int(integers.sum())
    while missing:
        # Spread `missing` evenly over the larger half of the masses; a reduction does not take a mass below 1.
        candidates = np.flatnonzero(integers > (0 if missing > 0 else 1))
        half_count = max(1, len(candidates) // 2)
        if half_count < len(candidates):
            candidates = candidates[np.argpartition(-integers[candidates], half_count - 1)[:half_count]]
        change_per_mass = max(1, abs(missing) // len(candidates))
        selected = np.sort(candidates)[: abs(missing) // change_per_mass]
        changes = (
            np.full(len(selected), change_per_mass)
            if missing > 0
            else -np.minimum(change_per_mass, integers[selected] - 1)
        )
        integers[selected] += changes
        missing -= int(changes.sum())
    return integers
