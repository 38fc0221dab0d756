"""Copies of one flat law, summed by a recurrence of positive terms (``docs/proofs/laplace-sum.md``).

With n of k losses uniform, Y their sum in units of ε, and θ = q/ε,
    δ₀(q) = m^k e^{q/2} Σ_n Bin(n) Σ_j Bin(j) H_n(θ + k − n − 2j),   H_n(t) = E 2 sinh(ε(Y − t)/2)₊.
H is Σ_p odd 2 S_{n,p}(t), S_{n,p} = (ε/2)^p E (Y − t)₊^p / p!, and divided differences of truncated powers give
    S_{n,p}(t) = ((n − t) S_{n−1,p}(t − 1) + (n + t) S_{n−1,p}(t + 1)) / (2(n + p)),
positive terms for |t| < n. For t ≤ −n a moment, for t ≥ n nothing. θ is rounded so that every t is exact.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from tightrope.numerics.arrays import Floats
from tightrope.numerics.rounding import ROUND_OFF
from tightrope.privacy.engines.sums.positive_series import (
    added_up,
    binomial,
    coins,
    likely,
    odd,
    over_factorials,
    powers_for,
    shifted,
    single_moments,
)
from tightrope.privacy.laws.flat import Flat

MOST_COPIES = 500
WIDEST_SCALE = 300.0
"""k ε beyond which powers leave double precision."""


@dataclass(frozen=True, slots=True)
class OneScale:
    """``count`` copies of one flat law; places are in units of its ε."""

    flat: Flat
    count: int

    @property
    def unit(self) -> float:
        return self.flat.epsilon

    @property
    def fineness(self) -> float:
        """Places are multiples of one over this: 3k of them still have 53 binary digits."""
        return 2.0 ** (51 - math.ceil(math.log2(self.count)))

    @property
    def slack(self) -> float:
        """No scale is rounded."""
        return 0.0

    def at(self, theta: float) -> tuple[float, float, float]:
        """Log of a factor and what it multiplies to δ₀ at θε; the relative error."""
        flat, k = self.flat, self.count
        log_scale = k * math.log(flat.whole) + theta * flat.epsilon / 2
        if theta >= k:
            return log_scale, 0.0, 0.0
        known = _known(flat, k, powers_for((k - theta) * flat.epsilon / 2))
        value = known.inside(theta) + known.below(theta)
        n, powers = len(known.weights) - 1, len(known.inverse[0])
        roundings = n * (powers + 8) + 24 * k + 8 * powers + 200
        return log_scale, value, ROUND_OFF * (roundings + 4 * abs(log_scale) + 4 * k * abs(math.log(flat.whole)))


@dataclass(frozen=True, slots=True, eq=False)
class _Known:
    """What does not depend on θ: chances of n uniform losses and j minus signs, the same times E e^{εY/2}; moments of
    n uniform losses; 1/(2(n + p)) for n ≥ 1.
    """

    count: int
    epsilon: float
    weights: Floats
    grown: Floats
    moments: Floats
    inverse: Floats

    def inside(self, theta: float) -> float:
        """The part of all t in (−n, n): t = θ + k − n − 2j, and t + n is the same for all n at the same place."""
        last = math.ceil((theta + self.count) / 2) - 1
        if last < 0:
            return 0.0
        start = theta + self.count - 2 * last  # in (0, 2], exactly
        n, powers = np.arange(1, len(self.weights)), self.inverse.shape[1]
        below = added_up(over_factorials((1 + n - start) * self.epsilon / 2, powers), self.moments[: len(n)])
        up = (start + 2 * np.arange(len(n)))[:, None]
        rows, total = np.zeros((len(n) + 2, powers)), np.zeros(powers)
        for m in range(1, len(n) + 1):
            rows[0] = below[m - 1]
            found = (2 * m - up[:m]) * rows[:m]
            found += up[:m] * rows[1 : m + 1]
            found *= self.inverse[m - 1]
            seen = min(m, last + 1)
            total += self.weights[m, last - seen + 1 : last + 1][::-1] @ found[:seen]
            rows[1 : m + 1] = found
        return 2 * float(np.sum(total))

    def below(self, theta: float) -> float:
        """The part of all t ≤ −n: the positive part is everything there."""
        n, j = np.arange(len(self.grown))[:, None], np.arange(self.grown.shape[1])[None, :]
        t = theta + self.count - n - 2 * j
        return float(np.vdot(self.grown, np.where(t <= -n, 2 * np.sinh(np.maximum(-t, 0.0) * self.epsilon / 2), 0.0)))


@lru_cache(maxsize=32)
def _known(flat: Flat, count: int, powers: int) -> _Known:
    chances = binomial(count, flat.odds)
    most = likely(chances)
    single, moments = single_moments(flat.epsilon / 2, powers), [np.eye(1, powers)[0]]
    for _ in range(most):
        moments.append(np.convolve(moments[-1], single)[:powers])
    inverse = 1 / (2 * (np.arange(1, max(most, 1) + 1)[:, None] + odd(powers)))
    weights = chances[: most + 1, None] * coins(count, most)
    grown = weights * (math.sinh(flat.epsilon / 2) / (flat.epsilon / 2)) ** np.arange(most + 1)[:, None]
    return _Known(count, flat.epsilon, weights, grown, shifted(np.stack(moments)), inverse)


def fits(flat: Flat, count: int) -> bool:
    """Whether doubles and a moment of time suffice."""
    return count <= MOST_COPIES and count * flat.epsilon <= WIDEST_SCALE
