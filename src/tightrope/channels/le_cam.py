"""The exact contraction coefficient of KL and χ²: max over row pairs and β of the Le Cam divergence (theory §5).

``LC_β(p, q) = 1 − Σ pq/(βp + (1−β)q) = β(1−β) Σ (p−q)²/(βp + (1−β)q)``, concave in β on [0, 1]: a tangent bounds what
is left to gain, and pairs that cannot win are dropped. A pair lies between 1 − B and 1 − B², B = Σ √(pq)
(``docs/proofs/channels.md``), so one matrix product drops most pairs before any search.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from tightrope.numerics.arrays import Floats

CELLS_AT_ONCE = 1 << 21
"""Numbers of a (pairs × outputs) table held at once."""
CLOSE_TO_BEST = 1e-14
"""Pairs whose bound exceeds the best value by less, relatively, are not searched further."""
SPLITTING_ROUNDS = 200

Indices = NDArray[np.intp]


def kl_contraction(rows: Floats) -> float:
    """η_KL = η_χ² of a row-stochastic matrix, to 1e−13 relative; 0 for one row.

    >>> rate = kl_contraction(np.array([[0.75, 0.25], [0.25, 0.75]]))
    >>> round(rate, 15)  # tanh² of half of log 3
    0.25
    """
    first, second = np.triu_indices(len(rows), k=1)
    if len(first) == 0:
        return 0.0
    first, second = _promising(rows, first, second)
    low, high = np.zeros(len(first)), np.ones(len(first))
    middle = np.full(len(first), 0.5)
    best = 0.0
    for _ in range(SPLITTING_ROUNDS):
        value, slope = _le_cam(rows, first, second, middle)
        best = max(best, float(value.max()))
        low, high = np.where(slope > 0, middle, low), np.where(slope > 0, high, middle)
        bound = value + np.maximum(slope * (high - middle), slope * (low - middle))
        open_ = bound > best * (1 + CLOSE_TO_BEST)
        if not np.any(open_):
            break
        first, second, low, high = first[open_], second[open_], low[open_], high[open_]
        middle = (low + high) / 2
    return min(best, 1.0)


def _promising(rows: Floats, first: Indices, second: Indices) -> tuple[Indices, Indices]:
    """Pairs whose upper bound 1 − B² reaches the best lower bound 1 − B; 1 − B = ½ Σ (√p − √q)²."""
    roots = np.sqrt(rows)
    gram = np.minimum(roots @ roots.T, 1.0)
    affinity = gram[first, second]
    rounding = 4e-16 * rows.shape[1]
    least = float(np.max(1 - affinity))
    keep = (1 - affinity) * (1 + affinity) + rounding >= least - rounding
    return first[keep], second[keep]


def _le_cam(rows: Floats, first: Indices, second: Indices, beta: Floats) -> tuple[Floats, Floats]:
    """LC_β and its derivative in β, shape [pairs] each."""
    step = max(1, CELLS_AT_ONCE // rows.shape[1])
    parts = [
        _le_cam_of(rows[first[i : i + step]], rows[second[i : i + step]], beta[i : i + step, None])
        for i in range(0, len(first), step)
    ]
    values, slopes = zip(*parts, strict=True)
    return np.concatenate(values), np.concatenate(slopes)


def _le_cam_of(p: Floats, q: Floats, beta: Floats) -> tuple[Floats, Floats]:
    """The same of laws row by row. d/dβ of −pq/m is pq (p − q)/m², m = βp + (1−β)q."""
    mixed = beta * p + (1 - beta) * q
    safe = np.where(mixed > 0, mixed, 1.0)
    gap = p - q
    value = (beta * (1 - beta))[:, 0] * (gap * gap / safe).sum(axis=1)
    slope = ((p / safe) * (q / safe) * gap).sum(axis=1)
    return value, slope
