"""Consequences of a guarantee: lifting, composition, processing, weaker notions (KM §IV, V, App. A, B, D–G)."""

from __future__ import annotations

import math
from itertools import combinations

import numpy as np

from tightrope.channels import Channel
from tightrope.numerics.arrays import Floats
from tightrope.papers import instances
from tightrope.papers.item import (
    Compute,
    Effort,
    Item,
    agrees_to_digits,
    bound_attained,
    bound_exceeded,
    bound_holds,
    printed_number,
    sharper_bound,
)
from tightrope.papers.km.divergences import KM, LINE, TABLE_I, THREE_POINTS
from tightrope.reporting.charts.panels import Diagram, Drawing
from tightrope.transport import (
    DistributionGuarantee,
    MetricMechanism,
    distribution_privacy,
    extended_distribution_privacy,
    lifted,
    mass_outside,
    optimally_lifted,
    stability,
    wasserstein,
)

ALL_PAIRS = tuple(combinations(range(3), 2))
"""Each pair stands for both orders: two-sided divergences are the larger of the two."""
LINE_NEIGHBORS = np.array([[True, True, False], [True, True, True], [False, True, True]])
"""Neighbors on a line of three points."""


def between_points(rows: Floats, name: str, pairs: tuple[tuple[int, int], ...] = ALL_PAIRS) -> float:
    """Return the ε of D-DP between points."""
    return distribution_privacy(rows, [(THREE_POINTS[x], THREE_POINTS[y]) for x, y in pairs], name).epsilon


def between_laws(rows: Floats, first: Floats, second: Floats, name: str) -> float:
    """Return the larger of D(A#λ₀‖A#λ₁) and D(A#λ₁‖A#λ₀)."""
    return distribution_privacy(rows, [(first, second)], name).epsilon


def related_distributions() -> tuple[Floats, Floats]:
    """Return two distributions with a random coupling on neighboring points."""
    plan = instances.draw_uniforms(3, 3) * LINE_NEIGHBORS
    plan = plan / plan.sum()
    return plan.sum(axis=1), plan.sum(axis=0)


def theorem_1(effort: Effort) -> list[float]:
    """Return D_f between laws in Φ# divided by that between points of Φ: the largest, and the one at point masses."""
    ratios = []
    neighbors = tuple((x, y) for x, y in ALL_PAIRS if LINE_NEIGHBORS[x, y])
    for _ in range(effort.reduced_instances(0.1)):
        rows, name = instances.random_channel(3, 3).matrix, TABLE_I[instances.draw_integer(0, 4)]
        ratios.append(between_laws(rows, *related_distributions(), name) / between_points(rows, name, neighbors))
    rows = np.array([[0.7, 0.2, 0.1], [0.1, 0.8, 0.1], [0.3, 0.3, 0.4]])
    return [
        instances.worst_of(ratios),
        between_laws(rows, THREE_POINTS[0], THREE_POINTS[1], "kl") / between_points(rows, "kl", ((0, 1),)),
    ]


def definition_14(effort: Effort) -> float:
    """Return 1 + the random related pairs not found to be lifted + (1 − the mass outside Φ of two far points)."""
    missed = 0
    for _ in range(effort.reduced_instances(0.1)):
        first, second = related_distributions()
        missed += not lifted(LINE_NEIGHBORS, first, second, outside=1e-12)
    return 1 + missed + (1 - mass_outside(LINE_NEIGHBORS, THREE_POINTS[0], THREE_POINTS[2]))


def theorem_2(effort: Effort) -> float:
    """Return the largest D_f between distributions divided by ε W_1, ε per unit of distance between points."""
    ratios = []
    for _ in range(effort.reduced_instances(0.1)):
        rows, name, laws = (
            instances.random_channel(3, 3).matrix,
            TABLE_I[instances.draw_integer(0, 4)],
            instances.random_distribution_pair(3),
        )
        points = [(THREE_POINTS[x], THREE_POINTS[y]) for x, y in ALL_PAIRS]
        per_unit = extended_distribution_privacy(rows, points, name, LINE).epsilon
        ratios.append(between_laws(rows, *laws, name) / (per_unit * wasserstein(*laws, LINE)))
    return instances.worst_of(ratios)


def restricted_relation(effort: Effort) -> float:
    """Return how many of four pairs are classified correctly by whether an optimal coupling stays on Φ (Theorem 2)."""
    correct = [
        optimally_lifted(LINE_NEIGHBORS, [0.5, 0.5, 0.0], [0.0, 0.5, 0.5], LINE),
        optimally_lifted(LINE_NEIGHBORS, [0.5, 0.5, 0.0], [0.0, 0.5, 0.5], LINE, p=math.inf),
        not optimally_lifted(LINE_NEIGHBORS, THREE_POINTS[0], THREE_POINTS[2], LINE),
        # on Φ alone this costs 2, but moving no mass is possible, too
        not optimally_lifted(~np.eye(3, dtype=bool), [0.5, 0.5, 0.0], [0.5, 0.5, 0.0], LINE),
    ]
    return float(sum(correct))


def theorem_4(effort: Effort) -> float:
    """Return 1 + the largest difference between point masses and points (Lemma 1 and Theorem 4)."""
    ratios = []
    for _ in range(effort.reduced_instances(0.1)):
        rows, name = instances.random_channel(3, 3).matrix, TABLE_I[instances.draw_integer(0, 4)]
        x, y = ALL_PAIRS[instances.draw_integer(0, 2)]
        direct = (
            Channel(rows).output_divergence(name, THREE_POINTS[x], THREE_POINTS[y]),
            Channel(rows).output_divergence(name, THREE_POINTS[y], THREE_POINTS[x]),
        )
        ratios.append(abs(between_laws(rows, THREE_POINTS[x], THREE_POINTS[y], name) / max(direct) - 1))
    return 1 + instances.worst_of(ratios)


def joint_channel(first: Floats, second: list[Floats]) -> Floats:
    """Return A₁ ⊙ A₀ as a matrix: the second map is chosen by the first output and has the same input."""
    return np.concatenate([first[:, [y]] * second[y] for y in range(first.shape[1])], axis=1)


def random_maps() -> tuple[Floats, list[Floats]]:
    """Return a first map, and one for each of its outputs."""
    return instances.random_channel(3, 2).matrix, [instances.random_channel(3, 2).matrix for _ in range(2)]


def shared_input(effort: Effort, *, metric: bool) -> float:
    """Return the largest KL after A₁ ⊙ A₀ divided by ε₀ + ε₁, or by (ε₀ + ε₁) W_1 if ``metric``."""
    ratios = []
    for _ in range(effort.reduced_instances(0.1)):
        (first, second), laws = random_maps(), instances.random_distribution_pair(3)
        total = _summed_budget(first, second, metric=metric)
        ratios.append(
            between_laws(joint_channel(first, second), *laws, "kl")
            / (total * _distribution_distance(laws, metric=metric))
        )
    return instances.worst_of(ratios)


def fresh_input(effort: Effort, *, metric: bool) -> float:
    """Return the same ratio for A₁ • A₀, whose second map has an independent input from the same distribution."""
    ratios = []
    for _ in range(effort.reduced_instances(0.1)):
        (first, second), laws = random_maps(), instances.random_distribution_pair(3)
        outputs = np.stack([np.concatenate([(p @ first)[y] * (p @ second[y]) for y in (0, 1)]) for p in laws])
        divergence = between_laws(outputs / outputs.sum(axis=1, keepdims=True), np.eye(2)[0], np.eye(2)[1], "kl")
        ratios.append(
            divergence / (_summed_budget(first, second, metric=metric) * _distribution_distance(laws, metric=metric))
        )
    return instances.worst_of(ratios)


def _summed_budget(first: Floats, second: list[Floats], *, metric: bool) -> float:
    """Return ε₀ + max ε₁ between points, or per unit of distance, by the rules of the library."""
    parts = [_channel_guarantee(rows, metric=metric) for rows in (first, *second)]
    largest = max(parts[1:], key=lambda part: part.epsilon)
    return parts[0].with_same_input(largest).epsilon


def _channel_guarantee(rows: Floats, *, metric: bool) -> DistributionGuarantee:
    pairs = [(THREE_POINTS[x], THREE_POINTS[y]) for x, y in ALL_PAIRS]
    if metric:
        return DistributionGuarantee.from_points(
            extended_distribution_privacy(rows, pairs, "kl", LINE).epsilon, "kl", metric=True
        )
    return DistributionGuarantee.from_points(between_points(rows, "kl"), "kl")


def _distribution_distance(laws: tuple[Floats, Floats], *, metric: bool) -> float:
    return wasserstein(*laws, LINE) if metric else 1.0


def unrelated_maps(effort: Effort) -> float:
    """Return the largest TV or Hellinger divergence of two unrelated maps of one input, divided by the sum of both."""
    ratios = []
    for _ in range(effort.reduced_instances(0.1)):
        first, second, name = *random_maps()[1], ("total_variation", "hellinger")[instances.draw_integer(0, 1)]
        both = between_points(joint_channel(first, [second, second]), name)
        ratios.append(both / (between_points(first, name) + between_points(second, name)))
    return instances.worst_of(ratios)


def repeated_coin(effort: Effort) -> float:
    """Return the total variation of two draws for one value, where each alone hides the group (theory: 1 − 2^(1−k))."""
    moves = {"a": np.array([[0.5, 0.5]]), "b": np.eye(2)}  # a: always the middle; b: one of two ends, kept
    laws = {"a": [1.0], "b": [0.5, 0.5]}
    outputs = []
    for group, rows in moves.items():
        twice = np.stack([np.kron(row, row) for row in rows])
        outputs.append(np.asarray(laws[group]) @ twice)
    return between_laws(np.stack(outputs), np.eye(2)[0], np.eye(2)[1], "total_variation")


def post_processed(effort: Effort) -> float:
    """Return the largest D_f after a random map of the output divided by D_f before it."""
    ratios = []
    for _ in range(effort.reduced_instances(0.1)):
        rows, after, pair = (
            instances.random_channel(3, 3),
            instances.random_channel(3, 3),
            instances.random_distribution_pair(3),
        )
        name = TABLE_I[instances.draw_integer(0, 4)]
        ratios.append(between_laws((rows @ after).matrix, *pair, name) / between_laws(rows.matrix, *pair, name))
    return instances.worst_of(ratios)


def pre_processed(effort: Effort) -> float:
    """Return the largest D_f of distributions moved by a c-stable map divided by c ε W_1, with c and ε computed."""
    ratios = []
    for _ in range(effort.reduced_instances(0.1)):
        rows, moves = instances.random_channel(3, 3).matrix, instances.random_channel(3, 3).matrix
        laws, name = instances.random_distribution_pair(3), TABLE_I[instances.draw_integer(0, 4)]
        points = [(THREE_POINTS[x], THREE_POINTS[y]) for x, y in ALL_PAIRS]
        per_unit = stability(moves, LINE) * extended_distribution_privacy(rows, points, name, LINE).epsilon
        ratios.append(
            between_laws(rows, laws[0] @ moves, laws[1] @ moves, name) / (per_unit * wasserstein(*laws, LINE))
        )
    return instances.worst_of(ratios)


def chained_divergence_ratio() -> float:
    """Return KL between binomial laws two equal steps apart, divided by twice the ε of one step."""
    rows = np.array([[0.81, 0.18, 0.01], [0.49, 0.42, 0.09], [0.25, 0.5, 0.25]])
    one_step = between_points(rows, "kl", ((0, 1), (1, 2)))
    return between_laws(rows, THREE_POINTS[0], THREE_POINTS[2], "kl") / (2 * one_step)


def chain_allowed(effort: Effort) -> float:
    """Return the largest ratio over random channels: for total variation and D_∞ two steps cost at most twice."""
    ratios = []
    for _ in range(effort.reduced_instances(0.1)):
        rows, name = instances.random_channel(3, 3).matrix, ("total_variation", "max")[instances.draw_integer(0, 1)]
        step = DistributionGuarantee(between_points(rows, name, ((0, 1), (1, 2))), name)
        ratios.append(between_laws(rows, THREE_POINTS[0], THREE_POINTS[2], name) / step.pre_process(2).epsilon)
    return instances.worst_of(ratios)


def by_largest_distance(effort: Effort) -> float:
    """Return the largest KL between distributions divided by ε W_∞, with the ε for W_1 (Proposition 9)."""
    ratios = []
    for _ in range(effort.reduced_instances(0.05)):
        rows, laws = instances.random_channel(3, 3).matrix, instances.random_distribution_pair(3)
        guarantee = _channel_guarantee(rows, metric=True).by_worst_distance()
        ratios.append(between_laws(rows, *laws, "kl") / (guarantee.epsilon * wasserstein(*laws, LINE, p=math.inf)))
    return instances.worst_of(ratios)


def weaker_divergence_ratio(effort: Effort) -> float:
    """Return the largest KL, reverse KL, TV or Hellinger divergence divided by D_∞ (Proposition 10)."""
    ratios = []
    for _ in range(effort.reduced_instances(0.1)):
        rows, laws = instances.random_channel(3, 3).matrix, instances.random_distribution_pair(3)
        one = DistributionGuarantee(between_laws(rows, *laws, "max"), "max")
        name = ("kl", "reverse_kl", "total_variation", "hellinger")[instances.draw_integer(0, 3)]
        ratios.append(between_laws(rows, *laws, name) / one.weaken_to(name).epsilon)
    return instances.worst_of(ratios)


def leftover_delta_ratio(effort: Effort) -> float:
    """Return the largest δ* that distributions need at ε W_∞, divided by δ (Fig. 4, (ε, d, D_∞^δ)-XDP)."""
    ratios = []
    for _ in range(effort.reduced_instances(0.1)):
        rows, laws, delta = instances.random_channel(3, 3).matrix, instances.random_distribution_pair(3), 0.05
        points = [(THREE_POINTS[x], THREE_POINTS[y]) for x, y in ALL_PAIRS]
        epsilon = extended_distribution_privacy(rows, points, "approximate_max", LINE, delta=delta).epsilon
        for pair in (laws, *((THREE_POINTS[x], THREE_POINTS[y]) for x, y in ALL_PAIRS)):
            ratio = math.exp(epsilon * wasserstein(*pair, LINE, p=math.inf))
            p, q = np.stack(pair) @ rows
            needed_delta = max(float(np.maximum(p - ratio * q, 0).sum()), float(np.maximum(q - ratio * p, 0).sum()))
            ratios.append(needed_delta / delta)
    return instances.worst_of(ratios)


def largest_loss_of_laws(effort: Effort) -> float:
    """Return the largest D_∞ between distributions divided by ε W_∞, ε per unit of distance (Fig. 4 at δ = 0)."""
    ratios = []
    for _ in range(effort.reduced_instances(0.05)):
        rows, laws = instances.random_channel(3, 3).matrix, instances.random_distribution_pair(3)
        bound = MetricMechanism.from_channel(rows, LINE).epsilon * wasserstein(*laws, LINE, p=math.inf)
        ratios.append(between_laws(rows, *laws, "max") / bound)
    return instances.worst_of(ratios)


def draw_compositions(effort: Effort) -> list[Drawing]:
    """Draw Figure 3."""
    shared = [("x of law λ", 0.15, 0.5), ("A₀", 0.5, 0.78), ("A₁", 0.5, 0.22), ("y₀", 0.85, 0.78), ("y₁", 0.85, 0.22)]
    fresh = [("x₀ of law λ", 0.15, 0.78), ("x₁ of law λ", 0.15, 0.22), *shared[1:]]
    ends = [("A₀", "y₀", ""), ("A₁", "y₁", ""), ("A₀", "A₁", "y₀")]
    return [
        Diagram(
            "KM Fig. 3a: ⊙, one input for both", shared, [("x of law λ", "A₀", ""), ("x of law λ", "A₁", ""), *ends]
        ),
        Diagram(
            "KM Fig. 3b: •, an input for each", fresh, [("x₀ of law λ", "A₀", ""), ("x₁ of law λ", "A₁", ""), *ends]
        ),
    ]


def draw_relations(effort: Effort) -> list[Drawing]:
    """Draw Figure 4."""
    boxes = [
        ("D∞ᵟ-XDP", 0.13, 0.88), ("W∞, D∞-XDistP", 0.7, 0.88), ("W₁, D∞-XDistP", 0.2, 0.5),
        ("W∞, KL-XDistP", 0.82, 0.5), ("W₁, KL-XDistP", 0.62, 0.12), ("KL-XDP", 0.13, 0.12),
    ]  # fmt: skip
    arrows = [
        ("D∞ᵟ-XDP", "W∞, D∞-XDistP", "δ alone"), ("W₁, D∞-XDistP", "W∞, D∞-XDistP", "Prop. 9"),
        ("W∞, D∞-XDistP", "W∞, KL-XDistP", "Prop. 10, δ = 0"), ("W₁, D∞-XDistP", "W₁, KL-XDistP", "Prop. 10"),
        ("W₁, KL-XDistP", "W∞, KL-XDistP", "Prop. 9"), ("KL-XDP", "W₁, KL-XDistP", "Thm 2, Thm 4"),
    ]  # fmt: skip
    return [Diagram("KM Fig. 4: what implies what", boxes, arrows)]


def _ratio_item(item: str, statement: str, call: str, ours: Compute) -> Item:
    """Return the item for a property: the largest ratio to the paper's bound."""
    return Item(
        KM, item, f"{statement}: the largest ratio over random ones", call, ours, printed_number(1.0), bound_holds()
    )


DP, XDP = "transport.distribution_privacy", "transport.extended_distribution_privacy"
RULES = "DistributionGuarantee"
items = (
    Item(
        KM,
        "Definition 13",
        "a map of three points on a line that moves 1 to 2 and leaves the others is 2-stable for W_1",
        "transport.stability",
        lambda effort: stability([[1, 0, 0], [0, 0, 1], [0, 0, 1]], LINE),
        printed_number(2.0),
        agrees_to_digits(9),
    ),
    Item(
        KM,
        "Definition 14",
        "laws with a coupling on neighbors are lifted; two far points have all mass outside: mistakes, added to 1",
        "transport.lifted, transport.mass_outside",
        definition_14,
        printed_number(1.0),
        agrees_to_digits(9),
    ),
    Item(
        KM,
        "Theorem 1, (1)",
        "D_f of lifted pairs of laws over D_f of neighboring points: random ones, and point masses",
        f"{DP}, DistributionGuarantee.from_points",
        theorem_1,
        printed_number(1.0, 1.0),
        bound_attained(),
    ),
    Item(
        KM,
        "V-B: lifting by optimal couplings",
        "four pairs of laws are told apart rightly by whether an optimal coupling stays on Φ (p = 1 and ∞)",
        "transport.optimally_lifted",
        restricted_relation,
        printed_number(4.0),
        agrees_to_digits(9),
    ),
    _ratio_item("Theorem 2", "D_f of laws over ε W_1", XDP, theorem_2),
    Item(
        KM,
        "Lemma 1 and Theorem 4",
        "between point masses the guarantee of laws is that of points: largest relative difference, added to 1",
        f"{DP}, {RULES}(points=True)",
        theorem_4,
        printed_number(1.0),
        agrees_to_digits(8),
    ),
    Item(
        KM,
        "Figure 3 and Definitions 19, 20: ⊙ needs points",
        "total variation of two draws for the same value, where each draw alone has 0 between the two laws (Table II)",
        f"{DP}, {RULES}.with_same_input",
        repeated_coin,
        printed_number(0.0),
        bound_exceeded(
            "between laws alone ⊙ does not add up; the relation must contain the point masses, as its proof uses"
        ),
        draw_compositions,
    ),
    _ratio_item(
        "Proposition 3, Table II ⊙",
        "KL of laws through two maps of one input over ε₀ + ε₁",
        f"{RULES}.with_same_input",
        lambda effort: shared_input(effort, metric=False),
    ),
    _ratio_item(
        "Proposition 4, Table III ⊙",
        "the same over (ε₀ + ε₁) W_1",
        f"{RULES}.with_same_input, metric",
        lambda effort: shared_input(effort, metric=True),
    ),
    _ratio_item(
        "Proposition 5, Table II •",
        "KL of laws through two maps with an input each over ε₀ + ε₁",
        f"{RULES}.with_fresh_input",
        lambda effort: fresh_input(effort, metric=False),
    ),
    _ratio_item(
        "Proposition 6, Table III •",
        "the same over (ε₀ + ε₁) W_1",
        f"{RULES}.with_fresh_input, metric",
        lambda effort: fresh_input(effort, metric=True),
    ),
    _ratio_item(
        "IV-A: composition that is not adaptive",
        "total variation and Hellinger of two unrelated maps of one point over the sum of both",
        DP,
        unrelated_maps,
    ),
    _ratio_item(
        "Proposition 7, Tables II and III, post-processing",
        "D_f after a map of the output over D_f before",
        f"{DP}, {RULES}.post_process",
        post_processed,
    ),
    Item(
        KM,
        "Proposition 8.1, Table II, pre-processing",
        "KL between laws two steps apart over twice the ε of one step",
        f"{DP}, {RULES}.pre_process",
        lambda effort: chained_divergence_ratio(),
        printed_number(1.0),
        bound_exceeded("KL does not add up along a chain: it grows with the square of the steps"),
    ),
    _ratio_item(
        "Proposition 8.1, where it holds",
        "total variation and D_∞ two steps apart over twice that of one",
        f"{RULES}.pre_process",
        chain_allowed,
    ),
    _ratio_item(
        "Proposition 8.2, Table III, pre-processing",
        "D_f of laws moved by a c-stable map over cε W_1, c computed",
        "transport.stability, extended_distribution_privacy",
        pre_processed,
    ),
    _ratio_item(
        "Proposition 9",
        "KL of laws over ε W_∞ with the ε that holds for W_1",
        f"{RULES}.by_worst_distance",
        by_largest_distance,
    ),
    _ratio_item(
        "Proposition 10", "KL, reverse KL, TV and Hellinger over D_∞", f"{RULES}.weaken_to", weaker_divergence_ratio
    ),
    Item(
        KM,
        "Figure 4: from points to laws at δ > 0",
        "δ* that laws need at ε W_∞ over the δ of the points: the largest over random channels, beside the |Φ| = 9 of "
        "the figure",
        f"{XDP}(..., 'approximate_max')",
        leftover_delta_ratio,
        printed_number(9.0),
        sharper_bound(),
        draw_relations,
    ),
    _ratio_item(
        "Figure 4: from points to laws at δ = 0",
        "D_∞ of laws over ε W_∞",
        "transport.MetricMechanism.from_channel(...).epsilon, distribution_privacy",
        largest_loss_of_laws,
    ),
)
