"""Laws on finitely many points: checked at the door, and turned into integers that sum to a power of two.

Integer masses make transport exact: sums, flows and comparisons have no rounding. A law of floats is a law of integers
to within one unit a point.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from tightrope.errors import InputError
from tightrope.numerics.arrays import Floats, Integers

SLACK = 1e-9
"""A law may miss the sum 1 by this much; it is then divided by its sum."""


def law(name: str, values: object, points: int | None = None) -> Floats:
    """The probabilities ``values`` as floats that sum to one, one a point.

    Raises ``InputError`` where a value is negative, NaN or infinite, where the sum is not 1 to 1e−9 or where there is
    not one value for each of ``points`` points.

    >>> law("source", [0.25, 0.75]).tolist()
    [0.25, 0.75]
    """
    masses = _vector(name, values)
    if points is not None and len(masses) != points:
        raise InputError(name, values, f"one probability for each of the {points} points of the cost", _shape(masses))
    wrong = ~((masses >= 0) & (masses <= 1 + SLACK))
    if wrong.any():
        where = int(np.argmax(wrong))
        remedy = "negative and missing counts must be resolved before they become shares"
        raise InputError(f"{name}[{where}]", float(masses[where]), "a probability in [0, 1]", remedy)
    total = float(masses.sum())
    if not abs(total - 1) <= SLACK:
        raise InputError(f"sum({name})", total, "1 to within 1e-9", f"divide by the sum: {name} / {name}.sum()")
    return masses / total


def _vector(name: str, values: object) -> Floats:
    expected = "a list of probabilities, one a point"
    try:
        masses = np.array(values, dtype=np.float64)
    except (TypeError, ValueError):
        raise InputError(name, values, expected, "for example [0.2, 0.5, 0.3]") from None
    if masses.ndim != 1 or masses.size == 0:
        raise InputError(name, values, expected, "a law needs at least one point; flatten the masses of a grid")
    return masses


def _shape(masses: Floats) -> str:
    return f"it has {len(masses)}; rows of the cost belong to the source, columns to the target"


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
