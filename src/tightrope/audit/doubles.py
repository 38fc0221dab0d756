"""Floating-point numbers as columns for a classifier: their value, and how fine they are."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from tightrope.errors import InputError
from tightrope.numerics.arrays import Floats

NO_BITS = -1100.0
"""The place of the lowest bit of 0: below that of any double."""


def float_columns(values: ArrayLike) -> Floats:
    """The value, the exponent, and the place of the lowest bit that is set: shape [n, 3].

    A double is m·2^e with m odd: the last column is e. Noise that is drawn as a double and added to the answer leaves
    sums on grids that depend on the answer; the value alone does not show it.

    >>> float_columns([1.0, 0.75, 1.0 + 2.0**-52]).tolist()
    [[1.0, 1.0, 0.0], [0.75, 0.0, -2.0], [1.0000000000000002, 1.0, -52.0]]
    """
    numbers = np.asarray(values, dtype=np.float64)
    if numbers.ndim != 1 or not np.isfinite(numbers).all():
        raise InputError("values", f"shape {numbers.shape}", "a list of finite numbers, one a run")
    fraction, exponent = np.frexp(numbers)
    odd = np.abs(fraction * 2.0**53).astype(np.int64)
    lowest = np.log2(np.maximum(odd & -odd, 1).astype(np.float64))
    place = np.where(odd == 0, NO_BITS, exponent - 53 + lowest)
    return np.column_stack([numbers, exponent.astype(np.float64), place])
