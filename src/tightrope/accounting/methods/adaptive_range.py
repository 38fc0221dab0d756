"""Compositions with steps of bounded range, whose offsets the analyst chooses adaptively: the worst case, in a bracket.

The steps of bounded range are worst if they come last, since their offsets may then depend on all other outcomes; among
themselves any order counts, also one that is chosen on the way. So the loss is that of the other steps together with
one pair, whose profile is the result of the dynamic program (``docs/proofs/bounded-range.md``).
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from dataclasses import dataclass, field
from fractions import Fraction
from functools import lru_cache
from typing import NamedTuple

import numpy as np

from tightrope.accounting.bounds import Interval, round_outward
from tightrope.accounting.distributions.base import BoundArrays, LossDistribution, mirror_bounds
from tightrope.accounting.distributions.composition import Composition
from tightrope.accounting.methods.method import EpsilonGuess, Method
from tightrope.accounting.methods.offset_program import OffsetCurve, prepend_step
from tightrope.numerics.arrays import Floats
from tightrope.numerics.rounding import ROUND_OFF

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
        return round_outward(value, value * ROUND_OFF * (8 * steps + 8 + 4 * abs(math.fsum(logs))))

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

    def cheap_delta_bound(self, epsilon: float) -> float:
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
