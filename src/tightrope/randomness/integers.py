"""Exactly uniform integers below any bound, by rejection: a remainder would favor the small ones."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from decimal import ROUND_CEILING, ROUND_FLOOR, Context, Decimal
from fractions import Fraction
from typing import Self

import numpy as np
from numpy.typing import NDArray

from tightrope.errors import InputError
from tightrope.randomness.bits import Source, Stream, Words, check_count

LARGEST_BOUND, LARGEST_EACH = 1 << 63, 1 << 52


def uniform_below(bound: int, size: int, randomness: Source | None = None) -> NDArray[np.int64]:
    """Return ``size`` independent integers, uniform on {0, …, bound − 1}, shape [size]; 1 ≤ bound ≤ 2⁶³.

    Words are cut to the bits of ``bound − 1`` and kept when they are below the bound: at least half of them are.

    Raises ``InputError`` for a bound that is not an integer in that range.

    >>> sorted(set(uniform_below(3, 1000).tolist()))
    [0, 1, 2]
    """
    bound, size = check_count("bound", bound, at_least=1), check_count("size", size)
    if not bound <= LARGEST_BOUND:
        raise InputError("bound", bound, "at most 2^63", "draw two parts and combine them")
    source = randomness or Stream()
    shift = np.uint64(64 - max(1, (bound - 1).bit_length()))
    out = np.empty(size, dtype=np.int64)
    filled = 0
    while filled < size:
        candidates = source.random_words(size - filled) >> shift
        accepted = candidates[candidates < bound].astype(np.int64)
        out[filled : filled + len(accepted)] = accepted
        filled += len(accepted)
    return out


def uniform_below_each(bounds: NDArray[np.int64], randomness: Source) -> NDArray[np.int64]:
    """Return independent integers, the i-th uniform on {0, …, bounds[i] − 1}, by the same rejection; 1 ≤ bounds ≤ 2⁵².

    >>> uniform_below_each(np.array([1, 3]), Stream())[0]
    np.int64(0)
    """
    if len(bounds) and not (bounds.min() >= 1 and bounds.max() <= LARGEST_EACH):
        raise InputError("bounds", int(bounds.max()), "whole numbers from 1 to 2^52")
    bits = np.maximum(np.frexp((bounds - 1).astype(np.float64))[1], 1)  # exact below 2^53: the length of bound − 1
    shifts, out = (64 - bits).astype(np.uint64), np.empty(len(bounds), dtype=np.int64)
    remaining = np.arange(len(bounds))
    while len(remaining):
        candidates = (randomness.random_words(len(remaining)) >> shifts[remaining]).astype(np.int64)
        accepted = candidates < bounds[remaining]
        out[remaining[accepted]] = candidates[accepted]
        remaining = remaining[~accepted]
    return out


# Integers of 128 bits as pairs of 64-bit words, in arrays: just what building an alias table needs.

Indices = NDArray[np.int64]
ONE_WORD = np.uint64(1)


@dataclass(frozen=True, slots=True, eq=False)
class Wide:
    """Numbers high · 2⁶⁴ + low, shape [n] each; sums and differences are modulo 2¹²⁸."""

    high: Words
    low: Words

    @classmethod
    def from_integers(cls, numbers: Sequence[int]) -> Self:
        """From integers in [0, 2¹²⁸); anything else raises ``OverflowError``.

        >>> int(Wide.from_integers([2**127 + 5]).low[0])
        5
        """
        data = b"".join([number.to_bytes(16, "little") for number in numbers])
        words = np.frombuffer(data, dtype="<u8").astype(np.uint64)
        return cls(words[1::2], words[::2])

    @classmethod
    def filled_with(cls, size: int, value: int) -> Self:
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

    def less_than(self, other: Wide) -> NDArray[np.bool_]:
        """Return whether each number is below the other, shape [n]."""
        return np.asarray((self.high < other.high) | ((self.high == other.high) & (self.low < other.low)))

    def cumulative_sums(self) -> Wide:
        """Return the sums of the first 1, 2, …, n numbers."""
        low = np.cumsum(self.low, dtype=np.uint64)
        carries = low < self.low  # a sum that wrapped around is below what was added
        return Wide(np.cumsum(self.high, dtype=np.uint64) + np.cumsum(carries, dtype=np.uint64), low)

    def ranks_of(self, wanted: Wide) -> Indices:
        """Return how many of these ascending numbers are below each of ``wanted``, shape [len(wanted)]."""
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


# Events whose probability is a real number that is known only by enclosures: decided exactly.

Enclosure = Callable[[int], tuple[Fraction, Fraction]]
"""Maps digits to (lower, upper) bounds of a number; they converge to it as the digits grow."""

FIRST_DIGITS, MORE_DIGITS = 40, 40


def bernoulli_from_bits(chance: Enclosure, randomness: Source, prefix: int = 0, bits: int = 0) -> bool:
    """Return whether U < p, for a uniform real number U whose first ``bits`` binary digits are ``prefix``.

    Further words extend U and further digits narrow p until the two are separated, with probability 1: the answer is
    exact at any precision of a single step.
    """
    digits = FIRST_DIGITS
    while True:
        low, high = chance(digits)
        if prefix + 1 <= low * (1 << bits):
            return True
        if prefix >= high * (1 << bits):
            return False
        prefix, bits, digits = (prefix << 64) + int(randomness.random_words(1)[0]), bits + 64, digits + MORE_DIGITS


def falling_exponential(x: Fraction, digits: int) -> tuple[Fraction, Fraction]:
    """Return bounds on e^{−x} for x ≥ 0, about ``digits`` decimal digits apart.

    The quotient is rounded either way and ``decimal`` rounds exponentials correctly; one more unit each side allows
    for that rounding.

    >>> low, high = falling_exponential(Fraction(1, 3), 20)
    >>> float(low), float(high - low) < 1e-18
    (0.7165313105737893, True)
    """
    down, up = Context(prec=digits, rounding=ROUND_FLOOR), Context(prec=digits, rounding=ROUND_CEILING)
    top, bottom = Decimal(-x.numerator), Decimal(x.denominator)
    low = down.next_minus(down.exp(down.divide(top, bottom)))
    high = up.next_plus(up.exp(up.divide(top, bottom)))
    return max(Fraction(0), Fraction(low)), Fraction(high)
