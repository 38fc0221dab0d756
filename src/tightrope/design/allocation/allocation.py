"""Least noise for several answers under one budget: families and one common size, by the exact composed curve."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

from scipy import optimize

from tightrope.certificates.budget import Budget
from tightrope.design.allocation.size_search import MOST_EPSILON, ROUGH, NoTableError, Search
from tightrope.design.allocation.units import Choice, Unit, all_spends, needs
from tightrope.errors import BudgetRefused, InputError
from tightrope.mechanisms.families.family import Family, Shaped
from tightrope.mechanisms.families.laplace import Laplace
from tightrope.mechanisms.families.registry import offered
from tightrope.mechanisms.families.truncated_laplace import TruncatedLaplace
from tightrope.mechanisms.tables.integer_optimum import optimal_table
from tightrope.privacy.loss import PrivacyLoss
from tightrope.privacy.masses import Window
from tightrope.privacy.neighbours import Neighbours

KEYS = TruncatedLaplace()
"""What hides keys beside a family whose largest value is too large for that, or that has none."""
CHOICES = Laplace()
"""What choices are charged as, beside any family."""
SHAPE_WITHIN, MOST_SHAPES = 0.04, 5
"""Shapes of a family with two knobs that are tried: how near the best, and how many."""
SMALLER = (36.0, 32.0, 28.0, 24.0, 20.0, 16.0, 12.0, 8.0)
"""What a larger ε is taken as, in this order, where no integer table keeps it."""
HOPELESS = 1.6
"""Where Gaussian noise is so much larger than the best, no law between it and Laplace noise was seen to be smaller."""


@dataclass(frozen=True, slots=True)
class Allocation:
    """The choices, by unit and spend; the loss of everything; the error of each family relative to the chosen one."""

    choices: tuple[tuple[Choice, ...], ...]
    loss: PrivacyLoss
    alternatives: dict[str, float]
    spare: float | None = None
    """The part of the noise, at most, that a bound on more rows than can be gone through may cost; None: there is none.
    """
    window: Window | None = None
    """The lattice on which the loss was composed; None: it is that of the one table."""
    error: float = math.inf
    """Sum over all numbers of E|X| in shifts of one row, each over the relative size that it was to have."""
    families: tuple[Family, ...] = ()
    """The family of each spend; none where no size was sought."""
    name: str = ""
    """What the families are called together."""
    losses: float = math.inf
    """The common size, times the largest ε of the budget: much the same for other budgets."""


def allocate(
    units: Sequence[Unit], budget: Budget, *, compare: bool = True, like: Allocation | None = None
) -> Allocation:
    """The least noise for which the exact composed loss keeps every point of the budget.

    One family for all spends (bounded ones keep a bounded family) at the least common size; the family with the
    least sum of E|X| over relative sizes wins. Every unit is dominated by the pointwise maximum over the ways one
    person's rows may fall; units compose with **parameters fixed in advance**. Neighbours: add or remove one person.
    ``compare=False`` saves the sizes of families that are ``HOPELESS``: they are no alternatives then. ``like`` one for
    another budget tries its families alone, which is much faster.
    Where δ = 0 no noise may end, so no keys are hidden. Raises ``BudgetRefused`` where no size will do.

    ε above ``MOST_EPSILON`` is kept as that. Where no table of whole numbers can be shown to keep a large ε, the noise
    of the next smaller one in ``SMALLER`` does: it keeps the budget, and its certificate says what it realises.
    """
    for most in (MOST_EPSILON, *SMALLER):
        search = Search(tuple(units), budget, most)
        try:
            return _allocated(search, compare, like)
        except NoTableError as error:
            refused = error
            if not max(epsilon for epsilon, _ in budget.rounded) > SMALLER[-1]:
                break
    raise refused


def _allocated(search: Search, compare: bool, like: Allocation | None) -> Allocation:
    _refuse_hidden_keys(search)
    if like is not None and like.families:
        return _least(search, [_resized(search, like)])
    return _optimum(search) or _least(search, _trials(search, compare=compare))


def _refuse_hidden_keys(search: Search) -> None:
    if not search.delta > 0 and any(spend.bounded for spend in all_spends(search.units)):
        raise BudgetRefused(
            "keys cannot be discovered at delta = 0: list them with keys=[...], or allow a delta such as 1e-12"
        )


def _trials(search: Search, *, compare: bool) -> list[Trial]:
    """What each family comes to; those with a shape last, for they begin near what the others found."""
    if all(spend.chooses for spend in all_spends(search.units)):
        return [_trial(search, CHOICES)]
    planned = [family for family in offered() if family.planned and (search.delta > 0 or not family.bounded)]
    trials: list[Trial] = []
    for law in (law for family in planned if not isinstance(family, Shaped) for law in family.variants):
        trials.append(_rival(search, law, trials, compare=compare))
    return trials + [_tuned(search, family, trials) for family in planned if isinstance(family, Shaped)]


def _rival(search: Search, law: Family, trials: Sequence[Trial], *, compare: bool) -> Trial:
    """The trial of one law; where nothing is compared, a hopeless one is not sized."""
    least = min((trial.size for trial in trials), default=math.inf)
    beaten = not compare and math.isfinite(least) and not search.passes(_families(search, law), HOPELESS * least)
    return _none(law.name) if beaten else _trial(search, law)


def _least(search: Search, trials: Sequence[Trial]) -> Allocation:
    """The trial with the least error, certified; among those as good as equal, the first."""
    least = min(trial.error for trial in trials)
    if not math.isfinite(least):
        raise BudgetRefused(
            f"no noise keeps {search.budget} for {len(search.units)} answers; raise {' or '.join(search.budget.asked)}"
        )
    best = next(trial for trial in trials if trial.error <= least * (1 + 2 * ROUGH))
    choices, loss, window = search.certify(best.families, best.size)
    ordered = sorted(trials, key=lambda trial: -trial.error)
    relative = {t.name: t.error / best.error for t in ordered if math.isfinite(t.error)}
    said = best.error, best.families, best.name, best.size * search.scale
    return Allocation(choices, loss, relative, _spare(search, best), window, *said)


def _spare(search: Search, best: Trial) -> float | None:
    """How much smaller noise could be, at most, if the bound on many rows were exact: the fullest split needs it."""
    if all(unit.contribution.exact for unit in search.units):
        return None
    needed = replace(search, fullest=True).least_size(best.families, best.size)
    return max(0.0, 1 - needed / best.size) if math.isfinite(needed) else 1.0


def _optimum(search: Search) -> Allocation | None:
    """One vector of counts with one row a person: no integer noise beats the closed form (theory §4.1)."""
    (spend, *others), (need, *_) = all_spends(search.units), needs(search.units, 1.0, search.delta)
    capped = min(delta for _, delta in search.points) <= search.delta
    if others or not spend.whole_rows or need.parts != (1,) or not capped:
        return None
    try:
        table = optimal_table(search.points)
    except InputError:  # too long a table: the search refuses in words of the budget
        return None
    if spend.bounded and not math.isfinite(table.worst):
        return None
    law = table.atoms(1)
    loss = PrivacyLoss.of(law, reverse=law, neighbours=Neighbours.ADD_REMOVE)
    choice = Choice(spend, "least noise (closed form)", 1, table)
    return Allocation(((choice,),), loss, {}, error=table.mean_absolute / spend.wanted)


@dataclass(frozen=True, slots=True)
class Trial:
    """A family for every spend, the least common size that keeps the budget, and the error it comes to."""

    name: str
    families: tuple[Family, ...]
    size: float
    error: float


def _none(name: str) -> Trial:
    """A family that no size was sought for."""
    return Trial(name, (), math.inf, math.inf)


def _tuned(search: Search, family: Shaped, trials: Sequence[Trial]) -> Trial:
    """The family's best shape; none (an error of ∞) where the family that it is near to is hopeless."""
    least, beside = min(trials, key=lambda trial: trial.error), {trial.name: trial.error for trial in trials}
    if not beside.get(family.near, least.error) < HOPELESS * least.error:
        return _none(family.name)
    found: list[Trial] = []

    def error(shape: float) -> float:
        guess = found[-1].size if found else least.size
        found.append(_trial(search, family.at(shape), guess))
        return found[-1].error

    optimize.minimize_scalar(
        error, bounds=family.ends, method="bounded", options={"xatol": SHAPE_WITHIN, "maxiter": MOST_SHAPES}
    )
    return min(found, key=lambda trial: trial.error)


def _resized(search: Search, like: Allocation) -> Trial:
    size = search.least_size(like.families, like.losses / search.scale)
    return Trial(like.name, like.families, size, search.error(like.families, size))


def _trial(search: Search, family: Family, guess: float | None = None) -> Trial:
    families = _families(search, family)
    size = search.least_size(families, guess)
    return Trial(family.name, families, size, search.error(families, size))


def _families(search: Search, family: Family) -> tuple[Family, ...]:
    """The family for every spend, one that hides keys where they are discovered; choices have their own."""
    hiding = family if family.hides_keys else KEYS
    return tuple(
        CHOICES if spend.chooses else hiding if spend.bounded else family for spend in all_spends(search.units)
    )
