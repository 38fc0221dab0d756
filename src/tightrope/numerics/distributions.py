"""Validation of finite probability distributions; also used by distributions in rational numbers."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from tightrope.errors import InputError
from tightrope.numerics.arrays import Floats, numeric_array

SUM_TOLERANCE = 1e-9
"""Sums closer to one than this are renormalized, others are rejected."""

SHORT_ROUNDINGS = 16
"""Sums of float32 and float16 may be off by this many roundings of their type."""


def check_probabilities(name: str, values: ArrayLike, size: int | None = None) -> Floats:
    """Return a valid distribution of shape [size] as floats, without renormalization.

    Raises ``InputError`` for anything but a list of numbers, an empty one or one of another size, NaN, infinite or
    negative entries, and a sum that is off by more than 1e−9.
    """
    masses = _copy_as_floats(name, values, "a list of probabilities")
    if masses.ndim != 1 or masses.size == 0 or size not in (None, masses.size):
        expected = "a list of probabilities" if size is None else f"one probability for each of {size} points"
        remedy = "no empty law, and no table: flatten the masses of a grid"
        raise InputError(f"{name}.shape", masses.shape, expected, remedy)
    _check_row_sums(
        name, masses, "divide counts by their total, in doubles: p = numpy.asarray(counts, float); p / p.sum()"
    )
    return masses


def normalize_distribution(name: str, values: ArrayLike, size: int | None = None) -> Floats:
    """Return a distribution of shape [size], renormalized; ``InputError`` as for ``check_probabilities``.

    >>> normalize_distribution("prior", [0.25, 0.75], 2).tolist()
    [0.25, 0.75]
    """
    masses = check_probabilities(name, distribution_in_doubles(name, values), size)
    masses /= masses.sum()
    return masses


def distribution_in_doubles(name: str, values: ArrayLike) -> ArrayLike:
    """Return short floats with sum 1 up to rounding as doubles divided by their sum; return other values unchanged.

    Normalized in 32 bits, a distribution misses 1 by far more than 1e−9, and would be rejected otherwise.
    """
    array = numeric_array(name, values, "a list of probabilities")
    if array.dtype.kind != "f" or array.dtype.itemsize >= np.dtype(np.float64).itemsize or array.ndim != 1:
        return values
    masses = array.astype(np.float64)
    total = float(masses.sum())
    near = abs(total - 1) <= SHORT_ROUNDINGS * float(np.finfo(array.dtype).eps)
    return masses / total if near else array


def normalize_stochastic_matrix(matrix: ArrayLike) -> Floats:
    """Return a read-only row-stochastic matrix of shape [inputs, outputs], with rows renormalized to one.

    A column of zeros is kept: it has no effect on privacy, and leaving it out would renumber the other
    outputs. Raises ``InputError`` for anything but numbers in two dimensions, an empty matrix, and rows that are not
    distributions.

    >>> normalize_stochastic_matrix([[0.5, 0.5], [1, 0]]).tolist()
    [[0.5, 0.5], [1.0, 0.0]]
    """
    rows = _copy_as_floats("matrix", matrix, "a matrix of probabilities, one row an input")
    if rows.ndim != 2 or rows.size == 0:
        remedy = "give one row an input, one column an output"
        raise InputError("matrix.shape", rows.shape, "(inputs, outputs), both at least 1", remedy)
    _check_row_sums("matrix", rows)
    rows /= rows.sum(axis=1, keepdims=True)
    rows.setflags(write=False)
    return rows


def _copy_as_floats(name: str, values: ArrayLike, expected: str) -> Floats:
    """Return a copy in floats; booleans and strings are rejected."""
    array = numeric_array(name, values, expected)
    if array.dtype.kind not in "iufO":
        raise InputError(f"type of {name}", str(array.dtype), expected)
    try:
        return np.array(array, dtype=np.float64)
    except (TypeError, ValueError, OverflowError):
        raise InputError(f"type of {name}", str(array.dtype), expected) from None


def _check_row_sums(name: str, masses: Floats, divide: str = "divide counts by their total") -> None:
    """Check that rows are non-negative and sum to one; NaN and ∞ fail."""
    is_valid = (masses >= 0) & (masses < np.inf)
    if not np.all(is_valid):
        index = tuple(int(i) for i in np.argwhere(~is_valid)[0])
        remedy = "negative and missing counts must be resolved before they become shares"
        shown = f"{name}[{', '.join(map(str, index))}]"
        raise InputError(shown, float(masses[index]), "a probability, not negative and not NaN", remedy)
    totals = np.atleast_1d(masses.sum(axis=-1))
    distance = np.abs(totals - 1)
    if not np.all(distance <= SUM_TOLERANCE):
        row = int(np.argmax(distance))
        row_name = f"{name}[{row}]" if masses.ndim == 2 else name
        raise InputError(f"the sum of {row_name}", float(totals[row]), "1 within 1e-9", divide)
