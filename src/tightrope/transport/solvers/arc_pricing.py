"""Couplings by the network simplex: on a whole table, or by column generation for many points.

For many points: solve on few arcs, price all pairs with the dual potentials, add violated pairs, repeat. If
u_i + v_j ≤ c_ij for all pairs, the coupling is optimal. The matrix is computed in blocks. Five thousand points take six
rounds, the first on eighteen arcs per point, the others on eight.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass, replace

import numpy as np
from scipy.sparse import coo_array, csr_array

from tightrope.errors import MissingExtraError, PrecisionError
from tightrope.numerics.arrays import Floats, Integers
from tightrope.transport.costs.costs import Cost, Matrix
from tightrope.transport.costs.points import Points
from tightrope.transport.solvers.closed_form import LongFloats, is_monge, north_west_staircase, staircase_potentials
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

# 1. Costs small enough for a table: the north-west corner rule if it is optimal, otherwise POT.

MAX_PIVOTS = 10**9
"""Iteration limit of the solver; problems that fit in memory stay far below."""


def network_simplex(source: Floats, target: Floats, costs: Floats | coo_array) -> tuple[csr_array, Floats, Floats]:
    """Return a plan of least cost and the potentials u and v; all masses must be positive.

    Marginals are exact to rounding errors of the solver's sums. Raises ``PrecisionError`` if the solver fails,
    ``MissingExtraError`` if POT is not installed.
    """
    with warnings.catch_warnings(record=True) as caught_warnings:
        warnings.simplefilter("always")
        try:
            from ot.lp import emd
        except ImportError:
            raise MissingExtraError("POT", "transport") from None
        plan, log = emd(source, target, costs, numItermax=MAX_PIVOTS, log=True)
    if log.get("result_code", 1) != 1 or log.get("warning"):
        reason = log.get("warning") or "; ".join(str(warning.message) for warning in caught_warnings)
        raise PrecisionError(f"the network simplex found no optimum ({reason}); scale the costs to about 1")
    return csr_array(plan), np.asarray(log["u"]), np.asarray(log["v"])


def table_coupling(cost: Cost, source: Floats, target: Floats) -> Coupling:
    """Return a coupling of least cost between the points with mass, and potentials for all points."""
    table = Matrix(cost.to_matrix())
    method = north_west_coupling if is_monge(table.values) else simplex_coupling
    return method(table, source, target)


def north_west_coupling(cost: Matrix, source: Floats, target: Floats) -> Coupling:
    """Return the coupling of the north-west corner rule: without a solver, for any order of magnitude (KM §5)."""
    stairs = north_west_staircase(source, target)

    def long_costs(row_indices: Integers, column_indices: Integers) -> LongFloats:
        return cost.values[row_indices, column_indices].astype(np.longdouble)

    u, _, _ = staircase_potentials(stairs, long_costs)
    plan = sparse_plan(stairs.rows, stairs.columns, stairs.masses, cost.matrix_shape)
    proof = feasible_dual(cost, np.arange(len(u)), u, source, target)
    return Coupling(plan, plan_cost(cost, plan), proof, 1.0, "north-west corner rule")


def simplex_coupling(cost: Matrix, source: Floats, target: Floats) -> Coupling:
    """Return the coupling of the network simplex on rows and columns with mass; its marginals are repaired."""
    rows, columns = np.flatnonzero(source), np.flatnonzero(target)
    used_costs = np.ascontiguousarray(cost.values[np.ix_(rows, columns)])
    unit = float(used_costs.max()) or 1.0
    flows, u, _ = network_simplex(source[rows], target[columns], used_costs / unit)
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
    cap = 2 * min(np.count_nonzero(source), np.count_nonzero(target)) * bottleneck_coupling(table, source, target).cost
    capped = simplex_coupling(Matrix(np.minimum(table.values, cap)), source, target)
    return replace(capped, cost=plan_cost(table, capped.plan))


def expand_plan(flows: csr_array, rows: Integers, columns: Integers, shape: tuple[int, int]) -> csr_array:
    """Return the plan between all points for a plan between some of them."""
    entries = flows.tocoo()
    entry_rows, entry_columns = entry_indices(entries)
    return sparse_plan(rows[entry_rows], columns[entry_columns], np.asarray(entries.data), shape)


# 2. An initial solution for arc pricing: solve between boxes of points, then price points with the boxes' potentials.

BOXES = 576
"""Approximate number of boxes: 24 × 24 in the plane."""
NEIGHBORS = 12
"""Number of arcs of least reduced cost for every point."""


@dataclass(frozen=True, slots=True, eq=False)
class Boxes:
    """Points in boxes: ``home`` is the box of every point; ``mass`` and ``center`` of mass are those of every box."""

    home: Integers
    mass: Floats
    center: Floats


def group_into_boxes(points: Floats, masses: Floats) -> Boxes:
    """Return boxes of equal size that cover the points, without empty ones."""
    low, span = points.min(axis=0), np.ptp(points, axis=0)
    boxes_per_side = max(2, round(BOXES ** (1 / points.shape[1])))
    grid_cells = np.minimum(
        ((points - low) / np.where(span > 0, span, 1) * boxes_per_side).astype(np.int64), boxes_per_side - 1
    )
    _, home = np.unique(grid_cells, axis=0, return_inverse=True)
    home = home.ravel()
    mass = np.bincount(home, masses).astype(np.float64, copy=False)
    center = np.stack([np.bincount(home, masses * axis) / mass for axis in points.T], axis=1)
    return Boxes(home, mass, center)


def initial_arcs(cost: Points, source: Floats, target: Floats) -> tuple[Integers, Integers]:
    """Return arcs that support a coupling, and for every point the arcs of least reduced cost by box potentials."""
    source_boxes, target_boxes = group_into_boxes(cost.x, source), group_into_boxes(cost.y, target)
    box_costs = Matrix(Points(source_boxes.center, target_boxes.center, cost.metric, cost.exponent).to_matrix())
    _, box_potentials, _ = network_simplex(source_boxes.mass, target_boxes.mass, box_costs.values)
    row_potentials = Points(cost.x, target_boxes.center, cost.metric, cost.exponent).row_potentials(
        box_costs.column_potentials(box_potentials)
    )
    column_potentials = cost.column_potentials(row_potentials)
    mirrored = Points(cost.y, cost.x, cost.metric, cost.exponent)
    arcs_from_sources, arcs_from_targets = (
        _cheapest_arcs(cost, column_potentials),
        _cheapest_arcs(mirrored, row_potentials),
    )
    # The north-west corner rule with points in the order of their boxes makes the first problem feasible.
    source_order, target_order = (
        np.argsort(source_boxes.home, kind="stable"),
        np.argsort(target_boxes.home, kind="stable"),
    )
    stairs = north_west_staircase(source[source_order], target[target_order])
    return (
        np.concatenate([source_order[stairs.rows], arcs_from_sources[0], arcs_from_targets[1]]),
        np.concatenate([target_order[stairs.columns], arcs_from_sources[1], arcs_from_targets[0]]),
    )


def _cheapest_arcs(cost: Cost, v: Floats) -> tuple[Integers, Integers]:
    """Return, for every row, the columns of least c_ij − v_j."""
    count = min(NEIGHBORS, cost.matrix_shape[1])
    # copies, since a slice would keep its block alive, and all blocks together are the full matrix
    columns = [np.argpartition(costs - v, count - 1, axis=1)[:, :count].copy() for _, costs in cost.row_blocks()]
    return np.repeat(np.arange(cost.matrix_shape[0]), count), np.concatenate(columns).ravel()


# 3. Arc pricing.

PRICING_ROUNDS = 200
GAP_TOLERANCE = 1e-11
"""The proof is complete at this relative gap: ten times the solver's own rounding."""
MAX_NEW_ARCS = 8
"""Maximum number of new arcs per point in one round: those with the largest violation."""
KEPT_ARCS = 3
"""Number of arcs per point that are kept after the first round; others return if they are violated."""
PRUNING_FACTOR = 4
"""Violated pairs are pruned if there are this many times the maximum: they could fill the whole matrix."""
Pairs = tuple[Integers, Integers]


def arc_pricing(cost: Points, source: Floats, target: Floats) -> Coupling:
    """Return a coupling of least cost between points, and potentials for all of them.

    Raises ``PrecisionError`` after two hundred rounds; ten usually suffice.
    """
    rows, columns = np.flatnonzero(source), np.flatnonzero(target)
    used_cost = cost.select_points(rows, columns)
    used_source, used_target = source[rows], target[columns]
    arcs = np.unique(_encode_pairs(initial_arcs(used_cost, used_source, used_target), used_cost))
    for round_number in range(PRICING_ROUNDS):
        pairs = np.divmod(arcs, used_cost.matrix_shape[1])
        # Zeros become the smallest float, because POT drops zero entries.
        costs = np.maximum(used_cost.pair_costs(*pairs), np.finfo(float).tiny)
        table = coo_array((costs, pairs), shape=used_cost.matrix_shape)
        unit = float(table.data.max()) or 1.0
        flows, u, v = network_simplex(used_source, used_target, coo_array(table / unit))
        u, v = u * unit, v * unit
        violated, excess = profitable_pairs(used_cost, u, v)
        extended = np.union1d(arcs, violated)
        is_proven = excess @ used_target <= GAP_TOLERANCE * float(u @ used_source + v @ used_target)
        if is_proven or len(extended) == len(arcs):
            v = v - excess
            break
        arcs = extended
        kept = KEPT_ARCS * sum(used_cost.matrix_shape)
        if not round_number and kept < len(arcs):
            # After the first round, keep the arcs in use and those of least reduced cost.
            i, j = np.divmod(arcs, used_cost.matrix_shape[1])
            reduced_costs = used_cost.pair_costs(i, j) - u[i] - v[j]
            used_arcs = _encode_pairs(entry_indices(coo_array(flows)), used_cost)
            arcs = np.union1d(arcs[np.argpartition(reduced_costs, kept)[:kept]], used_arcs)
    else:
        raise PrecisionError(
            f"no proof of optimality after {PRICING_ROUNDS} rounds of pricing; give fewer points or a coarser cost"
        )
    plan = repair_marginals(expand_plan(flows, rows, columns, cost.matrix_shape), source, target)
    if used_cost.matrix_shape == cost.matrix_shape:  # every pair has been priced
        proof = certify_dual(u - rounding_margin(u, v), v, source, target)
    else:
        proof = feasible_dual(cost, rows, u, source, target)
    return Coupling(plan, plan_cost(cost, plan), proof, 1.0, "arc pricing")


def _encode_pairs(pairs: Pairs, cost: Cost) -> Integers:
    """Encode each pair as one number, so that sets of pairs are sorted arrays."""
    return pairs[0] * cost.matrix_shape[1] + pairs[1]


def profitable_pairs(cost: Cost, u: Floats, v: Floats) -> tuple[Integers, Floats]:
    """Return the pairs with the largest u_i + v_j − c_ij > 0, and the largest such excess of each column.

    There are at most ``MAX_NEW_ARCS`` pairs per point.

    A pair is encoded as i m + j.
    """
    limit, excess = MAX_NEW_ARCS * sum(cost.matrix_shape), np.zeros(cost.matrix_shape[1])
    found: list[tuple[Integers, Floats]] = []
    count = 0
    for rows, costs in cost.row_blocks():
        violation = np.subtract(u[rows, None], costs, out=costs)
        violation += v
        np.maximum(excess, violation.max(axis=0), out=excess)
        flat = np.flatnonzero(violation > 0)
        found.append((rows[0] * cost.matrix_shape[1] + flat, violation.ravel()[flat]))
        count += len(flat)
        if count > PRUNING_FACTOR * limit:
            found, count = [_most_profitable(found, limit)], limit
    return _most_profitable(found, limit)[0], excess


def _most_profitable(found: list[tuple[Integers, Floats]], limit: int) -> tuple[Integers, Floats]:
    """Return at most ``limit`` pairs, those with the largest violation."""
    pairs, violation = (np.concatenate(part) for part in zip(*found, strict=True))
    selected = np.argpartition(-violation, limit)[:limit] if len(violation) > limit else slice(None)
    return pairs[selected], violation[selected]
