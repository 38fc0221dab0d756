"""Transport on a graph as a flow on its edges: O(edges) arcs where a table would have n² (theory §6).

Masses and lengths are integers while the flow is found, its optimality proven and its ways traced; a law of floats is
one of integers to within one unit of 2⁻⁵² a node, and that is repaired at the end.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from scipy.sparse import coo_array, csr_array

from tightrope.errors import PrecisionError
from tightrope.numerics.arrays import Floats, Integers
from tightrope.transport.costs.graphs import Graph
from tightrope.transport.costs.laws import whole_masses
from tightrope.transport.libraries.ortools_flows import Arcs, cheapest_flow
from tightrope.transport.proofs.certificates import Dual, dual
from tightrope.transport.proofs.result import Coupling, plan_cost, plan_of, repaired
from tightrope.transport.solvers.flow_paths import Routes, traced

MASS_BITS = 52
EXACT_BITS = 52
"""Sums of lengths stay below 2⁵² units: floats hold them without rounding."""
SOLVER_BITS = 61
"""The solver multiplies costs by the number of nodes, and adds capacities at a node, in 64 bits."""


def edge_flow(cost: Graph, source: Floats, target: Floats) -> Coupling:
    """A coupling of least cost on a graph, with potentials u = −v: |u_s − u_t| ≤ length of every edge s − t.

    The cost is that of the ways the mass takes; where the graph has no closed form, what the repair of the marginals
    may add is in it at the longest way there is.
    """
    routes, proof = _flow(cost, source, target)
    found = plan_of(routes.starts, routes.ends, routes.masses, cost.shape)
    plan = repaired(found, source, target)
    spent = float(routes.masses @ routes.lengths) + _repair_cost(cost, found, plan)
    return Coupling(plan, plan_cost(cost, plan) if cost.places is not None else spent, proof, 1.0, "edge flow")


def _repair_cost(cost: Graph, found: csr_array, plan: csr_array) -> float:
    """At most what the changed entries cost: twice the way from one node to the furthest bounds every way."""
    changed = coo_array(plan - found)
    moved = float(np.abs(changed.data[changed.row != changed.col]).sum())
    return 2 * moved * float(cost.block(np.array([0])).max())


def _flow(cost: Graph, source: Floats, target: Floats) -> tuple[Routes, Dual]:
    lengths, bits = whole_lengths(cost)
    degree = int(np.bincount(np.concatenate([cost.tails, cost.heads]), minlength=1).max(initial=1))
    mass_bits = min(MASS_BITS, SOLVER_BITS - degree.bit_length())
    begin, finish = whole_masses(source, mass_bits), whole_masses(target, mass_bits)
    arcs = Arcs(np.concatenate([cost.tails, cost.heads]), np.concatenate([cost.heads, cost.tails]))
    both = np.concatenate([lengths, lengths])
    flows = cheapest_flow(arcs, both, begin - finish, 1 << mass_bits)
    height = heights(arcs, both, flows, cost.nodes)
    routes = traced(arcs, flows, height, (begin, finish), np.concatenate([cost.lengths] * 2))
    routes = replace(routes, masses=np.ldexp(routes.masses, -mass_bits))
    u = np.ldexp((height.max() - height).astype(np.float64), -bits)
    return routes, dual(u, -u, source, target)


def whole_lengths(cost: Graph) -> tuple[Integers, int]:
    """Lengths in units of 2^−bits, rounded down so that a potential for them is one for the true lengths.

    Where the lengths are dyadic the bits suffice to hold them exactly, for unit lengths none are needed.
    """
    largest = float(cost.lengths.max(initial=1.0))
    room = EXACT_BITS - int(np.ceil(np.log2(largest))) - cost.nodes.bit_length()
    bits = next((k for k in range(min(0, room), room) if _are_whole(cost.lengths, k)), room)
    lengths = np.floor(np.ldexp(cost.lengths, bits)).astype(np.int64)
    if lengths.min(initial=1) < 1:
        raise PrecisionError(
            f"the shortest edge, {cost.lengths.min():.3g}, is too short beside the longest, {largest:.3g}, "
            "to measure both in 64 bits; join its ends"
        )
    return lengths, bits


def _are_whole(lengths: Floats, bits: int) -> bool:
    scaled = np.ldexp(lengths, bits)
    return bool((scaled == np.floor(scaled)).all())


def heights(arcs: Arcs, lengths: Integers, flows: Integers, nodes: int) -> Integers:
    """Heights with h_t ≤ h_s + length on every arc s → t, and equality where something flows (Bellman and Ford).

    This proves that no flow costs less; all numbers are integers. Raises ``PrecisionError`` where there is no such h.
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
