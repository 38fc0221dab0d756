"""Interfaces to solvers: POT for the network simplex, OR-tools for flows in integers (extra ``transport``)."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.sparse import coo_array, csr_array

from tightrope.errors import MissingExtraError, PrecisionError
from tightrope.numerics.arrays import Floats, Integers

MAX_PIVOTS = 10**9
"""Iteration limit of the solver; problems that fit in memory stay far below."""


def network_simplex(source: Floats, target: Floats, costs: Floats | coo_array) -> tuple[csr_array, Floats, Floats]:
    """Return a plan of least cost and the potentials u and v; all masses must be positive.

    Marginals are exact to rounding errors of the solver's sums. Raises ``PrecisionError`` if the solver fails,
    ``MissingExtraError`` if POT is not installed.
    """
    with warnings.catch_warnings(record=True) as caught_warnings:
        warnings.simplefilter("always")
        try:
            from ot.lp import emd
        except ImportError:
            raise MissingExtraError("POT", "transport") from None
        plan, log = emd(source, target, costs, numItermax=MAX_PIVOTS, log=True)
    if log.get("result_code", 1) != 1 or log.get("warning"):
        reason = log.get("warning") or "; ".join(str(warning.message) for warning in caught_warnings)
        raise PrecisionError(f"the network simplex found no optimum ({reason}); scale the costs to about 1")
    return csr_array(plan), np.asarray(log["u"]), np.asarray(log["v"])


# Interface to OR-tools: minimum-cost and maximum flows, in integers (extra ``transport``).


@dataclass(frozen=True, slots=True, eq=False)
class Arcs:
    """Directed arcs between nodes."""

    tails: Integers
    heads: Integers


def cheapest_flow(arcs: Arcs, costs: Integers, supply: Integers, capacity: int) -> Integers:
    """Return a minimum-cost flow on arcs of equal capacity; ``supply``[node] leaves every node (negative: enters).

    Raises ``PrecisionError`` if the solver rejects the size of the numbers.
    """
    problem = _import_solver("min_cost_flow").SimpleMinCostFlow()
    limits = np.full(len(arcs.tails), capacity, dtype=np.int64)
    problem.add_arcs_with_capacity_and_unit_cost(arcs.tails, arcs.heads, limits, costs)
    problem.set_nodes_supplies(np.arange(len(supply)), supply)
    _require_solved(problem.solve() == problem.OPTIMAL, "least cost")
    return np.asarray(problem.flows(np.arange(len(arcs.tails))), dtype=np.int64)


def largest_flow(arcs: Arcs, capacities: Integers, start: int, end: int) -> tuple[Integers, Integers]:
    """Return a maximum flow from ``start`` to ``end``, by arc, and the nodes on the start's side of a minimum cut."""
    problem = _import_solver("max_flow").SimpleMaxFlow()
    problem.add_arcs_with_capacity(arcs.tails, arcs.heads, capacities)
    _require_solved(problem.solve(start, end) == problem.OPTIMAL, "largest size")
    flows = np.asarray(problem.flows(np.arange(len(arcs.tails))), dtype=np.int64)
    return flows, np.asarray(problem.get_source_side_min_cut(), dtype=np.int64)


def _require_solved(is_solved: bool, kind: str) -> None:
    """Raise ``PrecisionError`` if the solver failed."""
    if not is_solved:
        raise PrecisionError(
            f"OR-tools found no flow of {kind}; edge lengths may differ by too many orders of magnitude"
        )


def _import_solver(module: str) -> Any:
    try:
        from ortools.graph.python import max_flow, min_cost_flow
    except ImportError:
        raise MissingExtraError("OR-tools", "transport") from None
    return {"max_flow": max_flow, "min_cost_flow": min_cost_flow}[module]
