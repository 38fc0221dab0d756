"""How large the loss of Gaussian noise is that just keeps a point (ε, δ): the size of other losses that do, roughly."""

from __future__ import annotations

import math

from scipy import optimize
from scipy.special import log_ndtr, ndtri

LOG_OF_ZERO = -30.0
"""Stands for the log of 0."""
LOG_MU = (-30.0, 6.0)
"""Between these ends μ is sought."""
LEFT_OF_DELTA = 1e-3
"""This part of δ is the chance that the loss lies beyond its reach."""


def gaussian_mu(epsilon: float, delta: float) -> float:
    """μ of G_μ with δ(ε) = Φ(−ε/μ + μ/2) − e^ε Φ(−ε/μ − μ/2) = δ (theory §2), to nine digits; 0 < δ < 1.

    >>> round(gaussian_mu(1.0, 1e-5), 6)
    0.268051
    """

    def above(log_mu: float) -> float:
        mu = math.exp(log_mu)
        first, second = log_ndtr(-epsilon / mu + mu / 2), epsilon + log_ndtr(-epsilon / mu - mu / 2)
        gap = -math.expm1(min(float(second - first), 0.0))
        return float(first) + (math.log(gap) if gap > 0 else LOG_OF_ZERO) - math.log(delta)

    least, most = LOG_MU
    if above(least) >= 0:
        return math.exp(least)
    return math.exp(most if above(most) <= 0 else float(optimize.brentq(above, least, most, xtol=1e-9)))


def gaussian_reach(epsilon: float, delta: float) -> float:
    """The loss, N(μ²/2, μ²), that this noise exceeds with a thousandth of δ: what lies beyond hardly adds to δ(ε).

    Beside a δ that is small it is near ε; where δ is not, many times ε.

    >>> round(gaussian_reach(1.0, 1e-5), 2), round(gaussian_reach(0.001, 0.01), 3)
    (1.54, 0.112)
    """
    mu = gaussian_mu(epsilon, delta)
    return mu * mu / 2 - mu * float(ndtri(LEFT_OF_DELTA * delta))
