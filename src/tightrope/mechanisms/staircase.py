"""Staircase noise on the real line: the least error of pure ε-privacy."""

from __future__ import annotations

import math
from dataclasses import dataclass

from tightrope.mechanisms.continuous import Continuous
from tightrope.mechanisms.pairs import approx_dp
from tightrope.numerics.checks import positive, probability
from tightrope.privacy.loss import PrivacyLoss


@dataclass(frozen=True, slots=True)
class Staircase(Continuous):
    """Density a on [0, γΔ), e^{−ε}a on [γΔ, Δ), times e^{−ε} per further Δ (theory §4)."""

    epsilon: float
    sensitivity: float
    gamma: float
    twin = "discrete_staircase"

    @property
    def height(self) -> float:
        """A = (1 − e^{−ε}) / (2Δ(γ + e^{−ε}(1−γ)))."""
        down = math.exp(-self.epsilon)
        return -math.expm1(-self.epsilon) / (2 * self.sensitivity * (self.gamma + down * (1 - self.gamma)))

    @property
    def total_variation(self) -> float:
        """η of a shift by Δ: P(|X| ≤ Δ/2)."""
        down, gamma = math.exp(-self.epsilon), self.gamma
        if gamma >= 0.5:
            return self.height * self.sensitivity
        return -math.expm1(-self.epsilon) * (2 * gamma * (1 - down) + down) / (2 * (gamma + down * (1 - gamma)))

    @property
    def loss(self) -> PrivacyLoss:
        """Exactly the region of the triple (ε, 0, η); dominates all shifts up to the sensitivity."""
        return approx_dp(self.epsilon, total_variation=self.total_variation).loss

    def _moment(self, power: int) -> float:
        """E|X|^p, p ≤ 2: the integrals over the k-th high and low step are polynomials in k, summed with b^k."""
        b, g = math.exp(-self.epsilon), self.gamma
        sums = (1 / (1 - b), b / (1 - b) ** 2, b * (1 + b) / (1 - b) ** 3)
        high = (g**2 / 2, g, 0.0) if power == 1 else (g**3 / 3, g**2, g)
        full = (0.5, 1.0, 0.0) if power == 1 else (1 / 3, 1.0, 1.0)
        terms = (s * (h + b * (f - h)) for s, h, f in zip(sums, high, full, strict=True))
        return 2 * self.height * self.sensitivity ** (power + 1) * math.fsum(terms)

    @property
    def mean_absolute_error(self) -> float:
        return self._moment(1)

    @property
    def mean_squared_error(self) -> float:
        return self._moment(2)

    @property
    def worst_error(self) -> float:
        return math.inf

    def _upper_quantile(self, tail: float) -> float:
        """Whole steps first (each holds the factor e^{−ε} of the tail), then the high or low part of one."""
        whole = max(0, math.floor(-math.log(2 * tail) / self.epsilon))
        left = math.exp(-self.epsilon * whole) / 2 - tail
        density = self.height * math.exp(-self.epsilon * whole)
        high = density * self.gamma * self.sensitivity
        if left <= high:
            return whole * self.sensitivity + left / density
        return (whole + self.gamma) * self.sensitivity + (left - high) / (density * math.exp(-self.epsilon))


def staircase(*, epsilon: float, sensitivity: float = 1.0, gamma: float | None = None) -> Staircase:
    """Staircase noise, (ε, 0)-private; γ defaults to 1/(1 + e^{ε/2}), which minimises E|X| (theory §4).

    For accounting: ``sample`` raises and names ``discrete_staircase``. Raises ``InputError`` unless ε and the
    sensitivity are positive and 0 ≤ γ ≤ 1.

    >>> round(staircase(epsilon=1).mean_absolute_error, 9)
    0.959517376
    """
    epsilon = positive("epsilon", epsilon)
    best = 1 / (1 + math.exp(epsilon / 2)) if epsilon < 1400 else 0.0
    chosen = best if gamma is None else probability("gamma", gamma)
    return Staircase(epsilon, positive("sensitivity", sensitivity), chosen)
