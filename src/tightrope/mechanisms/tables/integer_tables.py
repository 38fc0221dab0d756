"""Tables of the classic integer laws; planners build mechanisms from them."""

from __future__ import annotations

import math
from fractions import Fraction

from tightrope.errors import InputError
from tightrope.mechanisms.tables.integer_weights import (
    DIGITS,
    LARGEST_SCALE,
    LARGEST_STEP,
    ONE,
    Plateaus,
    exponential,
    powers,
)
from tightrope.mechanisms.tables.table import NoiseTable, tabulate
from tightrope.numerics.checks import positive, whole
from tightrope.randomness.choice import BITS

PRIVATE_SIDE = 1 - 2.0**-48
"""Laws that are asked for by ε are built for this much of it: the certified ε, rounding included, stays below."""

LARGEST_GAUSSIAN = 1e5
SMALLEST_GAUSSIAN = 0.1
MOST_TABLE_CELLS = 1 << 21
COARSER = "measure in coarser units, or widen a smaller table (mechanisms.integer.widened)"


def geometric_table(scale: float) -> NoiseTable:
    """p_x ∝ e^{−|x|/scale} on all integers: the discrete Laplace law, with an exact geometric tail.

    The scale that runs is scale / (1 − 2⁻⁴⁸). Raises ``InputError`` unless 1/40 ≤ scale ≤ 10⁶.

    >>> round(geometric_table(2.0).mean_absolute, 12) == round(1 / math.sinh(0.5), 12)
    True
    """
    scale = scale_between(scale, 1 / LARGEST_STEP, LARGEST_SCALE)
    return staircase_table(1 / scale, 1)


def staircase_table(epsilon: float, period: int, high: int = 1) -> NoiseTable:
    """Weights e^{−iε} on plateaus: |x| < high at i = 0, then ``period`` cells a plateau; 1 ≤ high ≤ period.

    Pure ε-DP for shifts up to ``period``, with ε (1 − 2⁻⁴⁸) inside and an exact tail; ε above 40 is taken as 40.
    """
    step = min(positive("epsilon", epsilon), LARGEST_STEP) * PRIVATE_SIDE
    period = whole("sensitivity", period)
    if not period / step <= 2 * LARGEST_SCALE:
        raise InputError("epsilon", epsilon, f"at least sensitivity / {LARGEST_SCALE:g}", COARSER)
    ratio = exponential(Fraction(step))
    return tabulate([ONE] * whole("high", high), Plateaus(ratio, ratio, period), (step,))


def truncated_geometric(*, scale: float, largest: int) -> NoiseTable:
    """p_x ∝ e^{−|x|/scale} for |x| ≤ largest, else 0; cells below 2⁻¹²⁸ are empty."""
    scale = scale_between(scale, 1 / LARGEST_STEP, LARGEST_SCALE)
    largest = whole("largest", largest, at_least=0)
    if not largest < MOST_TABLE_CELLS:
        raise InputError("largest", largest, f"below {MOST_TABLE_CELLS}", COARSER)
    step = PRIVATE_SIDE / scale
    cells = min(largest, math.ceil(BITS * math.log(2) * scale))
    return tabulate(powers(exponential(Fraction(step)), cells + 1), steps=(step,))


def gaussian_table(scale: float) -> NoiseTable:
    """p_x ∝ e^{−x²/(2 scale²)} as far as cells hold 2⁻¹²⁸: the missing rest is mass at infinite loss, and is certified.

    Successive weights by w_{x+1} = w_x t_x, t_{x+1} = t_x q with q = e^{−1/scale²}, in fixed point.
    Raises ``InputError`` unless 0.1 ≤ scale ≤ 10⁵.
    """
    scale = scale_between(scale, SMALLEST_GAUSSIAN, LARGEST_GAUSSIAN)
    half_precision = 1 / (2 * Fraction(scale) ** 2)
    ratio, factor = exponential(half_precision), exponential(2 * half_precision)
    raw = [ONE]
    while raw[-1] >> (DIGITS - BITS):  # at least 2^{-128} of the weight of 0
        raw.append(raw[-1] * ratio >> DIGITS)
        ratio = ratio * factor >> DIGITS
    return tabulate(raw, steps=(1 / (2 * scale * scale),))


def scale_between(scale: object, low: float, high: float) -> float:
    """A positive scale in [low, high]; raises ``InputError`` with what to do instead."""
    number = positive("scale", scale, "the scale is the size of the noise in units of the answer")
    if not number >= low:
        raise InputError("scale", scale, f"at least {low:g}", "smaller noise protects nobody: ask for more")
    if not number <= high:
        raise InputError("scale", scale, f"at most {high:g}", COARSER)
    return number
