"""Compositions with steps of bounded range, whose offsets the analyst chooses adaptively: the worst case, in a bracket.

The steps of bounded range are worst if they come last, since their offsets may then depend on all other outcomes; among
themselves any order counts, also one that is chosen on the way. So the loss is that of the other steps together with
one pair, whose profile is the result of the dynamic program (``docs/proofs/bounded-range.md``).

The program on one lattice: a step of range e moves γ = e^ε to γ e^{−L}, which lies in some interval [y, e^e y] and has
mean γ. Its worst distribution is the two-point one on the ends, since profiles are convex in γ. So one step maps the
profile F of the later steps to

    (T F)(γ) = max over y in [e^{−e} γ, γ] of the chord of F through y and e^e y, at γ,

and k steps after each other have T…T (1 − γ)₊ exactly (``docs/proofs/bounded-range.md``). Profiles are stored at
γ = e^{nh}, n ≥ 0: from above as polygons, from below as the values of an adversary with offsets on this lattice.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import lru_cache
from typing import NamedTuple, Self

import numpy as np

from tightrope.accounting.bounds import Interval, probability_error_bounds
from tightrope.accounting.distributions.atoms import Atoms
from tightrope.accounting.distributions.base import LEAST_DOUBLE, BoundArrays, LossDistribution, mirror_bounds
from tightrope.accounting.distributions.composition import Composition
from tightrope.accounting.methods.method import EpsilonGuess, Method
from tightrope.numerics.arrays import Floats
from tightrope.numerics.rounding import ROUND_OFF

# 1. The program on one lattice.

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


# 2. Orders, other mechanisms, and the choice of the lattice.

MAX_STEPS = 1000
"""Largest number of steps of bounded range."""
MAX_LENGTH = 50.0
"""Largest range of a step, in nats."""
MAX_CHORDS = 6000
"""Largest number of pairs of a multiset of steps and a step before it: with more, near ranges are rounded up."""
MAX_DENOMINATOR = 12
"""Ranges whose ratios have larger denominators share no lattice; their ends fall between its points."""
RESOLVED_DELTA = 1e-30
"""Losses with a smaller δ are not resolved."""
FAR_BEYOND = 0.6
"""All losses are resolved unless this part of the largest one has so small a δ."""
LEAST_POINTS, FIRST_POINTS = 16, 64
"""Points per range: at least, and of the first lattice if affordable; doubled from lattice to lattice."""
WIDEST_STEP = 0.125
"""Widest step of a lattice, in nats."""
MAX_WORK = 1.2e7
"""Points of all curves together."""
MAX_PAIR_POINTS = 32768.0
"""Points of a single curve if other steps are composed with it."""
GOAL = 1e-9
"""Relative width at which a bracket is no longer refined."""
WIDE = 1e-6
"""A wider bracket is compared with the composition of the pairs."""
MAX_RANGE_POINTS = 2.0**16
"""Largest number of points per range."""
CACHED_CURVES = 16
MIN_RATIO, MIN_LENGTH = 1e-3, 1e-9
"""Smallest range of a step, relative to the largest, and in nats."""
CHERNOFF_RATES = 2.0 ** np.arange(-10.0, 64.0)
"""Chernoff's bounds are tried at these rates, relative to 1 / √Σ e²."""


class RangeSteps(NamedTuple):
    """Ranges in nats, ascending, and the number of steps of each."""

    lengths: tuple[float, ...]
    counts: tuple[int, ...]

    @staticmethod
    def from_composition(total: Composition) -> tuple[RangeSteps, Composition]:
        """Return the steps of bounded range, and the composition of all others."""
        counts: dict[float, int] = {}
        others: list[tuple[LossDistribution, int]] = []
        for law, count in zip(total.laws, total.counts, strict=True):
            if law.offset_range is None:
                others.append((law, count))
            else:
                counts[law.offset_range] = counts.get(law.offset_range, 0) + count
        lengths = tuple(sorted(counts))
        rest = Composition(tuple(law for law, _ in others), tuple(count for _, count in others))
        return RangeSteps(lengths, tuple(counts[length] for length in lengths)), rest

    @property
    def chord_count(self) -> int:
        """Number of pairs of a multiset of steps and another step before it."""
        multisets = math.prod(count + 1 for count in self.counts)
        return sum(multisets * count // (count + 1) for count in self.counts)

    @property
    def exact_sum(self) -> Fraction:
        """The sum of all ranges: the largest loss."""
        return sum((Fraction(length) * count for length, count in zip(*self, strict=True)), Fraction(0))

    @property
    def largest_loss(self) -> float:
        """The sum of all ranges, rounded up."""
        nearest = float(self.exact_sum)
        return nearest if nearest >= self.exact_sum else math.nextafter(nearest, math.inf)

    def round_lengths(self) -> RangeSteps:
        """Return steps of few enough different ranges: those nearest to the next larger one get that."""
        steps = self
        while steps.chord_count > MAX_CHORDS and len(steps.lengths) > 1:
            ratios = [b / a for a, b in itertools.pairwise(steps.lengths)]
            at = ratios.index(min(ratios))
            lengths, counts = list(steps.lengths), list(steps.counts)
            del lengths[at]
            counts[at : at + 2] = [counts[at] + counts[at + 1]]
            steps = RangeSteps(tuple(lengths), tuple(counts))
        return steps

    def log_tail_bound(self, epsilon: float) -> float:
        """Return Chernoff's bound on log δ(ε): E e^{sL} of the worst offset, at several rates s > 0.

        With u = e^t, E e^{sL} is a u^s − b u^{s+1}, largest at u = a s / (b (s + 1)).
        """
        spread = math.sqrt(math.fsum(count * length**2 for length, count in zip(*self, strict=True)))
        s = CHERNOFF_RATES / spread
        logs = s * float(self.exact_sum - Fraction(epsilon)) * (1 + 1e-15)
        for length, count in zip(*self, strict=True):
            whole, b = -math.expm1(-length), -np.expm1(-s * length)
            rest = np.exp(-s * length) * whole  # a − b
            below_top = np.log1p(rest / b) - np.log1p(1 / s)
            logs += count * (s * below_top + np.log((b + rest) / (s + 1)) - math.log(whole))
        # (1 − e^{ε−L})₊ ≤ e^{s(L−ε)} s^s / (1+s)^{1+s}
        logs -= s * np.log1p(1 / s) + np.log1p(s)
        return float(np.min(logs)) + 1e-9

    def delta_near_largest_loss(self, epsilon: float) -> Interval | None:
        """Return δ(ε) within one smallest range of the largest loss, in closed form; None elsewhere.

        There a single outcome of each step exceeds ε together: offsets e_i − u, all with the same u, are best.
        """
        distance = self.exact_sum - Fraction(epsilon)
        if distance <= 0:
            return 0.0, 0.0
        if distance > Fraction(self.lengths[0]):
            return None
        steps = sum(self.counts)
        near = -math.expm1(-float(distance) / (steps + 1))
        logs = [count * math.log(near / -math.expm1(-length)) for length, count in zip(*self, strict=True)]
        value = near * math.exp(math.fsum(logs))
        return probability_error_bounds(value, value * ROUND_OFF * (8 * steps + 8 + 4 * abs(math.fsum(logs))))

    @property
    def resolved_loss(self) -> float:
        """The loss above which δ is smaller than ``RESOLVED_DELTA``, or the largest loss unless that is far beyond."""
        low, high, target = 0.0, self.largest_loss, math.log(RESOLVED_DELTA)
        if self.log_tail_bound(FAR_BEYOND * high) > target:
            return high
        for _ in range(40):
            middle = (low + high) / 2
            low, high = (low, middle) if self.log_tail_bound(middle) <= target else (middle, high)
        return high


class RangeLattice(NamedTuple):
    """The lattice of losses: its step and the largest point."""

    step: float
    last: int


@lru_cache(maxsize=256)
def lattices_by_work(steps: RangeSteps, most_points: float) -> tuple[RangeLattice, ...]:
    """Return finer and finer lattices, the last as fine as ``MAX_WORK`` and ``most_points`` of one curve allow."""
    longest = steps.lengths[-1]
    ratios = [Fraction(length / longest).limit_denominator(MAX_DENOMINATOR) for length in steps.lengths]
    is_common = all(
        abs(float(ratio) * longest - length) <= 1e-14 * longest
        for ratio, length in zip(ratios, steps.lengths, strict=True)
    )
    parts = math.lcm(*(ratio.denominator for ratio in ratios)) if is_common else 1
    # The curves grow by one range a step, up to the resolved losses; each state has one predecessor a range.
    total, resolved = sum(steps.counts), steps.resolved_loss / longest
    means = [min(resolved, (size + 1) * steps.largest_loss / longest / total) for size in range(total)]
    points = math.fsum(means) / total * steps.chord_count * parts
    allowed = min(MAX_WORK / points, MAX_RANGE_POINTS, most_points / (resolved * parts))
    last = max(LEAST_POINTS, 2 ** math.floor(math.log2(allowed)), 2 ** math.ceil(math.log2(longest / WIDEST_STEP)))
    first = max(min(FIRST_POINTS, last), 2 ** math.ceil(math.log2(longest / WIDEST_STEP)))
    counts = [first * 2**level for level in range(math.ceil(math.log2(last / first)) + 1)]
    return tuple(RangeLattice(longest / (n * parts), math.ceil(resolved * n * parts) + 1) for n in counts)


@lru_cache(maxsize=CACHED_CURVES)
def compose_ranges(steps: RangeSteps, lattice: RangeLattice) -> OffsetCurve:
    """Return the profile of the worst adaptive composition, in the worst order of the steps.

    W_S = max over i in S of T_i W_{S∖i}, by the sizes of the multisets S; a maximum of polygons is below the polygon of
    the larger values.
    """

    def add_step(state: tuple[int, ...], index: int) -> tuple[int, ...]:
        return tuple(count + (i == index) for i, count in enumerate(state))

    empty = (0,) * len(steps.counts)
    curves = {
        add_step(empty, i): OffsetCurve.from_length(lattice.step, length) for i, length in enumerate(steps.lengths)
    }
    for _ in range(sum(steps.counts) - 1):
        following: dict[tuple[int, ...], OffsetCurve] = {}
        for (state, curve), (i, length) in itertools.product(curves.items(), enumerate(steps.lengths)):
            if state[i] < steps.counts[i]:
                new, stepped = add_step(state, i), prepend_step(curve, length, lattice.last)
                following[new] = following[new].join_largest(stepped) if new in following else stepped
        curves = following
    return curves[steps.counts]


@lru_cache(maxsize=CACHED_CURVES)
def compose_ascending(steps: RangeSteps, lattice: RangeLattice) -> OffsetCurve:
    """Return the profile of the worst adaptive composition in ascending order of the ranges: a lower bound."""
    lengths = [length for length, count in zip(*steps, strict=True) for _ in range(count)]
    curve = OffsetCurve.from_length(lattice.step, lengths[-1])
    for length in lengths[-2::-1]:
        curve = prepend_step(curve, length, lattice.last)
    return curve


@dataclass(frozen=True, slots=True, eq=False)
class AdaptiveRangeMethod(Method):
    """Steps of bounded range, and others: the worst order and the worst adaptive offsets."""

    steps: RangeSteps
    others: Composition
    fallback: Method
    """The composition of the dominating pairs of all single steps: an upper bound."""
    choose_other: Callable[[Composition], Method]
    """Returns the method for a composition without steps of bounded range."""
    name: str = "dynamic program"
    _pairs: list[Method] = field(default_factory=list, repr=False)

    @property
    def _lattices(self) -> tuple[RangeLattice, ...]:
        return lattices_by_work(self.steps.round_lengths(), MAX_PAIR_POINTS if self.others.laws else math.inf)

    def _curves_on(self, lattice: RangeLattice) -> tuple[OffsetCurve, OffsetCurve]:
        """Return the curve for lower and the one for upper bounds: the same, unless ranges were rounded up."""
        rounded = self.steps.round_lengths()
        above = compose_ranges(rounded, lattice)
        return above if rounded == self.steps else compose_ascending(self.steps, lattice), above

    def delta(self, epsilon: float) -> Interval:
        low, high = self.delta_bounds_at(np.array([epsilon]))
        return float(low[0]), float(high[0])

    def delta_bounds_at(self, epsilons: Floats) -> BoundArrays:
        """Return bounds at many ε; below 0 by the mirror image: the worst case is the same in both orders."""
        if self.others.laws:
            low, high = self._bounds_with_others(epsilons)
        else:
            low, high = self._bounds_of_ranges(np.abs(epsilons))
            mirrored = mirror_bounds(np.minimum(epsilons, 0.0), (low, high))
            low, high = (np.where(epsilons < 0, below, end) for below, end in zip(mirrored, (low, high), strict=True))
        for index in np.flatnonzero(high - low > WIDE * high).tolist():
            other = self.fallback.delta_upper_bound(float(epsilons[index]))
            if low[index] <= other < high[index] and other > 0:  # its largest loss may have been rounded down to ε
                high[index] = other
        return low, high

    def _bounds_of_ranges(self, epsilons: Floats) -> BoundArrays:
        """Return bounds at ε ≥ 0, on finer and finer lattices until they are narrow."""
        closed_forms = [self.steps.delta_near_largest_loss(epsilon) or (0.0, 1.0) for epsilon in epsilons.tolist()]
        low, high = np.array(closed_forms).reshape(-1, 2).T.copy()
        wide, level, lattices = high - low > GOAL * high, 0, self._lattices
        while wide.any() and level < len(lattices):
            below, above = self._curves_on(lattices[level])
            low[wide] = np.maximum(low[wide], below.delta_bounds_at(epsilons[wide])[0])
            high[wide] = np.minimum(high[wide], above.delta_bounds_at(epsilons[wide])[1])
            wide = high - low > GOAL * high
            if wide.any():  # the width falls by four from level to level
                excess = float(np.max((high - low)[wide] / high[wide])) / GOAL
                level = max(level + 1, min(level + math.ceil(math.log(excess, 4)), len(lattices) - 1))
        return low, high

    def _bounds_with_others(self, epsilons: Floats) -> BoundArrays:
        """Return bounds for all steps together; the lower one is the upper one's, less what the pair may be too large.

        If F ≥ (1 − g) U at every γ up to a point, and U ≤ t beyond it, the other steps keep F ≥ (1 − g) U − t.
        """
        below, above = self._curves_on(self._lattices[-1])
        if not self._pairs:
            pair = Composition.from_distribution(above.upper_atoms())
            self._pairs.append(self.choose_other(self.others + pair))
        low, high = self._pairs[0].delta_bounds_at(epsilons)
        gaps = np.maximum.accumulate(above.relative_gaps(below))
        beyond = np.append(above.upper[1:], above.rest)
        low = np.array([max(0.0, float(np.max((1 - gaps) * value - beyond)) * (1 - 1e-15)) for value in low.tolist()])
        return low, high

    def quick_delta_upper_bound(self, epsilon: float) -> float:
        """Return Chernoff's bound; 1 if other steps are composed."""
        if self.others.laws or not epsilon > 0:
            return 1.0
        return min(1.0, math.exp(self.steps.log_tail_bound(epsilon)))

    def approximate_epsilon_at(self, target: float) -> EpsilonGuess | None:
        """Return ε from the coarsest lattice; with other steps, the one of the pairs."""
        if self.others.laws:
            return self.fallback.approximate_epsilon_at(target)
        return self._curves_on(self._lattices[0])[1].approximate_epsilon_at(target)

    def precision_limit(self, epsilon: float) -> str:
        del epsilon
        return "the lattice of the dynamic program over offsets cannot be refined further"


def adaptive_range_method(
    total: Composition, choose_other: Callable[[Composition], Method]
) -> AdaptiveRangeMethod | None:
    """Return the method for two or more steps of bounded range; None without them, or if they are too many or too long.

    For a single one, its pair is exact.
    """
    steps, others = RangeSteps.from_composition(total)
    count = sum(steps.counts)
    if not 2 <= count <= MAX_STEPS or not steps.lengths[-1] <= MAX_LENGTH:
        return None
    if not steps.lengths[0] >= MIN_RATIO * steps.lengths[-1] or not steps.lengths[0] >= MIN_LENGTH:
        return None
    return AdaptiveRangeMethod(steps, others, choose_other(total), choose_other)
