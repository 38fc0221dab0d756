"""Numbers that are known to lie between two others, whole arrays of them: every rounding goes outwards.

A profile falls with ε. So where ε is only known to lie in [a, b], δ is at least what it is at least at b, and at most
what it is at most at a: no slope is needed, and no error is carried by a condition number.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np

from tightrope.numerics.rounding import ROUND_OFF

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from tightrope.numerics.arrays import Floats
    from tightrope.privacy.laws.law import Ends

    Flags = NDArray[np.bool_]

LEAST_DOUBLE = 5e-324
"""The least double above 0."""


def around(value: Floats, error: Floats | float) -> Ends:
    """Value · (1 ∓ error) inside [0, 1], each end one step further out; an exact zero stays one."""
    return _outward(value * (1 - np.minimum(error, 1.0)), value * (1 + error), value > 0)


def times(ends: Ends, least: Floats | float, most: Floats | float) -> Ends:
    """Both ends times a factor between two others; where all of it is exactly zero it stays so."""
    low, high = ends
    return _outward(low * least, high * most, (high > 0) & (np.asarray(most) > 0))


def widened(ends: Ends, slack: float) -> Ends:
    """Both ends moved outwards by the slack, and on where rounding has moved them by less."""
    if not slack:
        return ends
    low, high = ends[0] - slack, ends[1] + slack
    low = np.where(ends[0] - low < slack, np.nextafter(low, -np.inf), low)
    return low, np.where(high - ends[1] < slack, np.nextafter(high, np.inf), high)


def mirrored(epsilon: Floats, reverse: Ends) -> Ends:
    """1 − e^ε + e^ε δ' at ε ≤ 0, with δ' at −ε in the reverse order: both terms are positive."""
    base, factor = -np.expm1(epsilon), np.exp(epsilon)
    low, high = (around(base + factor * end, 8 * ROUND_OFF) for end in reverse)
    return low[0], high[1]


def by_sign(epsilon: Floats, ahead: Callable[[Ends], Ends | None], back: Callable[[Ends], Ends | None]) -> Ends | None:
    """``ahead`` at ε ≥ 0; below, the mirror of ``back``, which is the same of the reverse order."""
    negative = epsilon < 0
    if not np.any(negative):
        return ahead((epsilon, epsilon))
    size = np.abs(epsilon)
    second = back((size, size))
    first = second if np.all(negative) else ahead((size, size))
    if first is None or second is None:
        return None
    below = mirrored(-size, second)
    return np.where(negative, below[0], first[0]), np.where(negative, below[1], first[1])


def middle(ends: Ends | None) -> Floats | None:
    """Halfway between both ends."""
    return None if ends is None else np.asarray(ends[0] / 2 + ends[1] / 2)


def spread(ends: Ends | None, shape: tuple[int, ...]) -> Floats:
    """How far the ends are from halfway between them, relative to that."""
    if ends is None:
        return np.zeros(shape)
    low, high = ends
    return np.asarray((high - low) / np.maximum(high + low, LEAST_DOUBLE) + 4 * ROUND_OFF)


def _outward(low: Floats, high: Floats, positive: Flags) -> Ends:
    """One step further out, inside [0, 1], where there is anything."""
    least, most = np.nextafter(np.maximum(low, 0.0), 0.0), np.minimum(np.nextafter(high, 2.0), 1.0)
    return (least, most) if positive.all() else (least * positive, most * positive)
