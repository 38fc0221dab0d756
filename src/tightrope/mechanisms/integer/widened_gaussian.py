"""Gaussian-like noise of any scale, from a small table: the fastest exact integer noise."""

from __future__ import annotations

import math

from tightrope.errors import InputError
from tightrope.mechanisms.integer.widened import LARGEST_FACTOR, Widened
from tightrope.mechanisms.tables.integer_tables import gaussian_table
from tightrope.numerics.checks import positive, whole

FEWEST_STEPS = 256
"""The table's scale is 256 to 512 steps: straight lines between them cost at most 2.6e−6 of the variance."""


def widened_gaussian(*, scale: float, sensitivity: int = 1) -> Widened:
    """X = 2^s Y + U₁ − U₂ with Y from a Gaussian table of some thousand cells; E X² = scale² to 1e−12 of it.

    Not the discrete Gaussian (``discrete_gaussian``): its law is linear between multiples of 2^s. It is certified as
    the law that it is, and costs what a Gaussian of a scale smaller by a millionth costs, or two where ``sensitivity``
    is no multiple of 2^s. Raises ``InputError`` unless 512 ≤ scale ≤ 2⁴⁸ and sensitivity is a whole number ≥ 1.

    >>> noise = widened_gaussian(scale=1e9, sensitivity=10**9)
    >>> noise.factor, round(noise.mean_squared_error / 1e18, 9)
    (2097152, 1.0)
    """
    scale = positive("scale", scale, "the scale is the size of the noise in units of the answer")
    sensitivity = whole("sensitivity", sensitivity, remedy="round the answers to fixed point first")
    if not scale >= 2 * FEWEST_STEPS:
        raise InputError(
            "scale", scale, f"at least {2 * FEWEST_STEPS}", "smaller noise needs no widening: discrete_gaussian"
        )
    if not scale <= LARGEST_FACTOR * FEWEST_STEPS:
        raise InputError("scale", scale, "at most 2^48", "measure in coarser units")
    factor = 1 << (int(scale) // FEWEST_STEPS).bit_length() - 1
    steps = scale / factor
    return Widened(gaussian_table(math.sqrt(steps * steps - (1 - 1 / factor**2) / 6)), factor, sensitivity)
