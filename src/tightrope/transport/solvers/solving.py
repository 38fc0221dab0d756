"""The one door to the solvers: plans, values, barycentres and single costs, whatever the kind of cost."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, Protocol

import numpy as np

from tightrope.errors import InputError
from tightrope.numerics.arrays import Floats, Integers
from tightrope.transport.solvers.optimal import coupling


class Cost(Protocol):
    """A cost that is not a matrix: a grid, points, a line."""

    @property
    def shape(self) -> tuple[int, int]:
        """Numbers of source and of target points."""

    def pairs(self, rows: Integers, columns: Integers) -> Floats:
        """Costs of the pairs (rows[i], columns[i]), shape [k]."""

    def matrix(self) -> Floats:
        """All costs, shape [n, m]."""

    def ceiling(self) -> float:
        """At least every cost."""


def checked_cost(cost: Any) -> Any:
    """``cost`` itself, or a matrix as floats; raises ``InputError`` for entries that are NaN, infinite or negative."""
    if hasattr(cost, "pairs"):
        return cost
    try:
        matrix = np.asarray(cost, dtype=np.float64)
    except (TypeError, ValueError):
        raise InputError("cost", cost, "a matrix of distances or a cost such as grid((10, 10))") from None
    if matrix.ndim != 2 or not matrix.size:
        raise InputError("cost", matrix.shape, "a matrix of distances, shape [n, m]")
    wrong = ~((matrix >= 0) & (matrix < math.inf))
    if np.any(wrong):
        raise InputError("cost", float(matrix[wrong][0]), "made of finite numbers >= 0", "forbid pairs by large costs")
    return matrix


def sizes(cost: Any) -> tuple[int, int]:
    """Numbers of source and of target points."""
    rows, columns = cost.shape
    return int(rows), int(columns)


def distances(cost: Any, rows: Integers, columns: Integers) -> Floats:
    """Costs of single pairs, shape [k]."""
    if isinstance(cost, np.ndarray):
        return np.asarray(cost[rows, columns])
    return np.asarray(cost.pairs(rows, columns), dtype=np.float64)


def matrix_of(cost: Any) -> Floats:
    """All costs, shape [n, m]."""
    return cost if isinstance(cost, np.ndarray) else np.asarray(cost.matrix(), dtype=np.float64)


def largest(cost: Any) -> float:
    """At least every cost."""
    return float(cost.max() if isinstance(cost, np.ndarray) else cost.ceiling())


def plan(source: Floats, target: Floats, cost: Any, p: float) -> Any:
    """An optimal coupling as a sparse matrix, shape [n, m], for W_p (p = ``math.inf``: the least largest cost)."""
    return coupling(source, target, cost, p).plan


def proven_distance(source: Floats, target: Floats, cost: Any, p: float) -> float:
    """A lower bound on W_p of two laws for p = 1 or ∞: the solver's value less the gap of its proof."""
    found = coupling(source, target, cost, p)
    return max(0.0, found.cost - max(0.0, found.gap))


def centre(laws: list[Floats], cost: Any, weights: Sequence[float]) -> Floats:
    """The law of least weighted total cost to ``laws``, over the target points of ``cost``."""
    from tightrope.transport.solvers.barycentre import barycenter

    return barycenter(laws, cost, weights).law
