"""The Wasserstein distance W_p, without the plan."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike

from tightrope.numerics.checks import Real
from tightrope.transport.costs.costs import CostLike, as_cost, powered
from tightrope.transport.costs.laws import divided_law
from tightrope.transport.costs.real_line import Line
from tightrope.transport.solvers.monotone import line_cost
from tightrope.transport.solvers.north_west import MASS_BITS, staircase
from tightrope.transport.solvers.optimal import coupling, exponent

SURE = 1e-7


def wasserstein(source: ArrayLike, target: ArrayLike, cost: CostLike, *, p: Real = 1) -> float:
    """W_p = (min Σ γ_ij c_ij^p)^(1/p) over couplings γ, and for p = ∞ the least largest cost (theory §6).

    A metric between laws where c is a metric between points. Arguments and errors are those of ``coupling``, which also
    gives the plan and the proof.

    >>> from tightrope import transport
    >>> round(wasserstein([0.2, 0.5, 0.3], [0.3, 0.2, 0.5], transport.line([1, 2, 3])), 12)
    0.3
    """
    table, order = as_cost(cost), exponent(p)
    if isinstance(table, Line) and not math.isinf(order):
        known = _on_a_line(table, order, source, target)
        if known is not None:
            return known
    return coupling(source, target, table, p=order).distance


def _on_a_line(cost: Line, order: float, source: ArrayLike, target: ArrayLike) -> float | None:
    """A line needs no plan and no potentials: monotone rearrangement is optimal for every p.

    None where what roundings of the masses move, at the largest cost, might be more than 1e−7 of the answer: then the
    plan and its proof say whether it holds.
    """
    begin, end = divided_law("source", source, cost.shape[0]), divided_law("target", target, cost.shape[1])
    raised = powered(cost, order)
    rows, columns = np.argsort(cost.x, kind="stable"), np.argsort(cost.y, kind="stable")
    stairs = staircase(begin[rows], end[columns])
    spent = line_cost(raised, stairs, rows, columns)
    astray = stairs.size * 2.0**-MASS_BITS + abs(math.fsum(begin) - 1) + abs(math.fsum(end) - 1)
    return float(spent ** (1 / order)) if astray * raised.ceiling() <= SURE * spent else None
