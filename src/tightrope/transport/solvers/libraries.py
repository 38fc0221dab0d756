"""The only door to POT, the network simplex that solves dense and sparse tables (extra ``transport``)."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.sparse import coo_array, csr_array

from tightrope.errors import MissingExtraError, PrecisionError
from tightrope.numerics.arrays import Floats, Integers

PIVOTS = 10**9
"""The solver stops here; a problem that fits in memory is far below."""


def simplex(source: Floats, target: Floats, costs: Floats | coo_array) -> tuple[csr_array, Floats, Floats]:
    """A plan of least cost and the potentials u and v; every law must be positive.

    Marginals are exact to rounding errors of the solver's sums. Raises ``PrecisionError`` where the solver gives up,
    ``MissingExtraError`` where POT is not installed.
    """
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        try:
            from ot.lp import emd
        except ImportError:
            raise MissingExtraError("POT", "transport") from None
        plan, log = emd(source, target, costs, numItermax=PIVOTS, log=True)
    if log.get("result_code", 1) != 1 or log.get("warning"):
        reason = log.get("warning") or "; ".join(str(one.message) for one in said)
        raise PrecisionError(f"the network simplex found no optimum ({reason}); scale the costs to about 1")
    return csr_array(plan), np.asarray(log["u"]), np.asarray(log["v"])


# The only door to OR-tools: flows of least cost and largest flows, in integers (extra ``transport``).


@dataclass(frozen=True, slots=True, eq=False)
class Arcs:
    """Directed arcs between nodes."""

    tails: Integers
    heads: Integers


def cheapest_flow(arcs: Arcs, costs: Integers, supply: Integers, capacity: int) -> Integers:
    """A flow of least cost on arcs of equal capacity that takes ``supply``[node] out of every node (negative: into).

    Raises ``PrecisionError`` where the solver refuses the sizes of the numbers.
    """
    problem = _solver("min_cost_flow").SimpleMinCostFlow()
    limits = np.full(len(arcs.tails), capacity, dtype=np.int64)
    problem.add_arcs_with_capacity_and_unit_cost(arcs.tails, arcs.heads, limits, costs)
    problem.set_nodes_supplies(np.arange(len(supply)), supply)
    _require(problem.solve() == problem.OPTIMAL, "least cost")
    return np.asarray(problem.flows(np.arange(len(arcs.tails))), dtype=np.int64)


def largest_flow(arcs: Arcs, capacities: Integers, start: int, end: int) -> tuple[Integers, Integers]:
    """A largest flow from ``start`` to ``end``, arc by arc, and the nodes on the start's side of a smallest cut."""
    problem = _solver("max_flow").SimpleMaxFlow()
    problem.add_arcs_with_capacity(arcs.tails, arcs.heads, capacities)
    _require(problem.solve(start, end) == problem.OPTIMAL, "largest size")
    flows = np.asarray(problem.flows(np.arange(len(arcs.tails))), dtype=np.int64)
    return flows, np.asarray(problem.get_source_side_min_cut(), dtype=np.int64)


def _require(solved: bool, what: str) -> None:
    if not solved:
        raise PrecisionError(
            f"OR-tools found no flow of {what}; edge lengths may differ by too many orders of magnitude"
        )


def _solver(module: str) -> Any:
    try:
        from ortools.graph.python import max_flow, min_cost_flow
    except ImportError:
        raise MissingExtraError("OR-tools", "transport") from None
    return {"max_flow": max_flow, "min_cost_flow": min_cost_flow}[module]
