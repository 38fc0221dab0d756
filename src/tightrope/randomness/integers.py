"""Exactly uniform integers below any bound, by rejection: a remainder would favour the small ones."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from tightrope.errors import InputError
from tightrope.randomness.counts import count
from tightrope.randomness.source import Source
from tightrope.randomness.stream import Stream

LARGEST_BOUND, LARGEST_EACH = 1 << 63, 1 << 52


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


def below_each(bounds: NDArray[np.int64], randomness: Source) -> NDArray[np.int64]:
    """Independent integers, the i-th uniform on {0, …, bounds[i] − 1}, by the same rejection; 1 ≤ bounds ≤ 2⁵².

    >>> below_each(np.array([1, 3]), Stream())[0]
    np.int64(0)
    """
    if len(bounds) and not (bounds.min() >= 1 and bounds.max() <= LARGEST_EACH):
        raise InputError("bounds", int(bounds.max()), "whole numbers from 1 to 2^52")
    bits = np.maximum(np.frexp((bounds - 1).astype(np.float64))[1], 1)  # exact below 2^53: the length of bound − 1
    shifts, out = (64 - bits).astype(np.uint64), np.empty(len(bounds), dtype=np.int64)
    left = np.arange(len(bounds))
    while len(left):
        candidates = (randomness.words(len(left)) >> shifts[left]).astype(np.int64)
        kept = candidates < bounds[left]
        out[left[kept]] = candidates[kept]
        left = left[~kept]
    return out
