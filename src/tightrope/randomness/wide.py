"""Whole numbers of 128 bits as pairs of 64-bit words, in arrays: just what building an alias table needs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Self

import numpy as np
from numpy.typing import NDArray

from tightrope.randomness.source import Words

Indices = NDArray[np.int64]
ONE_WORD = np.uint64(1)


@dataclass(frozen=True, slots=True, eq=False)
class Wide:
    """Numbers high · 2⁶⁴ + low, shape [n] each; sums and differences are modulo 2¹²⁸."""

    high: Words
    low: Words

    @classmethod
    def of(cls, numbers: Sequence[int]) -> Self:
        """From whole numbers in [0, 2¹²⁸); anything else raises ``OverflowError``.

        >>> int(Wide.of([2**127 + 5]).low[0])
        5
        """
        data = b"".join([number.to_bytes(16, "little") for number in numbers])
        words = np.frombuffer(data, dtype="<u8").astype(np.uint64)
        return cls(words[1::2], words[::2])

    @classmethod
    def full(cls, size: int, value: int) -> Self:
        """``size`` times one number, held once and read-only."""
        high, low = divmod(value, 1 << 64)
        return cls(np.broadcast_to(np.uint64(high), size), np.broadcast_to(np.uint64(low), size))

    def __len__(self) -> int:
        return len(self.high)

    def __getitem__(self, chosen: Indices | slice) -> Wide:
        return Wide(self.high[chosen], self.low[chosen])

    def __sub__(self, other: Wide) -> Wide:
        borrow = (self.low < other.low).astype(np.uint64)
        return Wide(self.high - other.high - borrow, self.low - other.low)

    def less(self, other: Wide) -> NDArray[np.bool_]:
        """Where this number is below the other, shape [n]."""
        return np.asarray((self.high < other.high) | ((self.high == other.high) & (self.low < other.low)))

    def running(self) -> Wide:
        """Sums of the first 1, 2, …, n numbers."""
        low = np.cumsum(self.low, dtype=np.uint64)
        carries = low < self.low  # a sum that wrapped around is below what was added
        return Wide(np.cumsum(self.high, dtype=np.uint64) + np.cumsum(carries, dtype=np.uint64), low)

    def ranks(self, wanted: Wide) -> Indices:
        """For ascending numbers: how many of them are below each of ``wanted``, shape [len(wanted)]."""
        first = np.searchsorted(self.high, wanted.high, side="left").astype(np.int64)
        last = np.searchsorted(self.high, wanted.high, side="right").astype(np.int64)
        unclear = np.flatnonzero(first < last)  # equal high words: the low ones are ascending there
        while len(unclear):
            middle = (first[unclear] + last[unclear]) // 2
            below = self.low[middle] < wanted.low[unclear]
            first[unclear[below]] = middle[below] + 1
            last[unclear[~below]] = middle[~below]
            unclear = unclear[first[unclear] < last[unclear]]
        return first
