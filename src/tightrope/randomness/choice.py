"""Exact choice among outcomes with integer weights that add up to 2¹²⁸. No float decides an outcome."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import Self

import numpy as np
from numpy.typing import NDArray

from tightrope.errors import InputError
from tightrope.randomness.source import Source, Words

BITS = 128
TOTAL = 1 << BITS
"""What the weights add up to."""

BLOCK = 1 << 15
"""Words handled at once: they stay in the cache."""

GUIDE_BITS = 16
"""The first bits of a word look up the outcome where all words with these bits give the same one."""


@dataclass(frozen=True, slots=True, eq=False)
class Choice:
    """Outcome i has probability weights[i] / 2¹²⁸.

    The uniform 128-bit integer u = (high word, low word) selects the number of boundaries Σ_{j≤i} weights[j] that are
    ≤ u. The high word decides unless it equals the high word of a boundary (probability about 2⁻⁶⁴ a boundary); only
    then is the low word drawn and the comparison made in whole numbers.

    ``guide[b]`` is the outcome of every word that begins with the bits b, or −1 where they differ.
    """

    boundaries: tuple[int, ...]
    high: Words
    guide: NDArray[np.int32]

    @classmethod
    def of(cls, weights: Sequence[int]) -> Self:
        """From one weight an outcome; raises ``InputError`` unless they are ≥ 0 and add up to 2¹²⁸.

        >>> from tightrope.randomness.source import InsecureSeeded
        >>> Choice.of([2**127, 2**127]).draw(4, InsecureSeeded(7)).shape
        (4,)
        """
        ends = tuple(accumulate(weights))
        if not ends or ends[-1] != TOTAL or min(weights) < 0:
            raise InputError("weights", weights, "whole numbers >= 0 that add up to 2^128")
        inner = ends[:-1]
        high = np.array([min(end, TOTAL - 1) >> 64 for end in inner], dtype=np.uint64)
        return cls(inner, high, _guide(high))

    def draw(self, size: int, source: Source) -> NDArray[np.int64]:
        """``size`` independent outcomes, shape [size]."""
        out = np.empty(size, dtype=np.int64)
        for start in range(0, size, BLOCK):
            part = out[start : start + BLOCK]
            self._fill(part, source)
        return out

    def _fill(self, out: NDArray[np.int64], source: Source) -> None:
        words = source.words(len(out))
        out[:] = self.guide[(words >> np.uint64(64 - GUIDE_BITS)).astype(np.int64)]
        unclear = np.flatnonzero(out < 0)
        if len(unclear):
            out[unclear] = self._searched(words[unclear], source)

    def _searched(self, words: Words, source: Source) -> NDArray[np.int64]:
        index = np.searchsorted(self.high, words, side="right").astype(np.int64)
        tied = np.flatnonzero((index > 0) & (self.high[index - 1] == words))
        if len(tied):
            pairs = zip(words[tied].tolist(), source.words(len(tied)).tolist(), strict=True)
            index[tied] = [bisect_right(self.boundaries, (high << 64) + low) for high, low in pairs]
        return index


def _guide(high: Words) -> NDArray[np.int32]:
    """Outcome by first bits: clear where no boundary's high word lies among the words that begin with them."""
    first = np.arange(1 << GUIDE_BITS, dtype=np.uint64) << np.uint64(64 - GUIDE_BITS)
    last = first | np.uint64((1 << (64 - GUIDE_BITS)) - 1)
    below, upto = np.searchsorted(high, first, side="left"), np.searchsorted(high, last, side="right")
    return np.where(below == upto, below, -1).astype(np.int32)
