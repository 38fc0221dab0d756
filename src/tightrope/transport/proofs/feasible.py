"""From any potentials of the sources to ones that are feasible for every pair, in exact arithmetic.

A solver's potentials are off by roundings, and say nothing about points without mass. The c-transform gives the
largest potentials of the other side. Costs are lowered a little first, each by a share of itself, so that what floats
get wrong at a pair of huge cost takes nothing from the potentials of others.
"""

from __future__ import annotations

import numpy as np

from tightrope.numerics.arrays import Floats, Integers
from tightrope.transport.costs.costs import Cost
from tightrope.transport.proofs.certificates import DUAL_ROUNDING, Dual, dual

LOWERED = 8 * DUAL_ROUNDING
"""The share of itself by which a cost is lowered: more than a distance in floats may be above the true one."""


def feasible_dual(cost: Cost, rows: Integers, u: Floats, source: Floats, target: Floats) -> Dual:
    """The certificate that grows from potentials ``u`` of the sources ``rows``: v by c-transform, then all of u.

    Two passes over all pairs. u_i + v_j ≤ c_ij holds exactly for the c_ij that ``cost`` computes, and for distances in
    real arithmetic, which floats miss by a few roundings: a difference is rounded in its order, so that the float
    below the least of them is below each.
    """
    known = np.full(cost.shape[0], -np.inf)
    known[rows] = u - np.median(u)
    v = cost.column_room(known, 2 * LOWERED)
    return dual(np.nextafter(cost.row_room(v, LOWERED), -np.inf), v, source, target)


def margin(u: Floats, v: Floats) -> float:
    """What rounding can add to u_i + v_j − c_ij, where u is a c-transform of v: c_ij ≤ max u + max v at the minimum."""
    return 8 * DUAL_ROUNDING * float(np.abs(u).max() + np.abs(v).max())
