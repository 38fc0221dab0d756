"""Worst adaptive composition of mechanisms whose losses lie in an interval of known length, by dynamic programming.

A step of range e moves γ = e^ε to γ e^{−L}, which lies in some interval [y, e^e y] and has mean γ. Its worst law is the
two-point law on the ends, since profiles are convex in γ. So one step maps the profile F of the later steps to

    (T F)(γ) = max over y in [e^{−e} γ, γ] of the chord of F through y and e^e y, at γ,

and k steps after each other have T…T (1 − γ)₊ exactly (``docs/proofs/bounded-range.md``). Profiles are stored at
γ = e^{nh}, n ≥ 0: from above as polygons, from below as the values of an adversary with offsets on this lattice.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Self

import numpy as np

from tightrope.accounting.distributions.atoms import Atoms
from tightrope.accounting.distributions.base import LEAST_DOUBLE, BoundArrays
from tightrope.accounting.methods.method import EpsilonGuess
from tightrope.numerics.arrays import Floats
from tightrope.numerics.rounding import ROUND_OFF

STEP_ROUNDING = 32 * ROUND_OFF
"""Relative rounding error of one step: positive terms, weights to a few units in the last place each."""
LENGTH_ROUNDING = 4 * ROUND_OFF
"""Relative rounding error of a length in lattice steps."""
POSITION_MARGIN = 0.05
"""Cells this near to a possible maximum, in lattice steps, are searched, too: positions have rounding errors."""


Integers = np.ndarray[tuple[int], np.dtype[np.int64]]


@dataclass(frozen=True, slots=True, eq=False)
class OffsetCurve:
    """Bounds on a profile F that is its own mirror image, at e^{n step} for n = 0, …, N.

    ``lower`` and ``upper`` hold at these points; between them, F is below the polygon of ``upper``. Beyond the last
    point F is at most ``rest``, and 0 if that is 0.
    """

    step: float
    lower: Floats
    upper: Floats
    rest: float

    @classmethod
    def from_length(cls, step: float, length: float) -> Self:
        """Return the curve of a single step of this range: (1 − e^{(ε − e)/2})² / (1 − e^{−e})."""
        losses, whole = step * np.arange(math.ceil(length / step * (1 + LENGTH_ROUNDING)) + 1), -math.expm1(-length)
        room = 4 * ROUND_OFF * length
        low, high = (np.expm1(np.minimum(losses - length + shift, 0.0) / 2) ** 2 / whole for shift in (room, -room))
        high[losses - length > room] = 0.0
        return cls(step, low * (1 - STEP_ROUNDING), np.minimum(high * (1 + STEP_ROUNDING), 1.0), 0.0)

    def values_between(self, first: int, last: int) -> BoundArrays:
        """Return both bounds at points ``first`` to ``last``."""
        return self._values_at(np.arange(first, last + 1))

    def _values_at(self, positions: Integers) -> BoundArrays:
        """Return both bounds at these points; below 0 by the mirror image 1 − γ + γ F(1/γ)."""
        known = len(self.upper)
        distance = np.abs(positions)
        inside, index = distance < known, np.minimum(distance, known - 1)
        low, high = np.where(inside, self.lower[index], 0.0), np.where(inside, self.upper[index], self.rest)
        below = positions < 0
        if below.any():
            sizes = self.step * distance[below]
            gained, factor = -np.expm1(-sizes), np.exp(-sizes)
            low[below] = (gained + factor * low[below]) * (1 - STEP_ROUNDING)
            high[below] = (gained + factor * high[below]) * (1 + STEP_ROUNDING)
        return low, high

    def values_at_ends(self, first: int, last: int, lengths: tuple[float, float]) -> BoundArrays:
        """Return both bounds at points ``first`` to ``last`` moved up by the lengths (in steps), one for each bound."""
        whole = [math.floor(length) for length in lengths]
        low, high = self.values_between(first + whole[0] - 1, last + whole[0] + 2)
        lower = _lower_between(low, high, lengths[0] - whole[0], self.step)
        _, high = self.values_between(first + whole[1], last + whole[1] + 1)
        share = math.expm1((lengths[1] - whole[1]) * self.step) / math.expm1(self.step)
        return lower, (1 - share) * high[:-1] + share * high[1:]

    def delta_bounds_at(self, epsilons: Floats) -> BoundArrays:
        """Return bounds on F at ε ≥ 0."""
        room = 2 * LENGTH_ROUNDING * epsilons
        cells, share, columns = self._neighbors_at(np.maximum(epsilons - room, 0.0))
        high = (1 - share) * columns[1][1] + share * columns[2][1]
        cells, share, columns = self._neighbors_at(epsilons + room)
        low = np.where(cells >= len(self.upper), 0.0, _extrapolate_from_both(columns, share, self.step))
        return low * (1 - STEP_ROUNDING), np.minimum(high * (1 + STEP_ROUNDING), 1.0)

    def _neighbors_at(self, epsilons: Floats) -> tuple[Integers, Floats, list[BoundArrays]]:
        """Return cells, the share of the cell in γ that is below ε, and both bounds at its ends and one further out."""
        positions = np.minimum(epsilons / self.step, len(self.upper) + 1.0)
        cells = np.floor(positions).astype(np.int64)
        share = np.expm1((positions - cells) * self.step) / math.expm1(self.step)
        return cells, share, [self._values_at(cells + offset) for offset in (-1, 0, 1, 2)]

    def relative_gaps(self, below: OffsetCurve) -> Floats:
        """Return, for the cells from 0 on, a bound on (U − F) / U in the cell: U is this polygon, F above ``below``."""
        low, high = below.values_between(-1, len(self.upper) + 1)
        count = len(self.upper)
        columns = [(low[i : count + i], high[i : count + i]) for i in range(4)]
        (_, before), (left, _), (right, _), (_, after) = columns
        upper_left, upper_right = self.upper, np.append(self.upper[1:], self.rest)
        # The two chords extended are lines, as is the upper bound: the least ratio is at an end, or where they cross.
        fall, rise = (before - left) * math.exp(self.step), (right - after) * math.exp(-self.step)
        with np.errstate(divide="ignore", invalid="ignore"):
            crossing = np.clip(np.nan_to_num((left - right - rise) / (fall - rise)), 0.0, 1.0)
            line = (1 - crossing) * upper_left + crossing * upper_right
            at_crossing = np.maximum(left - fall * crossing, right + rise * (1 - crossing))
            ratios = [at_crossing / line, left / upper_left, right / upper_right]
        least = np.clip(np.nan_to_num(np.minimum.reduce(ratios)), 0.0, 1.0)
        return np.asarray(1 - least * (1 - STEP_ROUNDING))

    def join_largest(self, other: OffsetCurve) -> OffsetCurve:
        """Return the larger of both curves: the polygon of the larger values is above both polygons."""
        count = max(len(self.upper), len(other.upper))
        parts = [curve._values_at(np.arange(count)) for curve in (self, other)]
        low, high = (np.maximum(*ends) for ends in zip(*parts, strict=True))
        return OffsetCurve(self.step, low, high, max(self.rest, other.rest))

    def approximate_epsilon_at(self, target: float) -> EpsilonGuess | None:
        """Return ε with F(ε) about the target, and the rate at which F decays there."""
        cell = int(np.count_nonzero(self.upper > target)) - 1
        if not 0 <= cell < len(self.upper) - 1 or not self.upper[cell + 1] > 0:
            return None
        rate = math.log(self.upper[cell] / self.upper[cell + 1]) / self.step
        return EpsilonGuess(cell * self.step + math.log(self.upper[cell] / target) / rate, rate) if rate > 0 else None

    def upper_atoms(self) -> Atoms:
        """Return the pair whose profile is the polygon: P-mass e^ε times the jump of the slope at each kink."""
        _, high = self.values_between(-1, len(self.upper))
        falls = -np.diff(high)
        masses = np.maximum(math.exp(self.step) * falls[:-1] - falls[1:], 0.0) / math.expm1(self.step)
        losses = self.step * np.arange(len(masses))
        mirrored = (masses * np.exp(-losses))[:0:-1]
        atoms = Atoms.merge_losses(
            np.concatenate([-losses[:0:-1], losses]),
            np.concatenate([mirrored, masses]),
            infinite_mass=self.rest,
            reverse_infinity_mass=self.rest,
            rounding_error_bound=LENGTH_ROUNDING * float(losses[-1]),
        )
        roundings = high[1:-1] / np.maximum(masses * math.expm1(self.step), LEAST_DOUBLE)
        return replace(atoms, relative_mass_error=min(1.0, 8 * ROUND_OFF * float(np.max(roundings))))


def _lower_between(low: Floats, high: Floats, fraction: float, step: float) -> Floats:
    """Return lower bounds at positions n + fraction, from bounds at n − 1, …: convex functions are above their chords
    extended.
    """
    count = len(low) - 3
    columns = [(low[i : count + i], high[i : count + i]) for i in range(4)]
    share = math.expm1(fraction * step) / math.expm1(step)
    return np.asarray(_extrapolate_from_both(columns, share, step))


def _extrapolate_from_both(columns: list[BoundArrays], share: Floats | float, step: float) -> Floats:
    """Return a lower bound between the second and the third point, at this share of their distance in γ."""
    (_, before), (left, _), (right, _), (_, after) = columns
    shrink, grow = math.exp(step), math.exp(-step)
    from_left = left - np.maximum(before - left, 0.0) * shrink * share
    from_right = right + np.maximum(right - after, 0.0) * grow * (1 - share)
    return np.maximum(np.maximum(from_left, from_right), right)


class ChordWeights:
    """At γ, the weights of the ends y = γ e^{−n step} and e^{length} y of a chord; tables over n = 0, 1, …."""

    __slots__ = ("far", "last", "near", "root")

    def __init__(self, step: float, length: float) -> None:
        """``length``: of the chord, in steps."""
        self.last = math.floor(length)
        distance, whole = np.arange(self.last + 1.0), -math.expm1(-length * step)
        rest = (length - distance) * step
        self.near = -np.expm1(-rest) / whole
        self.far = np.exp(-rest) * -np.expm1(-distance * step) / whole
        self.root = np.sqrt(np.exp(-rest) / whole)
        """√(γ / (y (e^{length} − 1)))."""

    def chord_at(self, distance: Integers, nodes: Integers, values: Floats, far_values: Floats) -> Floats:
        """Return the values at γ of the chords from the nodes."""
        return self.near[distance] * values[nodes] + self.far[distance] * far_values[nodes]


def prepend_step(curve: OffsetCurve, length: float, last: int) -> OffsetCurve:
    """Return T F for a step of this range in front of the others, at points 0 to at most ``last``."""
    exact = length / curve.step
    is_exact = exact * curve.step == length and math.frexp(exact)[0] == 0.5  # a power of two
    room = 0.0 if is_exact else LENGTH_ROUNDING * (exact + 1)
    shorter, longer = exact - room, exact + room
    end = len(curve.upper) - 1 + math.ceil(longer)  # F is 0 from here on
    points = np.arange(min(last + 1, end))
    first, top = -math.ceil(longer) - 1, len(curve.upper) - 1
    values = curve.values_between(first, top)
    far_values = curve.values_at_ends(first, top, (shorter, longer))
    start_low, start_high = curve.values_between(0, len(points) - 1)
    best_nodes, upper = _largest_chords(values[1], far_values[1], first, curve.step, longer, start_high)
    # The adversary with offsets on the lattice: the nodes at both ends of the best cell.
    weights, lower = ChordWeights(curve.step, shorter), start_low
    for nodes in (best_nodes, best_nodes - 1):
        distance = np.clip(points - nodes, np.maximum(points - top, 0), weights.last)
        chords = weights.chord_at(distance, np.minimum(points - distance, top) - first, values[0], far_values[0])
        lower = np.where(points - distance <= top, np.maximum(lower, chords), lower)
    lower, upper = lower * (1 - STEP_ROUNDING), np.minimum(upper * (1 + STEP_ROUNDING), 1.0)
    if end <= last:
        return OffsetCurve(curve.step, np.append(lower, 0.0), np.append(upper, 0.0), 0.0)
    return OffsetCurve(curve.step, lower, upper, float(upper[-1]))


def _largest_chords(
    values: Floats, far_values: Floats, first: int, step: float, length: float, start: Floats
) -> tuple[Integers, Floats]:
    """Return the nodes to the right of the best y, and the largest chord of the polygon, at least ``start``, at each γ.

    In a cell the chord at γ is C − A y − B γ/y. With K(y) = y² A/B it is largest where K(y) = γ, and there
    (B γ/y_n) (√(K(y_n) / γ) − 1)² above its value at the node y_n to the right.
    """
    width = math.expm1(step)
    falls, far_falls = -np.diff(values) / width, -np.diff(far_values) / width
    slope = (values[:-1] - far_values[:-1]) / math.expm1(length * step)
    # B, as the sum of how much steeper the chord is than the polygon at its far end, and less steep at its near end.
    near = np.maximum(falls - slope, 0.0)
    b = near + np.maximum(math.exp(length * step) * slope - far_falls, 0.0)
    with np.errstate(divide="ignore", invalid="ignore"):
        begin = first + np.arange(len(b)) + np.log1p(math.expm1(length * step) * (near / b)) / step
    points, root_b = np.arange(len(start)), np.sqrt(b)
    low_cell, high_cell = _candidate_cells(begin, first, length, points)
    best, best_node, weights = start.copy(), points.copy(), ChordWeights(step, length)
    for offset in range(int(np.max(high_cell - low_cell)) + 1):
        active = points if offset == 0 else np.flatnonzero(low_cell + offset <= high_cell)
        cell = low_cell[active] + offset
        distance = active - cell - first - 1
        to_node = begin[cell] + 2 - active  # log K(y_n)/γ, in steps
        inside = (to_node > 0) & (to_node < 2)
        gain = root_b[cell] * weights.root[distance] * np.expm1(np.where(inside, to_node, 0.0) * (step / 2))
        chord = weights.chord_at(distance, cell + 1, values, far_values) + gain**2
        better = np.flatnonzero(chord > best[active])
        best[active[better]], best_node[active[better]] = chord[better], cell[better] + first + 1
    return best_node, best


def _candidate_cells(begin: Floats, first: int, length: float, points: Integers) -> tuple[Integers, Integers]:
    """Return the first and the last cell in which the chord can be largest; ``begin``: of K in each cell, in steps.

    In a cell the chord rises with y while γ > K(y), and K rises by e^{2 step}: before the first cell that reaches γ
    the chord rises, and after the last cell that begins below γ it falls. A cell without a number is flat.
    """
    flat = np.isnan(begin)
    reached = np.maximum.accumulate(np.where(flat, -np.inf, begin + 2 + POSITION_MARGIN))
    still_below = np.minimum.accumulate(np.where(flat, np.inf, begin - POSITION_MARGIN)[::-1])[::-1]
    start = np.searchsorted(reached, points, side="left")
    end = np.searchsorted(still_below, points, side="right") - 1
    nearest = np.minimum(points - 1 - first, len(begin) - 1)
    farthest = np.minimum(points - math.floor(length) - 1 - first, nearest)
    return np.clip(np.minimum(start, end), farthest, nearest), np.clip(np.maximum(start, end), farthest, nearest)
