"""The exponential mechanism on integer distances, exactly: dominated by Laplace noise at twice the shift.

Candidate i at distance d_i ≥ 0 from the target is chosen with probability proportional to w(⌊2 d_i / m⌋), where w
decreases by about √r a step and r is the decrease of a table of discrete Laplace noise. One person moves every distance
by at most Δ, so every index by at most ⌈2Δ/m⌉ = s, and the loss of each outcome lies in an interval of length s
log(1/r). This is below the table's loss under a shift by s, which the ledger charges (``docs/proofs/selection.md``).
"""

from __future__ import annotations

import math
from bisect import bisect_right
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from itertools import accumulate
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from tightrope.accounting.bounds import TrueValueOf
from tightrope.accounting.distributions.base import FlatForm, LossDistribution
from tightrope.accounting.distributions.loss_cells import LossCells, loss_step_multiples
from tightrope.accounting.privacy_loss import PrivacyLoss
from tightrope.errors import InputError
from tightrope.mechanisms.discrete.noise_table import NoiseTable
from tightrope.mechanisms.laplace import exponential_cells
from tightrope.mechanisms.pairs import LossOnly
from tightrope.numerics.arrays import Complexes, Floats
from tightrope.numerics.checks import check_positive
from tightrope.numerics.complex_functions import log1p
from tightrope.numerics.rounding import OVERFLOW
from tightrope.randomness.alias_sampler import BITS, TOTAL
from tightrope.randomness.bits import Source, Stream

HEAVIEST = 1 << 100
"""The weight of a candidate at distance 0; every weight is at least 1."""
WORD = 64
ABOVE = 2.0**-44
"""Relative margin by which √r exceeds the decrease of the table's tail as computed in floats."""

Distances = NDArray[np.int64] | NDArray[np.object_] | Floats
"""Integers; floats only for plans."""


@dataclass(frozen=True, eq=False)  # not slotted: caches the weights
class ExponentialChoice:
    """Choice among candidates with weights w(⌊2d/``factor``⌋) at integer distances; ``root`` / 2¹²⁸ ≥ √r, nearly equal.

    w(0) = 2¹⁰⁰, w(j + 1) = ⌈w(j) · root / 2¹²⁸⌉: rounded up, so that no step decreases by more. If a person moves
    distances by at most Δ, the loss is at most the table's loss under a shift by ⌈2Δ/factor⌉. The neighboring relation
    is the one of Δ.
    """

    root: int
    factor: int

    @classmethod
    def from_table(cls, table: NoiseTable, factor: int) -> Self:
        """Return the choice dominated by a table of discrete Laplace noise; raises ``InputError`` for other noise."""
        # √r out of 2¹²⁸, slightly more than the decrease of the table's tail a step; None without a tail.
        if table.tail is None:
            root = None
        else:
            step = math.log(table.tail.escape / TOTAL) / len(table.tail.block)
            root = math.ceil(math.exp(step / 2) * (1 + ABOVE) * 2**53) << BITS - 53
        if root is None or not has_lighter_tails(table, root):
            raise InputError("table", table, "discrete Laplace noise", "other noise does not dominate a choice")
        return cls(root, factor)

    @cached_property
    def weights_by_step(self) -> list[int]:
        """Weights w(0), w(1), …, down to the first that repeats."""
        weights = [HEAVIEST]
        while (following := -(-weights[-1] * self.root >> BITS)) < weights[-1]:
            weights.append(following)
        return weights

    def candidate_weights(self, distances: Distances) -> list[int]:
        """Return the weight of each candidate."""
        last = len(self.weights_by_step) - 1
        steps = np.minimum(2 * distances // self.factor, last).tolist()
        return [self.weights_by_step[step] for step in steps]

    def cumulative_weights(self, distances: Distances) -> list[int]:
        """Return the cumulative weights of the candidates."""
        return list(accumulate(self.candidate_weights(distances)))

    def choose_candidate(self, distances: Distances, randomness: Source | None = None) -> int:
        """Return the index of the chosen candidate."""
        ends = self.cumulative_weights(distances)
        return bisect_right(ends, _uniform_below(ends[-1], randomness or Stream()))

    def distance_bound(self, candidates: int, outside: float) -> int:
        """Return t: with one candidate at 0, candidates at t or beyond are chosen with probability ≤ ``outside``."""
        max_weight = int(outside * HEAVIEST) // candidates
        step = next((index for index, weight in enumerate(self.weights_by_step) if weight <= max_weight), None)
        if step is None:
            raise InputError("candidates", candidates, "fewer", "the smallest weights are too large for this many")
        return -(-step * self.factor // 2)

    def selection_probabilities(self, distances: Distances) -> Floats:
        """Return the probability of each candidate, in floats, at distances that may be fractional: for plans."""
        rate = -math.log(self.root / TOTAL) * 2 / self.factor
        distances_float = np.asarray(distances, dtype=np.float64)
        weights: Floats = np.exp(-rate * (distances_float - distances_float.min()))
        return np.asarray(weights / weights.sum())


def has_lighter_tails(table: NoiseTable, root: int) -> bool:
    """Return whether P(X > x) ≤ r^{x+1} / (1 + r) at every x ≥ 0, r = (``root``/2¹²⁸)²: no heavier tail than geometric.

    Decided in integers, with the geometric probabilities rounded down: in the table's cells, and over one block of its
    tail, which must decrease at least as fast.
    """
    tail = table.tail
    if tail is None or not root < TOTAL:
        return False
    r, cells = root * root, len(table.half) + len(tail.block)
    geometric = list(accumulate(range(cells), lambda before, _: before * r >> 2 * BITS, initial=TOTAL * TOTAL))
    largest = TOTAL * TOTAL * TOTAL // (TOTAL * TOTAL + r)
    # P(X > x) out of 2²⁵⁶ for the cells of the table and one block of its tail.
    cumulative = list(accumulate(reversed(table.half), initial=tail.escape_in))
    tail_weights = [weight * TOTAL for weight in reversed(cumulative[1:])]
    tail_weights += [tail.escape_in * (TOTAL - used) for used in accumulate(tail.block[:-1], initial=0)]
    in_table = all(
        weight << BITS <= geometric_tail * largest
        for weight, geometric_tail in zip(tail_weights, geometric[1:], strict=True)
    )
    return in_table and tail.escape * TOTAL <= geometric[len(tail.block)]


def _uniform_below(bound: int, randomness: Source) -> int:
    """Return a uniform draw from {0, …, bound − 1}, by rejection."""
    bits = bound.bit_length()
    while True:
        words = randomness.random_words(-(-bits // WORD))
        candidate = int.from_bytes(words.astype("<u8").tobytes(), "little") >> (-bits % WORD)
        if candidate < bound:
            return candidate


# Choices among the cells of a group, by their exact counts: a quantile's cell, and the width of an interval around it.
#
# With below_k the rows in the cells before cell k and n all of them, the excess at the left edge of cell k is E_k =
# below_k − q n, an integer in millionths of a row, which one row moves by −q or 1 − q. The cell of the quantile has E_k
# < 0 ≤ E_{k+1}. Values beyond either end of the range are clamped to it: there the excess is unbounded. For a maximum
# without its m largest rows, E_k = below_k − n + m; for a minimum, E_k = below_k − m − 1.

PARTS = 1_000_000
"""Number of parts of a row in which excesses are counted: many more than the steps of any noise."""
MOST_EXCESS = 1 << 60
"""Larger excesses are Python integers."""
MISSED, REACHED = 0.05, 0.5
"""Probability that an interval of chosen width misses the quantile, and that one misses its target in rows."""

Counts = NDArray[Any]


@dataclass(frozen=True, slots=True)
class QuantileChoice:
    """A choice of the cell below which ``below`` millionths of the rows lie, or of a number of cells around it.

    ``around`` is the name of the vector that chose the cell. With ``below`` = 0 or 1,000,000 it is a choice of the
    minimum or maximum without the ``left_out`` smallest or largest rows, a number that is independent of the data.
    """

    below: int
    around: str | None = None
    left_out: int = 0

    @property
    def distance_sensitivity(self) -> int:
        """The largest change of a distance by one row."""
        return max(self.below, PARTS - self.below)

    def choose_index(self, counts: Counts, law: ExponentialChoice, named: int) -> int:
        """Return the index of a cell, or a number of cells on either side of the cell ``named``."""
        excess = self.excess_at_edges(counts)
        if self.around is None:
            return law.choose_candidate(cell_distances(excess))
        return half_widths(len(counts))[
            law.choose_candidate(width_distances(excess, named, self.target_excess(law, len(counts))))
        ]

    def excess_at_edges(self, counts: Counts) -> Distances:
        """Return E_0, …, E_c of c cells."""
        exact = PARTS * (int(counts.sum(dtype=object)) + self.left_out + 1) < MOST_EXCESS
        before = np.concatenate([[0], np.cumsum(counts.astype(np.int64 if exact else np.object_))])
        found: Distances = PARTS * before - self.below * before[-1] + self.excess_shift
        return found

    @property
    def is_extreme(self) -> bool:
        """Return whether a minimum or maximum is chosen, not a quantile between them."""
        return self.below in (0, PARTS)

    @property
    def excess_shift(self) -> int:
        """The constant part of E_k: the target is the row of rank left_out + 1 from the end of an extreme."""
        if not self.is_extreme:
            return 0
        return PARTS * self.left_out if self.below else -PARTS * (self.left_out + 1)

    def target_excess(self, law: ExponentialChoice, cells: int) -> int:
        """Return the target excess on either side: beyond it, few intervals miss the quantile."""
        return law.distance_bound(len(half_widths(cells)), MISSED)


def rows_to_leave_out(value: ExponentialChoice, width: ExponentialChoice, cells: int) -> int:
    """Return the number of rows without which a minimum or maximum is chosen, from the choices of value and width.

    Cells beyond all rows have that number as their distance: they are chosen with probability at most ``MISSED``, and
    an interval that ends before the end of the range reaches the width's target with about ``REACHED`` probability.
    """
    widths = len(half_widths(cells))
    reach = width.distance_bound(widths, MISSED) + width.distance_bound(widths, REACHED)
    return -(-max(value.distance_bound(cells, MISSED), reach) // PARTS)


def quantile_in_millionths(q: float) -> int | None:
    """Return the number as written, in millionths; None if it has more decimals.

    >>> quantile_in_millionths(0.9), quantile_in_millionths(1 / 3)
    (900000, None)
    """
    exact = Fraction(repr(q)) * PARTS
    return int(exact) if exact.denominator == 1 else None


def cell_distances(excess: Distances) -> Distances:
    """Return the distance of the excess 0 from each cell: max(0, E_k, −E_{k+1})."""
    found: Distances = np.maximum(np.maximum(excess[:-1], -excess[1:]), 0)
    return found


def half_widths(cells: int) -> list[int]:
    """Return the candidate numbers of cells on either side, growing by about √2 each; the last covers all cells.

    >>> half_widths(20)
    [0, 1, 2, 3, 4, 5, 6, 8, 11, 16, 20]
    """
    widths = [0]
    while widths[-1] < cells:
        widths.append(min(cells, max(widths[-1] + 1, round(2 ** ((len(widths) - 1) / 2)))))
    return widths


def width_distances(excess: Distances, center: int, target: int) -> Distances:
    """Return the distance of ``target`` from (G_{i−1}, G_i], where G_i = min(−E_{k−w}, E_{k+w+1}) for the i-th width w.

    G does not decrease with i, and is unbounded if the interval covers the whole range; as long as the quantile is not
    in the i-th interval, G_i ≤ 0. G_{−1} is below everything.
    """
    cells = len(excess) - 1
    beyond = max(int(np.max(np.abs(excess))), target) + target
    widths = np.array(half_widths(cells))
    left, right = center - widths, center + widths + 1
    low = np.where(left <= 0, beyond, -excess[np.maximum(left, 0)])
    high = np.where(right >= cells, beyond, excess[np.minimum(right, cells)])
    reached = np.minimum(low, high)
    previous = np.concatenate([[-beyond], reached[:-1]])
    found: Distances = np.maximum(np.maximum(previous - target, target - reached), 0)
    return found


# Bounded range: the exponential mechanism and every mechanism whose loss lies in an interval of length ε.
#
# For each outcome the loss lies in [t − ε, t] for some t; the two-point distribution on the ends is worst, and the best
# t for each ε' gives the profile δ(ε') = (1 − e^{(ε'−ε)/2})² / (1 − e^{−ε}) (Dong, Durfee and Rogers, 2020).


@dataclass(frozen=True, slots=True)
class BoundedRangeDistribution(LossDistribution):
    """Density e^{(l−ε)/2} / (2(1 − e^{−ε})) on [−ε, ε]; its own reverse."""

    epsilon: float

    @property
    def offset_range(self) -> float:
        return self.epsilon

    @property
    def infinite_mass(self) -> float:
        return 0.0

    @property
    def reverse_infinity_mass(self) -> float:
        return 0.0

    @property
    def largest_loss(self) -> float:
        return self.epsilon

    @property
    def _normalizing_weight(self) -> float:
        return -1 / math.expm1(-self.epsilon)

    def reverse_distribution(self) -> BoundedRangeDistribution:
        return self

    @property
    def flat_form(self) -> FlatForm:
        """No atoms, density e^{−ε/2} / (2(1 − e^{−ε}))."""
        return FlatForm(self.epsilon, 0.0, self._normalizing_weight * self.epsilon * math.exp(-self.epsilon / 2))

    def profile(self, epsilon: Floats) -> Floats:
        epsilon = np.asarray(epsilon, dtype=np.float64)
        u_minus_one = np.expm1((np.clip(epsilon, -self.epsilon, self.epsilon) - self.epsilon) / 2)
        return np.where(
            epsilon < -self.epsilon, -np.expm1(np.minimum(epsilon, 0.0)), self._normalizing_weight * u_minus_one**2
        )

    def log_moment(self, z: Complexes) -> Complexes:
        """Return log of M(z) = (e^{zε} − e^{−(z+1)ε}) / ((2z+1)(1 − e^{−ε})), as log(1 + (M − 1)) without overflow."""
        if float(np.max(z.real)) * self.epsilon > OVERFLOW:
            inner = -np.expm1(-(2 * z + 1) * self.epsilon) / (2 * z + 1)
            return np.asarray(z * self.epsilon + np.log(self._normalizing_weight * inner))
        up, down = np.expm1(z * self.epsilon), np.expm1(-(z + 1) * self.epsilon)
        moment_minus_one = (up - down) / (2 * z + 1) * self._normalizing_weight - 1
        return log1p(np.asarray(moment_minus_one, dtype=np.complex128))

    def log_moment_error(self, z: Complexes, moment: Complexes) -> Floats:
        """Bound the error: M − 1 is a difference of numbers near 1."""
        return 2e-15 * np.maximum(1.0, 1 / np.abs(2 * z + 1)) / np.exp(np.minimum(moment.real, 0.0))

    def moment_decay_bound(self, c: float, y: float) -> float:
        """Return a bound on |e^{2aε} − e^{2iyε}| / |2z + 1|, a = c + ½: at most coth(aε) times a / |z + ½|."""
        a = c + 0.5
        return min(1.0, a / math.hypot(a, y) / math.tanh(a * self.epsilon))

    def loss_cells(self, step: float) -> LossCells:
        return self.cut_at_losses(loss_step_multiples(-self.epsilon, self.epsilon, step))

    def cut_at_losses(self, edges: Floats) -> LossCells:
        return exponential_cells(self.epsilon, self._normalizing_weight, edges)


def bounded_range(*, epsilon: float) -> LossOnly:
    """Return the loss of every mechanism of bounded range ε: exponential mechanism, report noisy max (Gumbel noise).

    Such a mechanism is (ε, 0)-private, but loses less than randomized response does: η = tanh(ε/4). The exponential
    mechanism that samples in proportion to e^{ε u / (2Δ)} (e^{ε u / Δ} for a monotone utility u) has range ε.
    Composition holds with **parameters fixed in advance**. Up to 1,000 such steps are composed as the worst mechanisms,
    chosen adaptively and in any order, also with other steps (``docs/proofs/bounded-range.md``); more are composed as
    if each were worst at every ε at once. Neighbors: as in the sensitivity of u. Raises ``InputError`` unless ε is
    finite and positive.

    >>> round(bounded_range(epsilon=1).loss.total_variation(), 12)
    0.244918662404
    >>> round((10 * bounded_range(epsilon=0.1).loss).epsilon(1e-6), 6)
    0.634174
    """
    law = BoundedRangeDistribution(check_positive("epsilon", epsilon))
    return LossOnly(PrivacyLoss.from_distribution(law, true_value_of=TrueValueOf.GUARANTEES))
