"""Transport by flows in integers, in three parts (theory §6).

1. From a flow on the edges of a graph to a coupling (``trace_routes``).
2. The flow of least cost on a graph, with O(edges) arcs instead of n² (``graph_edge_coupling``). Rounding masses to
   integers changes a distribution by at most 2⁻⁵² per node, and this is repaired at the end.
3. Small cost tables of any order of magnitude (``exact_paths``).
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import coo_array

from tightrope.errors import MissingExtraError, PrecisionError
from tightrope.numerics.arrays import Floats, Integers
from tightrope.transport.costs.costs import Cost, round_to_integer_masses
from tightrope.transport.costs.graphs import Graph
from tightrope.transport.solvers.result import (
    Coupling,
    certify_dual,
    feasible_dual,
    plan_cost,
    repair_marginals,
    sparse_plan,
)

# Interface to OR-tools: minimum-cost and maximum flows, in integers (extra ``transport``).


@dataclass(frozen=True, slots=True, eq=False)
class Arcs:
    """Directed arcs between nodes."""

    tails: Integers
    heads: Integers


def cheapest_flow(arcs: Arcs, costs: Integers, supply: Integers, capacity: int) -> Integers:
    """Return a minimum-cost flow on arcs of equal capacity; ``supply``[node] leaves every node (negative: enters).

    Raises ``PrecisionError`` if the solver rejects the size of the numbers.
    """
    problem = _import_solver("min_cost_flow").SimpleMinCostFlow()
    limits = np.full(len(arcs.tails), capacity, dtype=np.int64)
    problem.add_arcs_with_capacity_and_unit_cost(arcs.tails, arcs.heads, limits, costs)
    problem.set_nodes_supplies(np.arange(len(supply)), supply)
    _require_solved(problem.solve() == problem.OPTIMAL, "least cost")
    return np.asarray(problem.flows(np.arange(len(arcs.tails))), dtype=np.int64)


def largest_flow(arcs: Arcs, capacities: Integers, start: int, end: int) -> tuple[Integers, Integers]:
    """Return a maximum flow from ``start`` to ``end``, by arc, and the nodes on the start's side of a minimum cut."""
    problem = _import_solver("max_flow").SimpleMaxFlow()
    problem.add_arcs_with_capacity(arcs.tails, arcs.heads, capacities)
    _require_solved(problem.solve(start, end) == problem.OPTIMAL, "largest size")
    flows = np.asarray(problem.flows(np.arange(len(arcs.tails))), dtype=np.int64)
    return flows, np.asarray(problem.get_source_side_min_cut(), dtype=np.int64)


def _require_solved(is_solved: bool, kind: str) -> None:
    """Raise ``PrecisionError`` if the solver failed."""
    if not is_solved:
        raise PrecisionError(
            f"OR-tools found no flow of {kind}; edge lengths may differ by too many orders of magnitude"
        )


def _import_solver(module: str) -> Any:
    try:
        from ortools.graph.python import max_flow, min_cost_flow
    except ImportError:
        raise MissingExtraError("OR-tools", "transport") from None
    return {"max_flow": max_flow, "min_cost_flow": min_cost_flow}[module]


# 1. From a flow on edges to a coupling: the mass is followed from node to node, in integers.
#
# An optimal flow has no cycle, since every edge has a positive length; with nodes sorted by height, all mass arrives at
# a node before it leaves.

Parcel = tuple[int, int, float]
"""A mass on its way: (origin, mass, distance so far)."""


@dataclass(frozen=True, slots=True, eq=False)
class Routes:
    """``masses``[k] moves from ``starts``[k] to ``ends``[k], along paths of ``lengths``[k]."""

    starts: Integers
    ends: Integers
    masses: Floats
    lengths: Floats


def trace_routes(
    arcs: Arcs, flows: Integers, height: Integers, laws: tuple[Integers, Integers], lengths: Floats
) -> Routes:
    """Return the routes of the mass that a flow carries from source to target; common mass stays."""
    source, target = laws
    staying = np.minimum(source, target)
    # Outgoing arcs with flow of every node, with their amounts.
    outgoing: dict[int, list[tuple[int, int]]] = {}
    for arc in np.flatnonzero(flows > 0).tolist():
        outgoing.setdefault(int(arcs.tails[arc]), []).append((arc, int(flows[arc])))
    waiting: dict[int, deque[Parcel]] = {
        int(s): deque([(int(s), int(source[s] - target[s]), 0.0)]) for s in np.flatnonzero(source > target)
    }
    arrived: list[tuple[int, int, int, float]] = []
    for node in np.argsort(height, kind="stable").tolist():
        parcels = waiting.pop(node, deque())
        for arc, amount in outgoing.get(node, ()):
            head = int(arcs.heads[arc])
            _forward_mass(parcels, amount, float(lengths[arc]), waiting.setdefault(head, deque()))
        arrived += [(origin, node, mass, distance) for origin, mass, distance in parcels]
    # Check in integers that every node received what it lacked.
    expected = target - staying
    received = np.zeros_like(expected)
    for _, end, mass, _ in arrived:
        received[end] += mass
    if not (received == expected).all():
        raise PrecisionError(
            "the flow that the solver returned does not end in the target law; please report this graph"
        )
    starts, ends, masses, distances = (
        (list(part) for part in zip(*arrived, strict=True)) if arrived else ([], [], [], [])
    )
    staying_nodes = np.flatnonzero(staying)
    return Routes(
        np.concatenate([staying_nodes, np.array(starts, dtype=np.int64)]),
        np.concatenate([staying_nodes, np.array(ends, dtype=np.int64)]),
        np.concatenate([staying[staying_nodes], np.array(masses, dtype=np.int64)]).astype(np.float64),
        np.concatenate([np.zeros(len(staying_nodes)), np.array(distances, dtype=np.float64)]),
    )


def _forward_mass(parcels: deque[Parcel], amount: int, length: float, next_parcels: deque[Parcel]) -> None:
    """Send ``amount`` on, first in, first out; parcels are split if they are too large."""
    while amount and parcels:
        origin, mass, distance = parcels.popleft()
        part = min(mass, amount)
        next_parcels.append((origin, part, distance + length))
        amount -= part
        if part < mass:
            parcels.appendleft((origin, mass - part, distance))


# 2. The flow of least cost on a graph.

MASS_BITS = 52
"""Masses are multiples of 2⁻⁵²."""
EXACT_BITS = 52
"""Sums of lengths stay below 2⁵² units, so that they are exact in floats."""
SOLVER_BITS = 61
"""The solver adds up the capacities at a node, and multiplies costs by the number of nodes, in 64 bits."""


def graph_edge_coupling(cost: Graph, source: Floats, target: Floats) -> Coupling:
    """Return a coupling of least cost on a graph, potentials u = −v: |u_s − u_t| ≤ length of every edge s − t.

    The cost is summed over the paths of the mass; without a closed form of the metric, it includes an upper bound on
    the cost of repairing the marginals.
    """
    lengths, bits = integer_lengths(cost)
    degree = int(np.bincount(np.concatenate([cost.tails, cost.heads]), minlength=1).max(initial=1))
    mass_bits = min(MASS_BITS, SOLVER_BITS - degree.bit_length())
    source_masses, target_masses = (
        round_to_integer_masses(source, mass_bits),
        round_to_integer_masses(target, mass_bits),
    )
    arcs = Arcs(np.concatenate([cost.tails, cost.heads]), np.concatenate([cost.heads, cost.tails]))
    arc_lengths = np.concatenate([lengths, lengths])
    flows = cheapest_flow(arcs, arc_lengths, source_masses - target_masses, 1 << mass_bits)
    height = node_heights(arcs, arc_lengths, flows, cost.nodes)
    integer_routes = trace_routes(
        arcs, flows, height, (source_masses, target_masses), np.concatenate([cost.lengths] * 2)
    )
    routes = replace(integer_routes, masses=np.ldexp(integer_routes.masses, -mass_bits))
    u = np.ldexp((height.max() - height).astype(np.float64), -bits)
    proof = certify_dual(u, -u, source, target)
    unrepaired = sparse_plan(routes.starts, routes.ends, routes.masses, cost.matrix_shape)
    plan = repair_marginals(unrepaired, source, target)
    # An upper bound on the cost of changed entries: twice the longest path from one node bounds every path.
    changed = coo_array(plan - unrepaired)
    changed_mass = float(np.abs(changed.data[changed.row != changed.col]).sum())
    upper_bound = float(routes.masses @ routes.lengths) + (
        2 * changed_mass * float(cost.row_costs(np.array([0])).max())
    )
    return Coupling(plan, plan_cost(cost, plan) if cost.places is not None else upper_bound, proof, 1.0, "edge flow")


def integer_lengths(cost: Graph) -> tuple[Integers, int]:
    """Return lengths in units of 2^−bits, rounded down so that feasible potentials stay feasible.

    The bits suffice for dyadic lengths to be exact; unit lengths need none.
    """
    largest = float(cost.lengths.max(initial=1.0))
    max_bits = EXACT_BITS - int(np.ceil(np.log2(largest))) - cost.nodes.bit_length()
    bits = min(0, max_bits)
    while bits < max_bits and np.any(np.ldexp(cost.lengths, bits) % 1):
        bits += 1
    lengths = np.floor(np.ldexp(cost.lengths, bits)).astype(np.int64)
    if lengths.min(initial=1) < 1:
        raise PrecisionError(
            f"the shortest edge, {cost.lengths.min():.3g}, is too short compared with the longest, {largest:.3g}, "
            "to represent both in 64 bits; merge its two nodes"
        )
    return lengths, bits


def node_heights(arcs: Arcs, lengths: Integers, flows: Integers, nodes: int) -> Integers:
    """Return heights with h_t ≤ h_s + length on every arc s → t, with equality if it has flow (Bellman–Ford).

    They prove that the flow is optimal; all numbers are integers. Raises ``PrecisionError`` if there are no such
    heights.
    """
    has_flow = flows > 0
    tails = np.concatenate([arcs.tails, arcs.heads[has_flow]])
    heads = np.concatenate([arcs.heads, arcs.tails[has_flow]])
    steps = np.concatenate([lengths, -lengths[has_flow]])
    heights = np.zeros(nodes, dtype=np.int64)
    for _ in range(nodes + 1):
        previous = heights.copy()
        np.minimum.at(heights, heads, previous[tails] + steps)
        if (heights == previous).all():
            return heights
    raise PrecisionError("the flow that the solver returned is not optimal; please report this graph")


# 3. Cost tables of any order of magnitude: shortest augmenting paths in integers, without rounding.
#
# Float costs and masses are multiples of a power of two. The network simplex works in floats: with costs of 1e32 and of
# 1, its potentials are inaccurate. This method is exact but slower, so it is used for small tables only.

Wholes = NDArray[np.object_]
"""Integers of any size."""


@dataclass(slots=True, eq=False)
class PartialFlow:
    """A partial flow of least cost, the remaining masses, and potentials: c_ij + p_i − q_j ≥ 0, and 0 if mass moves.

    ``supply`` and ``demand`` are the remaining masses of sources and targets. p is 0 for sources with remaining supply.
    """

    costs: Wholes
    supply: Wholes
    demand: Wholes
    moved: Wholes
    p: Wholes
    q: Wholes

    def advance_shortest_path(self) -> None:
        """Augment along a shortest path from the sources with remaining supply to a target with remaining demand."""
        infinite_distance = int(self.costs.sum()) + 1
        row_distances, column_distances = (np.full(size, infinite_distance, dtype=object) for size in self.costs.shape)
        row_distances[self.supply > 0] = 0
        row_before = np.zeros(len(column_distances), dtype=np.int64)
        column_before, is_done = np.full(len(row_distances), -1), np.zeros(len(column_distances), dtype=bool)
        for i in np.flatnonzero(self.supply > 0).tolist():
            self._relax_row(i, row_distances[i], column_distances, row_before)
        while True:
            open_columns = np.flatnonzero(~is_done)
            j = int(open_columns[np.argmin(column_distances[open_columns])])
            is_done[j] = True
            if self.demand[j] > 0:
                break
            for i in np.flatnonzero((self.moved[:, j] > 0) & (row_distances > column_distances[j])).tolist():
                row_distances[i], column_before[i] = column_distances[j], j
                self._relax_row(i, row_distances[i], column_distances, row_before)
        self._move_mass(j, row_before, column_before)
        self.p = self.p + np.minimum(row_distances, column_distances[j])
        self.q = self.q + np.minimum(column_distances, column_distances[j])

    def _relax_row(self, i: int, row_distance: int, column_distances: Wholes, row_before: NDArray[np.int64]) -> None:
        """Update the distances of all columns by way of row ``i``."""
        distances = self.costs[i] - self.q + (self.p[i] + row_distance)
        is_nearer = distances < column_distances
        column_distances[is_nearer], row_before[is_nearer] = distances[is_nearer], i

    def _move_mass(self, j: int, row_before: NDArray[np.int64], column_before: NDArray[np.int64]) -> None:
        forward, backward, end = [], [], j
        while True:
            i = int(row_before[j])
            forward.append((i, j))
            if column_before[i] < 0:
                break
            j = int(column_before[i])
            backward.append((i, j))
        mass = min(self.supply[i], self.demand[end], *(self.moved[pair] for pair in backward))
        for pair in forward:
            self.moved[pair] += mass
        for pair in backward:
            self.moved[pair] -= mass
        self.supply[i] -= mass
        self.demand[end] -= mass


def exact_paths(cost: Cost, source: Floats, target: Floats) -> Coupling:
    """Return a coupling of least cost between the points with mass, and potentials for all points.

    If rounding makes the total masses differ, the excess stays where moving it costs most.
    """
    rows, columns = np.flatnonzero(source), np.flatnonzero(target)
    costs, cost_unit = _integer_multiples(cost.select_points(rows, columns).to_matrix())
    masses, mass_unit = _integer_multiples(np.concatenate([source[rows], target[columns]]))
    supply, demand = masses[: len(rows)].copy(), masses[len(rows) :].copy()
    zeros = [np.zeros(size, dtype=object) for size in (costs.shape, len(rows), len(columns))]
    flow = PartialFlow(costs, supply, demand, *zeros)
    while (flow.supply > 0).any() and (flow.demand > 0).any():
        flow.advance_shortest_path()
    moved_rows, moved_columns = np.nonzero(flow.moved)
    moved = np.array([int(mass) / mass_unit for mass in flow.moved[moved_rows, moved_columns]], dtype=np.float64)
    plan = repair_marginals(
        sparse_plan(rows[moved_rows], columns[moved_columns], moved, cost.matrix_shape), source, target
    )
    u = np.array([-int(p) / cost_unit for p in flow.p], dtype=np.float64)
    proof = feasible_dual(cost, rows, u, source, target)
    return Coupling(plan, plan_cost(cost, plan), proof, 1.0, "shortest augmenting paths")


def _integer_multiples(values: Floats) -> tuple[Wholes, int]:
    """Return (integers, unit) with values = integers / unit, exactly; unit is a power of two."""
    ratios: list[Any] = [value.as_integer_ratio() for value in values.ravel().tolist()]
    unit = max(denominator for _, denominator in ratios)
    multiples = np.array(
        [numerator * (unit // denominator) for numerator, denominator in ratios] + [None], dtype=object
    )[:-1]
    return multiples.reshape(values.shape), unit
