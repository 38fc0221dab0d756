"""Privacy regions as tests of two hypotheses (GI §II, Figs. 1–3), and their Gaussian limit (§V, App. B)."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import ndtr, ndtri

from tightrope import Bounds, Guarantee, PrivacyLoss, approx_dp, from_pair, gaussian, laplace
from tightrope.channels import Divergence, extremal
from tightrope.numerics.arrays import Floats
from tightrope.papers import instances
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

GI = "GI"
Triple = tuple[float, float, float]
TRIPLES: tuple[Triple, ...] = (
    (1.0, 0.0, 0.3),
    (0.5, 0.01, 0.2),
    (2.0, 0.05, 0.5),
    (1.0, 0.1, 0.1 + 0.9 * math.tanh(0.5)),
)
ALARMS, MISSED = "type-I error", "type-II error"
RATES = np.linspace(0.0, 1.0, 41).tolist()


@dataclass(frozen=True, slots=True)
class RandomTestPair:
    """A random pair of distributions, and an optimal test of p against q: it rejects p at the largest q/p.

    ``alarms`` and ``missed`` are its type-I and type-II errors.
    """

    p: list[float]
    q: list[float]
    alarms: float
    missed: float
    loss: PrivacyLoss
    bounds: Bounds
    """Bounds on the trade-off function at ``alarms``."""


@lru_cache(maxsize=2)
def random_test_pairs(effort: Effort) -> list[RandomTestPair]:
    """Return random pairs, about half of them symmetric, each with a random one of its Neyman–Pearson tests."""
    found = []
    for _ in range(effort.reduced_instances(0.5)):
        first, second = instances.random_distributions(2, instances.draw_integer(2, 5))
        p, q = first.tolist(), (first[::-1] if instances.draw_integer(0, 1) else second).tolist()
        ratios = [b / a for a, b in zip(p, q, strict=True)]
        order = sorted(range(len(p)), key=ratios.__getitem__, reverse=True)
        cut = instances.draw_integer(0, len(p))
        alarms, missed = min(1.0, sum(p[i] for i in order[:cut])), sum(q[i] for i in order[cut:])
        loss = from_pair(p, q).loss
        found.append(RandomTestPair(p, q, alarms, missed, loss, loss.tradeoff_bounds(alarms)))
    return found


def worst_theorem_1(effort: Effort) -> float:
    """Return 1 + the largest of 1 − δ − t − e^ε f(t) and 1 − δ − e^ε t − f(t), at most 0 where (ε, δ) holds."""
    found = []
    for one in random_test_pairs(effort):
        epsilon, t, f = instances.draw_between(0.0, 2.0), one.alarms, float(one.bounds.upper)
        delta = one.loss.delta(epsilon)
        found.append(1 - delta - max(t + math.exp(epsilon) * f, math.exp(epsilon) * t + f))
        found.append(1 - delta - min(t + math.exp(epsilon) * f, math.exp(epsilon) * t + f))
    return 1 + instances.worst_of(found)


def converse_theorem_1(effort: Effort) -> list[float]:
    """Return the δ that the trade-off function implies, max_t 1 − f(t) − e^ε t on a grid, divided by δ(ε)."""
    grid = np.linspace(0.0, 1.0, 101)
    ratios = []
    for triple in TRIPLES:
        loss = _triple_loss(triple)
        implied = float(np.max(1 - loss.tradeoff(grid) - math.exp(triple[0]) * grid))
        ratios.append(implied / loss.delta(triple[0]) if triple[1] else 1.0 + implied)
    return ratios


def by_subsets(p: list[float], q: list[float]) -> float:
    """Return sup_A P(A) − Q(A), by enumerating every A."""
    size = len(p)
    sets = [[i for i in range(size) if mask >> i & 1] for mask in range(2**size)]
    return max(sum(p[i] - q[i] for i in chosen) for chosen in sets)


def variation_pairs(effort: Effort) -> float:
    """Return the largest difference to Definition 3, from all subsets."""
    found = [abs(one.loss.total_variation() - by_subsets(one.p, one.q)) for one in random_test_pairs(effort)]
    return 1 + instances.worst_of(found)


def roc_by_tests(effort: Effort) -> float:
    """Return 1 + the largest difference of the trade-off function and the type-II error of the best tests.

    ``PrivacyLoss.tradeoff`` takes the worse order of a pair; for symmetric pairs both orders are equal.
    """
    symmetric = [one for one in random_test_pairs(effort) if one.p == one.q[::-1]]
    return 1 + instances.worst_of([abs(float(one.bounds.lower) - one.missed) for one in symmetric])


def largest_variation(effort: Effort) -> list[float]:
    """Return the largest η that (ε, δ) allows."""
    return [Guarantee(epsilon, delta).total_variation for epsilon, delta, _ in TRIPLES]


def corollary_1(triple: Triple, t: float) -> float:
    """Return the trade-off function of (ε, δ, η)."""
    epsilon, delta, eta = triple
    return max(0.0, 1 - delta - math.exp(epsilon) * t, math.exp(-epsilon) * (1 - delta - t), 1 - eta - t)


def laplace_tradeoff(epsilon: float, t: float) -> float:
    """Return the exact trade-off function of the Laplace distribution, in green in Figure 3."""
    if t <= math.exp(-epsilon) / 2:
        return 1 - math.exp(epsilon) * t
    return math.exp(-epsilon) / (4 * t) if t <= 0.5 else math.exp(-epsilon) * (1 - t)


def _triple_loss(triple: Triple) -> PrivacyLoss:
    epsilon, delta, eta = triple
    return approx_dp(epsilon, delta=delta, total_variation=eta).loss


def tradeoff_line(name: str, loss: PrivacyLoss) -> Line:
    """Return a trade-off function as a line."""
    rates = np.unique([*RATES, *np.linspace(0, 0.3, 61)])
    return Line(name, rates.tolist(), loss.tradeoff(rates).tolist())


def draw_region(effort: Effort) -> list[Drawing]:
    """Draw Figure 1."""
    line = tradeoff_line("(1, 0.05)-DP", approx_dp(1.0, delta=0.05).loss)
    return [Panel("GI Fig. 1: region of (ε, δ)-DP, ε = 1, δ = 0.05", ALARMS, MISSED, [line])]


def draw_sliced(effort: Effort) -> list[Drawing]:
    """Draw Figure 2: the same region, with a slice cut off by the total variation."""
    lines = [
        tradeoff_line("with total variation 0.3", approx_dp(1.0, delta=0.05, total_variation=0.3).loss),
        tradeoff_line("(1, 0.05)-DP alone", approx_dp(1.0, delta=0.05).loss),
    ]
    return [Panel("GI Fig. 2: region of (ε, δ)-DP and η-TV", ALARMS, MISSED, lines)]


def draw_laplace(effort: Effort) -> list[Drawing]:
    """Draw Figure 3."""
    eta = 1 - math.exp(-0.5)
    lines = [
        tradeoff_line("Laplace, exact", laplace(scale=1).loss),
        tradeoff_line("ε-DP", approx_dp(1.0).loss),
        Line("total variation of Laplace", RATES, [max(0.0, 1 - eta - t) for t in RATES]),
    ]
    return [Panel("GI Fig. 3: Laplace noise and its two constraints, ε = 1", ALARMS, MISSED, lines)]


items = (
    Item(
        GI,
        "Theorem 1 (and Definition 1)",
        "(ε, δ)-DP is two half-planes for the trade-off function: largest violation over random pairs, added to 1",
        "from_pair(...).loss.delta, .tradeoff",
        worst_theorem_1,
        printed_number(1.0),
        bound_holds(),
    ),
    Item(
        GI,
        "Theorem 1, converse",
        "the δ that the trade-off function implies is δ(ε) again, for four triples",
        "approx_dp(...).loss.tradeoff, .delta",
        converse_theorem_1,
        printed_number(1.0),
        agrees_to_digits(6),
    ),
    Item(
        GI,
        "Figure 1",
        "lower left corner of the region of (1, 0.05)-DP: both errors (1 − δ)/(1 + e^ε)",
        "approx_dp(1, delta=.05).loss.tradeoff",
        lambda effort: approx_dp(1.0, delta=0.05).loss.tradeoff(0.95 / (1 + math.e)),
        printed_number(0.95 / (1 + math.e)),
        agrees_to_digits(9),
        draw_region,
    ),
    Item(
        GI,
        "Definition 2 (ROC)",
        "the best tests of random pairs lie on the trade-off function: largest distance, added to 1",
        "from_pair(...).loss.tradeoff",
        roc_by_tests,
        printed_number(1.0),
        agrees_to_digits(9),
    ),
    Item(
        GI,
        "Definitions 3 and 4",
        "total variation is the supremum over all sets: largest difference over random pairs, added to 1",
        "from_pair(...).loss.total_variation",
        variation_pairs,
        printed_number(1.0),
        agrees_to_digits(9),
    ),
    Item(
        GI,
        "Corollary 1",
        "trade-off function of (ε, δ) with η-TV: four triples at 41 error rates",
        "approx_dp(...).loss.tradeoff",
        lambda effort: [float(f) for one in TRIPLES for f in _triple_loss(one).tradeoff(np.array(RATES))],
        lambda effort: [corollary_1(one, t) for one in TRIPLES for t in RATES],
        agrees_to_digits(9),
    ),
    Item(
        GI,
        "Remark 1",
        "the largest η that (ε, δ) allows",
        "Guarantee(epsilon, delta).total_variation",
        largest_variation,
        lambda effort: [1 - 2 * (1 - d) / (1 + math.exp(e)) for e, d, _ in TRIPLES],
        agrees_to_digits(12),
    ),
    Item(
        GI,
        "Figure 2",
        "the slice: the sum of both errors on the new edge is 1 − η = 0.7",
        "approx_dp(1, delta=.05, total_variation=.3).loss.tradeoff",
        lambda effort: 0.35 + approx_dp(1.0, delta=0.05, total_variation=0.3).loss.tradeoff(0.35),
        printed_number(0.7),
        agrees_to_digits(9),
        draw_sliced,
    ),
    Item(
        GI,
        "Figure 3",
        "exact trade-off function of Laplace noise at ε = 1; at even errors it touches its total variation",
        "laplace(scale=1).loss.tradeoff",
        lambda effort: [
            *laplace(scale=1).loss.tradeoff(np.array(RATES)).tolist(),
            laplace(scale=1).loss.tradeoff(math.exp(-0.5) / 2),
        ],
        lambda effort: [*(laplace_tradeoff(1.0, t) for t in RATES), math.exp(-0.5) / 2],
        agrees_to_digits(9),
        draw_laplace,
    ),
)


# Many small releases look Gaussian (GI §V, App. B).

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


limit_items = (
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
