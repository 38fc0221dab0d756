"""Gaussian noise on the real line."""

from __future__ import annotations

import math
from dataclasses import dataclass

from scipy import special

from tightrope.accounting.bounds import TrueValueOf
from tightrope.accounting.distributions.gaussian import GaussianLossDistribution
from tightrope.accounting.privacy_loss import PrivacyLoss
from tightrope.mechanisms.discrete.gaussian_sampling import LargeGaussian
from tightrope.mechanisms.discrete.integer_mechanism import IntegerMechanism
from tightrope.mechanisms.discrete.integer_tables import LARGEST_GAUSSIAN, gaussian_table
from tightrope.mechanisms.discrete.noise_table import NoiseTable
from tightrope.mechanisms.mechanism import (
    ContinuousMechanism,
    check_noise_size,
    full_disclosure_loss,
    sensitivity_ratio,
)
from tightrope.numerics.checks import check_integer, check_positive


@dataclass(frozen=True, slots=True)
class Gaussian(ContinuousMechanism):
    """N(0, scale²) for a query of the given sensitivity: (sensitivity/scale)-GDP."""

    scale: float
    sensitivity: float
    integer_counterpart = "discrete_gaussian"

    @property
    def loss(self) -> PrivacyLoss:
        """G_μ with μ = sensitivity/scale; smaller shifts are dominated. Infinite if scale = 0."""
        mu = sensitivity_ratio(self.scale, self.sensitivity)
        return (
            PrivacyLoss.from_distribution(GaussianLossDistribution(mu), true_value_of=TrueValueOf.MECHANISMS)
            if math.isfinite(mu)
            else full_disclosure_loss(self.scale)
        )

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
    """Return Gaussian noise of scale ``scale``: δ(ε) = Φ(−ε/μ+μ/2) − e^ε Φ(−ε/μ−μ/2), μ = sensitivity/scale.

    For accounting: it has a loss and errors; ``sample`` raises and names ``discrete_gaussian``. Without noise
    (``scale=0``) the loss is infinite: δ = 1 at every ε. Raises ``InputError`` unless the scale is finite and not
    negative, the sensitivity finite and positive, the scale at most 10³⁰⁰ times as large.

    >>> round(gaussian(scale=1).loss.delta(1), 12)
    0.126936737507
    """
    return Gaussian(*check_noise_size(scale, sensitivity))


# Discrete Gaussian noise: best for many compositions of large guarantees.


@dataclass(frozen=True, slots=True)
class DiscreteGaussian(IntegerMechanism):
    """P(X = x) ∝ e^{−x²/(2 scale²)} for the integers whose probability reaches 2⁻¹²⁸."""

    scale: float
    sensitivity: int
    table: NoiseTable


def discrete_gaussian(*, scale: float, sensitivity: int = 1) -> DiscreteGaussian | LargeGaussian:
    """Return discrete Gaussian noise: up to scale 10⁵ from a table of 2¹²⁸ parts, beyond it by exact rejection.

    The table ends where a cell would hold less than 2⁻¹²⁸ (about 13.3 scales); the cost of this – an infinite loss with
    probability near sensitivity · 10⁻³⁸ – is part of ``.loss``. Larger scales are unbounded without such a loss
    (:class:`LargeGaussian`). Raises ``InputError`` unless 0.1 ≤ scale ≤ 10⁹ and sensitivity is an integer ≥ 1.

    >>> noise = discrete_gaussian(scale=3)
    >>> round(noise.mean_squared_error, 9), noise.half_width(0.95), noise.worst_error
    (9.0, 6, 39.0)
    >>> discrete_gaussian(scale=1e9).half_width(0.95)
    1959963985
    """
    if check_positive("scale", scale) > LARGEST_GAUSSIAN:
        return LargeGaussian.from_scale(scale, sensitivity)
    return tabulated_gaussian(scale=scale, sensitivity=sensitivity)


def tabulated_gaussian(*, scale: float, sensitivity: int = 1) -> DiscreteGaussian:
    """Return ``discrete_gaussian`` from a table; raises ``InputError`` if the scale is above 10⁵.

    >>> tabulated_gaussian(scale=3).table
    NoiseTable(39 cells a side, no tail)
    """
    sensitivity = check_integer("sensitivity", sensitivity, remedy="round the answers to fixed point first")
    return DiscreteGaussian(float(scale), sensitivity, gaussian_table(scale))
