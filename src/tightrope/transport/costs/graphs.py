"""The metric of a graph: the length of the shortest path.

Mass moves along edges only: transport has one variable per edge instead of one per pair of points (theory §6).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any

import numpy as np
from scipy.sparse import coo_array, csr_array, issparse
from scipy.sparse.csgraph import connected_components, dijkstra

from tightrope.errors import InputError
from tightrope.numerics.arrays import Floats, Integers
from tightrope.numerics.checks import check_integer
from tightrope.transport.costs.costs import Cost, Matrix
from tightrope.transport.costs.points import METRICS, Points, check_metric


@dataclass(frozen=True, slots=True, eq=False)
class Graph(Cost):
    """c_ij = length of the shortest path from node i to node j of a connected, undirected graph.

    Edge k joins ``tails``[k] and ``heads``[k] and has length ``lengths``[k] > 0. ``places`` is the same metric in
    closed form if the graph is a grid, otherwise None.
    """

    nodes: int
    tails: Integers
    heads: Integers
    lengths: Floats
    places: Points | None = None

    @property
    def matrix_shape(self) -> tuple[int, int]:
        return self.nodes, self.nodes

    def cost_upper_bound(self) -> float:
        return float(self.lengths.sum()) if self.places is None else self.places.cost_upper_bound()

    def pair_costs(self, rows: Integers, columns: Integers) -> Floats:
        if self.places is not None:
            return self.places.pair_costs(rows, columns)
        distinct_rows, position = np.unique(rows, return_inverse=True)
        costs: Floats = self.row_costs(distinct_rows)[position, columns]
        return costs

    def row_costs(self, rows: Integers) -> Floats:
        if self.places is not None:
            return self.places.row_costs(rows)
        costs: Floats = dijkstra(self._adjacency_table(), directed=False, indices=rows)
        return costs

    def select_points(self, rows: Integers, columns: Integers) -> Cost:
        if self.places is not None:
            return self.places.select_points(rows, columns)
        return Matrix(np.ascontiguousarray(self.row_costs(rows)[:, columns]))

    def raise_to_power(self, exponent: float) -> Cost:
        """Return the power as a cost between points: it is in general not the metric of a graph."""
        if exponent == 1:
            return self
        cost: Cost = Matrix(self.to_matrix()) if self.places is None else self.places
        return cost.raise_to_power(exponent)

    def _adjacency_table(self) -> csr_array:
        return csr_array((self.lengths, (self.tails, self.heads)), shape=self.matrix_shape)


def graph(adjacency: object) -> Graph:
    """Return the metric of an undirected graph, from a symmetric table [n, n] of edge lengths, sparse or dense.

    Nodes are joined where an entry is stored and positive. Raises ``InputError`` if the table is not square and
    symmetric, if a length is negative or not finite, and if the graph is not connected.

    >>> ring = graph([[0, 1, 0, 2], [1, 0, 1, 0], [0, 1, 0, 1], [2, 0, 1, 0]])
    >>> ring.to_matrix()[0].tolist()
    [0.0, 1.0, 2.0, 2.0]
    """
    expected = "a square table of edge lengths, sparse or not"
    try:
        table_like: Any = adjacency if issparse(adjacency) else np.array(adjacency)
        square_table = coo_array(table_like, dtype=np.float64)
    except (TypeError, ValueError):
        raise InputError("adjacency", adjacency, expected) from None
    if square_table.ndim != 2 or square_table.shape[0] != square_table.shape[1] or square_table.shape[0] == 0:
        raise InputError("adjacency", adjacency, expected, "row i holds the lengths of the edges of node i")
    table = coo_array(csr_array(square_table))
    table.eliminate_zeros()
    is_invalid = ~((table.data > 0) & (table.data < np.inf))
    if is_invalid.any():
        k = int(np.argmax(is_invalid))
        name = f"adjacency[{table.row[k]}, {table.col[k]}]"
        raise InputError(name, float(table.data[k]), "a finite length > 0", "leave out missing edges")
    asymmetry = coo_array(table - table.T)
    asymmetry.eliminate_zeros()
    if asymmetry.nnz:
        i, j = int(asymmetry.row[0]), int(asymmetry.col[0])
        name, value = f"adjacency[{i}, {j}] - adjacency[{j}, {i}]", float(asymmetry.data[0])
        raise InputError(name, value, "zero: a metric is symmetric", "use (A + A.T) / 2, or np.maximum(A, A.T)")
    part_count, labels = connected_components(table, directed=False)
    if part_count > 1:
        other_node = int(np.argmax(labels != labels[0]))
        remedy = f"add an edge to node {other_node}, or treat each of the {part_count} parts as a problem of its own"
        raise InputError("adjacency", adjacency, "a connected graph", remedy)
    is_upper = table.row < table.col
    tails, heads = (index[is_upper].astype(np.int64) for index in (table.row, table.col))
    return Graph(table.shape[0], tails, heads, table.data[is_upper])


def grid(shape: Sequence[int] | int, *, metric: str = "cityblock") -> Cost:
    """Return the cost between the cells of a grid of any dimension, with neighboring cells at distance 1.

    Cells are numbered as numpy flattens an array of that shape.

    "cityblock" and "chebyshev" (a king's moves) are metrics of the grid's edges: the coupling is a flow on them.
    "euclidean" and "sqeuclidean" are costs between points. Raises ``InputError`` for another metric or an empty shape.

    >>> grid((2, 3)).to_matrix()[0].tolist()
    [0.0, 1.0, 2.0, 1.0, 2.0, 3.0]
    """
    check_metric(metric, METRICS)
    sizes = tuple(check_integer(f"shape[{k}]", size) for k, size in enumerate(np.atleast_1d(shape).tolist()))
    if not sizes:
        raise InputError("shape", shape, "at least one number of cells", "for example (100, 100)")
    cells = np.moveaxis(np.indices(sizes, dtype=np.float64), 0, -1).reshape(-1, len(sizes))
    point_cost = Points(cells, cells, metric)
    dimension, steps = len(sizes), list[tuple[int, ...]]()
    if metric == "cityblock":
        steps = [tuple(int(k == axis) for k in range(dimension)) for axis in range(dimension)]
    elif metric == "chebyshev":  # one of each pair of opposite moves of a king
        steps = [step for step in product((-1, 0, 1), repeat=dimension) if step > (0,) * dimension]
    else:
        return point_cost
    node_numbers = np.arange(len(cells), dtype=np.int64).reshape(sizes)
    edges = []
    for step in steps:  # all pairs of cells that differ by this step
        start_cells = tuple(slice(max(0, -d), size - max(0, d)) for d, size in zip(step, sizes, strict=True))
        end_cells = tuple(slice(max(0, d), size - max(0, -d)) for d, size in zip(step, sizes, strict=True))
        edges.append((node_numbers[start_cells].ravel(), node_numbers[end_cells].ravel()))
    tails, heads = (np.concatenate(ends) for ends in zip(*edges, strict=True))
    return Graph(len(cells), tails, heads, np.ones(len(tails)), point_cost)
