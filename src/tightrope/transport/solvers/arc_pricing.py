"""Transport between many points: solve on few arcs, price all pairs with the duals, add those that pay, repeat.

When no pair has u_i + v_j above c_ij, the coupling is optimal among all pairs. The matrix is never built: a pass over
the pairs holds one block of it. Five thousand points take six rounds, the first on eighteen arcs a point, the others
on eight.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from scipy.sparse import coo_array, csr_array

from tightrope.errors import PrecisionError
from tightrope.numerics.arrays import Floats, Integers
from tightrope.transport.costs.costs import Cost, Matrix
from tightrope.transport.costs.points import Points
from tightrope.transport.solvers.libraries import simplex
from tightrope.transport.solvers.monotone import LongFloats, is_monge, potentials, staircase
from tightrope.transport.solvers.result import (
    Coupling,
    dual,
    feasible_dual,
    indices,
    margin,
    plan_cost,
    plan_of,
    repaired,
)

# Costs that are small enough to be written down: the north-west corner rule where it is optimal, else POT.


def table_coupling(cost: Cost, source: Floats, target: Floats) -> Coupling:
    """A coupling of least cost between the points that have mass, and potentials for all points."""
    table = Matrix(cost.matrix())
    method = corner if is_monge(table.values) else dense
    return method(table, source, target)


def corner(cost: Matrix, source: Floats, target: Floats) -> Coupling:
    """The north-west corner rule: no solver, any order of magnitude (KM §5)."""
    stairs = staircase(source, target)

    def long_costs(some: Integers, others: Integers) -> LongFloats:
        return cost.values[some, others].astype(np.longdouble)

    u, _, _ = potentials(stairs, long_costs)
    plan = plan_of(stairs.rows, stairs.columns, stairs.masses, cost.shape)
    proof = feasible_dual(cost, np.arange(len(u)), u, source, target)
    return Coupling(plan, plan_cost(cost, plan), proof, 1.0, "north-west corner rule")


def dense(cost: Matrix, source: Floats, target: Floats) -> Coupling:
    """The network simplex on the rows and columns with mass; roundings of its flows are repaired."""
    rows, columns = np.flatnonzero(source), np.flatnonzero(target)
    some = np.ascontiguousarray(cost.values[np.ix_(rows, columns)])
    unit = float(some.max()) or 1.0
    flows, u, _ = simplex(source[rows], target[columns], some / unit)
    plan = repaired(spread(flows, rows, columns, cost.shape), source, target)
    proof = feasible_dual(cost, rows, u * unit, source, target)
    return Coupling(plan, plan_cost(cost, plan), proof, 1.0, "network simplex")


def capped(cost: Cost, source: Floats, target: Floats) -> Coupling:
    """The network simplex on costs that are cut off where no optimal plan goes, so that they keep their digits.

    All mass can move along pairs of at most r each, the least largest cost. A pair of more than r times the number of
    points on one side is never worth its cost: what it moves could go along so many pairs of r. What leaves r in doubt
    (mass of 1e−12) shows in the gap: potentials for the lower costs are potentials for the true ones.
    """
    from tightrope.transport.solvers.bottleneck import bottleneck

    table = Matrix(cost.matrix())
    most = 2 * min(np.count_nonzero(source), np.count_nonzero(target)) * bottleneck(table, source, target).cost
    found = dense(Matrix(np.minimum(table.values, most)), source, target)
    return replace(found, cost=plan_cost(table, found.plan))


def spread(flows: csr_array, rows: Integers, columns: Integers, shape: tuple[int, int]) -> csr_array:
    """A plan between some points as one between all."""
    entries = flows.tocoo()
    some, others = indices(entries)
    return plan_of(rows[some], columns[others], np.asarray(entries.data), shape)


# A good start for arc pricing: solve between boxes of points, then price points with the potentials of their boxes.

BOXES = 576
"""About so many boxes: 24 × 24 in the plane."""
NEIGHBOURS = 12
"""Arcs of least reduced cost that every point brings."""


@dataclass(frozen=True, slots=True, eq=False)
class Boxes:
    """Points in boxes: the box of every point, and for every box its mass and centre of mass."""

    home: Integers
    mass: Floats
    centre: Floats


def boxed(places: Floats, masses: Floats) -> Boxes:
    """Boxes of equal size that cover the points; empty ones are left out."""
    low, span = places.min(axis=0), np.ptp(places, axis=0)
    sides = max(2, round(BOXES ** (1 / places.shape[1])))
    steps = np.minimum(((places - low) / np.where(span > 0, span, 1) * sides).astype(np.int64), sides - 1)
    _, home = np.unique(steps, axis=0, return_inverse=True)
    home = home.ravel()
    mass = np.bincount(home, masses).astype(np.float64, copy=False)
    centre = np.stack([np.bincount(home, masses * axis) / mass for axis in places.T], axis=1)
    return Boxes(home, mass, centre)


def first_arcs(cost: Points, source: Floats, target: Floats) -> tuple[Integers, Integers]:
    """Pairs that hold a coupling, and for every point those of least reduced cost at the potentials of the boxes."""
    here, there = boxed(cost.x, source), boxed(cost.y, target)
    between = Matrix(Points(here.centre, there.centre, cost.metric, cost.exponent).matrix())
    _, coarse, _ = simplex(here.mass, there.mass, between.values)
    rows = Points(cost.x, there.centre, cost.metric, cost.exponent).row_room(between.column_room(coarse))
    columns = cost.column_room(rows)
    mirrored = Points(cost.y, cost.x, cost.metric, cost.exponent)
    near, far = _cheapest(cost, columns), _cheapest(mirrored, rows)
    # The north-west corner rule with points in the order of their boxes: it makes the first problem feasible.
    some_coupling_rows, some_coupling_columns = (
        np.argsort(here.home, kind="stable"),
        np.argsort(there.home, kind="stable"),
    )
    stairs = staircase(source[some_coupling_rows], target[some_coupling_columns])
    return _joined((some_coupling_rows[stairs.rows], some_coupling_columns[stairs.columns]), near, (far[1], far[0]))


def _joined(*pairs: tuple[Integers, Integers]) -> tuple[Integers, Integers]:
    return np.concatenate([one for one, _ in pairs]), np.concatenate([other for _, other in pairs])


def _cheapest(cost: Cost, v: Floats) -> tuple[Integers, Integers]:
    """For every row the columns of least c_ij − v_j."""
    count = min(NEIGHBOURS, cost.shape[1])
    # copies, since a slice would keep the block alive: all of them are the matrix that is not to be built
    columns = [np.argpartition(costs - v, count - 1, axis=1)[:, :count].copy() for _, costs in cost.blocks()]
    return np.repeat(np.arange(cost.shape[0]), count), np.concatenate(columns).ravel()


PRICING_ROUNDS = 200
CLOSED = 1e-11
"""The proof is complete where it misses the cost by this share: ten times the solver's own roundings."""
MOST = 8
"""At most so many new arcs a point in one round: those that save most."""
KEPT = 3
"""So many arcs a point stay after the first round; any of them comes back where it pays."""
HELD = 4
"""Times as many pairs that pay are held before the others of them are let go: together they can be the whole matrix."""
Pairs = tuple[Integers, Integers]


def arc_pricing(cost: Points, source: Floats, target: Floats) -> Coupling:
    """A coupling of least cost between points, and potentials for all of them.

    Raises ``PrecisionError`` where two hundred rounds do not suffice; ten are many.
    """
    rows, columns = np.flatnonzero(source), np.flatnonzero(target)
    some = cost.take(rows, columns)
    flows, u, v = _optimum(some, source[rows], target[columns])
    plan = repaired(spread(flows, rows, columns, cost.shape), source, target)
    if some.shape == cost.shape:  # every pair has been priced
        proof = dual(u - margin(u, v), v, source, target)
    else:
        proof = feasible_dual(cost, rows, u, source, target)
    return Coupling(plan, plan_cost(cost, plan), proof, 1.0, "arc pricing")


def _optimum(cost: Points, source: Floats, target: Floats) -> tuple[csr_array, Floats, Floats]:
    """A plan and the potentials that prove it, feasible up to roundings."""
    arcs = np.unique(_numbers(first_arcs(cost, source, target), cost))
    for k in range(PRICING_ROUNDS):
        table = _table(cost, arcs)
        unit = float(table.data.max()) or 1.0
        flows, u, v = simplex(source, target, coo_array(table / unit))
        u, v = u * unit, v * unit
        better, over = paying(cost, u, v)
        more = np.union1d(arcs, better)
        if over @ target <= CLOSED * float(u @ source + v @ target) or len(more) == len(arcs):
            return flows, u, v - over
        arcs = more if k else _lean(cost, more, (u, v), flows)
    raise PrecisionError(
        f"no proof of optimality after {PRICING_ROUNDS} rounds of pricing; give fewer points or a coarser cost"
    )


def _lean(cost: Points, arcs: Integers, duals: tuple[Floats, Floats], flows: csr_array) -> Integers:
    """The arcs in use and those of least reduced cost: the first potentials are good, the rest did their duty."""
    (u, v), (rows, columns) = duals, np.divmod(arcs, cost.shape[1])
    reduced = cost.pairs(rows, columns) - u[rows] - v[columns]
    count = KEPT * sum(cost.shape)
    least = arcs if count >= len(arcs) else arcs[np.argpartition(reduced, count)[:count]]
    return np.union1d(least, _numbers(indices(coo_array(flows)), cost))


def _numbers(pairs: Pairs, cost: Cost) -> Integers:
    """A pair as one number, so that sets of pairs are sorted arrays."""
    return pairs[0] * cost.shape[1] + pairs[1]


def _table(cost: Points, arcs: Integers) -> coo_array:
    """The costs of the arcs; POT takes a zero for no arc, so that the least positive number stands in."""
    rows, columns = np.divmod(arcs, cost.shape[1])
    costs = np.maximum(cost.pairs(rows, columns), np.finfo(float).tiny)
    return coo_array((costs, (rows, columns)), shape=cost.shape)


def paying(cost: Cost, u: Floats, v: Floats) -> tuple[Integers, Floats]:
    """Pairs with u_i + v_j > c_ij, those that save most, at most ``MOST`` a point; and how far each v_j is too large.

    A pair is one number, i m + j.
    """
    most, over = MOST * sum(cost.shape), np.zeros(cost.shape[1])
    found: list[tuple[Integers, Floats]] = []
    held = 0
    for rows, costs in cost.blocks():
        saved = np.subtract(u[rows, None], costs, out=costs)
        saved += v
        np.maximum(over, saved.max(axis=0), out=over)
        flat = np.flatnonzero(saved > 0)
        found.append((rows[0] * cost.shape[1] + flat, saved.ravel()[flat]))
        held += len(flat)
        if held > HELD * most:
            found, held = [_largest(found, most)], most
    return _largest(found, most)[0], over


def _largest(found: list[tuple[Integers, Floats]], most: int) -> tuple[Integers, Floats]:
    """At most so many pairs, those that save most."""
    pairs, saved = (np.concatenate(part) for part in zip(*found, strict=True))
    chosen = np.argpartition(-saved, most)[:most] if len(saved) > most else slice(None)
    return pairs[chosen], saved[chosen]
