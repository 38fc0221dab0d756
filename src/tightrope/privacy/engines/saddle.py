"""Where δ(ε) reaches a target, by the saddle-point approximation: a first guess, never a guarantee (theory §3)."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from scipy import optimize

from tightrope.errors import PrecisionError
from tightrope.numerics.arrays import Floats

APART = 0.02
"""Half the distance, in log c, over which K is differentiated."""
FARTHEST_SADDLE = 16.0
"""Saddle points are sought between e^{−16} and e^{16}."""


class Guess(NamedTuple):
    """δ(ε) is about the target here, and falls by the factor e^{−rate} a nat."""

    epsilon: float
    rate: float


def guess(cumulant: Callable[[Floats], Floats], log_target: float) -> Guess | None:
    """About where log δ(ε) = ``log_target``, from K on the real axis, shape [n] to [n]; None where that fails.

    ε(c) = K'(c) − 1/c − 1/(1+c) has its saddle at c, and there δ ≈ e^{K(c) − cε} / (c (1+c) √(2π K'')), with K'' that
    of the whole exponent. Both fall or rise with c, so c is found by bracketing.
    """

    def excess(log_c: float) -> float:
        return _at(cumulant, log_c)[1] - log_target

    try:
        ends = _bracket(excess)
        if ends is None:
            return None
        log_c = float(optimize.brentq(excess, *ends, xtol=1e-4))
        epsilon, _ = _at(cumulant, log_c)
    except (PrecisionError, ValueError, OverflowError):
        return None
    return Guess(epsilon, math.exp(log_c)) if math.isfinite(epsilon) and epsilon > 0 else None


def _at(cumulant: Callable[[Floats], Floats], log_c: float) -> tuple[float, float]:
    """ε(c) and log δ there, approximately."""
    c = math.exp(log_c)
    below, here, above = cumulant(c * np.exp([-APART, 0.0, APART])).tolist()
    slope, bend = (above - below) / (2 * APART), (above - 2 * here + below) / APART**2
    epsilon = slope / c - 1 / c - 1 / (1 + c)
    curvature = (bend - slope) / c**2 + 1 / c**2 + 1 / (1 + c) ** 2
    return epsilon, here - c * epsilon - log_c - math.log1p(c) - math.log(2 * math.pi * curvature) / 2


def _bracket(excess: Callable[[float], float]) -> tuple[float, float] | None:
    """Two neighbouring steps of log c between which the excess changes sign, walking from c = e."""
    here = 1.0
    value = excess(here)
    step = 1.0 if value > 0 else -1.0
    while abs(here) < FARTHEST_SADDLE:
        there = here + step
        if excess(there) * value <= 0:
            return min(here, there), max(here, there)
        here = there
    return None
