"""The law that is nearest to several laws: the common target of least total cost (theory §6, choosing μ).

The linear program's answers are not trusted: the law is made one, each group is coupled to it with a proof, and the
multipliers become feasible potentials, hence a lower bound on what any law would cost.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from tightrope.errors import InputError
from tightrope.numerics.arrays import Floats
from tightrope.numerics.checks import Real
from tightrope.numerics.laws import law
from tightrope.transport.costs.costs import Cost, CostLike, as_cost, powered
from tightrope.transport.costs.laws import group_shares
from tightrope.transport.proofs.certificates import DUAL_ROUNDING
from tightrope.transport.proofs.feasible import margin
from tightrope.transport.proofs.result import Coupling
from tightrope.transport.solvers.barycentre_programs import best_law
from tightrope.transport.solvers.optimal import coupling, exponent


@dataclass(frozen=True, slots=True, eq=False)
class Barycenter:
    """``law`` [m] on the targets of the cost; ``couplings``: from each group's law to it, in the order given.

    ``cost`` = Σ_s w_s W_p(λ_s, law)^p, and no law costs less than ``lower``, rounding included.
    """

    law: Floats
    cost: float
    lower: float
    couplings: tuple[Coupling, ...]

    @property
    def gap(self) -> float:
        """``cost`` − ``lower``."""
        return self.cost - self.lower


def barycenter(
    laws: Sequence[ArrayLike], cost: CostLike, *, weights: Sequence[float] | None = None, p: Real = 1
) -> Barycenter:
    """The law μ on the targets of ``cost`` with least Σ_s w_s W_p(λ_s, μ)^p; equal weights where none are given.

    A linear program with a variable for each group and pair of points, for each group and edge on a graph or grid with
    p = 1. Any μ is as private; this one costs least. Raises ``InputError`` for no laws, weights that are not shares of
    the groups, or p = ∞; ``PrecisionError`` where the solver fails.

    >>> from tightrope import transport
    >>> found = barycenter([[1, 0, 0], [0, 0, 1], [0, 1, 0]], transport.line([0, 1, 2]))
    >>> found.law.round(9).tolist(), round(found.cost, 9)
    ([0.0, 1.0, 0.0], 0.666666667)
    """
    table, order = as_cost(cost), exponent(p)
    if math.isinf(order):
        raise InputError(
            "p", p, "a finite number >= 1", "for worst-case loss give a target: every one has its own W_inf"
        )
    if not isinstance(laws, (Sequence, np.ndarray)) or isinstance(laws, str) or len(laws) == 0:
        raise InputError("laws", laws, "a list of laws, one a group", "for example [[0.2, 0.8], [0.5, 0.5]]")
    groups = np.stack([law(f"laws[{s}]", values, table.shape[0]) for s, values in enumerate(laws)])
    shares = group_shares(weights, len(groups))
    raised = powered(table, order)
    found, prices = best_law(groups, raised, shares)
    couplings = tuple(coupling(one, found, table, p=order) for one in groups)
    spent = float(sum(share * one.cost for share, one in zip(shares, couplings, strict=True)))
    return Barycenter(found, spent, _lower(raised, groups, shares, prices), couplings)


def _lower(cost: Cost, groups: Floats, shares: Floats, prices: Floats) -> float:
    """Σ_s w_s Σ_i u_si λ_si + min_j Σ_s w_s v_sj for u_s = c-transform of v_s: a bound for every law on the targets."""
    rooms = np.stack([cost.row_room(v) - margin(cost.row_room(v), v) for v in prices])
    terms = shares[:, None] * rooms * groups
    least = float((shares[:, None] * prices).sum(axis=0).min())
    size = float(np.abs(terms).sum() + (shares[:, None] * np.abs(prices)).sum(axis=0).max())
    return float(terms.sum()) + least - (len(groups) + 8) * DUAL_ROUNDING * size
