"""The loops of large draws, compiled by numba where it is installed (the optional extra ``fast``).

Each function here is plain Python that numba can compile, and has a numpy twin beside its caller that gives the same
numbers for the same words, bit for bit. Compiling takes about a second, and numpy draws some ten or hundred million
numbers in that time: a process that draws fewer never loads numba. What was compiled is kept in memory only: a cache
on disk would be executable code that somebody else may be able to write.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tightrope.randomness.bits import Words

LARGE = 1 << 24
"""Draws in the life of a process, in one call or many, that are worth compiling for."""
FEW_DRAWS = 1 << 12
"""Draws that are not worth calling a compiled loop for."""
Numbers = NDArray[np.int64]
Loop = Callable[..., int]
_drawn: Counter[Loop] = Counter()


def compiled(loop: Loop, size: int) -> Loop | None:
    """The compiled form of one of the loops below; None where numpy is as good, or numba is not there."""
    if size < FEW_DRAWS:
        return None
    _drawn[loop] += size
    return _compile(loop) if _drawn[loop] >= LARGE else None


@cache
def _compile(loop: Loop) -> Loop | None:
    try:
        import numba
    except ImportError:
        return None
    made: Loop = numba.njit(nogil=True)(loop)
    return made


def choose(words: Words, edges: Words, other: NDArray[np.int32], shift: Any, first: int, out: Numbers) -> int:
    """Outcomes of an alias table into ``out``; how many words equal an edge, so that a second word must decide.

    Both outcomes are read before one is selected, by unsigned numbers: then there is no branch to mispredict.
    """
    ties = np.uint64(0)
    for i in range(len(words)):
        word = words[i]
        column = word >> shift
        edge, beyond = edges[column], np.uint64(other[column])
        ties += np.uint64(word == edge)
        out[i] = first + np.int64(column if word < edge else beyond)
    return int(ties)


def spread(words: Words, bits: Any, out: Numbers) -> int:
    """``out`` becomes 2^bits · out + U₁ − U₂, with U₁ and U₂ the lowest and the next bits of each word."""
    mask = (np.uint64(1) << bits) - np.uint64(1)
    factor = np.int64(1) << np.int64(bits)
    for i in range(len(words)):
        word = words[i]
        out[i] = out[i] * factor + np.int64(word & mask) - np.int64((word >> bits) & mask)
    return 0


def propose(words: Words, cells: Numbers, shape: tuple[Any, ...], out: Numbers, waiting: Numbers) -> int:
    """Points of cells into ``out``, and into ``waiting`` the places where a quick test did not accept them: where it
    might be wrong, in the tail, and at 0, which is refused with one of its signs.

    ``shape`` is (bits of a cell, number of cells, 1/(2σ²), unit of the acceptance word, highest sure value). A word
    is, from its lowest bit: the sign, the place in the cell, the number for the test.
    """
    bits, last, factor, unit, ceiling = shape
    mask = (np.uint64(1) << bits) - np.uint64(1)
    count = 0
    for i in range(len(words)):
        word, edge = words[i], cells[i] << np.int64(bits)
        place = np.int64((word >> np.uint64(1)) & mask)
        fall = float(place) * (float(place) + 2.0 * float(edge)) * factor
        level = float(word >> (bits + np.uint64(1))) * unit + unit
        point = edge + place
        out[i] = point * (1 - 2 * np.int64(word & np.uint64(1)))
        waiting[count] = i
        count += (level + fall > ceiling) | (cells[i] >= last) | (point == 0)
    return count
