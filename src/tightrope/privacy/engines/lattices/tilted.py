"""A tilted sum on a lattice, with all that δ needs of it for every ε: masses, and what they add up to block by block.

With P-masses e^{K − cl} m_l, δ(ε) = e^{K − cε} Σ_{l > ε} m_l e^{−c(l−ε)} (1 − e^{ε−l}). A block that begins at b gives
e^{−c(b−ε)} (A (1 − e^{ε−b}) + D e^{ε−b}) with A = Σ m_l e^{−c(l−b)} and D = Σ m_l e^{−c(l−b)} (1 − e^{b−l}): positive
terms alone, and as many of them an ε as there are blocks.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np

from tightrope.numerics.arrays import Floats

SHORT_BLOCK = 64
"""Points of a block, at least."""


class Shape(NamedTuple):
    """The tilt c, about mean and variance of the sum tilted by it, and K(c)."""

    tilt: float
    mean: float
    variance: float
    log_scale: float


class Points(NamedTuple):
    """Losses step · (origin, origin + stride, …)."""

    step: float
    origin: int
    stride: int

    @property
    def width(self) -> float:
        return self.step * self.stride

    def losses(self, first: int, last: int) -> Floats:
        """Those with these indices."""
        return self.step * np.asarray(self.origin + self.stride * np.arange(first, last), dtype=np.float64)


@dataclass(frozen=True, eq=False)
class Tilted:
    """Masses of the tilted sum; their error relative to their Euclidean norm, and the mass that may lie elsewhere, or
    have been folded in from there; the error of K(c).
    """

    shape: Shape
    points: Points
    masses: Floats
    error: float
    outside: float
    scale_error: float

    def index(self, epsilon: float) -> int:
        """The first index whose loss is above this one."""
        step, origin, stride = self.points
        return min(max(0, math.floor((epsilon / step - origin) / stride) + 1), len(self.masses))

    def excess(self, epsilon: float) -> float:
        """About how many nats K(c) − cε − log c − log(1 + c) is higher here than at the saddle of ε: by a parabola."""
        c = self.shape.tilt
        slope = self.shape.mean - epsilon - 1 / c - 1 / (1 + c)
        return slope**2 / (2 * (self.shape.variance + 1 / c**2 + 1 / (1 + c) ** 2))

    @cached_property
    def norm(self) -> float:
        """The Euclidean norm of the masses."""
        return float(np.linalg.norm(self.masses))

    def above(self, epsilon: float) -> tuple[float, float]:
        """Σ m_l e^{−c(l−ε)} (1 − e^{ε−l}) over l > ε, and what the errors of the masses may add up to in it."""
        first, size = self.index(epsilon), self._size
        stop = min(-(-first // size) * size, len(self.masses))
        gap = np.minimum(epsilon - self.points.losses(first, stop), 0.0)
        near = float(np.dot(np.maximum(self.masses[first:stop], 0.0), np.exp(self.shape.tilt * gap) * -np.expm1(gap)))
        whole, lifted, starts = self._blocks
        gaps = np.minimum(epsilon - starts[-(-first // size) :], 0.0)
        kept, rest = whole[-(-first // size) :], lifted[-(-first // size) :]
        far = float(np.dot(np.exp(self.shape.tilt * gaps), kept * -np.expm1(gaps) + rest * np.exp(gaps)))
        # Cauchy-Schwarz: the error of the masses is bounded in the Euclidean norm (Parseval).
        off = self.error * self._gains(len(self.masses) - first) * self.norm + self.outside
        return near + far, off

    def _gains(self, points: int) -> float:
        """A bound on the Euclidean norm of g(u) = e^{−cu} (1 − e^{−u}) at that many points: Σ g² ≤ max g · Σ g."""
        if not points:
            return 0.0
        c, width = self.shape.tilt, self.points.width
        top = math.exp(c * math.log(c) - (1 + c) * math.log1p(c))
        return 1.001 * math.sqrt(top * min(points * top, 2 * top + self._area(c) / width))

    @staticmethod
    def _area(c: float) -> float:
        """∫ g over u > 0; g rises to its top and falls, so no sum of steps exceeds that by more than twice the top."""
        return 1 / (c * (1 + c))

    @cached_property
    def _size(self) -> int:
        """Points of a block: about as many as there are blocks."""
        return max(SHORT_BLOCK, math.isqrt(len(self.masses)))

    @cached_property
    def _blocks(self) -> tuple[Floats, Floats, Floats]:
        """A, D and the first loss of every block."""
        size = self._size
        count = -(-len(self.masses) // size)
        held = np.zeros(count * size)
        np.maximum(self.masses, 0.0, out=held[: len(self.masses)])
        along = -self.points.width * np.arange(size)
        weights = np.exp(self.shape.tilt * along)
        rows = held.reshape(count, size)
        starts = self.points.losses(0, count * size)[::size]
        return rows @ weights, rows @ (weights * -np.expm1(along)), starts
