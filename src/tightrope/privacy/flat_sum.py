"""A few copies of a Laplace-type loss, summed exactly: only positive terms (``docs/proofs/laplace-sum.md``).

Under the law tilted by e^{−l/2} such a loss is ±ε or uniform between. With n of k losses uniform, Y their sum in units
of ε, and θ = q/ε,
    δ₀(q) = m^k e^{q/2} Σ_n Bin(n) Σ_j Bin(j) H_n(θ + k − n − 2j),   H_n(t) = E 2 sinh(ε(Y − t)/2)₊.
H is Σ_p odd 2 S_{n,p}(t), S_{n,p} = (ε/2)^p E (Y − t)₊^p / p!, and divided differences of truncated powers give
    S_{n,p}(t) = ((n − t) S_{n−1,p}(t − 1) + (n + t) S_{n−1,p}(t + 1)) / (2(n + p)),
positive terms for |t| < n. For t ≤ −n a moment, for t ≥ n nothing. θ is rounded so that every t is exact.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import NamedTuple

import numpy as np
from scipy.special import gammaln

from tightrope.errors import PrecisionError
from tightrope.privacy.composition import Composition
from tightrope.privacy.interval import Engine, Interval, outward
from tightrope.privacy.law import Floats
from tightrope.privacy.saddle import Guess, guess

ROUND_OFF = 2.0**-53
EXACT = 2.0**42
"""θ is a multiple of one over this: with at most ``MOST`` copies every t has 53 binary digits."""
MOST = 500
WIDEST = 300.0
"""k ε beyond which powers leave double precision."""
FAINT = -44.0
"""Log of what the missing powers may add, relative to H."""
TINY = 1e-290


class Flat(NamedTuple):
    """A loss tilted by e^{−l/2}: ``atom`` at −ε and +ε each, ``spread`` uniformly between."""

    epsilon: float
    atom: float
    spread: float


@dataclass(frozen=True, slots=True, eq=False)
class FlatSum(Engine):
    """``count`` copies of a flat law; ``instead`` where double precision does not reach."""

    flat: Flat
    count: int
    total: Composition
    instead: Engine
    name = "exact sum"

    def delta(self, epsilon: float) -> Interval:
        infinite, slack = self.total.infinite_mass, self.total.slack + 4 * ROUND_OFF * abs(epsilon)
        if epsilon >= self.total.largest + slack:
            return self.total.infinite_bounds
        theta = (epsilon - slack) / self.flat.epsilon, (epsilon + slack) / self.flat.epsilon
        try:
            high, over = self._at(_below(theta[0]))
            low, under = self._at(-_below(-theta[1]))
        except PrecisionError:
            return self.instead.delta(epsilon)
        rest = self._infinite_error
        return outward(infinite + low, under + rest)[0], outward(infinite + high, over + rest)[1]

    def upper(self, epsilon: float) -> float:
        infinite, slack = self.total.infinite_mass, self.total.slack + 4 * ROUND_OFF * abs(epsilon)
        if epsilon >= self.total.largest + slack:
            return self.delta(epsilon)[1]
        try:
            high, over = self._at(_below((epsilon - slack) / self.flat.epsilon))
        except PrecisionError:
            return self.instead.upper(epsilon)
        return outward(infinite + high, over + self._infinite_error)[1]

    @property
    def _infinite_error(self) -> float:
        """Of the infinite mass, and of adding to it."""
        return self.total.infinite_bounds[1] - self.total.infinite_mass + 4 * ROUND_OFF * self.total.infinite_mass

    def guess(self, target: float) -> Guess | None:
        """From the saddle point."""
        rest = target - self.total.infinite_mass
        return guess(self._cumulant, math.log(rest)) if rest > 0 else None

    def _cumulant(self, c: Floats) -> Floats:
        """K on the real axis: log of m(c + ½)^k with m(w) = 2a cosh wε + b sinh(wε)/wε."""
        w = (c + 0.5) * self.flat.epsilon
        down = np.exp(-2 * w)
        inner = self.flat.atom * (1 + down) + self.flat.spread * (1 - down) / (2 * w)
        return np.asarray(self.count * (w + np.log(inner)))

    def _at(self, theta: float) -> tuple[float, float]:
        """δ₀ at θε and its error."""
        epsilon, k = self.flat.epsilon, self.count
        whole = 2 * self.flat.atom + self.flat.spread
        log_scale = k * math.log(whole) + theta * epsilon / 2
        powers = _powers(k * epsilon)
        chances, coins = _rows(k, self.flat.spread / whole)[k], _rows(k, 0.5)
        first = math.floor(-(theta + k) / 2) + 1  # the first l with θ + k − n + 2l > −n, whatever n
        total, largest = 0.0, 0.0
        for n, inside in enumerate(_levels(theta + k + 2 * first, k, epsilon, powers)):
            value = _mixed(inside, coins[k - n], theta + k - n, first, (n, epsilon))
            total += float(chances[n]) * value
            largest = max(largest, float(chances[n]))
        if not log_scale < 600 or not total > TINY * k * k * largest:
            raise PrecisionError(f"the sum of {k} losses leaves double precision at {theta * epsilon!r}")
        value = math.exp(log_scale) * total
        roundings = k * (len(powers) + 24) + 8 * len(powers) + 200 + 4 * abs(log_scale) + 4 * k * abs(math.log(whole))
        return value, value * roundings * ROUND_OFF


def _below(theta: float) -> float:
    """The nearest multiple of 1/``EXACT`` that is certainly no larger, the quotient having been rounded."""
    return math.floor((theta - 2 * ROUND_OFF * abs(theta)) * EXACT) / EXACT


@lru_cache(maxsize=64)
def _powers(reach: float) -> Floats:
    """Odd p up to where x^p/p! no longer counts beside x, for every x ≤ reach."""
    p = np.arange(1.0, 4 * reach + 60, 2)
    seen = p * math.log(max(reach, 1e-300)) - gammaln(p + 1) > FAINT + math.log(max(reach, 1e-300))
    return np.asarray(p[: max(2, int(np.count_nonzero(seen)) + 2)])


@lru_cache(maxsize=16)
def _rows(count: int, chance: float) -> tuple[Floats, ...]:
    """Binomial probabilities of 0..m among m trials, for m = 0..count, by adding one trial after the other."""
    rows = [np.ones(1)]
    for m in range(count):
        grown = np.zeros(m + 2)
        grown[:-1] = rows[m] * (1 - chance)
        grown[1:] += rows[m] * chance
        rows.append(grown)
    return tuple(rows)


def _levels(start: float, count: int, epsilon: float, powers: Floats) -> Iterator[Floats]:
    """H_n at t = start − n + 2i, i = 0..n−1, which are those in (−n, n], for n = 0..count.

    Below −n lies one more t that is needed: there S = Σ_r even E (εY/2)^r/r! · x^{p−r}/(p−r)! with x = −εt/2.
    """
    yield np.zeros(0)
    inside = np.zeros((0, len(powers)))
    moments = np.eye(1, len(powers))[0]  # E (εY/2)^r / r! for r = 0, 2, 4, …
    single = _over_factorials(epsilon / 2, powers)  # (ε/2)^r / (r+1)!
    for n in range(1, count + 1):
        t = (start - n) + 2 * np.arange(n)
        x = (1 - float(t[0])) * epsilon / 2
        outside = x * np.convolve(moments, _over_factorials(x, powers))[: len(powers)]
        below = np.vstack([outside, inside])
        above = np.vstack([inside, np.zeros(len(powers))])
        inside = ((n - t)[:, None] * below + (n + t)[:, None] * above) / (2 * (n + powers))
        moments = np.convolve(moments, single)[: len(powers)]
        yield 2 * np.sum(inside, axis=1)


def _over_factorials(x: float, powers: Floats) -> Floats:
    """x^{p−1}/p! for odd p: each from the one before."""
    return np.cumprod(np.concatenate([[1.0], x * x / (powers[1:] * (powers[1:] - 1))]))


def _mixed(inside: Floats, signs: Floats, top: float, first: int, uniform: tuple[int, float]) -> float:
    """Σ_j Bin(j) H_n(top − 2j): those inside, and those below −n in closed form."""
    n, epsilon = uniform
    j = -(first + np.arange(n))  # of the entries of ``inside``
    held = (j >= 0) & (j < len(signs))
    value = float(np.dot(signs[j[held]], inside[held]))
    beyond = np.arange(max(0, 1 - first), len(signs))
    if len(beyond):
        growth = math.sinh(epsilon / 2) / (epsilon / 2)
        value += growth**n * float(np.dot(signs[beyond], -2 * np.sinh((top - 2 * beyond) * epsilon / 2)))
    return value


def applies(flat: Flat | None, count: int) -> bool:
    """Whether the sum is worth its k² p steps."""
    return flat is not None and count <= MOST and count * flat.epsilon <= WIDEST
