"""Sums of positive terms behind the exact sum of Laplace-type losses (``docs/proofs/laplace-sum.md``)."""

from __future__ import annotations

import math
from functools import lru_cache

import numpy as np
from scipy.special import gammaln

from tightrope.numerics.arrays import Floats

FAINT_TERM = -44.0
"""Log of what the missing powers may add, relative to the sum."""
RARE = 1e-18
"""Chance of so many uniform losses, or more, that is left out."""
QUARTERS = 4.0
"""Reaches are rounded up to powers of 2^(1/4), so that what depends on them is kept for neighbouring ε."""


def powers_for(reach: float) -> int:
    """How many odd powers p count beside x itself in Σ x^p/p!, for every 0 ≤ x ≤ reach, and a little beyond."""
    quarter = math.ceil(QUARTERS * math.log2(max(reach, 1e-300)))
    return _powers(2.0 ** (quarter / QUARTERS))


@lru_cache(maxsize=256)
def _powers(reach: float) -> int:
    p = np.arange(1.0, 4 * reach + 60, 2)
    seen = (p - 1) * math.log(reach) - gammaln(p + 1) > FAINT_TERM
    return max(2, int(np.count_nonzero(seen)) + 2)


def odd(count: int) -> Floats:
    """1, 3, 5, …: shape [count]."""
    return np.arange(1.0, 2 * count, 2)


def over_factorials(x: Floats, count: int) -> Floats:
    """x^p/p! for the odd p, shape [n, count]: each from the one before."""
    p = odd(count)
    steps = np.multiply.outer(x * x, 1 / np.concatenate([[1.0], p[1:] * (p[1:] - 1)]))
    steps[:, 0] = x
    return np.asarray(np.cumprod(steps, axis=1))


def single_moments(half_width: float, count: int) -> Floats:
    """E U^r/r! for r = 0, 2, 4, …, U uniform on ±half_width: h^r/(r+1)!."""
    r = np.arange(2.0, 2 * count, 2)
    return np.cumprod(np.concatenate([[1.0], half_width**2 / (r * (r + 1))]))


def shifted(moments: Floats) -> Floats:
    """For each row of moments the matrix [s, p] of E Y^r/r! at r = p − s, 0 where that is negative: [n, s, p]."""
    count = moments.shape[1]
    padded = np.concatenate([np.zeros((len(moments), count - 1)), moments], axis=1)
    return np.lib.stride_tricks.sliding_window_view(padded, count, axis=1)[:, ::-1]


def added_up(powers: Floats, matrices: Floats) -> Floats:
    """Σ_r E Y^r/r! · x^{p−r}/(p−r)! from x^s/s!, s odd, and ``shifted`` moments, row by row: shape [n, count]."""
    return np.asarray(np.einsum("ns,nsp->np", powers, matrices))


def binomial(count: int, odds: float) -> Floats:
    """Chances of 0..count successes, from the likeliest on, by positive ratios; ``odds`` may be 0 or ∞."""
    if not 0 < odds < math.inf:
        certain = np.zeros(count + 1)
        certain[0 if odds == 0 else -1] = 1.0
        return certain
    j = np.arange(count)
    ratios = (count - j) / (j + 1) * odds
    mode = int(np.count_nonzero(ratios > 1))
    above, below = np.cumprod(ratios[mode:]), np.cumprod(1 / ratios[:mode][::-1])[::-1]
    weights = np.concatenate([below, [1.0], above])
    return np.asarray(weights / np.sum(weights))


def likely(chances: Floats) -> int:
    """The largest count with a chance of ``RARE`` of being reached."""
    return int(np.count_nonzero(np.cumsum(chances[::-1])[::-1] > RARE)) - 1


@lru_cache(maxsize=64)
def coins(count: int, fewer: int) -> Floats:
    """Chances of j heads among count − n tosses, shape [fewer + 1, count + 2], n down the rows; zero beyond."""
    tosses, j = count - np.arange(fewer + 1)[:, None], np.arange(count + 1)[None, :]
    ratios = np.maximum(tosses - j, 0) / (j + 1)
    return np.asarray(np.cumprod(np.concatenate([np.exp2(-tosses.astype(np.float64)), ratios], axis=1), axis=1))
