"""Laws at the door: finitely many probabilities that sum to one. The one checker; laws in rationals begin here, too."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from tightrope.errors import InputError
from tightrope.numerics.arrays import Floats, array_of

SUM_TOLERANCE = 1e-9
"""Sums closer to one than this are renormalised, others are refused."""

SHORT_ROUNDINGS = 16
"""Sums of float32 and float16 may be off by so many roundings of their kind."""


def probabilities(name: str, values: ArrayLike, size: int | None = None) -> Floats:
    """A law of shape [size] as it was given, in floats: nothing is renormalised.

    Raises ``InputError`` for anything but a list of numbers, an empty one or one of another size, NaN, infinite or
    negative entries, and a sum that is off by more than 1e−9.
    """
    masses = _numbers(name, values, "a list of probabilities")
    if masses.ndim != 1 or masses.size == 0 or size not in (None, masses.size):
        expected = "a list of probabilities" if size is None else f"one probability for each of {size} points"
        remedy = "no empty law, and no table: flatten the masses of a grid"
        raise InputError(f"{name}.shape", masses.shape, expected, remedy)
    _check(name, masses, "divide counts by their total, in doubles: p = numpy.asarray(counts, float); p / p.sum()")
    return masses


def law(name: str, values: ArrayLike, size: int | None = None) -> Floats:
    """A law of shape [size], renormalised; ``InputError`` as for ``probabilities``.

    >>> law("prior", [0.25, 0.75], 2).tolist()
    [0.25, 0.75]
    """
    masses = probabilities(name, in_doubles(name, values), size)
    masses /= masses.sum()
    return masses


def in_doubles(name: str, values: ArrayLike) -> ArrayLike:
    """Short floats whose sum is 1 up to their own roundings, as doubles that are divided by it; all else as it is.

    Divided by its sum in 32 bits, a law misses 1 by far more than 1e−9, so that nobody could give one.
    """
    array = array_of(name, values, "a list of probabilities")
    if array.dtype.kind != "f" or array.dtype.itemsize >= np.dtype(np.float64).itemsize or array.ndim != 1:
        return values
    masses = array.astype(np.float64)
    total = float(masses.sum())
    near = abs(total - 1) <= SHORT_ROUNDINGS * float(np.finfo(array.dtype).eps)
    return masses / total if near else array


def stochastic(matrix: ArrayLike) -> Floats:
    """A row-stochastic matrix of shape [inputs, outputs], rows renormalised to one; a read-only copy.

    A column of zeros is kept: an output that never happens says nothing, and leaving it out would renumber the
    others. Raises ``InputError`` for anything but numbers in two dimensions, an empty matrix, and rows that are no law.

    >>> stochastic([[0.5, 0.5], [1, 0]]).tolist()
    [[0.5, 0.5], [1.0, 0.0]]
    """
    rows = _numbers("matrix", matrix, "a matrix of probabilities, one row an input")
    if rows.ndim != 2 or rows.size == 0:
        remedy = "give one row an input, one column an output"
        raise InputError("matrix.shape", rows.shape, "(inputs, outputs), both at least 1", remedy)
    _check("matrix", rows)
    rows /= rows.sum(axis=1, keepdims=True)
    rows.setflags(write=False)
    return rows


def _numbers(name: str, values: ArrayLike, expected: str) -> Floats:
    """A copy in floats; booleans and texts are no numbers."""
    array = array_of(name, values, expected)
    if array.dtype.kind not in "iufO":
        raise InputError(f"type of {name}", str(array.dtype), expected)
    try:
        return np.array(array, dtype=np.float64)
    except (TypeError, ValueError, OverflowError):
        raise InputError(f"type of {name}", str(array.dtype), expected) from None


def _check(name: str, masses: Floats, divide: str = "divide counts by their total") -> None:
    """Rows of non-negative numbers that sum to one; NaN and ∞ do not pass either."""
    good = (masses >= 0) & (masses < np.inf)
    if not np.all(good):
        place = tuple(int(i) for i in np.argwhere(~good)[0])
        remedy = "negative and missing counts must be resolved before they become shares"
        shown = f"{name}[{', '.join(map(str, place))}]"
        raise InputError(shown, float(masses[place]), "a probability, not negative and not NaN", remedy)
    totals = np.atleast_1d(masses.sum(axis=-1))
    off = np.abs(totals - 1)
    if not np.all(off <= SUM_TOLERANCE):
        row = int(np.argmax(off))
        whose = f"{name}[{row}]" if masses.ndim == 2 else name
        raise InputError(f"the sum of {whose}", float(totals[row]), "1 within 1e-9", divide)
