"""Truncated Laplace beside the least Gaussian over the plane of ε and δ, and the true optimum in the same axes."""

from __future__ import annotations

from functools import lru_cache, partial

import numpy as np

from tightrope import Budget, calibrate, gaussian
from tightrope.design import gaussian_price
from tightrope.mechanisms.continuous.gaussian import Gaussian
from tightrope.report.pictures.panels import Drawing, Plane
from tightrope.reproduce.gdgk.bounds import law_of
from tightrope.reproduce.gdgk.printed import GDGK
from tightrope.reproduce.item import Effort, Item, number
from tightrope.reproduce.judges import exceeded, sharper

EPSILONS, DELTAS = (0.1, 0.5, 1.0, 2.0, 3.0, 6.0), (1e-9, 1e-6, 1e-3, 0.1, 0.5)
PROGRAM_EPSILONS, PROGRAM_DELTAS = (0.1, 0.5, 1.0, 2.0, 3.0), (1e-9, 1e-6, 1e-3)
"""Where the linear program is asked for the optimum: for a larger ε or δ it takes a quarter of a minute and more."""
COARSE_EPSILONS, COARSE_DELTAS = (0.5, 2.0), (1e-6, 1e-3)
NAMES = {"absolute": "amplitude", "squared": "power"}
Table = list[list[float]]


@lru_cache(maxsize=64)
def least_gaussian(epsilon: float, delta: float) -> Gaussian:
    """The Gaussian of least scale that is (ε, δ)-private, by its exact profile."""
    found = calibrate(lambda scale: gaussian(scale=scale).loss, Budget(epsilon=epsilon, delta=delta), tolerance=1e-9)
    return gaussian(scale=found.parameter)


def ratio(epsilon: float, delta: float, cost: str) -> float:
    """V upper over the cost of the least Gaussian."""
    law, least = law_of(epsilon, delta), least_gaussian(epsilon, delta)
    if cost == "absolute":
        return law.mean_absolute_error / least.mean_absolute_error
    return law.mean_squared_error / least.mean_squared_error


def ratios(epsilons: tuple[float, ...], deltas: tuple[float, ...], cost: str) -> Table:
    """The paper's ratio, a row for each δ."""
    return [[ratio(epsilon, delta, cost) for epsilon in epsilons] for delta in deltas]


def asked(effort: Effort) -> tuple[tuple[float, ...], tuple[float, ...]]:
    """The values of ε and of δ for which the program is solved."""
    return (COARSE_EPSILONS, COARSE_DELTAS) if effort.coarse else (PROGRAM_EPSILONS, PROGRAM_DELTAS)


@lru_cache(maxsize=8)
def optima(effort: Effort, cost: str) -> Table:
    """The least cost of any noise, from above, over that of the least Gaussian."""
    epsilons, deltas = asked(effort)
    prices = gaussian_price(epsilon=list(epsilons), delta=list(deltas), cost=cost)
    return [[1 / price.lower for price in row] for row in prices]


def draw(effort: Effort, cost: str) -> list[Drawing]:
    """The paper's plane."""
    title = f"GDGK: noise {NAMES[cost]}, truncated Laplace / optimal Gaussian"
    return [Plane(title, "ε", "δ", EPSILONS, DELTAS, ratios(EPSILONS, DELTAS, cost))]


def draw_optimum(effort: Effort, cost: str) -> list[Drawing]:
    """The plane of the true optimum."""
    title = f"Noise {NAMES[cost]}: the true optimum / optimal Gaussian"
    return [Plane(title, "ε", "δ", *asked(effort), optima(effort, cost))]


def _item(cost: str) -> Item:
    name = NAMES[cost]
    return Item(
        GDGK,
        f"Figure: noise {name} beside the optimal Gaussian",
        f"truncated Laplace is said to have less {name} than the optimal Gaussian in all regimes: the largest ratio",
        f"truncated_laplace, calibrate(gaussian), cost '{cost}'",
        lambda effort: float(np.max(ratios(EPSILONS, DELTAS, cost))),
        number(1.0),
        exceeded("where δ comes near one half the Gaussian is the better one"),
        partial(draw, cost=cost),
    )


def _optimum(cost: str) -> Item:
    name = NAMES[cost]
    return Item(
        GDGK,
        f"True optimum in the axes of the figure, {name}",
        f"the least {name} of any noise over that of the optimal Gaussian, beside the ratio of truncated Laplace",
        f"noise_limits, design.gaussian_price(cost='{cost}')",
        lambda effort: list(np.ravel(optima(effort, cost))),
        lambda effort: list(np.ravel(ratios(*asked(effort), cost))),
        sharper(),
        partial(draw_optimum, cost=cost),
    )


items = (_item("absolute"), _item("squared"), _optimum("absolute"), _optimum("squared"))
