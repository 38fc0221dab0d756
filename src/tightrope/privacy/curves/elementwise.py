"""Scalars in, float out; arrays in, arrays of the same shape out."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

import numpy as np
from numpy.typing import ArrayLike

from tightrope.errors import InputError
from tightrope.numerics.arrays import Floats
from tightrope.numerics.checks import finite


class Check(Protocol):
    """Of one value: it as a float, or ``InputError``."""

    def __call__(self, name: str, value: object, /) -> float: ...


def each(name: str, values: ArrayLike, answer: Callable[[Floats], Floats], *, check: Check = finite) -> float | Floats:
    """``answer`` of the flat values; ``InputError`` for anything but numbers, and unless ``check`` lets each pass."""
    flat, shape = _flat(name, values, check)
    return _shaped(answer(flat), shape)


def each_of_two(
    name: str, values: ArrayLike, answer: Callable[[Floats], tuple[Floats, Floats]], *, check: Check = finite
) -> tuple[float | Floats, float | Floats]:
    """Both of two answers at once."""
    flat, shape = _flat(name, values, check)
    first, second = answer(flat)
    return _shaped(first, shape), _shaped(second, shape)


def _shaped(found: Floats, shape: tuple[int, ...] | None) -> float | Floats:
    return float(found[0]) if shape is None else found.reshape(shape)


def _flat(name: str, values: ArrayLike, check: Check) -> tuple[Floats, tuple[int, ...] | None]:
    """The values in a row, and their shape; None for a scalar."""
    try:
        asked = np.asarray(values)
    except ValueError:
        raise InputError(name, values, "a number, or an array of numbers") from None
    if asked.ndim == 0:
        return np.array([check(name, asked.item() if isinstance(values, np.ndarray) else values)]), None
    if asked.size == 0:
        raise InputError(name, values, "a number, or an array with at least one entry")
    if asked.dtype == np.float64 and np.all(np.isfinite(asked)):
        return asked.ravel(), asked.shape
    return np.array([check(name, value) for value in asked.ravel().tolist()]), asked.shape
