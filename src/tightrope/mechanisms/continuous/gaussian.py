"""Gaussian noise on the real line."""

from __future__ import annotations

import math
from dataclasses import dataclass

from scipy import special

from tightrope.mechanisms.continuous.continuous import Continuous
from tightrope.mechanisms.continuous.noise_ratio import checked, disclosed, ratio
from tightrope.privacy.laws.gaussian import GaussianLaw
from tightrope.privacy.loss import PrivacyLoss


@dataclass(frozen=True, slots=True)
class Gaussian(Continuous):
    """N(0, scale²) for a query of the given sensitivity: (sensitivity/scale)-GDP."""

    scale: float
    sensitivity: float
    twin = "discrete_gaussian"

    @property
    def loss(self) -> PrivacyLoss:
        """G_μ with μ = sensitivity/scale; smaller shifts are dominated. An infinite loss where there is no noise."""
        mu = ratio(self.scale, self.sensitivity)
        return PrivacyLoss.of(GaussianLaw(mu)) if math.isfinite(mu) else disclosed(self.scale)

    @property
    def mean_absolute_error(self) -> float:
        return self.scale * math.sqrt(2 / math.pi)

    @property
    def mean_squared_error(self) -> float:
        return self.scale * self.scale

    @property
    def worst_error(self) -> float:
        return math.inf if self.scale > 0 else 0.0

    def _upper_quantile(self, tail: float) -> float:
        return -self.scale * float(special.ndtri(tail))


def gaussian(*, scale: float, sensitivity: float = 1.0) -> Gaussian:
    """Gaussian noise of standard deviation ``scale``: δ(ε) = Φ(−ε/μ+μ/2) − e^ε Φ(−ε/μ−μ/2), μ = sensitivity/scale.

    For accounting: it has a loss and errors; ``sample`` raises and names ``discrete_gaussian``. Without noise
    (``scale=0``) the loss is infinite: δ = 1 at every ε. Raises ``InputError`` unless the scale is finite and not
    negative, the sensitivity finite and positive, the scale at most 10³⁰⁰ times as large.

    >>> round(gaussian(scale=1).loss.delta(1), 12)
    0.126936737507
    """
    return Gaussian(*checked(scale, sensitivity))
