"""Least noise for several answers under one budget: families and one common size, by the exact composed curve."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from scipy import optimize

from tightrope.certificates.budget import Budget
from tightrope.design.allocation.size_search import ROUGH, Search
from tightrope.design.allocation.units import Choice, Unit, all_spends, needs
from tightrope.design.families import (
    DiscreteGaussian,
    DiscreteLaplace,
    DiscreteStaircase,
    ExponentialPower,
    Family,
    TruncatedLaplace,
)
from tightrope.errors import BudgetRefused
from tightrope.mechanisms.tables.integer_optimum import optimal_table
from tightrope.privacy.loss import PrivacyLoss
from tightrope.privacy.neighbours import Neighbours

FAMILIES: tuple[Family, ...] = (
    TruncatedLaplace(0.999999),
    TruncatedLaplace(0.5),
    DiscreteLaplace(),
    DiscreteStaircase(),
    DiscreteGaussian(),
)
POWERS, POWER_WITHIN, MOST_POWERS = (1.0, 2.0), 0.04, 5
"""Exponents of e^{−(|x|/s)^q} that are tried: between which, how near the best, and how many."""
HOPELESS = 1.6
"""Where Gaussian noise is so much larger than the best, no law between it and Laplace noise was seen to be smaller."""


@dataclass(frozen=True, slots=True)
class Allocation:
    """The choices, by unit and spend; the loss of everything; the error of each family relative to the chosen one."""

    choices: tuple[tuple[Choice, ...], ...]
    loss: PrivacyLoss
    alternatives: dict[str, float]


def allocate(units: Sequence[Unit], budget: Budget) -> Allocation:
    """The least noise for which the exact composed loss keeps every point of the budget.

    One family for all spends (bounded ones keep a bounded family) at the least common size; the family with the
    least sum of E|X| over relative sizes wins. Every unit is dominated by the pointwise maximum over the ways one
    person's rows may fall; units compose with **parameters fixed in advance**. Neighbours: add or remove one person.
    Raises ``BudgetRefused`` where no size will do.
    """
    search = Search(tuple(units), budget)
    optimum = _optimum(search)
    if optimum is not None:
        return optimum
    trials = [_trial(search, family) for family in FAMILIES]
    trials += _between(search, trials)
    least = min(trial.error for trial in trials)
    best = next(trial for trial in trials if trial.error <= least * (1 + 2 * ROUGH))
    if not math.isfinite(least):
        raise BudgetRefused(f"no noise keeps {budget} for {len(search.units)} answers; raise epsilon or delta")
    choices, loss = search.certify(best.families, best.size)
    ordered = sorted(trials, key=lambda trial: -trial.error)
    relative = {t.name: t.error / best.error for t in ordered if math.isfinite(t.error)}
    return Allocation(choices, loss, relative)


def _optimum(search: Search) -> Allocation | None:
    """One vector of counts with one row a person: no integer noise beats the closed form (theory §4.1)."""
    (spend, *others), (need, *_) = all_spends(search.units), needs(search.units, 1.0, search.delta)
    capped = min(delta for _, delta in search.points) <= search.delta
    if others or not spend.whole_rows or need.parts != (1,) or not capped:
        return None
    table = optimal_table(search.points)
    if spend.bounded and not math.isfinite(table.worst):
        return None
    law = table.atoms(1)
    loss = PrivacyLoss.of(law, reverse=law, neighbours=Neighbours.ADD_REMOVE)
    return Allocation(((Choice(spend, "least noise (closed form)", 1, table),),), loss, {})


@dataclass(frozen=True, slots=True)
class Trial:
    """A family for every spend, the least common size that keeps the budget, and the error it comes to."""

    name: str
    families: tuple[Family, ...]
    size: float
    error: float


def _between(search: Search, trials: Sequence[Trial]) -> list[Trial]:
    """The best law between Laplace and Gaussian, tuned; none where the two are far apart."""
    gaussian, least = trials[-1], min(trials, key=lambda trial: trial.error)
    if not gaussian.error < HOPELESS * least.error:
        return []
    found: list[Trial] = []

    def error(power: float) -> float:
        guess = found[-1].size if found else least.size
        found.append(_trial(search, ExponentialPower(power), guess))
        return found[-1].error

    optimize.minimize_scalar(
        error, bounds=POWERS, method="bounded", options={"xatol": POWER_WITHIN, "maxiter": MOST_POWERS}
    )
    return [min(found, key=lambda trial: trial.error)]


def _trial(search: Search, family: Family, guess: float | None = None) -> Trial:
    bounded = family if isinstance(family, TruncatedLaplace) else TruncatedLaplace()
    families = tuple(bounded if spend.bounded else family for spend in all_spends(search.units))
    size = search.least_size(families, guess)
    return Trial(family.name, families, size, search.error(families, size))
