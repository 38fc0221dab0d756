"""Bounds on private channels as papers print them, for comparison with the sharper ones of ``suprema``.

Each is for pure ε-LDP (δ = 0), and a true bound unless it says otherwise.
"""

from __future__ import annotations

import math
from itertools import combinations

import numpy as np
from numpy.typing import ArrayLike

from tightrope.channels.suprema import pure_epsilon
from tightrope.documents.budget import Guarantee
from tightrope.errors import InputError
from tightrope.numerics.checks import check_integer, check_non_negative, check_probability
from tightrope.numerics.distributions import normalize_distribution, normalize_stochastic_matrix
from tightrope.numerics.divergences import INFINITE_EPSILON

MAX_VALUES = 20
"""Largest number of values of which all subsets are searched."""


def jeffreys_by_duchi(epsilon: float, distance: float) -> float:
    """Return min(4, e^{2ε}) (e^ε − 1)² TV² ≥ KL(M₀‖M₁) + KL(M₁‖M₀) (Duchi, Jordan, Wainwright; GI-v1 Thm 6).

    >>> round(jeffreys_by_duchi(1.0, 0.5), 6)
    2.952492
    """
    at, t = check_non_negative("epsilon", epsilon), check_probability("distance", distance)
    return min(4.0, math.exp(2 * at)) * math.expm1(at) ** 2 * t * t


def binary_share(guarantee: Guarantee) -> float:
    """Return η/(2(e^ε−1)(e^{−ε}+1)), the fraction of the best KL that binary erasure has (GI eq. 41).

    >>> round(binary_share(Guarantee(1.0, 0.0, 0.3)), 4)
    0.0638
    """
    epsilon = pure_epsilon(guarantee)
    if epsilon == 0:
        return 1 / 8
    if epsilon > INFINITE_EPSILON:
        return 0.0
    return guarantee.total_variation / (2 * math.expm1(epsilon) * (math.exp(-epsilon) + 1))


def binary_share_pure(epsilon: float) -> float:
    """Return 1/(min(2, e^ε)(e^ε + 1)), this fraction without a limit on η (GI-v1, after Thm 7).

    >>> round(binary_share_pure(0.0), 6), binary_share_pure(1.0) > binary_share_by_kairouz(1.0)
    (0.5, True)
    """
    at = _check_moderate_epsilon(epsilon)
    return 1 / (min(2.0, math.exp(at)) * (math.exp(at) + 1))


def binary_share_by_kairouz(epsilon: float) -> float:
    """Return 1/(2(e^ε + 1)²), the first bound on this fraction (Kairouz, Oh, Viswanath; GI-v1).

    >>> binary_share_by_kairouz(0.0)
    0.125
    """
    return 1 / (2 * (math.exp(_check_moderate_epsilon(epsilon)) + 1) ** 2)


def information_by_duchi(epsilon: float, laws: ArrayLike, people: int = 1) -> float:
    """Return 4n(e^ε−1)² Σ_{v,w} TV(P_v, P_w)²/M² ≥ I(V; Zⁿ), V uniform over M distributions (AAC eq. 10).

    ``laws``: the distributions P_v, shape [M, values].

    The stored text of AAC lacks the symbols of (10); this is from the source that it cites.

    >>> round(information_by_duchi(1.0, [[1.0, 0.0], [0.0, 1.0]]), 6)
    5.904985
    """
    rows, count = normalize_stochastic_matrix(laws), check_integer("people", people)
    total = sum(float(np.abs(p - q).sum() / 2) ** 2 for p, q in combinations(rows, 2))
    return 4 * count * math.expm1(_check_moderate_epsilon(epsilon)) ** 2 * 2 * total / len(rows) ** 2


def information_by_kairouz(epsilon: float, prior: ArrayLike) -> float:
    """Return ½ P(T)(1 − P(T)) ε², T the set with P(T) nearest to ½: the largest I(X; Z) to leading order as ε → 0.

    Kairouz, Oh, Viswanath; AAC eq. 20. **Not a bound** at a given ε. Raises ``InputError`` above 20 values.

    >>> information_by_kairouz(0.1, [0.5, 0.5]) / 0.1**2
    0.125
    """
    weights = normalize_distribution("prior", prior)
    if not len(weights) <= MAX_VALUES:
        raise InputError("values of prior", len(weights), f"at most {MAX_VALUES}", "all subsets are searched")
    sums = np.zeros(1)
    for weight in weights.tolist():
        sums = np.concatenate([sums, sums + weight])
    half = float(sums[np.argmin(np.abs(sums - 0.5))])
    return half * (1 - half) * _check_moderate_epsilon(epsilon) ** 2 / 2


def _check_moderate_epsilon(epsilon: float) -> float:
    """Return an ε for which e^{2ε} is finite; raise ``InputError`` for others."""
    at = check_non_negative("epsilon", epsilon)
    if not at <= INFINITE_EPSILON / 2:
        raise InputError("epsilon", epsilon, f"at most {INFINITE_EPSILON / 2:g}", "no such bound is informative there")
    return at
