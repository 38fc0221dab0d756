"""From a privacy profile to the trade-off function (theory §1, duality)."""

from __future__ import annotations

import math
from collections.abc import Callable

from scipy import optimize

WIDEST = 700.0
"""e^{±700} is as far as double precision reaches."""


def type_two_error(delta_at: Callable[[float], float], rate: float) -> float:
    """Lower bound on sup_ε 1 − δ(ε) − e^ε·rate: any ε gives one, the search only makes it tight.

    The function is concave in γ = e^ε; a coarse scan brackets the maximum and a golden section refines it.
    """
    if rate == 0:
        return max(0.0, 1.0 - delta_at(WIDEST))

    def gain(epsilon: float) -> float:
        return 1.0 - delta_at(epsilon) - rate * math.exp(min(epsilon, WIDEST))

    top = -math.log(rate)
    low, high = _around(gain, top)
    found = optimize.minimize_scalar(lambda e: -gain(e), bounds=(low, high), method="bounded", options={"xatol": 1e-10})
    return max(0.0, gain(float(found.x)), gain(low), gain(high), gain(0.0) if top > 0 else 0.0)


def _around(gain: Callable[[float], float], top: float) -> tuple[float, float]:
    """An interval that holds the maximiser: beyond ``top`` every gain is negative."""
    best, width = top, 1.0
    here = gain(top - width)
    while width < WIDEST and (following := gain(top - 2 * width)) > here:
        width, here = 2 * width, following
    return top - 2 * width, best
