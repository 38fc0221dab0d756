"""The problem, the truncated Laplace distribution and the bounds from above and below (GDGK Fig. 1, Thms 1, 4, 5)."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import lru_cache, partial
from itertools import product

import numpy as np

from tightrope import Budget, calibrate, gaussian, least_noise, noise_limits, truncated_laplace
from tightrope.mechanisms.gaussian import Gaussian
from tightrope.mechanisms.truncated_laplace import TruncatedLaplace
from tightrope.noise import gaussian_price
from tightrope.noise.noise_limits import tail_sum
from tightrope.noise.program.request import ErrorCost, PrivacyTarget
from tightrope.papers.item import (
    Compute,
    Effort,
    Item,
    agrees_to_digits,
    agrees_within,
    bound_exceeded,
    paper_is_wrong,
    printed_number,
    sharper_bound,
)
from tightrope.reporting.charts.panels import Drawing, Line, Panel, Plane

# The formulas of the paper, implemented from its text; sensitivity 1 unless a width is given.

GDGK = "GDGK"
Setting = tuple[float, float, float]
SETTINGS: tuple[Setting, ...] = tuple(
    product((0.1, 0.5, 1.0, 2.0, 4.0, 8.0), (1e-9, 1e-6, 1e-3, 0.05), (0.5, 1.0, 3.0))
)
"""(ε, δ, Δ): 72 of them, every formula in every regime."""


def exponential_ratio(epsilon: float, delta: float) -> float:
    """Return (e^ε − 1)/(2δ)."""
    return math.expm1(epsilon) / (2 * delta)


def cutoff_point(epsilon: float, delta: float, width: float = 1.0) -> float:
    """Return A, the largest |X| of truncated Laplace noise."""
    return width / epsilon * math.log1p(exponential_ratio(epsilon, delta))


def amplitude_upper(epsilon: float, delta: float, width: float = 1.0) -> float:
    """Return the upper bound on V1, the amplitude E|X|."""
    r = exponential_ratio(epsilon, delta)
    return width / epsilon * (1 - math.log1p(r) / r)


def power_upper(epsilon: float, delta: float, width: float = 1.0) -> float:
    """Return the upper bound on V2, the power E X²."""
    r = exponential_ratio(epsilon, delta)
    grown = math.log1p(r)
    return 2 * width**2 / epsilon**2 * (1 - (grown * grown / 2 + grown) / r)


def delta_for_integer(epsilon: float, n: int) -> float:
    """Return the δ for which Σ_{k<n} a b^k = ½, as Theorems 4 and 5 assume of their integer n."""
    b = math.exp(-epsilon)
    a = (1 - b) / (2 * (1 - b**n))
    return a / b - math.expm1(epsilon) / 2


def least_amplitude(epsilon: float, n: int) -> float:
    """Return the lower bound of Theorem 4 in closed form."""
    a, b = _series_coefficients(epsilon, n)
    return 2 * a * ((b - b**n) / (1 - b) ** 2 - (n - 1) * b**n / (1 - b))


def least_power(epsilon: float, n: int) -> float:
    """Return the lower bound of Theorem 5 in closed form."""
    a, b = _series_coefficients(epsilon, n)
    inner = b * (1 - b ** (n - 1)) / (1 - b) ** 2 - (n - 1) * b**n / (1 - b)
    return 2 * a / (1 - b) * (-b + 2 * inner - b * b * (1 - b ** (n - 2)) / (1 - b) - (n - 1) ** 2 * b**n)


def _series_coefficients(epsilon: float, n: int) -> tuple[float, float]:
    """Return a and b of the theorems' series Σ a b^k."""
    return (delta_for_integer(epsilon, n) + math.expm1(epsilon) / 2) * math.exp(-epsilon), math.exp(-epsilon)


WITH_INTEGER = tuple((epsilon, n) for epsilon in (0.1, 0.3, 1.0, 2.5) for n in (2, 3, 7, 20, 40) if epsilon * n < 30)
SHOWN = 1.0, 0.05
"""(ε, δ) of the picture: a δ that can be seen."""


def truncated_laplace_of(epsilon: float, delta: float, width: float = 1.0) -> TruncatedLaplace:
    """Return the truncated Laplace distribution."""
    return truncated_laplace(epsilon=epsilon, delta=delta, sensitivity=width)


def tail_sum_lower(epsilon: float, delta: float, cost: str) -> float:
    """Return the sums of Theorems 4 and 5, for any δ."""
    return tail_sum(PrivacyTarget.from_budget(Budget(epsilon=epsilon, delta=delta)), 1.0, ErrorCost.from_argument(cost))


def scaled_limits(effort: Effort) -> list[float]:
    """Return the ratios of the least costs at Δ = 3 to those at Δ = 1."""
    budget = Budget(epsilon=1, delta=1e-3)
    return [
        noise_limits(budget, sensitivity=3, cost=cost).upper / noise_limits(budget, cost=cost).upper
        for cost in ("absolute", "squared")
    ]


def figure_facts(effort: Effort) -> list[float]:
    """Return A, and the width of the last interval of mass δ, for each setting."""
    facts = []
    for epsilon, delta, width in SETTINGS:
        law = truncated_laplace_of(epsilon, delta, width)
        facts += [law.worst_error, law.worst_error - law.quantile(1 - delta)]
    return facts


def printed_figure_facts(effort: Effort) -> list[float]:
    """Return a in closed form, and the width Δ that holds the mass δ."""
    return [value for setting in SETTINGS for value in (cutoff_point(*setting), setting[2])]


def density_from_quantiles(law: TruncatedLaplace, points: int) -> tuple[list[float], list[float]]:
    """Return the density from quantiles alone: dp/dx between neighboring ones."""
    p = np.linspace(0.0005, 0.9995, points)
    x = np.array([law.quantile(float(share)) for share in p])
    return ((x[1:] + x[:-1]) / 2).tolist(), (np.diff(p) / np.diff(x)).tolist()


def draw_density(effort: Effort) -> list[Drawing]:
    """Return the paper's Figure 1."""
    epsilon, delta = SHOWN
    law = truncated_laplace_of(epsilon, delta)
    x, y = density_from_quantiles(law, 16 * effort.grid + 1)
    a = law.worst_error
    lines = [
        Line("truncated Laplace", [-a, -a, *x, a, a], [0.0, y[0], *y, y[-1], 0.0]),
        Line("A − Δ: beyond lies the mass δ", [a - 1, a - 1], [0.0, max(y)]),
        Line("Laplace of the same ε", x, [epsilon / 2 * math.exp(-epsilon * abs(at)) for at in x]),
    ]
    title = f"GDGK Fig. 1: density of the truncated Laplace law (ε = {epsilon:g}, δ = {delta:g})"
    return [Panel(title, "noise / Δ", "density", lines)]


def draw_bounds(effort: Effort) -> list[Drawing]:
    """Draw the bounds on V1 and V2, with the optimum of the linear program between them."""
    epsilons, delta = np.geomspace(0.1, 5.0, effort.grid).tolist(), 1e-3
    few = np.geomspace(0.25, 2.5, min(5, effort.grid)).tolist()
    laws = [truncated_laplace_of(e, delta) for e in epsilons]
    panels: list[Drawing] = []
    for cost, name in (("absolute", "V1"), ("squared", "V2")):
        upper = [law.mean_absolute_error if cost == "absolute" else law.mean_squared_error for law in laws]
        limits = [noise_limits(Budget(epsilon=e, delta=delta), cost=cost) for e in few]
        lines = [
            Line("truncated Laplace (upper)", epsilons, upper),
            Line("tail sums (lower)", epsilons, [tail_sum_lower(e, delta, cost) for e in epsilons]),
            Line("the true optimum, enclosed", few, [(found.lower + found.upper) / 2 for found in limits], "points"),
        ]
        title = f"GDGK {name}: bounds and the optimum, δ = {delta:g}"
        panels.append(Panel(title, "ε", name, lines, log_x=True, log_y=True))
    return panels


def property_over_settings(property_of: Callable[[TruncatedLaplace], float]) -> Callable[[Effort], list[float]]:
    """Return a computation of one property of the distribution in each setting."""
    return lambda effort: [property_of(truncated_laplace_of(*setting)) for setting in SETTINGS]


def formula_over_settings(formula: Callable[[float, float, float], float]) -> Callable[[Effort], list[float]]:
    """Return a computation of one formula of the paper in each setting."""
    return lambda effort: [formula(*setting) for setting in SETTINGS]


items = (
    Item(
        GDGK,
        "Problem: the constraint on the noise",
        "the δ that the truncated Laplace law needs at ε = 1: with the factor e^ε, and without it as the constraint is "
        "printed",
        "truncated_laplace(...).loss.delta",
        lambda effort: truncated_laplace_of(1.0, 1e-6).loss.delta(1.0),
        lambda effort: truncated_laplace_of(1.0, 1e-6).loss.delta(0.0),
        paper_is_wrong("the printed constraint lacks the factor e^ε, and would be total variation at most δ"),
    ),
    Item(
        GDGK,
        "Problem: sensitivity",
        "least amplitude and power grow with Δ and Δ²: three times and nine times at Δ = 3",
        "noise_limits(sensitivity=3)",
        scaled_limits,
        printed_number(3.0, 9.0),
        agrees_to_digits(3),
    ),
    Item(
        GDGK,
        "Figure 1",
        "end A of the support, and the last interval of width Δ holds the mass δ, in 72 settings",
        "truncated_laplace(...).worst_error, .quantile",
        figure_facts,
        printed_figure_facts,
        agrees_to_digits(6),
        draw_density,
    ),
    Item(
        GDGK,
        "Theorem 1",
        "the truncated Laplace law is (ε, δ)-private: its δ(ε) in 72 settings",
        "truncated_laplace(...).loss.delta",
        lambda effort: [truncated_laplace_of(*one).loss.delta(one[0]) for one in SETTINGS],
        lambda effort: [delta for _, delta, _ in SETTINGS],
        agrees_to_digits(8),
    ),
    Item(
        GDGK,
        "V1 upper bound",
        "mean |X| of the truncated Laplace law, 72 settings",
        "truncated_laplace(...).mean_absolute_error",
        property_over_settings(lambda law: law.mean_absolute_error),
        formula_over_settings(amplitude_upper),
        agrees_to_digits(8),
        draw_bounds,
    ),
    Item(
        GDGK,
        "V2 upper bound",
        "mean X² of the truncated Laplace law, 72 settings",
        "truncated_laplace(...).mean_squared_error",
        property_over_settings(lambda law: law.mean_squared_error),
        formula_over_settings(power_upper),
        agrees_to_digits(8),
    ),
    Item(
        GDGK,
        "Theorem 4",
        "least amplitude from the dual, where an integer n exists",
        "noise_limits(...): 'GDGK tail sums', cost='absolute'",
        lambda effort: [tail_sum_lower(e, delta_for_integer(e, n), "absolute") for e, n in WITH_INTEGER],
        lambda effort: [least_amplitude(e, n) for e, n in WITH_INTEGER],
        agrees_to_digits(7),
    ),
    Item(
        GDGK,
        "Theorem 5",
        "least power from the dual, where an integer n exists; the closed form as printed",
        "noise_limits(...): 'GDGK tail sums', cost='squared'",
        lambda effort: [tail_sum_lower(e, delta_for_integer(e, n), "squared") for e, n in WITH_INTEGER],
        lambda effort: [least_power(e, n) for e, n in WITH_INTEGER],
        agrees_to_digits(7),
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
        printed_number(1.0),
        agrees_to_digits(9),
    ),
)

# How close the two bounds are in each regime (GDGK, "Tightness of the lower and upper bounds").

SMALL, TINY = 2e-4, 1e-12
"""Stand-ins for the limit 0, of ε and of δ."""
DELTAS, EPSILONS = (0.02, 0.1, 0.25), (0.25, 1.0, 3.0)
NEAR = 2e-3


def amplitude_tightness(epsilon: float, delta: float) -> float:
    """Return the lower bound on V1 divided by the upper one."""
    return tail_sum_lower(epsilon, delta, "absolute") / truncated_laplace_of(epsilon, delta).mean_absolute_error


def power_tightness(epsilon: float, delta: float) -> float:
    """Return the lower bound on V2 divided by the upper one."""
    return tail_sum_lower(epsilon, delta, "squared") / truncated_laplace_of(epsilon, delta).mean_squared_error


def _limit_item(name: str, statement: str, ours: Compute, theirs: Compute) -> Item:
    call = "noise_limits(...): 'GDGK tail sums' / truncated_laplace(...)"
    return Item(GDGK, name, statement, call, ours, theirs, agrees_within(NEAR))


def _small_epsilon(ratio: Callable[[float, float], float]) -> Compute:
    return lambda effort: [ratio(SMALL, delta) for delta in DELTAS]


def _small_delta(ratio: Callable[[float, float], float]) -> Compute:
    return lambda effort: [ratio(epsilon, TINY) for epsilon in EPSILONS]


def _both_small(ratio: Callable[[float, float], float]) -> Compute:
    return lambda effort: ratio(SMALL, SMALL)


tightness_items = (
    _limit_item(
        "Tightness 1",
        "V1 lower/upper as ε → 0 is 1 − 2δ",
        _small_epsilon(amplitude_tightness),
        lambda effort: [1 - 2 * d for d in DELTAS],
    ),
    _limit_item(
        "Tightness 2",
        "V1 lower/upper as δ → 0 is ε/(e^ε − 1)",
        _small_delta(amplitude_tightness),
        lambda effort: [e / math.expm1(e) for e in EPSILONS],
    ),
    _limit_item(
        "Tightness 3", "V1 lower/upper as ε = δ → 0 is 1", _both_small(amplitude_tightness), lambda effort: 1.0
    ),
    _limit_item(
        "Tightness 4",
        "V2 lower/upper as ε → 0 is (1 − δ)(1 − 2δ)",
        _small_epsilon(power_tightness),
        lambda effort: [(1 - d) * (1 - 2 * d) for d in DELTAS],
    ),
    _limit_item(
        "Tightness 5",
        "V2 lower/upper as δ → 0 is ε²(1 + e^ε)/(2(e^ε − 1)²)",
        _small_delta(power_tightness),
        lambda effort: [e * e * (1 + math.exp(e)) / (2 * math.expm1(e) ** 2) for e in EPSILONS],
    ),
    _limit_item("Tightness 6", "V2 lower/upper as ε = δ → 0 is 1", _both_small(power_tightness), lambda effort: 1.0),
)

# Truncated Laplace and the least Gaussian over the plane of ε and δ, and the true optimum in the same axes.

GAUSSIANS_EPSILONS, GAUSSIANS_DELTAS = (0.1, 0.5, 1.0, 2.0, 3.0, 6.0), (1e-9, 1e-6, 1e-3, 0.1, 0.5)
PROGRAM_EPSILONS, PROGRAM_DELTAS = (0.1, 0.5, 1.0, 2.0, 3.0), (1e-9, 1e-6, 1e-3)
"""Points at which the linear program computes the optimum: for a larger ε or δ it takes 15 seconds or more."""
COARSE_EPSILONS, COARSE_DELTAS = (0.5, 2.0), (1e-6, 1e-3)
NAMES = {"absolute": "amplitude", "squared": "power"}
Table = list[list[float]]


@lru_cache(maxsize=64)
def least_gaussian(epsilon: float, delta: float) -> Gaussian:
    """Return the Gaussian of least scale that is (ε, δ)-private, by its exact profile."""
    found = calibrate(lambda scale: gaussian(scale=scale).loss, Budget(epsilon=epsilon, delta=delta), tolerance=1e-9)
    return gaussian(scale=found.parameter)


def gaussian_cost_ratio(epsilon: float, delta: float, cost: str) -> float:
    """Return the cost of truncated Laplace noise divided by that of the best Gaussian."""
    law, least = truncated_laplace_of(epsilon, delta), least_gaussian(epsilon, delta)
    if cost == "absolute":
        return law.mean_absolute_error / least.mean_absolute_error
    return law.mean_squared_error / least.mean_squared_error


def gaussian_cost_ratios(epsilons: tuple[float, ...], deltas: tuple[float, ...], cost: str) -> Table:
    """Return the paper's ratio, a row for each δ."""
    return [[gaussian_cost_ratio(epsilon, delta, cost) for epsilon in epsilons] for delta in deltas]


def program_settings(effort: Effort) -> tuple[tuple[float, ...], tuple[float, ...]]:
    """Return the values of ε and of δ for which the program is solved."""
    return (COARSE_EPSILONS, COARSE_DELTAS) if effort.coarse else (PROGRAM_EPSILONS, PROGRAM_DELTAS)


@lru_cache(maxsize=8)
def optimal_cost_ratios(effort: Effort, cost: str) -> Table:
    """Return an upper bound on the least cost of any noise, relative to the least Gaussian."""
    epsilons, deltas = program_settings(effort)
    prices = gaussian_price(epsilon=list(epsilons), delta=list(deltas), cost=cost)
    return [[1 / price.lower for price in row] for row in prices]


def draw_cost_plane(effort: Effort, cost: str) -> list[Drawing]:
    """Return the paper's plane."""
    title = f"GDGK: noise {NAMES[cost]}, truncated Laplace / optimal Gaussian"
    return [
        Plane(
            title,
            "ε",
            "δ",
            GAUSSIANS_EPSILONS,
            GAUSSIANS_DELTAS,
            gaussian_cost_ratios(GAUSSIANS_EPSILONS, GAUSSIANS_DELTAS, cost),
        )
    ]


def draw_optimum(effort: Effort, cost: str) -> list[Drawing]:
    """Return the plane of the true optimum."""
    title = f"Noise {NAMES[cost]}: the true optimum / optimal Gaussian"
    return [Plane(title, "ε", "δ", *program_settings(effort), optimal_cost_ratios(effort, cost))]


def _cost_item(cost: str) -> Item:
    name = NAMES[cost]
    return Item(
        GDGK,
        f"Figure: noise {name} beside the optimal Gaussian",
        f"truncated Laplace is said to have less {name} than the optimal Gaussian in all regimes: the largest ratio",
        f"truncated_laplace, calibrate(gaussian), cost '{cost}'",
        lambda effort: float(np.max(gaussian_cost_ratios(GAUSSIANS_EPSILONS, GAUSSIANS_DELTAS, cost))),
        printed_number(1.0),
        bound_exceeded("where δ comes near one half the Gaussian is the better one"),
        partial(draw_cost_plane, cost=cost),
    )


def _optimum_item(cost: str) -> Item:
    name = NAMES[cost]
    return Item(
        GDGK,
        f"True optimum in the axes of the figure, {name}",
        f"the least {name} of any noise over that of the optimal Gaussian, beside the ratio of truncated Laplace",
        f"noise_limits, noise.gaussian_price(cost='{cost}')",
        lambda effort: list(np.ravel(optimal_cost_ratios(effort, cost))),
        lambda effort: list(np.ravel(gaussian_cost_ratios(*program_settings(effort), cost))),
        sharper_bound(),
        partial(draw_optimum, cost=cost),
    )


gaussians_items = (_cost_item("absolute"), _cost_item("squared"), _optimum_item("absolute"), _optimum_item("squared"))
