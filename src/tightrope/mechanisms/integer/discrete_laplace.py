"""Discrete Laplace noise: pure ε-DP on the integers."""

from __future__ import annotations

from dataclasses import dataclass

from tightrope.mechanisms.integer.integer_mechanism import IntegerMechanism
from tightrope.mechanisms.tables.integer_tables import geometric_table
from tightrope.mechanisms.tables.table import NoiseTable
from tightrope.numerics.checks import whole


@dataclass(frozen=True, slots=True)
class DiscreteLaplace(IntegerMechanism):
    """P(X = x) ∝ e^{−|x|/scale} on all integers; ε = sensitivity / scale, δ = 0."""

    scale: float
    sensitivity: int
    table: NoiseTable


def discrete_laplace(*, scale: float, sensitivity: int = 1) -> DiscreteLaplace:
    """Discrete Laplace (two-sided geometric) noise: E|X| = 1/sinh(1/scale), E X² = ½/sinh²(1/(2 scale)).

    Its tail is exact, so δ = 0; the scale that runs is larger by 2⁻⁴⁸, so that the certified ε, rounding included, is
    at most sensitivity / scale. Raises ``InputError`` unless 1/40 ≤ scale ≤ 10⁶ and sensitivity is a whole number ≥ 1.

    >>> noise = discrete_laplace(scale=2)
    >>> round(noise.mean_squared_error, 6), round(noise.loss.delta(0.5), 15), noise.half_width(0.95)
    (7.835396, 0.0, 6)
    """
    sensitivity = whole("sensitivity", sensitivity, remedy="round the answers to fixed point first")
    table = geometric_table(scale)
    return DiscreteLaplace(float(scale), sensitivity, table)
