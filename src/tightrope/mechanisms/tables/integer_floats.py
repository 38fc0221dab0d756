"""Whole weights from probabilities that somebody computed in floats: the floats are taken as exact."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike

from tightrope.errors import InputError
from tightrope.mechanisms.tables.integer_weights import (
    DIGITS,
    LARGEST_SCALE,
    LARGEST_STEP,
    ONE,
    Plateaus,
    Weighed,
    weighed,
)
from tightrope.numerics.checks import inner_probability, whole


def weighed_floats(half: ArrayLike, tail_ratio: float | None, tail_width: int, steps: tuple[float, ...]) -> Weighed:
    """See ``NoiseTable.from_probabilities``."""
    raw = raw_weights(half)
    return weighed(raw, None if tail_ratio is None else _plateaus(raw[-1], tail_ratio, tail_width), steps)


def raw_weights(half: ArrayLike) -> list[int]:
    """Floats >= 0 as whole numbers on a common scale; what is below it is cut off."""
    values = np.asarray(half, dtype=np.float64)
    good = values.ndim == 1 and len(values) > 0 and bool(np.all((values >= 0) & np.isfinite(values)))
    if not (good and values.max() > 0):
        raise InputError("half", half, "a list of finite numbers >= 0, not all of them 0")
    mantissas, exponents = np.frexp(values)
    wholes = np.ldexp(mantissas, 53).astype(np.int64).tolist()
    lifts = (exponents - int(exponents[values > 0].max()) + (DIGITS - 53)).tolist()
    return [m << lift if lift >= 0 else m >> -lift for m, lift in zip(wholes, lifts, strict=True)]


def _plateaus(last: int, ratio: float, width: int) -> Plateaus:
    ratio = inner_probability("tail_ratio", ratio)
    if not math.exp(-LARGEST_STEP) <= ratio <= 1 - 1 / LARGEST_SCALE:
        raise InputError("tail_ratio", ratio, "between e^-40 and 1 - 1e-6", "change the units, or end the table")
    mantissa, exponent = math.frexp(ratio)
    fixed = int(mantissa * 2**53) * ONE >> (53 - exponent)
    return Plateaus(last * fixed >> DIGITS, fixed, whole("tail_width", width))
