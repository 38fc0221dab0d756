"""Exactly uniform integers below any bound, by rejection: a remainder would favour the small ones."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from tightrope.errors import InputError
from tightrope.randomness.counts import count
from tightrope.randomness.source import Source
from tightrope.randomness.stream import Stream

LARGEST_BOUND = 1 << 63


def below(bound: int, size: int, randomness: Source | None = None) -> NDArray[np.int64]:
    """``size`` independent integers, uniform on {0, …, bound − 1}, shape [size]; 1 ≤ bound ≤ 2⁶³.

    Words are cut to the bits of ``bound − 1`` and kept when they are below the bound: at least half of them are.

    Raises ``InputError`` for a bound that is not a whole number in that range.

    >>> sorted(set(below(3, 1000).tolist()))
    [0, 1, 2]
    """
    bound, size = count("bound", bound, at_least=1), count("size", size)
    if not bound <= LARGEST_BOUND:
        raise InputError("bound", bound, "at most 2^63", "draw two parts and combine them")
    return _rejected(bound, size, randomness or Stream())


def _rejected(bound: int, size: int, randomness: Source) -> NDArray[np.int64]:
    shift = np.uint64(64 - max(1, (bound - 1).bit_length()))
    out = np.empty(size, dtype=np.int64)
    filled = 0
    while filled < size:
        candidates = randomness.words(size - filled) >> shift
        kept = candidates[candidates < bound].astype(np.int64)
        out[filled : filled + len(kept)] = kept
        filled += len(kept)
    return out
