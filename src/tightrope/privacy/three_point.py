"""Composition of a (ε, δ, η) triple: every mass of the composed law by one positive recurrence (GI Thm 2, theory §2).

With A = c e^ε, U_n = [x^{2k−n}] (c + αx + Ax²)^k satisfies A(n+1) U_{n+1} = α(k−n) U_n + c(2k−n+1) U_{n−1}: all
terms are positive for n < k, so each mass has a relative error of at most 9ku, in the far tail too.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from scipy.special import logsumexp

from tightrope.privacy.law import Floats

ROUND_OFF = 2.0**-53
RESCALE = 1e250


@dataclass(frozen=True, slots=True, eq=False)
class ThreePoint:
    """k-fold sum of {+step: A, 0: α, −step: c} with A = c e^{step}; masses of j·step for j = −k..k, as logarithms."""

    step: float
    count: int
    log_masses: Floats

    def delta(self, epsilon: float) -> tuple[float, float]:
        """Σ_{j·step > ε} P_j (1 − e^{ε − j·step}) and a bound on its absolute rounding error."""
        losses = self.step * np.arange(-self.count, self.count + 1)
        first = int(np.searchsorted(losses, epsilon, side="right"))
        value = float(np.dot(np.exp(self.log_masses[first:]), -np.expm1(epsilon - losses[first:])))
        return value, value * (9 * self.count + 64) * ROUND_OFF


@lru_cache(maxsize=64)
def three_point(step: float, top: float, middle: float, count: int) -> ThreePoint:
    """The composed law of ``count`` steps with masses ``top`` (loss +step), ``middle`` (0), ``top``·e^{−step} (−step).

    The total mass (top + middle + bottom)^count is known exactly, so it fixes the scale.
    """
    bottom = top * math.exp(-step)
    positive = _upper_half(top, middle, bottom, count)[::-1]
    logs = np.concatenate([positive[:0:-1] - step * np.arange(count, 0, -1), positive])
    total = float(logsumexp(logs))
    return ThreePoint(step, count, logs - total + count * math.log(top + middle + bottom))


def _upper_half(top: float, middle: float, bottom: float, count: int) -> Floats:
    """Log U_0..U_k up to a common constant: U_n is the mass at loss (k − n)·step."""
    before, here, scaled = 0.0, 1.0, 0
    mantissas, exponents = [here], [scaled]
    for n in range(count):
        after = (middle * (count - n) * here + bottom * (2 * count - n + 1) * before) / (top * (n + 1))
        before, here = here, after
        if here > RESCALE or before > RESCALE:
            before, here, scaled = before / RESCALE, here / RESCALE, scaled + 1
        mantissas.append(here)
        exponents.append(scaled)
    values = np.array(mantissas)
    logs = np.log(values, where=values > 0, out=np.full(count + 1, -np.inf))
    return np.asarray(logs + math.log(RESCALE) * (np.array(exponents) - scaled))
