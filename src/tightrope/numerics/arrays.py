"""Arrays of numbers, by the type of their entries."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tightrope.errors import InputError

Floats = NDArray[np.float64]
Complexes = NDArray[np.complex128]
Integers = NDArray[np.int64]
Bools = NDArray[np.bool_]


def numeric_array(name: str, values: ArrayLike, expected: str) -> NDArray[Any]:
    """Return ``values`` as an array; raises ``InputError``, without the values, for nested lists of unequal lengths."""
    try:
        return np.asarray(values)
    except ValueError:
        raise InputError(name, "lists of unequal lengths", expected) from None


def finite_array(name: str, values: object, ndim: int, expected: str, remedy: str) -> Floats:
    """Return a copy of ``values`` as floats with ``ndim`` axes; ``InputError`` unless non-empty and all finite."""
    try:
        array: Floats = np.array(values, dtype=np.float64, order="C")
    except (TypeError, ValueError):
        raise InputError(name, values, expected) from None
    if array.ndim != ndim or array.size == 0:
        raise InputError(name, values, expected, remedy)
    not_finite = np.argwhere(~np.isfinite(array))
    if len(not_finite):
        index = tuple(not_finite[0].tolist())
        raise InputError(f"{name}{list(index)}", float(array[index]), "a finite number")
    return array
