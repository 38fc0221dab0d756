"""Alias tables on whole numbers: columns of equal capacity, each shared by at most two outcomes.

Walker's method, laid out by Vose's rule in closed form. There are n = 2^b columns of capacity C = 2^(128−b); column i
belongs to outcome i. *Light* outcomes (weight ≤ C) leave room, *heavy* ones overflow, and both sums are equal. In
order of their numbers, the heavy ones pour their excess into the rooms: with D the running sums of the rooms and E
those of the excesses,

* light outcome k keeps its weight, and the rest of its column goes to the first heavy m with E_m > D_{k−1};
* heavy m keeps C − (D_k − E_m) for the first k with D_k ≥ E_m: what it poured too much is made good by heavy m + 1.

(The pouring heavy m fills the last room it started on completely, so it takes D_k − E_m < C out of its own column.)
Everything is subtraction, running sums and searching, so a table of millions is built by a few array operations.
``docs/proofs/exact-sampling.md``.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tightrope.randomness.source import Words
from tightrope.randomness.wide import Indices, Wide

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

    def weights(self, size: int) -> list[int]:
        """The weight of each of ``size`` outcomes, added up from the columns in whole numbers: the inverse of ``lay``.

        Raises ``IndexError`` where a column names an outcome beyond them.
        """
        capacity, totals = 1 << (ALIAS_BITS - self.bits), [0] * size
        ends = zip(self.edges.high.tolist(), self.edges.low.tolist(), self.other.tolist(), strict=True)
        for column, (high, low, other) in enumerate(ends):
            own = (high << 64) + low - column * capacity
            totals[other] += capacity - own
            if own:
                totals[column] += own
        return totals


def lay(weights: Wide) -> Columns:
    """The table for weights that add up to 2¹²⁸ (the caller has checked that).

    >>> lay(Wide.of([3 << 126, 1 << 126])).weights(2) == [3 << 126, 1 << 126]
    True
    """
    bits = max(1, (len(weights) - 1).bit_length())
    size, room = 1 << bits, 1 << (ALIAS_BITS - bits)
    kept = Wide(*(np.concatenate([part, np.zeros(size - len(part), np.uint64)]) for part in _parts(weights)))
    other, overflows = np.arange(size), Wide.full(size, room).less(kept)
    light, heavy = np.flatnonzero(~overflows), np.flatnonzero(overflows)
    if len(heavy):
        rooms = (Wide.full(len(light), room) - kept[light]).running()
        excesses = (kept[heavy] - Wide.full(len(heavy), room)).running()
        other[light] = heavy[_pourers(rooms, excesses)]
        kept.high[heavy], kept.low[heavy] = _parts(_left(rooms, excesses, room))
        other[heavy[:-1]] = heavy[1:]
    return _placed(bits, kept, Wide.full(size, room), other)


def sure(outcome: int) -> Columns:
    """The table of an outcome of weight 2¹²⁸: two columns that it fills."""
    edges = Wide(np.array([0, 1 << 63], dtype=np.uint64), np.zeros(2, dtype=np.uint64))
    return Columns(1, edges, np.full(2, outcome, dtype=np.int32))


def _parts(numbers: Wide) -> tuple[Words, Words]:
    return numbers.high, numbers.low


def _pourers(rooms: Wide, excesses: Wide) -> Indices:
    """For each room, the first heavy whose running excess is above what the rooms before it took."""
    before = Wide(*(np.concatenate([np.zeros(1, np.uint64), part[:-1]]) for part in _parts(rooms)))
    found = _first_above(excesses, before)
    return np.minimum(found, len(excesses) - 1)  # rooms of no size at the very end: they are full


def _first_above(ascending: Wide, wanted: Wide) -> Indices:
    """Index of the first number above each of ``wanted``: the rank of wanted + 1."""
    carry = (wanted.low == np.uint64(2**64 - 1)).astype(np.uint64)
    return ascending.ranks(Wide(wanted.high + carry, wanted.low + np.uint64(1)))


def _left(rooms: Wide, excesses: Wide, room: int) -> Wide:
    """What each heavy keeps of its own column."""
    return Wide.full(len(excesses), room) - (rooms[rooms.ranks(excesses)] - excesses)


def _placed(bits: int, kept: Wide, capacity: Wide, other: Indices) -> Columns:
    """Edges in the line of 128-bit numbers."""
    numbers = np.arange(len(other))
    full = ~kept.less(capacity)
    other[full] = numbers[full]
    high = np.where(full, np.uint64(0), kept.high) + (numbers.astype(np.uint64) << np.uint64(64 - bits))
    return Columns(bits, Wide(high, np.where(full, np.uint64(0), kept.low)), other.astype(np.int32))
