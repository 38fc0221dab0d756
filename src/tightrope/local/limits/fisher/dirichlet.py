"""Dirichlet(a, …, a) on m shares as the prior: what it knows itself."""

from __future__ import annotations

import math
from collections.abc import Callable

from scipy import optimize

from tightrope.local.limits.fisher.columns import Columns

CONTRACTED = 1 + 1e-12
CONCENTRATIONS = (0.05, 1e9)
"""a − 2 of the priors that are tried: any of them gives a valid bound."""


def best_concentration(score: Callable[[float], float]) -> float:
    """The largest score(a) found."""
    return score(concentration(score))


def concentration(score: Callable[[float], float]) -> float:
    """The a > 2 with the largest score that was found; scores have one top.

    >>> round(concentration(lambda a: -(a - 5.0) ** 2), 1)
    5.0
    """
    ends = (math.log(CONCENTRATIONS[0]), math.log(CONCENTRATIONS[1]))
    found = optimize.minimize_scalar(
        lambda x: -score(2 + math.exp(float(x))), bounds=ends, method="bounded", options={"xatol": 3e-3}
    )
    return 2 + math.exp(float(found.x))


def prior_information(m: int, a: float) -> float:
    """E |P ∇ log π|² = (m−1)(ma−1)(ma−2)/(a−2), a > 2, P onto the directions that keep the sum of the shares.

    >>> round(prior_information(2, 4.0), 6)
    21.0
    """
    return (m - 1) * (m * a - 1) * (m * a - 2) / (a - 2) * CONTRACTED


def of_open_answers(columns: Columns, a: float) -> float:
    """The trace of the answer itself, Σ (1 − 1/m) E 1/p: no report of it has more, whoever sees what.

    >>> of_open_answers(Columns(3, 0.0, 1.0), 3.0)
    8.000000000008
    """
    return (columns.m - 1) * (columns.m * a - 1) / (a - 1) * CONTRACTED
