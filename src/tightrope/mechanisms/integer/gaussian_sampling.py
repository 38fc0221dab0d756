"""Exact draws of the discrete Gaussian of any large scale: two words each, no table of its values.

A float decides only where it cannot be wrong: whether the acceptance number lies below or above the probability by
more than ``doubt``, a bound on the error of both with room to spare. The rest (about one draw in 10¹², and the tail)
is decided in exact arithmetic, see :mod:`tightrope.mechanisms.integer.gaussian_envelope`.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import partial

import numpy as np
from numpy.typing import NDArray

from tightrope.errors import InputError
from tightrope.mechanisms.integer.gaussian_envelope import Envelope
from tightrope.numerics.arrays import Integers
from tightrope.randomness.choice import WORDS_AT_ONCE
from tightrope.randomness.integers import below
from tightrope.randomness.loops import Loop, choose, compiled, propose
from tightrope.randomness.real_chance import happens
from tightrope.randomness.source import Source, Words

DOUBT = 2.0**-40
"""More than a thousand times the rounding of the numbers compared (docs/proofs/exact-sampling.md)."""
TERMS = 10
"""e^{−t} for 0 ≤ t ≤ 1/7 by its Taylor polynomial of this degree: right to 10⁻¹⁶."""


@dataclass(frozen=True, slots=True)
class GaussianSampler:
    """Draws from an envelope. ``doubt`` ≥ 2⁻⁴⁰ may be widened: it moves decisions to exact arithmetic, not the law."""

    envelope: Envelope
    doubt: float = DOUBT

    def __post_init__(self) -> None:
        if not DOUBT <= self.doubt <= 1:
            raise InputError("doubt", self.doubt, "a number in [2^-40, 1]", "less would trust floats too far")

    def draw(self, size: int, randomness: Source) -> Integers:
        """``size`` independent draws, shape [size]."""
        out, loops = np.empty(size, dtype=np.int64), (compiled(choose, size), compiled(propose, size))
        for start in range(0, size, WORDS_AT_ONCE):
            self._fill(out[start : start + WORDS_AT_ONCE], randomness, loops)
        return out

    def _fill(self, out: Integers, randomness: Source, loops: tuple[Loop | None, Loop | None]) -> None:
        """Places whose proposal was refused get another, until none is left."""
        missing = self._propose(out, randomness, loops)
        while len(missing):
            again = np.empty(len(missing), dtype=np.int64)
            refused = self._propose(again, randomness, (None, None))
            out[missing] = again
            missing = missing[refused]

    def _propose(self, out: Integers, randomness: Source, loops: tuple[Loop | None, Loop | None]) -> Integers:
        """One proposal a place; the places where it was refused, ascending."""
        cells, waiting = np.empty_like(out), np.empty_like(out)
        self.envelope.choice.fill(cells, randomness, loops[0])
        words = randomness.words(len(out))
        loop = loops[1] if words.flags.writeable else None
        count = (loop or _propose)(words, cells, self._shape, out, waiting)
        return self._settle(out, cells, words, waiting[:count], randomness)

    @property
    def _shape(self) -> tuple[np.uint64, int, float, float, float]:
        """What ``loops.propose`` wants to know."""
        bits = self.envelope.cell_bits
        return np.uint64(bits), self.envelope.cells, self.envelope.factor, math.ldexp(1.0, bits - 63), 1.0 - self.doubt

    def _settle(self, out: Integers, cells: Integers, words: Words, waiting: Integers, randomness: Source) -> Integers:
        """Decides the proposals that the quick test left, and draws the tail; returns the refused ones."""
        inner = waiting[cells[waiting] < self.envelope.cells]
        kept, unclear = self._compare(out[inner], cells[inner], words[inner])
        for at in np.flatnonzero(unclear).tolist():
            kept[at] = self._exact(abs(int(out[inner[at]])), int(words[inner[at]]), randomness)
        kept &= (out[inner] != 0) | (words[inner] & np.uint64(1) == 0)  # -0 is refused
        refused = np.ones(len(out), dtype=np.bool_)
        refused[inner] = ~kept
        for at in waiting[cells[waiting] == self.envelope.cells].tolist():
            point = self._tail(randomness)
            refused[at] = point is None
            out[at] = point or 0
        return waiting[refused[waiting]]

    def _compare(self, points: Integers, cells: Integers, words: Words) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
        """Where the acceptance number is surely below the probability to keep; where it is neither surely above."""
        bits, _, factor, unit, _ = self._shape
        edge = cells << np.int64(bits)
        place = np.abs(points) - edge
        fall = place.astype(np.float64) * (place + 2.0 * edge) * factor
        power = np.ones_like(fall)
        for k in range(TERMS, 0, -1):
            power = 1.0 - power * fall / k
        level = (words >> (bits + np.uint64(1))).astype(np.float64) * unit
        kept = level + unit <= power - self.doubt
        return kept, ~kept & (level < power + self.doubt)

    def _exact(self, x: int, word: int, randomness: Source) -> bool:
        """The same comparison without rounding: the bits of the word, continued, against ever better bounds."""
        bits = self.envelope.cell_bits + 1
        return happens(partial(self.envelope.chance, x), randomness, word >> bits, 64 - bits)

    def _tail(self, randomness: Source) -> int | None:
        """A point beyond the cells, or None where it was refused."""
        period = _leading_ones(randomness)
        (place,), (sign,) = below(1 << self.envelope.tail_bits, 1, randomness), below(2, 1, randomness)
        x = self.envelope.start + (period << self.envelope.tail_bits) + int(place)
        kept = happens(partial(self.envelope.tail_chance, x, period), randomness)
        return (x if sign else -x) if kept else None


def _leading_ones(randomness: Source) -> int:
    """How often a coin shows heads first: i with probability 2^{−i−1}."""
    count = 0
    while True:
        word = int(randomness.words(1)[0])
        ones = 64 - (word ^ (2**64 - 1)).bit_length()
        count += ones
        if ones < 64:
            return count


def _propose(
    words: Words, cells: Integers, shape: tuple[np.uint64, int, float, float, float], out: Integers, waiting: Integers
) -> int:
    """The numpy twin of ``loops.propose``; views, as no number reaches 2⁶³."""
    bits, last, factor, unit, ceiling = shape
    np.left_shift(cells, np.int64(bits), out=out)
    place = ((words >> np.uint64(1)) & np.uint64((1 << int(bits)) - 1)).view(np.int64)
    real = place.astype(np.float64)
    level = (words >> (bits + np.uint64(1))).view(np.int64).astype(np.float64)
    level *= unit
    level += unit
    level += real * (real + 2.0 * out) * factor
    out += place
    found = np.flatnonzero((level > ceiling) | (cells >= last) | (out == 0))
    out *= 1 - 2 * (words & np.uint64(1)).view(np.int64)
    waiting[: len(found)] = found
    return len(found)
