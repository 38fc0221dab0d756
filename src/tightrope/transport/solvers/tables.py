"""Costs that are small enough to be written down: the north-west corner rule where it is optimal, else POT."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from scipy.sparse import csr_array

from tightrope.numerics.arrays import Floats, Integers
from tightrope.transport.costs.costs import Cost, Matrix
from tightrope.transport.libraries.pot import simplex
from tightrope.transport.proofs.feasible import feasible_dual
from tightrope.transport.proofs.result import Coupling, indices, plan_cost, plan_of, repaired
from tightrope.transport.solvers.north_west import LongFloats, is_monge, potentials, staircase


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
