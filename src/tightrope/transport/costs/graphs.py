"""The metric of a graph: the length of the shortest way along its edges.

Mass moves along edges only, so that transport has one variable an edge, not one a pair of points (theory §6).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.sparse import coo_array, csr_array, issparse
from scipy.sparse.csgraph import connected_components, dijkstra

from tightrope.errors import InputError
from tightrope.numerics.arrays import Floats, Integers
from tightrope.transport.costs.costs import Cost, Matrix
from tightrope.transport.costs.point_clouds import Points


@dataclass(frozen=True, slots=True, eq=False)
class Graph(Cost):
    """c_ij = length of the shortest way from node i to node j of a connected, undirected graph.

    Edge k joins ``tails``[k] and ``heads``[k] and is ``lengths``[k] > 0 long. ``places``: the same metric in closed
    form, where the graph is a grid.
    """

    nodes: int
    tails: Integers
    heads: Integers
    lengths: Floats
    places: Points | None = None

    @property
    def shape(self) -> tuple[int, int]:
        return self.nodes, self.nodes

    def ceiling(self) -> float:
        return float(self.lengths.sum()) if self.places is None else self.places.ceiling()

    def pairs(self, rows: Integers, columns: Integers) -> Floats:
        if self.places is not None:
            return self.places.pairs(rows, columns)
        some, position = np.unique(rows, return_inverse=True)
        found: Floats = self.block(some)[position, columns]
        return found

    def block(self, rows: Integers) -> Floats:
        if self.places is not None:
            return self.places.block(rows)
        found: Floats = dijkstra(self._table(), directed=False, indices=rows)
        return found

    def take(self, rows: Integers, columns: Integers) -> Cost:
        if self.places is not None:
            return self.places.take(rows, columns)
        return Matrix(np.ascontiguousarray(self.block(rows)[:, columns]))

    def power(self, exponent: float) -> Cost:
        """Powers of a metric are no metric of edges: pairs of points from here on."""
        if exponent == 1:
            return self
        whole: Cost = Matrix(self.matrix()) if self.places is None else self.places
        return whole.power(exponent)

    def _table(self) -> csr_array:
        return csr_array((self.lengths, (self.tails, self.heads)), shape=self.shape)


def graph(adjacency: object) -> Graph:
    """The metric of an undirected graph, from the lengths of its edges: a symmetric table [n, n], sparse or not.

    An entry that is not stored, or is zero, is no edge. Raises ``InputError`` where the table is not square and
    symmetric, where a length is negative or not finite, and where a node cannot be reached.

    >>> ring = graph([[0, 1, 0, 2], [1, 0, 1, 0], [0, 1, 0, 1], [2, 0, 1, 0]])
    >>> ring.matrix()[0].tolist()
    [0.0, 1.0, 2.0, 2.0]
    """
    table = _square(adjacency)
    _check_lengths(table)
    parts, label = connected_components(table, directed=False)
    if parts > 1:
        away = int(np.argmax(label != label[0]))
        remedy = f"add an edge to node {away}, or treat each of the {parts} parts as a problem of its own"
        raise InputError("adjacency", adjacency, "a connected graph", remedy)
    above = table.row < table.col
    tails, heads = (index[above].astype(np.int64) for index in (table.row, table.col))
    return Graph(table.shape[0], tails, heads, table.data[above])


def _square(adjacency: object) -> coo_array:
    expected = "a square table of edge lengths, sparse or not"
    try:
        given: Any = adjacency if issparse(adjacency) else np.array(adjacency)
        table = coo_array(given, dtype=np.float64)
    except (TypeError, ValueError):
        raise InputError("adjacency", adjacency, expected) from None
    if table.ndim != 2 or table.shape[0] != table.shape[1] or table.shape[0] == 0:
        raise InputError("adjacency", adjacency, expected, "row i holds the lengths of the edges of node i")
    return coo_array(csr_array(table))


def _check_lengths(table: coo_array) -> None:
    table.eliminate_zeros()
    wrong = ~((table.data > 0) & (table.data < np.inf))
    if wrong.any():
        k = int(np.argmax(wrong))
        name = f"adjacency[{table.row[k]}, {table.col[k]}]"
        raise InputError(name, float(table.data[k]), "a finite length > 0", "leave out edges that are not there")
    uneven = coo_array(table - table.T)
    uneven.eliminate_zeros()
    if uneven.nnz:
        i, j = int(uneven.row[0]), int(uneven.col[0])
        name, value = f"adjacency[{i}, {j}] - adjacency[{j}, {i}]", float(uneven.data[0])
        raise InputError(name, value, "zero: a metric is symmetric", "use (A + A.T) / 2, or np.maximum(A, A.T)")
