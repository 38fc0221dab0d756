"""Transport between many points: solve on few arcs, price all pairs with the duals, add those that pay, repeat.

When no pair has u_i + v_j above c_ij, the coupling is optimal among all pairs. The matrix is never built: a pass over
the pairs holds one block of it. Five thousand points take six rounds, the first on eighteen arcs a point, the others
on eight.
"""

from __future__ import annotations

import numpy as np
from scipy.sparse import coo_array, csr_array

from tightrope.errors import PrecisionError
from tightrope.numerics.arrays import Floats, Integers
from tightrope.transport.costs.costs import Cost
from tightrope.transport.costs.point_clouds import Points
from tightrope.transport.libraries.pot import simplex
from tightrope.transport.proofs.certificates import dual
from tightrope.transport.proofs.feasible import feasible_dual, margin
from tightrope.transport.proofs.result import Coupling, indices, plan_cost, repaired
from tightrope.transport.solvers.multiscale import first_arcs
from tightrope.transport.solvers.tables import spread

PRICING_ROUNDS = 200
CLOSED = 1e-11
"""The proof is complete where it misses the cost by this share: ten times the solver's own roundings."""
MOST = 8
"""At most so many new arcs a point in one round: those that save most."""
KEPT = 3
"""So many arcs a point stay after the first round; any of them comes back where it pays."""
HELD = 4
"""Times as many pairs that pay are held before the others of them are let go: together they can be the whole matrix."""
Pairs = tuple[Integers, Integers]


def arc_pricing(cost: Points, source: Floats, target: Floats) -> Coupling:
    """A coupling of least cost between points, and potentials for all of them.

    Raises ``PrecisionError`` where two hundred rounds do not suffice; ten are many.
    """
    rows, columns = np.flatnonzero(source), np.flatnonzero(target)
    some = cost.take(rows, columns)
    flows, u, v = _optimum(some, source[rows], target[columns])
    plan = repaired(spread(flows, rows, columns, cost.shape), source, target)
    if some.shape == cost.shape:  # every pair has been priced
        proof = dual(u - margin(u, v), v, source, target)
    else:
        proof = feasible_dual(cost, rows, u, source, target)
    return Coupling(plan, plan_cost(cost, plan), proof, 1.0, "arc pricing")


def _optimum(cost: Points, source: Floats, target: Floats) -> tuple[csr_array, Floats, Floats]:
    """A plan and the potentials that prove it, feasible up to roundings."""
    arcs = np.unique(_numbers(first_arcs(cost, source, target), cost))
    for k in range(PRICING_ROUNDS):
        table = _table(cost, arcs)
        unit = float(table.data.max()) or 1.0
        flows, u, v = simplex(source, target, coo_array(table / unit))
        u, v = u * unit, v * unit
        better, over = paying(cost, u, v)
        more = np.union1d(arcs, better)
        if over @ target <= CLOSED * float(u @ source + v @ target) or len(more) == len(arcs):
            return flows, u, v - over
        arcs = more if k else _lean(cost, more, (u, v), flows)
    raise PrecisionError(
        f"no proof of optimality after {PRICING_ROUNDS} rounds of pricing; give fewer points or a coarser cost"
    )


def _lean(cost: Points, arcs: Integers, duals: tuple[Floats, Floats], flows: csr_array) -> Integers:
    """The arcs in use and those of least reduced cost: the first potentials are good, the rest did their duty."""
    (u, v), (rows, columns) = duals, np.divmod(arcs, cost.shape[1])
    reduced = cost.pairs(rows, columns) - u[rows] - v[columns]
    count = KEPT * sum(cost.shape)
    least = arcs if count >= len(arcs) else arcs[np.argpartition(reduced, count)[:count]]
    return np.union1d(least, _numbers(indices(coo_array(flows)), cost))


def _numbers(pairs: Pairs, cost: Cost) -> Integers:
    """A pair as one number, so that sets of pairs are sorted arrays."""
    return pairs[0] * cost.shape[1] + pairs[1]


def _table(cost: Points, arcs: Integers) -> coo_array:
    """The costs of the arcs; POT takes a zero for no arc, so that the least positive number stands in."""
    rows, columns = np.divmod(arcs, cost.shape[1])
    costs = np.maximum(cost.pairs(rows, columns), np.finfo(float).tiny)
    return coo_array((costs, (rows, columns)), shape=cost.shape)


def paying(cost: Cost, u: Floats, v: Floats) -> tuple[Integers, Floats]:
    """Pairs with u_i + v_j > c_ij, those that save most, at most ``MOST`` a point; and how far each v_j is too large.

    A pair is one number, i m + j.
    """
    most, over = MOST * sum(cost.shape), np.zeros(cost.shape[1])
    found: list[tuple[Integers, Floats]] = []
    held = 0
    for rows, costs in cost.blocks():
        saved = np.subtract(u[rows, None], costs, out=costs)
        saved += v
        np.maximum(over, saved.max(axis=0), out=over)
        flat = np.flatnonzero(saved > 0)
        found.append((rows[0] * cost.shape[1] + flat, saved.ravel()[flat]))
        held += len(flat)
        if held > HELD * most:
            found, held = [_largest(found, most)], most
    return _largest(found, most)[0], over


def _largest(found: list[tuple[Integers, Floats]], most: int) -> tuple[Integers, Floats]:
    """At most so many pairs, those that save most."""
    pairs, saved = (np.concatenate(part) for part in zip(*found, strict=True))
    chosen = np.argpartition(-saved, most)[:most] if len(saved) > most else slice(None)
    return pairs[chosen], saved[chosen]
