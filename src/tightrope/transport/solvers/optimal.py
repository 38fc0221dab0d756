"""``coupling``: the coupling of least cost between two distributions, by the method that fits the cost.

cost                          p < ∞                                   p = ∞
line                          monotone rearrangement                  the same
1 for any change              what both laws share stays              threshold and largest flow
grid, graph, p = 1            flow of least cost on the edges         threshold and largest flow
points, many pairs            arc pricing                             threshold and largest flow
table with Monge property     north-west corner rule                  threshold and largest flow
everything else               network simplex on the table            threshold and largest flow

If the first method leaves a gap above 1e−9 of the cost, as floats do for costs such as 1e32 and 1 together, small
problems are solved in integers, and larger ones again without the pairs that no optimal plan uses.
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
from tightrope.transport.costs.costs import Cost, CostLike, as_cost, normalize_law, raise_cost_to_power
from tightrope.transport.costs.graphs import Graph
from tightrope.transport.costs.points import Line, Points
from tightrope.transport.solvers.discrete import DiscreteCost, stay_in_place_coupling
from tightrope.transport.solvers.monotone import MASS_BITS, line_cost, north_west_staircase
from tightrope.transport.solvers.result import MARGINAL_TOLERANCE, Coupling, entry_indices

LARGE = 1 << 20
"""Number of pairs from which points are priced by arcs; below, the table is as fast (1000 points: 0.2 s either way)."""
FIRST_GAP = 1e-9
"""Relative gap up to which the first method's proof suffices."""
PROOF_TOLERANCE = 1e-6
"""Largest relative gap of an accepted proof."""
EXACT_PAIRS = 1 << 12
"""Number of pairs up to which exact integers take a second or two."""
TABLE_PAIRS = 1 << 24
"""Number of pairs up to which a cost table may be built."""


def coupling(source: ArrayLike, target: ArrayLike, cost: CostLike, *, p: Real = 1) -> Coupling:
    """Return a coupling γ of least Σ γ_ij c_ij^p; for p = ∞, of least maximum c_ij (theory §6).

    ``cost``: a table [n, m] or ``grid``, ``points``, ``line``, ``graph``. Distributions that sum to 1 within 1e−9 are
    divided by their sum. The plan's marginals are exact to 1e−12; ``.dual`` proves optimality, ``.gap`` bounds the
    error. p = ∞ ignores a total mass of 1e−12, so that it does not depend on rounding of the distributions; yet every
    point with mass, however little, moves at most the distance, so that no entry of the plan costs more.

    Raises ``InputError`` for invalid distributions and costs, and p below 1; ``PrecisionError`` if optimality cannot be
    proven to 1e−6 of the cost (1e−12 is typical), nor to the uncertainty from marginals of 1e−12 if hardly any mass
    moves; ``MissingExtraError`` without the extra ``transport``, which lines do not need.

    >>> found = coupling([0.2, 0.5, 0.3], [0.3, 0.2, 0.5], [[0, 1, 2], [1, 0, 1], [2, 1, 0]])
    >>> found.plan.toarray().round(12).tolist()
    [[0.2, 0.0, 0.0], [0.1, 0.2, 0.2], [0.0, 0.0, 0.3]]
    >>> round(found.cost, 12), round(found.dual.value, 12)
    (0.3, 0.3)
    """
    order = check_order(p)
    table = as_cost(cost)
    begin, end = (
        normalize_law("source", source, table.matrix_shape[0]),
        normalize_law("target", target, table.matrix_shape[1]),
    )
    if math.isinf(order):
        from tightrope.transport.solvers.bottleneck import bottleneck_coupling

        return bottleneck_coupling(table, begin, end)
    raised = raise_cost_to_power(table, order)
    found = replace(_solve_with_proof(raised, begin, end), p=order)
    # Smaller costs may have lost digits; the plan fails if so much mass pays them that its cost is uncertain.
    least = raised.smallest_exact_cost()
    if not least <= PROOF_TOLERANCE * found.cost:  # else even all of the mass would not matter
        entries = coo_array(found.plan)
        pairs = entry_indices(entries)
        lost = table.locations_differ(*pairs) & (raised.pair_costs(*pairs) < least)
        if float(entries.data[lost].sum()) * least > PROOF_TOLERANCE * found.cost:
            raise PrecisionError(
                f"costs that are paid are below {least:.3g} and have lost their digits; give them in a larger unit"
            )
    return found


def check_order(p: Real) -> float:
    """Return the order p ≥ 1, infinity included."""
    expected = "a number >= 1, or math.inf for the largest cost"
    if isinstance(p, (bool, str)) or not isinstance(p, (int, float, np.number)) or not float(p) >= 1:
        raise InputError("p", p, expected, "for p < 1 the root of the cost is not a distance; p=1 is the usual choice")
    return float(p)


def _solve_with_proof(cost: Cost, source: Floats, target: Floats) -> Coupling:
    """Return the plan of the first method with a close proof, else the closest one if it is close enough."""
    best: Coupling | None = None
    reasons: list[str] = []
    moving = int(np.count_nonzero(source) * np.count_nonzero(target))
    for method in _candidate_methods(moving, math.prod(cost.matrix_shape)):
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
        if abs(best.gap) <= FIRST_GAP * best.cost or (moving > EXACT_PAIRS and _gap_is_explained(best, cost)):
            return best
    if best is None:
        raise PrecisionError(f"no method found a plan of least cost ({'; '.join(reasons)}); {_REMEDY}")
    if not (abs(best.gap) <= PROOF_TOLERANCE * best.cost or _gap_is_explained(best, cost)):
        raise PrecisionError(f"the cost {best.cost:.17g} is proven optimal only to {abs(best.gap):.3g}; {_REMEDY}")
    return best


Method = Callable[[Cost, Floats, Floats], Coupling]
_REMEDY = (
    "costs differ by too many orders of magnitude: give them in a unit near the typical distance, and forbid a move by "
    "a cost of not more than a million times the largest that is paid"
)


def _candidate_methods(moving: int, pairs: int) -> Iterator[Method]:
    """Yield the method for the cost, and methods for any order of magnitude if the problem is small enough."""
    yield _solve_finite_order
    if pairs <= TABLE_PAIRS:
        from tightrope.transport.solvers.arc_pricing import capped_simplex_coupling
        from tightrope.transport.solvers.flow import exact_paths

        yield from (exact_paths, capped_simplex_coupling) if moving <= EXACT_PAIRS else (capped_simplex_coupling,)


def _gap_is_explained(found: Coupling, cost: Cost) -> bool:
    """Return whether the gap is within the uncertainty of marginals of 1e−12: that mass, moved a short distance."""
    # The cost of a move to a neighbor: the median, over some sources, of the least positive cost.
    rows = np.unique(np.linspace(0, cost.matrix_shape[0] - 1, 64).astype(np.int64))
    costs = cost.row_costs(rows)
    least = np.where(costs > 0, costs, np.inf).min(axis=1)
    least = least[least < np.inf]
    return abs(found.gap) <= MARGINAL_TOLERANCE * (float(np.median(least)) if len(least) else 0.0)


def _solve_finite_order(cost: Cost, source: Floats, target: Floats) -> Coupling:
    if isinstance(cost, Line):
        from tightrope.transport.solvers.monotone import monotone_coupling

        return monotone_coupling(cost, source, target)
    if isinstance(cost, Graph):
        from tightrope.transport.solvers.flow import edge_flow

        return edge_flow(cost, source, target)
    if isinstance(cost, DiscreteCost):
        return stay_in_place_coupling(cost, source, target)
    if isinstance(cost, Points) and np.count_nonzero(source) * np.count_nonzero(target) >= LARGE:
        from tightrope.transport.solvers.arc_pricing import arc_pricing

        return arc_pricing(cost, source, target)
    from tightrope.transport.solvers.arc_pricing import table_coupling

    return table_coupling(cost, source, target)


# The Wasserstein distance W_p, without the plan.

SURE = 1e-7


def wasserstein(source: ArrayLike, target: ArrayLike, cost: CostLike, *, p: Real = 1) -> float:
    """Return W_p = (min Σ γ_ij c_ij^p)^(1/p) over couplings γ, and for p = ∞ the least maximum cost (theory §6).

    A metric between distributions if c is a metric between points. For arguments and errors see ``coupling``, which
    also returns the plan and the proof.

    >>> from tightrope import transport
    >>> round(wasserstein([0.2, 0.5, 0.3], [0.3, 0.2, 0.5], transport.line([1, 2, 3])), 12)
    0.3
    """
    table, order = as_cost(cost), check_order(p)
    if isinstance(table, Line) and not math.isinf(order):
        # A line needs neither plan nor potentials: monotone rearrangement is optimal for every p. None if rounding of
        # the masses, at the largest cost, might change more than 1e−7 of the answer: then the plan and its proof
        # decide.
        begin, end = (
            normalize_law("source", source, table.matrix_shape[0]),
            normalize_law("target", target, table.matrix_shape[1]),
        )
        raised = raise_cost_to_power(table, order)
        rows, columns = np.argsort(table.x, kind="stable"), np.argsort(table.y, kind="stable")
        stairs = north_west_staircase(begin[rows], end[columns])
        spent = line_cost(raised, stairs, rows, columns)
        astray = stairs.entry_count * 2.0**-MASS_BITS + abs(math.fsum(begin) - 1) + abs(math.fsum(end) - 1)
        known = float(spent ** (1 / order)) if astray * raised.cost_upper_bound() <= SURE * spent else None
        if known is not None:
            return known
    return coupling(source, target, table, p=order).wasserstein_distance
