"""Monotone rearrangement: sorted places, matched from the lowest on, are optimal for every |x − y|^p with p ≥ 1."""

from __future__ import annotations

import numpy as np

from tightrope.numerics.arrays import Floats, Integers
from tightrope.transport.costs.costs import Cost
from tightrope.transport.costs.real_line import Line
from tightrope.transport.proofs.certificates import dual
from tightrope.transport.proofs.result import Coupling, plan_of
from tightrope.transport.solvers.north_west import LongFloats, Staircase, potentials, staircase


def monotone(cost: Line, source: Floats, target: Floats) -> Coupling:
    """The monotone coupling, in the order of sorting and in linear memory, with the potentials of its staircase."""
    rows, columns = np.argsort(cost.x, kind="stable"), np.argsort(cost.y, kind="stable")
    stairs = staircase(source[rows], target[columns])
    x, y = cost.x[rows], cost.y[columns]

    def long_costs(some: Integers, others: Integers) -> LongFloats:
        steps: LongFloats = np.abs(x[some].astype(np.longdouble) - y[others])
        raised: LongFloats = steps if cost.exponent == 1 else steps**cost.exponent
        return raised

    u, v, doubt = potentials(stairs, long_costs)
    proof = dual(_placed(u - doubt, rows), _placed(v, columns), source, target)
    spent = line_cost(cost, stairs, rows, columns)
    plan = plan_of(rows[stairs.rows], columns[stairs.columns], stairs.masses, cost.shape)
    return Coupling(plan, spent, proof, 1.0, "monotone rearrangement")


def line_cost(cost: Cost, stairs: Staircase, rows: Integers, columns: Integers) -> float:
    """Σ γ_ij c_ij along the staircase of the sorted places."""
    moved = np.flatnonzero(stairs.masses)
    each = cost.pairs(rows[stairs.rows[moved]], columns[stairs.columns[moved]])
    return float((stairs.masses[moved] * each).sum())


def _placed(values: Floats, order: Integers) -> Floats:
    """``values`` of the sorted places, in the order in which the places came."""
    found = np.empty_like(values)
    found[order] = values
    return found
