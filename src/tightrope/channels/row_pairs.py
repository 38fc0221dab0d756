"""The worst pair of rows of a matrix: E_γ with its slope, and the largest log-ratio."""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np

from tightrope.numerics.arrays import Floats

NUMBERS_AT_ONCE = 1 << 22
"""Numbers held at once: 32 MiB."""
LARGEST_LOG = 709.0


def worst(rows: Floats, gamma: float) -> tuple[float, float]:
    """The maximum over ordered pairs of E_γ = Σ (p − γ q)₊, and the slope −Σ {q : p > γ q} of a pair that attains it.

    γ ≥ 0; ``rows`` of shape [inputs, outputs]. With one row both are those of the pair of equal laws. The error is at
    most 4u + (outputs) u relative to Σ {p : p > γ q} ≤ 1.
    """
    value, slope = -1.0, 0.0
    for first in _blocks(rows):
        gains = np.maximum(first - gamma * rows[None, :, :], 0.0)
        sums = gains.sum(axis=2)
        best = np.unravel_index(int(np.argmax(sums)), sums.shape)
        if sums[best] > value:
            value = float(sums[best])
            slope = -float(rows[best[1]][gains[best] > 0].sum())
    return min(value, 1.0), slope


def largest_loss(rows: Floats) -> float:
    """The maximum over pairs of rows and outputs of log p/q; ∞ where an output happens in one row, not in another."""
    high, low = rows.max(axis=0), rows.min(axis=0)
    happens = high > 0
    if np.any(low[happens] == 0):
        return math.inf
    return float(np.max(_log_ratio(high[happens], low[happens])))


def largest_finite_loss(rows: Floats) -> float:
    """The same over the finite log-ratios alone; 0 where there is none."""
    high = rows.max(axis=0)
    low = np.where(rows > 0, rows, math.inf).min(axis=0)
    happens = high > 0
    return float(np.max(_log_ratio(high[happens], low[happens]), initial=0.0))


def _log_ratio(high: Floats, low: Floats) -> Floats:
    """log(high/low) ≥ 0 to full relative accuracy, also near 0, and without overflow."""
    with np.errstate(over="ignore"):
        near = np.log1p((high - low) / low)
    return np.asarray(np.where(np.isfinite(near), near, np.log(high) - np.log(low)))


def largest_exclusive_mass(rows: Floats) -> float:
    """The maximum over ordered pairs of p(q = 0): the probability that a report rules out the other input."""
    zero = (rows == 0).astype(np.float64)
    return min(1.0, float(np.max(rows @ zero.T)))


def _blocks(rows: Floats) -> Iterator[Floats]:
    """Rows as [some, 1, outputs], so many that the table of differences stays within ``NUMBERS_AT_ONCE``."""
    step = max(1, NUMBERS_AT_ONCE // rows.size)
    return (rows[i : i + step, None, :] for i in range(0, len(rows), step))
