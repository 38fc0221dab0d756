"""Discrete Gaussian noise: best for many compositions of large guarantees."""

from __future__ import annotations

from dataclasses import dataclass

from tightrope.mechanisms.integer.integer_mechanism import IntegerMechanism
from tightrope.mechanisms.integer.large_gaussian import LargeGaussian
from tightrope.mechanisms.tables.integer_tables import LARGEST_GAUSSIAN, gaussian_table
from tightrope.mechanisms.tables.table import NoiseTable
from tightrope.numerics.checks import positive, whole


@dataclass(frozen=True, slots=True)
class DiscreteGaussian(IntegerMechanism):
    """P(X = x) ∝ e^{−x²/(2 scale²)} for the integers whose probability reaches 2⁻¹²⁸."""

    scale: float
    sensitivity: int
    table: NoiseTable


def discrete_gaussian(*, scale: float, sensitivity: int = 1) -> DiscreteGaussian | LargeGaussian:
    """Discrete Gaussian noise: up to scale 10⁵ from a table of 2¹²⁸ parts, beyond it by exact rejection.

    The table ends where a cell would hold less than 2⁻¹²⁸ (about 13.3 scales); what that costs – an infinite loss with
    probability near sensitivity · 10⁻³⁸ – is part of ``.loss``. Larger scales have no end and no such loss
    (:class:`LargeGaussian`). Raises ``InputError`` unless 0.1 ≤ scale ≤ 10⁹ and sensitivity is a whole number ≥ 1.

    >>> noise = discrete_gaussian(scale=3)
    >>> round(noise.mean_squared_error, 9), noise.half_width(0.95), noise.worst_error
    (9.0, 6, 39.0)
    >>> discrete_gaussian(scale=1e9).half_width(0.95)
    1959963985
    """
    if positive("scale", scale) > LARGEST_GAUSSIAN:
        return LargeGaussian.of(scale, sensitivity)
    return tabulated_gaussian(scale=scale, sensitivity=sensitivity)


def tabulated_gaussian(*, scale: float, sensitivity: int = 1) -> DiscreteGaussian:
    """``discrete_gaussian`` from a table, or ``InputError`` where the scale is above 10⁵.

    >>> tabulated_gaussian(scale=3).table
    NoiseTable(39 cells a side, no tail)
    """
    sensitivity = whole("sensitivity", sensitivity, remedy="round the answers to fixed point first")
    return DiscreteGaussian(float(scale), sensitivity, gaussian_table(scale))
