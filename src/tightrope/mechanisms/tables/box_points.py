"""How many points of ℤ^d have one distance from 0 and another from the corner s·(1, …, 1); distance: the largest |x_i|.

For distances a and b = a + j, |j| ≤ s, each coordinate lies in an interval of V = a + b − s + 1 whole numbers. Where
|j| < s, one of its ends has distance b from the corner and the other one distance a from 0, and no inner point has
either: a point needs both ends, which are V^d − 2 (V−1)^d + (V−2)^d (one, where V = 1). Where |j| = s, one of the ends
has both distances: V^d − (V−1)^d. Sums of positive terms: nothing cancels, in floats as little as in whole numbers.
"""

from __future__ import annotations

from math import comb
from typing import TypeVar

import numpy as np

from tightrope.numerics.arrays import Floats

Number = TypeVar("Number", int, Floats)


def with_one_end(inner: Number, dimension: int) -> Number:
    """(m+1)^d − m^d for m = V − 1 ≥ 0.

    >>> with_one_end(2, 3) == 3**3 - 2**3
    True
    """
    found = inner * 0 + 1
    for k in range(1, dimension):
        found = found + comb(dimension, k) * inner**k
    return found


def with_both_ends(inner: Number, dimension: int) -> Number:
    """(m+1)^d − 2 m^d + (m−1)^d for m = V − 1 ≥ 1.

    >>> with_both_ends(2, 3) == 3**3 - 2 * 2**3 + 1
    True
    """
    found = inner * 0
    for k in range(2, dimension + 1, 2):
        found = found + 2 * comb(dimension, k) * inner ** (dimension - k)
    return found


def shared_floats(lengths: Floats, dimension: int, *, one_end: bool) -> Floats:
    """The number of points for each V, to a few units in the last place; none where V < 1."""
    inner = np.maximum(lengths - 1, 0.0)
    many = (with_one_end if one_end else with_both_ends)(inner, dimension)
    return np.where(lengths > 1, many, (lengths == 1).astype(np.float64))
