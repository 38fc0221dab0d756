"""Laplace noise cut off at ±A: every answer is within A of the truth, with certainty (GDGK)."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from tightrope.errors import InputError
from tightrope.mechanisms.continuous import Continuous
from tightrope.mechanisms.laplace_law import LaplaceLaw
from tightrope.numerics.checks import inner_probability, non_negative, positive
from tightrope.privacy.atoms import Atoms
from tightrope.privacy.loss import PrivacyLoss


@dataclass(frozen=True, slots=True)
class TruncatedLaplace(Continuous):
    """Density proportional to e^{−|x|ε/Δ} on [−A, A], A = (Δ/ε) log(1 + (e^ε−1)/(2δ)); uniform at ε = 0."""

    epsilon: float
    delta: float
    sensitivity: float
    twin = "discrete_truncated_laplace"

    @property
    def loss(self) -> PrivacyLoss:
        """Dominates all shifts up to the sensitivity."""
        if self.epsilon == 0:
            return PrivacyLoss.of(Atoms(np.zeros(1), np.array([1 - self.delta]), self.delta, self.delta))
        return PrivacyLoss.of(LaplaceLaw(self.epsilon, self.delta))

    @property
    def _ratio(self) -> float:
        """R = (e^ε − 1)/(2δ)."""
        return math.expm1(self.epsilon) / (2 * self.delta)

    @property
    def worst_error(self) -> float:
        """A."""
        if self.epsilon == 0:
            return self.sensitivity / (2 * self.delta)
        return self.sensitivity / self.epsilon * math.log1p(self._ratio)

    @property
    def mean_absolute_error(self) -> float:
        """V1ᵘ = (Δ/ε)(1 − log(1+r)/r)."""
        if self.epsilon == 0:
            return self.worst_error / 2
        return self.sensitivity / self.epsilon * (1 - math.log1p(self._ratio) / self._ratio)

    @property
    def mean_squared_error(self) -> float:
        """V2ᵘ = (2Δ²/ε²)(1 − (½log²(1+r) + log(1+r))/r)."""
        if self.epsilon == 0:
            return self.worst_error**2 / 3
        log = math.log1p(self._ratio)
        return 2 * (self.sensitivity / self.epsilon) ** 2 * (1 - (log**2 / 2 + log) / self._ratio)

    def _upper_quantile(self, tail: float) -> float:
        if self.epsilon == 0:
            return self.worst_error * (1 - 2 * tail)
        rate = self.epsilon / self.sensitivity
        end = math.exp(-rate * self.worst_error)
        return -math.log(2 * tail * (1 - end) + end) / rate


def truncated_laplace(*, epsilon: float, delta: float, sensitivity: float = 1.0) -> TruncatedLaplace:
    """Truncated Laplace noise, (ε, δ)-private and never more than A from the truth (GDGK; theory §4).

    For accounting: ``sample`` raises and names ``discrete_truncated_laplace``. Raises ``InputError`` unless ε ≥ 0,
    0 < δ ≤ ½ (the law is private only then) and the sensitivity is positive.

    >>> law = truncated_laplace(epsilon=1, delta=1e-6)
    >>> round(law.worst_error, 2), round(law.loss.delta(1), 12)
    (13.66, 1e-06)
    """
    epsilon, delta = non_negative("epsilon", epsilon), inner_probability("delta", delta)
    if not epsilon <= 600:
        raise InputError("epsilon", epsilon, "at most 600", "that much loss protects nobody")
    if not delta <= 0.5:
        raise InputError(
            "delta", delta, "at most 1/2", "beyond that, release nothing with probability 1 - delta instead"
        )
    return TruncatedLaplace(epsilon, delta, positive("sensitivity", sensitivity))
