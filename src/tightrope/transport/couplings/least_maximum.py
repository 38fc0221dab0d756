"""Couplings whose largest cost is least, and of these the one whose average is: exact, to the last unit of mass."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from tightrope.numerics.arrays import Floats
from tightrope.transport.costs.costs import Cost
from tightrope.transport.exact.exact_flow import plan_within
from tightrope.transport.exact.exact_laws import Law
from tightrope.transport.exact.exact_plan import ExactPlan, exact_plan
from tightrope.transport.solvers.optimal import coupling

MOST_PAIRS = 1 << 22
"""Pairs of points up to which ties are broken; above, the table of costs and exact flows take too long."""


def worst_plan(law: Law, target: Law, cost: Cost) -> ExactPlan:
    """Of the couplings that move no mass further than the least possible largest cost r, one of least average cost.

    r is that of the laws as rationals: where roundings in them need a longer way than W_∞ in floats says, r says so.
    Above 2²² pairs of points any coupling of least r in floats, and what roundings leave over may go further.
    """
    found = coupling(law.floats, target.floats, cost, p=math.inf)
    if cost.shape[0] * cost.shape[1] > MOST_PAIRS:
        return exact_plan(found.plan, law, target)
    costs = cost.matrix()
    far = 1 + 2 * found.cost * sum(costs.shape)  # no detour within r costs as much
    near = coupling(law.floats, target.floats, np.where(costs <= found.cost, costs, far)).plan
    return plan_within(costs <= found.cost, law, target, near) or _further(law, target, costs, found.cost, near)


def _further(law: Law, target: Law, costs: Floats, radius: float, guess: Any) -> ExactPlan:
    """The same within the least level above ``radius`` that is enough for the exact laws."""
    levels = np.unique(costs[costs > radius]).tolist()
    low, high = 0, len(levels) - 1
    best = exact_plan(guess, law, target)  # what the last level is enough for
    while low <= high:
        middle = (low + high) // 2
        tried = plan_within(costs <= levels[middle], law, target, guess)
        if tried is None:
            low = middle + 1
        else:
            best, high = tried, middle - 1
    return best
