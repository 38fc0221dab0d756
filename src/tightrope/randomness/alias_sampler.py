"""Exact choice among outcomes with integer weights that add up to 2¹²⁸. No float decides an outcome."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Self

import numpy as np
from numpy.typing import NDArray

from tightrope.errors import InputError
from tightrope.randomness.bits import Source, Words
from tightrope.randomness.integers import Wide
from tightrope.randomness.loops import Loop, choose_outcomes, compiled_loop

# Alias tables on integers: columns of equal capacity, each shared by at most two outcomes.
#
# Walker's method, laid out by Vose's rule in closed form. There are n = 2^b columns of capacity C = 2^(128−b); column
# i belongs to outcome i. *Light* outcomes (weight ≤ C) leave room, *heavy* ones overflow, and both sums are equal. In
# order of their numbers, the heavy ones fill the room with their excess: with D the running sums of the room and E the
# running sums of the excess,
#
# * light outcome k keeps its weight, and the rest of its column goes to the first heavy m with E_m > D_{k−1}; * heavy
# m keeps C − (D_k − E_m) for the first k with D_k ≥ E_m: what it poured too much is made good by heavy m + 1.
#
# (The pouring heavy m fills the last room it started on completely, so it takes D_k − E_m < C out of its own column.)
# Everything is subtraction, running sums and searching, so a table of millions is built by a few array operations.
# ``docs/proofs/exact-sampling.md``.

ALIAS_BITS = 128


@dataclass(frozen=True, slots=True, eq=False)
class Columns:
    """Column c holds outcome c below its edge and outcome ``other[c]`` from its edge on, shape [2^bits] each.

    A uniform 128-bit number lies in the column of its first ``bits`` bits; the edges are 128-bit numbers, too. A full
    column has its edge at its beginning and is its own other: no edge is ever 2¹²⁸.
    """

    bits: int
    edges: Wide
    other: NDArray[np.int32]

    def outcome_weights(self, size: int) -> list[int]:
        """Return the weight of each of ``size`` outcomes, added up from the columns in integers.

        This is the inverse of ``build_alias_table``.

        Raises ``IndexError`` where a column names an outcome beyond them.
        """
        capacity, totals = 1 << (ALIAS_BITS - self.bits), [0] * size
        ends = zip(self.edges.high.tolist(), self.edges.low.tolist(), self.other.tolist(), strict=True)
        for column, (high, low, other) in enumerate(ends):
            own_weight = (high << 64) + low - column * capacity
            totals[other] += capacity - own_weight
            if own_weight:
                totals[column] += own_weight
        return totals


def build_alias_table(weights: Wide) -> Columns:
    """Return the table for weights that add up to 2¹²⁸ (the caller has checked that).

    >>> build_alias_table(Wide.from_integers([3 << 126, 1 << 126])).outcome_weights(2) == [3 << 126, 1 << 126]
    True
    """
    bits = max(1, (len(weights) - 1).bit_length())
    size, room = 1 << bits, 1 << (ALIAS_BITS - bits)
    own_weights = Wide(
        *(np.concatenate([part, np.zeros(size - len(part), np.uint64)]) for part in _high_and_low(weights))
    )
    other, overflows = np.arange(size), Wide.filled_with(size, room).less_than(own_weights)
    light, heavy = np.flatnonzero(~overflows), np.flatnonzero(overflows)
    if len(heavy):
        rooms = (Wide.filled_with(len(light), room) - own_weights[light]).cumulative_sums()
        excesses = (own_weights[heavy] - Wide.filled_with(len(heavy), room)).cumulative_sums()
        # For each room, the first heavy whose running excess is above what the rooms before it took.
        before = Wide(*(np.concatenate([np.zeros(1, np.uint64), part[:-1]]) for part in _high_and_low(rooms)))
        # Index of the first number above each of `wanted`: the rank of wanted + 1.
        carry = (before.low == np.uint64(2**64 - 1)).astype(np.uint64)
        ranks = excesses.ranks_of(Wide(before.high + carry, before.low + np.uint64(1)))
        other[light] = heavy[np.minimum(ranks, len(excesses) - 1)]
        # What each heavy keeps of its own column.
        own_weights.high[heavy], own_weights.low[heavy] = _high_and_low(
            Wide.filled_with(len(excesses), room) - (rooms[rooms.ranks_of(excesses)] - excesses)
        )
        other[heavy[:-1]] = heavy[1:]
    # Edges in the line of 128-bit numbers.
    capacity = Wide.filled_with(size, room)
    numbers = np.arange(len(other))
    full = ~own_weights.less_than(capacity)
    other[full] = numbers[full]
    high = np.where(full, np.uint64(0), own_weights.high) + (numbers.astype(np.uint64) << np.uint64(64 - bits))
    return Columns(bits, Wide(high, np.where(full, np.uint64(0), own_weights.low)), other.astype(np.int32))


def build_constant_table(outcome: int) -> Columns:
    """Return the table of an outcome of weight 2¹²⁸: two columns that it fills."""
    edges = Wide(np.array([0, 1 << 63], dtype=np.uint64), np.zeros(2, dtype=np.uint64))
    return Columns(1, edges, np.full(2, outcome, dtype=np.int32))


def _high_and_low(numbers: Wide) -> tuple[Words, Words]:
    return numbers.high, numbers.low


BITS = ALIAS_BITS
TOTAL = 1 << BITS
"""The sum of the weights."""

WORDS_AT_ONCE = 1 << 15
"""Words processed at once: they fit into the cache."""


@dataclass(frozen=True, slots=True, eq=False)
class AliasSampler:
    """Outcome ``first`` + i has probability weights[i] / 2¹²⁸.

    A uniform 128-bit number u = (high word, low word) lies in a column of an alias table, below its edge or not. The
    high word decides unless it equals the high word of the edge (probability at most 2^(b−64) for 2^b columns); only
    then is the low word drawn. So a draw takes one word.
    """

    columns: Columns
    first: int = 0

    @classmethod
    def from_weights(cls, weights: Sequence[int], first: int = 0) -> Self:
        """Create a sampler from one weight per outcome; raises ``InputError`` unless they are ≥ 0 and add up to 2¹²⁸.

        >>> from tightrope.randomness.bits import InsecureSeeded
        >>> AliasSampler.from_weights([2**127, 2**127]).draw_outcomes(4, InsecureSeeded(7)).shape
        (4,)
        """
        if not weights or sum(weights) != TOTAL or min(weights) < 0:
            raise InputError("weights", weights, "whole numbers >= 0 that add up to 2^128")
        if max(weights) == TOTAL:
            return cls(build_constant_table(weights.index(TOTAL)), first)
        return cls(build_alias_table(Wide.from_integers(weights)), first)

    def draw_outcomes(self, size: int, randomness: Source) -> NDArray[np.int64]:
        """Return ``size`` independent outcomes, shape [size]."""
        out, loop = np.empty(size, dtype=np.int64), compiled_loop(choose_outcomes, size)
        for start in range(0, size, WORDS_AT_ONCE):
            self.fill_outcomes(out[start : start + WORDS_AT_ONCE], randomness, loop)
        return out

    def fill_outcomes(self, out: NDArray[np.int64], randomness: Source, loop: Loop | None = None) -> None:
        """Overwrite ``out``, of any small size, with independent outcomes; ``loop`` is the compiled
        ``choose_outcomes``.
        """
        words = randomness.random_words(len(out))
        shift = np.uint64(64 - self.columns.bits)
        edges, other = self.columns.edges.high, self.columns.other
        if loop is None or not words.flags.writeable:  # read-only words would be compiled for anew
            # The numpy counterpart of `loops.choose_outcomes`.
            choose_column = (words >> shift).astype(np.int64)
            edge = edges[choose_column]
            np.add(np.where(words < edge, choose_column, other[choose_column]), self.first, out=out)
            ties = int(np.count_nonzero(words == edge))
        else:
            ties = loop(words, edges, other, shift, self.first, out)
        if ties:
            self._resolve_edge_ties(out, words, randomness)

    def _resolve_edge_ties(self, out: NDArray[np.int64], words: Words, randomness: Source) -> None:
        """Compare the low words of draws whose high word equals the high word of the edge."""
        column = (words >> np.uint64(64 - self.columns.bits)).astype(np.int64)
        tied = np.flatnonzero(words == self.columns.edges.high[column])
        column = column[tied]
        is_own = randomness.random_words(len(tied)) < self.columns.edges.low[column]
        out[tied] = self.first + np.where(is_own, column, self.columns.other[column])
