"""Couplings, Wasserstein metrics and the coupling mechanism (KM §II-F, G, §VI, Fig. 2)."""

from __future__ import annotations

import math
from functools import lru_cache

import numpy as np
from scipy import optimize

from tightrope.numerics.arrays import Floats
from tightrope.papers import instances
from tightrope.papers.item import (
    Effort,
    Item,
    agrees_to_digits,
    bound_exceeded,
    bound_holds,
    printed_number,
    sharper_bound,
)
from tightrope.papers.km.divergences import KM, LINE
from tightrope.reporting.charts.panels import Drawing, Line, Panel, Plane
from tightrope.transport import (
    CouplingMechanism,
    approximate_knowledge,
    coupling,
    diameter,
    distribution_privacy,
    line,
    one_draw,
    wasserstein,
)

LAMBDA, MU = (0.2, 0.5, 0.3), (0.3, 0.2, 0.5)
PLAN = (0.2, 0.0, 0.0, 0.1, 0.2, 0.2, 0.0, 0.0, 0.3)
"""Figure 2."""


def linear_program_cost(cost: Floats, p: Floats, q: Floats) -> float:
    """Return the least Σ γ c over couplings, as a linear program of another library."""
    n, m = cost.shape
    rows = np.kron(np.eye(n), np.ones(m))
    columns = np.kron(np.ones(n), np.eye(m))
    sums = np.concatenate([p, q])[:-1]  # the last equation follows from the others, up to rounding
    solution = optimize.linprog(cost.ravel(), A_eq=np.vstack([rows, columns])[:-1], b_eq=sums, method="highs")
    return float(solution.fun or 0.0)


def least_largest(cost: Floats, p: Floats, q: Floats) -> float:
    """Return W_∞: the least c such that all mass can move at cost at most c."""
    for level in np.unique(cost):
        if linear_program_cost(np.where(cost <= level, 0.0, 1.0), p, q) < 1e-9:
            return float(level)
    return math.inf


def largest_distance_error(effort: Effort) -> float:
    """Definition 8: return 1 + the largest difference from the program, for W_1, W_2 and W_∞ of random instances."""
    found = []
    for _ in range(effort.reduced_instances(0.25)):
        cost, laws = instances.draw_uniforms(4, 4), instances.random_distribution_pair(4)
        order = instances.draw_integer(1, 2)
        found.append(abs(wasserstein(*laws, cost, p=float(order)) ** order - linear_program_cost(cost**order, *laws)))
    for _ in range(effort.reduced_instances(0.1) // 4):
        cost, laws = instances.draw_uniforms(4, 4), instances.random_distribution_pair(4)
        found.append(abs(wasserstein(*laws, cost, p=math.inf) - least_largest(cost, *laws)))
    return 1 + instances.worst_of(found)


def north_west(effort: Effort) -> float:
    """Return 1 + the largest difference of the rule from the optimum on random submodular costs; check that it ran."""
    found = []
    for _ in range(effort.reduced_instances(0.25)):
        places, laws = np.sort(instances.draw_uniforms(4)), instances.random_distribution_pair(4)
        cost = np.subtract.outer(places, places) ** 2
        ours = coupling(*laws, cost)
        found.append(abs(ours.cost - linear_program_cost(cost, *laws)) + (ours.method != "north-west corner rule"))
    return 1 + instances.worst_of(found)


def largest_marginal_error(effort: Effort) -> float:
    """Return 1 + the largest difference of a plan's marginals from the distributions (Definition 7)."""
    found = []
    for _ in range(effort.reduced_instances(0.25)):
        laws = instances.random_distribution_pair(4)
        plan = coupling(*laws, instances.draw_uniforms(4, 4)).plan.toarray()
        found += [float(np.abs(plan.sum(axis=1) - laws[0]).max()), float(np.abs(plan.sum(axis=0) - laws[1]).max())]
    return 1 + instances.worst_of(found)


@lru_cache(maxsize=1)
def example_mechanism() -> CouplingMechanism:
    """Return the mechanism of Example 2, with a second group added."""
    return CouplingMechanism.fit({"a": LAMBDA, "b": (0.6, 0.2, 0.2)}, line([1, 2, 3]), target=MU)


def transition_probability(group: str, x: int, y: int) -> float:
    """Return P(y | x) of a group."""
    table = example_mechanism().plan_matrix(group).toarray()
    return float(table[x, y] / table[x].sum())


def largest_hidden_divergence(effort: Effort) -> float:
    """Return the largest D_∞ between the outputs of two random groups, distributions known exactly (Definition 16)."""
    found = []
    for _ in range(effort.reduced_instances(0.1)):
        laws = instances.random_distribution_pair(3)
        mechanism = CouplingMechanism.fit({"a": laws[0], "b": laws[1]}, LINE, target=instances.random_distribution(3))
        found.append(distribution_privacy(mechanism, [("a", "b")], "max").epsilon)
    return instances.worst_of(found)


def largest_loss_error(effort: Effort) -> float:
    """Proposition 2: return 1 + the largest difference of random mechanisms' expected loss from the program."""
    found = []
    for _ in range(effort.reduced_instances(0.1)):
        laws, cost = instances.random_distribution_pair(3), instances.draw_uniforms(3, 3)
        mechanism = CouplingMechanism.fit({"a": laws[0]}, cost, target=laws[1])
        found.append(abs(mechanism.cost_by_group["a"] - linear_program_cost(cost, *laws)))
    return 1 + instances.worst_of(found)


def worst_losses(effort: Effort) -> float:
    """Return 1 + the largest difference from W_∞ of the mechanism with the smallest maximal loss."""
    found = []
    for _ in range(max(4, effort.instances // 20)):
        laws, cost = instances.random_distribution_pair(3), instances.draw_uniforms(3, 3)
        mechanism = CouplingMechanism.fit({"a": laws[0]}, cost, target=laws[1], objective="worst")
        found.append(abs(mechanism.cost_by_group["a"] - least_largest(cost, *laws)))
    return 1 + instances.worst_of(found)


@lru_cache(maxsize=1)
def other_laws(effort: Effort) -> list[tuple[dict[str, float], float]]:
    """Random mechanisms for laws that are off by at most a factor e^{±ε}: divergences of the real outputs, and ε."""
    found = []
    for _ in range(effort.reduced_instances(0.1)):
        fitted = np.stack(instances.random_distribution_pair(3))
        real = fitted * np.exp(instances.draw_between(0.01, 0.4) * (instances.draw_uniforms(2, 3) - 0.5))
        real = real / real.sum(axis=1, keepdims=True)
        epsilon = float(np.abs(np.log(real / fitted)).max())
        mechanism = CouplingMechanism.fit(
            {"a": fitted[0], "b": fitted[1]}, LINE, target=instances.random_distribution(3)
        )
        pair = [(("a", real[0]), ("b", real[1]))]
        names = ("max", "kl")
        found.append(({name: distribution_privacy(mechanism, pair, name).epsilon for name in names}, epsilon))
    return found


def theorem_3_max(effort: Effort) -> float:
    """Return the largest D_∞ of the outputs divided by 2ε."""
    return instances.worst_of([values["max"] / (2 * epsilon) for values, epsilon in other_laws(effort)])


def theorem_3_kl(effort: Effort) -> float:
    """Return the largest KL of the outputs divided by 2ε e^ε."""
    return instances.worst_of(
        [values["kl"] / (2 * epsilon * math.exp(epsilon)) for values, epsilon in other_laws(effort)]
    )


def theorem_3_reverse() -> float:
    """Return the reverse KL of the outputs if the real distributions differ from the fitted ones by a factor."""
    fitted, real = np.array([[0.5, 0.5], [0.3, 0.7]]), np.array([[0.55, 0.45], [0.27, 0.73]])
    mechanism = CouplingMechanism.fit({"a": fitted[0], "b": fitted[1]}, [[0, 1], [1, 0]])
    return distribution_privacy(mechanism, [(("a", real[0]), ("b", real[1]))], "reverse_kl").epsilon


def real_epsilon() -> float:
    """Return the true ε of the example distributions of ``theorem_3_reverse``, log(0.30 / 0.27)."""
    return math.log(0.3 / 0.27)


def corrected_bound() -> float:
    """Return our bound on the same divergence."""
    fitted = {"a": [0.5, 0.5], "b": [0.3, 0.7]}
    mechanism = CouplingMechanism.fit(fitted, [[0, 1], [1, 0]])
    return approximate_knowledge(mechanism, {"a": [0.55, 0.45], "b": [0.27, 0.73]}).divergence_bound("reverse_kl")


def diameter_ratios(effort: Effort) -> float:
    """Return the larger ratio of W_1 to W_∞ and of W_∞ to the diameter, over random laws."""
    found = []
    for _ in range(max(4, effort.instances // 20)):
        laws, cost = instances.random_distribution_pair(4), instances.draw_uniforms(4, 4)
        largest = wasserstein(*laws, cost, p=math.inf)
        found += [wasserstein(*laws, cost) / largest, largest / diameter(*laws, cost)]
    return instances.worst_of(found)


def draw_example_coupling(effort: Effort) -> list[Drawing]:
    """Draw Figure 2: the two distributions, and the coupling."""
    x = (1.0, 2.0, 3.0)
    plan = coupling(LAMBDA, MU, line([1, 2, 3])).plan.toarray()
    return [
        Panel("KM Fig. 2a: a law and its target", "location", "probability", [
            Line("λ", x, LAMBDA, "points"), Line("μ", x, MU, "points")
        ]),
        Plane("KM Fig. 2b: the coupling, rows x and columns y", "y", "x", x, x, plan.tolist()),
    ]  # fmt: skip


items = (
    Item(
        KM,
        "Example 1 and Figure 2",
        "the way of least cost from λ to μ: cost 0.3, and the plan",
        "transport.coupling(..., line([1, 2, 3]))",
        lambda effort: [
            (found := coupling(LAMBDA, MU, line([1, 2, 3]))).cost,
            *(float(v) for v in found.plan.toarray().ravel()),
        ],
        printed_number(0.3, *PLAN),
        agrees_to_digits(9),
        draw_example_coupling,
    ),
    Item(
        KM,
        "Definition 7",
        "both marginals of optimal couplings of random laws: largest difference, added to 1",
        "transport.coupling(...).plan",
        largest_marginal_error,
        printed_number(1.0),
        agrees_to_digits(9),
    ),
    Item(
        KM,
        "Definition 8",
        "W_1, W_2 and W_∞ beside a linear program: largest difference over random laws and costs, added to 1",
        "transport.wasserstein(..., p=1, 2, inf)",
        largest_distance_error,
        printed_number(1.0),
        agrees_to_digits(5),
    ),
    Item(
        KM,
        "II-G: north-west corner rule",
        "it is chosen for submodular costs, and optimal: largest difference to the program, added to 1",
        "transport.coupling(...).method, .cost",
        north_west,
        printed_number(1.0),
        agrees_to_digits(5),
    ),
    Item(
        KM,
        "V-B: diameter",
        "W_1 ≤ W_∞ ≤ diam of the supports: the largest ratio over random laws",
        "transport.diameter, transport.wasserstein",
        diameter_ratios,
        printed_number(1.0),
        bound_holds(),
    ),
    Item(
        KM,
        "Definition 15",
        "with a group's name known to the mechanism, pairs are (group, law): D_∞ for the laws it was fitted with",
        "transport.distribution_privacy(mechanism, [('a', 'b')], 'max')",
        lambda effort: 1 + distribution_privacy(example_mechanism(), [("a", "b")], "max").epsilon,
        printed_number(1.0),
        agrees_to_digits(9),
    ),
    Item(
        KM,
        "Definition 16",
        "coupling mechanisms for random groups known exactly: D_∞ between their outputs, the largest, added to 1",
        "transport.CouplingMechanism.fit",
        lambda effort: 1 + largest_hidden_divergence(effort),
        printed_number(1.0),
        agrees_to_digits(9),
    ),
    Item(
        KM,
        "Example 2",
        "value 2 becomes 1 with probability 20 % and 3 with 40 %; the output has law μ",
        "CouplingMechanism.fit(...).plan_matrix, .output_distribution",
        lambda effort: [
            transition_probability("a", 1, 0),
            transition_probability("a", 1, 2),
            *example_mechanism().output_distribution("a").tolist(),
        ],
        printed_number(0.2, 0.4, *MU),
        agrees_to_digits(9),
    ),
    Item(
        KM,
        "Theorem 3.1",
        "laws known within e^(±ε): D_∞ of the real outputs over 2ε, the largest over random mechanisms",
        "distribution_privacy(mechanism, [((group, law), ...)], 'max')",
        theorem_3_max,
        printed_number(1.0),
        bound_holds(),
    ),
    Item(
        KM,
        "Theorem 3.2",
        "KL of the real outputs over 2ε e^ε, the largest over random mechanisms",
        "distribution_privacy(mechanism, [((group, law), ...)], 'kl')",
        theorem_3_kl,
        printed_number(1.0),
        bound_holds(),
    ),
    Item(
        KM,
        "Theorem 3.2, sharper",
        "bound on KL at ε = 0.2 and 0.05",
        "transport.one_draw(epsilon=...).divergence_bound('kl')",
        lambda effort: [one_draw(epsilon=e).divergence_bound("kl") for e in (0.2, 0.05)],
        lambda effort: [2 * e * math.exp(e) for e in (0.2, 0.05)],
        sharper_bound(),
    ),
    Item(
        KM,
        "Theorem 3.3",
        "reverse KL (f = −log t) of real outputs, and the printed bound e^ε f(e^(2ε)) at that ε",
        "distribution_privacy(mechanism, [((group, law), ...)], 'reverse_kl')",
        lambda effort: theorem_3_reverse(),
        lambda effort: -2 * math.exp(real_epsilon()) * real_epsilon(),
        bound_exceeded("the bound is negative for a falling f; the proof bounds a sum by its largest term"),
    ),
    Item(
        KM,
        "Theorem 3.3, corrected",
        "reverse KL of the same outputs over η (f(e^(2ε)) + e^(2ε) f(e^(−2ε)))/(e^(2ε) − 1)",
        "transport.approximate_knowledge(...).divergence_bound('reverse_kl')",
        lambda effort: theorem_3_reverse() / corrected_bound(),
        printed_number(1.0),
        bound_holds(),
    ),
    Item(
        KM,
        "Definitions 17 and 18, Proposition 2",
        "expected loss of the utility-optimal mechanism is W_1: largest difference to the program, added to 1",
        "CouplingMechanism.fit(...).loss",
        largest_loss_error,
        printed_number(1.0),
        agrees_to_digits(5),
    ),
    Item(
        KM,
        "VI-D: mechanism of least largest loss",
        "its largest loss is W_∞: largest difference over random laws, added to 1",
        "CouplingMechanism.fit(..., objective='worst').loss",
        worst_losses,
        printed_number(1.0),
        agrees_to_digits(9),
    ),
)
