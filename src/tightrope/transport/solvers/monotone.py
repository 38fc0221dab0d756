"""Monotone rearrangement: matching points in sorted order is optimal for every |x − y|^p with p ≥ 1."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from tightrope.numerics.arrays import Floats, Integers
from tightrope.transport.costs.costs import Cost, round_to_integer_masses
from tightrope.transport.costs.points import Line
from tightrope.transport.solvers.result import Coupling, certify_dual, sparse_plan

# The north-west corner rule: optimal where c_ij + c_i'j' ≤ c_ij' + c_i'j for i < i', j < j' (Monge, KM §5).
#
# The pairs that it uses form a staircase from the first pair to the last; masses on it are integers. Potentials follow
# from u_i + v_j = c_ij along the staircase.

MASS_BITS = 61
"""Masses are multiples of 2⁻⁶¹; with one bit that marks source or target, a cumulative mass is a 64-bit integer."""
BLOCK_LENGTH = 1 << 20
LONG_DOUBLE = np.finfo(np.longdouble)
LongFloats = np.ndarray[tuple[int], np.dtype[np.longdouble]]
LongCosts = Callable[[Integers, Integers], LongFloats]


@dataclass(frozen=True, slots=True, eq=False)
class Staircase:
    """Pair k is (rows[k], columns[k]) with masses[k] ≥ 0; from k to k + 1 the row or the column increases by 1."""

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
    source_ends = np.cumsum(round_to_integer_masses(source, MASS_BITS))[:-1] * 2
    target_ends = np.cumsum(round_to_integer_masses(target, MASS_BITS))[:-1] * 2 + 1
    marked_ends = np.sort(np.concatenate([source_ends, target_ends]), kind="stable")
    is_target = marked_ends & 1
    columns = np.concatenate([[0], np.cumsum(is_target)])
    rows = np.arange(len(columns)) - columns
    masses = np.diff(marked_ends >> 1, prepend=0, append=1 << MASS_BITS)
    return Staircase(rows, columns, np.ldexp(masses.astype(np.float64), -MASS_BITS))


def staircase_potentials(stairs: Staircase, costs: LongCosts) -> tuple[Floats, Floats, float]:
    """Return potentials with u_i + v_j = c_ij on the staircase, v_0 = 0, and the rounding error of a sum.

    For a Monge cost u_i + v_j ≤ c_ij follows for every pair.
    """
    u, v = np.empty(stairs.rows[-1] + 1), np.empty(stairs.columns[-1] + 1)
    previous_cost = u_current = costs(stairs.rows[:1], stairs.columns[:1])[0]
    v_current = np.longdouble(0)
    u[0], v[0], magnitude = u_current, v_current, float(u_current)
    for start in range(1, stairs.entry_count, BLOCK_LENGTH):
        rows, columns = stairs.rows[start : start + BLOCK_LENGTH], stairs.columns[start : start + BLOCK_LENGTH]
        block_costs = costs(rows, columns)
        increments, previous_cost = np.diff(block_costs, prepend=previous_cost), block_costs[-1]
        is_column_step = np.diff(columns, prepend=stairs.columns[start - 1]).astype(bool)
        new_u, new_v = (
            u_current + np.cumsum(increments[~is_column_step]),
            v_current + np.cumsum(increments[is_column_step]),
        )
        u[rows[~is_column_step]], v[columns[is_column_step]] = new_u, new_v
        u_current, v_current = (new_u[-1] if len(new_u) else u_current), (new_v[-1] if len(new_v) else v_current)
        magnitude = max(
            magnitude, float(block_costs.max()), float(np.abs(u[rows]).max()), float(np.abs(v[columns]).max())
        )
    return u, v, magnitude * (2.0**-51 + stairs.entry_count * 16 * float(LONG_DOUBLE.eps))


def is_monge(costs: Floats) -> bool:
    """Return whether all adjacent squares satisfy the Monge inequality, up to rounding; then all squares do."""
    excess = costs[:-1, :-1] + costs[1:, 1:] - costs[:-1, 1:] - costs[1:, :-1]
    return bool((excess <= 4 * np.finfo(float).eps * (costs[:-1, 1:] + costs[1:, :-1])).all())


def monotone_coupling(cost: Line, source: Floats, target: Floats) -> Coupling:
    """Return the monotone coupling with potentials, in the time of sorting and in linear memory."""
    rows, columns = np.argsort(cost.x, kind="stable"), np.argsort(cost.y, kind="stable")
    stairs = north_west_staircase(source[rows], target[columns])
    x, y = cost.x[rows], cost.y[columns]

    def long_costs(row_indices: Integers, column_indices: Integers) -> LongFloats:
        steps: LongFloats = np.abs(x[row_indices].astype(np.longdouble) - y[column_indices])
        powers: LongFloats = steps if cost.exponent == 1 else steps**cost.exponent
        return powers

    u, v, rounding_error = staircase_potentials(stairs, long_costs)
    proof = certify_dual(_in_original_order(u - rounding_error, rows), _in_original_order(v, columns), source, target)
    total_cost = line_cost(cost, stairs, rows, columns)
    plan = sparse_plan(rows[stairs.rows], columns[stairs.columns], stairs.masses, cost.matrix_shape)
    return Coupling(plan, total_cost, proof, 1.0, "monotone rearrangement")


def line_cost(cost: Cost, stairs: Staircase, rows: Integers, columns: Integers) -> float:
    """Return Σ γ_ij c_ij along the staircase of the sorted points."""
    used = np.flatnonzero(stairs.masses)
    costs = cost.pair_costs(rows[stairs.rows[used]], columns[stairs.columns[used]])
    return float((stairs.masses[used] * costs).sum())


def _in_original_order(values: Floats, order: Integers) -> Floats:
    """Return ``values``, which belong to the sorted points, in the original order of the points."""
    reordered = np.empty_like(values)
    reordered[order] = values
    return reordered
