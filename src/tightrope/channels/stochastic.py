"""Matrices and laws at the door: finite, non-negative, rows that sum to one."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from tightrope.errors import InputError
from tightrope.numerics.arrays import Floats

SUM_TOLERANCE = 1e-9
"""Sums closer to one than this are renormalised, others are refused."""


def stochastic(matrix: ArrayLike) -> Floats:
    """A row-stochastic matrix of shape [inputs, outputs], rows renormalised to one; a read-only copy.

    A column of zeros is kept: an output that never happens says nothing, and leaving it out would renumber the
    others. Raises ``InputError`` for anything but numbers in two dimensions, an empty matrix, NaN, infinite or
    negative entries, and rows whose sum is off by more than 1e−9.

    >>> stochastic([[0.5, 0.5], [1, 0]]).tolist()
    [[0.5, 0.5], [1.0, 0.0]]
    """
    rows = _numbers("matrix", matrix, "a matrix of probabilities, one row an input")
    if rows.ndim != 2 or rows.size == 0:
        raise InputError(
            "matrix.shape",
            rows.shape,
            "(inputs, outputs), both at least 1",
            "give one row an input, one column an output",
        )
    _none_negative("matrix", rows)
    return _normalised("matrix", rows)


def law(name: str, values: ArrayLike, size: int | None = None) -> Floats:
    """A distribution of shape [size], renormalised; ``InputError`` as for a row of ``stochastic``.

    >>> law("prior", [0.25, 0.75], 2).tolist()
    [0.25, 0.75]
    """
    weights = _numbers(name, values, "a list of probabilities")
    if weights.ndim != 1 or weights.size == 0 or size not in (None, weights.size):
        expected = "a list of probabilities" if size is None else f"one probability for each of {size} inputs"
        raise InputError(f"{name}.shape", weights.shape, expected)
    _none_negative(name, weights)
    return _normalised(name, weights)


def _numbers(name: str, values: ArrayLike, expected: str) -> Floats:
    try:
        return np.array(values, dtype=np.float64)
    except (TypeError, ValueError, OverflowError):
        raise InputError(name, values, expected) from None


def _none_negative(name: str, weights: Floats) -> None:
    """NaN and ∞ do not pass either."""
    good = (weights >= 0) & (weights < np.inf)
    if not np.all(good):
        place = tuple(int(i) for i in np.argwhere(~good)[0])
        shown = f"{name}{list(place)}"
        raise InputError(shown, float(weights[place]), "a probability, not negative and not NaN")


def _normalised(name: str, weights: Floats) -> Floats:
    totals = weights.sum(axis=-1, keepdims=True)
    off = np.abs(totals - 1)
    if not np.all(off <= SUM_TOLERANCE):
        row = int(np.argmax(off))
        place = f"{name}[{row}]" if weights.ndim == 2 else name
        raise InputError(
            f"the sum of {place}", float(totals.ravel()[row]), "1 within 1e-9", "divide counts by their total first"
        )
    weights /= totals
    weights.setflags(write=False)
    return weights
