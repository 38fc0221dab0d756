"""The loss of a normal law shifted by μ standard deviations: L ~ N(μ²/2, μ²)."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from scipy import special

from tightrope.privacy.cells import Cells, multiples
from tightrope.privacy.law import Complexes, Floats, LossLaw

ROOT_HALF = math.sqrt(0.5)
REACH = 38.0
"""Standard deviations beyond which the normal law has no double-precision mass."""
NARROW = 0.5
"""Below this μ the two tails of the profile are nearly equal, and their difference is integrated instead."""
WIDEST = 0.25
"""Cells are no wider than this many standard deviations, so that eight nodes integrate the density to rounding."""
NODES, WEIGHTS = (np.asarray(values, dtype=np.float64) for values in np.polynomial.legendre.leggauss(8))


@dataclass(frozen=True, slots=True)
class GaussianLaw(LossLaw):
    """μ-GDP: K(z) = μ²(z + z²)/2 (theory §3); its own reverse."""

    mu: float

    @property
    def infinite_mass(self) -> float:
        return 0.0

    @property
    def opposite_mass(self) -> float:
        return 0.0

    @property
    def largest(self) -> float:
        return math.inf

    def reverse(self) -> GaussianLaw:
        return self

    def log_moment(self, z: Complexes) -> Complexes:
        return np.asarray(self.mu**2 * (z + z * z) / 2)

    def decay(self, c: float, y: float) -> float:
        """|M(c+iy)|/M(c) = e^{−μ²y²/2}, exactly."""
        del c
        return math.exp(-((self.mu * y) ** 2) / 2)

    def profile(self, epsilon: Floats) -> Floats:
        """δ(ε) = Φ(−ε/μ + μ/2) − e^ε Φ(−ε/μ − μ/2), mirrored below 0."""
        epsilon = np.asarray(epsilon, dtype=np.float64)
        positive = self._positive(np.abs(epsilon))
        return np.where(epsilon >= 0, positive, -np.expm1(np.minimum(epsilon, 0)) + np.exp(-np.abs(epsilon)) * positive)

    def profile_error(self, epsilon: Floats) -> Floats:
        """Rounding of a = ε/μ − μ/2, with which δ falls at a rate of 1 + |a| at most, and of its square; of 1 − t·m(t)
        far out, and of two tails where μ is large.
        """
        size = np.minimum(np.abs(epsilon), 1e9)
        low = size / self.mu - self.mu / 2
        exponent = (1 + np.abs(low)) * (size / self.mu + self.mu)
        apart = 0.0 if self.mu < NARROW else 8 / self.mu
        return np.asarray(1e-15 * (8 + exponent + 2 * low**2 + apart * (1 + np.abs(low))))

    def _positive(self, epsilon: Floats) -> Floats:
        """φ(a) (m(a) − m(b)), a = ε/μ − μ/2, b = a + μ, m Mills' ratio; ∫ (1 − t m(t)) dt where that cancels."""
        low, high = epsilon / self.mu - self.mu / 2, epsilon / self.mu + self.mu / 2
        outer = np.clip(low, -REACH, 1e9)
        with np.errstate(over="ignore"):
            density = np.exp(-(outer**2) / 2) / math.sqrt(2 * math.pi)
            if self.mu < NARROW:
                t = outer[..., None] + self.mu / 2 * (1 + NODES)
                return np.asarray(density * (self.mu / 2) * ((1 - t * _mills(t)) @ WEIGHTS))
            far = density * (_mills(np.maximum(outer, 0)) - _mills(high))
            near = special.ndtr(-low) - np.exp(epsilon + special.log_ndtr(-high))
        return np.where(low > 0, far, near)

    def cells(self, step: float) -> Cells:
        """Intervals of loss; what lies ``REACH`` standard deviations out counts as lost."""
        reach = self.mu**2 / 2 + REACH * self.mu
        return self.cut(multiples(-reach, reach, step))

    def cut(self, edges: Floats) -> Cells:
        """Masses by quadrature of positive terms on each cell; none is wider than ``WIDEST`` allows."""
        reach = self.mu**2 / 2 + REACH * self.mu
        close = np.linspace(-reach, reach, math.ceil(2 * reach / (WIDEST * self.mu)) + 1)
        edges = np.unique(np.concatenate([close, edges[np.abs(edges) < reach]]))
        width = np.diff(edges)
        x = (edges[:-1] - self.mu**2 / 2) / self.mu
        low, high = np.zeros_like(width), np.zeros_like(width)
        for node, weight in zip(NODES, WEIGHTS, strict=True):
            inside = width * (1 + node) / 2
            mass = weight / 2 * np.exp(-((x + inside / self.mu) ** 2) / 2) * width / (self.mu * math.sqrt(2 * math.pi))
            share = np.expm1(-inside) / np.expm1(-width)
            low += mass * (1 - share)
            high += mass * share
        ends = (edges[0] - self.mu**2 / 2) / self.mu, (edges[-1] - self.mu**2 / 2) / self.mu
        lost = float(special.ndtr(ends[0]) + special.ndtr(-ends[1]))
        return Cells(edges[:-1], edges[1:], low, high, lost, 0.0)


def _mills(t: Floats) -> Floats:
    """(1 − Φ(t)) / φ(t)."""
    return np.asarray(math.sqrt(math.pi / 2) * special.erfcx(t * ROOT_HALF))
