"""Transport between many points: solve on few arcs, price all pairs with the duals, add violated pairs, repeat.

If u_i + v_j ≤ c_ij for all pairs, the coupling is optimal. The matrix is never built: a pass over the pairs holds one
block of it. Five thousand points take six rounds, the first on eighteen arcs a point, the others on eight.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from scipy.sparse import coo_array, csr_array

from tightrope.errors import PrecisionError
from tightrope.numerics.arrays import Floats, Integers
from tightrope.transport.costs.costs import Cost, Matrix
from tightrope.transport.costs.points import Points
from tightrope.transport.solvers.libraries import network_simplex
from tightrope.transport.solvers.monotone import LongFloats, is_monge, north_west_staircase, staircase_potentials
from tightrope.transport.solvers.result import (
    Coupling,
    certify_dual,
    entry_indices,
    feasible_dual,
    plan_cost,
    repair_marginals,
    rounding_margin,
    sparse_plan,
)

# Costs small enough for a table: the north-west corner rule if it is optimal, else POT.


def table_coupling(cost: Cost, source: Floats, target: Floats) -> Coupling:
    """Return a coupling of least cost between the points with mass, and potentials for all points."""
    table = Matrix(cost.to_matrix())
    method = north_west_coupling if is_monge(table.values) else simplex_coupling
    return method(table, source, target)


def north_west_coupling(cost: Matrix, source: Floats, target: Floats) -> Coupling:
    """Return the coupling of the north-west corner rule: without a solver, for any order of magnitude (KM §5)."""
    stairs = north_west_staircase(source, target)

    def long_costs(some: Integers, others: Integers) -> LongFloats:
        return cost.values[some, others].astype(np.longdouble)

    u, _, _ = staircase_potentials(stairs, long_costs)
    plan = sparse_plan(stairs.rows, stairs.columns, stairs.masses, cost.matrix_shape)
    proof = feasible_dual(cost, np.arange(len(u)), u, source, target)
    return Coupling(plan, plan_cost(cost, plan), proof, 1.0, "north-west corner rule")


def simplex_coupling(cost: Matrix, source: Floats, target: Floats) -> Coupling:
    """Return the coupling of the network simplex on rows and columns with mass, with repaired flow rounding."""
    rows, columns = np.flatnonzero(source), np.flatnonzero(target)
    some = np.ascontiguousarray(cost.values[np.ix_(rows, columns)])
    unit = float(some.max()) or 1.0
    flows, u, _ = network_simplex(source[rows], target[columns], some / unit)
    plan = repair_marginals(expand_plan(flows, rows, columns, cost.matrix_shape), source, target)
    proof = feasible_dual(cost, rows, u * unit, source, target)
    return Coupling(plan, plan_cost(cost, plan), proof, 1.0, "network simplex")


def capped_simplex_coupling(cost: Cost, source: Floats, target: Floats) -> Coupling:
    """Return the coupling of the network simplex on costs capped above all optimal pairs, for precision.

    All mass can move along pairs of at most r each, the bottleneck cost. A pair with a cost above r times the number of
    points on one side is never optimal: its mass could take a detour along as many pairs of r. The uncertainty of r
    (mass of 1e−12) shows in the gap: potentials for the lower costs are feasible for the true ones.
    """
    from tightrope.transport.solvers.bottleneck import bottleneck_coupling

    table = Matrix(cost.to_matrix())
    most = 2 * min(np.count_nonzero(source), np.count_nonzero(target)) * bottleneck_coupling(table, source, target).cost
    found = simplex_coupling(Matrix(np.minimum(table.values, most)), source, target)
    return replace(found, cost=plan_cost(table, found.plan))


def expand_plan(flows: csr_array, rows: Integers, columns: Integers, shape: tuple[int, int]) -> csr_array:
    """Return a plan between a subset of the points as one between all."""
    entries = flows.tocoo()
    some, others = entry_indices(entries)
    return sparse_plan(rows[some], columns[others], np.asarray(entries.data), shape)


# An initial solution for arc pricing: solve between boxes of points, then price points with the boxes' potentials.

BOXES = 576
"""Approximate number of boxes: 24 × 24 in the plane."""
NEIGHBORS = 12
"""Arcs of least reduced cost for every point."""


@dataclass(frozen=True, slots=True, eq=False)
class Boxes:
    """Points in boxes: the box of every point, and the mass and center of mass of every box."""

    home: Integers
    mass: Floats
    center: Floats


def group_into_boxes(places: Floats, masses: Floats) -> Boxes:
    """Return boxes of equal size that cover the points, without empty ones."""
    low, span = places.min(axis=0), np.ptp(places, axis=0)
    sides = max(2, round(BOXES ** (1 / places.shape[1])))
    steps = np.minimum(((places - low) / np.where(span > 0, span, 1) * sides).astype(np.int64), sides - 1)
    _, home = np.unique(steps, axis=0, return_inverse=True)
    home = home.ravel()
    mass = np.bincount(home, masses).astype(np.float64, copy=False)
    center = np.stack([np.bincount(home, masses * axis) / mass for axis in places.T], axis=1)
    return Boxes(home, mass, center)


def first_arcs(cost: Points, source: Floats, target: Floats) -> tuple[Integers, Integers]:
    """Return arcs that support a coupling, and for every point the arcs of least reduced cost by box potentials."""
    here, there = group_into_boxes(cost.x, source), group_into_boxes(cost.y, target)
    between = Matrix(Points(here.center, there.center, cost.metric, cost.exponent).to_matrix())
    _, coarse, _ = network_simplex(here.mass, there.mass, between.values)
    rows = Points(cost.x, there.center, cost.metric, cost.exponent).row_potentials(between.column_potentials(coarse))
    columns = cost.column_potentials(rows)
    mirrored = Points(cost.y, cost.x, cost.metric, cost.exponent)
    near, far = _cheapest_arcs(cost, columns), _cheapest_arcs(mirrored, rows)
    # The north-west corner rule with points in the order of their boxes makes the first problem feasible.
    some, others = np.argsort(here.home, kind="stable"), np.argsort(there.home, kind="stable")
    stairs = north_west_staircase(source[some], target[others])
    return (
        np.concatenate([some[stairs.rows], near[0], far[1]]),
        np.concatenate([others[stairs.columns], near[1], far[0]]),
    )


def _cheapest_arcs(cost: Cost, v: Floats) -> tuple[Integers, Integers]:
    """Return, for every row, the columns of least c_ij − v_j."""
    count = min(NEIGHBORS, cost.matrix_shape[1])
    # copies, since a slice would keep its block alive, and all blocks together are the full matrix
    columns = [np.argpartition(costs - v, count - 1, axis=1)[:, :count].copy() for _, costs in cost.row_blocks()]
    return np.repeat(np.arange(cost.matrix_shape[0]), count), np.concatenate(columns).ravel()


PRICING_ROUNDS = 200
CLOSED = 1e-11
"""The proof is complete at this relative gap: ten times the solver's own rounding."""
MOST = 8
"""Maximum number of new arcs a point in one round: those with the largest violation."""
KEPT = 3
"""Number of arcs a point kept after the first round; others return if they are violated."""
HELD = 4
"""Violated pairs are pruned beyond this multiple of the limit, as they could fill the whole matrix."""
Pairs = tuple[Integers, Integers]


def arc_pricing(cost: Points, source: Floats, target: Floats) -> Coupling:
    """Return a coupling of least cost between points, and potentials for all of them.

    Raises ``PrecisionError`` after two hundred rounds; ten usually suffice.
    """
    rows, columns = np.flatnonzero(source), np.flatnonzero(target)
    some = cost.select_points(rows, columns)
    flows, u, v = _solve_by_pricing(some, source[rows], target[columns])
    plan = repair_marginals(expand_plan(flows, rows, columns, cost.matrix_shape), source, target)
    if some.matrix_shape == cost.matrix_shape:  # every pair has been priced
        proof = certify_dual(u - rounding_margin(u, v), v, source, target)
    else:
        proof = feasible_dual(cost, rows, u, source, target)
    return Coupling(plan, plan_cost(cost, plan), proof, 1.0, "arc pricing")


def _solve_by_pricing(cost: Points, source: Floats, target: Floats) -> tuple[csr_array, Floats, Floats]:
    """Return a plan and its potentials, feasible up to rounding."""
    arcs = np.unique(_encode_pairs(first_arcs(cost, source, target), cost))
    for k in range(PRICING_ROUNDS):
        ends = np.divmod(arcs, cost.matrix_shape[1])
        # Zeros become the smallest float, because POT drops zero entries.
        costs = np.maximum(cost.pair_costs(*ends), np.finfo(float).tiny)
        table = coo_array((costs, ends), shape=cost.matrix_shape)
        unit = float(table.data.max()) or 1.0
        flows, u, v = network_simplex(source, target, coo_array(table / unit))
        u, v = u * unit, v * unit
        better, over = profitable_pairs(cost, u, v)
        more = np.union1d(arcs, better)
        if over @ target <= CLOSED * float(u @ source + v @ target) or len(more) == len(arcs):
            return flows, u, v - over
        arcs = more if k else _prune_arcs(cost, more, (u, v), flows)
    raise PrecisionError(
        f"no proof of optimality after {PRICING_ROUNDS} rounds of pricing; give fewer points or a coarser cost"
    )


def _prune_arcs(cost: Points, arcs: Integers, duals: tuple[Floats, Floats], flows: csr_array) -> Integers:
    """Return the used arcs and the arcs of least reduced cost; the initial arcs are no longer needed."""
    (u, v), (rows, columns) = duals, np.divmod(arcs, cost.matrix_shape[1])
    reduced = cost.pair_costs(rows, columns) - u[rows] - v[columns]
    count = KEPT * sum(cost.matrix_shape)
    least = arcs if count >= len(arcs) else arcs[np.argpartition(reduced, count)[:count]]
    return np.union1d(least, _encode_pairs(entry_indices(coo_array(flows)), cost))


def _encode_pairs(pairs: Pairs, cost: Cost) -> Integers:
    """Encode each pair as one number, so that sets of pairs are sorted arrays."""
    return pairs[0] * cost.matrix_shape[1] + pairs[1]


def profitable_pairs(cost: Cost, u: Floats, v: Floats) -> tuple[Integers, Floats]:
    """Return the pairs with the largest u_i + v_j − c_ij > 0, at most ``MOST`` a point; and the excess of each v_j.

    A pair is encoded as i m + j.
    """
    most, over = MOST * sum(cost.matrix_shape), np.zeros(cost.matrix_shape[1])
    found: list[tuple[Integers, Floats]] = []
    held = 0
    for rows, costs in cost.row_blocks():
        saved = np.subtract(u[rows, None], costs, out=costs)
        saved += v
        np.maximum(over, saved.max(axis=0), out=over)
        flat = np.flatnonzero(saved > 0)
        found.append((rows[0] * cost.matrix_shape[1] + flat, saved.ravel()[flat]))
        held += len(flat)
        if held > HELD * most:
            found, held = [_most_profitable(found, most)], most
    return _most_profitable(found, most)[0], over


def _most_profitable(found: list[tuple[Integers, Floats]], most: int) -> tuple[Integers, Floats]:
    """Return at most ``most`` pairs, those with the largest violation."""
    pairs, saved = (np.concatenate(part) for part in zip(*found, strict=True))
    chosen = np.argpartition(-saved, most)[:most] if len(saved) > most else slice(None)
    return pairs[chosen], saved[chosen]
