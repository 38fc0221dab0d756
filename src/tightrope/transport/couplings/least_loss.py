"""The parts of a coupling mechanism of least loss: laws, their target, a plan for each group, and its tables."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike

from tightrope.errors import InputError
from tightrope.numerics.checks import non_negative
from tightrope.numerics.laws import SUM_TOLERANCE
from tightrope.transport.costs.costs import Cost
from tightrope.transport.couplings.least_maximum import worst_plan
from tightrope.transport.exact.exact_laws import Law
from tightrope.transport.exact.exact_plan import ExactPlan, exact_plan
from tightrope.transport.exact.row_tables import RowTables
from tightrope.transport.solvers.barycentre import barycenter
from tightrope.transport.solvers.optimal import coupling

Objective = Literal["expected", "worst"]
NAMED_ORDERS = {"expected": 1.0, "worst": math.inf}
Group = Any


def laws_of(groups: Mapping[Group, ArrayLike], size: int) -> dict[Group, Law]:
    """Each group's law over ``size`` points. Raises ``InputError`` where one is none."""
    if not isinstance(groups, Mapping) or not groups:
        raise InputError("groups", groups, "a mapping from the name of each group to its law")
    return {group: Law.of(f"law of {group!r}", law, size) for group, law in groups.items()}


def order_of(objective: str) -> float:
    """The order p of the W_p that an objective means. Raises ``InputError`` for unknown ones."""
    if not isinstance(objective, str) or objective not in NAMED_ORDERS:
        raise InputError("objective", objective, f"one of {list(NAMED_ORDERS)}", "expected is W_1, worst is W_infinity")
    return NAMED_ORDERS[objective]


def shares_of(laws: Mapping[Group, Law], weights: Mapping[Group, float] | None) -> list[float]:
    """How much each group counts, divided by their sum."""
    if weights is None:
        return [1 / len(laws)] * len(laws)
    if not isinstance(weights, Mapping) or set(weights) != set(laws):
        raise InputError("weights", weights, f"one weight for each of {list(laws)}")
    found = [non_negative(f"weight of {group!r}", weights[group]) for group in laws]
    if not sum(found) > 0:
        raise InputError("weights", weights, "weights with a positive sum")
    return [weight / sum(found) for weight in found]


def target_of(target: Any, laws: Mapping[Group, Law], cost: Cost, weights: list[float]) -> Law:
    """The law that was given, or the one of least total expected cost to the groups' laws.

    Raises ``InputError`` for what is no law over the target points of ``cost``.
    """
    size = cost.shape[1]
    if target is None or (isinstance(target, str) and target == "barycenter"):
        found = np.maximum(barycenter([law.floats for law in laws.values()], cost, weights=weights).law, 0.0)
        return Law.of("barycenter", np.where(found < SUM_TOLERANCE / (1000 * size), 0.0, found), size)
    if isinstance(target, str):
        raise InputError("target", target, "a law, 'barycenter' or None")
    return Law.of("target", target, size)


def plan_of(law: Law, target: Law, cost: Cost, order: float) -> ExactPlan:
    """An optimal coupling of two laws, its marginals exact."""
    if order == 1:
        return exact_plan(coupling(law.floats, target.floats, cost).plan, law, target)
    return worst_plan(law, target, cost)


def loss_of(plan: ExactPlan, cost: Cost, order: float) -> float:
    """The mean cost of the exact plan, or its largest cost."""
    pairs = np.array(list(plan.entries), dtype=np.int64)
    costs = cost.pairs(pairs[:, 0], pairs[:, 1])
    if order != 1:
        return float(costs.max())
    return math.fsum((costs * [weight / plan.total for weight in plan.entries.values()]).tolist())


def tables_of(plan: ExactPlan, law: Law, target: Law) -> RowTables:
    """The plan's rows; a point without mass has the target itself."""
    whole = dict(enumerate(target.masses))
    return RowTables.of([row or whole for row in plan.rows(len(law))], len(target))
