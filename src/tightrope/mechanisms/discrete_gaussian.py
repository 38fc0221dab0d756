"""Discrete Gaussian noise: best for many compositions of large guarantees."""

from __future__ import annotations

from dataclasses import dataclass

from tightrope.mechanisms.integer_mechanism import IntegerMechanism
from tightrope.mechanisms.integer_tables import gaussian_table
from tightrope.mechanisms.table import NoiseTable
from tightrope.numerics.checks import whole


@dataclass(frozen=True, slots=True)
class DiscreteGaussian(IntegerMechanism):
    """P(X = x) ∝ e^{−x²/(2 scale²)} for the integers whose probability reaches 2⁻¹²⁸."""

    scale: float
    sensitivity: int
    table: NoiseTable


def discrete_gaussian(*, scale: float, sensitivity: int = 1) -> DiscreteGaussian:
    """Discrete Gaussian noise, from a table of 2¹²⁸ parts.

    Where a cell would hold less than 2⁻¹²⁸ (beyond about 13.3 scales) the table ends; what that costs – an infinite
    loss with probability near sensitivity · 10⁻³⁸ – is part of ``.loss``. Raises ``InputError`` unless
    0.1 ≤ scale ≤ 10⁵ and sensitivity is a whole number ≥ 1.

    >>> noise = discrete_gaussian(scale=3)
    >>> round(noise.mean_squared_error, 9), noise.half_width(0.95), noise.worst_error
    (9.0, 6, 39.0)
    """
    sensitivity = whole("sensitivity", sensitivity, remedy="round the answers to fixed point first")
    table = gaussian_table(scale)
    return DiscreteGaussian(float(scale), sensitivity, table)
