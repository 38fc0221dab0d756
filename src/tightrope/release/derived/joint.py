"""How far a weighted sum of several noises lies from zero: the width that holds it all but some of the time.

``docs/proofs/intervals.md`` has the directions: no width is too small.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache

import numpy as np
from numpy.typing import NDArray

from tightrope.release.questions.widths.intervals import OUTSIDE
from tightrope.release.questions.widths.tails import Tails
from tightrope.release.questions.widths.two_noises import half_width

CELLS, REACH = 160, 4
"""Cells of the lattice for the width of the heaviest noise, and how many widths of all together it reaches."""
LEVELS = 48
"""What each noise weighs is rounded up to so many parts of the heaviest: widths serve all groups that are alike."""
JOINT_ROUNDING = 1e-11
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
        found = heaviest * _width(self, tuple(math.ceil(LEVELS * one / heaviest) for one in heavy), outside)
        return found if math.isfinite(found) else self._added(weights, outside)

    def _added(self, weights: Sequence[float], outside: float) -> float:
        """One width for each noise, which it rarely exceeds: what is left where the lattice ends before they do."""
        used = [(abs(weight), tails) for weight, tails in zip(weights, self.tails, strict=True) if weight]
        each = outside * (1 - JOINT_ROUNDING) / len(used)
        return math.fsum(weight * half_width(tails, each) for weight, tails in used) * (1 + 1e-12)


@lru_cache(maxsize=1 << 14)
def _width(joint: Joint, levels: tuple[int, ...], outside: float) -> float:
    """On a lattice: each c (X + V), V uniform on (−½, ½), evened out inside its cells, which makes none more peaked."""
    many, used = sum(level > 0 for level in levels), [place for place, level in enumerate(levels) if level]
    far = math.ceil(CELLS * REACH * math.sqrt(many))
    cell = max(1.0, math.log(OUTSIDE / outside) / 3) / CELLS
    laws = [_transformed(joint, place, levels[place], far, cell, many) for place in used]
    inside = np.maximum(np.fft.irfft(np.prod(laws, axis=0), _size(many, far)), 0.0)
    # the sum lies in (s, s + k) cells for k parts and a whole s: it is inside ± n where −n ≤ s ≤ n − k
    middle, sums = many * far, np.concatenate([[0.0], np.cumsum(inside)])
    n = np.arange(many, middle + 1)
    held = sums[middle + n - many + 1] - sums[middle - n]
    enough = np.flatnonzero(1 - held <= outside * (1 - JOINT_ROUNDING) - JOINT_ROUNDING)
    wide = math.inf if len(enough) == 0 else float(n[enough[0]]) * cell
    return (wide + math.fsum(levels[place] / LEVELS / joint.halves[place] for place in used) / 2) * (1 + 1e-12)


@lru_cache(maxsize=256)
def _transformed(joint: Joint, place: int, level: int, far: int, cell: float, many: int) -> NDArray[np.complex128]:
    """The transform of the mass of c (X + V) in so many cells to both sides; what is further counts as outside."""
    width = cell * LEVELS / level * joint.halves[place]
    beyond = joint.tails[place].smooth(np.arange(far + 1, dtype=np.float64) * width)
    half = np.maximum(beyond[:-1] - beyond[1:], 0.0)
    return np.fft.rfft(np.concatenate([half[::-1], half]), _size(many, far))


def _size(many: int, far: int) -> int:
    """A power of two that holds the sum of so many laws of 2 · ``far`` cells."""
    return 1 << (2 * many * far).bit_length()
