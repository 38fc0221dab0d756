"""The loss of a normal law shifted by μ standard deviations: L ~ N(μ²/2, μ²)."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Self

import numpy as np
from scipy import special

from tightrope.numerics.arrays import Complexes, Floats
from tightrope.numerics.rounding import ROUND_OFF
from tightrope.privacy.laws.enclosed import LEAST_DOUBLE, around, by_sign, middle, spread
from tightrope.privacy.laws.law import Ends, LossLaw
from tightrope.privacy.laws.loss_cells import MOST_LOSS_CELLS, Cells
from tightrope.privacy.laws.normal import not_told, told_apart

REACH = 37.0
"""Standard deviations beyond which the normal law has no double-precision mass with all its digits."""
SUBNORMAL = 2.3e-308
SMALLEST, LARGEST = 1e-300, 1e4
"""Cells are made for μ in between: of smaller ones for this μ, which dominates; of larger ones all is lost."""
HUGE = 1e300
VAST = 2e154
"""From this μ on δ is one, to a rounding, at every ε that is a double: μ²/2 is larger than any."""
WIDEST_CELL = 0.25
"""Cells are no wider than this many standard deviations, so that eight nodes integrate the density to rounding."""
NODES, WEIGHTS = (np.asarray(values, dtype=np.float64) for values in np.polynomial.legendre.leggauss(8))
GIVEN = 8 * ROUND_OFF
"""Relative error of μ, a quotient or the root of a sum of squares, and of what is made of it."""


@dataclass(frozen=True, slots=True)
class GaussianLaw(LossLaw):
    """μ-GDP: K(z) = μ²(z + z²)/2 (theory §3); its own reverse. Any μ ≥ 0; one that has overflowed is ∞."""

    mu: float
    rounding: float = 0.0
    """Relative error of μ beyond ``GIVEN``: it is made of numbers below double precision."""

    @classmethod
    def of(cls, parts: Sequence[tuple[GaussianLaw, int]]) -> Self:
        """Many steps as one, μ = √Σ n μ_i²; in units of the largest, as squares may leave double precision."""
        most = max(law.mu for law, _ in parts)
        squares = math.fsum(n * (law.mu / most) ** 2 for law, n in parts) if 0 < most < math.inf else 1.0
        faint = LEAST_DOUBLE / most if 0 < most < SUBNORMAL else 0.0
        return cls(most * math.sqrt(squares), max(faint, *(law.rounding for law, _ in parts)))

    @property
    def infinite_mass(self) -> float:
        return 1.0 if self.mu >= VAST else 0.0

    @property
    def opposite_mass(self) -> float:
        return self.infinite_mass

    @property
    def infinite_error(self) -> float:
        return 2 * ROUND_OFF if self.mu >= VAST else 0.0

    @property
    def largest(self) -> float:
        return math.inf

    def reverse(self) -> GaussianLaw:
        return self

    @property
    def dies(self) -> bool:
        return True

    def log_moment(self, z: Complexes) -> Complexes:
        return np.asarray(self.mu * self.mu * (z + z * z) / 2)

    def decay(self, c: float, y: float) -> float:
        """|M(c+iy)|/M(c) = e^{−μ²y²/2}, exactly."""
        del c
        return math.exp(-(self.mu * y) * (self.mu * y) / 2)

    def deltas(self, epsilon: Ends) -> Ends:
        """δ(ε) = Φ(−a) − e^ε Φ(−a − μ), a = ε/μ − μ/2: it falls with a, and rises with μ where a is fixed."""
        least, most = around(*told_apart(*self._sides(epsilon)))
        return _beside(least[1], most[0])

    def overlaps(self, epsilon: Ends) -> Ends:
        """1 − δ(ε) = Φ(a) + e^ε Φ(−a − μ) likewise, the other way round."""
        least, most = around(*not_told(*self._sides(epsilon)))
        return _beside(least[0], most[1])

    def _sides(self, epsilon: Ends) -> Ends:
        """Where most is told, and where least: a, shape [2, n], and μ, shape [2, 1], on the side of each.

        A μ that was too small or too large for a double counts as the last that is not.
        """
        mu = min(max(self.mu, LEAST_DOUBLE), HUGE)
        with np.errstate(over="ignore"):
            scaled = np.minimum(np.stack(epsilon) / mu, HUGE)
        sign = np.array([[-1.0], [1.0]])
        error = GIVEN + self.rounding
        return scaled - mu / 2 + sign * error * (scaled + mu), np.maximum(mu - sign * (error * mu + LEAST_DOUBLE), 0.0)

    def profile(self, epsilon: Floats) -> Floats:
        """Mirrored below 0."""
        return np.asarray(middle(by_sign(epsilon, self.deltas, self.deltas)))

    def profile_error(self, epsilon: Floats) -> Floats:
        return spread(by_sign(epsilon, self.deltas, self.deltas), np.shape(epsilon))

    @property
    def _kept(self) -> tuple[float, float]:
        """Where the cells are: as far as ``REACH`` around the mean under P."""
        mu = max(self.mu, SMALLEST)
        return mu * (mu / 2 - REACH), mu * (mu / 2 + REACH)

    def cells(self, step: float) -> Cells:
        """Intervals of loss between multiples of the step, or of several steps where those were too many."""
        return self.between(step, -math.inf, math.inf)

    def between(self, step: float, low: float, high: float) -> Cells:
        first, last = self._kept
        if not (math.isfinite(step) and self.mu <= LARGEST):
            return self.cut(np.zeros(1))
        first, last = max(first, low), min(last, high)
        step *= max(1, math.ceil((last - first) / step / MOST_LOSS_CELLS))
        return self.cut(np.asarray(step * np.arange(math.ceil(first / step), math.floor(last / step) + 1)))

    def cut(self, edges: Floats) -> Cells:
        """Masses by quadrature of positive terms on each cell; none is wider than ``WIDEST_CELL`` allows.

        What lies outside counts as lost under P and under Q: as outcomes that only one of them gives, which dominates.
        Of a large μ that is most of Q, whose masses under P are no doubles.
        """
        if not self.mu <= LARGEST:
            return Cells.atoms(np.zeros(1), np.zeros(1), 1.0, 1.0)
        mu, (first, last) = max(self.mu, SMALLEST), self._kept
        close = np.linspace(first, last, math.ceil(2 * REACH / WIDEST_CELL) + 1)
        edges = np.unique(np.concatenate([close, edges[(edges > first) & (edges < last)]]))
        width, x = np.diff(edges), edges[:-1] / mu - mu / 2
        low, high = np.zeros_like(width), np.zeros_like(width)
        for node, weight in zip(NODES, WEIGHTS, strict=True):
            inside = width * (1 + node) / 2
            mass = weight / 2 * np.exp(-((x + inside / mu) ** 2) / 2) * (width / mu) / math.sqrt(2 * math.pi)
            share = np.expm1(-inside) / np.expm1(-width)
            low += mass * (1 - share)
            high += mass * share
        lost, absent = (float(special.ndtr(mean - REACH) + special.ndtr(-REACH - mean)) for mean in (0.0, mu))
        return Cells(edges[:-1], edges[1:], low, high, lost, absent)


def _beside(low: Floats, high: Floats) -> Ends:
    """Less and more by what underflow may have taken; nothing is exactly zero."""
    return np.maximum(low - 4 * LEAST_DOUBLE, 0.0), np.minimum(high + 4 * LEAST_DOUBLE, 1.0)
