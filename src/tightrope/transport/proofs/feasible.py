"""From any potentials of the sources to ones that are feasible for every pair, in exact arithmetic.

A solver's potentials are off by roundings, and say nothing about points without mass. The c-transform gives the
largest potentials of the other side, and a shift by what floats can get wrong makes the inequalities exact.
"""

from __future__ import annotations

import numpy as np

from tightrope.numerics.arrays import Floats, Integers
from tightrope.transport.costs.costs import Cost
from tightrope.transport.proofs.certificates import DUAL_ROUNDING, Dual, dual


def feasible_dual(cost: Cost, rows: Integers, u: Floats, source: Floats, target: Floats) -> Dual:
    """The certificate that grows from potentials ``u`` of the sources ``rows``: v by c-transform, then all of u.

    Two passes over all pairs. u_i + v_j ≤ c_ij holds exactly for the c_ij that ``cost`` computes, and for distances in
    real arithmetic, which floats miss by a few roundings.
    """
    known = np.full(cost.shape[0], -np.inf)
    known[rows] = u - u.max()
    v = cost.column_room(known)
    whole = cost.row_room(v)
    return dual(whole - margin(whole, v), v, source, target)


def margin(u: Floats, v: Floats) -> float:
    """What rounding can add to u_i + v_j − c_ij, where u is a c-transform of v: c_ij ≤ max u + max v at the minimum."""
    return 8 * DUAL_ROUNDING * float(np.abs(u).max() + np.abs(v).max())
