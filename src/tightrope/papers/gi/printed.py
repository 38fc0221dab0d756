"""The formulas of the paper, implemented from its text."""

from __future__ import annotations

import math
from itertools import product

GI = "GI"
Triple = tuple[float, float, float]
TRIPLES: tuple[Triple, ...] = (
    (1.0, 0.0, 0.3),
    (0.5, 0.01, 0.2),
    (2.0, 0.05, 0.5),
    (1.0, 0.1, 0.1 + 0.9 * math.tanh(0.5)),
)
ETA = 0.7 * math.tanh(0.5)
"""The total variation of Figure 4: α = 0.3 at ε = 1."""


def corollary_1(triple: Triple, t: float) -> float:
    """Return the trade-off function of (ε, δ, η)."""
    epsilon, delta, eta = triple
    return max(0.0, 1 - delta - math.exp(epsilon) * t, math.exp(-epsilon) * (1 - delta - t), 1 - eta - t)


def silent_mass(triple: Triple) -> float:
    """Return α: the mass of the dominating mechanism on the output that is equally likely for both inputs."""
    epsilon, delta, eta = triple
    return 1 - (eta - delta) * (1 + math.exp(epsilon)) / ((1 - delta) * math.expm1(epsilon))


def theorem_2(triple: Triple, k: int, j: int) -> float:
    """Return 1 − (1−δ)^k (1 − δ_j), with δ_j from (5)."""
    epsilon, delta, _ = triple
    alpha = silent_mass(triple)
    share = (1 - alpha) / (1 + math.exp(epsilon))
    inner = sum(
        math.comb(k, a)
        * math.comb(k - a, n)
        * share ** (k - a)
        * alpha**a
        * (math.exp((k - n - a) * epsilon) - math.exp((n + j) * epsilon))
        for a in range(k - j)
        for n in range(math.ceil((k - j - a) / 2))
    )
    return 1 - (1 - delta) ** k * (1 - inner)


def kairouz_bound(epsilon: float, k: int, j: int) -> float:
    """Return (6), for δ = 0 and j of the parity of k."""
    terms = (math.comb(k, n) * (math.exp((k - n) * epsilon) - math.exp((n + j) * epsilon)) for n in range((k - j) // 2))
    return sum(terms) / (1 + math.exp(epsilon)) ** k


def laplace_tradeoff(epsilon: float, t: float) -> float:
    """Return the exact trade-off function of the Laplace distribution, in green in Figure 3."""
    if t <= math.exp(-epsilon) / 2:
        return 1 - math.exp(epsilon) * t
    return math.exp(-epsilon) / (4 * t) if t <= 0.5 else math.exp(-epsilon) * (1 - t)


def staircase_variation(epsilon: float, gamma: float) -> float:
    """Return the total variation of the staircase distribution (VI-C)."""
    b = math.exp(-epsilon)
    below = 2 * (gamma + b * (1 - gamma))
    return (1 - b) * (2 * gamma * (1 - b) + b) / below if gamma < 0.5 else (1 - b) / below


STAIRCASES = tuple(product((0.3, 1.0, 2.5), (0.0, 0.0139, 0.2, 0.377, 0.5, 0.8, 1.0)))
