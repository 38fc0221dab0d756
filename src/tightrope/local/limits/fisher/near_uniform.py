"""Limits on shares for δ > 0: van Trees around the uniform law, by the information there and how far it can rise.

The information about k frequencies at the uniform law has a trace of at most ``(k−1)(1−1/k) J(1/k)``; at laws within a
factor 1 ± r of it at most 1/(1 − r) times that (``docs/proofs/channels.md``).
"""

from __future__ import annotations

import math

import numpy as np
from scipy.special import jn_zeros

from tightrope.certificates.guarantee import Guarantee

WINDOWS: list[float] = np.linspace(0.01, 0.99, 99).tolist()
"""Shares of the largest prior that are tried: any prior gives a valid bound."""


def risk_near_uniform(guarantee: Guarantee, m: int, people: int, *, interactive: bool) -> float:
    """E Σ_j (p̂_j − p_j)² ≥ this, worst case over p on m values: two priors, the better one.

    A ball in all d = m − 1 directions at once; and, for people on their own, ⌊m/2⌋ pairs that trade mass independently,
    whose share of the trace is on average pairs/d.
    """
    trace, d, pairs = trace_of_information(guarantee, m), m - 1, m // 2
    ball = 4 * first_zero(d) ** 2 * m * d
    best = max(d * d / (people * trace / (1 - r) + ball / r**2) for r in WINDOWS)
    if interactive:
        return best
    return max(
        best,
        *(pairs / (people * trace / d / (1 - r) + math.pi**2 * m * m / (2 * r * r)) for r in WINDOWS),
    )


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

    ``(m − 1) J(1/m) (1 − 1/m)``.

    >>> round(trace_of_information(Guarantee(1.0), 2), 12) == round(2 * math.tanh(0.5) ** 2, 12)
    True
    """
    return (m - 1) * (1 - 1 / m) * fisher_information(guarantee, 1 / m)


def first_zero(d: int) -> float:
    """The first zero of the Bessel function of order d/2 − 1, or above it: the least informative prior on a ball.

    At even d by its name; at odd d that of the next order, and beyond order 1000 a bound: both are larger.

    >>> round(first_zero(2), 6)
    2.404826
    """
    order = (d - 1) // 2
    return float(jn_zeros(order, 1)[0]) if order <= 1000 else order + 2.0 * order ** (1 / 3) + 2.0
