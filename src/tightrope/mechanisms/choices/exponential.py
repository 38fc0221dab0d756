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
from functools import cached_property
from itertools import accumulate
from typing import Self

import numpy as np
from numpy.typing import NDArray

from tightrope.errors import InputError
from tightrope.mechanisms.tables.table import NoiseTable
from tightrope.mechanisms.tables.tails import Tail
from tightrope.numerics.arrays import Floats
from tightrope.randomness.choice import BITS, TOTAL
from tightrope.randomness.source import Source
from tightrope.randomness.stream import Stream

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
        root = _root(table)
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


def _root(table: NoiseTable) -> int | None:
    """√r out of 2¹²⁸, a little more than what the table's tail falls by a step; None where it has none."""
    if table.tail is None:
        return None
    step = math.log(table.tail.escape / TOTAL) / len(table.tail.block)
    return math.ceil(math.exp(step / 2) * (1 + ABOVE) * 2**53) << BITS - 53


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
