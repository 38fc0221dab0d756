"""Loops for large draws, compiled by numba if it is installed (the optional extra ``fast``).

Each function here is plain Python that numba can compile, and has a numpy counterpart next to its caller that gives the
same numbers for the same words, bit for bit. Compiling takes about a second, and numpy draws some ten or hundred
million numbers in that time: a process that draws fewer never loads numba. What was compiled is kept in memory only: a
cache on disk would be executable code that another user might be able to overwrite.
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
"""Number of draws of a process, over all calls, from which compiling pays off."""
FEW_DRAWS = 1 << 12
"""Number of draws below which calling a compiled loop is not worthwhile."""
Numbers = NDArray[np.int64]
Loop = Callable[..., int]
_drawn: Counter[Loop] = Counter()


def compiled_loop(loop: Loop, size: int) -> Loop | None:
    """Return the compiled form of one of the loops below; None if numpy is as fast, or numba is not installed."""
    if size < FEW_DRAWS:
        return None
    _drawn[loop] += size
    return _compile_loop(loop) if _drawn[loop] >= LARGE else None


@cache
def _compile_loop(loop: Loop) -> Loop | None:
    try:
        import numba
    except ImportError:
        return None
    made: Loop = numba.njit(nogil=True)(loop)
    return made


def choose_outcomes(words: Words, edges: Words, other: NDArray[np.int32], shift: Any, first: int, out: Numbers) -> int:
    """Write outcomes of an alias table to ``out``; return how many words equal an edge and need a second word.

    Both outcomes are read before one is selected by unsigned arithmetic: without a branch, none is mispredicted.
    """
    ties = np.uint64(0)
    for i in range(len(words)):
        word = words[i]
        column = word >> shift
        edge, beyond = edges[column], np.uint64(other[column])
        ties += np.uint64(word == edge)
        out[i] = first + np.int64(column if word < edge else beyond)
    return int(ties)


def spread_values(words: Words, bits: Any, out: Numbers) -> int:
    """``out`` becomes 2^bits · out + U₁ − U₂, with U₁ and U₂ the lowest and the next bits of each word."""
    mask = (np.uint64(1) << bits) - np.uint64(1)
    factor = np.int64(1) << np.int64(bits)
    for i in range(len(words)):
        word = words[i]
        out[i] = out[i] * factor + np.int64(word & mask) - np.int64((word >> bits) & mask)
    return 0


def propose_points(words: Words, cells: Numbers, parameters: tuple[Any, ...], out: Numbers, undecided: Numbers) -> int:
    """Write points of cells to ``out``, and to ``undecided`` the indices that a quick test did not accept: where it
    might be wrong, in the tail, and at 0, which one of the two signs rejects.

    ``parameters`` is (bits of a cell, number of cells, 1/(2σ²), unit of u, largest u + t that is surely accepted). A
    word is, from its lowest bit: the sign, the offset in the cell, the bits of the uniform number u for the test.
    """
    bits, cell_count, factor, unit, accept_below = parameters
    mask = (np.uint64(1) << bits) - np.uint64(1)
    count = 0
    for i in range(len(words)):
        word, edge = words[i], cells[i] << np.int64(bits)
        offset = np.int64((word >> np.uint64(1)) & mask)
        exponent = float(offset) * (float(offset) + 2.0 * float(edge)) * factor
        level = float(word >> (bits + np.uint64(1))) * unit + unit
        point = edge + offset
        out[i] = point * (1 - 2 * np.int64(word & np.uint64(1)))
        undecided[count] = i
        count += (level + exponent > accept_below) | (cells[i] >= cell_count) | (point == 0)
    return count
