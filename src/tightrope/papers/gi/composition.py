"""Composition of (ε, δ, η) (GI Thm 2, §III, App. A, Fig. 4)."""

from __future__ import annotations

import math

import numpy as np

from tightrope import Guarantee, PrivacyLoss, approx_dp, from_pair
from tightrope.channels import extremal
from tightrope.papers import instances
from tightrope.papers.gi import printed
from tightrope.papers.gi.printed import ETA, GI, TRIPLES, Triple
from tightrope.papers.gi.regions import ALARMS, MISSED, tradeoff_line
from tightrope.papers.item import Effort, Item, agrees_to_digits, bound_holds, printed_number, sharper_bound
from tightrope.reporting.charts.panels import Drawing, Line, Panel

COUNTS = (1, 2, 3, 5, 8, 12)
BLUE, RED = (1, 3, 5), (0, 2, 4)
"""Figure 4b: the j of the parity of k = 5, and the others."""


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
    return [printed.theorem_2(triple, k, j) for triple in TRIPLES for k in COUNTS for j in range(k + 1)]


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
        alpha = printed.silent_mass(triple)
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
            delta = printed.theorem_2((1.0, 0.0, ETA), 5, j)
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
        lambda effort: [printed.kairouz_bound(1.0, 5, j) for j in (1, 3)],
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
        lambda effort: [printed.kairouz_bound(1.0, 5, j) for j in (1, 3)],
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
        lambda effort: [
            printed.kairouz_bound(math.log((1 + eta) / (1 - eta)), 6, j) for eta in (0.1, 0.5) for j in (0, 2, 4)
        ],
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
