"""Concave hulls of points in the plane, as a cord stretched over them from left to right."""

from __future__ import annotations

from typing import Any

import numpy as np

from tightrope.numerics.arrays import Floats, Integers

Places = int | Integers
ONE_BY_ONE = 64
"""Points that are gone through one by one."""


def concave(x: Floats, y: Floats) -> tuple[Floats, Floats]:
    """Corners of the least concave function above points of ascending x, from the first point to the last.

    >>> [corners.tolist() for corners in concave(np.array([0.0, 1, 2]), np.array([0.0, 0.4, 1]))]
    [[0.0, 2.0], [0.0, 1.0]]
    """
    x, y = _thinned(x, y)
    kept: list[int] = []
    for i in range(len(x)):
        while len(kept) > 1 and _below(x, y, kept[-2], kept[-1], i):
            kept.pop()
        kept.append(i)
    return x[kept], y[kept]


def _thinned(x: Floats, y: Floats) -> tuple[Floats, Floats]:
    """Without most of the points below the chord of their neighbours, every second at a time: none is a corner."""
    left = len(x) + 1
    while ONE_BY_ONE < len(x) < left:
        left = len(x)
        for start in (1, 2):
            middle = np.arange(start, len(x) - 1, 2)
            low = middle[_below(x, y, middle - 1, middle, middle + 1)]
            x, y = np.delete(x, low), np.delete(y, low)
    return x, y


def _below(x: Floats, y: Floats, left: Places, middle: Places, right: Places) -> Any:
    """Whether the middle is on or below the chord."""
    return (y[middle] - y[left]) * (x[right] - x[left]) <= (y[right] - y[left]) * (x[middle] - x[left])
