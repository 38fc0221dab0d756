"""How far a weighted sum of several noises lies from zero: the width that holds it all but some of the time.

``docs/proofs/intervals.md`` has the directions: no width is too small.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache

import numpy as np

from tightrope.numerics.arrays import Floats
from tightrope.release.questions.intervals import OUTSIDE, half_width
from tightrope.release.questions.tails import Tails

CELLS, REACH = 240, 4
"""Cells of the lattice for a first guess of the width, and how many such guesses far it reaches."""
LEVELS = 64
"""What each noise weighs is rounded up to so many parts of the heaviest: widths serve all groups that are alike."""
ROUNDING = 1e-11
"""What sums of probabilities in floats may be off by."""


@dataclass(frozen=True, eq=False)  # not slotted: what all groups share is kept
class Joint:
    """|Σ c_i X_i| of independent symmetric unimodal noises X_i."""

    tails: tuple[Tails, ...]

    @cached_property
    def halves(self) -> tuple[float, ...]:
        """About how far each noise reaches: what its weight is measured by."""
        return tuple(half_width(tails, OUTSIDE) for tails in self.tails)

    def width(self, weights: Sequence[float], outside: float) -> float:
        """A width that is exceeded at most ``outside`` of the time, for all weights up to these in absolute value."""
        heavy = [abs(weight) * half for weight, half in zip(weights, self.halves, strict=True)]
        heaviest = max(heavy)
        if not 0 < heaviest < math.inf:
            return heaviest
        return heaviest * _width(self, tuple(math.ceil(LEVELS * one / heaviest) for one in heavy), outside)


@lru_cache(maxsize=1 << 14)
def _width(joint: Joint, levels: tuple[int, ...], outside: float) -> float:
    """On a lattice: each c (X + V), V uniform on (−½, ½), evened out inside its cells, which makes none more peaked."""
    every = zip(joint.tails, joint.halves, levels, strict=True)
    parts = [(tails, level / LEVELS / half) for tails, half, level in every if level]
    guess = math.hypot(*levels) / LEVELS
    cell = guess * max(1.0, math.log(OUTSIDE / outside) / 3) / CELLS
    inside = _sum([_cells(tails, weight, cell) for tails, weight in parts])
    # the sum lies in (s, s + k) cells for k parts and a whole s: it is inside ± n where −n ≤ s ≤ n − k
    many, middle = len(parts), len(parts) * CELLS * REACH
    sums = np.concatenate([[0.0], np.cumsum(inside)])
    n = np.arange(many, middle + 1)
    held = sums[middle + n - many + 1] - sums[middle - n]
    enough = np.flatnonzero(1 - held <= outside * (1 - ROUNDING) - ROUNDING)
    wide = math.inf if len(enough) == 0 else float(n[enough[0]]) * cell
    return (wide + sum(weight for _, weight in parts) / 2) * (1 + 1e-12)


def _cells(tails: Tails, weight: float, cell: float) -> Floats:
    """The mass of c (X + V) in every cell to both sides; what is further counts as outside."""
    beyond = tails.smooth(np.arange(CELLS * REACH + 1, dtype=np.float64) * (cell / weight))
    half = np.maximum(beyond[:-1] - beyond[1:], 0.0)
    return np.concatenate([half[::-1], half])


def _sum(parts: Sequence[Floats]) -> Floats:
    """The mass of the sum of the left ends of the cells, from the least on."""
    length = sum(len(part) for part in parts)
    size = 1 << (length - 1).bit_length()
    product = np.prod([np.fft.rfft(part, size) for part in parts], axis=0)
    return np.maximum(np.fft.irfft(product, size)[:length], 0.0)
