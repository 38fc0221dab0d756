"""Private tests of two hypotheses, and the information of one report (AAC §VI, VII)."""

from __future__ import annotations

import math
from itertools import pairwise

import numpy as np
from scipy.special import entr

from tightrope import Guarantee, from_pair
from tightrope.channels import Channel, SymmetricChannel, published, suprema
from tightrope.local import limits
from tightrope.reproduce import instances
from tightrope.reproduce.aac.contraction import AAC, approximate_channel
from tightrope.reproduce.aac.minimax import ONE_NAT, P0, P1, kl
from tightrope.reproduce.item import Effort, Item, number
from tightrope.reproduce.judges import agrees, at_most, sharper, within

ALPHA = 0.05


def exponents(effort: Effort) -> float:
    """KL of the outputs, which is the exponent for that channel, over φ KL of the inputs: the largest."""
    found = []
    for _ in range(effort.some(0.5)):
        one, laws = instances.triple(), instances.laws(2, 3)
        exponent = approximate_channel(one).divergence("kl", *laws)
        found.append(exponent / (suprema.printed_contraction(one) * kl(*laws)))
    return instances.worst_of(found)


def chernoff_stein(effort: Effort) -> list[float]:
    """(50): log of the least type-II error between n = 10 000 and 20 000 open coins, per coin and with its sign."""
    errors = [math.log((n * from_pair(P0, P1).loss).tradeoff(ALPHA)) for n in (10_000, 20_000)]
    return [(first - second) / 10_000 for first, second in pairwise(errors)]


def information_over_entropy(effort: Effort) -> float:
    """I(X; Z) over φ H(X): the largest over random (ε, δ)-LDP channels."""
    found = []
    for _ in range(effort.some(0.5)):
        one, prior = instances.triple(), instances.law(3)
        entropy = float(entr(prior).sum())
        known = approximate_channel(one).mutual_information(prior)
        found.append(known / (suprema.printed_contraction(one) * entropy))
    return instances.worst_of(found)


def small_epsilon(effort: Effort) -> list[float]:
    """I(X; Z) of the binary mechanism for the evenest split of a prior, over (20), at ε = 0.001."""
    ratios = []
    for prior in ([0.5, 0.5], [0.7, 0.3], [0.4, 0.3, 0.2, 0.1]):
        halves = _evenest(prior)
        rows = SymmetricChannel.randomized_response(1e-3, 2).dense().matrix[halves]
        ratios.append(Channel(rows).mutual_information(prior) / published.information_by_kairouz(1e-3, prior))
    return ratios


def _evenest(prior: list[float]) -> list[int]:
    """To which half each value goes."""
    size = len(prior)
    return min(
        ([mask >> i & 1 for i in range(size)] for mask in range(2**size)),
        key=lambda sides: abs(math.fsum(p for p, side in zip(prior, sides, strict=True) if side) - 0.5),
    )


items = (
    Item(
        AAC,
        "Corollary 4, (19), (51)",
        "error exponent of random (ε, δ)-LDP channels over φ KL(P0‖P1): the largest",
        "Channel.divergence('kl'), suprema.printed_contraction",
        exponents,
        number(1.0),
        at_most(),
    ),
    Item(
        AAC,
        "Corollary 4, sharper",
        "largest exponent of any (1, 0.01)-LDP test of two coins",
        "local.limits.testing(Guarantee(1, .01), p0, p1).exponent",
        lambda effort: limits.testing(ONE_NAT, P0, P1).exponent,
        lambda effort: (1 - 0.99 * math.exp(-1)) * kl(P0, P1),
        sharper(),
    ),
    Item(
        AAC,
        "Chernoff-Stein, (50)",
        "exponent of the least type-II error of open coins tends to KL(P0‖P1): slope between 10 000 and 20 000 coins",
        "(n * from_pair(p0, p1).loss).tradeoff(.05)",
        chernoff_stein,
        lambda effort: kl(P0, P1),
        within(0.002),
    ),
    Item(
        AAC,
        "Equation (20), Kairouz et al.",
        "the binary mechanism for the evenest split has ½ P(T)(1 − P(T)) ε² nats to leading order: ratio at ε = 0.001",
        "channels.published.information_by_kairouz, Channel.mutual_information",
        small_epsilon,
        number(1.0),
        within(1e-3),
    ),
    Item(
        AAC,
        "Corollary 5, (21)",
        "I(X; Z) over φ H(X): the largest over random (ε, δ)-LDP channels and priors",
        "Channel.mutual_information, suprema.printed_contraction",
        information_over_entropy,
        number(1.0),
        at_most(),
    ),
    Item(
        AAC,
        "Corollary 5, sharper",
        "the most information of one report about a fair coin and a value with four, at ε = 0.5, 1, 2",
        "local.limits.mutual_information",
        lambda effort: [limits.mutual_information(Guarantee(e), [1 / k] * k) for e in (0.5, 1.0, 2.0) for k in (2, 4)],
        lambda effort: [-math.expm1(-e) * math.log(k) for e in (0.5, 1.0, 2.0) for k in (2, 4)],
        sharper(),
    ),
    Item(
        AAC,
        "Equations (42)-(44)",
        "information about V of a random axis with a small tilt ω is at most ω²: log 2 − h((1 + ω)/2), ω = 0.1, 0.5",
        "Channel.mutual_information",
        lambda effort: [
            Channel([[(1 + w) / 2, (1 - w) / 2], [(1 - w) / 2, (1 + w) / 2]]).mutual_information([0.5, 0.5])
            for w in (0.1, 0.5)
        ],
        lambda effort: [math.log(2) - float(np.sum(entr(np.array([(1 + w) / 2, (1 - w) / 2])))) for w in (0.1, 0.5)],
        agrees(9),
    ),
)
