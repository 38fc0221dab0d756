"""W_∞: the least r such that all mass can move by at most r (theory §6): a search over r with maximum flows.

Masses are multiples of 2⁻⁶⁰. A flow that misses 1e−12 of the total mass counts as complete, since float distributions
are rarely exact; the missing mass goes to the nearest target instead, so that no entry of the plan costs more than r.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Self

import numpy as np

from tightrope.numerics.arrays import Floats, Integers
from tightrope.numerics.root_finding import bisect_integer
from tightrope.transport.costs.costs import Cost, round_to_integer_masses
from tightrope.transport.costs.points import Line
from tightrope.transport.solvers.closed_form import north_west_staircase
from tightrope.transport.solvers.flow import Arcs, largest_flow
from tightrope.transport.solvers.result import Coupling, Cut, sparse_plan

# 1. W_∞ on a line: monotone rearrangement is optimal here too, and a half-line is the proof. Linear memory, no solver.

IGNORED_MASS = 1e-12
"""Total mass whose distance is ignored."""


def line_bottleneck(cost: Line, source: Floats, target: Floats) -> Coupling:
    """Return the monotone coupling without the tiny entries that rounding leaves at its corners."""
    rows, columns = np.argsort(cost.x, kind="stable"), np.argsort(cost.y, kind="stable")
    stairs = north_west_staircase(source[rows], target[columns])
    lengths = cost.pair_costs(rows[stairs.rows], columns[stairs.columns])
    # The furthest entries with a total mass of 1e−12, except the largest entry of a row or a column.
    largest = np.zeros(stairs.rows[-1] + 1), np.zeros(stairs.columns[-1] + 1)
    for index, maxima in zip((stairs.rows, stairs.columns), largest, strict=True):
        np.maximum.at(maxima, index, stairs.masses)
    is_not_largest = (stairs.masses < largest[0][stairs.rows]) & (stairs.masses < largest[1][stairs.columns])
    negligible = np.flatnonzero(is_not_largest & (stairs.masses <= IGNORED_MASS))
    furthest = negligible[np.argsort(-lengths[negligible], kind="stable")]
    is_dropped = np.zeros(stairs.entry_count, dtype=bool)
    is_dropped[furthest[np.cumsum(stairs.masses[furthest]) <= IGNORED_MASS]] = True
    is_kept = (stairs.masses > 0) & ~is_dropped
    # Masses without the dropped entries, rows scaled back to their marginals.
    row_masses = source[rows]
    kept_masses = np.where(is_kept, stairs.masses, 0.0)
    row_sums = np.bincount(stairs.rows, kept_masses, len(row_masses))
    row_factors = row_masses / np.where(row_sums > 0, row_sums, 1.0)
    masses: Floats = kept_masses * row_factors[stairs.rows]
    plan = sparse_plan(rows[stairs.rows], columns[stairs.columns], masses, cost.matrix_shape)
    longest = int(np.argmax(np.where(is_kept, lengths, -1.0)))
    i, j = int(rows[stairs.rows[longest]]), int(columns[stairs.columns[longest]])
    # Sources from x_i outwards hold more than the targets before y_j: some mass must move |x_i − y_j|.
    upward = cost.x[i] <= cost.y[j]
    in_sources = cost.x <= cost.x[i] if upward else cost.x >= cost.x[i]
    in_targets = cost.y < cost.y[j] if upward else cost.y > cost.y[j]
    surplus = float(source[in_sources].sum() - target[in_targets].sum())
    pair = (np.array([i]), np.array([j]))
    proof = Cut(in_sources, in_targets, surplus, float(cost.pair_costs(*pair)[0]))
    return Coupling(plan, float(lengths[longest]), proof, math.inf, "monotone rearrangement")


# 2. W_∞ for other costs.

FLOW_BITS = 60
"""Masses are multiples of 2⁻⁶⁰."""
RADIUS_GROWTH = 1.4
"""Growth factor of r while it is too small: in the plane it about doubles the number of pairs."""


@dataclass(frozen=True, slots=True, eq=False)
class PricedPairs:
    """Pairs (rows[k], columns[k]) and their costs, between the points with mass."""

    rows: Integers
    columns: Integers
    costs: Floats

    def up_to(self, radius: float) -> Self:
        """Return the pairs that cost at most ``radius``."""
        return self._select_pairs(self.costs <= radius)

    def cheaper_than(self, radius: float) -> Self:
        """Return the pairs that cost less than ``radius``."""
        return self._select_pairs(self.costs < radius)

    def _select_pairs(self, chosen: np.ndarray[tuple[int], np.dtype[np.bool_]]) -> Self:
        return type(self)(self.rows[chosen], self.columns[chosen], self.costs[chosen])


@dataclass(frozen=True, slots=True, eq=False)
class IntegerMasses:
    """Both distributions as integers, on the points with mass."""

    source: Integers
    target: Integers

    def largest_flow_along(self, near: PricedPairs) -> tuple[Integers, Integers]:
        """Return a maximum flow along these pairs, and the nodes on the source's side of a minimum cut."""
        n, m = len(self.source), len(self.target)
        start, end, source_nodes, target_nodes = n + m, n + m + 1, np.arange(n), np.arange(n, n + m)
        tails = np.concatenate([near.rows, np.full(n, start), target_nodes])
        heads = np.concatenate([near.columns + n, source_nodes, np.full(m, end)])
        capacities = np.minimum(self.source[near.rows], self.target[near.columns])
        flows, cut_nodes = largest_flow(
            Arcs(tails, heads), np.concatenate([capacities, self.source, self.target]), start, end
        )
        return flows[: len(near.rows)], cut_nodes

    def all_mass_fits(self, near: PricedPairs) -> bool:
        """Return whether all but 1e−12 of the mass can move along these pairs."""
        flows, _ = self.largest_flow_along(near)
        return int(flows.sum()) >= (1 << FLOW_BITS) - math.floor(math.ldexp(IGNORED_MASS, FLOW_BITS))


def bottleneck_coupling(cost: Cost, source: Floats, target: Floats) -> Coupling:
    """Return a coupling of least maximum cost, with the cut that proves it."""
    if isinstance(cost, Line):
        return line_bottleneck(cost, source, target)
    rows, columns = np.flatnonzero(source), np.flatnonzero(target)
    used_cost = cost.select_points(rows, columns)
    masses = IntegerMasses(
        round_to_integer_masses(source[rows], FLOW_BITS), round_to_integer_masses(target[columns], FLOW_BITS)
    )
    radius, near = _search_radius(used_cost, masses)
    flows, _ = masses.largest_flow_along(near)
    moved = np.ldexp(flows.astype(np.float64), -FLOW_BITS)
    # The remainder of the flow goes to the nearest target: every source has one within the radius.
    row_masses = source[rows]
    order = np.lexsort((near.costs, near.rows))
    nearest_pair = order[np.searchsorted(near.rows[order], np.arange(len(row_masses)))]
    completed = moved.copy()
    completed[nearest_pair] += np.maximum(0.0, row_masses - np.bincount(near.rows, moved, len(row_masses)))
    moved = completed
    plan = sparse_plan(rows[near.rows], columns[near.columns], moved, cost.matrix_shape)
    # The sources on the source's side of a minimum cut of the pairs that cost less, and the targets that they reach;
    # points without mass are in neither set.
    cheaper = near.cheaper_than(radius)
    _, cut_nodes = masses.largest_flow_along(cheaper)
    in_sources, in_targets = np.zeros(len(source), dtype=bool), np.zeros(len(target), dtype=bool)
    in_sources[rows[cut_nodes[cut_nodes < len(rows)]]] = True
    in_targets[columns[cheaper.columns[in_sources[rows[cheaper.rows]]]]] = True
    proof = Cut(in_sources, in_targets, float(source[in_sources].sum() - target[in_targets].sum()), radius)
    return Coupling(plan, radius, proof, math.inf, "threshold and largest flow")


def _search_radius(cost: Cost, masses: IntegerMasses) -> tuple[float, PricedPairs]:
    """Return the least feasible radius, and the pairs within it."""
    lower_bound = max(
        float(cost.row_potentials(np.zeros(cost.matrix_shape[1])).max()),
        float(cost.column_potentials(np.zeros(cost.matrix_shape[0])).max()),
    )
    radius = lower_bound
    near = pairs_within(cost, radius)
    while not masses.all_mass_fits(near):
        lower_bound = np.nextafter(radius, np.inf)
        # The least positive cost, if not all mass can stay.
        radius = RADIUS_GROWTH * radius or min(
            float(costs[costs > 0].min(initial=np.inf)) for _, costs in cost.row_blocks()
        )
        near = pairs_within(cost, radius)
    levels = np.unique(near.costs[near.costs >= lower_bound])
    least = bisect_integer(
        lambda index: masses.all_mass_fits(near.up_to(levels[index])), -1, len(levels) - 1, side="passes"
    )
    return float(levels[least]), near.up_to(levels[least])


def pairs_within(cost: Cost, radius: float) -> PricedPairs:
    """Return all pairs that cost at most ``radius``, without building the matrix."""
    blocks = []
    for rows, costs in cost.row_blocks():
        i, j = np.nonzero(costs <= radius)
        blocks.append((rows[i], j, costs[i, j]))
    return PricedPairs(*(np.concatenate(part) for part in zip(*blocks, strict=True)))
