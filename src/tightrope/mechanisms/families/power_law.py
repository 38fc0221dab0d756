"""The real law with density ∝ e^{−|x/s|^q}, in units of s: what sizes of it are started from."""

from __future__ import annotations

import math


def mean_absolute(power: float) -> float:
    """E|X|/s = Γ(2/q)/Γ(1/q).

    >>> mean_absolute(1.0)
    1.0
    """
    return math.exp(math.lgamma(2 / power) - math.lgamma(1 / power))


def deviation(power: float) -> float:
    """√(E X²)/s = √(Γ(3/q)/Γ(1/q)).

    >>> round(deviation(2.0) ** 2, 12)
    0.5
    """
    return math.exp((math.lgamma(3 / power) - math.lgamma(1 / power)) / 2)
