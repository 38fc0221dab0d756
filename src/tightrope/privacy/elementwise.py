"""Scalars in, float out; arrays in, arrays of the same shape out."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import ArrayLike

from tightrope.errors import InputError
from tightrope.numerics.checks import finite
from tightrope.privacy.law import Floats


def each(name: str, values: ArrayLike, answer: Callable[[Floats], Floats]) -> float | Floats:
    """``answer`` of the flat values; ``InputError`` for anything but finite numbers."""
    try:
        asked = np.asarray(values)
    except ValueError:
        raise InputError(name, values, "a number, or an array of numbers") from None
    if asked.ndim == 0:
        number = finite(name, asked.item() if isinstance(values, np.ndarray) else values)
        return float(answer(np.array([number]))[0])
    if asked.size == 0:
        raise InputError(name, values, "a number, or an array with at least one entry")
    if asked.dtype == np.float64 and np.all(np.isfinite(asked)):
        return answer(asked.ravel()).reshape(asked.shape)
    flat = np.array([finite(name, value) for value in asked.ravel().tolist()])
    return answer(flat).reshape(asked.shape)
