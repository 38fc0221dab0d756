"""Laplace noise on the real line."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction

from tightrope.mechanisms.continuous.continuous import Continuous
from tightrope.mechanisms.continuous.laplace_law import LaplaceLaw
from tightrope.mechanisms.continuous.noise_ratio import checked, disclosed, ratio
from tightrope.privacy.loss import PrivacyLoss


@dataclass(frozen=True, slots=True)
class Laplace(Continuous):
    """Density e^{−|x|/scale}/(2·scale): ε = sensitivity/scale, δ = 0."""

    scale: float
    sensitivity: float
    twin = "discrete_laplace"

    @property
    def loss(self) -> PrivacyLoss:
        """Dominates all shifts up to the sensitivity. An infinite loss where there is no noise."""
        epsilon = ratio(self.scale, self.sensitivity)
        if math.isinf(epsilon):
            return disclosed(self.scale)
        exact = Fraction(self.sensitivity) / Fraction(self.scale) == Fraction(epsilon)
        return PrivacyLoss.of(LaplaceLaw(epsilon, rounding=0.0 if exact else 2.0**-53))

    @property
    def mean_absolute_error(self) -> float:
        return self.scale

    @property
    def mean_squared_error(self) -> float:
        return 2 * self.scale * self.scale

    @property
    def worst_error(self) -> float:
        return math.inf if self.scale > 0 else 0.0

    def _upper_quantile(self, tail: float) -> float:
        return -self.scale * math.log(2 * tail)


def laplace(*, scale: float, sensitivity: float = 1.0) -> Laplace:
    """Laplace noise of mean absolute error ``scale``: (sensitivity/scale, 0)-private, η = 1 − e^{−ε/2} (theory §4).

    For accounting: ``sample`` raises and names ``discrete_laplace``. Without noise (``scale=0``) the loss is infinite:
    δ = 1 at every ε. Raises ``InputError`` unless the scale is finite and not negative, the sensitivity finite and
    positive, the scale at most 10³⁰⁰ times as large.

    >>> round(laplace(scale=1).loss.total_variation(), 12)
    0.393469340287
    """
    return Laplace(*checked(scale, sensitivity))
