"""Laplace noise cut off at ±A: every answer is within A of the truth, with certainty (GDGK)."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from scipy import special

from tightrope.errors import InputError
from tightrope.mechanisms.continuous.continuous import Continuous
from tightrope.mechanisms.continuous.laplace_law import LaplaceLaw
from tightrope.mechanisms.continuous.noise_ratio import not_faint
from tightrope.numerics.checks import inner_probability, non_negative, positive
from tightrope.privacy.laws.atoms import Atoms
from tightrope.privacy.loss import PrivacyLoss

FLAT = 1e-60
"""Below this the law is uniform to all digits, and powers of a leave double precision."""


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
            law = Atoms(np.zeros(1), np.array([1 - self.delta]), self.delta, self.delta)
            return PrivacyLoss.of(law, reverse=law)
        return PrivacyLoss.of(LaplaceLaw(self.epsilon, self.delta))

    @property
    def _end(self) -> float:
        """A = log(1 + (e^ε − 1)/(2δ)): the end A in units of Δ/ε."""
        log_growth = self.epsilon + math.log(-math.expm1(-self.epsilon))
        return float(np.logaddexp(0.0, log_growth - math.log(2 * self.delta)))

    @property
    def worst_error(self) -> float:
        """A."""
        if self.epsilon == 0:
            return self.sensitivity / (2 * self.delta)
        return self.sensitivity / self.epsilon * self._end

    def _part(self, power: int) -> float:
        """E|X|^p / A^p = p! γ(p + 1, a) / (a^p γ(1, a)) with normalised incomplete gammas; 1/(p + 1) at a = 0."""
        a = self._end if self.epsilon > 0 else 0.0
        if a < FLAT:
            return 1 / (power + 1)
        return float(math.factorial(power) * special.gammainc(power + 1, a) / special.gammainc(1, a) / a**power)

    @property
    def mean_absolute_error(self) -> float:
        """V1ᵘ = (Δ/ε)(1 − log(1+r)/r), r = (e^ε − 1)/(2δ), without its cancellation."""
        return self.worst_error * self._part(1)

    @property
    def mean_squared_error(self) -> float:
        """V2ᵘ = (2Δ²/ε²)(1 − (½log²(1+r) + log(1+r))/r), likewise."""
        return self.worst_error * self.worst_error * self._part(2)

    def _upper_quantile(self, tail: float) -> float:
        if self.epsilon == 0:
            return self.worst_error * (1 - 2 * tail)
        below = 2 * tail * -math.expm1(-self._end) + math.exp(-self._end)
        return -math.log(below) * (self.sensitivity / self.epsilon)


def truncated_laplace(*, epsilon: float, delta: float, sensitivity: float = 1.0) -> TruncatedLaplace:
    """Truncated Laplace noise, (ε, δ)-private and never more than A from the truth (GDGK; theory §4).

    For accounting: ``sample`` raises and names ``discrete_truncated_laplace``. Raises ``InputError`` unless ε ≥ 0
    (not between 0 and 10⁻³⁰⁰), 0 < δ ≤ ½ (the law is private only then) and the sensitivity is positive.

    >>> law = truncated_laplace(epsilon=1, delta=1e-6)
    >>> round(law.worst_error, 2), round(law.loss.delta(1), 12)
    (13.66, 1e-06)
    """
    epsilon, delta = not_faint(non_negative("epsilon", epsilon)), inner_probability("delta", delta)
    if not delta <= 0.5:
        raise InputError(
            "delta", delta, "at most 1/2", "beyond that, release nothing with probability 1 - delta instead"
        )
    return TruncatedLaplace(epsilon, delta, positive("sensitivity", sensitivity))
