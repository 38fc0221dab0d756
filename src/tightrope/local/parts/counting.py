"""How often each number occurs in very many small ones."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from tightrope.local.parts.loops import count_up
from tightrope.randomness.loops import compiled

COUNTED_AT_ONCE = 1 << 16
"""Numbers handled at once: numpy widens them, and they stay in the cache."""


def occurrences(numbers: NDArray[Any], size: int) -> NDArray[np.int64]:
    """Occurrences of 0..size − 1, shape [size]; the caller has checked the numbers.

    >>> occurrences(np.array([1, 1, 3], dtype=np.uint8), 4).tolist()
    [0, 2, 0, 1]
    """
    loop = compiled(count_up, len(numbers))
    if loop is not None and numbers.flags.writeable:  # read-only numbers would be compiled for anew
        rows = np.zeros((4, size), dtype=np.int64)
        loop(np.ascontiguousarray(numbers), rows)
        return np.asarray(rows.sum(axis=0))
    counts = np.zeros(size, dtype=np.int64)
    for start in range(0, len(numbers), COUNTED_AT_ONCE):
        counts += np.bincount(numbers[start : start + COUNTED_AT_ONCE], minlength=size)
    return counts
