"""Lower bounds on the probability of every event {score > t} at once, from how often each was seen.

Two bounds, each with half of the chance to fail (docs/proofs/audit.md):

- Dvoretzky–Kiefer–Wolfowitz with Massart's constant: a seen share less √(log(2/β)/2n), at every threshold;
- Clopper and Pearson's at a fixed set of ranks, a union over them: of k largest scores the smallest is exceeded with
  a probability that is at least Beta(k, n + 1 − k) in law, ties or not. Between ranks the next lower one stands.

The first is the tighter in the middle, the second at both ends, where ε is decided.
"""

from __future__ import annotations

import math
from functools import lru_cache

import numpy as np
from scipy import special

from tightrope.numerics.arrays import Floats, Integers

RATIO = 1.08
"""Ranks grow by this factor from either end: between two of them a bound is off by no more."""
BETA_ROUNDING = 1e-9
"""Relative; the inverse of the incomplete beta function is better than that. Absolute: five places less."""


@lru_cache(maxsize=16)
def at_least(runs: int, failure: float) -> Floats:
    """[c]: what P(score > t) is at least where c of ``runs`` scores were above t, shape [runs + 1].

    For every t together, but for a chance of ``failure``. It does not decrease in c, and it is 0 at c = 0.

    >>> band = at_least(1000, 0.01)
    >>> bool(band[0] == 0 and 0.4 < band[500] < 0.5 and band[1000] > 0.98)
    True
    """
    ranks = _ranks(runs)
    exact = safe_share(ranks, runs, failure / 2 / len(ranks))
    steps = np.concatenate([[0.0], exact])[np.searchsorted(ranks, np.arange(runs + 1), side="right")]
    flat = np.arange(runs + 1) / runs - math.sqrt(math.log(2 / failure) / (2 * runs)) - BETA_ROUNDING / 1e5
    band: Floats = np.maximum(steps, flat)
    band.flags.writeable = False
    return band


@lru_cache(maxsize=16)
def at_most(runs: int, failure: float) -> Floats:
    """[c]: what P(score > t) is at most where c of ``runs`` scores were above t; for every t together."""
    band: Floats = 1 - at_least(runs, failure)[::-1]
    band.flags.writeable = False
    return band


def safe_share(seen: Integers, runs: int, failure: float) -> Floats:
    """Clopper and Pearson's lower bound on a probability for each count ≥ 0, each but for a chance of ``failure``."""
    some = np.maximum(seen, 1)
    exact = special.betaincinv(some, runs + 1 - some, failure)
    return np.where(seen > 0, np.maximum(exact * (1 - BETA_ROUNDING) - BETA_ROUNDING / 1e5, 0.0), 0.0)


def _ranks(runs: int) -> Integers:
    """Whole numbers in 1..runs, dense at both ends; they hang on ``runs`` alone."""
    steps = math.ceil(math.log(runs + 1) / math.log(RATIO)) + 1
    low = np.unique(np.minimum(np.ceil(RATIO ** np.arange(steps)).astype(np.int64), runs))
    low = low[low <= (runs + 1) // 2]
    return np.unique(np.concatenate([low, runs + 1 - low]))
