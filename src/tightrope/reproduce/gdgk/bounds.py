"""The problem, the truncated Laplace law and the bounds from above and below (GDGK Fig. 1, Thms 1, 4, 5)."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from tightrope import Budget, least_noise, noise_limits, truncated_laplace
from tightrope.design.noise_limits import tail_sum
from tightrope.design.program.noise_cost import Cost
from tightrope.design.program.noise_request import Promise
from tightrope.mechanisms.continuous.truncated_laplace import TruncatedLaplace
from tightrope.report.pictures.panels import Drawing, Line, Panel
from tightrope.reproduce.gdgk import printed
from tightrope.reproduce.gdgk.printed import GDGK, SETTINGS
from tightrope.reproduce.item import Effort, Item, number
from tightrope.reproduce.judges import agrees, wrong

WITH_INTEGER = tuple((epsilon, n) for epsilon in (0.1, 0.3, 1.0, 2.5) for n in (2, 3, 7, 20, 40) if epsilon * n < 30)
SHOWN = 1.0, 0.05
"""(ε, δ) of the picture: a δ that can be seen."""


def law_of(epsilon: float, delta: float, width: float = 1.0) -> TruncatedLaplace:
    """The truncated Laplace law."""
    return truncated_laplace(epsilon=epsilon, delta=delta, sensitivity=width)


def lower(epsilon: float, delta: float, cost: str) -> float:
    """The sums of Theorems 4 and 5, for any δ."""
    return tail_sum(Promise.of(Budget(epsilon=epsilon, delta=delta)), 1.0, Cost.of(cost))


def scaled_limits(effort: Effort) -> list[float]:
    """What the least costs at Δ = 3 are in those at Δ = 1."""
    budget = Budget(epsilon=1, delta=1e-3)
    return [
        noise_limits(budget, sensitivity=3, cost=cost).upper / noise_limits(budget, cost=cost).upper
        for cost in ("absolute", "squared")
    ]


def figure_facts(effort: Effort) -> list[float]:
    """A, the mass on [A − Δ, A], and the decay over Δ from quantiles, for each setting."""
    facts = []
    for epsilon, delta, width in SETTINGS:
        law = law_of(epsilon, delta, width)
        facts += [law.worst_error, law.worst_error - law.quantile(1 - delta)]
    return facts


def printed_figure_facts(effort: Effort) -> list[float]:
    """A in closed form, and the width Δ that holds the mass δ."""
    return [value for setting in SETTINGS for value in (printed.end(*setting), setting[2])]


def density(law: TruncatedLaplace, points: int) -> tuple[list[float], list[float]]:
    """The density from quantiles alone: dp/dx between neighbouring ones."""
    p = np.linspace(0.0005, 0.9995, points)
    x = np.array([law.quantile(float(share)) for share in p])
    return ((x[1:] + x[:-1]) / 2).tolist(), (np.diff(p) / np.diff(x)).tolist()


def draw_density(effort: Effort) -> list[Drawing]:
    """The paper's Figure 1."""
    epsilon, delta = SHOWN
    law = law_of(epsilon, delta)
    x, y = density(law, 16 * effort.grid + 1)
    a = law.worst_error
    lines = [
        Line("truncated Laplace", [-a, -a, *x, a, a], [0.0, y[0], *y, y[-1], 0.0]),
        Line("A − Δ: beyond lies the mass δ", [a - 1, a - 1], [0.0, max(y)]),
        Line("Laplace of the same ε", x, [epsilon / 2 * math.exp(-epsilon * abs(at)) for at in x]),
    ]
    title = f"GDGK Fig. 1: density of the truncated Laplace law (ε = {epsilon:g}, δ = {delta:g})"
    return [Panel(title, "noise / Δ", "density", lines)]


def draw_bounds(effort: Effort) -> list[Drawing]:
    """V1 and V2 from above and below, with the optimum of the linear program between them."""
    return [_bounds_panel(effort, cost, name) for cost, name in (("absolute", "V1"), ("squared", "V2"))]


def _bounds_panel(effort: Effort, cost: str, name: str) -> Panel:
    epsilons, delta = np.geomspace(0.1, 5.0, effort.grid).tolist(), 1e-3
    few = np.geomspace(0.25, 2.5, min(5, effort.grid)).tolist()
    upper = [_error(law_of(e, delta), cost) for e in epsilons]
    limits = [noise_limits(Budget(epsilon=e, delta=delta), cost=cost) for e in few]
    lines = [
        Line("truncated Laplace (upper)", epsilons, upper),
        Line("tail sums (lower)", epsilons, [lower(e, delta, cost) for e in epsilons]),
        Line("the true optimum, enclosed", few, [(found.lower + found.upper) / 2 for found in limits], "points"),
    ]
    return Panel(f"GDGK {name}: bounds and the optimum, δ = {delta:g}", "ε", name, lines, log_x=True, log_y=True)


def _error(law: TruncatedLaplace, cost: str) -> float:
    return law.mean_absolute_error if cost == "absolute" else law.mean_squared_error


def over_settings(value: Callable[[TruncatedLaplace], float]) -> Callable[[Effort], list[float]]:
    """One fact of the law in each setting."""
    return lambda effort: [value(law_of(*setting)) for setting in SETTINGS]


def formula(value: Callable[[float, float, float], float]) -> Callable[[Effort], list[float]]:
    """One formula of the paper in each setting."""
    return lambda effort: [value(*setting) for setting in SETTINGS]


items = (
    Item(
        GDGK,
        "Problem: the constraint on the noise",
        "the δ that the truncated Laplace law needs at ε = 1: with the factor e^ε, and without it as the constraint is "
        "printed",
        "truncated_laplace(...).loss.delta",
        lambda effort: law_of(1.0, 1e-6).loss.delta(1.0),
        lambda effort: law_of(1.0, 1e-6).loss.delta(0.0),
        wrong("the printed constraint lacks the factor e^ε, and would be total variation at most δ"),
    ),
    Item(
        GDGK,
        "Problem: sensitivity",
        "least amplitude and power grow with Δ and Δ²: three times and nine times at Δ = 3",
        "noise_limits(sensitivity=3)",
        scaled_limits,
        number(3.0, 9.0),
        agrees(3),
    ),
    Item(
        GDGK,
        "Figure 1",
        "end A of the support, and the last interval of width Δ holds the mass δ, in 72 settings",
        "truncated_laplace(...).worst_error, .quantile",
        figure_facts,
        printed_figure_facts,
        agrees(6),
        draw_density,
    ),
    Item(
        GDGK,
        "Theorem 1",
        "the truncated Laplace law is (ε, δ)-private: its δ(ε) in 72 settings",
        "truncated_laplace(...).loss.delta",
        lambda effort: [law_of(*one).loss.delta(one[0]) for one in SETTINGS],
        lambda effort: [delta for _, delta, _ in SETTINGS],
        agrees(8),
    ),
    Item(
        GDGK,
        "V1 upper bound",
        "mean |X| of the truncated Laplace law, 72 settings",
        "truncated_laplace(...).mean_absolute_error",
        over_settings(lambda law: law.mean_absolute_error),
        formula(printed.amplitude),
        agrees(8),
        draw_bounds,
    ),
    Item(
        GDGK,
        "V2 upper bound",
        "mean X² of the truncated Laplace law, 72 settings",
        "truncated_laplace(...).mean_squared_error",
        over_settings(lambda law: law.mean_squared_error),
        formula(printed.power),
        agrees(8),
    ),
    Item(
        GDGK,
        "Theorem 4",
        "least amplitude from the dual, where an integer n exists",
        "noise_limits(...): 'GDGK tail sums', cost='absolute'",
        lambda effort: [lower(e, printed.delta_of(e, n), "absolute") for e, n in WITH_INTEGER],
        lambda effort: [printed.least_amplitude(e, n) for e, n in WITH_INTEGER],
        agrees(7),
    ),
    Item(
        GDGK,
        "Theorem 5",
        "least power from the dual, where an integer n exists; the closed form as printed",
        "noise_limits(...): 'GDGK tail sums', cost='squared'",
        lambda effort: [lower(e, printed.delta_of(e, n), "squared") for e, n in WITH_INTEGER],
        lambda effort: [printed.least_power(e, n) for e, n in WITH_INTEGER],
        agrees(7),
    ),
    Item(
        GDGK,
        "The gap in the discrete setting",
        "upper over lower bound of the least whole-number noise of sensitivity 1: the gap is closed, not only bounded",
        "least_noise(...).certificate",
        lambda effort: [
            (found := least_noise(Budget(epsilon=e, delta=d), cost=cost).certificate).upper / found.lower
            for e, d in ((0.1, 1e-2), (1.0, 1e-6), (3.0, 1e-3))
            for cost in ("absolute", "squared")
        ],
        number(1.0),
        agrees(9),
    ),
)
