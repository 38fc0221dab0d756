"""The barycenter of several distributions: the common target of least total cost (theory §6, choosing μ).

The linear program may be solved inexactly: its solution is normalized, each group is coupled to it with a proof, and
the multipliers are converted to feasible potentials, hence to a lower bound on the cost of every distribution.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy.optimize import linprog
from scipy.sparse import block_diag, coo_array, csr_array, eye_array, hstack, kron, vstack

from tightrope.errors import InputError, PrecisionError
from tightrope.numerics.arrays import Floats
from tightrope.numerics.checks import Real
from tightrope.numerics.distributions import normalize_distribution
from tightrope.transport.costs.costs import Cost, CostLike, as_cost, group_weights, raise_cost_to_power
from tightrope.transport.costs.graphs import Graph
from tightrope.transport.costs.points import Line
from tightrope.transport.solvers.closed_form import DiscreteCost, median_law
from tightrope.transport.solvers.optimal import check_order, coupling
from tightrope.transport.solvers.result import DUAL_ROUNDING, Coupling, rounding_margin

# Linear programs of the barycenter: over pairs of points, or over the edges of a graph. Solved by HiGHS.

SOLVER_TOLERANCE = 1e-10


@dataclass(frozen=True, slots=True, eq=False)
class LinearProgram:
    """Minimize ``costs`` · x for x ≥ 0 with ``table`` x = ``right_sides``; the first ``targets`` variables are the law.

    The multipliers of the rows ``potential_rows`` [groups, targets], times ``sign``, are the potentials of the targets,
    weighted by group.
    """

    costs: Floats
    table: csr_array
    right_sides: Floats
    targets: int
    potential_rows: np.ndarray[tuple[int, int], np.dtype[np.intp]]
    sign: int


def solve_barycenter(groups: Floats, cost: Cost, shares: Floats) -> tuple[Floats, Floats]:
    """Return the distribution of least weighted cost, and potentials v [groups, targets], within solver tolerance."""
    if isinstance(cost, DiscreteCost):
        return median_law(groups, shares)
    positive_groups = np.flatnonzero(shares)
    graph = cost if isinstance(cost, Graph) else None
    # A line with equal sources and targets is a path.
    if isinstance(cost, Line) and cost.exponent == 1 and cost.x is cost.y and len(np.unique(cost.x)) == len(cost.x):
        order = np.argsort(cost.x)
        graph = Graph(len(order), order[:-1], order[1:], np.diff(cost.x[order]))
    weighted_groups = groups[positive_groups], shares[positive_groups]
    program = pairs_program(*weighted_groups, cost) if graph is None else edges_program(*weighted_groups, graph)
    unit = float(program.costs.max()) or 1.0
    options = {"primal_feasibility_tolerance": SOLVER_TOLERANCE, "dual_feasibility_tolerance": SOLVER_TOLERANCE}
    solve: Any = linprog  # its stubs lack sparse tables
    solution = solve(
        program.costs / unit, A_eq=program.table, b_eq=program.right_sides, method="highs", options=options
    )
    if solution.status != 0:
        raise PrecisionError(f"no barycenter found ({solution.message}); give fewer points, or a grid or graph as cost")
    variables, multipliers = solution.x, solution.eqlin.marginals * unit
    prices = np.zeros((len(groups), program.targets))
    prices[positive_groups] = program.sign * multipliers[program.potential_rows] / shares[positive_groups, None]
    masses = np.maximum(variables[: program.targets], 0)
    return masses / masses.sum(), prices


def pairs_program(groups: Floats, shares: Floats, cost: Cost) -> LinearProgram:
    """Return the program over pairs. Rows: Σ_j γ_sij = λ_si, and Σ_i γ_sij − μ_j = 0. Columns: μ, then γ."""
    (count, n), m = groups.shape, cost.matrix_shape[1]
    row_sums = kron(eye_array(count * n), np.ones((1, m)))
    column_sums = kron(eye_array(count), kron(np.ones((1, n)), eye_array(m)))
    target_columns = kron(np.ones((count, 1)), -eye_array(m))
    table = vstack([hstack([csr_array((count * n, m)), row_sums]), hstack([target_columns, column_sums])])
    costs = np.concatenate([np.zeros(m), np.outer(shares, cost.to_matrix().ravel()).ravel()])
    right_sides = np.concatenate([groups.ravel(), np.zeros(count * m)])
    potential_rows = count * n + np.arange(count * m).reshape(count, m)
    return LinearProgram(costs, csr_array(table), right_sides, m, potential_rows, 1)


def edges_program(groups: Floats, shares: Floats, graph: Graph) -> LinearProgram:
    """Return the program over edges. Rows: outflow − inflow + μ = λ_s at a node. Columns: μ, then flows both ways."""
    count, nodes = groups.shape
    edges = len(graph.lengths)
    nodes_and_edges = np.concatenate([graph.tails, graph.heads]), np.tile(np.arange(edges), 2)
    incidence = coo_array((np.repeat([1.0, -1.0], edges), nodes_and_edges), shape=(nodes, edges))
    flows = block_diag([hstack([incidence, -incidence])] * count)
    target_columns = kron(np.ones((count, 1)), eye_array(nodes))
    both_lengths = np.concatenate([graph.lengths, graph.lengths])
    costs = np.concatenate([np.zeros(nodes), np.outer(shares, both_lengths).ravel()])
    potential_rows = np.arange(count * nodes).reshape(count, nodes)
    return LinearProgram(costs, csr_array(hstack([target_columns, flows])), groups.ravel(), nodes, potential_rows, -1)


@dataclass(frozen=True, slots=True, eq=False)
class Barycenter:
    """``law`` [m] on the targets of the cost, and a coupling of each group's distribution with it, in the given order.

    ``cost`` = Σ_s w_s W_p(λ_s, law)^p, and every distribution costs at least ``lower``, rounding included.
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
    """Return the μ on the targets of ``cost`` with least Σ_s w_s W_p(λ_s, μ)^p; weights are equal by default.

    A linear program with a variable for each group and pair of points, or for each group and edge on a graph or grid
    with p = 1. Any μ is as private; this one costs least. Raises ``InputError`` for an empty list, weights that are not
    fractions of the groups, or p = ∞; ``PrecisionError`` if the solver fails.

    >>> from tightrope import transport
    >>> found = barycenter([[1, 0, 0], [0, 0, 1], [0, 1, 0]], transport.line([0, 1, 2]))
    >>> found.law.round(9).tolist(), round(found.cost, 9)
    ([0.0, 1.0, 0.0], 0.666666667)
    """
    checked_cost, order = as_cost(cost), check_order(p)
    if math.isinf(order):
        raise InputError("p", p, "a finite number >= 1", "there is no barycenter for the largest cost: give a target")
    if not isinstance(laws, (Sequence, np.ndarray)) or isinstance(laws, str) or len(laws) == 0:
        raise InputError("laws", laws, "a list of laws, one a group", "for example [[0.2, 0.8], [0.5, 0.5]]")
    groups = np.stack(
        [normalize_distribution(f"laws[{s}]", values, checked_cost.matrix_shape[0]) for s, values in enumerate(laws)]
    )
    shares = group_weights(weights, len(groups))
    powered_cost = raise_cost_to_power(checked_cost, order)
    law, potentials = solve_barycenter(groups, powered_cost, shares)
    couplings = tuple(coupling(group, law, checked_cost, p=order) for group in groups)
    total_cost = float(sum(share * group.cost for share, group in zip(shares, couplings, strict=True)))
    # Σ_s w_s Σ_i u_si λ_si + min_j Σ_s w_s v_sj for u_s = c-transform of v_s: a bound for every distribution.
    source_potentials = np.stack(
        [powered_cost.row_potentials(v) - rounding_margin(powered_cost.row_potentials(v), v) for v in potentials]
    )
    terms = shares[:, None] * source_potentials * groups
    least_target_term = float((shares[:, None] * potentials).sum(axis=0).min())
    magnitude = float(np.abs(terms).sum() + (shares[:, None] * np.abs(potentials)).sum(axis=0).max())
    return Barycenter(
        law,
        total_cost,
        float(terms.sum()) + least_target_term - (len(groups) + 8) * DUAL_ROUNDING * magnitude,
        couplings,
    )
