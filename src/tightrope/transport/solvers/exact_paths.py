"""Tables of costs of any order of magnitude: shortest augmenting paths in integers, which round nothing.

A cost and a mass in floats are whole multiples of a power of two. The method of the network simplex works in floats: a
cost of 1e32 beside one of 1 leaves the potentials of both without digits. Slower, hence for small tables alone.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tightrope.numerics.arrays import Floats
from tightrope.transport.costs.costs import Cost
from tightrope.transport.proofs.feasible import feasible_dual
from tightrope.transport.proofs.result import Coupling, plan_cost, plan_of, repaired

Wholes = NDArray[np.object_]
"""Integers without a limit."""


@dataclass(slots=True, eq=False)
class Flow:
    """What has moved so far, at least cost, what is left, and potentials: c_ij + p_i − q_j ≥ 0, and 0 where mass moves.

    While mass is left at some source, its p is 0.
    """

    costs: Wholes
    left: Wholes
    wanted: Wholes
    moved: Wholes
    p: Wholes
    q: Wholes

    def advance(self) -> None:
        """Move what fits along a shortest path from the sources with mass left to a target that wants some."""
        above = int(self.costs.sum()) + 1
        rows, columns = (np.full(size, above, dtype=object) for size in self.costs.shape)
        rows[self.left > 0] = 0
        before = np.zeros(len(columns), dtype=np.int64)
        came, done = np.full(len(rows), -1), np.zeros(len(columns), dtype=bool)
        for i in np.flatnonzero(self.left > 0).tolist():
            self._relax(i, rows[i], columns, before)
        while True:
            waiting = np.flatnonzero(~done)
            j = int(waiting[np.argmin(columns[waiting])])
            done[j] = True
            if self.wanted[j] > 0:
                break
            for i in np.flatnonzero((self.moved[:, j] > 0) & (rows > columns[j])).tolist():
                rows[i], came[i] = columns[j], j
                self._relax(i, rows[i], columns, before)
        self._move(j, before, came)
        self.p = self.p + np.minimum(rows, columns[j])
        self.q = self.q + np.minimum(columns, columns[j])

    def _relax(self, i: int, reached: int, columns: Wholes, before: NDArray[np.int64]) -> None:
        there = self.costs[i] - self.q + (self.p[i] + reached)
        nearer = there < columns
        columns[nearer], before[nearer] = there[nearer], i

    def _move(self, j: int, before: NDArray[np.int64], came: NDArray[np.int64]) -> None:
        forward, back, end = [], [], j
        while True:
            i = int(before[j])
            forward.append((i, j))
            if came[i] < 0:
                break
            j = int(came[i])
            back.append((i, j))
        mass = min(self.left[i], self.wanted[end], *(self.moved[pair] for pair in back))
        for pair in forward:
            self.moved[pair] += mass
        for pair in back:
            self.moved[pair] -= mass
        self.left[i] -= mass
        self.wanted[end] -= mass


def exact_paths(cost: Cost, source: Floats, target: Floats) -> Coupling:
    """A coupling of least cost between the points that have mass, and potentials for all points.

    Where roundings make the sums of the laws differ, what one holds more of stays where moving it costs most.
    """
    rows, columns = np.flatnonzero(source), np.flatnonzero(target)
    costs, unit = _whole(cost.take(rows, columns).matrix())
    masses, share = _whole(np.concatenate([source[rows], target[columns]]))
    left, wanted = masses[: len(rows)].copy(), masses[len(rows) :].copy()
    zeros = [np.zeros(size, dtype=object) for size in (costs.shape, len(rows), len(columns))]
    flow = Flow(costs, left, wanted, *zeros)
    while (flow.left > 0).any() and (flow.wanted > 0).any():
        flow.advance()
    some, others = np.nonzero(flow.moved)
    moved = np.array([int(mass) / share for mass in flow.moved[some, others]], dtype=np.float64)
    plan = repaired(plan_of(rows[some], columns[others], moved, cost.shape), source, target)
    u = np.array([-int(p) / unit for p in flow.p], dtype=np.float64)
    proof = feasible_dual(cost, rows, u, source, target)
    return Coupling(plan, plan_cost(cost, plan), proof, 1.0, "shortest augmenting paths")


def _whole(values: Floats) -> tuple[Wholes, int]:
    """``values`` as multiples of one over a power of two, and that power; nothing is rounded."""
    ratios: list[Any] = [value.as_integer_ratio() for value in values.ravel().tolist()]
    unit = max(below for _, below in ratios)
    found = np.array([above * (unit // below) for above, below in ratios] + [None], dtype=object)[:-1]
    return found.reshape(values.shape), unit
