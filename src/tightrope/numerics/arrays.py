"""Arrays of numbers, by the type of their entries."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tightrope.errors import InputError

Floats = NDArray[np.float64]
Complexes = NDArray[np.complex128]
Integers = NDArray[np.int64]


def array_of(name: str, values: ArrayLike, expected: str) -> NDArray[Any]:
    """``values`` as an array; raises ``InputError``, without them, for lists of lists of unequal lengths."""
    try:
        return np.asarray(values)
    except ValueError:
        raise InputError(name, "lists of unequal lengths", expected) from None
