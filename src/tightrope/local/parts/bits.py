"""Rows of k bits packed into 64-bit words: drawn digit by digit, counted plane by plane, never bit by bit.

Value v lives in bit v mod 64 of word v // 64; bits from k on are 0.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tightrope.errors import InputError
from tightrope.local.parts.values import Integers
from tightrope.randomness.source import Words

LANES = 64
BITS_AT_ONCE = 1 << 12
"""Rows counted at once."""


@dataclass(frozen=True, slots=True)
class Digits:
    """The chance numerator / 2^length of each bit, numerator odd."""

    numerator: int
    length: int

    @property
    def chance(self) -> Fraction:
        """The probability of a 1."""
        return Fraction(self.numerator, 1 << self.length)

    def rows(self, words: Words, people: int, width: int) -> Words:
        """Independent bits, shape [people, width], from ``length`` · people · width uniform words.

        From the last binary digit of the chance to the first: after a digit d, P(bit) = (d + P(bit before)) / 2, since
        or-ing with a fair bit does so for d = 1 and and-ing for d = 0.
        """
        planes = words.reshape(self.length, people, width)
        out: Words = planes[0].copy()  # the last digit is a 1
        for place in range(1, self.length):
            join = np.bitwise_or if self.numerator >> place & 1 else np.bitwise_and
            join(out, planes[place], out=out)
        return out


def width(k: int) -> int:
    """Words that hold k bits."""
    return -(-k // LANES)


def clear_spare(rows: Words, k: int) -> None:
    """Set the bits from k on to 0, in place."""
    if k % LANES:
        rows[:, -1] &= np.uint64((1 << k % LANES) - 1)


def put(rows: Words, places: Integers, ones: NDArray[np.bool_]) -> None:
    """Bit ``places[i]`` of row i becomes ``ones[i]``, in place; shapes [n]."""
    index, word, mask = np.arange(len(rows)), *at(places)
    cleared = rows[index, word] & ~mask
    rows[index, word] = np.where(ones, cleared | mask, cleared)


def at(places: Integers) -> tuple[Integers, Words]:
    """Word and mask of each bit."""
    wide = places.astype(np.uint64)
    return (wide >> np.uint64(6)).astype(np.int64), np.uint64(1) << (wide & np.uint64(63))


def checked_rows(name: str, rows: ArrayLike, k: int) -> Words:
    """Rows of k bits, shape [n, width(k)]; raises ``InputError`` for others, and where a bit from k on is set."""
    array: NDArray[Any] = np.asarray(rows)
    if array.dtype != np.uint64 or array.ndim != 2 or array.shape[1] != width(k):
        expected = f"packed bits: uint64, shape [n, {width(k)}] for {k} values"
        raise InputError(name, (str(array.dtype), array.shape), expected, "take them as perturb made them")
    if k % LANES and np.any(array[:, -1] >> np.uint64(k % LANES)):
        raise InputError(f"highest bit of {name}", int(array[:, -1].max()).bit_length() - 1, f"below {k % LANES}")
    return array


def column_counts(rows: Words, k: int) -> NDArray[np.int64]:
    """How many rows have each bit set, shape [k].

    >>> column_counts(np.array([[0b011], [0b110], [0b010]], dtype=np.uint64), 3).tolist()
    [1, 3, 1]
    """
    total = np.zeros(width(k) * LANES, dtype=np.int64)
    for start in range(0, len(rows), BITS_AT_ONCE):
        level, weight = rows[start : start + BITS_AT_ONCE], 1
        while len(level):
            level, last = _carried(level)
            total += weight * _added(last)
            weight *= 2
    return np.asarray(total[:k])


def _carried(level: Words) -> tuple[Words, Words]:
    """Full adders, three rows to a sum and a carry, until at most two rows are left: all carries, and these."""
    carries = []
    while len(level) >= 3:
        third = len(level) // 3
        a, b, c, rest = level[:third], level[third : 2 * third], level[2 * third : 3 * third], level[3 * third :]
        half = a ^ b
        carries.append((a & b) | (half & c))
        level = np.concatenate([half ^ c, rest])
    return (np.concatenate(carries) if carries else level[:0]), level


def _added(rows: Words) -> NDArray[np.int64]:
    """Column sums of a few rows, bit by bit."""
    flat = np.ascontiguousarray(rows.astype("<u8")).view(np.uint8)
    return np.asarray(np.unpackbits(flat, axis=1, bitorder="little").sum(axis=0, dtype=np.int64))
