"""Contraction of KL and χ² divergences, and erasure (GI Thms 5–7, §VII-C–E, App. H)."""

from __future__ import annotations

import math

import numpy as np
from scipy import optimize

from tightrope import Guarantee
from tightrope.channels import Channel, SymmetricChannel, extremal, published, suprema
from tightrope.numerics.arrays import Floats
from tightrope.papers import instances
from tightrope.papers.gi.local_model import NAMES, PAIRS
from tightrope.papers.gi.regions import GI
from tightrope.papers.item import (
    Effort,
    Item,
    agrees_to_digits,
    bound_attained,
    bound_holds,
    printed_number,
    sharper_bound,
)
from tightrope.reporting.charts.panels import Drawing, Line, Panel

RESPONSES = ((0.5, 2), (0.5, 10), (1.0, 3), (1.3, 10), (2.0, 4), (3.0, 100))
"""(ε, M) of the M-ary randomized response."""


SLACK = 1e-6
"""Divergences below this have few digits of their own."""


def le_cam(p: Floats, q: Floats, beta: float) -> float:
    """(38): β(1−β) Σ (p − q)²/(βp + (1−β)q)."""
    mixed = beta * p + (1 - beta) * q
    return float(beta * (1 - beta) * np.sum(np.where(mixed > 0, (p - q) ** 2 / np.where(mixed > 0, mixed, 1.0), 0.0)))


def largest_le_cam(p: Floats, q: Floats) -> float:
    """(37): over β, which it is concave in."""
    found = optimize.minimize_scalar(
        lambda b: -le_cam(p, q, b), bounds=(0.0, 1.0), method="bounded", options={"xatol": 1e-10}
    )
    return -float(found.fun)


def largest_le_cam_ratio(effort: Effort) -> float:
    """Return the largest relative difference of the coefficient to (37), over random pairs of rows, added to 1."""
    found = []
    for _ in range(effort.reduced_instances(0.5)):
        rows = instances.random_channel(2, instances.draw_integer(2, 5)).matrix
        mine = Channel(rows).kl_contraction
        found.append(abs(mine - largest_le_cam(*rows)) / mine)
    return 1 + instances.worst_of(found)


def compare_with_theorem_5(effort: Effort) -> list[float]:
    """Return η_KL divided by η tanh(ε/2): the largest of random private channels, and the dominating mechanism."""
    found = []
    for _ in range(effort.reduced_instances(0.5)):
        triple = instances.random_guarantee(pure=True)
        found.append(instances.random_private_channel(triple, 3, 4).kl_contraction / suprema.kl_contraction(triple))
    triple = Guarantee(1.0, 0.0, 0.3)
    return [
        instances.worst_of(found),
        extremal.dominating_channel(triple).kl_contraction / suprema.kl_contraction(triple),
    ]


def compare_with_proxy(effort: Effort) -> float:
    """Return the largest η_KL of a random channel divided by its proxy."""
    channels = [instances.random_channel(3, 4) for _ in range(effort.reduced_instances(0.5))]
    return instances.worst_of([one.kl_contraction / suprema.kl_contraction(one.guarantee(0.0)) for one in channels])


def compare_with_theorem_6(effort: Effort) -> float:
    """Return the largest χ²(M₀‖M₁) divided by the bound of Theorem 6."""
    ratios = []
    for _ in range(effort.reduced_instances(0.5)):
        triple, laws = instances.random_guarantee(pure=True), instances.random_distributions(2, 3)
        variation = float(np.abs(laws[0] - laws[1]).sum()) / 2
        chi_squared = instances.random_private_channel(triple, 3, 4).output_divergence("chi_squared", *laws)
        ratios.append(chi_squared / suprema.printed_chi_squared(triple, variation))
    return instances.worst_of(ratios)


def kept_by_erasure(effort: Effort) -> float:
    """Return 1 + the largest relative difference of D_f after erasure from the kept fraction of D_f (Theorem 7)."""
    differences = []
    for _ in range(effort.reduced_instances(0.5)):
        triple, laws, name = (
            instances.random_guarantee(pure=True),
            instances.random_distributions(2, 3),
            NAMES[instances.draw_integer(0, 3)],
        )
        channel = instances.random_private_channel(Guarantee(triple.epsilon), 3, 3)
        kept_fraction = suprema.share_kept_by_erasure(triple)
        erased = channel.erase(1 - kept_fraction)
        expected = kept_fraction * channel.output_divergence(name, *laws)
        differences.append(abs(erased.output_divergence(name, *laws) - expected) / max(expected, SLACK))
        differences.append(max(0.0, erased.total_variation - triple.total_variation))
        differences.append(max(0.0, erased.epsilon - triple.epsilon))
    return 1 + instances.worst_of(differences)


def lemma_3(effort: Effort) -> float:
    """Return the largest total variation after erasure divided by (1 − α) tanh(ε/2)."""
    found = []
    for _ in range(effort.reduced_instances(0.5)):
        epsilon, alpha = instances.draw_between(0.1, 3.0), instances.draw_between(0.0, 0.95)
        channel = instances.random_private_channel(Guarantee(epsilon), 3, 3).erase(alpha)
        found.append(channel.total_variation / ((1 - alpha) * math.tanh(epsilon / 2)))
    return instances.worst_of(found)


def binary_share(effort: Effort) -> float:
    """Return the largest ratio of (41) to the fraction of the best KL found that binary with erasure attains."""
    found = []
    for _ in range(effort.reduced_instances(0.5)):
        triple, laws = instances.random_guarantee(pure=True), instances.random_distributions(2, 3)
        binary = extremal.binary_with_erasure(laws[0], laws[1], triple).output_divergence("kl", *laws)
        other = instances.random_private_channel(triple, 3, 4).output_divergence("kl", *laws)
        found.append(published.binary_share(triple) * max(other, binary) / binary)
    return instances.worst_of(found)


def draw_shares(effort: Effort) -> list[Drawing]:
    """Draw (41) and the sharper bound, with the largest η."""
    x = np.linspace(0.05, 4.0, 8 * effort.grid).tolist()
    lines = [
        Line("ours, 2η/(e^ε − 1)", x, [suprema.binary_share_of_best_kl(Guarantee(e)) for e in x]),
        Line("(41)", x, [published.binary_share(Guarantee(e)) for e in x]),
    ]
    return [Panel("GI (41): share of the best KL, largest η", "ε", "share", lines, log_y=True)]


items = (
    Item(
        GI,
        "Theorem 5",
        "η_KL over its supremum: random private channels, and the dominating mechanism",
        "suprema.kl_contraction, Channel.kl_contraction",
        compare_with_theorem_5,
        printed_number(1.0, 1.0),
        bound_attained(),
    ),
    Item(
        GI,
        "Equation (33)",
        "η tanh(ε/2) at nine (ε, η)",
        "suprema.kl_contraction",
        lambda effort: [suprema.kl_contraction(Guarantee(e, 0.0, eta)) for e, eta in PAIRS],
        lambda effort: [eta * math.expm1(e) / (math.exp(e) + 1) for e, eta in PAIRS],
        agrees_to_digits(9),
    ),
    Item(
        GI,
        "Equation (34)",
        "without a bound on η: tanh²(ε/2)",
        "suprema.kl_contraction(Guarantee(eps))",
        lambda effort: [suprema.kl_contraction(Guarantee(e)) for e in (0.1, 1.0, 3.0)],
        lambda effort: [(math.expm1(e) / (math.exp(e) + 1)) ** 2 for e in (0.1, 1.0, 3.0)],
        agrees_to_digits(9),
    ),
    Item(
        GI,
        "Equations (35) and (36)",
        "M-ary randomized response attains its bound, six (ε, M)",
        "SymmetricChannel.randomized_response(eps, M).kl_contraction",
        lambda effort: [SymmetricChannel.randomized_response(e, m).kl_contraction for e, m in RESPONSES],
        lambda effort: [math.expm1(e) ** 2 / ((math.exp(e) + m - 1) * (math.exp(e) + 1)) for e, m in RESPONSES],
        agrees_to_digits(9),
    ),
    Item(
        GI,
        "VII-C: comparing two mechanisms",
        "the proxy η tanh(ε/2) from a channel's own parameters is never below its η_KL: largest share",
        "Channel.guarantee(0), suprema.kl_contraction",
        compare_with_proxy,
        printed_number(1.0),
        bound_holds(),
    ),
    Item(
        GI,
        "Equations (37) and (38)",
        "η_KL of two rows is the largest Le Cam divergence: largest relative difference, added to 1",
        "Channel.kl_contraction",
        largest_le_cam_ratio,
        printed_number(1.0),
        agrees_to_digits(7),
    ),
    Item(
        GI,
        "Theorem 6",
        "χ² of the outputs over the bound (40): the largest over random channels",
        "suprema.printed_chi_squared",
        compare_with_theorem_6,
        printed_number(1.0),
        bound_holds(),
    ),
    Item(
        GI,
        "Equation (40), sharper",
        "bound on χ² of the outputs at TV = 0.5 and 0.1, nine (ε, η)",
        "suprema.chi_squared",
        lambda effort: [suprema.chi_squared(Guarantee(e, 0.0, eta), t) for e, eta in PAIRS for t in (0.5, 0.1)],
        lambda effort: [4 * eta * math.expm1(e) * (math.exp(-e) + 1) * t * t for e, eta in PAIRS for t in (0.5, 0.1)],
        sharper_bound(),
    ),
    Item(
        GI,
        "VII-D1: binary mechanism with erasure",
        "its KL is never below the share (41) of any other channel's: the largest share over the truth",
        "channels.published.binary_share, extremal.binary_with_erasure",
        binary_share,
        printed_number(1.0),
        bound_holds(),
    ),
    Item(
        GI,
        "Equation (41)",
        "the share of the best KL that is certain, at (1, 0.3) and eight more (ε, η)",
        "suprema.binary_share_of_best_kl",
        lambda effort: [suprema.binary_share_of_best_kl(Guarantee(e, 0.0, n)) for e, n in ((1.0, 0.3), *PAIRS[1:])],
        lambda effort: [published.binary_share(Guarantee(e, 0.0, n)) for e, n in ((1.0, 0.3), *PAIRS[1:])],
        sharper_bound("higher"),
        draw_shares,
    ),
    Item(
        GI,
        "Equation (41) at small ε",
        "with η = cε it tends to c/4: c = 0.1 and 0.4 at ε = 10⁻⁶",
        "channels.published.binary_share",
        lambda effort: [published.binary_share(Guarantee(1e-6, 0.0, c * 1e-6)) for c in (0.1, 0.4)],
        printed_number(0.025, 0.1),
        agrees_to_digits(5),
    ),
    Item(
        GI,
        "Theorem 7, (42), Appendix H",
        "erased reports keep η/tanh(ε/2) of every f-divergence within (ε, η): largest difference, added to 1",
        "Channel.erase, suprema.share_kept_by_erasure",
        kept_by_erasure,
        printed_number(1.0),
        agrees_to_digits(7),
    ),
    Item(
        GI,
        "Lemma 3 (Appendix H)",
        "total variation after erasure over (1 − α) tanh(ε/2): the largest over random channels",
        "Channel.erase(alpha).total_variation",
        lemma_3,
        printed_number(1.0),
        bound_holds(),
    ),
)
