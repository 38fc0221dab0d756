"""The information that private reports about a direction can carry: values on a sphere, the mean of a ball."""

from __future__ import annotations

import math
from functools import lru_cache

import numpy as np
from scipy.special import betainc, gammaln

from tightrope.local.limits.fisher.columns import inverse_growth
from tightrope.local.limits.fisher.near_uniform import first_zero
from tightrope.numerics.search import crossing

RADII: list[float] = np.geomspace(1e-7, 0.9, 60).tolist()
"""Radii of the prior, in its largest."""
QUADRATURE_ROUNDING = 1 + 1e-9


def mean_on_sphere(epsilon: float, dimension: int, people: int) -> float:
    """E ‖μ̂ − μ‖² ≥ this in the unit ball, d > 1, δ = 0: ``d²/(n G (1 + ρ²/(1−ρ)) + 4j²/r²)``, ρ = r √G, the best r.

    Values on the sphere with density 1 + d μ·x; G = d² M², M the longest mean of a report (``longest``); the prior is
    the square of the first eigenfunction of the ball of radius r ≤ 1/d. For sequentially interactive mechanisms, too
    (``docs/proofs/shares.md``). As n → ∞ it is 1/(n M²), which a random cap around the value reaches.
    """
    most = dimension * longest(epsilon, dimension)
    zero = first_zero(dimension)
    return max(_at(dimension, people, most, zero, share / dimension) for share in RADII)


def _at(d: int, people: int, most: float, zero: float, radius: float) -> float:
    bent = radius * most
    if not bent < 1:
        return 0.0
    return d * d / (people * most**2 * (1 + bent**2 / (1 - bent)) + 4 * (zero / radius) ** 2)


@lru_cache(maxsize=256)
def longest(epsilon: float, dimension: int) -> float:
    """Max |∫ w x|/∫ w over w within a factor e^ε, x uniform on the unit sphere in d > 1 dimensions; from above.

    The least τ with ``E (x₁ − τ)₊ ≤ u τ``, u = 1/(e^ε − 1).

    >>> round(longest(1.0, 2), 4), longest(30.0, 3) <= 1
    (0.3083, True)
    """
    u = inverse_growth(epsilon)
    if u == math.inf:
        return 0.0
    if u == 0:
        return 1.0
    found = crossing(lambda tau: above(tau, dimension) - u * tau, 0.0, 1.0, side="passes", relative=1e-12)
    return min(1.0, found * QUADRATURE_ROUNDING)


def above(tau: float, dimension: int) -> float:
    """E (x₁ − τ)₊, 0 ≤ τ ≤ 1, from the area and the first moment of a cap.

    >>> round(above(0.0, 3), 6)
    0.25
    """
    half = (dimension - 1) / 2
    left = (1 - tau) * (1 + tau)
    scale = math.exp(gammaln(dimension / 2) - gammaln(half)) / math.sqrt(math.pi)
    return float(scale * left**half / (2 * half)) - tau * float(betainc(half, 0.5, left)) / 2
