"""The loops of large collections, for numba where it is installed (see ``randomness.loops``).

Plain Python that numba can compile; each has a numpy twin beside its caller that gives the same numbers for the same
words.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from tightrope.numerics.arrays import Integers
from tightrope.randomness.source import Words

PEOPLE_AT_ONCE = 1 << 15
"""People handled at once: words and values stay in the cache."""


def respond(words: Words, values: Integers, shape: tuple[Any, ...], out: NDArray[Any]) -> int:
    """Randomised response into ``out``: word u < (k−1)w moves the value by 1 + u // w, the next words erase.

    ``shape`` is (w, 1/w as a float, k, (k−1)w, (k−1)w + erased weight). The float quotient (below 2³¹) is
    right or one off, and is set right by whole numbers.
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


def count_up(values: NDArray[Any], counts: NDArray[np.int64]) -> int:
    """Add the number of times each value occurs to ``counts``, shape [4, k]: four rows, so that equal neighbours do
    not wait for each other.
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
