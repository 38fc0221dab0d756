"""Bounds on total variation and on KL of the outputs (GI-v1 §VII-A, B, Fig. 5)."""

from __future__ import annotations

import math

import numpy as np
from scipy.special import ndtr

from tightrope import Guarantee, gaussian
from tightrope.channels import Channel, extremal, published, suprema
from tightrope.papers import instances
from tightrope.papers.gi.contraction import kept_by_erasure, lemma_3
from tightrope.papers.gi.regions import distance_to_gaussian
from tightrope.papers.item import (
    Effort,
    Item,
    agrees_to_digits,
    agrees_within,
    bound_attained,
    bound_holds,
    paper_is_wrong,
    printed_number,
    sharper_bound,
)
from tightrope.reporting.charts.panels import Drawing, Line, Panel

GI_V1 = "GI-v1"
BINARY = (0.1, 0.5, 1.0, 2.0, 4.0)
P0, P1 = np.array([0.5, 0.3, 0.2]), np.array([0.2, 0.3, 0.5])
Pair = tuple[float, float, Guarantee]
"""KL + KL of the outputs, TV of the inputs, and the triple of the channel between them."""


def random_outputs(effort: Effort, *, pure: bool) -> list[Pair]:
    """Return random private channels and distributions; ``pure``: without a bound on η."""
    found = []
    for _ in range(effort.reduced_instances(0.5)):
        triple, laws = instances.random_guarantee(pure=True), instances.random_distributions(2, 3)
        triple = Guarantee(triple.epsilon) if pure else triple
        channel = instances.random_private_channel(triple, 3, 4)
        symmetric_kl = channel.output_divergence("kl", *laws) + channel.output_divergence("kl", laws[1], laws[0])
        found.append((symmetric_kl, float(np.abs(laws[0] - laws[1]).sum()) / 2, triple))
    return found


def largest_variation(effort: Effort) -> list[float]:
    """Return TV divided by tanh(ε/2): the largest of random ε-LDP channels, and the dominating mechanism."""
    found = []
    for _ in range(effort.reduced_instances(0.5)):
        one = Guarantee(instances.random_guarantee(pure=True).epsilon)
        found.append(instances.random_private_channel(one, 3, 4).total_variation / math.tanh(one.epsilon / 2))
    return [instances.worst_of(found), extremal.dominating_channel(Guarantee(1.0)).total_variation / math.tanh(0.5)]


def binary_rows(eta_share: float) -> list[float]:
    """Return the entries of the binary mechanism (with erasure) for P0, P1: outputs 0, erased, 1."""
    triple = Guarantee(1.0, 0.0, eta_share * math.tanh(0.5))
    return list(extremal.binary_with_erasure(P0, P1, triple).matrix[:, 1:4].ravel())


def printed_rows(eta_share: float) -> list[float]:
    """Return the same entries by (23), (24) and (26)–(28) at ε = 1."""
    alpha = 1 - eta_share
    yes, no = (1 - alpha) * math.e / (1 + math.e), (1 - alpha) / (1 + math.e)
    return [value for x in range(3) for value in ((yes, alpha, no) if P0[x] >= P1[x] else (no, alpha, yes))]


def attained_variation(eta_share: float) -> float:
    """Return the total variation of the outputs of the binary mechanism (with erasure)."""
    triple = Guarantee(1.0, 0.0, eta_share * math.tanh(0.5))
    return extremal.binary_with_erasure(P0, P1, triple).output_divergence("total_variation", P0, P1)


def log_ratio(effort: Effort) -> float:
    """Return the largest |log m₀/m₁| divided by min(2, e^ε)(e^ε − 1) TV (46)."""
    ratios = []
    for _ in range(effort.reduced_instances(0.5)):
        epsilon, laws = instances.random_guarantee(pure=True).epsilon, instances.random_distributions(2, 3)
        outputs = laws @ instances.random_private_channel(Guarantee(epsilon), 3, 4).matrix
        outputs = outputs[:, outputs[0] > 0]  # the other outputs have probability 0
        variation = float(np.abs(laws[0] - laws[1]).sum()) / 2
        bound = min(2.0, math.exp(epsilon)) * math.expm1(epsilon) * variation
        ratios.append(float(np.abs(np.log(outputs[0] / outputs[1])).max()) / bound)
    return instances.worst_of(ratios)


def binary_against_others(effort: Effort) -> float:
    """Return the largest promised fraction of another channel's KL divided by the binary mechanism's (55)–(58)."""
    found = []
    for _ in range(effort.reduced_instances(0.5)):
        one, laws = Guarantee(instances.random_guarantee(pure=True).epsilon), instances.random_distributions(2, 3)
        binary = extremal.binary_with_erasure(laws[0], laws[1], one).output_divergence("kl", *laws)
        other = instances.random_private_channel(one, 3, 4).output_divergence("kl", *laws)
        found.append(published.binary_share_pure(one.epsilon) * max(other, binary) / binary)
    return instances.worst_of(found)


def draw_shares(effort: Effort) -> list[Drawing]:
    """Draw Figure 5, with the sharper bound."""
    x = np.linspace(0.0, 4.0, 8 * effort.grid).tolist()
    lines = [
        Line("ours, 2/(e^ε + 1)", x, [suprema.binary_share_of_best_kl(Guarantee(e)) for e in x]),
        Line("GI-v1", x, [published.binary_share_pure(e) for e in x]),
        Line("Kairouz et al.", x, [published.binary_share_by_kairouz(e) for e in x]),
    ]
    return [Panel("GI-v1 Fig. 5: the binary mechanism's share of the best KL", "ε", "share", lines)]


items = (
    Item(
        GI_V1,
        "Proposition 2, (20)",
        "total variation of an ε-LDP channel over tanh(ε/2): random channels, and the dominating mechanism",
        "Channel.total_variation, Guarantee(eps)",
        largest_variation,
        printed_number(1.0, 1.0),
        bound_attained(),
    ),
    Item(
        GI_V1,
        "Theorem 4, (23), (24)",
        "the binary mechanism for two laws on three values, entry by entry",
        "extremal.binary_with_erasure(p0, p1, Guarantee(1))",
        lambda effort: binary_rows(1.0),
        lambda effort: printed_rows(1.0),
        agrees_to_digits(9),
    ),
    Item(
        GI_V1,
        "Theorem 4, (22)",
        "it attains tanh(ε/2) of the total variation of the inputs",
        "extremal.binary_with_erasure(...).output_divergence",
        lambda effort: attained_variation(1.0),
        lambda effort: math.tanh(0.5) * 0.3,
        agrees_to_digits(9),
    ),
    Item(
        GI_V1,
        "Theorem 5, (26)-(28)",
        "the same with erasure, α = 0.4",
        "extremal.binary_with_erasure(p0, p1, Guarantee(1, 0, .6 tanh(.5)))",
        lambda effort: binary_rows(0.6),
        lambda effort: printed_rows(0.6),
        agrees_to_digits(9),
    ),
    Item(
        GI_V1,
        "Theorem 5, (25) and Remark 4",
        "it attains η times the total variation of the inputs; at the largest η this is Theorem 4",
        "extremal.binary_with_erasure(...).output_divergence",
        lambda effort: [attained_variation(0.6), attained_variation(1.0)],
        lambda effort: [0.6 * math.tanh(0.5) * 0.3, math.tanh(0.5) * 0.3],
        agrees_to_digits(9),
    ),
    Item(
        GI_V1,
        "Theorem 6, (42)",
        "KL + KL of the outputs over the bound of Duchi et al.: the largest over random channels",
        "channels.published.jeffreys_by_duchi",
        lambda effort: instances.worst_of(
            [both / published.jeffreys_by_duchi(one.epsilon, t) for both, t, one in random_outputs(effort, pure=True)]
        ),
        printed_number(1.0),
        bound_holds(),
    ),
    Item(
        GI_V1,
        "Theorem 7, (43)",
        "KL + KL of the outputs over 2η min(2, e^ε)(e^ε − 1) TV²: the largest over random channels",
        "suprema.printed_jeffreys",
        lambda effort: instances.worst_of(
            [both / suprema.printed_jeffreys(one, t) for both, t, one in random_outputs(effort, pure=False)]
        ),
        printed_number(1.0),
        bound_holds(),
    ),
    Item(
        GI_V1,
        "Theorem 7, sharper",
        "the bound at η = ½ tanh(ε/2) and TV = 0.5",
        "suprema.jeffreys_bound",
        lambda effort: [suprema.jeffreys_bound(Guarantee(e, 0.0, math.tanh(e / 2) / 2), 0.5) for e in BINARY],
        lambda effort: [math.tanh(e / 2) * min(2.0, math.exp(e)) * math.expm1(e) * 0.25 for e in BINARY],
        sharper_bound(),
    ),
    Item(
        GI_V1,
        "Corollary 2, (44)",
        "the bound without a bound on η",
        "suprema.printed_jeffreys(Guarantee(eps), t)",
        lambda effort: [suprema.printed_jeffreys(Guarantee(e), 0.5) for e in BINARY],
        lambda effort: [2 * min(2.0, math.exp(e)) * math.expm1(e) ** 2 / (1 + math.exp(e)) * 0.25 for e in BINARY],
        agrees_to_digits(9),
    ),
    Item(
        GI_V1,
        "Equation (45)",
        "Corollary 2 is at most Theorem 6, at five ε",
        "suprema.printed_jeffreys, published.jeffreys_by_duchi",
        lambda effort: [suprema.printed_jeffreys(Guarantee(e), 0.5) for e in BINARY],
        lambda effort: [published.jeffreys_by_duchi(e, 0.5) for e in BINARY],
        bound_holds(),
    ),
    Item(
        GI_V1,
        "Remark 5",
        "the factor min(2, e^ε) replaced: by 1 + δ below some ε (δ = 0.01 here), ours by less than 1 at every ε",
        "suprema.jeffreys_bound",
        lambda effort: [
            suprema.jeffreys_bound(Guarantee(e), 0.5) / (2 * math.expm1(e) ** 2 / (1 + math.exp(e)) * 0.25)
            for e in BINARY
        ],
        printed_number(1.01),
        sharper_bound(),
    ),
    Item(
        GI_V1,
        "Equation (46)",
        "log-ratio of two marginals over min(2, e^ε)(e^ε − 1) TV: the largest over random channels",
        "Channel.matrix",
        log_ratio,
        printed_number(1.0),
        bound_holds(),
    ),
    Item(
        GI_V1,
        "VII-B1, (51)-(58)",
        "the binary mechanism has the promised share of any other channel's KL: the largest share over the truth",
        "channels.published.binary_share_pure, extremal.binary_with_erasure",
        binary_against_others,
        printed_number(1.0),
        bound_holds(),
    ),
    Item(
        GI_V1,
        "VII-B1: the share itself",
        "the share of the best KL that is certain, at five ε",
        "suprema.binary_share_of_best_kl",
        lambda effort: [suprema.binary_share_of_best_kl(Guarantee(e)) for e in BINARY],
        lambda effort: [1 / (min(2.0, math.exp(e)) * (math.exp(e) + 1)) for e in BINARY],
        sharper_bound("higher"),
    ),
    Item(
        GI_V1,
        "Figure 5",
        "the two curves: the share here, and 1/(2(e^ε + 1)²) of Kairouz et al., at five ε",
        "published.binary_share_pure, .binary_share_by_kairouz",
        lambda effort: [
            share(e) for share in (published.binary_share_pure, published.binary_share_by_kairouz) for e in BINARY
        ],
        lambda effort: [
            *(1 / (min(2.0, math.exp(e)) * (math.exp(e) + 1)) for e in BINARY),
            *(1 / (2 * (math.exp(e) + 1) ** 2) for e in BINARY),
        ],
        agrees_to_digits(9),
        draw_shares,
    ),
)

# Erasure, repeated Gaussians, the limit theorem and leakage (GI-v1 §IV, §VI-D, Thm 8, App. I and J).

LEAKING = (0.3, 1.0, 2.0)


def leakage_against_79(effort: Effort) -> float:
    """Maximal leakage of random ε-LDP channels on two inputs over log(2e^ε/(e^ε + 1)), the largest."""
    found = []
    for _ in range(effort.reduced_instances(0.5)):
        epsilon = instances.random_guarantee(pure=True).epsilon
        leak = instances.random_private_channel(Guarantee(epsilon), 2, 4).maximal_leakage
        found.append(leak / math.log(2 * math.exp(epsilon) / (math.exp(epsilon) + 1)))
    return instances.worst_of(found)


def variation_from_leakage(effort: Effort) -> float:
    """TV of two rows over e^leakage − 1: the largest distance to 1, added to 1."""
    found = []
    for _ in range(effort.reduced_instances(0.5)):
        channel = instances.random_channel(2, 4)
        found.append(abs(channel.total_variation / math.expm1(channel.maximal_leakage) - 1))
    return 1 + instances.worst_of(found)


leakage_items = (
    Item(
        GI_V1,
        "Theorem 3",
        "the limit theorem, as in the journal version: distance to the limit at n = 3000",
        "(n * approx_dp(...).loss).tradeoff",
        lambda effort: distance_to_gaussian(3000),
        printed_number(0.0),
        agrees_within(1e-4),
    ),
    Item(
        GI_V1,
        "VI-D: k Gaussian releases",
        "total variation 2Φ(√k μ/2) − 1; here μ = 0.3 with k = 1, 20, 100",
        "(k * gaussian(...).loss).total_variation()",
        lambda effort: [(k * gaussian(scale=1 / 0.3).loss).total_variation() for k in (1, 20, 100)],
        lambda effort: [2 * float(ndtr(math.sqrt(k) * 0.15)) - 1 for k in (1, 20, 100)],
        agrees_to_digits(9),
    ),
    Item(
        GI_V1,
        "Theorem 8, (59), (65)-(69)",
        "erased reports keep η/tanh(ε/2) of every f-divergence: largest difference, added to 1",
        "suprema.share_kept_by_erasure, Channel.erase",
        kept_by_erasure,
        printed_number(1.0),
        agrees_to_digits(7),
    ),
    Item(
        GI_V1,
        "Lemma 3, (60)-(62)",
        "total variation after erasure over (1 − α) tanh(ε/2): the largest over random channels",
        "Channel.erase(alpha).total_variation",
        lemma_3,
        printed_number(1.0),
        bound_holds(),
    ),
    Item(
        GI_V1,
        "Appendix J, (79) corrected",
        "maximal leakage of two inputs over log(2e^ε/(e^ε + 1)): the largest over random channels",
        "Channel.maximal_leakage",
        leakage_against_79,
        printed_number(1.0),
        bound_holds(),
    ),
    Item(
        GI_V1,
        "Appendix J, (79)",
        "the largest maximal leakage at ε = 2, and the printed bound",
        "extremal.dominating_channel(Guarantee(2)).maximal_leakage",
        lambda effort: extremal.dominating_channel(Guarantee(2.0)).maximal_leakage,
        lambda effort: math.log(2 * 2.0 / (math.exp(2.0) + 1)),
        paper_is_wrong("the numerator is 2e^ε, not 2ε"),
    ),
    Item(
        GI_V1,
        "Appendix J, (80)",
        "total variation of the rows (3/4, 1/4), (1/4, 3/4) from their leakage as printed, 1 − e^(−I)",
        "Channel.total_variation, .maximal_leakage",
        lambda effort: Channel([[0.75, 0.25], [0.25, 0.75]]).total_variation,
        lambda effort: -math.expm1(-Channel([[0.75, 0.25], [0.25, 0.75]]).maximal_leakage),
        paper_is_wrong("it is e^I − 1"),
    ),
    Item(
        GI_V1,
        "Appendix J, (80) corrected",
        "total variation of two rows is e^I − 1: largest relative difference over random channels, added to 1",
        "Channel.total_variation, .maximal_leakage",
        variation_from_leakage,
        printed_number(1.0),
        agrees_to_digits(8),
    ),
    Item(
        GI_V1,
        "Appendix J, (81)",
        "the result holds all the same: largest total variation (e^ε − 1)/(e^ε + 1)",
        "extremal.dominating_channel(Guarantee(eps)).maximal_leakage",
        lambda effort: [math.expm1(extremal.dominating_channel(Guarantee(e)).maximal_leakage) for e in LEAKING],
        lambda effort: [math.expm1(e) / (math.exp(e) + 1) for e in LEAKING],
        agrees_to_digits(9),
    ),
    Item(
        GI_V1,
        "Theorem 8 at the largest η",
        "no report need be erased there, and half of the divergence is kept at half of it",
        "suprema.share_kept_by_erasure",
        lambda effort: [
            suprema.share_kept_by_erasure(Guarantee(e, 0.0, s * math.tanh(e / 2))) for e in LEAKING for s in (1.0, 0.5)
        ],
        lambda effort: [1.0, 0.5] * len(LEAKING),
        agrees_to_digits(9),
    ),
)
