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
from tightrope.transport.costs.costs import Cost, whole_masses
from tightrope.transport.costs.points import Line
from tightrope.transport.solvers.libraries import Arcs, largest_flow
from tightrope.transport.solvers.monotone import staircase
from tightrope.transport.solvers.result import Coupling, Cut, plan_of

# W_∞ on a line: monotone rearrangement is optimal here too, and a half-line proves it. Linear memory, no solver.

LEFT_OUT = 1e-12
"""So much mass in all is not asked how far it moves."""
Marks = np.ndarray[tuple[int], np.dtype[np.bool_]]


def line_bottleneck(cost: Line, source: Floats, target: Floats) -> Coupling:
    """The monotone coupling without the slivers that roundings of the laws leave at its corners."""
    rows, columns = np.argsort(cost.x, kind="stable"), np.argsort(cost.y, kind="stable")
    stairs = staircase(source[rows], target[columns])
    lengths = cost.pairs(rows[stairs.rows], columns[stairs.columns])
    # The furthest entries that hold 1e−12 in all, but never the largest entry of a row or a column.
    largest = np.zeros(stairs.rows[-1] + 1), np.zeros(stairs.columns[-1] + 1)
    for index, found in zip((stairs.rows, stairs.columns), largest, strict=True):
        np.maximum.at(found, index, stairs.masses)
    small = (stairs.masses < largest[0][stairs.rows]) & (stairs.masses < largest[1][stairs.columns])
    tiny = np.flatnonzero(small & (stairs.masses <= LEFT_OUT))
    furthest = tiny[np.argsort(-lengths[tiny], kind="stable")]
    marks = np.zeros(stairs.size, dtype=bool)
    marks[furthest[np.cumsum(stairs.masses[furthest]) <= LEFT_OUT]] = True
    kept = (stairs.masses > 0) & ~marks
    # Masses without the slivers, rows stretched back to what they should hold.
    whole_rows_source = source[rows]
    whole_rows_masses = np.where(kept, stairs.masses, 0.0)
    held = np.bincount(stairs.rows, whole_rows_masses, len(whole_rows_source))
    stretch = whole_rows_source / np.where(held > 0, held, 1.0)
    masses: Floats = whole_rows_masses * stretch[stairs.rows]
    plan = plan_of(rows[stairs.rows], columns[stairs.columns], masses, cost.shape)
    worst = int(np.argmax(np.where(kept, lengths, -1.0)))
    i, j = int(rows[stairs.rows[worst]]), int(columns[stairs.columns[worst]])
    # Sources from x_i outwards hold more than the targets that stop short of y_j: some mass goes |x_i − y_j|.
    upward = cost.x[i] <= cost.y[j]
    chosen = cost.x <= cost.x[i] if upward else cost.x >= cost.x[i]
    reached = cost.y < cost.y[j] if upward else cost.y > cost.y[j]
    surplus = float(source[chosen].sum() - target[reached].sum())
    pair = (np.array([i]), np.array([j]))
    proof = Cut(chosen, reached, surplus, float(cost.pairs(*pair)[0]))
    return Coupling(plan, float(lengths[worst]), proof, math.inf, "monotone rearrangement")


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
    # What the flow left behind goes to the nearest target: every source has one within the radius.
    completed_source = source[rows]
    order = np.lexsort((near.costs, near.rows))
    first = order[np.searchsorted(near.rows[order], np.arange(len(completed_source)))]
    whole = moved.copy()
    whole[first] += np.maximum(0.0, completed_source - np.bincount(near.rows, moved, len(completed_source)))
    moved = whole
    plan = plan_of(rows[near.rows], columns[near.columns], moved, cost.shape)
    proof = _cut(some, masses, near.below(radius), radius)
    # The cut among all points; those without mass are in neither set.
    chosen, reached = np.zeros(len(source), dtype=bool), np.zeros(len(target), dtype=bool)
    chosen[rows], reached[columns] = proof.sources, proof.targets
    return Coupling(
        plan,
        radius,
        Cut(chosen, reached, float(source[chosen].sum() - target[reached].sum()), proof.value),
        math.inf,
        "threshold and largest flow",
    )


def _search(cost: Cost, masses: Masses) -> tuple[float, Near]:
    """The least radius that fits, and the pairs within it."""
    below = max(
        float(cost.row_room(np.zeros(cost.shape[1])).max()), float(cost.column_room(np.zeros(cost.shape[0])).max())
    )
    radius = below
    near = within(cost, radius)
    while not masses.fits(near):
        below = np.nextafter(radius, np.inf)
        # The least positive cost, where staying is not enough.
        radius = WIDEN * radius or min(float(costs[costs > 0].min(initial=np.inf)) for _, costs in cost.blocks())
        near = within(cost, radius)
    steps = np.unique(near.costs[near.costs >= below])
    low, high = 0, len(steps) - 1
    while low < high:
        middle = (low + high) // 2
        low, high = (low, middle) if masses.fits(near.up_to(steps[middle])) else (middle + 1, high)
    return float(steps[low]), near.up_to(steps[low])


def within(cost: Cost, radius: float) -> Near:
    """All pairs that cost at most ``radius``; the matrix is not built."""
    found = []
    for rows, costs in cost.blocks():
        i, j = np.nonzero(costs <= radius)
        found.append((rows[i], j, costs[i, j]))
    return Near(*(np.concatenate(part) for part in zip(*found, strict=True)))


def _cut(cost: Cost, masses: Masses, near: Near, radius: float) -> Cut:
    """The sources on the source's side of a smallest cut, where only what costs less than ``radius`` may be used."""
    _, side = masses.flow(near)
    chosen = np.zeros(cost.shape[0], dtype=bool)
    chosen[side[side < cost.shape[0]]] = True
    reached = np.zeros(cost.shape[1], dtype=bool)
    reached[near.columns[chosen[near.rows]]] = True
    return Cut(chosen, reached, 0.0, radius)
