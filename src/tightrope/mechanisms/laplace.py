"""Laplace noise on the real line."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction

from tightrope.mechanisms.continuous import Continuous
from tightrope.mechanisms.laplace_law import LaplaceLaw
from tightrope.numerics.checks import positive
from tightrope.privacy.loss import PrivacyLoss


@dataclass(frozen=True, slots=True)
class Laplace(Continuous):
    """Density e^{−|x|/scale}/(2·scale): ε = sensitivity/scale, δ = 0."""

    scale: float
    sensitivity: float
    twin = "discrete_laplace"

    @property
    def loss(self) -> PrivacyLoss:
        """Dominates all shifts up to the sensitivity."""
        epsilon = self.sensitivity / self.scale
        exact = Fraction(self.sensitivity) / Fraction(self.scale) == Fraction(epsilon)
        return PrivacyLoss.of(LaplaceLaw(epsilon, rounding=0.0 if exact else 2.0**-53))

    @property
    def mean_absolute_error(self) -> float:
        return self.scale

    @property
    def mean_squared_error(self) -> float:
        return 2 * self.scale**2

    @property
    def worst_error(self) -> float:
        return math.inf

    def _upper_quantile(self, tail: float) -> float:
        return -self.scale * math.log(2 * tail)


def laplace(*, scale: float, sensitivity: float = 1.0) -> Laplace:
    """Laplace noise of mean absolute error ``scale``: (sensitivity/scale, 0)-private, η = 1 − e^{−ε/2} (theory §4).

    For accounting: ``sample`` raises and names ``discrete_laplace``. Raises ``InputError`` unless both arguments are
    finite and positive.

    >>> round(laplace(scale=1).loss.total_variation(), 12)
    0.393469340287
    """
    return Laplace(positive("scale", scale), positive("sensitivity", sensitivity))
