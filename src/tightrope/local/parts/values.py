"""Checks of people's values and reports. Errors never show a person's value."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tightrope.errors import InputError
from tightrope.numerics.arrays import Floats
from tightrope.numerics.checks import check_finite, check_integer

REMEDIES = {"reports": "use the mechanism that made the reports"}
Integers = NDArray[np.integer[Any]]


def check_categories(name: str, values: ArrayLike, k: int) -> Integers:
    """Return ``values`` as an array of integers in 0..k − 1, shape [n]; truth values count as 0 and 1.

    Raises ``InputError`` for floats (also NaN), for other shapes, and for numbers outside; the message has their count.
    """
    array = _number_array(name, values, "iub", f"a list or array of whole numbers in 0..{k - 1}, shape [n]")
    array = array.view(np.uint8) if array.dtype.kind == "b" else array
    if array.size and not 0 <= int(array.min()) <= int(array.max()) < k:
        outside = int(np.count_nonzero((array < 0) | (array >= k)))
        expected, remedy = f"0 of {len(array)}", REMEDIES.get(name, "number the categories from 0")
        raise InputError(f"{name} outside 0..{k - 1}", outside, expected, remedy)
    return array


def check_reals(name: str, values: ArrayLike, lower: float, upper: float) -> Floats:
    """Return ``values`` as floats in [lower, upper], shape [n]; raises ``InputError`` for others, also for NaN."""
    array = _number_array(name, values, "iuf", "a list or array of real numbers").astype(np.float64)
    outside = int(np.count_nonzero(~((array >= lower) & (array <= upper))))
    if outside:
        expected, remedy = f"0 of {array.size}", "clip the values, or widen the bounds before people report"
        raise InputError(f"{name} outside [{lower:g}, {upper:g}]", outside, expected, remedy)
    return array


def check_report_array(reports: ArrayLike, width: int) -> NDArray[Any]:
    """Return ``reports`` as an array; ``InputError`` unless they are integers of shape [n, width]."""
    rows: NDArray[Any] = np.asarray(reports)
    if rows.ndim != 2 or rows.shape[1] != width or rows.dtype.kind not in "iu":
        raise InputError(
            "type and shape of reports", (str(rows.dtype), rows.shape), f"whole numbers of shape [n, {width}]"
        )
    return rows


def check_bounds(bounds: object) -> tuple[float, float]:
    """Return finite (lower, upper), lower < upper; raises ``InputError`` for anything else."""
    if not isinstance(bounds, tuple) or len(bounds) != 2:
        raise InputError("bounds", bounds, "a pair (lower, upper)")
    lower, upper = check_finite("lower", bounds[0]), check_finite("upper", bounds[1])
    if not lower < upper < lower + np.finfo(np.float64).max:
        raise InputError("bounds", bounds, "a pair with lower < upper and a finite width")
    return lower, upper


def check_domain_size(k: object, most: int, remedy: str) -> int:
    """Return the number of categories, 2 ≤ k ≤ ``most``; raises ``InputError`` for anything else."""
    size = check_integer("k", k, at_least=2, remedy="k is the number of categories")
    if not size <= most:
        raise InputError("k", k, f"at most {most}", remedy)
    return size


def smallest_type(k: int) -> np.dtype[Any]:
    """Return the smallest unsigned type that holds 0..k − 1."""
    return np.min_scalar_type(k - 1)


def _number_array(name: str, values: ArrayLike, kinds: str, expected: str) -> NDArray[Any]:
    """Return a one-dimensional array of one of these kinds of numbers; an empty list becomes an array of integers."""
    if isinstance(values, np.ma.MaskedArray) and np.any(values.mask):
        masked = int(np.count_nonzero(values.mask))
        raise InputError(f"masked {name}", masked, "0", "missing values must be left out or coded")
    try:
        array = np.asarray(values)
    except ValueError:
        raise InputError(f"{name} of unequal lengths", type(values).__name__, expected) from None
    if array.shape == (0,):
        return np.zeros(0, dtype=np.int64)
    if array.dtype.kind not in kinds:
        raise InputError(f"type of {name}", str(array.dtype), expected, "missing values must be left out or coded")
    if array.ndim != 1:
        raise InputError(
            f"shape of {name}", array.shape, expected, "one value per person; put a single value in a list"
        )
    return array
