"""Laws on finitely many points, turned into integers that sum to a power of two.

Integer masses make transport exact: sums, flows and comparisons have no rounding. A law of floats is a law of integers
to within one unit a point.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike

from tightrope.numerics.arrays import Floats, Integers
from tightrope.numerics.laws import in_doubles, law, probabilities


def divided_law(name: str, values: ArrayLike, size: int) -> Floats:
    """A law of shape [size], divided by its sum where that is further from 1 than roundings of a sum.

    A law that was divided once stays as it is: dividing two laws by sums that differ in the last digit makes masses
    differ that were alike, and what that is worth hangs on the cost. Raises ``InputError`` as ``numerics.laws.law``.
    """
    masses = probabilities(name, in_doubles(name, values), size)
    total = float(masses.sum())
    return masses if abs(total - 1) <= 4 * np.finfo(float).eps else masses / total


def group_shares(values: Sequence[float] | None, count: int) -> Floats:
    """Shares of ``count`` groups, equal where none are given; they are checked as a law is."""
    return np.full(count, 1 / count) if values is None else law("weights", values, count)


def whole_masses(masses: Floats, bits: int) -> Integers:
    """Integers that sum to 2^bits, within about one unit of ``masses`` · 2^bits; no positive mass becomes zero.

    ``bits`` at most 61. What rounding leaves is spread over the largest masses, so that it changes them least.

    >>> whole_masses(np.array([1 / 3, 1 / 3, 1 / 3]), 4).tolist()
    [6, 5, 5]
    """
    total = 1 << bits
    found = np.rint(np.ldexp(masses, bits)).astype(np.int64)
    found[(found == 0) & (masses > 0)] = 1
    missing = total - int(found.sum())
    while missing:
        missing -= _spread(found, missing)
    return found


def _spread(found: Integers, missing: int) -> int:
    """Give out at most one part of ``missing`` to each of the larger half; returns what was given.

    What is taken away (``missing`` < 0) comes from masses above one unit, and leaves them one: none vanishes.
    """
    able = np.flatnonzero(found > (0 if missing > 0 else 1))
    half = max(1, len(able) // 2)
    if half < len(able):
        able = able[np.argpartition(-found[able], half - 1)[:half]]
    part = max(1, abs(missing) // len(able))
    chosen = np.sort(able)[: abs(missing) // part]
    given = np.full(len(chosen), part) if missing > 0 else -np.minimum(part, found[chosen] - 1)
    found[chosen] += given
    return int(given.sum())
