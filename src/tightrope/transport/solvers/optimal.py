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
from tightrope.transport.costs.costs import Cost, CostLike, as_cost, normalize_if_needed, raise_cost_to_power
from tightrope.transport.costs.graphs import Graph
from tightrope.transport.costs.points import Line, Points
from tightrope.transport.solvers.closed_form import (
    MASS_BITS,
    DiscreteCost,
    line_cost,
    north_west_staircase,
    stay_in_place_coupling,
)
from tightrope.transport.solvers.result import MARGINAL_TOLERANCE, Coupling, entry_indices

ARC_PRICING_PAIRS = 1 << 20
"""From this many pairs on, points use arc pricing; below, a table is as fast (1000 points: 0.2 s either way)."""
FIRST_GAP = 1e-9
"""Relative gap up to which the first method's proof suffices."""
PROOF_TOLERANCE = 1e-6
"""Largest relative gap of an accepted proof."""
MAX_EXACT_PAIRS = 1 << 12
"""Maximal number of pairs for exact integers: a second or two."""
MAX_TABLE_PAIRS = 1 << 24
"""Maximal number of pairs of a cost table."""


def coupling(source: ArrayLike, target: ArrayLike, cost: CostLike, *, p: Real = 1) -> Coupling:
    """Return a coupling γ of least Σ γ_ij c_ij^p; for p = ∞, of least maximum c_ij (theory §6).

    ``cost``: a table [n, m] or ``grid``, ``points``, ``line``, ``graph``. Distributions that sum to 1 within 1e−9 are
    divided by their sum. The plan's marginals are exact to 1e−12; ``.dual`` proves optimality, ``.gap`` bounds the
    error. p = ∞ ignores a total mass of 1e−12, so that it does not depend on rounding of the distributions; still, no
    entry of the plan, however small, costs more than the result.

    Raises ``InputError`` for invalid distributions and costs, and p below 1; ``PrecisionError`` if optimality cannot be
    proven to 1e−6 of the cost (1e−12 is typical) or, if very little mass moves, to the uncertainty from marginals of
    1e−12; ``MissingExtraError`` without the extra ``transport``, which lines do not need.

    >>> found = coupling([0.2, 0.5, 0.3], [0.3, 0.2, 0.5], [[0, 1, 2], [1, 0, 1], [2, 1, 0]])
    >>> found.plan.toarray().round(12).tolist()
    [[0.2, 0.0, 0.0], [0.1, 0.2, 0.2], [0.0, 0.0, 0.3]]
    >>> round(found.cost, 12), round(found.dual.value, 12)
    (0.3, 0.3)
    """
    order = check_order(p)
    checked_cost = as_cost(cost)
    source_masses, target_masses = (
        normalize_if_needed("source", source, checked_cost.matrix_shape[0]),
        normalize_if_needed("target", target, checked_cost.matrix_shape[1]),
    )
    if math.isinf(order):
        from tightrope.transport.solvers.bottleneck import bottleneck_coupling

        return bottleneck_coupling(checked_cost, source_masses, target_masses)
    powered_cost = raise_cost_to_power(checked_cost, order)
    result = replace(_solve_with_proof(powered_cost, source_masses, target_masses), p=order)
    # Smaller positive costs may be inexact; raise an error if so much mass has them that the total is uncertain.
    smallest_exact = powered_cost.smallest_exact_cost()
    if not smallest_exact <= PROOF_TOLERANCE * result.cost:  # otherwise they cannot matter
        entries = coo_array(result.plan)
        pairs = entry_indices(entries)
        is_inexact = checked_cost.locations_differ(*pairs) & (powered_cost.pair_costs(*pairs) < smallest_exact)
        if float(entries.data[is_inexact].sum()) * smallest_exact > PROOF_TOLERANCE * result.cost:
            raise PrecisionError(
                f"costs below {smallest_exact:.3g} are inexact and matter here; give all costs in a larger unit"
            )
    return result


def coupling_of_tiny_cost(source: Floats, target: Floats, cost: Cost) -> Coupling:
    """Return ``coupling`` with p = 1 for distributions that can be equal up to rounding, so that the cost is noise.

    If optimality cannot be proven otherwise, a gap of 1e−12 of the largest cost is accepted, however small the cost is.
    """
    masses = normalize_if_needed("source", source, len(source)), normalize_if_needed("target", target, len(target))
    try:
        return _solve_with_proof(cost, *masses)
    except PrecisionError:
        return _solve_with_proof(cost, *masses, accepted_gap=MARGINAL_TOLERANCE * cost.cost_upper_bound())


def check_order(p: Real) -> float:
    """Return the order p ≥ 1, infinity included."""
    expected = "a number >= 1, or math.inf for the largest cost"
    if isinstance(p, (bool, str)) or not isinstance(p, (int, float, np.number)) or not float(p) >= 1:
        raise InputError("p", p, expected, "for p < 1 the root of the cost is not a distance; p=1 is the usual choice")
    return float(p)


def _solve_with_proof(cost: Cost, source: Floats, target: Floats, accepted_gap: float = 0.0) -> Coupling:
    """Return the first plan with a small gap, otherwise the one with the smallest gap if that is acceptable."""
    best: Coupling | None = None
    reasons: list[str] = []
    used_pairs = int(np.count_nonzero(source) * np.count_nonzero(target))
    for method in _candidate_methods(used_pairs, math.prod(cost.matrix_shape)):
        try:
            result = method(cost, source, target)
        except PrecisionError as error:
            reasons.append(str(error))
            continue
        except MissingExtraError:
            if best is None:
                raise
            continue
        best = result if best is None or abs(result.gap) < abs(best.gap) else best
        if abs(best.gap) <= max(FIRST_GAP * best.cost, accepted_gap) or (
            used_pairs > MAX_EXACT_PAIRS and _gap_is_explained(best, cost)
        ):
            return best
    if best is None:
        raise PrecisionError(f"no method found a plan of least cost ({'; '.join(reasons)}); {_REMEDY}")
    if not (abs(best.gap) <= PROOF_TOLERANCE * best.cost or _gap_is_explained(best, cost)):
        raise PrecisionError(f"the cost {best.cost:.17g} is proven optimal only to {abs(best.gap):.3g}; {_REMEDY}")
    return best


Method = Callable[[Cost, Floats, Floats], Coupling]
_REMEDY = (
    "costs differ by too many orders of magnitude: give them in a unit near the typical distance, and forbid a move by "
    "a cost of at most a million times the largest one that is used"
)


def _candidate_methods(used_pairs: int, pairs: int) -> Iterator[Method]:
    """Yield the usual method for the cost, then methods for any order of magnitude if the problem is small enough."""
    yield _solve_finite_order
    if pairs <= MAX_TABLE_PAIRS:
        from tightrope.transport.solvers.arc_pricing import capped_simplex_coupling
        from tightrope.transport.solvers.flow import exact_paths

        yield from (
            (exact_paths, capped_simplex_coupling) if used_pairs <= MAX_EXACT_PAIRS else (capped_simplex_coupling,)
        )


def _gap_is_explained(result: Coupling, cost: Cost) -> bool:
    """Return whether the gap is at most the cost of moving a mass of 1e−12 (the marginals' error) to a neighbor."""
    # The cost of a move to a neighbor: the median, over some sources, of the least positive cost.
    rows = np.unique(np.linspace(0, cost.matrix_shape[0] - 1, 64).astype(np.int64))
    costs = cost.row_costs(rows)
    neighbor_costs = np.where(costs > 0, costs, np.inf).min(axis=1)
    neighbor_costs = neighbor_costs[neighbor_costs < np.inf]
    return abs(result.gap) <= MARGINAL_TOLERANCE * (float(np.median(neighbor_costs)) if len(neighbor_costs) else 0.0)


def _solve_finite_order(cost: Cost, source: Floats, target: Floats) -> Coupling:
    """Return the coupling of least mean cost by the usual method for the type of the cost."""
    if isinstance(cost, Line):
        from tightrope.transport.solvers.closed_form import monotone_coupling

        return monotone_coupling(cost, source, target)
    if isinstance(cost, Graph):
        from tightrope.transport.solvers.flow import graph_edge_coupling

        return graph_edge_coupling(cost, source, target)
    if isinstance(cost, DiscreteCost):
        return stay_in_place_coupling(cost, source, target)
    if isinstance(cost, Points) and np.count_nonzero(source) * np.count_nonzero(target) >= ARC_PRICING_PAIRS:
        from tightrope.transport.solvers.arc_pricing import arc_pricing

        return arc_pricing(cost, source, target)
    from tightrope.transport.solvers.arc_pricing import table_coupling

    return table_coupling(cost, source, target)


# The Wasserstein distance W_p, without the plan.

LINE_TOLERANCE = 1e-7
"""Largest relative error of the result for a line without a plan and its proof."""


def wasserstein(source: ArrayLike, target: ArrayLike, cost: CostLike, *, p: Real = 1) -> float:
    """Return W_p = (min Σ γ_ij c_ij^p)^(1/p) over couplings γ, and for p = ∞ the least maximum cost (theory §6).

    A metric between distributions if c is a metric between points. For arguments and errors see ``coupling``, which
    also returns the plan and the proof.

    >>> from tightrope import transport
    >>> round(wasserstein([0.2, 0.5, 0.3], [0.3, 0.2, 0.5], transport.line([1, 2, 3])), 12)
    0.3
    """
    checked_cost, order = as_cost(cost), check_order(p)
    if isinstance(checked_cost, Line) and not math.isinf(order):
        # Monotone rearrangement is optimal for every p. If rounding of the masses, at the largest cost, could change
        # more than 1e−7 of the result, use the plan with its proof instead.
        source_masses, target_masses = (
            normalize_if_needed("source", source, checked_cost.matrix_shape[0]),
            normalize_if_needed("target", target, checked_cost.matrix_shape[1]),
        )
        powered_cost = raise_cost_to_power(checked_cost, order)
        rows, columns = np.argsort(checked_cost.x, kind="stable"), np.argsort(checked_cost.y, kind="stable")
        stairs = north_west_staircase(source_masses[rows], target_masses[columns])
        total_cost = line_cost(powered_cost, stairs, rows, columns)
        mass_error = (
            stairs.entry_count * 2.0**-MASS_BITS + abs(math.fsum(source_masses) - 1) + abs(math.fsum(target_masses) - 1)
        )
        if mass_error * powered_cost.cost_upper_bound() <= LINE_TOLERANCE * total_cost:
            return float(total_cost ** (1 / order))
    return coupling(source, target, checked_cost, p=order).wasserstein_distance
