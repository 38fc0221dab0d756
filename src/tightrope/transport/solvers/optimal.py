"""``coupling``: the way of least cost from one law to another, by the method that fits the cost.

cost                          p < ∞                                   p = ∞
line                          monotone rearrangement                  the same
1 for any change              what both laws share stays              threshold and largest flow
grid, graph, p = 1            flow of least cost on the edges         threshold and largest flow
points, many pairs            arc pricing                             threshold and largest flow
table with Monge property     north-west corner rule                  threshold and largest flow
everything else               network simplex on the table            threshold and largest flow

Where the first method leaves a gap above 1e−9 of the cost, as floats do beside a cost of 1e32, small problems are
solved in integers, and larger ones again without the pairs that no optimal plan uses.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import replace

import numpy as np
from numpy.typing import ArrayLike
from scipy.sparse import coo_array

from tightrope.errors import InputError, MissingExtraError, PrecisionError
from tightrope.numerics.arrays import Floats
from tightrope.numerics.checks import Real
from tightrope.transport.costs.costs import Cost, CostLike, as_cost, divided_law, powered
from tightrope.transport.costs.graphs import Graph
from tightrope.transport.costs.points import Line, Points
from tightrope.transport.solvers.discrete import Discrete, staying
from tightrope.transport.solvers.monotone import MASS_BITS, line_cost, staircase
from tightrope.transport.solvers.result import MARGINAL_TOLERANCE, Coupling, indices

LARGE = 1 << 20
"""From this many pairs on points are priced arc by arc; below, the table is as fast (1000 points: 0.2 s either way)."""
FIRST_GAP = 1e-9
"""A proof that misses the cost by at most this share of it needs no second method."""
PROOF_TOLERANCE = 1e-6
"""A proof may miss the cost by this share of it."""
EXACT_PAIRS = 1 << 12
"""Up to so many pairs, integers of any length take a second or two."""
TABLE_PAIRS = 1 << 24
"""Up to so many pairs, a table of the costs may be written down."""


def coupling(source: ArrayLike, target: ArrayLike, cost: CostLike, *, p: Real = 1) -> Coupling:
    """A coupling γ of ``source`` and ``target`` of least Σ γ_ij c_ij^p; for p = ∞, of least largest c_ij (theory §6).

    ``cost``: a table [n, m] or ``grid``, ``points``, ``line``, ``graph``. Laws that sum to 1 within 1e−9 are divided
    by their sum. The plan's marginals are exact to 1e−12; ``.dual`` proves optimality, ``.gap`` says how closely.
    p = ∞ leaves 1e−12 of the mass in all out of account, so that it does not hang on roundings of the laws; yet every
    point with mass, however little, goes to one within the distance, so that no entry of the plan costs more.

    Raises ``InputError`` for laws and costs that are not such, and p below 1; ``PrecisionError`` where optimality
    could not be proven to 1e−6 of the cost (mostly it is to 1e−12), nor to what marginals of 1e−12 leave open where
    hardly any mass moves; ``MissingExtraError`` without the extra ``transport``, which lines do without.

    >>> found = coupling([0.2, 0.5, 0.3], [0.3, 0.2, 0.5], [[0, 1, 2], [1, 0, 1], [2, 1, 0]])
    >>> found.plan.toarray().round(12).tolist()
    [[0.2, 0.0, 0.0], [0.1, 0.2, 0.2], [0.0, 0.0, 0.3]]
    >>> round(found.cost, 12), round(found.dual.value, 12)
    (0.3, 0.3)
    """
    order = exponent(p)
    table = as_cost(cost)
    begin, end = divided_law("source", source, table.shape[0]), divided_law("target", target, table.shape[1])
    if math.isinf(order):
        from tightrope.transport.solvers.bottleneck import bottleneck

        return bottleneck(table, begin, end)
    raised = powered(table, order)
    found = replace(_proven(raised, begin, end), p=order)
    _require_digits(table, raised, found)
    return found


def _require_digits(cost: Cost, raised: Cost, found: Coupling) -> None:
    """``PrecisionError`` where costs that are paid fell below the floats that have all digits, and matter."""
    if raised.least_exact() <= PROOF_TOLERANCE * found.cost:  # all of the mass could not matter
        return
    entries = coo_array(found.plan)
    pairs = indices(entries)
    lost = cost.differ(*pairs) & (raised.pairs(*pairs) < raised.least_exact())
    if float(entries.data[lost].sum()) * raised.least_exact() > PROOF_TOLERANCE * found.cost:
        raise PrecisionError(
            f"costs that are paid are below {raised.least_exact():.3g} and have lost their digits; "
            "give them in a larger unit"
        )


def exponent(p: Real) -> float:
    """The order p ≥ 1, infinity included."""
    expected = "a number >= 1, or math.inf for the largest cost"
    if isinstance(p, (bool, str)) or not isinstance(p, (int, float, np.number)) or not float(p) >= 1:
        raise InputError("p", p, expected, "below 1 the root of the cost is no distance; p=1 is the usual choice")
    return float(p)


def _proven(cost: Cost, source: Floats, target: Floats) -> Coupling:
    """The plan of the first method whose proof is close, else the one that is closest, where that is close enough."""
    best: Coupling | None = None
    reasons: list[str] = []
    moving = int(np.count_nonzero(source) * np.count_nonzero(target))
    for method in _methods(moving, math.prod(cost.shape)):
        try:
            found = method(cost, source, target)
        except PrecisionError as error:
            reasons.append(str(error))
            continue
        except MissingExtraError:
            if best is None:
                raise
            continue
        best = found if best is None or abs(found.gap) < abs(best.gap) else best
        if abs(best.gap) <= FIRST_GAP * best.cost or (moving > EXACT_PAIRS and _is_open(best, cost)):
            return best
    if best is None:
        raise PrecisionError(f"no method found a plan of least cost ({'; '.join(reasons)}); {_REMEDY}")
    if not (abs(best.gap) <= PROOF_TOLERANCE * best.cost or _is_open(best, cost)):
        raise PrecisionError(f"the cost {best.cost:.17g} is proven optimal only to {abs(best.gap):.3g}; {_REMEDY}")
    return best


Method = Callable[[Cost, Floats, Floats], Coupling]
_REMEDY = (
    "costs differ by too many orders of magnitude: give them in a unit near the typical distance, and forbid a move by "
    "a cost of not more than a million times the largest that is paid"
)


def _methods(moving: int, pairs: int) -> Iterator[Method]:
    """The method that fits the cost, and those that take any order of magnitude, where the problem is small enough."""
    yield _solved
    if pairs <= TABLE_PAIRS:
        from tightrope.transport.solvers.arc_pricing import capped
        from tightrope.transport.solvers.flow import exact_paths

        yield from (exact_paths, capped) if moving <= EXACT_PAIRS else (capped,)


def _is_open(found: Coupling, cost: Cost) -> bool:
    """Whether the gap, on either side, is within what marginals of 1e−12 leave open: so much mass, a short way."""
    # What a move to a neighbour costs: the median, over some sources, of the least positive cost.
    rows = np.unique(np.linspace(0, cost.shape[0] - 1, 64).astype(np.int64))
    costs = cost.block(rows)
    least = np.where(costs > 0, costs, np.inf).min(axis=1)
    least = least[least < np.inf]
    return abs(found.gap) <= MARGINAL_TOLERANCE * (float(np.median(least)) if len(least) else 0.0)


def _solved(cost: Cost, source: Floats, target: Floats) -> Coupling:
    if isinstance(cost, Line):
        from tightrope.transport.solvers.monotone import monotone

        return monotone(cost, source, target)
    if isinstance(cost, Graph):
        from tightrope.transport.solvers.flow import edge_flow

        return edge_flow(cost, source, target)
    if isinstance(cost, Discrete):
        return staying(cost, source, target)
    if isinstance(cost, Points) and np.count_nonzero(source) * np.count_nonzero(target) >= LARGE:
        from tightrope.transport.solvers.arc_pricing import arc_pricing

        return arc_pricing(cost, source, target)
    from tightrope.transport.solvers.arc_pricing import table_coupling

    return table_coupling(cost, source, target)


# The Wasserstein distance W_p, without the plan.

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
        # A line needs no plan and no potentials: monotone rearrangement is optimal for every p.
        # None where what roundings of the masses move, at the largest cost, might be more than 1e−7 of the answer:
        # then the plan and its proof say whether it holds.
        begin, end = divided_law("source", source, table.shape[0]), divided_law("target", target, table.shape[1])
        raised = powered(table, order)
        rows, columns = np.argsort(table.x, kind="stable"), np.argsort(table.y, kind="stable")
        stairs = staircase(begin[rows], end[columns])
        spent = line_cost(raised, stairs, rows, columns)
        astray = stairs.size * 2.0**-MASS_BITS + abs(math.fsum(begin) - 1) + abs(math.fsum(end) - 1)
        known = float(spent ** (1 / order)) if astray * raised.ceiling() <= SURE * spent else None
        if known is not None:
            return known
    return coupling(source, target, table, p=order).distance
