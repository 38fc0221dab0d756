"""The marginals that a release shall have, and the integers that may be counted for them (theory §4.4).

A table has columns with n_1, …, n_d known values. A *marginal* on a set A of columns is its table of counts with
n_A = Π_{i∈A} n_i cells. A row is in one cell of each marginal. Linear queries split by *components* B (the analysis of
variance): the part of a marginal that depends on exactly the columns of B, of dimension Π_{i∈B} (n_i − 1).

A *measurement* counts integers for a set A of columns. Along some of its columns, D ⊆ A, it counts the *difference* of
each pair of values: (rows with the one) − (rows with the other). Along the others it counts the rows with each value.
A row changes Π_{i∈D} (n_i − 1) of these integers, each by one. Differences say nothing about components without their
column; for two values, the difference is the parity.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from itertools import combinations
from typing import Any, Literal, Self

import numpy as np
from numpy.typing import NDArray

from tightrope.errors import InputError
from tightrope.numerics.checks import check_integer

Columns = tuple[int, ...]
"""Columns by position, ascending."""
Weighting = Literal["cells", "tables"]

MAX_COMPONENTS = 200_000
"""Largest number of components of a workload."""
MAX_MARGINAL_CELLS = 50_000_000
"""Largest number of cells of all marginals together."""


@dataclass(frozen=True)  # not slotted: cached properties
class MarginalWorkload:
    """The marginals requested of columns with ``sizes`` values, and the weight of the variance of each one's cells.

    Raises ``InputError`` unless every size is an integer ≥ 2, the marginals are different sets of known columns, and
    the weights are positive.
    """

    sizes: tuple[int, ...]
    marginals: tuple[Columns, ...]
    weights: tuple[Fraction, ...]

    def __post_init__(self) -> None:
        for size in self.sizes:
            check_integer("sizes", size, at_least=2, remedy="a column with one value says nothing: leave it out")
        self._check_marginals()
        if not len(self.weights) == len(self.marginals) or not all(weight > 0 for weight in self.weights):
            raise InputError("weights", self.weights, "one positive number for each marginal")
        if not self.cell_count <= MAX_MARGINAL_CELLS:
            raise InputError(
                "marginals", self.cell_count, f"at most {MAX_MARGINAL_CELLS} cells together", "use fewer columns"
            )
        if not sum(1 << len(columns) for columns in self.marginals) <= 8 * MAX_COMPONENTS:
            raise InputError("marginals", len(self.marginals), "fewer tables of many columns", "use lower orders")

    def _check_marginals(self) -> None:
        if not self.marginals:
            raise InputError("marginals", self.marginals, "at least one set of columns")
        for columns in self.marginals:
            known = all(isinstance(i, int) and 0 <= i < len(self.sizes) for i in columns)
            if not (known and columns == tuple(sorted(set(columns)))):
                raise InputError("marginals", columns, f"different columns below {len(self.sizes)}, ascending")
        if len(set(self.marginals)) < len(self.marginals):
            repeated = next(columns for columns in self.marginals if self.marginals.count(columns) > 1)
            raise InputError("marginals", repeated, "listed once", "give it a larger weight instead")

    @classmethod
    def from_marginals(
        cls,
        sizes: Sequence[int],
        marginals: Iterable[Sequence[int]],
        *,
        weights: Weighting | Sequence[float] = "cells",
    ) -> Self:
        """Return the workload of these marginals.

        ``weights``: "cells" gives every cell the same weight, "tables" every marginal, however many cells it has;
        numbers are the weights of each marginal's variance per cell.

        >>> MarginalWorkload.from_marginals([2, 3], [[0], [1, 0]], weights="tables").weights
        (Fraction(1, 1), Fraction(1, 1))
        """
        chosen, known = tuple(tuple(sorted(columns)) for columns in marginals), tuple(sizes)
        if weights == "tables":
            per_table = [Fraction(1)] * len(chosen)
        elif weights == "cells":
            size_of = dict(enumerate(known))  # unknown columns are refused below
            per_table = [Fraction(math.prod(size_of.get(i, 1) for i in columns)) for columns in chosen]
        else:
            if not all(isinstance(weight, int | float | Fraction) and math.isfinite(weight) for weight in weights):
                raise InputError("weights", weights, "'cells', 'tables' or a number for each marginal")
            per_table = [Fraction(weight) for weight in weights]
        return cls(known, chosen, tuple(per_table))

    @classmethod
    def from_orders(cls, sizes: Sequence[int], orders: Iterable[int], *, weights: Weighting = "cells") -> Self:
        """Return the workload of all marginals with these numbers of columns.

        >>> MarginalWorkload.from_orders([2, 3, 5], [1, 2]).cell_count
        41
        """
        wanted = sorted({check_integer("orders", order, at_least=0) for order in orders})
        if not all(order <= len(sizes) for order in wanted):
            raise InputError("orders", wanted, f"at most the number of columns, {len(sizes)}")
        if not sum(math.comb(len(sizes), order) for order in wanted) <= MAX_COMPONENTS:
            raise InputError("orders", wanted, f"at most {MAX_COMPONENTS} tables", "use lower orders")
        sets = (columns for order in wanted for columns in combinations(range(len(sizes)), order))
        return cls.from_marginals(sizes, sets, weights=weights)

    def cells_of(self, columns: Columns) -> int:
        """Return the number of cells of the marginal on these columns."""
        return math.prod(self.sizes[i] for i in columns)

    def dimension_of(self, component: Columns) -> int:
        """Return the dimension of this component."""
        return math.prod(self.sizes[i] - 1 for i in component)

    def shape_of(self, columns: Columns) -> tuple[int, ...]:
        """Return the shape of the marginal on these columns."""
        return tuple(self.sizes[i] for i in columns)

    @property
    def cell_count(self) -> int:
        """Number of cells of all marginals."""
        return sum(self.cells_of(columns) for columns in self.marginals)

    @cached_property
    def components(self) -> tuple[Columns, ...]:
        """All components of the marginals: every subset of a marginal's columns; smaller ones first."""
        found = {subset for columns in self.marginals for subset in subsets(columns)}
        return tuple(sorted(found, key=lambda columns: (len(columns), columns)))

    @cached_property
    def component_positions(self) -> dict[Columns, int]:
        """The position of each component in ``components``."""
        return {component: position for position, component in enumerate(self.components)}

    @cached_property
    def component_costs(self) -> tuple[Fraction, ...]:
        """b_B = dim_B² Σ_{A ⊇ B} w_A / n_A²: the weighted variance is Σ_B b_B / ρ_B if component B has information ρ_B.

        w_A is the weight of the variance per cell of marginal A. ρ_B is the share of the budget μ² that B gets.
        """
        sums = [Fraction(0)] * len(self.components)
        for columns, weight in zip(self.marginals, self.weights, strict=True):
            per_component = weight / self.cells_of(columns) ** 2
            for subset in subsets(columns):
                sums[self.component_positions[subset]] += per_component
        return tuple(
            self.dimension_of(component) ** 2 * total for component, total in zip(self.components, sums, strict=True)
        )


@dataclass(frozen=True)  # not slotted: cached properties
class Measurement:
    """The integers counted for a set of columns; ``differences``: those along which pairs of values are compared."""

    workload: MarginalWorkload
    columns: Columns
    differences: Columns

    @classmethod
    def with_parities(cls, workload: MarginalWorkload, columns: Columns) -> Self:
        """Return the measurement with differences along columns with two values alone: a row changes one integer."""
        return cls(workload, columns, tuple(i for i in columns if workload.sizes[i] == 2))

    def with_more_differences(self, most_changes: int) -> list[Self]:
        """Return the measurements of these columns with more differences, with which a row changes few integers."""
        others = tuple(i for i in self.columns if i not in self.differences)
        found = (
            replace(self, differences=tuple(sorted((*self.differences, *added)))) for added in subsets(others) if added
        )
        return [measurement for measurement in found if measurement.counts_per_row <= most_changes]

    @cached_property
    def shape(self) -> tuple[int, ...]:
        """Shape of the counted integers, one axis for each column: values, or pairs of values."""
        sizes = self.workload.sizes
        return tuple(math.comb(sizes[i], 2) if i in self.differences else sizes[i] for i in self.columns)

    @cached_property
    def counts_per_row(self) -> int:
        """How many of the integers one row changes, each by one."""
        return self.workload.dimension_of(self.differences)

    @cached_property
    def component_factors(self) -> dict[Columns, Fraction]:
        """The components B it informs about, with Π_{i∈D} n_i / n_A: times dim_B / variance, this is ρ_B."""
        factor = Fraction(self.workload.cells_of(self.differences), self.workload.cells_of(self.columns))
        others = tuple(i for i in self.columns if i not in self.differences)
        return {tuple(sorted((*self.differences, *subset))): factor for subset in subsets(others)}

    def count_integers(self, marginal: NDArray[Any]) -> NDArray[Any]:
        """Return the integers without noise, from the marginal on the same columns.

        >>> workload = MarginalWorkload.from_orders([3], [1])
        >>> Measurement(workload, (0,), (0,)).count_integers(np.array([5, 3, 4])).tolist()
        [2, 1, -1]
        """
        counted = marginal
        for axis, column in enumerate(self.columns):
            if column in self.differences:
                counted = apply_along(pair_differences(self.workload.sizes[column]), counted, axis)
        return counted


def subsets(columns: Columns) -> Iterable[Columns]:
    """Return all subsets, smaller ones first."""
    return (subset for size in range(len(columns) + 1) for subset in combinations(columns, size))


def pair_differences(size: int) -> NDArray[np.int64]:
    """Return the matrix of x_j − x_k for j < k, shape [size (size − 1) / 2, size].

    >>> pair_differences(2).tolist()
    [[1, -1]]
    """
    pairs = list(combinations(range(size), 2))
    matrix = np.zeros((len(pairs), size), dtype=np.int64)
    for row, (first, second) in enumerate(pairs):
        matrix[row, first], matrix[row, second] = 1, -1
    return matrix


def apply_along(matrix: NDArray[Any], table: NDArray[Any], axis: int) -> NDArray[Any]:
    """Return the table with a matrix applied along one axis."""
    return np.moveaxis(np.tensordot(matrix, table, axes=(1, axis)), 0, axis)
