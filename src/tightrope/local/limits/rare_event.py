"""How often an event may happen when it would be rare without information (data processing of KL)."""

from __future__ import annotations

import numpy as np
from scipy.special import rel_entr

from tightrope.numerics.arrays import Floats

DIVERGENCE_ROUNDING = 1e-15
"""Of the divergence, whose terms are at most about 1 where it matters: p is never too small for it."""


def largest_share(information: float | Floats, share: Floats) -> Floats:
    """The largest p ≥ b with KL(p‖b) ≤ I, b = ``share`` in (0, 1], by bisection from above; shapes broadcast.

    >>> float(largest_share(0.6931471805599453, np.array([0.5]))[0])
    1.0
    """
    known, base = np.broadcast_arrays(np.asarray(information, dtype=np.float64), share)
    low, high = base, np.ones_like(base)
    for _ in range(60):
        middle = (low + high) / 2
        small = rel_entr(middle, base) + rel_entr(1 - middle, 1 - base) <= known + DIVERGENCE_ROUNDING
        low, high = np.where(small, middle, low), np.where(small, high, middle)
    return high
