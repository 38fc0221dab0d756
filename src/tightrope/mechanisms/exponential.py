"""The exponential mechanism on whole distances, exactly: a choice that Laplace noise of twice the shift dominates.

Candidate i at distance d_i ≥ 0 from what is wanted is chosen in proportion to w(⌊2 d_i / m⌋), where w falls by about √r
a step and r is what a table of discrete Laplace noise falls by. One person moves every distance by at most Δ, so every
index by at most ⌈2Δ/m⌉ = s, and the loss of each outcome lies in an interval of length s log(1/r): below the table's
loss under a shift by s, which is what is charged (``docs/proofs/selection.md``).
"""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from itertools import accumulate
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from tightrope.accounting.distributions.base import Flat, LossLaw
from tightrope.accounting.distributions.loss_cells import Cells, multiples
from tightrope.accounting.privacy_loss import PrivacyLoss
from tightrope.errors import InputError
from tightrope.mechanisms.discrete.integer_weights import Tail
from tightrope.mechanisms.discrete.noise_table import NoiseTable
from tightrope.mechanisms.laplace import exponential_cells
from tightrope.mechanisms.pairs import LossOnly
from tightrope.numerics.arrays import Complexes, Floats
from tightrope.numerics.checks import positive
from tightrope.numerics.complex_functions import log1p
from tightrope.numerics.rounding import OVERFLOW
from tightrope.randomness.alias_sampler import BITS, TOTAL
from tightrope.randomness.bits import Source, Stream

HEAVIEST = 1 << 100
"""The weight of a candidate at distance 0; no candidate weighs less than 1."""
WORD = 64
ABOVE = 2.0**-44
"""By how much √r is above what a table's tail seems to fall by in floats."""

Distances = NDArray[np.int64] | NDArray[np.object_] | Floats
"""Whole numbers; floats only for plans."""


@dataclass(frozen=True, eq=False)  # not slotted: the weights are kept
class ExponentialChoice:
    """Candidates at whole distances, in proportion to w(⌊2d/``factor``⌋); ``root`` / 2¹²⁸ is about √r, never below.

    w(0) = 2¹⁰⁰, w(j + 1) = ⌈w(j) · root / 2¹²⁸⌉: rounded up, so that no step falls by more. Where a person moves
    distances by Δ at most, it costs what the table costs under a shift by ⌈2Δ/factor⌉. Neighbours: as Δ says.
    """

    root: int
    factor: int

    @classmethod
    def of(cls, table: NoiseTable, factor: int) -> Self:
        """Beside a table of discrete Laplace noise; raises ``InputError`` for any other, which need not dominate it."""
        # √r out of 2¹²⁸, a little more than what the table's tail falls by a step; None where it has none.
        if table.tail is None:
            root = None
        else:
            step = math.log(table.tail.escape / TOTAL) / len(table.tail.block)
            root = math.ceil(math.exp(step / 2) * (1 + ABOVE) * 2**53) << BITS - 53
        if root is None or not lighter(table, root):
            raise InputError("table", table, "discrete Laplace noise", "other noise does not dominate a choice")
        return cls(root, factor)

    @cached_property
    def weights(self) -> list[int]:
        """w(0), w(1), …, down to the first that stays what it is."""
        found = [HEAVIEST]
        while (following := -(-found[-1] * self.root >> BITS)) < found[-1]:
            found.append(following)
        return found

    def weighed(self, distances: Distances) -> list[int]:
        """The weight of each candidate."""
        last = len(self.weights) - 1
        places = np.minimum(2 * distances // self.factor, last).tolist()
        return [self.weights[place] for place in places]

    def ends(self, distances: Distances) -> list[int]:
        """The weights of each candidate and those before it, together."""
        return list(accumulate(self.weighed(distances)))

    def choose(self, distances: Distances, randomness: Source | None = None) -> int:
        """The place of the candidate that is chosen."""
        ends = self.ends(distances)
        return bisect_right(ends, _below(ends[-1], randomness or Stream()))

    def reach(self, candidates: int, outside: float) -> int:
        """A distance t: where one candidate is at 0, one of ``candidates`` at t or beyond is chosen that seldom."""
        most = int(outside * HEAVIEST) // candidates
        far = next((place for place, weight in enumerate(self.weights) if weight <= most), None)
        if far is None:
            raise InputError("candidates", candidates, "fewer", "their weights do not fall so far")
        return -(-far * self.factor // 2)

    def law(self, distances: Distances) -> Floats:
        """How likely each candidate is, in floats, at distances that need not be whole: for plans."""
        rate = -math.log(self.root / TOTAL) * 2 / self.factor
        away = np.asarray(distances, dtype=np.float64)
        found: Floats = np.exp(-rate * (away - away.min()))
        return np.asarray(found / found.sum())


def lighter(table: NoiseTable, root: int) -> bool:
    """Whether P(X > x) ≤ r^{x+1} / (1 + r) at every x ≥ 0, r = (``root``/2¹²⁸)²: no tail is heavier than that law's.

    Decided in whole numbers, those of the law rounded down: in the table's cells, and over one block of its tail, which
    must not fall more slowly than the law does.
    """
    tail = table.tail
    if tail is None or not root < TOTAL:
        return False
    r, cells = root * root, len(table.half) + len(tail.block)
    law = list(accumulate(range(cells), lambda before, _: before * r >> 2 * BITS, initial=TOTAL * TOTAL))
    most = TOTAL * TOTAL * TOTAL // (TOTAL * TOTAL + r)
    within = all(beyond << BITS <= one * most for beyond, one in zip(_tails(table, tail), law[1:], strict=True))
    return within and tail.escape * TOTAL <= law[len(tail.block)]


def _tails(table: NoiseTable, tail: Tail) -> Iterator[int]:
    """P(X > x) out of 2²⁵⁶ for the cells of the table and one block of its tail."""
    every = accumulate(reversed(table.half), initial=tail.escape_in)
    yield from (beyond * TOTAL for beyond in reversed(list(every)[1:]))
    yield from (tail.escape_in * (TOTAL - before) for before in accumulate(tail.block[:-1], initial=0))


def _below(bound: int, randomness: Source) -> int:
    """Uniform on {0, …, bound − 1}, by rejection."""
    bits = bound.bit_length()
    while True:
        words = randomness.words(-(-bits // WORD))
        drawn = int.from_bytes(words.astype("<u8").tobytes(), "little") >> (-bits % WORD)
        if drawn < bound:
            return drawn


# Choices among the cells of a group, by their exact counts: a quantile's cell, and how far around it to reach.
#
# With below_k the rows in the cells before cell k and n all of them, the excess at the left edge of cell k is E_k =
# below_k − q n, in millionths of a row a whole number, which one row moves by −q or 1 − q. The cell of the quantile
# has E_k < 0 ≤ E_{k+1}. What lies beyond either end of the range is clamped to it: there the excess is without bound.

PARTS = 1_000_000
"""Excesses are counted in so many parts of a row: many more than the steps of any noise."""
MOST_EXCESS = 1 << 60
"""Beyond, excesses are Python's numbers."""
MISSED = 0.05
"""How often an interval whose width is chosen may leave the quantile out."""

Counts = NDArray[Any]


@dataclass(frozen=True, slots=True)
class QuantileChoice:
    """The cell below which ``below`` millionths of the rows lie; or a number of cells ``around`` it.

    ``around`` is the name of the vector that chose the cell.
    """

    below: int
    around: str | None = None

    @property
    def sensitivity(self) -> int:
        """By how much one row moves a distance, at most."""
        return max(self.below, PARTS - self.below)

    def chosen(self, counts: Counts, law: ExponentialChoice, named: int) -> int:
        """The place of a cell, or a number of cells on either side of the one ``named``."""
        excess = self.excess(counts)
        if self.around is None:
            return law.choose(cell_distances(excess))
        return half_widths(len(counts))[law.choose(width_distances(excess, named, self.target(law, len(counts))))]

    def excess(self, counts: Counts) -> Distances:
        """E_0, …, E_c of c cells."""
        exact = PARTS * int(counts.sum(dtype=object)) < MOST_EXCESS
        before = np.concatenate([[0], np.cumsum(counts.astype(np.int64 if exact else np.object_))])
        found: Distances = PARTS * before - self.below * before[-1]
        return found

    def target(self, law: ExponentialChoice, cells: int) -> int:
        """The excess that is sought on either side: beyond it, few intervals leave the quantile out."""
        return law.reach(len(half_widths(cells)), MISSED)


def millionths(q: float) -> int | None:
    """The number as it is written; None where it is no whole number of millionths.

    >>> millionths(0.9), millionths(1 / 3)
    (900000, None)
    """
    exact = Fraction(repr(q)) * PARTS
    return int(exact) if exact.denominator == 1 else None


def cell_distances(excess: Distances) -> Distances:
    """How far the excess 0 lies outside each cell: max(0, E_k, −E_{k+1})."""
    found: Distances = np.maximum(np.maximum(excess[:-1], -excess[1:]), 0)
    return found


def half_widths(cells: int) -> list[int]:
    """Numbers of cells on either side that are chosen from, each about √2 times the last; the last holds all.

    >>> half_widths(20)
    [0, 1, 2, 3, 4, 5, 6, 8, 11, 16, 20]
    """
    found = [0]
    while found[-1] < cells:
        found.append(min(cells, max(found[-1] + 1, round(2 ** ((len(found) - 1) / 2)))))
    return found


def width_distances(excess: Distances, centre: int, target: int) -> Distances:
    """How far ``target`` lies outside (G_{i−1}, G_i], where G_i = min(−E_{k−w}, E_{k+w+1}) for the i-th width w.

    G does not fall with i, and is without bound where both ends of an interval are those of the range; as long as the
    quantile is not in the i-th interval, G_i ≤ 0. G_{−1} is below everything.
    """
    cells = len(excess) - 1
    beyond = max(int(np.max(np.abs(excess))), target) + target
    widths = np.array(half_widths(cells))
    left, right = centre - widths, centre + widths + 1
    low = np.where(left <= 0, beyond, -excess[np.maximum(left, 0)])
    high = np.where(right >= cells, beyond, excess[np.minimum(right, cells)])
    reached = np.minimum(low, high)
    previous = np.concatenate([[-beyond], reached[:-1]])
    found: Distances = np.maximum(np.maximum(previous - target, target - reached), 0)
    return found


# Bounded range: the exponential mechanism and everything whose loss lies in an interval of length ε.
#
# Per outcome the loss lies in [t − ε, t] for some t; the two-point law that uses the ends is worst, and the best t
# for each ε' gives the profile δ(ε') = (1 − e^{(ε'−ε)/2})² / (1 − e^{−ε}) (Dong, Durfee and Rogers, 2020).


@dataclass(frozen=True, slots=True)
class BoundedRangeLaw(LossLaw):
    """Density e^{(l−ε)/2} / (2(1 − e^{−ε})) on [−ε, ε]; its own reverse."""

    epsilon: float

    @property
    def infinite_mass(self) -> float:
        return 0.0

    @property
    def opposite_mass(self) -> float:
        return 0.0

    @property
    def largest(self) -> float:
        return self.epsilon

    @property
    def _weight(self) -> float:
        return -1 / math.expm1(-self.epsilon)

    def reverse(self) -> BoundedRangeLaw:
        return self

    @property
    def flat(self) -> Flat:
        """No atoms, density e^{−ε/2} / (2(1 − e^{−ε}))."""
        return Flat(self.epsilon, 0.0, self._weight * self.epsilon * math.exp(-self.epsilon / 2))

    def profile(self, epsilon: Floats) -> Floats:
        epsilon = np.asarray(epsilon, dtype=np.float64)
        lost = np.expm1((np.clip(epsilon, -self.epsilon, self.epsilon) - self.epsilon) / 2)
        return np.where(epsilon < -self.epsilon, -np.expm1(np.minimum(epsilon, 0.0)), self._weight * lost**2)

    def log_moment(self, z: Complexes) -> Complexes:
        """M(z) = (e^{zε} − e^{−(z+1)ε}) / ((2z+1)(1 − e^{−ε})), as log(1 + (M − 1)) where nothing overflows."""
        if float(np.max(z.real)) * self.epsilon > OVERFLOW:
            inner = -np.expm1(-(2 * z + 1) * self.epsilon) / (2 * z + 1)
            return np.asarray(z * self.epsilon + np.log(self._weight * inner))
        up, down = np.expm1(z * self.epsilon), np.expm1(-(z + 1) * self.epsilon)
        rest = (up - down) / (2 * z + 1) * self._weight - 1
        return log1p(np.asarray(rest, dtype=np.complex128))

    def moment_error(self, z: Complexes, moment: Complexes) -> Floats:
        """M − 1 is a difference of numbers near 1."""
        return 2e-15 * np.maximum(1.0, 1 / np.abs(2 * z + 1)) / np.exp(np.minimum(moment.real, 0.0))

    def decay(self, c: float, y: float) -> float:
        """|e^{2aε} − e^{2iyε}| / |2z + 1| with a = c + ½: at most coth(aε) times a / |z + ½|."""
        a = c + 0.5
        return min(1.0, a / math.hypot(a, y) / math.tanh(a * self.epsilon))

    def cells(self, step: float) -> Cells:
        return self.cut(multiples(-self.epsilon, self.epsilon, step))

    def cut(self, edges: Floats) -> Cells:
        return exponential_cells(self.epsilon, self._weight, edges)


def bounded_range(*, epsilon: float) -> LossOnly:
    """The loss of every mechanism of bounded range ε: the exponential mechanism, report noisy max with Gumbel noise.

    Such a mechanism is (ε, 0)-private, but loses less than randomised response does: η = tanh(ε/4). The exponential
    mechanism that samples in proportion to e^{ε u / (2Δ)} (e^{ε u / Δ} for a monotone utility u) has range ε.
    Composition holds with **parameters fixed in advance**. Neighbours: as the sensitivity of u says. Raises
    ``InputError`` unless ε is finite and positive.

    >>> round(bounded_range(epsilon=1).loss.total_variation(), 12)
    0.244918662404
    >>> round((10 * bounded_range(epsilon=0.1).loss).epsilon(1e-6), 6)
    0.686129
    """
    return LossOnly(PrivacyLoss.of(BoundedRangeLaw(positive("epsilon", epsilon))))
