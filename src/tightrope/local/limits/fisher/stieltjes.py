"""E 1/(u + S) for a Beta law, from above: by its continued fraction, whose ends enclose it.

``scipy.special.hyp2f1`` is wrong for large parameters, and on the unsafe side.
"""

from __future__ import annotations

import math

import numpy as np

from tightrope.numerics.arrays import Floats

MOST_TERM_PAIRS = 80
"""Pairs of terms. Every number of them gives an upper bound; fewer will do unless u is tiny."""
CONTRACTED = 1 + 1e-12
"""Additions, products and quotients of positive numbers, contracted at each step: a few hundred units of round-off."""


def mean_reciprocal(u: float, alpha: Floats | float, beta: Floats | float) -> Floats:
    """An upper bound on E 1/(u + S), S ~ Beta(alpha, beta), ``u`` ≥ 0, alpha > 1; shapes broadcast.

    The least of the fraction ``1/(u + ζ₁/(1 + ζ₂/(u + ζ₃/(1 + …))))`` cut where it is above, ζ the products of the
    canonical moments of the law, and of E 1/S. ``docs/proofs/shares.md``.

    >>> round(float(mean_reciprocal(1.0, 2.0, 2.0)), 9)  # ∫ 6 s (1 − s)/(1 + s) ds = 9 − 12 log 2
    0.682233833
    """
    first, second = np.broadcast_arrays(np.asarray(alpha, dtype=np.float64), np.asarray(beta, dtype=np.float64))
    total = first + second
    outer = (total - 1) / (first - 1)
    if u in (0, math.inf):
        return np.asarray(outer * CONTRACTED if u == 0 else np.zeros_like(outer))
    tail = np.full_like(total, u)
    for pair in range(_pairs(u), 0, -1):
        tail = u + _odd(first, total, pair) / (1 + _even(second, total, pair) / tail)
    return np.asarray(np.minimum(1 / tail, outer) * CONTRACTED)


def _pairs(u: float) -> int:
    """A pair shrinks what is left by ((√(1+1/u) − 1)/(√(1+1/u) + 1))² or more: to about 1e−13."""
    return min(MOST_TERM_PAIRS, 2 + math.ceil(7.5 / math.atanh(math.sqrt(u / (1 + u)))))


def _odd(alpha: Floats, total: Floats, pair: int) -> Floats:
    """ζ_{2j−1} = q_{2j−2} p_{2j−1}; the first has no factor before it."""
    before = (total + pair - 2) / (total + 2 * pair - 3) if pair > 1 else 1.0
    return np.asarray(before * (alpha + pair - 1) / (total + 2 * pair - 2))


def _even(beta: Floats, total: Floats, pair: int) -> Floats:
    """ζ_{2j} = q_{2j−1} p_{2j}."""
    return np.asarray((beta + pair - 1) / (total + 2 * pair - 2) * pair / (total + 2 * pair - 1))
