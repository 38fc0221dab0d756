"""Divergences, and privacy of points and of distributions (KM §II, III, Table I, Fig. 1)."""

from __future__ import annotations

import math
from itertools import permutations, product

import numpy as np

from tightrope.channels import Channel
from tightrope.numerics.arrays import Floats
from tightrope.papers import instances
from tightrope.papers.item import Effort, Item, agrees_to_digits, paper_is_wrong, printed_number
from tightrope.reporting.charts.panels import Diagram, Drawing
from tightrope.transport import MetricMechanism, distribution_privacy, extended_distribution_privacy, wasserstein

KM = "KM"
P, Q = np.array([0.5, 0.3, 0.2]), np.array([0.25, 0.25, 0.5])
LINE = np.abs(np.subtract.outer(np.arange(3.0), np.arange(3.0)))
"""Three points in a row."""
THREE_POINTS = np.eye(3)


def f_sum(p: Floats, q: Floats, name: str) -> float:
    """Return Σ q f(p/q) with the f of Table I, and −log t for reverse KL."""
    t = p / q
    f = {
        "kl": t * np.log(t),
        "reverse_kl": -np.log(t),
        "total_variation": np.abs(t - 1) / 2,
        "chi_squared": (t - 1) ** 2,
        "hellinger": (np.sqrt(t) - 1) ** 2 / 2,
    }[name]
    return float(q @ f)


TABLE_I = ("kl", "reverse_kl", "total_variation", "chi_squared", "hellinger")


def approximate_max(p: Floats, q: Floats, delta: float) -> float:
    """Return (Definition 5) the max over sets R with p(R) ≥ δ of log((p(R) − δ)/q(R)), at least 0."""
    sets = [np.array(chosen, dtype=bool) for chosen in product((False, True), repeat=len(p)) if any(chosen)]
    return max(0.0, *(math.log(max(p[r].sum() - delta, 1e-300) / q[r].sum()) for r in sets))


def both_ways(p: Floats, q: Floats, delta: float) -> float:
    """Return the larger of both orders."""
    return max(approximate_max(p, q, delta), approximate_max(q, p, delta))


def random_channels(effort: Effort, fraction: float = 0.2) -> list[Floats]:
    """Return random channels of three points."""
    return [instances.random_channel(3, 3).matrix for _ in range(effort.reduced_instances(fraction))]


def definition_5(effort: Effort) -> float:
    """Return the largest difference of D_∞^δ to all sets, added to 1."""
    found = []
    for rows in random_channels(effort):
        delta = instances.draw_between(0.0, 0.3)
        ours = distribution_privacy(rows, [(THREE_POINTS[0], THREE_POINTS[1])], "approximate_max", delta=delta).epsilon
        found.append(abs(ours - both_ways(rows[0], rows[1], delta)))
    return 1 + instances.worst_of(found)


def proposition_1(effort: Effort) -> float:
    """Return 1 + the largest difference of D_∞^δ between points from the ε of the channel's profile."""
    found = []
    for rows in random_channels(effort):
        delta = instances.draw_between(0.01, 0.3)
        pairs = [(THREE_POINTS[x], THREE_POINTS[y]) for x, y in permutations(range(3), 2)]
        ours = distribution_privacy(rows, pairs, "approximate_max", delta=delta).epsilon
        found.append(abs(ours - Channel(rows).guarantee(delta).epsilon))
    return 1 + instances.worst_of(found)


def definition_2(effort: Effort) -> float:
    """Return 1 + the largest difference of the ε of ε·d privacy from the largest log-ratio per unit of distance."""
    found = []
    for rows in random_channels(effort):
        logs = np.log(rows)
        worst = max(float((logs[x] - logs[y]).max()) / LINE[x, y] for x, y in permutations(range(3), 2))
        found.append(abs(MetricMechanism.from_channel(rows, LINE).epsilon - worst))
    return 1 + instances.worst_of(found)


def definition_3(effort: Effort) -> float:
    """Return 1 + the largest difference of DistP's ε from its definition by all sets of outputs."""
    found = []
    for rows in random_channels(effort):
        laws, delta = instances.random_distribution_pair(3), instances.draw_between(0.0, 0.1)
        ours = distribution_privacy(rows, [(laws[0], laws[1])], "approximate_max", delta=delta).epsilon
        found.append(abs(ours - both_ways(laws[0] @ rows, laws[1] @ rows, delta)))
    return 1 + instances.worst_of(found)


def definition_4(effort: Effort) -> float:
    """Return 1 + the largest relative difference of XDistP's ε from D_∞ divided by W_∞."""
    found = []
    for rows in random_channels(effort):
        laws = instances.random_distribution_pair(3)
        pair = [(laws[0], laws[1])]
        ours = extended_distribution_privacy(rows, pair, "max", LINE, p=math.inf).epsilon
        distance = wasserstein(*laws, LINE, p=math.inf)
        found.append(abs(ours * distance / both_ways(laws[0] @ rows, laws[1] @ rows, 0.0) - 1))
    return 1 + instances.worst_of(found)


def divergence_ratios_of_distributions(effort: Effort) -> float:
    """Divergence DP, XDP, DistP and XDistP (Defs. 9–12) for Table I: largest relative difference, plus 1."""
    found = []
    for rows in random_channels(effort):
        name, laws = TABLE_I[instances.draw_integer(0, 4)], instances.random_distribution_pair(3)
        scale = 2.0 if name == "hellinger" else 1.0
        outputs = np.stack(laws) @ rows
        apart = scale * max(f_sum(outputs[0], outputs[1], name), f_sum(outputs[1], outputs[0], name))
        found.append(abs(distribution_privacy(rows, [(laws[0], laws[1])], name).epsilon / apart - 1))
        per_unit = extended_distribution_privacy(rows, [(laws[0], laws[1])], name, LINE).epsilon
        found.append(abs(per_unit * wasserstein(*laws, LINE) / apart - 1))
    return 1 + instances.worst_of(found)


def table_i() -> list[float]:
    """Return the five divergences of two distributions; ours of Hellinger is twice the paper's."""
    found = {name: distribution_privacy(np.stack([P, Q]), [([1.0, 0.0], [0.0, 1.0])], name) for name in TABLE_I}
    return [found[name].epsilon / (2.0 if name == "hellinger" else 1.0) for name in TABLE_I]


def printed_table_i() -> list[float]:
    """Return the same divergences from the functions f of the table, in the worse order of each pair."""
    return [max(f_sum(P, Q, name), f_sum(Q, P, name)) for name in TABLE_I]


def draw_divergence_figure(effort: Effort) -> list[Drawing]:
    """Draw Figure 1."""
    boxes = [("x of law λ", 0.14, 0.5), ("obfuscater A", 0.5, 0.5), ("y of law A#(λ)", 0.86, 0.5)]
    return [Diagram("KM Fig. 1: a value, and the law behind it, obfuscated", boxes, [
        ("x of law λ", "obfuscater A", ""), ("obfuscater A", "y of law A#(λ)", "")
    ])]  # fmt: skip


items = (
    Item(
        KM,
        "Figure 1",
        "the output law A#(λ) of a value of law λ, entry by entry",
        "Channel.output_distribution",
        lambda effort: [
            float(v) for v in Channel([[0.7, 0.2, 0.1], [0.1, 0.8, 0.1], [0.3, 0.3, 0.4]]).output_distribution(P)
        ],
        printed_number(0.5 * 0.7 + 0.3 * 0.1 + 0.2 * 0.3, 0.5 * 0.2 + 0.3 * 0.8 + 0.2 * 0.3, 0.05 + 0.03 + 0.08),
        agrees_to_digits(9),
        draw_divergence_figure,
    ),
    Item(
        KM,
        "Definition 1 and Proposition 1",
        "(ε, δ)-DP is δ-approximate max divergence at most ε: largest difference over random channels, added to 1",
        "distribution_privacy(..., 'approximate_max'), Channel.guarantee",
        proposition_1,
        printed_number(1.0),
        agrees_to_digits(8),
    ),
    Item(
        KM,
        "Definition 2 (XDP)",
        "ε per unit of distance of random channels on a line: largest difference, added to 1",
        "transport.MetricMechanism.from_channel(...).epsilon",
        definition_2,
        printed_number(1.0),
        agrees_to_digits(8),
    ),
    Item(
        KM,
        "Definition 3 (DistP)",
        "ε between two laws from all sets of outputs: largest difference, added to 1",
        "transport.distribution_privacy",
        definition_3,
        printed_number(1.0),
        agrees_to_digits(8),
    ),
    Item(
        KM,
        "Definition 4 (XDistP)",
        "ε per unit of the distance of laws: largest relative difference, added to 1",
        "transport.extended_distribution_privacy",
        definition_4,
        printed_number(1.0),
        agrees_to_digits(7),
    ),
    Item(
        KM,
        "Table I",
        "KL, reverse KL, total variation, χ², Hellinger of two laws, the worse order of each",
        "transport.distribution_privacy",
        lambda effort: table_i(),
        lambda effort: printed_table_i(),
        agrees_to_digits(9),
    ),
    Item(
        KM,
        "Table I, reverse KL",
        "D_f of two laws with the f of the table, −t log t, beside reverse KL",
        "Channel.output_divergence('reverse_kl')",
        lambda effort: Channel(np.eye(3)).output_divergence("reverse_kl", P, Q),
        lambda effort: float(Q @ (-(P / Q) * np.log(P / Q))),
        paper_is_wrong("f is −log t; −t log t is not convex and gives minus KL"),
    ),
    Item(
        KM,
        "Definition 5",
        "δ-approximate max divergence from all sets: largest difference over random laws, added to 1",
        "transport.distribution_privacy(..., 'approximate_max', delta=...)",
        definition_5,
        printed_number(1.0),
        agrees_to_digits(8),
    ),
    Item(
        KM,
        "Definition 6, Definitions 9 to 12",
        "f-divergences between outputs of laws, and per unit of W_1: largest relative difference, added to 1",
        "distribution_privacy, extended_distribution_privacy",
        divergence_ratios_of_distributions,
        printed_number(1.0),
        agrees_to_digits(6),
    ),
)
