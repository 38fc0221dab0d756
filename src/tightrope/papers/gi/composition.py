"""Composition of (ε, δ, η) (GI Thm 2, §III, App. A, Fig. 4), and of noisy gradient descent (§VI-D, Fig. 5)."""

from __future__ import annotations

import math
from functools import lru_cache

import numpy as np
from scipy.special import ndtr, ndtri

from tightrope import Guarantee, PrivacyLoss, approx_dp, from_pair, gaussian
from tightrope.channels import extremal
from tightrope.noise.calibrate import DpSgd
from tightrope.papers import instances
from tightrope.papers.gi.regions import ALARMS, GI, MISSED, TRIPLES, Triple, tradeoff_line
from tightrope.papers.item import (
    Effort,
    Item,
    agrees_to_digits,
    agrees_within,
    bound_holds,
    printed_number,
    sharper_bound,
)
from tightrope.reporting.charts.panels import Drawing, Line, Panel

ETA = 0.7 * math.tanh(0.5)
"""The total variation of Figure 4: α = 0.3 at ε = 1."""
COUNTS = (1, 2, 3, 5, 8, 12)
BLUE, RED = (1, 3, 5), (0, 2, 4)
"""Figure 4b: the j of the parity of k = 5, and the others."""


def silent_mass(triple: Triple) -> float:
    """Return α: the mass of the dominating mechanism on the output that is equally likely for both inputs."""
    epsilon, delta, eta = triple
    return 1 - (eta - delta) * (1 + math.exp(epsilon)) / ((1 - delta) * math.expm1(epsilon))


def theorem_2_delta(triple: Triple, k: int, j: int) -> float:
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


def compose_triple(triple: Triple, k: int) -> PrivacyLoss:
    """Return the loss of k releases, each (ε, δ, η)."""
    epsilon, delta, eta = triple
    return k * approx_dp(epsilon, delta=delta, total_variation=eta).loss


def theorem_2(effort: Effort) -> list[float]:
    """Return δ(jε) for every j, of four triples and six k."""
    return [
        float(value)
        for triple in TRIPLES
        for k in COUNTS
        for value in compose_triple(triple, k).delta(np.arange(k + 1.0) * triple[0])
    ]


def printed_theorem_2(effort: Effort) -> list[float]:
    """Return the same δ(jε) by (5)."""
    return [theorem_2_delta(triple, k, j) for triple in TRIPLES for k in COUNTS for j in range(k + 1)]


def adaptive_excess(effort: Effort) -> float:
    """Return 1 + the largest excess over Theorem 2 of the δ of composed random mechanisms within a triple."""
    excesses = []
    for _ in range(effort.reduced_instances(0.5)):
        triple = instances.random_guarantee(pure=True)
        rows = [instances.random_private_channel(triple, 2, 3).matrix for _ in range(3)]
        composed = sum((from_pair(p, q).loss for p, q in rows[1:]), from_pair(*rows[0]).loss)
        epsilon = instances.draw_between(0.0, 2 * triple.epsilon)
        bound = compose_triple((triple.epsilon, 0.0, triple.total_variation), 3)
        excesses.append(float(composed.delta_bounds(epsilon).lower) - bound.delta(epsilon))
    return 1 + instances.worst_of(excesses)


def dominating_pair(effort: Effort) -> list[float]:
    """Return the rows of the dominating channel of four triples."""
    return [
        float(value) for epsilon, delta, eta in TRIPLES
        for value in extremal.dominating_channel(Guarantee(epsilon, delta, eta)).matrix.ravel()
    ]  # fmt: skip


def printed_pair(effort: Effort) -> list[float]:
    """Return the same rows by (43) and (44)."""
    values = []
    for triple in TRIPLES:
        epsilon, delta, _ = triple
        alpha = silent_mass(triple)
        low = (1 - delta) * (1 - alpha) / (1 + math.exp(epsilon))
        row = [delta, low * math.exp(epsilon), alpha * (1 - delta), low, 0.0]
        values += [*row, *row[::-1]]
    return values


def profile_bends(effort: Effort) -> list[float]:
    """Return where the profile of 5 releases bends, in units of ε (Remark 3): from its second differences."""
    loss, step = compose_triple((1.0, 0.0, ETA), 5), 1 / 16
    gammas = np.exp(np.arange(0.0, 5.0, step))
    values = loss.delta(np.log(gammas))
    slope = np.diff(values) / np.diff(gammas)
    bends = np.abs(np.diff(slope)) > 1e-9
    return [float(np.log(gammas[1:-1][at])) for at in np.flatnonzero(bends)]


def draw_one(effort: Effort) -> list[Drawing]:
    """Draw Figure 4a."""
    return [Panel("GI Fig. 4a: one release, ε = 1, α = 0.3", ALARMS, MISSED, _half_plane_lines(1))]


def draw_five(effort: Effort) -> list[Drawing]:
    """Draw Figure 4b: with the j of the parity of k alone, and with all."""
    rates, same_parity = np.linspace(0, 1, 121).tolist(), []
    for t in rates:
        half_planes = [0.0]
        for j in BLUE:
            delta = theorem_2_delta((1.0, 0.0, ETA), 5, j)
            half_planes += [1 - delta - math.exp(j) * t, math.exp(-j) * (1 - delta - t)]
        same_parity.append(max(half_planes))
    lines = [*_half_plane_lines(5), Line("Theorem 2, j = 1, 3, 5 alone", rates, same_parity)]
    return [Panel("GI Fig. 4b: five releases, ε = 1, α = 0.3", ALARMS, MISSED, lines)]


def _half_plane_lines(k: int) -> list[Line]:
    return [
        tradeoff_line("with total variation (Theorem 2)", compose_triple((1.0, 0.0, ETA), k)),
        tradeoff_line("ε-DP alone (6)", k * approx_dp(1.0).loss),
    ]


def bayes_security(effort: Effort) -> list[float]:
    """Return the Bayes security of k releases of which only the total variation η is known."""
    return [(k * approx_dp(0.0, delta=eta).loss).bayes_security() for eta in (0.1, 0.3) for k in (1, 4, 10)]


items = (
    Item(
        GI,
        "Theorem 2",
        "δ(jε) of k composed (ε, δ, η), every j: four triples, k up to 12",
        "k * approx_dp(...).loss.delta",
        theorem_2,
        printed_theorem_2,
        agrees_to_digits(9),
    ),
    Item(
        GI,
        "Theorem 2, converse",
        "no random mechanisms within the triple compose to more: largest excess of three of them, added to 1",
        "from_pair(...).loss + ..., approx_dp",
        adaptive_excess,
        printed_number(1.0),
        bound_holds(),
    ),
    Item(
        GI,
        "Equation (6), Kairouz-Oh-Viswanath",
        "five ε-DP releases at ε = 1: δ_1 and δ_3",
        "(5 * approx_dp(1).loss).delta",
        lambda effort: (5 * approx_dp(1.0).loss).delta(np.array([1.0, 3.0])).tolist(),
        lambda effort: [kairouz_bound(1.0, 5, j) for j in (1, 3)],
        agrees_to_digits(9),
    ),
    Item(
        GI,
        "Figure 4a",
        "one release, α = 0.3: corner of the region at error η/(e − 1)",
        "approx_dp(1, total_variation=.7 tanh(.5)).loss.tradeoff",
        lambda effort: compose_triple((1.0, 0.0, ETA), 1).tradeoff(ETA / math.expm1(1)),
        lambda effort: 1 - ETA * math.e / math.expm1(1),
        agrees_to_digits(9),
        draw_one,
    ),
    Item(
        GI,
        "Figure 4b",
        "five releases: δ_0, ..., δ_5 of Theorem 2, both parities",
        "(5 * approx_dp(1, total_variation=...).loss).delta",
        lambda effort: compose_triple((1.0, 0.0, ETA), 5).delta(np.arange(6.0)).tolist(),
        printed_number(0.6310896749, 0.4326929785, 0.2393449491, 0.09537256592, 0.02218456943, 0.0),
        agrees_to_digits(9),
        draw_five,
    ),
    Item(
        GI,
        "Figure 4b, same parity",
        "the claim that Theorem 2 improves on (6) even at the j of the parity of k",
        "(5 * approx_dp(...).loss).delta",
        lambda effort: compose_triple((1.0, 0.0, ETA), 5).delta(np.array([1.0, 3.0])).tolist(),
        lambda effort: [kairouz_bound(1.0, 5, j) for j in (1, 3)],
        sharper_bound(),
    ),
    Item(
        GI,
        "Remark 2",
        "a total variation at its largest for ε adds nothing: Theorem 2 is (6) there, six values of j",
        "approx_dp(eps, total_variation=tanh(eps/2))",
        lambda effort: [
            compose_triple((math.log((1 + eta) / (1 - eta)), 0.0, eta), 6).delta(j * math.log((1 + eta) / (1 - eta)))
            for eta in (0.1, 0.5)
            for j in (0, 2, 4)
        ],
        lambda effort: [kairouz_bound(math.log((1 + eta) / (1 - eta)), 6, j) for eta in (0.1, 0.5) for j in (0, 2, 4)],
        agrees_to_digits(9),
    ),
    Item(
        GI,
        "III-B: Bayes security",
        "β* = 1 − η of k releases known by η alone multiplies: (1 − η)^k",
        "(k * approx_dp(0, delta=eta).loss).bayes_security()",
        bayes_security,
        lambda effort: [(1 - eta) ** k for eta in (0.1, 0.3) for k in (1, 4, 10)],
        agrees_to_digits(9),
    ),
    Item(
        GI,
        "III-B: unequal releases",
        "β₁-secure and β₂-secure together are β₁β₂-secure (0.9 and 0.6)",
        "(approx_dp(0, delta=.1).loss + approx_dp(0, delta=.4).loss).bayes_security()",
        lambda effort: (approx_dp(0.0, delta=0.1).loss + approx_dp(0.0, delta=0.4).loss).bayes_security(),
        printed_number(0.54),
        agrees_to_digits(9),
    ),
    Item(
        GI,
        "III-B: knowing ε as well",
        "total variation of ten releases, ε = 0.5 and η = 0.1: with ε it grows slower than 1 − (1 − η)^10",
        "(10 * approx_dp(.5, total_variation=.1).loss).total_variation()",
        lambda effort: compose_triple((0.5, 0.0, 0.1), 10).total_variation(),
        lambda effort: 1 - 0.9**10,
        sharper_bound(),
    ),
    Item(
        GI,
        "Equation (7) and Appendix A (43), (44)",
        "the dominating pair of four triples, atom by atom",
        "channels.extremal.dominating_channel",
        dominating_pair,
        printed_pair,
        agrees_to_digits(9),
    ),
    Item(
        GI,
        "Equations (8)-(10) and Remark 3",
        "the composed curve bends at the multiples of ε alone: bends of five releases in ε > 0",
        "(5 * approx_dp(...).loss).delta",
        profile_bends,
        printed_number(1.0, 2.0, 3.0, 4.0),
        agrees_to_digits(9),
    ),
)


# Noisy stochastic gradient descent, accounted for in five ways (GI §VI-D, Fig. 5).

EXAMPLES, BATCH, NOISE, STEPS, DELTA = 60_000, 256, 1.3, 3515, 1e-5
"""15 epochs of the figure; a step is 1/1.3-GDP on its batch."""
RATE = BATCH / EXAMPLES
EPSILONS_DRAWN = tuple(round(0.5 + i / 10, 1) for i in range(30))
"""The ε of a step for which the paper applies Theorem 2."""
RATES = np.linspace(0.0, 1.0, 41)


def single_step_loss() -> PrivacyLoss:
    """Return the loss of one step on a subset of the examples; neighbors differ by one replaced example."""
    return gaussian(scale=NOISE).loss.subset_sample(BATCH, EXAMPLES)


@lru_cache(maxsize=1)
def exact_loss() -> PrivacyLoss:
    """Return the exact loss of all steps."""
    return STEPS * single_step_loss()


@lru_cache(maxsize=2)
def composed_triples(*, known: bool) -> tuple[PrivacyLoss, ...]:
    """Return the compositions by Theorem 2 (with ``known``, the total variation) or by Kairouz, Oh, Viswanath."""
    one = gaussian(scale=NOISE).loss
    eta = RATE * one.total_variation() if known else None
    return tuple(
        STEPS * approx_dp(math.log1p(RATE * math.expm1(at)), delta=RATE * one.delta(at), total_variation=eta).loss
        for at in EPSILONS_DRAWN
    )


def least_variation(losses: tuple[PrivacyLoss, ...]) -> float:
    """Return the total variation of the intersection of the regions."""
    return min(loss.total_variation() for loss in losses)


def moments_epsilon() -> float:
    """Return ε by the conversion of Abadi et al., min over orders of (K(z) − log δ)/z, for Poisson batches."""
    law = DpSgd(EXAMPLES, BATCH, NOISE, 1).loss.remove

    def converted_epsilon(z: float) -> float:
        moment = law.laws[0].log_moment(np.array([complex(z)]))
        return math.inf if moment is None else (STEPS * float(moment[0].real) - math.log(DELTA)) / z

    return min(converted_epsilon(float(order)) for order in range(1, 33))  # they use the orders 1 to 32


def asymptotic_mu() -> float:
    """Return μ by Dong, Roth, Su, Corollary 5.4: √2 c √(e^{1/σ²} Φ(1.5/σ) + 3Φ(−0.5/σ) − 2), c = p√T."""
    inner = math.exp(NOISE**-2) * ndtr(1.5 / NOISE) + 3 * ndtr(-0.5 / NOISE) - 2
    return math.sqrt(2) * RATE * math.sqrt(STEPS) * math.sqrt(inner)


def highest_tradeoff(losses: tuple[PrivacyLoss, ...]) -> list[float]:
    """Return the highest of several trade-off functions: each is a lower bound."""
    highest = np.max([np.asarray(loss.tradeoff(RATES)) for loss in losses], axis=0)
    return [float(missed) for missed in highest]


def by_moment_region() -> list[float]:
    """Return the region of (ε, δ) of the moments accountant at every ε: its δ = e^{K − zε} at the best whole order."""
    law = DpSgd(EXAMPLES, BATCH, NOISE, 1).loss.remove.laws[0]
    orders = np.arange(1, 65)
    moments = [
        STEPS * float(known[0].real) for z in orders if (known := law.log_moment(np.array([complex(z)]))) is not None
    ]
    levels = np.linspace(0.0, 3.0, 121)
    deltas = [math.exp(min(0.0, *(m - z * e for z, m in zip(orders, moments, strict=False)))) for e in levels]
    return [
        max(
            0.0,
            *(max(1 - d - math.exp(e) * t, math.exp(-e) * (1 - d - t)) for e, d in zip(levels, deltas, strict=True)),
        )
        for t in RATES.tolist()
    ]


def draw_figure_curves(effort: Effort) -> list[Drawing]:
    """Return the five curves of the figure, and the exact one."""
    every = 10 if effort.coarse else 5
    mu, x = asymptotic_mu(), RATES.tolist()
    lines = [
        Line("exact", x, np.asarray(exact_loss().tradeoff(RATES)).tolist()),
        Line("asymptotic (Dong et al.)", x, ndtr(ndtri(1 - RATES) - mu).tolist()),
        Line("Theorem 2", x, highest_tradeoff(composed_triples(known=True)[::every])),
        Line("moments accountant", x, by_moment_region()),
        Line("Kairouz et al.", x, highest_tradeoff(composed_triples(known=False)[::every])),
    ]
    return [Panel("GI Fig. 5: DP-SGD, 15 epochs, σ = 1.3, batch 256 of 60 000", ALARMS, MISSED, lines)]


training_items = (
    Item(
        GI,
        "Figure 5: moments accountant",
        "ε at δ = 10⁻⁵ by the conversion of Abadi et al., Poisson batches",
        "DpSgd(60000, 256, 1.3, 1).loss.remove.laws[0].log_moment",
        lambda effort: moments_epsilon(),
        printed_number(1.19),
        agrees_within(0.005),
    ),
    Item(
        GI,
        "Figure 5: Theorem 2 and Kairouz et al.",
        "total variation of 3515 steps: Theorem 2 with η of the step beside (ε, δ) alone, both at the paper's ε",
        "3515 * approx_dp(...).loss",
        lambda effort: least_variation(composed_triples(known=True)),
        lambda effort: least_variation(composed_triples(known=False)),
        sharper_bound(),
        draw_figure_curves,
    ),
    Item(
        GI,
        "Figure 5: the exact curve",
        "total variation of 3515 steps: exact beside Theorem 2 at the paper's ε",
        "(3515 * gaussian(...).loss.subset_sample(256, 60000)).total_variation()",
        lambda effort: exact_loss().total_variation(),
        lambda effort: least_variation(composed_triples(known=True)),
        sharper_bound(),
    ),
    Item(
        GI,
        "Figure 5: asymptotic curve",
        "μ of the Gaussian limit of 3515 steps, and Corollary 5.4 of Dong et al. that the figure draws",
        "(3515 * ...).gaussian_limit().mu",
        lambda effort: exact_loss().gaussian_limit().mu,
        lambda effort: asymptotic_mu(),
        agrees_to_digits(2),
    ),
    Item(
        GI,
        "Figure 5: looser than the asymptotic region",
        "total variation of the asymptotic curve is at most that of Theorem 2, as the text says",
        "gaussian(scale=1/mu).loss.total_variation()",
        lambda effort: gaussian(scale=1 / asymptotic_mu()).loss.total_variation(),
        lambda effort: least_variation(composed_triples(known=True)),
        bound_holds(),
    ),
)
