"""Where on a line the moment of many losses is not negligible.

|φ| of one law exceeds the larger of its values at two points d apart by at most d² E(L − m)²/8 between them, for any m
(``docs/proofs/sampled-gaussian.md``). Intervals whose product of bounds is not negligible are halved.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from tightrope.errors import PrecisionError
from tightrope.numerics.arrays import Floats
from tightrope.privacy.engines.smoothing.nodes import OnLine

Indices = np.ndarray[tuple[int], np.dtype[np.int64]]
DEAD = -40.0
"""Log of what counts as nothing, relative to M(c)."""
MOST_INTERVALS = 1 << 17
"""Intervals looked at, at any width."""
LONG = 64
"""Equidistant nodes of a row."""
BENT = 2.0
"""Intervals are no wider than this over the largest deviation at first."""


class TooManyError(PrecisionError):
    """More of something than can be paid for: ``ratio`` times as many, at least."""

    def __init__(self, found: int, most: int, what: str) -> None:
        super().__init__(f"there are {found} {what}, more than {most}")
        self.ratio = found / most


def alive(laws: Sequence[OnLine], counts: Sequence[int], row: float, rows: int, most: int = MOST_INTERVALS) -> Indices:
    """Which of the ``rows`` intervals of width ``row`` from 0 on may hold |M| above e^``DEAD`` M(c); ascending. No more
    than ``most`` are looked at, at any width.
    """
    doublings = _doublings(laws, row, rows)
    wide = 1 << doublings
    if -(-rows // wide) > most:
        raise TooManyError(-(-rows // wide), most, "intervals of a line to look at")
    first = np.arange(0, rows, wide)
    if len(first) == rows:
        return first
    edges = _even(laws, row * wide, len(first) + 1)
    left, right = edges[:, :-1], edges[:, 1:]
    while True:
        live = _bounds(laws, counts, np.maximum(left, right), row * wide) > DEAD
        first, left, right = first[live], left[:, live], right[:, live]
        if wide == 1 or not len(first):
            return first[first < rows]
        wide //= 2
        middle = _moduli(laws, np.asarray(row * (first + wide), dtype=np.float64))
        first = np.stack([first, first + wide], axis=1).ravel()
        left = np.stack([left, middle], axis=2).reshape(len(laws), -1)
        right = np.stack([middle, right], axis=2).reshape(len(laws), -1)
        if len(first) > most:
            raise TooManyError(len(first), most, "intervals of a line alive")


def _doublings(laws: Sequence[OnLine], row: float, rows: int) -> int:
    """How often a row is doubled for the widest intervals."""
    variance = max(law.variance for law in laws)
    widest = min(BENT / variance**0.5 / row, rows) if variance > 0 else rows
    return max(0, min(int(np.log2(max(widest, 1.0))), int(np.log2(rows))))


def _even(laws: Sequence[OnLine], width: float, count: int) -> Floats:
    """|φ| of each law at multiples of the width."""
    starts = np.asarray(LONG * width * np.arange(-(-count // LONG)), dtype=np.float64)
    along = np.asarray(width * np.arange(LONG), dtype=np.float64)
    return np.stack([law.moduli(starts, along).ravel()[:count] for law in laws])


def _moduli(laws: Sequence[OnLine], y: Floats) -> Floats:
    return np.stack([law.moduli(y, np.zeros(1))[:, 0] for law in laws])


def _bounds(laws: Sequence[OnLine], counts: Sequence[int], ends: Floats, width: float) -> Floats:
    """Log of a bound on |M|/M(c) on each interval."""
    bent = np.array([width**2 * law.variance / 8 for law in laws])[:, None]
    return np.asarray(np.array(counts, dtype=np.float64) @ np.log(np.minimum(ends + bent, 1.0)))
