"""W_∞: the least r so that all mass can move at most r (theory §6). A search over r, with a largest flow at each.

Masses are multiples of 2⁻⁶⁰. A flow that leaves 1e−12 of the mass in all behind counts as complete, since laws in
floats are rarely exact; those parcels go to the nearest place instead, so that no entry of the plan costs more than r.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Self

import numpy as np

from tightrope.numerics.arrays import Floats, Integers
from tightrope.transport.costs.costs import Cost
from tightrope.transport.costs.laws import whole_masses
from tightrope.transport.costs.real_line import Line
from tightrope.transport.libraries.ortools_flows import Arcs, largest_flow
from tightrope.transport.proofs.certificates import Cut
from tightrope.transport.proofs.result import Coupling, plan_of
from tightrope.transport.solvers.line_bottleneck import LEFT_OUT, line_bottleneck

FLOW_BITS = 60
WIDEN = 1.4
"""While r is too small it grows by this factor: in a plane that is about twice as many pairs a step."""


@dataclass(frozen=True, slots=True, eq=False)
class Near:
    """Pairs (rows[k], columns[k]) and what they cost, between the points that have mass."""

    rows: Integers
    columns: Integers
    costs: Floats

    def up_to(self, radius: float) -> Self:
        """Those that cost at most ``radius``."""
        return self._where(self.costs <= radius)

    def below(self, radius: float) -> Self:
        """Those that cost less."""
        return self._where(self.costs < radius)

    def _where(self, chosen: np.ndarray[tuple[int], np.dtype[np.bool_]]) -> Self:
        return type(self)(self.rows[chosen], self.columns[chosen], self.costs[chosen])


@dataclass(frozen=True, slots=True, eq=False)
class Masses:
    """Both laws as integers, on the points that have mass."""

    source: Integers
    target: Integers

    def flow(self, near: Near) -> tuple[Integers, Integers]:
        """What can move along each pair, and the nodes on the source's side of a smallest cut."""
        n, m = len(self.source), len(self.target)
        start, end, here, there = n + m, n + m + 1, np.arange(n), np.arange(n, n + m)
        tails = np.concatenate([near.rows, np.full(n, start), there])
        heads = np.concatenate([near.columns + n, here, np.full(m, end)])
        room = np.minimum(self.source[near.rows], self.target[near.columns])
        flows, side = largest_flow(Arcs(tails, heads), np.concatenate([room, self.source, self.target]), start, end)
        return flows[: len(near.rows)], side

    def fits(self, near: Near) -> bool:
        """Whether all but 1e−12 of the mass can move along these pairs."""
        flows, _ = self.flow(near)
        return int(flows.sum()) >= (1 << FLOW_BITS) - math.floor(math.ldexp(LEFT_OUT, FLOW_BITS))


def bottleneck(cost: Cost, source: Floats, target: Floats) -> Coupling:
    """A coupling whose largest cost is least, with the cut that proves it."""
    if isinstance(cost, Line):
        return line_bottleneck(cost, source, target)
    rows, columns = np.flatnonzero(source), np.flatnonzero(target)
    some = cost.take(rows, columns)
    masses = Masses(whole_masses(source[rows], FLOW_BITS), whole_masses(target[columns], FLOW_BITS))
    radius, near = _search(some, masses)
    flows, _ = masses.flow(near)
    moved = np.ldexp(flows.astype(np.float64), -FLOW_BITS)
    moved = _completed(near, moved, source[rows])
    plan = plan_of(rows[near.rows], columns[near.columns], moved, cost.shape)
    proof = _cut(some, masses, near.below(radius), radius)
    return Coupling(plan, radius, _placed(proof, rows, columns, source, target), math.inf, "threshold and largest flow")


def _search(cost: Cost, masses: Masses) -> tuple[float, Near]:
    """The least radius that fits, and the pairs within it."""
    below = max(
        float(cost.row_room(np.zeros(cost.shape[1])).max()), float(cost.column_room(np.zeros(cost.shape[0])).max())
    )
    radius = below
    near = within(cost, radius)
    while not masses.fits(near):
        below = np.nextafter(radius, np.inf)
        radius = WIDEN * radius or _first(cost)
        near = within(cost, radius)
    steps = np.unique(near.costs[near.costs >= below])
    low, high = 0, len(steps) - 1
    while low < high:
        middle = (low + high) // 2
        low, high = (low, middle) if masses.fits(near.up_to(steps[middle])) else (middle + 1, high)
    return float(steps[low]), near.up_to(steps[low])


def _first(cost: Cost) -> float:
    """The least positive cost, where staying is not enough."""
    return min(float(costs[costs > 0].min(initial=np.inf)) for _, costs in cost.blocks())


def within(cost: Cost, radius: float) -> Near:
    """All pairs that cost at most ``radius``; the matrix is not built."""
    found = []
    for rows, costs in cost.blocks():
        i, j = np.nonzero(costs <= radius)
        found.append((rows[i], j, costs[i, j]))
    return Near(*(np.concatenate(part) for part in zip(*found, strict=True)))


def _completed(near: Near, moved: Floats, source: Floats) -> Floats:
    """What the flow left behind goes to the nearest target: every source has one within the radius."""
    order = np.lexsort((near.costs, near.rows))
    first = order[np.searchsorted(near.rows[order], np.arange(len(source)))]
    whole = moved.copy()
    whole[first] += np.maximum(0.0, source - np.bincount(near.rows, moved, len(source)))
    return whole


def _cut(cost: Cost, masses: Masses, near: Near, radius: float) -> Cut:
    """The sources on the source's side of a smallest cut, where only what costs less than ``radius`` may be used."""
    _, side = masses.flow(near)
    chosen = np.zeros(cost.shape[0], dtype=bool)
    chosen[side[side < cost.shape[0]]] = True
    reached = np.zeros(cost.shape[1], dtype=bool)
    reached[near.columns[chosen[near.rows]]] = True
    return Cut(chosen, reached, 0.0, radius)


def _placed(cut: Cut, rows: Integers, columns: Integers, source: Floats, target: Floats) -> Cut:
    """The cut among all points; those without mass are in neither set."""
    chosen, reached = np.zeros(len(source), dtype=bool), np.zeros(len(target), dtype=bool)
    chosen[rows], reached[columns] = cut.sources, cut.targets
    return Cut(chosen, reached, float(source[chosen].sum() - target[reached].sum()), cut.value)
