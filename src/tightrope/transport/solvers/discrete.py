"""The discrete metric, cost 1 for any change: plans and barycenters in closed form.

W_1 is the total variation: common mass stays, and the destination of the rest does not matter. The barycenter is found
greedily: mass is placed where it reduces the cost most.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.sparse import coo_array

from tightrope.errors import InputError
from tightrope.numerics.arrays import Floats, Integers
from tightrope.numerics.checks import check_integer
from tightrope.transport.costs.costs import Cost, Matrix
from tightrope.transport.solvers.result import Coupling, feasible_dual, plan_cost, refill_marginals

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
