"""Upper bounds over all (ε, δ, η)-LDP channels: theorems of the papers as printed, and sharper ones.

Each function takes a ``Guarantee``; ``extremal`` has the channels that attain them. "Printed" is what a paper states,
for comparison; the others are at most as large, and proven in ``docs/proofs/channels.md``.
"""

from __future__ import annotations

import math

import numpy as np

from tightrope.documents.budget import Guarantee
from tightrope.errors import InputError
from tightrope.numerics.checks import check_integer, check_probability
from tightrope.numerics.divergences import CHI_SQUARED, INFINITE_EPSILON, Convex, Divergence, resolve_divergence

SUPREMUM_ROUNDING = 1 + 2e-15


def printed_contraction(guarantee: Guarantee, people: int = 1) -> float:
    """Return φ_n = 1 − e^{−nε}(1−δ)^n: contraction of f-divergences in n non-interactive reports (AAC Lemmas 1, 2).

    >>> round(printed_contraction(Guarantee(1.0, 0.05)), 6)
    0.650515
    """
    return _contraction_of_many(1 - math.exp(-guarantee.epsilon) * (1 - guarantee.delta), people)


def contraction(guarantee: Guarantee, people: int = 1) -> float:
    """Return 1 − (1−η)^n, the contraction of every f-divergence (ours, below φ_n); exact for total variation, n = 1.

    >>> round(contraction(Guarantee(1.0, 0.05, 0.3)), 6)
    0.3
    """
    return _contraction_of_many(guarantee.total_variation, people)


def kl_contraction(guarantee: Guarantee, people: int = 1) -> float:
    """Return 1 − (1−κ)^n, κ = δ + (η − δ) tanh(ε/2), the contraction of KL, χ² and Hellinger (ours; δ = 0: GI Thm 5).

    Exact at n = 1: attained by ``extremal.dominating_channel``.

    >>> round(kl_contraction(Guarantee(1.0, 0.05, 0.3)), 6)
    0.165529
    """
    delta, eta = guarantee.delta, guarantee.total_variation
    return _contraction_of_many(delta + (eta - delta) * math.tanh(guarantee.epsilon / 2), people)


def divergence_of_rows(f: str | Convex | Divergence, guarantee: Guarantee) -> float:
    """Return the largest D_f between two rows (GI Thm 4; for δ > 0 ours): ``extremal.dominating_channel`` attains it.

    ``(η−δ)(f(e^ε) + e^ε f(e^{−ε}))/(e^ε−1) + δ (f(0) + f'(∞))``. Raises ``InputError`` if δ > 0 and the limits of a
    function are not given.

    >>> round(divergence_of_rows("kl", Guarantee(1.0, 0.0, 0.3)), 12)  # εη
    0.3
    """
    divergence, delta = resolve_divergence(f), guarantee.delta
    rest = guarantee.total_variation - delta
    inner = rest * divergence.steepest_slope(guarantee.epsilon) if guarantee.epsilon > 0 and rest > 0 else 0.0
    return inner + divergence.disjoint_mass_term(delta, delta)


def between_outputs(guarantee: Guarantee, distance: float) -> Guarantee:
    """Return the triple of a report's two distributions if the inputs' have total variation ``distance`` = t (ours).

    ``(log(1 + t(e^ε − 1)), tδ, tη)``: the common part of the inputs acts like subsampling. All of ``kl_bound``,
    ``chi_squared`` and ``jeffreys_bound`` follow; tight for δ = 0, η ≤ (e^ε−1)/(e^ε+2):
    ``extremal.three_input_channel`` attains it. Raises ``InputError`` unless 0 ≤ t ≤ 1.

    >>> round(between_outputs(Guarantee(1.0, 0.0, 0.4), 0.25).epsilon, 9)
    0.35737402
    """
    t = check_probability("distance", distance)
    eta = min(1.0, t * guarantee.total_variation * SUPREMUM_ROUNDING)
    # log(1 + t(e^ε − 1)) to a few units in the last place, also for small t.
    if t == 0 or guarantee.epsilon == math.inf:
        mixed_epsilon = guarantee.epsilon if t > 0 else 0.0
    elif guarantee.epsilon <= INFINITE_EPSILON:
        mixed_epsilon = math.log1p(t * math.expm1(guarantee.epsilon))
    else:
        mixed_epsilon = float(np.logaddexp(0.0, guarantee.epsilon + math.log(t)))  # e^ε overflows: 1 − t is negligible
    return Guarantee(mixed_epsilon * SUPREMUM_ROUNDING, min(1.0, t * guarantee.delta * SUPREMUM_ROUNDING), eta)


def total_variation(guarantee: Guarantee, distance: float) -> float:
    """Return η TV(P₀, P₁) (GI Prop. 2), attained by ``extremal.binary_with_erasure``.

    >>> round(total_variation(Guarantee(1.0, 0.0, 0.3), 0.5), 12)
    0.15
    """
    return guarantee.total_variation * check_probability("distance", distance)


def kl_bound(guarantee: Guarantee, distance: float) -> float:
    """Return η t log(1 + t(e^ε − 1)) ≥ KL(M₀‖M₁), in either order, t = TV(P₀, P₁) (ours); ∞ where δ > 0 and t > 0.

    >>> round(kl_bound(Guarantee(1.0, 0.0, 0.3), 0.5), 9)
    0.093017176
    """
    return divergence_of_rows("kl", between_outputs(guarantee, distance))


def chi_squared(guarantee: Guarantee, distance: float) -> float:
    """Return η (e^ε−1)(1 + 1/(1 + t(e^ε−1))) t² ≥ χ²(M₀‖M₁) (ours), below 2η(e^ε−1)t²; ∞ where δ > 0 and t > 0.

    >>> 2 * 0.3 * math.expm1(1) * 0.25 > chi_squared(Guarantee(1.0, 0.0, 0.3), 0.5)
    True
    """
    return divergence_of_rows(CHI_SQUARED, between_outputs(guarantee, distance))


def jeffreys_bound(guarantee: Guarantee, distance: float) -> float:
    """Return 2 η t log(1 + t(e^ε−1)) ≥ KL(M₀‖M₁) + KL(M₁‖M₀) (ours), below 2η(e^ε−1)t².

    >>> jeffreys_bound(Guarantee(1.0), 0.5) < printed_jeffreys(Guarantee(1.0), 0.5)
    True
    """
    return 2 * kl_bound(guarantee, distance)


def printed_chi_squared(guarantee: Guarantee, distance: float) -> float:
    """Return 4η(e^ε−1)(e^{−ε}+1) TV² ≥ χ²(M₀‖M₁), δ = 0 (GI Thm 6)."""
    t, epsilon = check_probability("distance", distance), pure_epsilon(guarantee)
    return 4 * guarantee.total_variation * math.expm1(epsilon) * (math.exp(-epsilon) + 1) * t * t


def printed_jeffreys(guarantee: Guarantee, distance: float) -> float:
    """Return 2η min(2, e^ε)(e^ε−1) TV² ≥ KL(M₀‖M₁) + KL(M₁‖M₀), δ = 0 (GI-v1 Thm 7)."""
    t, epsilon = check_probability("distance", distance), pure_epsilon(guarantee)
    return 2 * guarantee.total_variation * min(2.0, math.exp(epsilon)) * math.expm1(epsilon) * t * t


def binary_share_of_best_kl(guarantee: Guarantee) -> float:
    """Return 2η/(e^ε−1), a fraction of the best KL divergence that binary randomized response with erasure reaches.

    Without a limit on η it is 2/(e^ε+1), nearly 1 at small ε; Kairouz, Oh, Viswanath: 1/(2(e^ε+1)²).

    >>> round(binary_share_of_best_kl(Guarantee(1.0)), 12) == round(2 / (math.e + 1), 12)
    True
    """
    epsilon = pure_epsilon(guarantee)
    if epsilon == 0:
        return 1.0
    return 0.0 if epsilon > INFINITE_EPSILON else 2 * guarantee.total_variation / math.expm1(epsilon)


def share_kept_by_erasure(guarantee: Guarantee) -> float:
    """Return η/tanh(ε/2), the fraction of the best ε-LDP channel's f-divergence that remains after erasures.

    The erasures make its total variation η (GI Thm 7); δ = 0.

    >>> round(share_kept_by_erasure(Guarantee(1.0, 0.0, 0.1)), 9)
    0.216395341
    """
    epsilon = pure_epsilon(guarantee)
    return 1.0 if epsilon == 0 else min(1.0, guarantee.total_variation / math.tanh(epsilon / 2))


def _contraction_of_many(contraction: float, people: int) -> float:
    """Return 1 − (1 − contraction)^n without cancellation."""
    count = check_integer("people", people)
    return 1.0 if contraction >= 1 else -math.expm1(count * math.log1p(-contraction))


def pure_epsilon(guarantee: Guarantee) -> float:
    """Return the ε of a guarantee; ``InputError`` unless δ = 0."""
    if guarantee.delta != 0:
        raise InputError("guarantee.delta", guarantee.delta, "0: this theorem is for pure local privacy")
    return guarantee.epsilon
