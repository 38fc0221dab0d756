"""The cost 1 of any change, between points that have no distances: plans and barycentres in closed form.

W_1 is the total variation: what two laws share stays, and it does not matter where the rest goes. The law of least
total cost is a level for each point, filled up from below, the steepest parts first.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.sparse import coo_array

from tightrope.errors import InputError
from tightrope.numerics.arrays import Floats, Integers
from tightrope.numerics.checks import whole
from tightrope.transport.costs.costs import Cost, Matrix
from tightrope.transport.solvers.result import Coupling, feasible_dual, plan_cost, refilled

SLOPE_DIGITS = 12
"""Sums of weights that agree so far are the same slope."""


@dataclass(frozen=True, slots=True)
class Discrete(Cost):
    """c_ij = 1 for i ≠ j, and 0 for i = j, between ``count`` points.

    >>> Discrete(2).matrix().tolist()
    [[0.0, 1.0], [1.0, 0.0]]
    """

    count: int

    def __post_init__(self) -> None:
        whole("count", self.count)

    @property
    def shape(self) -> tuple[int, int]:
        return self.count, self.count

    def ceiling(self) -> float:
        return 1.0

    def pairs(self, rows: Integers, columns: Integers) -> Floats:
        return np.asarray(rows != columns, dtype=np.float64)

    def block(self, rows: Integers) -> Floats:
        return np.asarray(rows[:, None] != np.arange(self.count), dtype=np.float64)

    def take(self, rows: Integers, columns: Integers) -> Matrix:
        return Matrix((rows[:, None] != columns).astype(np.float64))

    def power(self, exponent: float) -> Discrete:
        if not exponent > 0:
            raise InputError("exponent", exponent, "positive")
        return self

    def column_room(self, u: Floats, lowered: float = 0.0) -> Floats:
        return np.asarray(np.minimum(-u, 1 - lowered - u.max()))

    def row_room(self, v: Floats, lowered: float = 0.0) -> Floats:
        return np.asarray(np.minimum(-v, 1 - lowered - v.max()))


def staying(cost: Discrete, source: Floats, target: Floats) -> Coupling:
    """min(source, target) stays at each point, and what is left over goes where something is missing.

    The proof: u = 1 where the source holds more, v = −u; it is worth Σ (source − target)₊, the total variation.
    """
    points = np.arange(cost.count)
    shared = coo_array((np.minimum(source, target), (points, points)), shape=cost.shape)
    plan = refilled(shared, source, target)
    proof = feasible_dual(cost, points, (source > target).astype(np.float64), source, target)
    return Coupling(plan, plan_cost(cost, plan), proof, 1.0, "what both laws share stays")


def median_law(laws: Floats, shares: Floats) -> tuple[Floats, Floats]:
    """The law μ of least Σ_s w_s TV(λ_s, μ), and potentials v [groups, points] that prove it.

    Where μ grows from one λ_s[y] to the next larger one, the cost falls by the weights of the laws above, the slope.
    The mass 1 goes where slopes are steepest; what is on the last of them takes the same share everywhere. Of two laws
    of equal weight that is their mean.

    >>> median_law(np.array([[0.5, 0.5, 0.0], [0.0, 0.5, 0.5]]), np.array([0.5, 0.5]))[0].tolist()
    [0.25, 0.5, 0.25]
    """
    order = np.argsort(laws, axis=0, kind="stable")
    weights = shares[order]
    slopes = np.round(np.cumsum(weights[::-1], axis=0)[::-1], SLOPE_DIGITS)
    lengths = np.diff(np.take_along_axis(laws, order, axis=0), axis=0, prepend=0.0)
    # The slope at which the mass 1 is used up, and which share of that slope's length gets some.
    levels, places = np.unique(-slopes, return_inverse=True)
    totals = np.bincount(places.ravel(), lengths.ravel(), len(levels))
    held = np.cumsum(totals)
    last_slope_last = min(int(np.searchsorted(held, 1.0)), len(levels) - 1)
    room = 1.0 - (held[last_slope_last] - totals[last_slope_last])
    last, share = (
        -float(levels[last_slope_last]),
        min(1.0, max(0.0, room / totals[last_slope_last])) if totals[last_slope_last] else 1.0,
    )
    law = np.where(slopes > last, lengths, 0.0).sum(axis=0) + share * np.where(slopes == last, lengths, 0.0).sum(axis=0)
    potentials = np.empty_like(laws)
    # How far each law, by rank, counts as above μ: 1 or 0, and a share of the one that μ reaches.
    # At every point, the weights above then add up to `last`.
    above = (slopes <= last).astype(np.float64)
    reached = np.count_nonzero(slopes > last, axis=0) - 1
    points = np.flatnonzero(reached >= 0)
    ranks = reached[points]
    lacking = last - (weights * above).sum(axis=0)[points]
    above[ranks, points] = np.clip(lacking / weights[ranks, points], 0.0, 1.0)
    np.put_along_axis(potentials, order, -above, axis=0)
    return law / law.sum(), potentials
