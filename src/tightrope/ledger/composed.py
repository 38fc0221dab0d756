"""What the same releases would have spent, had they been declared together before the first: the price of not doing so.

It is a comparison and no guarantee: releases that were chosen after seeing answers do not compose like that.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

from tightrope.certificates.budget import Budget, at_most
from tightrope.ledger.recipe import Recipe, masses
from tightrope.privacy.laws.gaussian_size import gaussian_reach
from tightrope.privacy.masses import Masses, Window

CURVE_POINTS = 2000
"""Lattice points for the budget's largest ε, or for what stands for it beside a large δ."""
CURVE_REACH = 1.5
"""The lattice reaches so many times the largest ε, or as far as losses add to a large δ."""
CLOSE_SHARE = 1e-4
"""How near the least share or ε is approached."""


def together(recipes: Sequence[tuple[Recipe, int]], budget: Budget) -> float | None:
    """The least share of a budget that the exact composition keeps, an upper bound; None where the whole does not do.

    Each recipe ran so many times. Where no ε is asked for, there is no lattice to compose on: None, too.
    """
    total = _composed(recipes, budget)
    return None if total is None else _least(lambda share: _keeps(total, budget, share), 1.0)


def epsilon_together(recipes: Sequence[tuple[Recipe, int]], budget: Budget) -> float | None:
    """The least ε that the exact composition keeps at the δ of the budget's largest, an upper bound; None as above."""
    total, (largest, delta) = _composed(recipes, budget), max(budget.stated)
    if total is None:
        return None
    return _least(lambda epsilon: total.delta(epsilon) <= at_most(delta), CURVE_REACH * float(largest))


def _composed(recipes: Sequence[tuple[Recipe, int]], budget: Budget) -> Masses | None:
    largest = max((float(epsilon) for epsilon, _ in budget.stated), default=0.0)
    if not recipes or largest <= 0:
        return None
    reaches = (gaussian_reach(float(e), float(d)) for e, d in budget.stated if e and d)
    reach = max([CURVE_REACH * largest, *reaches])
    step = reach / (CURVE_REACH * CURVE_POINTS)
    return masses(recipes, Window(step, math.ceil(reach / step)))


def _least(does: Callable[[float], bool], most: float) -> float | None:
    """The least value up to ``most`` that does, from above; None where ``most`` does not."""
    if not does(most):
        return None
    low, high = 0.0, most
    while high - low > CLOSE_SHARE * most:
        middle = (low + high) / 2
        low, high = (low, middle) if does(middle) else (middle, high)
    return high


def _keeps(total: Masses, budget: Budget, share: float) -> bool:
    """Whether the law keeps a share of every point."""
    pairs = [(total.delta(share * float(e)), share * float(d)) for e, d in budget.stated]
    return all(found <= allowed for found, allowed in [*pairs, (total.infinite_mass, share * float(budget.delta))])
