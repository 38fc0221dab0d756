"""95 % intervals by inverting noise distributions: counts shown only above a threshold, ratios of two noisy numbers.

Proof: ``docs/proofs/intervals.md``. Every interval covers the true value with probability at least 95 %.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Protocol, Self

import numpy as np

from tightrope.mechanisms.discrete.box_table import BoxTable
from tightrope.mechanisms.discrete.scaled_noise import WidenedNoise
from tightrope.numerics.arrays import Bools, Floats
from tightrope.numerics.root_finding import bisect_arrays, bisect_integer, bisect_real
from tightrope.randomness.alias_sampler import TOTAL

# The exact tail probabilities of the noise, in floats, vectorized.

NEGLIGIBLE_TAIL = 1e-22
"""An infinite table is listed until less than this tail probability remains; beyond, the tail counts as this much."""


@dataclass(frozen=True, slots=True, eq=False)
class NoiseTails:
    """P(Y > y), y = 0, 1, …, of a table scaled by ``factor``. Sums of positive terms: relative error 1e−11."""

    factor: float
    table: Floats

    @classmethod
    def from_noise(cls, noise: WidenedNoise) -> Self:
        """Return the tail probabilities of the integer noise that is drawn."""
        # P(Y = 1), P(Y = 2), …, and of an infinite table the remaining tail probability.
        table, remaining_tail = noise.table, 0.0
        if isinstance(table, BoxTable):
            weights = table.positive_probabilities()
        else:
            parts = [np.array([w / TOTAL for w in table.half])]
            if table.tail is not None:
                block = np.array([w / TOTAL for w in table.tail.block])
                remaining_tail = table.tail.escape_in / TOTAL
                while remaining_tail > NEGLIGIBLE_TAIL:
                    parts.append(remaining_tail * block)
                    remaining_tail *= table.tail.escape / TOTAL
                parts.append(np.array([remaining_tail]))
            weights = np.concatenate(parts)
        return cls(float(noise.factor), np.append(np.cumsum(weights[::-1])[::-1], remaining_tail))

    def tail_probability(self, at: Floats) -> Floats:
        """Return P(X > x) at integers of either sign.

        Sums the rest of the table cell that contains x and all later cells (``WidenedNoise.survival_probability``).
        """
        x = np.where(at < 0, -at - 1, at)
        m = self.factor
        y = np.floor(x / m)
        points_after = m - 1 - (x - y * m)
        weight_before, weight_after = (
            points_after * (points_after + 1) / 2,
            (m * (m - 1) - (m - 1 - points_after) * (m - points_after)) / 2,
        )
        # P(Y > y − 1), P(Y > y), P(Y > y + 1) from one index: the table between the value at −1 and its last one.
        tails: Floats = np.concatenate([[1 - self.table[0]], self.table, self.table[-1:], self.table[-1:]])
        index = np.minimum(y, len(self.table)).astype(np.int64)
        tail_before, tail_at, tail_after = tails[index], tails[index + 1], tails[index + 2]
        cell = (tail_before - tail_at) * weight_before + (tail_at - tail_after) * weight_after
        tail = (cell + (m * m - m * (m - 1) / 2) * tail_at + m * (m - 1) / 2 * tail_after) / (m * m)
        return np.where(at < 0, 1 - tail, tail)

    def smoothed_tail_probability(self, at: Floats) -> Floats:
        """Return P(X + V > t) at any t, V uniform on (−½, ½): continuous, and symmetric and unimodal like X."""
        x = np.floor(at + 0.5)
        fraction = at + 0.5 - x
        before, after = self.tail_probability(np.stack([x - 1, x]))
        smoothed: Floats = (1 - fraction) * before + fraction * after
        return smoothed


# The noise of two numbers of one group, independent or drawn from one box: bounds on P(|X − mY| > width).
#
# Proof: ``docs/proofs/intervals.md``.

INNER_TAIL, INNER_BINS, OUTER_TAIL, OUTER_BINS = 1e-2, 192, 1e-6, 64
"""Bins of the second noise, whose values are rounded outwards: this many up to the point with each tail probability.

The probability beyond the outer point is added to the bound.
"""


class NoisePair(Protocol):
    """The joint noise (X, Y) of two numbers, both symmetric and unimodal on the integers."""

    @property
    def swapped_pair(self) -> NoisePair:
        """Return the pair in reverse order: Y and X."""

    def approximate_half_widths(self, outside: float) -> tuple[float, float]:
        """Return about the widths that |X| and |Y| exceed with probability ``outside``: first guesses, not bounds."""

    def excess_probability(self, widths: Floats, ratios: Floats) -> Floats:
        """Return an upper bound on P(|X − mY| > w + ½) for each width and its ratio m ≥ 0; shape [n] each."""


@dataclass(frozen=True, eq=False)  # not slotted: caches what all ratios share
class IndependentPair:
    """Independent noises: X from ``top``, Y from ``bottom``."""

    top: NoiseTails
    bottom: NoiseTails

    @property
    def swapped_pair(self) -> IndependentPair:
        return IndependentPair(self.bottom, self.top)

    def approximate_half_widths(self, outside: float) -> tuple[float, float]:
        return half_width(self.top, outside), half_width(self.bottom, outside)

    @cached_property
    def _second_noise_masses(self) -> tuple[Floats, Floats]:
        return _group_tail_masses(self.bottom)

    def excess_probability(self, widths: Floats, ratios: Floats) -> Floats:
        bin_ends, masses = self._second_noise_masses
        shifts = ratios[:, None] * bin_ends
        beyond = self.top.smoothed_tail_probability(widths[:, None] - shifts) + self.top.smoothed_tail_probability(
            widths[:, None] + shifts
        )
        bounds: Floats = beyond @ masses + (1 - masses.sum())
        return bounds


@dataclass(frozen=True, slots=True, eq=False)
class JointBoxPair:
    """Two coordinates of one point of a box with a random half-width R.

    Given R, they are independent and at least as peaked as uniform on ± f (R + 1). ``chances``: the probabilities of
    R = 0, 1, …; ``factors``: the f of both.
    """

    chances: Floats
    factors: tuple[float, float]

    @property
    def swapped_pair(self) -> JointBoxPair:
        return JointBoxPair(self.chances, self.factors[::-1])

    def approximate_half_widths(self, outside: float) -> tuple[float, float]:
        radius_plus_one = np.arange(1, len(self.chances) + 1)

        def is_rarely_exceeded(width: float) -> bool:
            return bool(np.maximum(1 - width / radius_plus_one, 0.0) @ self.chances <= outside)

        width = bisect_real(is_rarely_exceeded, 0.0, float(len(self.chances)), side="passes", relative=1e-3)
        return width * self.factors[0], width * self.factors[1]

    def excess_probability(self, widths: Floats, ratios: Floats) -> Floats:
        """Return the bound for two uniform numbers: a corner of their rectangle if w is near its end, else a strip."""
        radius_plus_one = np.arange(1, len(self.chances) + 1)
        first, second = np.full_like(ratios, self.factors[0]), np.abs(ratios) * self.factors[1]
        larger, smaller = np.maximum(first, second)[:, None], np.maximum(np.minimum(first, second), 1e-300)[:, None]
        scaled = (widths - ratios / 2)[:, None] / radius_plus_one
        corner = np.maximum(larger + smaller - scaled, 0.0) ** 2 / (4 * larger * smaller)
        bounds: Floats = np.where(scaled < larger - smaller, 1 - scaled / larger, corner) @ self.chances
        return bounds


def half_width(tails: NoiseTails, outside: float) -> float:
    """Return a width, nearly the smallest, that |X| exceeds with probability at most ``outside``."""
    return _approximate_half_width(tails, outside / 2)


def sum_widths(tails: NoiseTails, most: int, outside: float) -> Floats:
    """Return widths w[m], m = 0 … ``most``: P(X₁ + … + Xₘ > w[m]) ≤ ``outside``, independent noises; shape [most + 1].

    Chernoff: E e^{θX} = E cosh(θX) ≤ Σ p cosh(θ x), each bin of |X| moved to its outer end; the probability beyond
    all bins is added m times. ∞ if that alone exceeds ``outside``.
    """
    bin_ends, masses = _group_tail_masses(tails)
    lost_probability = max(1 - float(masses.sum()), 0.0)
    widths = np.zeros(most + 1)
    scale = math.sqrt(float(masses @ bin_ends**2)) or 1.0
    rates = np.geomspace(1e-3, 10, 200) / scale
    with np.errstate(over="ignore"):
        growth = np.log(np.cosh(rates[:, None] * bin_ends) @ masses)
    for count in range(1, most + 1):
        remaining_probability = outside - count * lost_probability
        widths[count] = (
            np.min((count * growth - math.log(remaining_probability)) / rates)
            if remaining_probability > 0
            else math.inf
        )
    return widths


PRODUCT_BINS, PRODUCT_GROUPS = 40, 8
"""Bins of one factor of a product of two noises, and groups of the bins of the noise that both factors share."""
SMALLEST_PRODUCT = 1e-3
"""The smallest width that is distinguished, relative to the product of both largest factors."""


def product_width(
    first: NoiseTails, second: NoiseTails, shared: NoiseTails, ratios: tuple[float, float], outside: float
) -> float:
    """Return a width that |(X − aZ)(Y − bZ)| exceeds with probability at most ``outside``, for |a|, |b| ≤ ``ratios``.

    X, Y and Z have the tails ``first``, ``second`` and ``shared``. Given |Z|, both factors are independent, and each
    grows stochastically with |Z|, which is rounded up within groups of bins; |Y − bZ| is rounded up within bins. ∞ if
    the probability beyond all bins is more than ``outside``.
    """
    bin_ends, bin_masses = _group_tail_masses(shared)
    last_bins = np.unique(np.linspace(0, len(bin_ends) - 1, PRODUCT_GROUPS + 1).astype(np.int64))
    masses = np.diff(np.concatenate([[0.0], np.cumsum(bin_masses)[last_bins]]))
    shifts = bin_ends[last_bins][:, None]
    shifts_of_both_signs = np.stack([-shifts, shifts])

    def excess(tails: NoiseTails, widths: Floats, ratio: float) -> Floats:
        """Return bounds on P(|X − aZ| > w | Z), the step (1) of the proof for a mean."""
        below, above = tails.smoothed_tail_probability(widths - 0.5 + ratio * shifts_of_both_signs)
        capped: Floats = np.minimum(below + above, 1.0)
        return capped

    reach = _approximate_half_width(second, OUTER_TAIL) + ratios[1] * float(bin_ends[-1])
    ends = reach * np.linspace(0, 1, PRODUCT_BINS + 1)[1:]
    beyond_ends = excess(second, np.broadcast_to(ends, (len(shifts), PRODUCT_BINS)), ratios[1])
    in_bins = np.maximum(-np.diff(np.concatenate([np.ones_like(shifts), beyond_ends], axis=1), axis=1), 0.0)
    lost = max(1 - float(masses.sum()), 0.0) + float(masses @ beyond_ends[:, -1])

    def is_rarely_exceeded(width: float) -> bool:
        within = (in_bins * excess(first, width / ends, ratios[0])).sum(axis=1)
        return lost + float(masses @ within) <= outside * (1 - TAIL_ROUNDING)

    largest = reach * (_approximate_half_width(first, OUTER_TAIL) + ratios[0] * float(bin_ends[-1]))
    if not is_rarely_exceeded(largest):
        return math.inf
    width = bisect_real(
        is_rarely_exceeded, largest * SMALLEST_PRODUCT, largest, side="passes", relative=2e-2, geometric=True
    )
    return width * (1 + TAIL_ROUNDING)


@lru_cache(maxsize=32)
def _approximate_half_width(tails: NoiseTails, outside: float) -> float:
    """Return about the smallest integer that X exceeds with probability at most ``outside``, plus one."""
    end = math.ceil(tails.factor * len(tails.table))
    return 1 + bisect_integer(
        lambda x: float(tails.tail_probability(np.array(x))) <= outside, 0, end, side="passes", relative=1e-3
    )


@lru_cache(maxsize=16)
def _group_tail_masses(tails: NoiseTails) -> tuple[Floats, Floats]:
    """Return the outer ends of the bins of |Y| and their probabilities, without the tail beyond the last bin."""
    inner, outer = _approximate_half_width(tails, INNER_TAIL), _approximate_half_width(tails, OUTER_TAIL)
    ends = np.concatenate(
        [
            [0.0],
            np.ceil(np.linspace(0, inner, INNER_BINS + 1)[1:]),
            np.ceil(np.linspace(inner, outer, OUTER_BINS + 1)[1:]),
        ]
    )
    ends = np.unique(ends)
    beyond = tails.tail_probability(ends)
    return ends, np.concatenate([[1 - 2 * beyond[0]], 2 * (beyond[:-1] - beyond[1:])])


OUTSIDE = 0.05
TAIL_ROUNDING = 1e-10
"""Relative margin for sums of tail probabilities in floats."""
RATIO_COUNT, BISECTION_STEPS, GROWTH_FACTOR, MAX_SHRINKINGS = 160, 13, 1.25, 14
"""The search for the widths: the number of ratios with a width each, and the number of bisection steps for it.

A first guess that is too small is multiplied by the growth factor; one that is large enough is divided by three, at
most ``MAX_SHRINKINGS`` times.
"""


def interval_given_shown(tails: NoiseTails, value: int, above: int, outside: float = OUTSIDE) -> tuple[int, int]:
    """Return the ends of all n ≥ 1 for which ``value`` = n + Y is among the likeliest values given n + Y > ``above``.

    The likeliest values are the ones nearest to n, with total probability 1 − ``outside``: Y is symmetric and unimodal.
    ``above`` is the largest |Y|.
    """
    counts = np.arange(max(1, value - above), value + above + 1, dtype=np.float64)
    distances, cutoffs = np.abs(value - counts), above - counts
    shown_probability = tails.tail_probability(cutoffs)
    nearer_probability = tails.tail_probability(np.maximum(cutoffs, -distances)) - tails.tail_probability(distances - 1)
    plausible_counts = counts[
        (distances == 0) | (nearer_probability < (1 - outside) * (1 + TAIL_ROUNDING) * shown_probability)
    ]
    return int(plausible_counts[0]), int(plausible_counts[-1])


@dataclass(frozen=True, slots=True, eq=False)
class RatioWidths:
    """Widths for ratios m = s/n of numbers observed as s + X and n + Y.

    |s + X − m (n + Y)| ≤ ``widths[i]`` with probability ≥ 95 %, for all |m| between ``largest`` i/k and ``largest``
    (i+1)/k. X and Y are symmetric and unimodal, so the width does not decrease with |m|.
    """

    largest: float
    widths: Floats

    @classmethod
    def from_noise_pair(cls, noises: NoisePair, largest: float, outside: float = OUTSIDE) -> Self:
        """Return the widths of X − mY, exceeded with probability at most ``outside``."""
        ratios = largest * np.arange(1, RATIO_COUNT + 1) / RATIO_COUNT
        first, second = noises.approximate_half_widths(outside * 0.9)
        high = first + ratios * second

        def are_enough(widths: Floats) -> Bools:
            return noises.excess_probability(widths, ratios) <= outside * (1 - TAIL_ROUNDING)

        while not np.all(are_enough(high)):
            high = high * GROWTH_FACTOR
        for _ in range(MAX_SHRINKINGS):
            is_enough = are_enough(high / 3)
            if not np.any(is_enough):
                break
            high = np.where(is_enough, high / 3, high)
        widths = bisect_arrays(are_enough, high / 3, high, side="passes", halvings=BISECTION_STEPS)
        return cls(largest, widths * (1 + TAIL_ROUNDING) + 0.5)

    def ratio_interval(self, top: float, bottom: float) -> tuple[float, float]:
        """Return the ends of all ratios up to ``largest`` that are plausible given s + X = ``top``, n + Y = ``bottom``.

        If no ratio is plausible: from the nearest end of the range as far inwards as the noise extends.
        """
        interval = self.likely_ratios_between(top, bottom, -self.largest, self.largest)
        if interval is not None:
            return interval
        noise_reach = float(self.widths[-1] / max(abs(bottom), 1.0))
        inner = max(self.largest - noise_reach, -self.largest)
        return (inner, self.largest) if top * bottom > 0 else (-self.largest, -inner)

    def likely_ratios_between(self, top: float, bottom: float, least: float, most: float) -> tuple[float, float] | None:
        """Return the ends of the plausible ratios from ``least`` to ``most``, both within ± ``largest``, or None."""
        edges = self.largest * np.arange(RATIO_COUNT + 1) / RATIO_COUNT
        low = np.maximum(np.concatenate([-edges[:0:-1], edges[:-1]]), least)
        high = np.minimum(np.concatenate([-edges[-2::-1], edges[1:]]), most)
        widths = np.concatenate([self.widths[::-1], self.widths])
        if bottom != 0:
            ends = (top - widths) / bottom, (top + widths) / bottom
            low, high = np.maximum(low, np.minimum(*ends)), np.minimum(high, np.maximum(*ends))
            is_plausible = low <= high
        else:
            is_plausible = (abs(top) <= widths) & (low <= high)
        return (float(low[is_plausible].min()), float(high[is_plausible].max())) if np.any(is_plausible) else None
