"""Worst-case risk under local privacy (AAC §IV)."""

from __future__ import annotations

import math
from itertools import pairwise

import numpy as np
from scipy.special import entr

from tightrope import Guarantee, from_pair
from tightrope.channels import Channel, SymmetricChannel, published, suprema
from tightrope.local import limits
from tightrope.local.limits import methods
from tightrope.local.limits.limit import Limit
from tightrope.numerics.arrays import Floats
from tightrope.papers import instances
from tightrope.papers.aac.contraction import AAC, approximate_channel
from tightrope.papers.item import (
    Effort,
    Item,
    agrees_to_digits,
    agrees_within,
    bound_holds,
    paper_is_wrong,
    printed_number,
    sharper_bound,
)
from tightrope.reporting.charts.panels import Drawing, Line, Panel

OPEN = Guarantee(math.inf, 0.0, 1.0)
"""No privacy at all."""
ONE_NAT = Guarantee(1.0, 0.01)
P0, P1 = np.array([0.55, 0.45]), np.array([0.45, 0.55])
PURE = Guarantee(1.0)
PEOPLE = (1, 10, 50)
MANY_PEOPLE = (10**4, 10**6)


def kl_divergence(p: Floats, q: Floats) -> float:
    """Return Σ p log(p/q)."""
    return float(np.sum(p * np.log(p / q)))


def lemma_3(people: int, contraction: float) -> float:
    """Return (7) and Lemma 3, ½ τ² (1 − √(n c KL/2)), τ = 0.05, half the distance of P0 and P1."""
    return max(0.0, 0.05**2 / 2 * (1 - math.sqrt(people * contraction * kl_divergence(P0, P1) / 2)))


def le_cam_risk(privacy: Guarantee, people: int) -> float:
    """Our limit for the same two distributions."""
    return limits.le_cam(privacy, P0, P1, separation=0.1).risk(people)


def risk_exponent(limit: Limit) -> float:
    """Return the exponent of n between a million and a hundred million people."""
    first, second = (limit.risk(n) for n in MANY_PEOPLE)
    return math.log(second / first) / math.log(MANY_PEOPLE[1] / MANY_PEOPLE[0])


def corollary_1(people: int, moment: float) -> float:
    """Return (37)–(41) with their constants: the best over ω of ½ ω^(2(k−1)/k) (1 − √(1 − (1 − φω)^(2n)))."""
    omega = np.geomspace(1e-9, 1.0, 4001)
    power = 2 * (1 - 1 / moment)
    distinguishability = np.sqrt(
        -np.expm1(2 * people * np.log1p(-suprema.printed_contraction(ONE_NAT) * np.minimum(omega, 0.999999)))
    )
    return float(np.max(omega**power * (1 - distinguishability))) / 2


def erasure_guarantee(effort: Effort) -> list[float]:
    """Return ε at δ of a report that is the value with probability δ, otherwise empty, and the exponent of its risk."""
    channel = Channel(np.eye(5)).erase(1 - ONE_NAT.delta)
    first, second = (1 / (channel.total_variation * n) for n in MANY_PEOPLE)
    return [
        channel.guarantee(channel.total_variation * (1 + 1e-9)).epsilon,
        math.log(second / first) / math.log(MANY_PEOPLE[1] / MANY_PEOPLE[0]),
    ]


def example_2(moment: float, omega: float) -> list[float]:
    """Return E|X|^k, the Hellinger sum and TV of the two distributions of the proof of Corollary 1."""
    value = omega ** (-1 / moment)
    pair = limits.Hypotheses.from_distributions([omega, 1 - omega, 0.0], [0.0, 1 - omega, omega])
    return [omega * value**moment, pair.hellinger, pair.total_variation]


def fano_error(effort: Effort) -> float:
    """Return the least error that Fano leaves over the exact error of the best guess from one report: the largest."""
    ratios = []
    for _ in range(effort.reduced_instances(0.5)):
        channel, laws = instances.random_channel(3, 4), instances.random_distributions(4, 3)
        exact = 1 - float((laws @ channel.matrix).max(axis=0).sum()) / 4
        lower_bound = limits.fano(channel, laws, separation=1.0, cost=lambda error: 1.0).risk(1)
        ratios.append(lower_bound / exact)
    return instances.worst_of(ratios)


def largest_information_ratio(effort: Effort, bound: str) -> float:
    """Return the largest I(V; Z) of a uniform V divided by a bound, from I(V; X) or from the distributions alone."""
    ratios = []
    for _ in range(effort.reduced_instances(0.5)):
        guarantee = instances.random_guarantee(pure=bound == "duchi")
        laws, uniform = instances.random_distributions(4, 3), [0.25] * 4
        channel = (
            instances.random_private_channel(guarantee, 3, 4) if bound == "duchi" else approximate_channel(guarantee)
        )
        information = Channel(laws @ channel.matrix).mutual_information(uniform)
        if bound == "duchi":
            ratios.append(information / published.information_by_duchi(guarantee.epsilon, laws))
        else:
            ratios.append(
                information / (suprema.printed_contraction(guarantee) * Channel(laws).mutual_information(uniform))
            )
    return instances.worst_of(ratios)


def fano_slope(dimension: int) -> float:
    """Return the exponent of n in the least risk by Fano's method in the ball."""
    limit = limits.ball_mean(PURE, dimension=dimension)
    return math.log(limit.by_fano(MANY_PEOPLE[1]) / limit.by_fano(MANY_PEOPLE[0])) / math.log(
        MANY_PEOPLE[1] / MANY_PEOPLE[0]
    )


def draw_le_cam_risks(effort: Effort) -> list[Drawing]:
    """Draw Le Cam's bound as printed, ours, and the one without privacy."""
    people = np.unique(np.geomspace(1, 3000, 4 * effort.grid).astype(int)).tolist()
    pair = limits.Hypotheses.from_distributions(P0, P1)
    lines = [
        Line("ours", people, [le_cam_risk(ONE_NAT, n) for n in people]),
        Line("Lemma 3", people, [methods.by_two_points(pair, n, ONE_NAT, separation=0.1) for n in people]),
        Line("(7), no privacy", people, [lemma_3(n, 1.0) for n in people]),
    ]
    return [Panel("AAC Lemma 3: least risk, ε = 1, δ = 0.01", "people", "squared error, at least", lines, log_x=True)]


items = (
    Item(
        AAC,
        "Equations (5)-(7)",
        "least risk without privacy by Le Cam, for 1, 10 and 50 people",
        "local.limits.le_cam(Guarantee(inf, 0, 1), ...)",
        lambda effort: [le_cam_risk(OPEN, n) for n in PEOPLE],
        lambda effort: [lemma_3(n, 1.0) for n in PEOPLE],
        sharper_bound("higher"),
    ),
    Item(
        AAC,
        "Lemma 3, (31)-(36)",
        "the printed bound itself, for 1, 10 and 50 people",
        "local.limits.methods.by_two_points",
        lambda effort: [
            methods.by_two_points(limits.Hypotheses.from_distributions(P0, P1), n, ONE_NAT, separation=0.1) for n in
            PEOPLE
        ],
        lambda effort: [lemma_3(n, 1 - 0.99 * math.exp(-1)) for n in PEOPLE],
        agrees_to_digits(9),
        draw_le_cam_risks,
    ),
    Item(
        AAC,
        "Lemma 3, sharper",
        "least risk under (1, 0.01)-LDP, for 1, 10 and 50 people",
        "local.limits.le_cam(Guarantee(1, .01), ...)",
        lambda effort: [le_cam_risk(ONE_NAT, n) for n in PEOPLE],
        lambda effort: [lemma_3(n, 1 - 0.99 * math.exp(-1)) for n in PEOPLE],
        sharper_bound("higher"),
    ),
    Item(
        AAC,
        "Example 2",
        "the two laws of its proof: k-th moment 1, Hellinger sum 2ω, total variation ω (k = 2 and 5)",
        "local.limits.Hypotheses.from_distributions",
        lambda effort: [*example_2(2.0, 0.1), *example_2(5.0, 0.3)],
        printed_number(1.0, 0.2, 0.1, 1.0, 0.6, 0.3),
        agrees_to_digits(9),
    ),
    Item(
        AAC,
        "Corollary 1, (8)",
        "exponent of n in the least risk at δ = 0, k = 1.5 and 3: −(k − 1)/k (the constants of (8) are lost "
        "in the stored text)",
        "local.limits.moment_mean(Guarantee(1), moment=k)",
        lambda effort: [risk_exponent(limits.moment_mean(PURE, moment=k)) for k in (1.5, 3.0)],
        printed_number(-1 / 3, -2 / 3),
        agrees_within(0.01),
    ),
    Item(
        AAC,
        "Corollary 1, (8), with δ > 0",
        "ε of a report that shows the value with probability δ = 0.01 and nothing else, and the exponent of n in "
        "its risk at k = 2, at most 1/(δn); (8) read with the text around it, since its symbols are lost",
        "Channel.erase(.99).guarantee(.01)",
        erasure_guarantee,
        printed_number(0.0, -0.5),
        paper_is_wrong("at a fixed δ > 0 its risk is below any multiple of n^(-1/2)"),
    ),
    Item(
        AAC,
        "Corollary 1, sharper",
        "least risk at n = 1000 beside Le Cam by Hellinger with Lemma 1 as in (37)-(39), best ω; k = 1.5, 2 and 5",
        "local.limits.moment_mean(Guarantee(1, .01), moment=k)",
        lambda effort: [limits.moment_mean(ONE_NAT, moment=k).risk(1000) for k in (1.5, 2.0, 5.0)],
        lambda effort: [corollary_1(1000, k) for k in (1.5, 2.0, 5.0)],
        sharper_bound("higher"),
    ),
    Item(
        AAC,
        "Corollary 1, k = 2",
        "bounded variance: the risk falls with n^(-1/2)",
        "local.limits.moment_mean(..., moment=2)",
        lambda effort: risk_exponent(limits.moment_mean(PURE, moment=2.0)),
        printed_number(-0.5),
        agrees_within(0.01),
    ),
    Item(
        AAC,
        "Corollary 1, k = ∞",
        "bounded values: the risk falls with 1/n",
        "local.limits.mean(Guarantee(...), bounds=(-1, 1))",
        lambda effort: [
            risk_exponent(limits.moment_mean(PURE, moment=math.inf)), risk_exponent(limits.mean(PURE, bounds=(-1.0,
            1.0)))
        ],
        printed_number(-1.0),
        agrees_within(0.02),
    ),
    Item(
        AAC,
        "Equation (9), Fano",
        "what Fano leaves over the exact error of the best guess: the largest over random laws and channels",
        "local.limits.fano(channel, laws, ...)",
        fano_error,
        printed_number(1.0),
        bound_holds(),
    ),
    Item(
        AAC,
        "Lemma 4, (42)",
        "I(V; Z) over φ I(V; X): the largest over random (ε, δ)-LDP channels",
        "Channel.mutual_information, suprema.printed_contraction",
        lambda effort: largest_information_ratio(effort, "lemma 4"),
        printed_number(1.0),
        bound_holds(),
    ),
    Item(
        AAC,
        "Equation (10), Duchi et al.",
        "I(V; Z) over 4(e^ε − 1)² times the mean TV² of two laws (the source of (10), whose symbols are lost)",
        "channels.published.information_by_duchi",
        lambda effort: largest_information_ratio(effort, "duchi"),
        printed_number(1.0),
        bound_holds(),
    ),
    Item(
        AAC,
        "Lemma 4 beside (10)",
        "the bound on I(V; Z) for two opposite coins at ε = 0.5, 1, 2: Lemma 4 beside (10)",
        "suprema.printed_contraction, published.information_by_duchi",
        lambda effort: [suprema.printed_contraction(Guarantee(e)) * math.log(2) for e in (0.5, 1.0, 2.0)],
        lambda effort: [published.information_by_duchi(e, np.eye(2)) for e in (0.5, 1.0, 2.0)],
        sharper_bound(),
    ),
    Item(
        AAC,
        "Example 3",
        "a mean in the ball: the limit grows with the square of its radius",
        "local.limits.ball_mean(..., radius=3)",
        lambda effort: limits.ball_mean(ONE_NAT, dimension=8, radius=3.0).risk(1000)
        / limits.ball_mean(ONE_NAT, dimension=8).risk(1000),
        printed_number(9.0),
        agrees_to_digits(6),
    ),
    Item(
        AAC,
        "Corollary 2, (12)",
        "exponent of n in the least risk by Fano, d = 16: −1 (constants of (12) are lost in the stored text)",
        "local.limits.ball_mean(...).by_fano",
        lambda effort: fano_slope(16),
        printed_number(-1.0),
        agrees_within(0.05),
    ),
    Item(
        AAC,
        "Corollary 2, sharper",
        "least risk in d = 64 dimensions from 10⁵ reports: all methods beside Fano's alone, with its best constants",
        "local.limits.ball_mean(...).risk",
        lambda effort: limits.ball_mean(ONE_NAT, dimension=64).risk(10**5),
        lambda effort: limits.ball_mean(ONE_NAT, dimension=64).by_fano(10**5),
        sharper_bound("higher"),
    ),
)  # fmt: skip

# Private tests of two hypotheses, and the information of one report (AAC §VI, VII).

ALPHA = 0.05


def largest_exponent_ratio(effort: Effort) -> float:
    """Return the largest ratio of the outputs' KL (the exponent for that channel) to φ times the inputs' KL."""
    ratios = []
    for _ in range(effort.reduced_instances(0.5)):
        guarantee, laws = instances.random_guarantee(), instances.random_distributions(2, 3)
        exponent = approximate_channel(guarantee).output_divergence("kl", *laws)
        ratios.append(exponent / (suprema.printed_contraction(guarantee) * kl_divergence(*laws)))
    return instances.worst_of(ratios)


def chernoff_stein(effort: Effort) -> list[float]:
    """Return (50): the decrease of the log type-II error per coin, from n = 10 000 to 20 000 open coins."""
    errors = [math.log((n * from_pair(P0, P1).loss).tradeoff(ALPHA)) for n in (10_000, 20_000)]
    return [(first - second) / 10_000 for first, second in pairwise(errors)]


def information_over_entropy(effort: Effort) -> float:
    """Return the largest I(X; Z) divided by φ H(X) over random (ε, δ)-LDP channels."""
    ratios = []
    for _ in range(effort.reduced_instances(0.5)):
        guarantee, prior = instances.random_guarantee(), instances.random_distribution(3)
        entropy = float(entr(prior).sum())
        information = approximate_channel(guarantee).mutual_information(prior)
        ratios.append(information / (suprema.printed_contraction(guarantee) * entropy))
    return instances.worst_of(ratios)


def small_epsilon(effort: Effort) -> list[float]:
    """Return I(X; Z) of the binary mechanism for the evenest split of a prior, divided by (20), at ε = 0.001."""
    ratios = []
    for prior in ([0.5, 0.5], [0.7, 0.3], [0.4, 0.3, 0.2, 0.1]):
        # To which half each value goes.
        size = len(prior)
        halves = min(
            ([mask >> i & 1 for i in range(size)] for mask in range(2**size)),
            key=lambda sides: abs(math.fsum(p for p, side in zip(prior, sides, strict=True) if side) - 0.5),
        )
        rows = SymmetricChannel.randomized_response(1e-3, 2).to_channel().matrix[halves]
        ratios.append(Channel(rows).mutual_information(prior) / published.information_by_kairouz(1e-3, prior))
    return ratios


testing_items = (
    Item(
        AAC,
        "Corollary 4, (19), (51)",
        "error exponent of random (ε, δ)-LDP channels over φ KL(P0‖P1): the largest",
        "Channel.output_divergence('kl'), suprema.printed_contraction",
        largest_exponent_ratio,
        printed_number(1.0),
        bound_holds(),
    ),
    Item(
        AAC,
        "Corollary 4, sharper",
        "largest exponent of any (1, 0.01)-LDP test of two coins",
        "local.limits.testing(Guarantee(1, .01), p0, p1).error_exponent",
        lambda effort: limits.testing(ONE_NAT, P0, P1).error_exponent,
        lambda effort: (1 - 0.99 * math.exp(-1)) * kl_divergence(P0, P1),
        sharper_bound(),
    ),
    Item(
        AAC,
        "Chernoff-Stein, (50)",
        "exponent of the least type-II error of open coins tends to KL(P0‖P1): slope between 10 000 and 20 000 coins",
        "(n * from_pair(p0, p1).loss).tradeoff(.05)",
        chernoff_stein,
        lambda effort: kl_divergence(P0, P1),
        agrees_within(0.002),
    ),
    Item(
        AAC,
        "Equation (20), Kairouz et al.",
        "the binary mechanism for the evenest split has ½ P(T)(1 − P(T)) ε² nats to leading order: ratio at ε = 0.001",
        "channels.published.information_by_kairouz, Channel.mutual_information",
        small_epsilon,
        printed_number(1.0),
        agrees_within(1e-3),
    ),
    Item(
        AAC,
        "Corollary 5, (21)",
        "I(X; Z) over φ H(X): the largest over random (ε, δ)-LDP channels and priors",
        "Channel.mutual_information, suprema.printed_contraction",
        information_over_entropy,
        printed_number(1.0),
        bound_holds(),
    ),
    Item(
        AAC,
        "Corollary 5, sharper",
        "the most information of one report about a fair coin and a value with four, at ε = 0.5, 1, 2",
        "local.limits.mutual_information",
        lambda effort: [limits.mutual_information(Guarantee(e), [1 / k] * k) for e in (0.5, 1.0, 2.0) for k in (2, 4)],
        lambda effort: [-math.expm1(-e) * math.log(k) for e in (0.5, 1.0, 2.0) for k in (2, 4)],
        sharper_bound(),
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
        agrees_to_digits(9),
    ),
)
