"""Exact choice among outcomes with integer weights that add up to 2¹²⁸. No float decides an outcome."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Self

import numpy as np
from numpy.typing import NDArray

from tightrope.errors import InputError
from tightrope.randomness import alias
from tightrope.randomness.alias import Columns, lay, sure
from tightrope.randomness.loops import Loop, choose, compiled
from tightrope.randomness.source import Source, Words
from tightrope.randomness.wide import Wide

BITS = alias.ALIAS_BITS
TOTAL = 1 << BITS
"""What the weights add up to."""

WORDS_AT_ONCE = 1 << 15
"""Words handled at once: they stay in the cache."""


@dataclass(frozen=True, slots=True, eq=False)
class Choice:
    """Outcome ``first`` + i has probability weights[i] / 2¹²⁸.

    A uniform 128-bit number u = (high word, low word) lies in a column of an alias table, below its edge or not. The
    high word decides unless it equals the high word of the edge (probability at most 2^(b−64) for 2^b columns); only
    then is the low word drawn. So a draw takes one word.
    """

    columns: Columns
    first: int = 0

    @classmethod
    def of(cls, weights: Sequence[int], first: int = 0) -> Self:
        """From one weight an outcome; raises ``InputError`` unless they are ≥ 0 and add up to 2¹²⁸.

        >>> from tightrope.randomness.source import InsecureSeeded
        >>> Choice.of([2**127, 2**127]).draw(4, InsecureSeeded(7)).shape
        (4,)
        """
        if not weights or sum(weights) != TOTAL or min(weights) < 0:
            raise InputError("weights", weights, "whole numbers >= 0 that add up to 2^128")
        if max(weights) == TOTAL:
            return cls(sure(weights.index(TOTAL)), first)
        return cls(lay(Wide.of(weights)), first)

    def draw(self, size: int, randomness: Source) -> NDArray[np.int64]:
        """``size`` independent outcomes, shape [size]."""
        out, loop = np.empty(size, dtype=np.int64), compiled(choose, size)
        for start in range(0, size, WORDS_AT_ONCE):
            self.fill(out[start : start + WORDS_AT_ONCE], randomness, loop)
        return out

    def fill(self, out: NDArray[np.int64], randomness: Source, loop: Loop | None = None) -> None:
        """Overwrite ``out``, of any small size, with independent outcomes; ``loop`` is the compiled ``choose``."""
        words = randomness.words(len(out))
        shift = np.uint64(64 - self.columns.bits)
        edges, other = self.columns.edges.high, self.columns.other
        if loop is None or not words.flags.writeable:  # read-only words would be compiled for anew
            ties = _choose(words, edges, other, shift, self.first, out)
        else:
            ties = loop(words, edges, other, shift, self.first, out)
        if ties:
            self._settle(out, words, randomness)

    def _settle(self, out: NDArray[np.int64], words: Words, randomness: Source) -> None:
        """Where the high word is that of the edge, the low word decides."""
        column = _column(words, self.columns.bits)
        tied = np.flatnonzero(words == self.columns.edges.high[column])
        column = column[tied]
        own = randomness.words(len(tied)) < self.columns.edges.low[column]
        out[tied] = self.first + np.where(own, column, self.columns.other[column])


def _column(words: Words, bits: int) -> NDArray[np.int64]:
    return (words >> np.uint64(64 - bits)).astype(np.int64)


def _choose(
    words: Words, edges: Words, other: NDArray[np.int32], shift: np.uint64, first: int, out: NDArray[np.int64]
) -> int:
    """The numpy twin of ``loops.choose``."""
    column = (words >> shift).astype(np.int64)
    edge = edges[column]
    np.add(np.where(words < edge, column, other[column]), first, out=out)
    return int(np.count_nonzero(words == edge))
