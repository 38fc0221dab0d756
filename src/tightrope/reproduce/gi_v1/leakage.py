"""Erasure, repeated Gaussians, the limit theorem and leakage (GI-v1 §IV, §VI-D, Thm 8, App. I and J)."""

from __future__ import annotations

import math

from scipy.special import ndtr

from tightrope import Guarantee, gaussian
from tightrope.channels import Channel, extremal, suprema
from tightrope.reproduce import instances
from tightrope.reproduce.gi.asymptotics import distance
from tightrope.reproduce.gi.contraction import kept_by_erasure, lemma_3
from tightrope.reproduce.gi_v1.divergences import GI_V1
from tightrope.reproduce.item import Effort, Item, number
from tightrope.reproduce.judges import agrees, at_most, within, wrong

LEAKING = (0.3, 1.0, 2.0)


def leakage_beside_79(effort: Effort) -> float:
    """Maximal leakage of random ε-LDP channels on two inputs over log(2e^ε/(e^ε + 1)), the largest."""
    found = []
    for _ in range(effort.some(0.5)):
        epsilon = instances.triple(pure=True).epsilon
        leak = instances.private_channel(Guarantee(epsilon), 2, 4).maximal_leakage
        found.append(leak / math.log(2 * math.exp(epsilon) / (math.exp(epsilon) + 1)))
    return instances.worst_of(found)


def variation_from_leakage(effort: Effort) -> float:
    """TV of two rows over e^leakage − 1: the largest distance to 1, added to 1."""
    found = []
    for _ in range(effort.some(0.5)):
        channel = instances.any_channel(2, 4)
        found.append(abs(channel.total_variation / math.expm1(channel.maximal_leakage) - 1))
    return 1 + instances.worst_of(found)


items = (
    Item(
        GI_V1,
        "Theorem 3",
        "the limit theorem, as in the journal version: distance to the limit at n = 3000",
        "(n * approx_dp(...).loss).tradeoff",
        lambda effort: distance(3000),
        number(0.0),
        within(1e-4),
    ),
    Item(
        GI_V1,
        "VI-D: k Gaussian releases",
        "total variation 2Φ(√k μ/2) − 1; here μ = 0.3 with k = 1, 20, 100",
        "(k * gaussian(...).loss).total_variation()",
        lambda effort: [(k * gaussian(scale=1 / 0.3).loss).total_variation() for k in (1, 20, 100)],
        lambda effort: [2 * float(ndtr(math.sqrt(k) * 0.15)) - 1 for k in (1, 20, 100)],
        agrees(9),
    ),
    Item(
        GI_V1,
        "Theorem 8, (59), (65)-(69)",
        "withheld reports keep η/tanh(ε/2) of every f-divergence: largest difference, added to 1",
        "suprema.share_kept_by_erasure, Channel.erase",
        kept_by_erasure,
        number(1.0),
        agrees(7),
    ),
    Item(
        GI_V1,
        "Lemma 3, (60)-(62)",
        "total variation after erasure over (1 − α) tanh(ε/2): the largest over random channels",
        "Channel.erase(alpha).total_variation",
        lemma_3,
        number(1.0),
        at_most(),
    ),
    Item(
        GI_V1,
        "Appendix J, (79) corrected",
        "maximal leakage of two inputs over log(2e^ε/(e^ε + 1)): the largest over random channels",
        "Channel.maximal_leakage",
        leakage_beside_79,
        number(1.0),
        at_most(),
    ),
    Item(
        GI_V1,
        "Appendix J, (79)",
        "the largest maximal leakage at ε = 2, and the printed bound",
        "extremal.dominating_channel(Guarantee(2)).maximal_leakage",
        lambda effort: extremal.dominating_channel(Guarantee(2.0)).maximal_leakage,
        lambda effort: math.log(2 * 2.0 / (math.exp(2.0) + 1)),
        wrong("the numerator is 2e^ε, not 2ε"),
    ),
    Item(
        GI_V1,
        "Appendix J, (80)",
        "total variation of the rows (3/4, 1/4), (1/4, 3/4) from their leakage as printed, 1 − e^(−I)",
        "Channel.total_variation, .maximal_leakage",
        lambda effort: Channel([[0.75, 0.25], [0.25, 0.75]]).total_variation,
        lambda effort: -math.expm1(-Channel([[0.75, 0.25], [0.25, 0.75]]).maximal_leakage),
        wrong("it is e^I − 1"),
    ),
    Item(
        GI_V1,
        "Appendix J, (80) corrected",
        "total variation of two rows is e^I − 1: largest relative difference over random channels, added to 1",
        "Channel.total_variation, .maximal_leakage",
        variation_from_leakage,
        number(1.0),
        agrees(8),
    ),
    Item(
        GI_V1,
        "Appendix J, (81)",
        "the result holds all the same: largest total variation (e^ε − 1)/(e^ε + 1)",
        "extremal.dominating_channel(Guarantee(eps)).maximal_leakage",
        lambda effort: [math.expm1(extremal.dominating_channel(Guarantee(e)).maximal_leakage) for e in LEAKING],
        lambda effort: [math.expm1(e) / (math.exp(e) + 1) for e in LEAKING],
        agrees(9),
    ),
    Item(
        GI_V1,
        "Theorem 8 at the largest η",
        "nothing need be withheld there, and half of the divergence is kept at half of it",
        "suprema.share_kept_by_erasure",
        lambda effort: [
            suprema.share_kept_by_erasure(Guarantee(e, 0.0, s * math.tanh(e / 2))) for e in LEAKING for s in (1.0, 0.5)
        ],
        lambda effort: [1.0, 0.5] * len(LEAKING),
        agrees(9),
    ),
)
