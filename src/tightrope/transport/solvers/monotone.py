"""Monotone rearrangement: matching points in sorted order is optimal for every |x − y|^p with p ≥ 1."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from tightrope.numerics.arrays import Floats, Integers
from tightrope.transport.costs.costs import Cost, whole_masses
from tightrope.transport.costs.points import Line
from tightrope.transport.solvers.result import Coupling, certify_dual, sparse_plan

# The north-west corner rule: optimal where c_ij + c_i'j' ≤ c_ij' + c_i'j for i < i', j < j' (Monge, KM §5).
#
# The pairs that it uses form a staircase from the first pair to the last, in integers; equality along it gives
# potentials.

MASS_BITS = 61
"""Masses are multiples of 2⁻⁶¹; with one bit for the distribution, a position on the staircase is a 64-bit integer."""
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
    def entry_count(self) -> int:
        """Number of pairs: n + m − 1."""
        return len(self.rows)


def north_west_staircase(source: Floats, target: Floats) -> Staircase:
    """Return the north-west corner rule for two distributions.

    >>> stairs = north_west_staircase(np.array([0.25, 0.75]), np.array([0.5, 0.5]))
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


def staircase_potentials(stairs: Staircase, costs: LongCosts) -> tuple[Floats, Floats, float]:
    """Return potentials with u_i + v_j = c_ij on the staircase, v_0 = 0, and the rounding error of a sum.

    For a Monge cost u_i + v_j ≤ c_ij follows for every pair.
    """
    u, v = np.empty(stairs.rows[-1] + 1), np.empty(stairs.columns[-1] + 1)
    before = high = costs(stairs.rows[:1], stairs.columns[:1])[0]
    right = np.longdouble(0)
    u[0], v[0], largest = high, right, float(high)
    for start in range(1, stairs.entry_count, STAIRS_AT_ONCE):
        rows, columns = stairs.rows[start : start + STAIRS_AT_ONCE], stairs.columns[start : start + STAIRS_AT_ONCE]
        here = costs(rows, columns)
        rises, before = np.diff(here, prepend=before), here[-1]
        turns = np.diff(columns, prepend=stairs.columns[start - 1]).astype(bool)
        down, across = high + np.cumsum(rises[~turns]), right + np.cumsum(rises[turns])
        u[rows[~turns]], v[columns[turns]] = down, across
        high, right = (down[-1] if len(down) else high), (across[-1] if len(across) else right)
        largest = max(largest, float(here.max()), float(np.abs(u[rows]).max()), float(np.abs(v[columns]).max()))
    return u, v, largest * (2.0**-51 + stairs.entry_count * 16 * float(LONG.eps))


def is_monge(costs: Floats) -> bool:
    """Return whether all adjacent squares satisfy the Monge inequality, up to rounding; then all squares do."""
    square = costs[:-1, :-1] + costs[1:, 1:] - costs[:-1, 1:] - costs[1:, :-1]
    return bool((square <= 4 * np.finfo(float).eps * (costs[:-1, 1:] + costs[1:, :-1])).all())


def monotone_coupling(cost: Line, source: Floats, target: Floats) -> Coupling:
    """Return the monotone coupling with potentials, in the time of sorting and in linear memory."""
    rows, columns = np.argsort(cost.x, kind="stable"), np.argsort(cost.y, kind="stable")
    stairs = north_west_staircase(source[rows], target[columns])
    x, y = cost.x[rows], cost.y[columns]

    def long_costs(some: Integers, others: Integers) -> LongFloats:
        steps: LongFloats = np.abs(x[some].astype(np.longdouble) - y[others])
        raised: LongFloats = steps if cost.exponent == 1 else steps**cost.exponent
        return raised

    u, v, doubt = staircase_potentials(stairs, long_costs)
    proof = certify_dual(_in_given_order(u - doubt, rows), _in_given_order(v, columns), source, target)
    spent = line_cost(cost, stairs, rows, columns)
    plan = sparse_plan(rows[stairs.rows], columns[stairs.columns], stairs.masses, cost.matrix_shape)
    return Coupling(plan, spent, proof, 1.0, "monotone rearrangement")


def line_cost(cost: Cost, stairs: Staircase, rows: Integers, columns: Integers) -> float:
    """Return Σ γ_ij c_ij along the staircase of the sorted points."""
    moved = np.flatnonzero(stairs.masses)
    each = cost.pair_costs(rows[stairs.rows[moved]], columns[stairs.columns[moved]])
    return float((stairs.masses[moved] * each).sum())


def _in_given_order(values: Floats, order: Integers) -> Floats:
    """Return ``values`` of the sorted points, in the original order."""
    found = np.empty_like(values)
    found[order] = values
    return found
