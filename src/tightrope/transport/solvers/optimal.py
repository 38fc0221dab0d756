"""``coupling``: the way of least cost from one law to another, by the method that fits the cost.

cost                          p < ∞                                   p = ∞
line                          monotone rearrangement                  the same
1 for any change              what both laws share stays              threshold and largest flow
grid, graph, p = 1            flow of least cost on the edges         threshold and largest flow
points, many pairs            arc pricing                             threshold and largest flow
table with Monge property     north-west corner rule                  threshold and largest flow
everything else               network simplex on the table            threshold and largest flow
"""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
from numpy.typing import ArrayLike

from tightrope.errors import InputError, PrecisionError
from tightrope.numerics.arrays import Floats
from tightrope.numerics.checks import Real
from tightrope.numerics.laws import law
from tightrope.transport.costs.costs import Cost, CostLike, as_cost, powered
from tightrope.transport.costs.graphs import Graph
from tightrope.transport.costs.point_clouds import Points
from tightrope.transport.costs.real_line import Line
from tightrope.transport.proofs.certificates import Cut, Dual
from tightrope.transport.proofs.result import Coupling
from tightrope.transport.solvers.discrete import Discrete, staying

LARGE = 1 << 20
"""From this many pairs on points are priced arc by arc; below, the table is as fast (1000 points: 0.2 s either way)."""
PROOF_TOLERANCE = 1e-9
"""A proof may miss the cost by this share of the larger of the cost and the largest cost that is paid."""


def coupling(source: ArrayLike, target: ArrayLike, cost: CostLike, *, p: Real = 1) -> Coupling:
    """A coupling γ of ``source`` and ``target`` of least Σ γ_ij c_ij^p; for p = ∞, of least largest c_ij (theory §6).

    ``cost``: a table [n, m] or ``grid``, ``points``, ``line``, ``graph``. Laws that sum to 1 within 1e−9 are divided
    by their sum. The plan's marginals are exact to 1e−12; ``.dual`` proves optimality, ``.gap`` says how closely.
    p = ∞ leaves 1e−12 of the mass in all out of account, so that it does not hang on roundings of the laws; yet every
    point with mass, however little, goes to one within the distance, so that no entry of the plan costs more.

    Raises ``InputError`` for laws and costs that are not such, and p below 1; ``PrecisionError`` where optimality
    could not be proven to 1e−9; ``MissingExtraError`` without the extra ``transport``, which lines do without.

    >>> found = coupling([0.2, 0.5, 0.3], [0.3, 0.2, 0.5], [[0, 1, 2], [1, 0, 1], [2, 1, 0]])
    >>> found.plan.toarray().round(12).tolist()
    [[0.2, 0.0, 0.0], [0.1, 0.2, 0.2], [0.0, 0.0, 0.3]]
    >>> round(found.cost, 12), round(found.dual.value, 12)
    (0.3, 0.3)
    """
    order = exponent(p)
    table = as_cost(cost)
    begin, end = law("source", source, table.shape[0]), law("target", target, table.shape[1])
    if math.isinf(order):
        from tightrope.transport.solvers.bottleneck import bottleneck

        return bottleneck(table, begin, end)
    found = _solved(powered(table, order), begin, end)
    _require_proof(found)
    return replace(found, p=order)


def exponent(p: Real) -> float:
    """The order p ≥ 1, infinity included."""
    expected = "a number >= 1, or math.inf for the largest cost"
    if isinstance(p, (bool, str)) or not isinstance(p, (int, float, np.number)) or not float(p) >= 1:
        raise InputError("p", p, expected, "below 1 the root of the cost is no distance; p=1 is the usual choice")
    return float(p)


def _solved(cost: Cost, source: Floats, target: Floats) -> Coupling:
    if isinstance(cost, Line):
        from tightrope.transport.solvers.monotone import monotone

        return monotone(cost, source, target)
    if isinstance(cost, Graph):
        from tightrope.transport.solvers.edge_flow import edge_flow

        return edge_flow(cost, source, target)
    if isinstance(cost, Discrete):
        return staying(cost, source, target)
    if isinstance(cost, Points) and np.count_nonzero(source) * np.count_nonzero(target) >= LARGE:
        from tightrope.transport.solvers.arc_pricing import arc_pricing

        return arc_pricing(cost, source, target)
    from tightrope.transport.solvers.tables import table_coupling

    return table_coupling(cost, source, target)


def _require_proof(found: Coupling) -> None:
    """An answer whose optimality is in doubt is not given."""
    if not found.gap <= PROOF_TOLERANCE * max(found.cost, _largest(found.dual)):
        raise PrecisionError(
            f"the cost {found.cost:.17g} is proven optimal only to {found.gap:.3g}; "
            "costs may differ by too many orders of magnitude: give them in a unit near the typical distance"
        )


def _largest(proof: Dual | Cut) -> float:
    """At least every cost that is paid: u_i + v_j where mass moves."""
    return float(proof.u.max() + proof.v.max()) if isinstance(proof, Dual) else proof.value
