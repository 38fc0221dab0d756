"""From a privacy profile to the trade-off function (theory §1, duality)."""

from __future__ import annotations

import math
from collections.abc import Callable

from scipy import optimize

PRECISION = 1e-11
"""How closely the best ε is sought; at a kink of the profile the answer is off by this much of itself."""


def true_positive_rate(delta_at: Callable[[float], float], rate: float, infinite_mass: float) -> float:
    """Upper bound on inf_ε δ(ε) + e^ε·rate, to full relative accuracy: any ε gives one, the search makes it tight.

    The sum is convex in γ = e^ε, hence falls and then rises in ε.
    """
    if rate == 0:
        return infinite_mass

    def caught(epsilon: float) -> float:
        return delta_at(epsilon) + math.exp(epsilon + math.log(rate))

    low, middle, high = _around(caught, -math.log(rate))
    width = PRECISION * max(1.0, abs(middle))
    found = optimize.minimize_scalar(caught, bounds=(low, high), method="bounded", options={"xatol": width})
    return min(1.0, float(found.fun), caught(middle), caught(low), caught(high))


def _around(caught: Callable[[float], float], top: float) -> tuple[float, float, float]:
    """An interval that holds the best ε, and the best point seen: from ``top`` on the sum is at least one."""
    low, middle, high, width = top - 1, top, top, 1.0
    best, here = caught(middle), caught(low)
    while here < best:
        low, middle, high, best, width = low - 2 * width, low, middle, here, 2 * width
        here = caught(low)
    return low, middle, high
