"""Limits on shares where people are too few for all categories: which few of many categories are frequent?

L blocks of B of the categories; in each one category, drawn at random, holds θ/L, and the others share the rest of 1/L.
An estimate that is good for all has found many of these. ``docs/proofs/shares.md``.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from scipy.special import expit

from tightrope.certificates.guarantee import Guarantee
from tightrope.channels import suprema
from tightrope.local.limits.rare_event import largest_share
from tightrope.numerics.arrays import Floats

HEIGHTS = np.linspace(0.05, 1.0, 20)
"""θ: any of them gives a valid bound."""
CELLS = 400
BLOCKS = 40
QUADRATURE_ROUNDING = 1 + 1e-9


@dataclass(frozen=True, slots=True)
class Spikes:
    """E Σ_j (p̂_j − p_j)² ≥ (θ²/L)(1 − s), s the largest with KL(s‖1/B) ≤ what n reports say of one block.

    For δ = 0 also s ≤ rⁿ/(rⁿ + B − 1), r = 1 + θ(e^ε − 1)/L: no report changes the odds of two places by more than r.
    """

    guarantee: Guarantee
    k: int
    interactive: bool

    def risk(self, people: int) -> float:
        """The best over L and θ."""
        blocks = np.unique(np.geomspace(1, self.k // 2, BLOCKS).astype(int)).astype(np.float64)[:, None]
        of_all = told(self.guarantee, self.k)
        if not self.interactive and self.guarantee.delta == 0:
            of_all = np.minimum(of_all, apart(self.guarantee.epsilon, self.k) / blocks)
        sizes = np.floor(self.k / blocks)
        found = largest_share(people * of_all / blocks, 1 / sizes)
        if self.guarantee.delta == 0:
            found = np.minimum(found, surest(self.guarantee.epsilon, people, blocks, sizes))
        return float(np.max(HEIGHTS**2 / blocks * (1 - found)))


def surest(epsilon: float, people: int, blocks: Floats, sizes: Floats) -> Floats:
    """rⁿ/(rⁿ + B − 1), shape [L, θ]."""
    if epsilon == math.inf:
        return np.ones_like(sizes)
    # log r without overflow: r = e^ε (θ/L + (1 − θ/L) e^{−ε}).
    share = HEIGHTS / blocks
    large = epsilon + np.log(share + (1 - share) * math.exp(-epsilon))
    changed = large if epsilon > 1 else np.log1p(share * math.expm1(epsilon))
    return np.asarray(expit(people * changed * QUADRATURE_ROUNDING - np.log(sizes - 1)))


@lru_cache(maxsize=256)
def told(guarantee: Guarantee, k: int) -> Floats:
    """What one report says of all L places, nats: KL to the report of uniform shares, at total variation θ or less."""
    return np.array([suprema.kl(guarantee, height * (1 - 1 / k)) for height in HEIGHTS.tolist()]) * QUADRATURE_ROUNDING


@lru_cache(maxsize=256)
def apart(epsilon: float, k: int) -> Floats:
    """The same for people on their own, times L: max_s ψ(1 − θg) θ² (1−s) g²/s, g = s(e^ε−1)/(1 + s(e^ε−1)).

    s is the share of categories in a two-level column, at least 1/k. On cells of s: ψ and g at their far ends, (1−s)/s
    at the near one. Infinite ε say as much as the answer itself, for which ``told`` is used.

    >>> bool(0.9 < apart(1.0, 1000)[-1] / 0.156 < 1.1)
    True
    """
    ends = np.geomspace(1 / k, 1.0, CELLS + 1)
    shrunk, grown = math.exp(-epsilon), -math.expm1(-epsilon)
    growth = ends * grown / (shrunk + ends * grown)
    spread = (1 - ends[:-1]) / ends[:-1] * growth[1:] ** 2
    bent = curvature(1 - HEIGHTS[:, None] * growth[1:])
    return np.asarray(np.max(bent * spread, axis=1) * HEIGHTS**2 * QUADRATURE_ROUNDING)


def curvature(ratio: Floats) -> Floats:
    """ψ(r) = (r log r − r + 1)/(1 − r)², 0 ≤ r < 1: ½ at 1, 1 at 0, falling; by its series near 1, from above.

    >>> curvature(np.array([0.0, 0.5, 1.0 - 1e-9])).round(4).tolist()
    [1.0, 0.6137, 0.5]
    """
    gap = 1 - ratio
    with np.errstate(divide="ignore", invalid="ignore"):
        exact = (np.where(ratio > 0, ratio * np.log(ratio), 0.0) + gap) / gap**2
    series = 0.5 + gap / 6 + gap**2 / 6
    return np.asarray(np.where(gap < 1e-2, series, exact * QUADRATURE_ROUNDING))
