"""Composition of a (ε, δ, η) triple: every mass of the composed law by one positive recurrence (GI Thm 2, theory §2).

With A = c e^ε, U_n = [x^{2k−n}] (c + αx + Ax²)^k satisfies A(n+1) U_{n+1} = α(k−n) U_n + c(2k−n+1) U_{n−1}: all
terms are positive for n < k, so each mass has a relative error of at most 9ku, in the far tail too. So has the
profile: with S_j = P(L > jh), δ_{j−1} = e^{−h} δ_j + (1 − e^{−h}) S_{j−1}, and it is linear in e^ε in between.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from scipy.linalg.blas import dtbsv
from scipy.special import logsumexp

from tightrope.numerics.arrays import Floats
from tightrope.numerics.rounding import ROUND_OFF

LOG_ROUNDINGS = 6
"""Roundings of a mass's logarithm, each relative to it."""
SLOWEST = 1e-300
"""What a recurrence is taken to grow by where it ends."""
STEEP_STEP = 600.0
MOST_COPIES = 300_000
"""Copies beyond which a transform is faster."""


@dataclass(frozen=True, slots=True, eq=False)
class ThreePoint:
    """k-fold sum of {+step: A, 0: α, −step: c} with A = c e^{step}; its total mass, and δ at j·step for j = −k..k."""

    step: float
    count: int
    mass: float
    profile: Floats

    def error(self, found: Floats) -> Floats:
        """Relative error of each δ: that of the masses, and that of taking them from their logarithms."""
        logs = -np.log(np.maximum(found, np.finfo(float).tiny))
        return np.asarray((13 * self.count + 64 + LOG_ROUNDINGS * logs) * ROUND_OFF)

    def delta(self, epsilon: Floats) -> Floats:
        """δ(ε) at any ε, shape [n]."""
        place = np.clip(np.floor(epsilon / self.step), -self.count, self.count - 1)
        rest = np.minimum(epsilon - place * self.step, self.step)
        steep = self.step > STEEP_STEP  # e^step alone may overflow
        part = np.exp(rest - self.step) if steep else np.expm1(rest) / math.expm1(self.step)
        share = np.clip(part, 0.0, 1.0)
        index = place.astype(np.int64) + self.count
        inside = (1 - share) * self.profile[index] + share * self.profile[index + 1]
        below = np.minimum(epsilon + self.count * self.step, 0.0)
        found = np.exp(below) * inside - self.mass * np.expm1(below)
        return np.where(epsilon < self.count * self.step, found, 0.0)


@lru_cache(maxsize=64)
def three_point(step: float, masses: tuple[float, float], missing: float, count: int) -> ThreePoint:
    """The composed law of ``count`` steps with ``masses`` at +step and 0, and the first's e^{−step} times at −step.

    The total mass (1 − missing)^count is known exactly, so it fixes the scale.
    """
    from scipy import signal  # slow to load, and used here alone

    top, middle = masses
    bottom = top * math.exp(-step)
    positive = _upper_half(top, middle, bottom, count)[::-1]
    logs = np.concatenate([positive[:0:-1] - step * np.arange(count, 0, -1), positive])
    log_mass = count * math.log1p(-missing)
    composed = np.exp(logs - float(logsumexp(logs)) + log_mass)
    above = np.cumsum(composed[:0:-1])
    profile, _ = signal.lfilter([-math.expm1(-step)], [1.0, -math.exp(-step)], above, zi=[0.0])
    return ThreePoint(step, count, math.exp(log_mass), np.append(profile[::-1], 0.0))


def _upper_half(top: float, middle: float, bottom: float, count: int) -> Floats:
    """Log U_0..U_k up to a common constant: U_n is the mass at loss (k − n)·step.

    U spans thousands of orders: it is solved for in powers of two that grow as the recurrence would if its
    coefficients stood still, and scaling by them is exact.
    """
    n = np.arange(count, dtype=np.float64)
    last, before = middle * (count - n) / (top * (n + 1)), bottom * (2 * count - n + 1) / (top * (n + 1))
    growth = last / 2 + np.sqrt(last * last / 4 + before)
    powers = np.rint(np.cumsum(np.append(0.0, np.log2(np.maximum(growth, SLOWEST))))).astype(np.int64)
    bands = np.ones((3, count + 1), order="F")
    bands[1, :-1] = -np.ldexp(last, powers[:-1] - powers[1:])
    bands[2, :-2] = -np.ldexp(before[1:], powers[:-2] - powers[2:])
    values = dtbsv(2, bands, np.eye(1, count + 1)[0], lower=1, diag=1)
    logs = np.log(values, where=values > 0, out=np.full(count + 1, -np.inf))
    return np.asarray(logs + math.log(2) * (powers - powers.max()))
