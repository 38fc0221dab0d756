"""Many small releases look Gaussian (GI §V, App. B)."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import ndtr, ndtri

from tightrope import Guarantee, PrivacyLoss, approx_dp, from_pair, gaussian
from tightrope.channels import Divergence, extremal
from tightrope.numerics.arrays import Floats
from tightrope.papers import instances
from tightrope.papers.gi.printed import GI
from tightrope.papers.gi.regions import ALARMS, MISSED, RATES, tradeoff_line
from tightrope.papers.item import (
    Effort,
    Item,
    agrees_to_digits,
    agrees_within,
    bound_holds,
    paper_is_wrong,
    printed_number,
)
from tightrope.reporting.charts.panels import Drawing, Line, Panel

EPSILON_AND_ETA = ((1.0, 0.3), (0.5, 0.2), (2.0, 0.7))
"""(ε, η)."""


def many_releases(n: int, mu: float = 1.0, c0: float = 2.0) -> PrivacyLoss:
    """Return the loss of n releases with ε = μ/√n and η = ε/c₀ (for c₀ = 2 its largest value)."""
    epsilon = mu / math.sqrt(n)
    return n * approx_dp(epsilon, total_variation=epsilon / c0).loss


def distance_to_gaussian(n: int) -> float:
    """Return the maximum of |f_n − G_1| over a grid."""
    rates = np.array(RATES[1:-1:4])
    return float(np.max(np.abs(many_releases(n).tradeoff(rates) - gaussian_tradeoff(1.0, rates))))


def gaussian_tradeoff(mu: float, rates: ArrayLike) -> Floats:
    """Return G_μ by its definition (12)."""
    return np.asarray(ndtr(ndtri(1 - np.asarray(rates)) - mu))


def schedule_mu(n: int, c1: float) -> float:
    """Return μ of the Gaussian limit of n releases with ε = n^{−c₁}, η = n^{c₁−1}/2."""
    return (n * approx_dp(n**-c1, total_variation=n ** (c1 - 1) / 2).loss).gaussian_limit().mu


def loss_moment(power: int, epsilon: float, eta: float) -> float:
    """Return E_Q |log dP/dQ|^power of the dominating pair."""
    f = Divergence("moment", lambda t: abs(math.log(t)) ** power, at_zero=0.0, slope=0.0)
    return extremal.dominating_channel(Guarantee(epsilon, 0.0, eta)).output_divergence(f, [1.0, 0.0], [0.0, 1.0])


def largest_adaptive_excess(effort: Effort) -> float:
    """Return 1 + the largest excess over Theorem 2 of two mechanisms, the second adaptive (Remark 4)."""
    differences = []
    for _ in range(effort.reduced_instances(0.5)):
        triple = instances.random_guarantee(pure=True)
        first = instances.random_private_channel(triple, 2, 2).matrix
        second = [instances.random_private_channel(triple, 2, 3).matrix for _ in range(2)]
        joint = [np.concatenate([first[b, y] * second[y][b] for y in (0, 1)]) for b in (0, 1)]
        epsilon = instances.draw_between(0.0, 1.9 * triple.epsilon)
        bound = 2 * approx_dp(triple.epsilon, total_variation=triple.total_variation).loss
        differences.append(float(from_pair(*joint).loss.delta_bounds(epsilon).lower) - bound.delta(epsilon))
    return 1 + instances.worst_of(differences)


def outside_bracket(n: int) -> float:
    """Return the largest distance of the exact curve outside the bracket."""
    rates = np.array(RATES[1:-1:4])
    loss = many_releases(n)
    bounds, exact = loss.gaussian_limit().tradeoff_bounds(rates), loss.tradeoff(rates)
    return float(np.max(np.maximum(bounds.lower - exact, exact - bounds.upper)))


def draw_convergence(effort: Effort) -> list[Drawing]:
    """Return the convergence of Theorem 3."""
    lines = [tradeoff_line(f"{n} releases", many_releases(n)) for n in (1, 3, 10)]
    lines.append(Line("Gaussian limit", RATES, gaussian_tradeoff(1.0, RATES).tolist()))
    return [Panel("GI Theorem 3: releases of ε = 1/√n near their limit", ALARMS, MISSED, lines)]


def draw_rate(effort: Effort) -> list[Drawing]:
    """Draw the rate of convergence."""
    counts = [10, 100, 1000] if effort.coarse else [10, 30, 100, 300, 1000, 3000, 10_000]
    lines = [Line("largest distance to the limit", counts, [distance_to_gaussian(n) for n in counts], "points")]
    return [Panel("GI Theorem 3: distance to the limit", "releases n", "sup |f_n − G|", lines, log_x=True, log_y=True)]


items = (
    Item(
        GI,
        "Definition 5 and equation (12)",
        "the trade-off function of two normal laws, three values of μ",
        "gaussian(scale=1/mu).loss.tradeoff",
        lambda effort: [
            float(gaussian(scale=1 / mu).loss.tradeoff(t)) for mu in (0.5, 1.0, 2.0) for t in RATES[1:-1:5]
        ],
        lambda effort: [float(gaussian_tradeoff(mu, t)) for mu in (0.5, 1.0, 2.0) for t in RATES[1:-1:5]],
        agrees_to_digits(8),
    ),
    Item(
        GI,
        "Theorem 3",
        "the largest distance between f_n and its Gaussian limit tends to 0: here at n = 10 000",
        "(n * approx_dp(...).loss).tradeoff",
        lambda effort: distance_to_gaussian(10_000),
        printed_number(0.0),
        agrees_within(1e-4),
        draw_convergence,
    ),
    Item(
        GI,
        "Theorem 3, at a given n",
        "the Berry-Esseen bracket around the limit holds the exact curve: violations at n = 10 000, added to 1",
        "(n * approx_dp(...).loss).gaussian_limit().tradeoff_bounds",
        lambda effort: 1 + outside_bracket(10_000),
        printed_number(1.0),
        bound_holds(),
        draw_rate,
    ),
    Item(
        GI,
        "Remark on c₀",
        "with η = ε/c₀ the limit has μ√(2/c₀): c₀ = 4 and 8, n = 10⁶",
        "(n * approx_dp(...).loss).gaussian_limit().mu",
        lambda effort: [many_releases(10**6, c0=c0).gaussian_limit().mu for c0 in (4.0, 8.0)],
        lambda effort: [math.sqrt(2 / c0) for c0 in (4.0, 8.0)],
        agrees_within(1e-4),
    ),
    Item(
        GI,
        "Schedule with c₁",
        "ε as slow as n^(-c₁) with η = n^(c₁-1)/2 has the limit μ = 1: c₁ = 0.25 and 0.4 at n = 10⁶",
        "(n * approx_dp(...).loss).gaussian_limit().mu",
        lambda effort: [schedule_mu(10**6, c1) for c1 in (0.25, 0.4)],
        printed_number(1.0),
        agrees_within(1e-3),
    ),
    Item(
        GI,
        "Erasure",
        "an output erased with probability δ' has 1 − δ' of the total variation",
        "approx_dp(...).loss.erase(.3).total_variation()",
        lambda effort: [
            approx_dp(e, total_variation=eta).loss.erase(0.3).total_variation() for e, eta in EPSILON_AND_ETA
        ],
        lambda effort: [0.7 * min(eta, math.tanh(e / 2)) for e, eta in EPSILON_AND_ETA],
        agrees_to_digits(9),
    ),
    Item(
        GI,
        "Remark 4",
        "mechanisms chosen after the first output stay within the composition: largest excess, added to 1",
        "from_pair(...).loss, 2 * approx_dp(...).loss",
        largest_adaptive_excess,
        printed_number(1.0),
        bound_holds(),
    ),
    Item(
        GI,
        "Appendix B: kl, κ₂, κ₃",
        "first three moments of the loss of (ε, 0, η): εη, ηε² coth(ε/2), ηε³ coth(ε/2)",
        "extremal.dominating_channel(...).output_divergence",
        lambda effort: [
            value for e, eta in EPSILON_AND_ETA
            for value in (
                extremal.dominating_channel(Guarantee(e, 0.0, eta)).output_divergence("kl", [1.0, 0.0], [0.0, 1.0]),
                loss_moment(2, e, eta), loss_moment(3, e, eta),
            )
        ],
        lambda effort: [
            value for e, eta in EPSILON_AND_ETA
            for value in (
                e * min(eta, math.tanh(e / 2)),
                *(min(eta, math.tanh(e / 2)) * e**power / math.tanh(e / 2) for power in (2, 3)),
            )
        ],
        agrees_to_digits(9),
    ),
    Item(
        GI,
        "Appendix B: the kink",
        "where the last piece of the trade-off function begins, ε = 1, η = 0.3",
        "approx_dp(1, total_variation=.3).loss.tradeoff",
        lambda effort: approx_dp(1.0, total_variation=0.3).loss.tradeoff(0.3 / math.expm1(1)),
        lambda effort: 1 - 0.3 * math.e / (math.e + 1),
        paper_is_wrong("the denominator is e^ε − 1, not e^ε + 1"),
    ),
)  # fmt: skip
