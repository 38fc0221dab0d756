"""Local privacy as contraction of E_γ, and what other divergences contract by (AAC §II, III, Thm 3, (22)–(30))."""

from __future__ import annotations

import math
from functools import partial
from itertools import product

import numpy as np

from tightrope import Guarantee
from tightrope.channels import Channel, Divergence, SymmetricChannel, suprema
from tightrope.numerics.arrays import Floats
from tightrope.papers import instances
from tightrope.papers.gi.local_model import NAMES, F, by_definition
from tightrope.papers.item import (
    Effort,
    Item,
    agrees_to_digits,
    bound_attained,
    bound_holds,
    printed_number,
    sharper_bound,
)

AAC = "AAC"
TRIPLES = ((0.3, 0.0), (1.0, 0.05), (2.0, 0.2))
"""(ε, δ)."""
EXAMPLE = ((0.5, 2), (1.0, 2), (1.0, 5), (2.0, 20))
"""(ε, k) of randomized response."""


def hockey_stick(gamma: float) -> Divergence:
    """Return E_γ as an f-divergence, γ ≥ 1."""
    return Divergence(f"E_{gamma:g}", lambda t: max(0.0, t - gamma), at_zero=0.0, slope=1.0)


def over_sets(p: Floats, q: Floats, gamma: float) -> float:
    """Return (1), sup_A P(A) − γ Q(A), by enumerating every A."""
    sets = np.array(list(product((0.0, 1.0), repeat=len(p))))
    return float(np.max(sets @ (p - gamma * q)))


def three_forms(p: Floats, q: Floats, gamma: float) -> tuple[float, float, float]:
    """Return (22)–(24): the supremum over sets, Σ (p − γq)₊, and ½ Σ |p − γq| − (γ − 1)/2."""
    rest = p - gamma * q
    return over_sets(p, q, gamma), float(np.maximum(rest, 0).sum()), float(np.abs(rest).sum() / 2 - (gamma - 1) / 2)


def largest_form_difference(effort: Effort) -> float:
    """Return the largest difference of the three forms to the library's divergence, added to 1."""
    found = []
    for _ in range(effort.reduced_instances(0.5)):
        (p, q), gamma = instances.random_distributions(2, 4), instances.draw_between(1.0, 4.0)
        ours = Channel(np.eye(4)).output_divergence(hockey_stick(gamma), p, q)
        found += [abs(ours - form) for form in three_forms(p, q, gamma)]
    return 1 + instances.worst_of(found)


def _hockey_stick_term(gamma: float, t: float) -> float:
    """Return (t − γ)₊."""
    return max(0.0, t - gamma)


def two_points(effort: Effort) -> list[float]:
    """Return the largest E_γ of outputs divided by η_γ E_γ of inputs, and 1 + the error of η_γ from two rows."""
    ratios, differences = [], []
    for _ in range(effort.reduced_instances(0.5)):
        channel, laws, gamma = (
            instances.random_channel(3, 4),
            instances.random_distributions(2, 3),
            instances.draw_between(1.0, 2.0),
        )
        coefficient = channel.contraction(gamma)
        input_divergence = by_definition(partial(_hockey_stick_term, gamma), *laws)
        ratios.append(
            channel.output_divergence(hockey_stick(gamma), *laws) / (coefficient * input_divergence)
            if coefficient * input_divergence > NEGLIGIBLE
            else 0.0
        )
        pairs = [over_sets(channel.matrix[x], channel.matrix[y], gamma) for x, y in product(range(3), repeat=2)]
        differences.append(abs(max(pairs) - coefficient))
    return [instances.worst_of(ratios), 1 + instances.worst_of(differences)]


NEGLIGIBLE = 1e-9
"""Smaller divergences are not used as divisors."""


def theorem_1(effort: Effort) -> float:
    """Return the largest E_{e^ε} of the outputs divided by δ E_{e^ε} of the inputs, δ of each channel."""
    found = []
    for _ in range(effort.reduced_instances(0.5)):
        channel, laws, epsilon = (
            instances.random_channel(3, 4),
            instances.random_distributions(2, 3),
            instances.draw_between(0.0, 1.0),
        )
        delta, f = float(channel.profile(epsilon)), hockey_stick(math.exp(epsilon))
        apart = Channel(np.eye(3)).output_divergence(f, *laws)
        if delta * apart > NEGLIGIBLE:
            found.append(channel.output_divergence(f, *laws) / (delta * apart))
    return instances.worst_of(found)


def definition_1(effort: Effort) -> float:
    """Return 1 + the largest difference of sup_S P(S) − e^ε Q(S) from δ, for the ε of a channel at a random δ (4)."""
    found = []
    for _ in range(effort.reduced_instances(0.5)):
        channel = instances.random_channel(2, 3)
        delta = instances.draw_between(0.0, 1.0) * channel.total_variation
        epsilon = channel.guarantee(delta).epsilon
        rows = channel.matrix
        worst = max(over_sets(rows[x], rows[1 - x], math.exp(epsilon)) for x in (0, 1))
        found.append(worst - delta)
    return 1 + instances.worst_of(found)


def approximate_channel(guarantee: Guarantee) -> Channel:
    """Return a random (ε, δ)-LDP channel of three inputs: with probability δ the value itself, else ε-LDP."""
    private = instances.random_private_channel(Guarantee(guarantee.epsilon), 3, 4).matrix
    return Channel(np.column_stack([guarantee.delta * np.eye(3), (1 - guarantee.delta) * private]))


def lemma_1(effort: Effort) -> float:
    """Return the largest D_f of the outputs divided by φ D_f of the inputs, random (ε, δ)-LDP channels."""
    found = []
    for _ in range(effort.reduced_instances(0.5)):
        one, laws, name = (
            instances.random_guarantee(),
            instances.random_distributions(2, 3),
            NAMES[instances.draw_integer(0, 3)],
        )
        most = suprema.printed_contraction(one) * by_definition(F[name], *laws)
        found.append(approximate_channel(one).output_divergence(name, *laws) / most)
    return instances.worst_of(found)


def lemma_2(effort: Effort) -> float:
    """Return the largest η_KL of two people's channels together, divided by φ_2."""
    found = []
    for _ in range(effort.reduced_instances(0.1)):
        one = instances.random_guarantee()
        channel = approximate_channel(one)
        found.append(channel.product_with(channel).kl_contraction / suprema.printed_contraction(one, 2))
    return instances.worst_of(found)


def claim_28(effort: Effort) -> float:
    """Return 1 + the largest violation of 1 − γ(1 − TV) ≤ E_γ ≤ TV."""
    found = []
    for _ in range(effort.reduced_instances(0.5)):
        channel, gamma = instances.random_channel(3, 4), instances.draw_between(1.0, 4.0)
        bounds = channel.contraction(gamma)
        low, high = 1 - gamma * (1 - channel.total_variation), channel.total_variation
        found.append(max(low - bounds, bounds - high))
    return 1 + instances.worst_of(found)


def claim_30(effort: Effort) -> float:
    """Return the largest D_f of the outputs divided by η_TV D_f of the inputs."""
    found = []
    for _ in range(effort.reduced_instances(0.5)):
        channel, laws, name = (
            instances.random_channel(3, 4),
            instances.random_distributions(2, 3),
            NAMES[instances.draw_integer(0, 3)],
        )
        found.append(channel.output_divergence(name, *laws) / (channel.total_variation * by_definition(F[name], *laws)))
    return instances.worst_of(found)


def randomized_response_channel(epsilon: float, k: int) -> Channel:
    """Return k-ary randomized response as a matrix."""
    return SymmetricChannel.randomized_response(epsilon, k).to_channel()


items = (
    Item(
        AAC,
        "Equation (1) and (22)-(24)",
        "four forms of E_γ: largest difference over random laws, added to 1",
        "Channel.output_divergence(Divergence(...))",
        largest_form_difference,
        printed_number(1.0),
        agrees_to_digits(9),
    ),
    Item(
        AAC,
        "Equations (2) and (3), (30)",
        "every f-divergence contracts by at most the total variation of the channel: the largest share of that",
        "Channel.output_divergence, .total_variation",
        claim_30,
        printed_number(1.0),
        bound_holds(),
    ),
    Item(
        AAC,
        "Theorem 3, (25), (26)",
        "E_γ contracts by its value at two sure inputs: random laws, and the difference at the best two inputs",
        "Channel.contraction(gamma)",
        two_points,
        printed_number(1.0, 1.0),
        bound_attained(),
    ),
    Item(
        AAC,
        "Definition 1, (4)",
        "the ε of a channel at a δ, checked on all sets of outputs: largest distance to δ, added to 1",
        "Channel.guarantee(delta)",
        definition_1,
        printed_number(1.0),
        agrees_to_digits(8),
    ),
    Item(
        AAC,
        "Theorem 1, (27)",
        "(ε, δ)-LDP is contraction of E_{e^ε} by δ: the largest share of that over random channels and laws",
        "Channel.profile, Channel.output_divergence",
        theorem_1,
        printed_number(1.0),
        bound_holds(1e-7),
    ),
    Item(
        AAC,
        "Example 1, binary",
        "E_{e^ε} of randomized response is 0",
        "SymmetricChannel.randomized_response(eps, 2).contraction",
        lambda effort: [randomized_response_channel(e, k).contraction(math.exp(e)) for e, k in EXAMPLE[:2]],
        printed_number(0.0),
        agrees_to_digits(9),
    ),
    Item(
        AAC,
        "Example 1, k-ary",
        "the same for k values, for random laws of the value, too",
        "SymmetricChannel.randomized_response(eps, k)",
        lambda effort: [
            value
            for e, k in EXAMPLE[2:]
            for value in (
                randomized_response_channel(e, k).contraction(math.exp(e)),
                randomized_response_channel(e, k).output_divergence(
                    hockey_stick(math.exp(e)), *instances.random_distributions(2, k)
                ),
            )
        ],
        printed_number(0.0),
        agrees_to_digits(9),
    ),
    Item(
        AAC,
        "Lemma 1, (29)",
        "D_f of the outputs over φ D_f of the inputs: the largest over random (ε, δ)-LDP channels",
        "suprema.printed_contraction",
        lemma_1,
        printed_number(1.0),
        bound_holds(),
    ),
    Item(
        AAC,
        "Lemma 1, sharper",
        "what every f-divergence contracts by, beside φ = 1 − (1 − δ)e^(−ε)",
        "suprema.contraction(Guarantee(eps, delta))",
        lambda effort: [suprema.contraction(Guarantee(e, d)) for e, d in TRIPLES],
        lambda effort: [1 - (1 - d) * math.exp(-e) for e, d in TRIPLES],
        sharper_bound(),
    ),
    Item(
        AAC,
        "Lemma 1, remark on randomized response",
        "its η_KL is tanh²(ε/2), below φ",
        "SymmetricChannel.randomized_response(eps, 2).kl_contraction",
        lambda effort: [randomized_response_channel(e, 2).kl_contraction for e in (0.3, 1.0, 2.0)],
        lambda effort: [((math.exp(e) - 1) / (math.exp(e) + 1)) ** 2 for e in (0.3, 1.0, 2.0)],
        agrees_to_digits(9),
    ),
    Item(
        AAC,
        "Lemma 2",
        "two people's reports together contract KL by at most φ_2: the largest share over random channels",
        "Channel.product_with, suprema.printed_contraction(..., 2)",
        lemma_2,
        printed_number(1.0),
        bound_holds(),
    ),
    Item(
        AAC,
        "Lemma 2, φ_n",
        "φ_n = 1 − e^(−nε)(1 − δ)^n for n = 1, 5, 50",
        "suprema.printed_contraction(guarantee, n)",
        lambda effort: [suprema.printed_contraction(Guarantee(e, d), n) for e, d in TRIPLES for n in (1, 5, 50)],
        lambda effort: [1 - math.exp(-n * e) * (1 - d) ** n for e, d in TRIPLES for n in (1, 5, 50)],
        agrees_to_digits(9),
    ),
    Item(
        AAC,
        "Lemma 2, sharper",
        "KL of n = 5 reports contracts by 1 − (1 − κ)^n",
        "suprema.kl_contraction(guarantee, n)",
        lambda effort: [suprema.kl_contraction(Guarantee(e, d), 5) for e, d in TRIPLES],
        lambda effort: [1 - math.exp(-5 * e) * (1 - d) ** 5 for e, d in TRIPLES],
        sharper_bound(),
    ),
    Item(
        AAC,
        "Claim (28)",
        "1 − γ(1 − TV) ≤ E_γ ≤ TV: largest violation over random channels, added to 1",
        "Channel.contraction, .total_variation",
        claim_28,
        printed_number(1.0),
        bound_holds(),
    ),
    Item(
        AAC,
        "Effective sample size",
        "n people are worth at most nφ; with κ = δ + (η − δ) tanh(ε/2) they are worth less: per person",
        "suprema.kl_contraction(Guarantee(eps, delta))",
        lambda effort: [suprema.kl_contraction(Guarantee(e, d)) for e, d in TRIPLES],
        lambda effort: [1 - (1 - d) * math.exp(-e) for e, d in TRIPLES],
        sharper_bound(),
    ),
)
