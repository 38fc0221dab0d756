"""How far N(μ, 1) can be told from N(0, 1) at one threshold: Φ(−a) − φ(a) m(a + μ), and what that leaves of one.

m is Mills' ratio (1 − Φ)/φ. Elementary functions, and Φ right of 0, are taken to be right to two units in the last
place (4u), and m to 16u; a and μ are taken as they are.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np
from scipy import special

from tightrope.numerics.rounding import ROUND_OFF

if TYPE_CHECKING:
    from tightrope.numerics.arrays import Floats

ROOT_HALF = math.sqrt(0.5)
NARROW = 0.5
"""Below this μ both ratios are nearly equal, and their difference is integrated instead."""
FARTHEST_DEVIATION = 100.0
"""There nothing is left of the density: a further one changes nothing."""
NODES, WEIGHTS = (np.asarray(values, dtype=np.float64) for values in np.polynomial.legendre.leggauss(8))
Known = tuple["Floats", "Floats"]
"""A value and a bound on its relative error, shape [n] each."""


def mills(t: Floats) -> Floats:
    """(1 − Φ(t)) / φ(t)."""
    return np.asarray(math.sqrt(math.pi / 2) * special.erfcx(t * ROOT_HALF))


def told_apart(a: Floats, mu: Floats) -> Known:
    """Φ(−a) − φ(a) m(a + μ) for a ≥ −μ/2: it falls with a, and rises with μ."""
    a = np.minimum(a, FARTHEST_DEVIATION)
    return _near_by(a, mu) if np.max(mu) < NARROW else _apart(a, mu)


def _near_by(a: Floats, mu: Floats) -> Known:
    """φ(a) ∫ (1 − t m(t)) dt from a to a + μ, a sum of positive terms; far out t m(t) is nearly one."""
    density, off = _density(a)
    t = a[..., None] + mu[..., None] / 2 * (1 + NODES)
    product = t * mills(t)
    mean = (1 - product) @ (WEIGHTS / 2)
    lost = (20 * np.abs(product) + 2) @ (WEIGHTS / 2)
    return density * mean * mu, off + ROUND_OFF * (12 + lost / mean)


def _apart(a: Floats, mu: Floats) -> Known:
    """φ(a) (m(a) − m(b)) right of 0, Φ(−a) − φ(a) m(b) left of it: what is subtracted is never nearly all."""
    density, off = _density(a)
    first, second = mills(np.maximum(a, 0.0)), mills(a + mu)
    kept, lost = np.where(a > 0, density * first, special.ndtr(-a)), density * second
    value = np.where(a > 0, density * (first - second), kept - lost)
    share = np.divide(kept + lost, value, out=np.ones_like(value), where=value > 0)
    return value, np.where(a > 0, off, 2 * off * lost * share) + 24 * ROUND_OFF * share


def not_told(a: Floats, mu: Floats) -> Known:
    """The rest of one, Φ(a) + φ(a) m(a + μ): both terms positive, so it may be tiny."""
    density, off = _density(a)
    left = np.where(a > 0, special.ndtr(np.maximum(a, 0.0)), density * mills(np.maximum(-a, 0.0)))
    return left + density * mills(a + mu), ROUND_OFF * 40 + np.where(a > 0, 0.0, off)


def _density(a: Floats) -> Known:
    """φ(a); the rounding of a² shows in it."""
    with np.errstate(over="ignore"):
        square = a * a
    return np.exp(-square / 2) / math.sqrt(2 * math.pi), ROUND_OFF * (np.minimum(square, 2000.0) / 2 + 8)
