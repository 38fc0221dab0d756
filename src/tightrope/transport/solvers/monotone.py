"""Monotone rearrangement: sorted places, matched from the lowest on, are optimal for every |x − y|^p with p ≥ 1."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from tightrope.numerics.arrays import Floats, Integers
from tightrope.transport.costs.costs import Cost, whole_masses
from tightrope.transport.costs.points import Line
from tightrope.transport.solvers.result import Coupling, dual, plan_of

# The north-west corner rule: optimal where c_ij + c_i'j' ≤ c_ij' + c_i'j for i < i', j < j' (Monge, KM §5).
#
# The pairs that it uses are a staircase from the first pair to the last, in integers; equalities along it give
# potentials.

MASS_BITS = 61
"""Masses are whole multiples of 2⁻⁶¹; with the mark of the law, a place on the staircase is one 64-bit integer."""
STAIRS_AT_ONCE = 1 << 20
LONG = np.finfo(np.longdouble)
LongFloats = np.ndarray[tuple[int], np.dtype[np.longdouble]]
LongCosts = Callable[[Integers, Integers], LongFloats]


@dataclass(frozen=True, slots=True, eq=False)
class Staircase:
    """Pair k is (rows[k], columns[k]), holds masses[k] ≥ 0, and either the row or the column is one more at k + 1."""

    rows: Integers
    columns: Integers
    masses: Floats

    @property
    def size(self) -> int:
        """How many pairs: n + m − 1."""
        return len(self.rows)


def staircase(source: Floats, target: Floats) -> Staircase:
    """The north-west corner rule for two laws.

    >>> stairs = staircase(np.array([0.25, 0.75]), np.array([0.5, 0.5]))
    >>> stairs.rows.tolist(), stairs.columns.tolist(), stairs.masses.tolist()
    ([0, 1, 1], [0, 0, 1], [0.25, 0.25, 0.5])
    """
    ends = np.cumsum(whole_masses(source, MASS_BITS))[:-1] * 2
    goals = np.cumsum(whole_masses(target, MASS_BITS))[:-1] * 2 + 1
    marked = np.sort(np.concatenate([ends, goals]), kind="stable")
    right = marked & 1
    columns = np.concatenate([[0], np.cumsum(right)])
    rows = np.arange(len(columns)) - columns
    masses = np.diff(marked >> 1, prepend=0, append=1 << MASS_BITS)
    return Staircase(rows, columns, np.ldexp(masses.astype(np.float64), -MASS_BITS))


def potentials(stairs: Staircase, costs: LongCosts) -> tuple[Floats, Floats, float]:
    """Potentials with u_i + v_j = c_ij on the staircase, starting at v_0 = 0, and how much rounding adds to a sum.

    For a Monge cost u_i + v_j ≤ c_ij follows for every pair.
    """
    u, v = np.empty(stairs.rows[-1] + 1), np.empty(stairs.columns[-1] + 1)
    before = high = costs(stairs.rows[:1], stairs.columns[:1])[0]
    right = np.longdouble(0)
    u[0], v[0], largest = high, right, float(high)
    for start in range(1, stairs.size, STAIRS_AT_ONCE):
        rows, columns = stairs.rows[start : start + STAIRS_AT_ONCE], stairs.columns[start : start + STAIRS_AT_ONCE]
        here = costs(rows, columns)
        rises, before = np.diff(here, prepend=before), here[-1]
        turns = np.diff(columns, prepend=stairs.columns[start - 1]).astype(bool)
        down, across = high + np.cumsum(rises[~turns]), right + np.cumsum(rises[turns])
        u[rows[~turns]], v[columns[turns]] = down, across
        high, right = (down[-1] if len(down) else high), (across[-1] if len(across) else right)
        largest = max(largest, float(here.max()), float(np.abs(u[rows]).max()), float(np.abs(v[columns]).max()))
    return u, v, largest * (2.0**-51 + stairs.size * 16 * float(LONG.eps))


def is_monge(costs: Floats) -> bool:
    """Whether every square of neighbours satisfies the inequality, up to rounding: then all squares do."""
    square = costs[:-1, :-1] + costs[1:, 1:] - costs[:-1, 1:] - costs[1:, :-1]
    return bool((square <= 4 * np.finfo(float).eps * (costs[:-1, 1:] + costs[1:, :-1])).all())


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
    proof = dual(_in_given_order(u - doubt, rows), _in_given_order(v, columns), source, target)
    spent = line_cost(cost, stairs, rows, columns)
    plan = plan_of(rows[stairs.rows], columns[stairs.columns], stairs.masses, cost.shape)
    return Coupling(plan, spent, proof, 1.0, "monotone rearrangement")


def line_cost(cost: Cost, stairs: Staircase, rows: Integers, columns: Integers) -> float:
    """Σ γ_ij c_ij along the staircase of the sorted places."""
    moved = np.flatnonzero(stairs.masses)
    each = cost.pairs(rows[stairs.rows[moved]], columns[stairs.columns[moved]])
    return float((stairs.masses[moved] * each).sum())


def _in_given_order(values: Floats, order: Integers) -> Floats:
    """``values`` of the sorted places, in the order in which the places came."""
    found = np.empty_like(values)
    found[order] = values
    return found
