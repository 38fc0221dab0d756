"""Local privacy with a total variation: definitions, the best channels (GI §VII-A, B, Prop. 2, Thm 4, App. G)."""

from __future__ import annotations

import math
from collections.abc import Callable
from itertools import product

import numpy as np

from tightrope import Guarantee
from tightrope.channels import Channel, Divergence, extremal, suprema
from tightrope.numerics.arrays import Floats
from tightrope.papers import instances
from tightrope.papers.gi.regions import GI
from tightrope.papers.item import (
    Effort,
    Item,
    agrees_to_digits,
    bound_attained,
    bound_holds,
    paper_is_wrong,
    printed_number,
)

NAMES = ("kl", "total_variation", "chi_squared", "hellinger")
F: dict[str, Callable[[float], float]] = {
    "kl": lambda t: t * math.log(t),
    "total_variation": lambda t: max(0.0, t - 1),
    "chi_squared": lambda t: (t - 1) ** 2,
    "hellinger": lambda t: (math.sqrt(t) - 1) ** 2,
}
PAIRS = tuple((epsilon, share * math.tanh(epsilon / 2)) for epsilon in (0.3, 1.0, 2.0) for share in (0.2, 0.7, 1.0))
"""(ε, η)."""
NOISELESS = np.eye(2)
P0, P1 = np.array([0.5, 0.3, 0.2]), np.array([0.2, 0.3, 0.5])


def by_definition(f: Callable[[float], float], p: Floats, q: Floats) -> float:
    """Return Σ q f(p/q)."""
    return math.fsum(b * f(a / b) for a, b in zip(p.tolist(), q.tolist(), strict=True))


def definition_20(effort: Effort) -> float:
    """Return 1 + the largest relative difference of D_f from its definition (Definition 20)."""
    found = []
    for _ in range(effort.reduced_instances(0.5)):
        channel, laws = instances.random_channel(3, 4), instances.random_distributions(2, 3)
        name = NAMES[instances.draw_integer(0, 3)]
        ours = channel.output_divergence(name, *laws)
        found.append(abs(ours - by_definition(F[name], *(laws @ channel.matrix))) / ours)
    return 1 + instances.worst_of(found)


def largest_contraction_ratio(effort: Effort) -> float:
    """Return the largest D_f(M₀‖M₁) / (η_f D_f(P₀‖P₁)), η_f the coefficient of the channel."""
    ratios = []
    for _ in range(effort.reduced_instances(0.5)):
        channel, laws = instances.random_channel(3, 4), instances.random_distributions(2, 3)
        name = NAMES[instances.draw_integer(0, 3)]
        coefficient = channel.total_variation if name == "total_variation" else channel.kl_contraction
        ratios.append(channel.output_divergence(name, *laws) / (coefficient * by_definition(F[name], *laws)))
    return instances.worst_of(ratios)


def privacy_by_subsets(effort: Effort) -> float:
    """Return 1 + the largest difference from Definitions 6 and 7, by all sets S and pairs of inputs."""
    found = []
    for _ in range(effort.reduced_instances(0.5)):
        channel = instances.random_channel(3, 3)
        sets = [np.array(chosen, dtype=bool) for chosen in product((False, True), repeat=3) if any(chosen)]
        sums = np.stack([channel.matrix[:, chosen].sum(axis=1) for chosen in sets])
        found.append(abs(channel.epsilon - float(np.log(sums.max(axis=1) / sums.min(axis=1)).max())))
        found.append(abs(channel.total_variation - float((sums.max(axis=1) - sums.min(axis=1)).max())))
    return 1 + instances.worst_of(found)


def largest_variation_ratios(effort: Effort) -> list[float]:
    """Return TV(M₀, M₁) / (η TV(P₀, P₁)): the largest of random channels, and the binary mechanism with erasure."""
    ratios = []
    for _ in range(effort.reduced_instances(0.5)):
        triple, laws = instances.random_guarantee(pure=True), instances.random_distributions(2, 3)
        channel = instances.random_private_channel(triple, 3, 4)
        input_variation = float(np.abs(laws[0] - laws[1]).sum()) / 2
        ratios.append(channel.output_divergence("total_variation", *laws) / (triple.total_variation * input_variation))
    best = Guarantee(1.0, 0.0, 0.3)
    attained = extremal.binary_with_erasure(P0, P1, best).output_divergence("total_variation", P0, P1)
    return [instances.worst_of(ratios), attained / (0.3 * 0.3)]


def rows_against_theorem_4(effort: Effort) -> list[float]:
    """Return D_f of two rows divided by the supremum: the largest of random channels, and the dominating one."""
    ratios = []
    for _ in range(effort.reduced_instances(0.5)):
        triple, name = instances.random_guarantee(pure=True), NAMES[instances.draw_integer(0, 3)]
        rows = instances.random_private_channel(triple, 2, 4).matrix
        ratios.append(Channel(rows).output_divergence(name, *NOISELESS) / suprema.divergence_of_rows(name, triple))
    triple = Guarantee(1.0, 0.0, 0.3)
    attained = extremal.dominating_channel(triple).output_divergence("kl", *NOISELESS) / suprema.divergence_of_rows(
        "kl", triple
    )
    return [instances.worst_of(ratios), attained]


def contraction_suprema(effort: Effort) -> list[float]:
    """Return the supremum for each f, ε and η."""
    return [suprema.divergence_of_rows(name, Guarantee(e, 0.0, eta)) for name in NAMES for e, eta in PAIRS]


def formula_32(effort: Effort) -> list[float]:
    """Return η (f(e^ε) + e^ε f(e^{−ε}))/(e^ε − 1) for each f, ε and η."""
    return [
        eta * (F[name](math.exp(e)) + math.exp(e) * F[name](math.exp(-e))) / math.expm1(e)
        for name in NAMES for e, eta in PAIRS
    ]  # fmt: skip


def any_f(effort: Effort) -> list[float]:
    """Return the supremum for an f that is not built in, |t − 1|³, at three ε."""
    f = Divergence("cube", lambda t: abs(t - 1) ** 3, at_zero=1.0, slope=math.inf)
    return [suprema.divergence_of_rows(f, Guarantee(e)) for e in (0.3, 1.0, 2.0)]


def rows_28(effort: Effort) -> list[float]:
    """Return the rows of the dominating channel with δ = 0."""
    return [
        float(value) for e, eta in PAIRS
        for value in extremal.dominating_channel(Guarantee(e, 0.0, eta)).matrix[:, 1:4].ravel()
    ]  # fmt: skip


def printed_28(effort: Effort) -> list[float]:
    """Return the same rows by (28), with its third output in the middle."""
    values = []
    for e, eta in PAIRS:
        high, low = eta * math.exp(e) / math.expm1(e), eta / math.expm1(e)
        rest = 1 - eta * (math.exp(e) + 1) / math.expm1(e)
        values += [high, rest, low, low, rest, high]
    return values


items = (
    Item(
        GI,
        "Equation (20)",
        "f-divergence of (1/2, 1/2) from (1/4, 3/4) for f = t log t: as it is, and from the printed expectation of "
        "dP0/dP1 alone",
        "Channel.output_divergence('kl', ...)",
        lambda effort: Channel(np.eye(2)).output_divergence("kl", [0.5, 0.5], [0.25, 0.75]),
        lambda effort: 0.25 * (0.5 / 0.25) + 0.75 * (0.5 / 0.75),
        paper_is_wrong("f is missing before dP0/dP1, and the expectation is under P1"),
    ),
    Item(
        GI,
        "Equation (21)",
        "D_f of a channel's outputs is that of the two marginals: largest relative difference, added to 1",
        "Channel.output_divergence",
        definition_20,
        printed_number(1.0),
        agrees_to_digits(8),
    ),
    Item(
        GI,
        "Equations (22) and (23)",
        "outputs keep at most the contraction coefficient of the input's divergence: largest share of it",
        "Channel.output_divergence, .kl_contraction, .total_variation",
        largest_contraction_ratio,
        printed_number(1.0),
        bound_holds(),
    ),
    Item(
        GI,
        "Definitions 6 and 7, (24), (25)",
        "ε and η of random channels from all sets of outputs: largest difference, added to 1",
        "Channel.epsilon, .total_variation",
        privacy_by_subsets,
        printed_number(1.0),
        agrees_to_digits(9),
    ),
    Item(
        GI,
        "Equation (26)",
        "largest total variation of an ε-LDP channel at ε = 1 (also in the text of Theorem 6)",
        "Guarantee(1).total_variation",
        lambda effort: Guarantee(1.0).total_variation,
        lambda effort: (math.e + 1) / (math.e - 1),
        paper_is_wrong("the fraction is upside down: as printed it exceeds 1"),
    ),
    Item(
        GI,
        "Equations (27)-(29)",
        "the dominating mechanism of nine (ε, η), entry by entry",
        "extremal.dominating_channel",
        rows_28,
        printed_28,
        agrees_to_digits(9),
    ),
    Item(
        GI,
        "Proposition 2, (30), (31), Appendix G",
        "total variation of outputs over η times that of inputs: random channels, and the binary mechanism with "
        "erasure",
        "extremal.binary_with_erasure, Channel.output_divergence",
        largest_variation_ratios,
        printed_number(1.0, 1.0),
        bound_attained(),
    ),
    Item(
        GI,
        "Theorem 4",
        "D_f of two rows over the supremum: random channels, and the dominating mechanism",
        "suprema.divergence_of_rows, extremal.dominating_channel",
        rows_against_theorem_4,
        printed_number(1.0, 1.0),
        bound_attained(),
    ),
    Item(
        GI,
        "Equation (32)",
        "the supremum of four divergences at nine (ε, η)",
        "suprema.divergence_of_rows",
        contraction_suprema,
        formula_32,
        agrees_to_digits(9),
    ),
    Item(
        GI,
        "Corollary of Theorem 4",
        "without a bound on η, and for any f: |t − 1|³ at three ε",
        "suprema.divergence_of_rows(Divergence(...), Guarantee(eps))",
        any_f,
        lambda effort: [
            (math.expm1(e) ** 3 + math.exp(e) * (1 - math.exp(-e)) ** 3) / (math.exp(e) + 1) for e in (0.3, 1.0, 2.0)
        ],
        agrees_to_digits(9),
    ),
)
