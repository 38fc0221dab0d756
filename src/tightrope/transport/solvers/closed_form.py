"""Couplings and barycenters in closed form: for the discrete metric, and on a line."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from scipy.sparse import coo_array

from tightrope.errors import InputError
from tightrope.numerics.arrays import Floats, Integers
from tightrope.numerics.checks import check_integer
from tightrope.transport.costs.costs import Cost, Matrix, round_to_integer_masses
from tightrope.transport.costs.points import Line
from tightrope.transport.solvers.result import (
    Coupling,
    certify_dual,
    feasible_dual,
    plan_cost,
    refill_marginals,
    sparse_plan,
)

# The discrete metric, cost 1 for any change. W_1 is the total variation: common mass stays, and the destination of the
# rest does not matter. The barycenter is found greedily: mass is placed where it reduces the cost most.

SLOPE_DIGITS = 12
"""Sums of weights that agree to this many decimal places count as the same slope."""


@dataclass(frozen=True, slots=True)
class DiscreteCost(Cost):
    """c_ij = 1 for i ≠ j, and 0 for i = j, between ``count`` points.

    >>> DiscreteCost(2).to_matrix().tolist()
    [[0.0, 1.0], [1.0, 0.0]]
    """

    count: int

    def __post_init__(self) -> None:
        check_integer("count", self.count)

    @property
    def matrix_shape(self) -> tuple[int, int]:
        return self.count, self.count

    def cost_upper_bound(self) -> float:
        return 1.0

    def pair_costs(self, rows: Integers, columns: Integers) -> Floats:
        return np.asarray(rows != columns, dtype=np.float64)

    def row_costs(self, rows: Integers) -> Floats:
        return np.asarray(rows[:, None] != np.arange(self.count), dtype=np.float64)

    def select_points(self, rows: Integers, columns: Integers) -> Matrix:
        return Matrix((rows[:, None] != columns).astype(np.float64))

    def raise_to_power(self, exponent: float) -> DiscreteCost:
        if not exponent > 0:
            raise InputError("exponent", exponent, "positive")
        return self

    def column_potentials(self, u: Floats, cost_reduction: float = 0.0) -> Floats:
        return np.asarray(np.minimum(-u, 1 - cost_reduction - u.max()))

    def row_potentials(self, v: Floats, cost_reduction: float = 0.0) -> Floats:
        return np.asarray(np.minimum(-v, 1 - cost_reduction - v.max()))


def stay_in_place_coupling(cost: DiscreteCost, source: Floats, target: Floats) -> Coupling:
    """Return the coupling in which min(source, target) stays at each point; the rest fills the missing marginals.

    The proof: u = 1 where the source has more, v = −u, of value Σ (source − target)₊, the total variation.
    """
    points = np.arange(cost.count)
    shared = coo_array((np.minimum(source, target), (points, points)), shape=cost.matrix_shape)
    plan = refill_marginals(shared, source, target)
    proof = feasible_dual(cost, points, (source > target).astype(np.float64), source, target)
    return Coupling(plan, plan_cost(cost, plan), proof, 1.0, "what both laws share stays")


def median_law(laws: Floats, shares: Floats) -> tuple[Floats, Floats]:
    """Return the μ of least Σ_s w_s TV(λ_s, μ), and potentials v [groups, points] that prove it.

    Where μ grows from one λ_s[y] to the next larger one, the cost decreases by the weights above, the slope. The mass 1
    is placed at the steepest slopes; at the last of them every point gets the same fraction. For two distributions of
    equal weight this is their mean.

    >>> median_law(np.array([[0.5, 0.5, 0.0], [0.0, 0.5, 0.5]]), np.array([0.5, 0.5]))[0].tolist()
    [0.25, 0.5, 0.25]
    """
    order = np.argsort(laws, axis=0, kind="stable")
    weights = shares[order]
    slopes = np.round(np.cumsum(weights[::-1], axis=0)[::-1], SLOPE_DIGITS)
    lengths = np.diff(np.take_along_axis(laws, order, axis=0), axis=0, prepend=0.0)
    # The slope at which the mass 1 is used up, and the used fraction of that slope's length.
    negative_slopes, slope_indices = np.unique(-slopes, return_inverse=True)
    totals = np.bincount(slope_indices.ravel(), lengths.ravel(), len(negative_slopes))
    cumulative = np.cumsum(totals)
    last_index = min(int(np.searchsorted(cumulative, 1.0)), len(negative_slopes) - 1)
    remaining_mass = 1.0 - (cumulative[last_index] - totals[last_index])
    last_slope = -float(negative_slopes[last_index])
    fraction = min(1.0, max(0.0, remaining_mass / totals[last_index])) if totals[last_index] else 1.0
    law = np.where(slopes > last_slope, lengths, 0.0).sum(axis=0) + fraction * np.where(
        slopes == last_slope, lengths, 0.0
    ).sum(axis=0)
    potentials = np.empty_like(laws)
    # Degree to which each distribution, by rank, counts as above μ: 1 or 0, and a fraction for the one that μ reaches.
    # At every point, the weights above then add up to `last_slope`.
    degree_above = (slopes <= last_slope).astype(np.float64)
    reached_rank = np.count_nonzero(slopes > last_slope, axis=0) - 1
    points = np.flatnonzero(reached_rank >= 0)
    ranks = reached_rank[points]
    missing_weight = last_slope - (weights * degree_above).sum(axis=0)[points]
    degree_above[ranks, points] = np.clip(missing_weight / weights[ranks, points], 0.0, 1.0)
    np.put_along_axis(potentials, order, -degree_above, axis=0)
    return law / law.sum(), potentials


# Monotone rearrangement: matching points in sorted order is optimal for every |x − y|^p with p ≥ 1.

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
