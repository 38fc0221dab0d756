"""Inner loops of large collections: randomization, counts, finite fields and packed bits.

``randomize_responses`` and ``add_occurrences`` are compiled by numba if it is installed (see ``randomness.loops``);
for each there is a numpy version next to its caller that gives the same numbers for the same words.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tightrope.errors import InputError
from tightrope.local.parts.values import Integers as BitsIntegers
from tightrope.numerics.arrays import Integers
from tightrope.randomness.bits import Words
from tightrope.randomness.loops import compiled_loop

PEOPLE_AT_ONCE = 1 << 15
"""People handled at once: words and values stay in the cache."""


def randomize_responses(words: Words, values: Integers, shape: tuple[Any, ...], out: NDArray[Any]) -> int:
    """Write randomized responses into ``out``: a word u < (k−1)w moves the value by 1 + u // w, the next words erase.

    ``shape`` is (w, 1/w as a float, k, (k−1)w, (k−1)w + erased weight). The float quotient (below 2³¹) is
    exact or one off; it is corrected in integers.
    """
    weight, inverse, k, edge, erased = shape
    one = np.uint64(1)
    for i in range(len(words)):
        word, value = words[i], np.uint64(values[i])
        inside = min(word, edge)
        quotient = np.uint64(np.float64(inside) * inverse)
        quotient -= np.uint64(quotient * weight > inside)
        quotient += np.uint64(inside - quotient * weight >= weight)
        moved = value + one + quotient
        moved = moved - k if moved >= k else moved
        quiet = k if word < erased else value
        out[i] = moved if word < edge else quiet
    return 0


def add_occurrences(values: NDArray[Any], counts: NDArray[np.int64]) -> int:
    """Add the number of times each value occurs to ``counts``, shape [4, k].

    Four rows, so that increments for equal neighbors do not depend on each other.
    """
    whole = len(values) // 4 * 4
    for i in range(0, whole, 4):
        counts[0, values[i]] += 1
        counts[1, values[i + 1]] += 1
        counts[2, values[i + 2]] += 1
        counts[3, values[i + 3]] += 1
    for i in range(whole, len(values)):
        counts[0, values[i]] += 1
    return 0


COUNTED_AT_ONCE = 1 << 16
"""Least number of numbers handled at once: numpy widens them, and they stay in the cache."""


def count_occurrences(numbers: NDArray[Any], size: int) -> NDArray[np.int64]:
    """Return how often each of 0..size − 1 occurs, shape [size]; the caller has checked the numbers.

    >>> count_occurrences(np.array([1, 1, 3], dtype=np.uint8), 4).tolist()
    [0, 2, 0, 1]
    """
    loop = compiled_loop(add_occurrences, len(numbers))
    if loop is not None and numbers.flags.writeable:  # read-only numbers would be compiled for anew
        rows = np.zeros((4, size), dtype=np.int64)
        loop(np.ascontiguousarray(numbers), rows)
        return np.asarray(rows.sum(axis=0))
    counts, step = np.zeros(size, dtype=np.int64), max(COUNTED_AT_ONCE, size)  # adding up takes less than counting
    for start in range(0, len(numbers), step):
        counts += np.bincount(numbers[start : start + step], minlength=size)
    return counts


# Small finite fields as tables, for exact hashing.

Table = NDArray[np.uint16]

LARGEST_ORDER = 256
POLYNOMIALS = {1: 0b11, 2: 0b111, 3: 0b1011, 4: 0b10011, 5: 0b100101, 6: 0b1000011, 7: 0b10000011, 8: 0b100011011}
"""Irreducible polynomials over two elements, by degree; the tests check that every element has an inverse."""


@dataclass(frozen=True, slots=True, eq=False)
class FiniteField:
    """Elements 0..order − 1 with their sums and products, shape [order, order] each."""

    order: int
    sums: Table
    products: Table


def finite_field_orders() -> list[int]:
    """Return the orders of the fields that ``finite_field`` makes: primes and powers of two up to 256."""
    return [n for n in range(2, LARGEST_ORDER + 1) if n & (n - 1) == 0 or all(n % d for d in range(2, n))]


@cache
def finite_field(order: int) -> FiniteField:
    """Return the field with this many elements; ``order`` is one of ``finite_field_orders()``.

    >>> finite_field(4).products[2].tolist(), finite_field(5).products[2].tolist()
    ([0, 2, 3, 1], [0, 2, 4, 1, 3])
    """
    numbers = np.arange(order)
    if order & (order - 1) == 0:
        # Products of polynomials over two elements, modulo an irreducible one.
        degree = order.bit_length() - 1
        products = np.zeros((order, order), dtype=np.int64)
        shifted = numbers.copy()
        for digit in range(degree):
            products ^= np.where(numbers[:, None] >> digit & 1, shifted, 0)
            shifted = shifted << 1
            shifted = np.where(shifted >> degree, shifted ^ POLYNOMIALS[degree], shifted)
        sums = numbers[:, None] ^ numbers
    else:
        sums, products = (numbers[:, None] + numbers) % order, (numbers[:, None] * numbers) % order
    return FiniteField(order, sums.astype(np.uint16), products.astype(np.uint16))


# Rows of k bits packed into 64-bit words, which are drawn and counted a word at a time.
#
# Value v is bit v mod 64 of word v // 64; bits from k on are 0.

WORD_BITS = 64
BITS_AT_ONCE = 1 << 12
"""Rows counted at once."""


@dataclass(frozen=True, slots=True)
class BinaryDigits:
    """The probability numerator / 2^length of a 1 in each bit; the numerator is odd."""

    numerator: int
    length: int

    @property
    def one_probability(self) -> Fraction:
        """The probability of a 1."""
        return Fraction(self.numerator, 1 << self.length)

    def sample_rows(self, words: Words, people: int, width: int) -> Words:
        """Return independent bits, shape [people, width], from ``length`` · people · width uniform words.

        The digits of the probability are used from the last to the first. A digit d changes P(bit) to (d + P(bit)) / 2:
        by "or" with a fair bit for d = 1, by "and" for d = 0.
        """
        planes = words.reshape(self.length, people, width)
        out: Words = planes[0].copy()  # the last digit is a 1
        for digit in range(1, self.length):
            combine = np.bitwise_or if self.numerator >> digit & 1 else np.bitwise_and
            combine(out, planes[digit], out=out)
        return out


def words_for_bits(k: int) -> int:
    """Return the number of words that hold k bits."""
    return -(-k // WORD_BITS)


def clear_spare_bits(rows: Words, k: int) -> None:
    """Set the bits from k on to 0, in place."""
    if k % WORD_BITS:
        rows[:, -1] &= np.uint64((1 << k % WORD_BITS) - 1)


def set_bits(rows: Words, places: BitsIntegers, ones: NDArray[np.bool_]) -> None:
    """Set bit ``places[i]`` of row i to ``ones[i]``, in place; shapes [n]."""
    index, word, mask = np.arange(len(rows)), *word_and_mask(places)
    cleared = rows[index, word] & ~mask
    rows[index, word] = np.where(ones, cleared | mask, cleared)


def word_and_mask(places: BitsIntegers) -> tuple[BitsIntegers, Words]:
    """Return the word index and the mask of each bit."""
    wide = places.astype(np.uint64)
    return (wide >> np.uint64(6)).astype(np.int64), np.uint64(1) << (wide & np.uint64(63))


def check_packed_rows(name: str, rows: ArrayLike, k: int) -> Words:
    """Return rows of k bits, shape [n, words_for_bits(k)]; ``InputError`` for others, and if a bit from k on is set."""
    array: NDArray[Any] = np.asarray(rows)
    if array.dtype != np.uint64 or array.ndim != 2 or array.shape[1] != words_for_bits(k):
        expected = f"packed bits: uint64, shape [n, {words_for_bits(k)}] for {k} values"
        raise InputError(name, (str(array.dtype), array.shape), expected, "pass them as perturb returned them")
    if k % WORD_BITS and np.any(array[:, -1] >> np.uint64(k % WORD_BITS)):
        raise InputError(f"highest bit of {name}", int(array[:, -1].max()).bit_length() - 1, f"below {k % WORD_BITS}")
    return array


def count_bits_by_column(rows: Words, k: int) -> NDArray[np.int64]:
    """Return the number of rows with each bit set, shape [k].

    >>> count_bits_by_column(np.array([[0b011], [0b110], [0b010]], dtype=np.uint64), 3).tolist()
    [1, 3, 1]
    """
    total = np.zeros(words_for_bits(k) * WORD_BITS, dtype=np.int64)
    for start in range(0, len(rows), BITS_AT_ONCE):
        level, weight = rows[start : start + BITS_AT_ONCE], 1
        while len(level):
            # Full adders turn three rows into a sum and a carry, until at most two rows of this weight are left.
            carries = []
            while len(level) >= 3:
                third = len(level) // 3
                a, b, c, rest = (
                    level[:third],
                    level[third : 2 * third],
                    level[2 * third : 3 * third],
                    level[3 * third :],
                )
                half = a ^ b
                carries.append((a & b) | (half & c))
                level = np.concatenate([half ^ c, rest])
            # Column sums of these rows, bit by bit; the carries have twice the weight.
            flat = np.ascontiguousarray(level.astype("<u8")).view(np.uint8)
            total += weight * np.asarray(np.unpackbits(flat, axis=1, bitorder="little").sum(axis=0, dtype=np.int64))
            level = np.concatenate(carries) if carries else level[:0]
            weight *= 2
    return np.asarray(total[:k])
