"""Transport on a graph as a flow on its edges: O(edges) arcs instead of n² (theory §6).

Masses and lengths are integers while the flow is found, proven optimal and decomposed into paths; rounding to integers
changes a distribution by at most 2⁻⁵² a node, and this is repaired at the end.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import coo_array

from tightrope.errors import PrecisionError
from tightrope.numerics.arrays import Floats, Integers
from tightrope.transport.costs.costs import Cost, whole_masses
from tightrope.transport.costs.graphs import Graph
from tightrope.transport.solvers.libraries import Arcs, cheapest_flow
from tightrope.transport.solvers.result import (
    Coupling,
    certify_dual,
    feasible_dual,
    plan_cost,
    repair_marginals,
    sparse_plan,
)

# From a flow on edges to a coupling: follow the mass downstream, in integers.
#
# An optimal flow has no cycle, since every edge has a positive length; sorted by height, all arrivals at a node precede
# its departures.

Parcel = tuple[int, int, float]
"""Origin, mass and distance so far."""


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
    """Return the parcels that a flow carries from source to target; common mass stays."""
    source, target = laws
    stay = np.minimum(source, target)
    # Outgoing arcs with flow of every node, with their amounts.
    out: dict[int, list[tuple[int, int]]] = {}
    for departures_arc in np.flatnonzero(flows > 0).tolist():
        out.setdefault(int(arcs.tails[departures_arc]), []).append((departures_arc, int(flows[departures_arc])))
    waiting: dict[int, deque[Parcel]] = {
        int(s): deque([(int(s), int(source[s] - target[s]), 0.0)]) for s in np.flatnonzero(source > target)
    }
    arrived: list[tuple[int, int, int, float]] = []
    for node in np.argsort(height, kind="stable").tolist():
        held = waiting.pop(node, deque())
        for arc, amount in out.get(node, ()):
            head = int(arcs.heads[arc])
            _forward_mass(held, amount, float(lengths[arc]), waiting.setdefault(head, deque()))
        arrived += [(origin, node, mass, way) for origin, mass, way in held]
    # Check in integers that every node received what it lacked.
    wanted = target - stay
    got = np.zeros_like(wanted)
    for _, end, require_arrivals_mass, _ in arrived:
        got[end] += require_arrivals_mass
    if not (got == wanted).all():
        raise PrecisionError(
            "the flow that the solver returned does not end in the target law; please report this graph"
        )
    starts, ends, masses, ways = (list(part) for part in zip(*arrived, strict=True)) if arrived else ([], [], [], [])
    still = np.flatnonzero(stay)
    return Routes(
        np.concatenate([still, np.array(starts, dtype=np.int64)]),
        np.concatenate([still, np.array(ends, dtype=np.int64)]),
        np.concatenate([stay[still], np.array(masses, dtype=np.int64)]).astype(np.float64),
        np.concatenate([np.zeros(len(still)), np.array(ways, dtype=np.float64)]),
    )


def _forward_mass(held: deque[Parcel], amount: int, length: float, onward: deque[Parcel]) -> None:
    """Send ``amount`` on, first in, first out; parcels are split if they are too large."""
    while amount and held:
        origin, mass, way = held.popleft()
        sent = min(mass, amount)
        onward.append((origin, sent, way + length))
        amount -= sent
        if sent < mass:
            held.appendleft((origin, mass - sent, way))


MASS_BITS = 52
EXACT_BITS = 52
"""Sums of lengths stay below 2⁵² units: floats hold them without rounding."""
SOLVER_BITS = 61
"""The solver multiplies costs by the number of nodes, and adds capacities at a node, in 64 bits."""


def edge_flow(cost: Graph, source: Floats, target: Floats) -> Coupling:
    """Return a coupling of least cost on a graph, potentials u = −v: |u_s − u_t| ≤ length of every edge s − t.

    The cost is summed over the paths of the mass; without a closed form of the metric, it includes an upper bound on
    the cost of repairing the marginals.
    """
    lengths, bits = whole_lengths(cost)
    degree = int(np.bincount(np.concatenate([cost.tails, cost.heads]), minlength=1).max(initial=1))
    mass_bits = min(MASS_BITS, SOLVER_BITS - degree.bit_length())
    begin, finish = whole_masses(source, mass_bits), whole_masses(target, mass_bits)
    arcs = Arcs(np.concatenate([cost.tails, cost.heads]), np.concatenate([cost.heads, cost.tails]))
    both = np.concatenate([lengths, lengths])
    flows = cheapest_flow(arcs, both, begin - finish, 1 << mass_bits)
    height = node_heights(arcs, both, flows, cost.nodes)
    flow_routes = trace_routes(arcs, flows, height, (begin, finish), np.concatenate([cost.lengths] * 2))
    flow_routes = replace(flow_routes, masses=np.ldexp(flow_routes.masses, -mass_bits))
    u = np.ldexp((height.max() - height).astype(np.float64), -bits)
    routes, proof = flow_routes, certify_dual(u, -u, source, target)
    found = sparse_plan(routes.starts, routes.ends, routes.masses, cost.matrix_shape)
    plan = repair_marginals(found, source, target)
    # An upper bound on the cost of changed entries: twice the longest path from one node bounds every path.
    changed = coo_array(plan - found)
    moved = float(np.abs(changed.data[changed.row != changed.col]).sum())
    spent = float(routes.masses @ routes.lengths) + (2 * moved * float(cost.row_costs(np.array([0])).max()))
    return Coupling(plan, plan_cost(cost, plan) if cost.places is not None else spent, proof, 1.0, "edge flow")


def whole_lengths(cost: Graph) -> tuple[Integers, int]:
    """Return lengths in units of 2^−bits, rounded down so that feasible potentials stay feasible.

    The bits suffice for dyadic lengths to be exact; unit lengths need none.
    """
    largest = float(cost.lengths.max(initial=1.0))
    room = EXACT_BITS - int(np.ceil(np.log2(largest))) - cost.nodes.bit_length()
    bits = min(0, room)
    while bits < room and np.any(np.ldexp(cost.lengths, bits) % 1):
        bits += 1
    lengths = np.floor(np.ldexp(cost.lengths, bits)).astype(np.int64)
    if lengths.min(initial=1) < 1:
        raise PrecisionError(
            f"the shortest edge, {cost.lengths.min():.3g}, is too short compared with the longest, {largest:.3g}, "
            "to measure both in 64 bits; join its ends"
        )
    return lengths, bits


def node_heights(arcs: Arcs, lengths: Integers, flows: Integers, nodes: int) -> Integers:
    """Return heights with h_t ≤ h_s + length on every arc s → t, with equality if it has flow (Bellman–Ford).

    They prove that the flow is optimal; all numbers are integers. Raises ``PrecisionError`` if there are no such
    heights.
    """
    used = flows > 0
    tails = np.concatenate([arcs.tails, arcs.heads[used]])
    heads = np.concatenate([arcs.heads, arcs.tails[used]])
    steps = np.concatenate([lengths, -lengths[used]])
    found = np.zeros(nodes, dtype=np.int64)
    for _ in range(nodes + 1):
        before = found.copy()
        np.minimum.at(found, heads, before[tails] + steps)
        if (found == before).all():
            return found
    raise PrecisionError("the flow that the solver returned can be made cheaper; please report this graph")


# Cost tables of any order of magnitude: shortest augmenting paths in integers, without rounding.
#
# Float costs and masses are multiples of a power of two. The network simplex works in floats: with costs of 1e32 and of
# 1, the potentials lose their digits. This method is slower, hence only for small tables.

Wholes = NDArray[np.object_]
"""Integers of any size."""


@dataclass(slots=True, eq=False)
class PartialFlow:
    """A partial flow of least cost, the remaining masses, and potentials: c_ij + p_i − q_j ≥ 0, and 0 if mass moves.

    While mass is left at some source, its p is 0.
    """

    costs: Wholes
    left: Wholes
    wanted: Wholes
    moved: Wholes
    p: Wholes
    q: Wholes

    def advance_shortest_path(self) -> None:
        """Augment along a shortest path from the sources with mass left to a target that lacks some."""
        above = int(self.costs.sum()) + 1
        rows, columns = (np.full(size, above, dtype=object) for size in self.costs.shape)
        rows[self.left > 0] = 0
        before = np.zeros(len(columns), dtype=np.int64)
        came, done = np.full(len(rows), -1), np.zeros(len(columns), dtype=bool)
        for i in np.flatnonzero(self.left > 0).tolist():
            self._relax_row(i, rows[i], columns, before)
        while True:
            waiting = np.flatnonzero(~done)
            j = int(waiting[np.argmin(columns[waiting])])
            done[j] = True
            if self.wanted[j] > 0:
                break
            for i in np.flatnonzero((self.moved[:, j] > 0) & (rows > columns[j])).tolist():
                rows[i], came[i] = columns[j], j
                self._relax_row(i, rows[i], columns, before)
        self._move_mass(j, before, came)
        self.p = self.p + np.minimum(rows, columns[j])
        self.q = self.q + np.minimum(columns, columns[j])

    def _relax_row(self, i: int, reached: int, columns: Wholes, before: NDArray[np.int64]) -> None:
        there = self.costs[i] - self.q + (self.p[i] + reached)
        nearer = there < columns
        columns[nearer], before[nearer] = there[nearer], i

    def _move_mass(self, j: int, before: NDArray[np.int64], came: NDArray[np.int64]) -> None:
        forward, back, end = [], [], j
        while True:
            i = int(before[j])
            forward.append((i, j))
            if came[i] < 0:
                break
            j = int(came[i])
            back.append((i, j))
        mass = min(self.left[i], self.wanted[end], *(self.moved[pair] for pair in back))
        for pair in forward:
            self.moved[pair] += mass
        for pair in back:
            self.moved[pair] -= mass
        self.left[i] -= mass
        self.wanted[end] -= mass


def exact_paths(cost: Cost, source: Floats, target: Floats) -> Coupling:
    """Return a coupling of least cost between the points with mass, and potentials for all points.

    If rounding makes the total masses differ, the excess stays where moving it costs most.
    """
    rows, columns = np.flatnonzero(source), np.flatnonzero(target)
    costs, unit = _integer_multiples(cost.select_points(rows, columns).to_matrix())
    masses, share = _integer_multiples(np.concatenate([source[rows], target[columns]]))
    left, wanted = masses[: len(rows)].copy(), masses[len(rows) :].copy()
    zeros = [np.zeros(size, dtype=object) for size in (costs.shape, len(rows), len(columns))]
    flow = PartialFlow(costs, left, wanted, *zeros)
    while (flow.left > 0).any() and (flow.wanted > 0).any():
        flow.advance_shortest_path()
    some, others = np.nonzero(flow.moved)
    moved = np.array([int(mass) / share for mass in flow.moved[some, others]], dtype=np.float64)
    plan = repair_marginals(sparse_plan(rows[some], columns[others], moved, cost.matrix_shape), source, target)
    u = np.array([-int(p) / unit for p in flow.p], dtype=np.float64)
    proof = feasible_dual(cost, rows, u, source, target)
    return Coupling(plan, plan_cost(cost, plan), proof, 1.0, "shortest augmenting paths")


def _integer_multiples(values: Floats) -> tuple[Wholes, int]:
    """Return ``values`` as multiples of one over a power of two, and that power, exactly."""
    ratios: list[Any] = [value.as_integer_ratio() for value in values.ravel().tolist()]
    unit = max(below for _, below in ratios)
    found = np.array([above * (unit // below) for above, below in ratios] + [None], dtype=object)[:-1]
    return found.reshape(values.shape), unit
