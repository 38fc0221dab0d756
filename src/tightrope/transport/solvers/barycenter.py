"""The barycenter of several distributions: the common target of least total cost (theory §6, choosing μ).

The linear program's solution is not trusted: it is normalized, each group is coupled to it with a proof, and the
multipliers become feasible potentials, hence a lower bound on the cost of every distribution.
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
from tightrope.transport.costs.costs import Cost, CostLike, as_cost, group_shares, raise_cost_to_power
from tightrope.transport.costs.graphs import Graph
from tightrope.transport.costs.points import Line
from tightrope.transport.solvers.discrete import DiscreteCost, median_law
from tightrope.transport.solvers.optimal import check_order, coupling
from tightrope.transport.solvers.result import DUAL_ROUNDING, Coupling, rounding_margin

# Linear programs of the barycenter: over pairs of points, or over the edges of a graph. Solved by HiGHS.

SOLVER_TOLERANCE = 1e-10


@dataclass(frozen=True, slots=True, eq=False)
class LinearProgram:
    """Minimize ``costs`` · x over x ≥ 0 with ``table`` x = ``sides``; the first ``targets`` variables are the result.

    ``priced`` [groups, targets]: the rows whose multipliers are the weighted potentials of the targets, up to ``sign``.
    """

    costs: Floats
    table: csr_array
    sides: Floats
    targets: int
    priced: np.ndarray[tuple[int, int], np.dtype[np.intp]]
    sign: int


def solve_barycenter(groups: Floats, cost: Cost, shares: Floats) -> tuple[Floats, Floats]:
    """Return the distribution of least weighted cost, and potentials v [groups, targets], within solver tolerance."""
    if isinstance(cost, DiscreteCost):
        return median_law(groups, shares)
    counted = np.flatnonzero(shares)
    edges = cost if isinstance(cost, Graph) else None
    # A line with equal sources and targets is a path.
    if isinstance(cost, Line) and cost.exponent == 1 and cost.x is cost.y and len(np.unique(cost.x)) == len(cost.x):
        order = np.argsort(cost.x)
        edges = Graph(len(order), order[:-1], order[1:], np.diff(cost.x[order]))
    some = groups[counted], shares[counted]
    program = pairs_program(*some, cost) if edges is None else edges_program(*some, edges)
    unit = float(program.costs.max()) or 1.0
    options = {"primal_feasibility_tolerance": SOLVER_TOLERANCE, "dual_feasibility_tolerance": SOLVER_TOLERANCE}
    solve: Any = linprog  # its stubs lack sparse tables
    solved_found = solve(program.costs / unit, A_eq=program.table, b_eq=program.sides, method="highs", options=options)
    if solved_found.status != 0:
        raise PrecisionError(
            f"no barycenter found ({solved_found.message}); give fewer points, or a grid or graph as cost"
        )
    found, multipliers = solved_found.x, solved_found.eqlin.marginals * unit
    prices = np.zeros((len(groups), program.targets))
    prices[counted] = program.sign * multipliers[program.priced] / shares[counted, None]
    masses = np.maximum(found[: program.targets], 0)
    return masses / masses.sum(), prices


def pairs_program(groups: Floats, shares: Floats, cost: Cost) -> LinearProgram:
    """Rows: Σ_j γ_sij = λ_si, and Σ_i γ_sij − μ_j = 0. Columns: μ, then γ."""
    (count, n), m = groups.shape, cost.matrix_shape[1]
    plans = kron(eye_array(count * n), np.ones((1, m)))
    landed = kron(eye_array(count), kron(np.ones((1, n)), eye_array(m)))
    law = kron(np.ones((count, 1)), -eye_array(m))
    table = vstack([hstack([csr_array((count * n, m)), plans]), hstack([law, landed])])
    costs = np.concatenate([np.zeros(m), np.outer(shares, cost.to_matrix().ravel()).ravel()])
    sides = np.concatenate([groups.ravel(), np.zeros(count * m)])
    priced = count * n + np.arange(count * m).reshape(count, m)
    return LinearProgram(costs, csr_array(table), sides, m, priced, 1)


def edges_program(groups: Floats, shares: Floats, graph: Graph) -> LinearProgram:
    """Rows: outflow minus inflow of a node, plus μ, is λ_s. Columns: μ, then the flows both ways."""
    count, nodes = groups.shape
    edges = len(graph.lengths)
    ends = np.concatenate([graph.tails, graph.heads]), np.tile(np.arange(edges), 2)
    leaving = coo_array((np.repeat([1.0, -1.0], edges), ends), shape=(nodes, edges))
    flows = block_diag([hstack([leaving, -leaving])] * count)
    law = kron(np.ones((count, 1)), eye_array(nodes))
    both = np.concatenate([graph.lengths, graph.lengths])
    costs = np.concatenate([np.zeros(nodes), np.outer(shares, both).ravel()])
    priced = np.arange(count * nodes).reshape(count, nodes)
    return LinearProgram(costs, csr_array(hstack([law, flows])), groups.ravel(), nodes, priced, -1)


@dataclass(frozen=True, slots=True, eq=False)
class Barycenter:
    """``law`` [m] on the targets of the cost; ``couplings``: from each group's distribution to it, in the given order.

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
    table, order = as_cost(cost), check_order(p)
    if math.isinf(order):
        raise InputError(
            "p", p, "a finite number >= 1", "for worst-case loss give a target: every one has its own W_inf"
        )
    if not isinstance(laws, (Sequence, np.ndarray)) or isinstance(laws, str) or len(laws) == 0:
        raise InputError("laws", laws, "a list of laws, one a group", "for example [[0.2, 0.8], [0.5, 0.5]]")
    groups = np.stack(
        [normalize_distribution(f"laws[{s}]", values, table.matrix_shape[0]) for s, values in enumerate(laws)]
    )
    shares = group_shares(weights, len(groups))
    raised = raise_cost_to_power(table, order)
    found, prices = solve_barycenter(groups, raised, shares)
    couplings = tuple(coupling(one, found, table, p=order) for one in groups)
    spent = float(sum(share * one.cost for share, one in zip(shares, couplings, strict=True)))
    # Σ_s w_s Σ_i u_si λ_si + min_j Σ_s w_s v_sj for u_s = c-transform of v_s: a bound for every distribution.
    rooms = np.stack([raised.row_potentials(v) - rounding_margin(raised.row_potentials(v), v) for v in prices])
    terms = shares[:, None] * rooms * groups
    least = float((shares[:, None] * prices).sum(axis=0).min())
    size = float(np.abs(terms).sum() + (shares[:, None] * np.abs(prices)).sum(axis=0).max())
    return Barycenter(found, spent, float(terms.sum()) + least - (len(groups) + 8) * DUAL_ROUNDING * size, couplings)
