"""Limits on squared error with the right constant: Fisher information that private reports can carry, van Trees.

The Fisher information of a private report about a proportion is at most ``LC_θ/(θ(1−θ))``, and about k frequencies it
has a trace of at most ``k max_d s(1−s)(e^ε−1)²/(1+s(e^ε−1))²``, s = d/k (``docs/proofs/channels.md``): the first is
reached by randomised response, the second by subset selection.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from scipy.special import jn_zeros

from tightrope.certificates.guarantee import Guarantee
from tightrope.local.limits.limit import Limit, falls_to
from tightrope.numerics.checks import positive, whole

WINDOWS = np.linspace(0.01, 0.99, 99)
"""Shares of the largest prior that are tried: any prior gives a valid bound."""


@dataclass(frozen=True, slots=True)
class ProportionLimit(Limit):
    """E (θ̂ − θ)² for a proportion in [0, 1], hence for the mean of values in [0, 1]; times ``width``² for others.

    ``1/(n J(½ + w) + π²/w²)`` with the prior cos² on ½ ± w (van Trees), ``J(θ)`` the largest Fisher information of one
    report, convex in θ and symmetric, so largest at the ends of the window; the best w ≤ ½ is taken. Sequentially
    interactive mechanisms are covered: the Fisher information of reports adds up, conditionally on earlier ones.
    """

    guarantee: Guarantee
    width: float = 1.0

    def __post_init__(self) -> None:
        positive("width", self.width)

    def risk(self, people: int) -> float:
        count = whole("people", people)
        windows = (WINDOWS / 2).tolist()
        best = max(1 / (count * fisher_information(self.guarantee, 0.5 + w) + (math.pi / w) ** 2) for w in windows)
        return falls_to(best * self.width**2)


@dataclass(frozen=True, slots=True)
class FrequenciesLimit(Limit):
    """E Σ_j (p̂_j − p_j)² over k frequencies, worst case over p: the best over m ≤ k of a bound for m of them.

    Van Trees around the uniform law with ``n Tr / (1 − r)`` for laws within a factor 1 ± r of it; two priors: pairs of
    frequencies that trade mass independently, and a ball in all m − 1 directions at once. Non-interactive mechanisms.
    """

    guarantee: Guarantee
    k: int

    def __post_init__(self) -> None:
        whole("k", self.k, at_least=2, remedy="k is the number of values")

    def risk(self, people: int) -> float:
        count = whole("people", people)
        sizes = sorted({self.k, *(m for m in np.unique(np.geomspace(2, self.k, 60).astype(int)).tolist())})
        return falls_to(max(self._of(m, count) for m in sizes))

    def _of(self, m: int, people: int) -> float:
        """For m values: d = m − 1 dimensions, or ⌊m/2⌋ pairs, whose share of the trace is on average d′/d."""
        trace, d, pairs = trace_of_information(self.guarantee, m), m - 1, m // 2
        ball = 4 * first_zero(d) ** 2 * m * d
        best = 0.0
        for r in WINDOWS.tolist():
            all_at_once = d * d / (people * trace / (1 - r) + ball / r**2)
            traded = pairs / (people * trace / d / (1 - r) + math.pi**2 * m * m / (2 * r * r))
            best = max(best, all_at_once, traded)
        return best


def fisher_information(guarantee: Guarantee, theta: float) -> float:
    """J(θ) = Σ (p − q)²/(θp + (1−θ)q) of the dominating pair: the most one report can say of a proportion.

    ``δ/θ + δ/(1−θ) + (η−δ)(e^ε−1)(1/(1+θ(e^ε−1)) + 1/(1+(1−θ)(e^ε−1)))``.

    >>> round(fisher_information(Guarantee(1.0), 0.5), 12) == round(4 * math.tanh(0.5) ** 2, 12)
    True
    """
    exclusive = guarantee.delta / theta + guarantee.delta / (1 - theta)
    shrunk = math.exp(-guarantee.epsilon)
    sides = sum(-math.expm1(-guarantee.epsilon) / (share + (1 - share) * shrunk) for share in (theta, 1 - theta))
    return exclusive + (guarantee.total_variation - guarantee.delta) * sides


def trace_of_information(guarantee: Guarantee, m: int) -> float:
    """An upper bound on Σ_x χ²(K(x)‖K̄), K̄ the average of m rows: m − 1 directions at the uniform law.

    ``(m − 1) J(1/m) (1 − 1/m)``; for δ = 0 also ``m max_d s(1−s)(e^ε−1)²/(1+s(e^ε−1))²``, s = d/m: the less of the two.

    >>> round(trace_of_information(Guarantee(1.0), 2), 12) == round(2 * math.tanh(0.5) ** 2, 12)
    True
    """
    general = (m - 1) * (1 - 1 / m) * fisher_information(guarantee, 1 / m)
    if guarantee.delta > 0 or guarantee.epsilon > 300:
        return general
    growth = math.expm1(guarantee.epsilon)
    best = min(max(1, round(m / (1 + math.exp(guarantee.epsilon)))), m - 1)
    shares = np.clip(np.array([best - 1, best, best + 1]), 1, m - 1) / m
    return min(general, m * float(np.max(shares * (1 - shares) * growth**2 / (1 + shares * growth) ** 2)))


def first_zero(d: int) -> float:
    """The first zero of the Bessel function of order d/2 − 1, or above it: the least informative prior on a ball.

    At even d by its name; at odd d that of the next order, and beyond order 1000 a bound: both are larger.

    >>> round(first_zero(2), 6)
    2.404826
    """
    order = (d - 1) // 2
    return float(jn_zeros(order, 1)[0]) if order <= 1000 else order + 2.0 * order ** (1 / 3) + 2.0
