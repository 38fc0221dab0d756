"""The loss of a normal law shifted by μ standard deviations: L ~ N(μ²/2, μ²)."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from scipy import special

from tightrope.privacy.cells import MOST, Cells
from tightrope.privacy.law import Complexes, Floats, LossLaw

ROOT_HALF = math.sqrt(0.5)
REACH = 38.0
"""Standard deviations beyond which the normal law has no double-precision mass."""


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

    def power(self, count: int) -> GaussianLaw:
        """k-fold μ-GDP is √k·μ-GDP."""
        return GaussianLaw(self.mu * math.sqrt(count))

    def log_moment(self, z: Complexes) -> Complexes:
        return np.asarray(self.mu**2 * (z + z * z) / 2)

    def decay(self, c: float, y: float) -> float:
        """|M(c+iy)|/M(c) = e^{−μ²y²/2}, exactly."""
        del c
        return math.exp(-((self.mu * y) ** 2) / 2)

    def profile(self, epsilon: Floats) -> Floats | None:
        """δ(ε) = Φ(−ε/μ + μ/2) − e^ε Φ(−ε/μ − μ/2); left to the contour where that cancels (small μ)."""
        epsilon = np.asarray(epsilon, dtype=np.float64)
        if self.mu < 0.02:
            return None
        positive = self._positive(np.abs(epsilon))
        return np.where(epsilon >= 0, positive, 1 - np.exp(np.minimum(epsilon, 0)) * (1 - positive))

    def profile_error(self, epsilon: Floats) -> Floats:
        """Rounding of the exponent ε²/2μ², of the difference of two tails that are μ apart, and of what is near 1."""
        size = np.minimum(np.abs(epsilon), 1e9)
        reach = size / self.mu + self.mu
        absolute = 6e-16 * np.exp(-(np.clip(size / self.mu - self.mu / 2, 0, 37) ** 2) / 2)
        value = np.maximum(self._positive(size), 1e-300)
        return np.asarray(1e-15 * (4 + reach**2 + 4 * reach / self.mu) + absolute / value)

    def _positive(self, epsilon: Floats) -> Floats:
        """Both normal tails share the factor e^{−x²/2}: the scaled complementary error function keeps every digit."""
        low, high = epsilon / self.mu - self.mu / 2, epsilon / self.mu + self.mu / 2
        outer = np.clip(low, 0, 1e9)
        scaled = special.erfcx(outer * ROOT_HALF) - special.erfcx(high * ROOT_HALF)
        far = 0.5 * np.exp(-(outer**2) / 2) * scaled
        near = special.ndtr(-low) - np.exp(epsilon + special.log_ndtr(-high))
        return np.where(low > 0, far, near)

    def cells(self, step: float) -> Cells:
        """Normal masses of intervals of loss; the far tails are merged upwards into +∞ and the lowest cell."""
        mean, reach = self.mu**2 / 2, REACH * self.mu
        count = min(MOST, max(2, math.ceil(2 * (reach + mean) / step)))
        edges = np.linspace(-mean - reach, mean + reach, count + 1)
        p = _normal_masses((edges - mean) / self.mu)
        q = _normal_masses((edges + mean) / self.mu)
        return Cells(edges[:-1], edges[1:], p, q, 0.0, 0.0)


def _normal_masses(edges: Floats) -> Floats:
    """Masses of the intervals between standardised edges, each from the tail that keeps its digits."""
    left, right = edges[:-1], edges[1:]
    return np.where(right <= 0, special.ndtr(right) - special.ndtr(left), special.ndtr(-left) - special.ndtr(-right))
