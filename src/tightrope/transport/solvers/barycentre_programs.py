"""Linear programs of the barycentre: one over pairs of points, one over the edges of a graph. Solved by HiGHS."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.optimize import linprog
from scipy.sparse import block_diag, coo_array, csr_array, eye_array, hstack, kron, vstack

from tightrope.errors import PrecisionError
from tightrope.numerics.arrays import Floats
from tightrope.transport.costs.costs import Cost
from tightrope.transport.costs.graphs import Graph
from tightrope.transport.costs.real_line import Line
from tightrope.transport.solvers.discrete import Discrete, median_law

SOLVER_TOLERANCE = 1e-10


@dataclass(frozen=True, slots=True, eq=False)
class Program:
    """Minimise ``costs`` · x over x ≥ 0 with ``table`` x = ``sides``; the first ``targets`` variables are the law.

    ``priced`` [groups, targets]: the rows whose multipliers are the weighted potentials of the targets, up to ``sign``.
    """

    costs: Floats
    table: csr_array
    sides: Floats
    targets: int
    priced: np.ndarray[tuple[int, int], np.dtype[np.intp]]
    sign: int


def best_law(groups: Floats, cost: Cost, shares: Floats) -> tuple[Floats, Floats]:
    """The law of least weighted cost, and potentials v [groups, targets] for it, both to the solver's tolerance."""
    if isinstance(cost, Discrete):
        return median_law(groups, shares)
    counted = np.flatnonzero(shares)
    edges = _graph_of(cost)
    some = groups[counted], shares[counted]
    program = pairs_program(*some, cost) if edges is None else edges_program(*some, edges)
    found, multipliers = _solved(program)
    prices = np.zeros((len(groups), program.targets))
    prices[counted] = program.sign * multipliers[program.priced] / shares[counted, None]
    masses = np.maximum(found[: program.targets], 0)
    return masses / masses.sum(), prices


def _graph_of(cost: Cost) -> Graph | None:
    """The graph whose metric ``cost`` is; a line whose places are their own targets is a path."""
    if isinstance(cost, Line) and cost.exponent == 1 and cost.x is cost.y and len(np.unique(cost.x)) == len(cost.x):
        order = np.argsort(cost.x)
        return Graph(len(order), order[:-1], order[1:], np.diff(cost.x[order]))
    return cost if isinstance(cost, Graph) else None


def pairs_program(groups: Floats, shares: Floats, cost: Cost) -> Program:
    """Rows: Σ_j γ_sij = λ_si, and Σ_i γ_sij − μ_j = 0. Columns: μ, then γ."""
    (count, n), m = groups.shape, cost.shape[1]
    plans = kron(eye_array(count * n), np.ones((1, m)))
    landed = kron(eye_array(count), kron(np.ones((1, n)), eye_array(m)))
    law = kron(np.ones((count, 1)), -eye_array(m))
    table = vstack([hstack([csr_array((count * n, m)), plans]), hstack([law, landed])])
    costs = np.concatenate([np.zeros(m), np.outer(shares, cost.matrix().ravel()).ravel()])
    sides = np.concatenate([groups.ravel(), np.zeros(count * m)])
    priced = count * n + np.arange(count * m).reshape(count, m)
    return Program(costs, csr_array(table), sides, m, priced, 1)


def edges_program(groups: Floats, shares: Floats, graph: Graph) -> Program:
    """Rows: what leaves a node minus what enters it, plus μ, is λ_s. Columns: μ, then the flows both ways."""
    count, nodes = groups.shape
    edges = len(graph.lengths)
    ends = np.concatenate([graph.tails, graph.heads]), np.tile(np.arange(edges), 2)
    leaving = coo_array((np.repeat([1.0, -1.0], edges), ends), shape=(nodes, edges))
    flows = block_diag([hstack([leaving, -leaving])] * count)
    law = kron(np.ones((count, 1)), eye_array(nodes))
    both = np.concatenate([graph.lengths, graph.lengths])
    costs = np.concatenate([np.zeros(nodes), np.outer(shares, both).ravel()])
    priced = np.arange(count * nodes).reshape(count, nodes)
    return Program(costs, csr_array(hstack([law, flows])), groups.ravel(), nodes, priced, -1)


def _solved(program: Program) -> tuple[Floats, Floats]:
    unit = float(program.costs.max()) or 1.0
    options = {"primal_feasibility_tolerance": SOLVER_TOLERANCE, "dual_feasibility_tolerance": SOLVER_TOLERANCE}
    solve: Any = linprog  # its stubs do not know sparse tables
    found = solve(program.costs / unit, A_eq=program.table, b_eq=program.sides, method="highs", options=options)
    if found.status != 0:
        raise PrecisionError(f"no barycentre found ({found.message}); give fewer points, or a grid or graph as cost")
    return found.x, found.eqlin.marginals * unit
