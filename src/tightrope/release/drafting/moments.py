"""Plans on a limit that adds up log moments: a share of it is a share of its moments, not of its ε."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from decimal import ROUND_CEILING, Context, Decimal
from fractions import Fraction
from functools import lru_cache
from typing import TYPE_CHECKING

from tightrope.certificates.budget import Budget, at_most, product
from tightrope.design.allocation.allocation import Allocation, allocate
from tightrope.errors import BudgetRefused
from tightrope.ledger.limits import MAIN_LIMIT
from tightrope.ledger.recipe import Recipe
from tightrope.release.drafting.arranged import units_of
from tightrope.release.drafting.draft import Draft

if TYPE_CHECKING:
    from tightrope.design.allocation.units import Unit
    from tightrope.ledger import Account, Limit
    from tightrope.ledger.moments import Moments
    from tightrope.privacy.loss import PrivacyLoss
    from tightrope.release.drafting.wanted import Wanted
    from tightrope.release.questions.tasks import Task

MOST_TOGETHER = 1000
"""As if the plan were released so many times at most, noise is chosen."""
TRIES, AIM, CLOSE_ENOUGH, LEAST = 8, 0.995, 0.985, 1e-6
"""Trials of a budget for all of them; the part of a share that is aimed at and that is enough; the least factor."""
STRICTER, FEW = (Decimal(1), Decimal("0.001")), 12
"""Parts of δ that noise is chosen for, and below how many releases together all of them are tried."""
DRAFTS, CLOSE_SHARE = 6, 0.98
"""Trials of a share for wanted errors, and how near the least one is approached, by ratio."""
UPWARDS, DIGITS = Context(prec=6, rounding=ROUND_CEILING), Context(prec=6)


def limit_by_moments(account: Account | None) -> Limit | None:
    """The limit of the whole budget, where it adds up moments."""
    limits = () if account is None else account.limits
    return next((limit for limit in limits if limit.name == MAIN_LIMIT and limit.moments is not None), None)


def drafted(
    limit: Limit,
    tasks: tuple[Task, ...],
    made: Callable[[Allocation, Budget, Decimal], Draft],
    share: Decimal,
    goal: Wanted | None,
) -> Draft:
    """The least noise within a share of the limit's moments, or the least share that does for a goal.

    ``made`` makes the draft of an allocation. Raises ``BudgetRefused`` where no noise will do.
    """

    def one(part: Decimal) -> Draft:
        recipe = fitted(tuple(units_of(tasks)), limit, part)
        allocation = allocation_of(recipe)
        return made(allocation, kept(limit, allocation.loss, part), part)

    return one(share) if goal is None else _least(one, goal, share, limit)


def _least(one: Callable[[Decimal], Draft], goal: Wanted, most: Decimal, limit: Limit) -> Draft:
    """The draft of nearly the least share that does: half-widths fall about as one over its root."""
    best, fails = one(most), Decimal(0)
    if goal.excess(best) > 1:
        raise BudgetRefused(f"a share of {most} of {limit.words} is not enough for what is wanted; nothing was spent")
    for _ in range(DRAFTS):
        guess = UPWARDS.create_decimal(repr(float(best.share) * min(goal.excess(best), 1.0) ** 2 * 1.005))
        if not fails < guess < best.share * Decimal(CLOSE_SHARE):
            guess = UPWARDS.divide(fails + best.share, Decimal(2))
        if guess >= best.share * Decimal(CLOSE_SHARE):
            break
        draft = one(guess)
        best, fails = (draft, fails) if goal.excess(draft) <= 1 else (best, guess)
    return best


@lru_cache(maxsize=64)
def fitted(units: tuple[Unit, ...], limit: Limit, share: Decimal, times: int = 1) -> Recipe:
    """The noise of one of ``times`` equal releases that together take no more than the share of the limit's moments.

    It is the least noise for which so many such releases as the whole limit holds would keep a budget, composed
    exactly: the largest budget, among multiples of the limit's, whose moments fit. So families of noise compete as they
    do where all is planned together. A few large releases would put the whole δ into losses that are rare and large,
    which a moment weighs heavily: for them a budget of a smaller δ is tried, too, and the least E|X| wins.
    """
    together = max(1, min(MOST_TOGETHER, round(times / Fraction(share))))
    part, found = Fraction(share) / times, list[Recipe]()
    for strictness in STRICTER:
        if not found or together < FEW:
            budgets = _Budgets(units, together, limit, strictness)
            found += [recipe for recipe in [_largest(budgets, part)] if recipe is not None]
    if not found:
        raise BudgetRefused(f"no noise fits into a share of {share} of {limit.words}; plan with another share of it")
    return min(found, key=_error).closer(at_most(limit.budget.delta))


@dataclass(frozen=True, slots=True)
class _Budgets:
    """Multiples of a limit's budget, for so many equal releases together."""

    units: tuple[Unit, ...]
    together: int
    limit: Limit
    strictness: Decimal

    def at(self, factor: Decimal) -> Budget:
        """ε times the factor, δ as strict as was said; a total variation, at ε = 0, times the factor."""
        pairs = [
            (product(epsilon, factor), product(delta, self.strictness))
            if epsilon > 0
            else (epsilon, product(delta, factor))
            for epsilon, delta in self.limit.budget.stated
        ]
        most = product(self.limit.budget.delta, self.strictness)
        return Budget(points=pairs, delta=min(_moments(self.limit).infinite_mass, most))

    def noise(self, factor: Decimal) -> Recipe | None:
        """That of one release; None where nothing keeps so little."""
        try:
            found = allocate(self.units * self.together, self.at(factor))
        except BudgetRefused:
            return None
        own = found.choices[: len(self.units)]
        return Recipe(self.units, own, found.window, found.alternatives, found.spare)


def _largest(budgets: _Budgets, part: Fraction) -> Recipe | None:
    """The noise of the largest factor that was tried, up to one, of which one release fits into the part."""
    tried: list[tuple[Decimal, float]] = []
    fits: dict[Decimal, Recipe] = {}
    factor = Decimal(1)
    for _ in range(TRIES):
        recipe = budgets.noise(factor)
        taken = None if recipe is None else _moments(budgets.limit).share(recipe.releases())
        if recipe is None or taken is None:
            break
        ratio = float(taken / part)
        tried.append((factor, ratio))
        fits |= {factor: recipe} if ratio <= 1 else {}
        if CLOSE_ENOUGH <= ratio <= 1 or (factor == 1 and fits):
            break
        factor = _next(tried)
    return fits[max(fits)] if fits else None


def _error(recipe: Recipe) -> float:
    """E|X| of all noise, in rows of a person."""
    return math.fsum(choice.table.mean_absolute / choice.shift for own in recipe.choices for choice in own)


def _next(tried: Sequence[tuple[Decimal, float]]) -> Decimal:
    """The next factor: along the line of the last two in logarithms, between what fits and what does not.

    Moments grow as the square of ε where there is much noise, and about as ε where there is little. They may jump a
    little where another family of noise is chosen.
    """
    (factor, ratio), (before, other) = tried[-1], tried[-2] if len(tried) > 1 else (Decimal(1), 1.0)
    step = math.log(factor / before) if before != factor else 0.0
    slope = min(max(math.log(ratio / other) / step, 0.7), 3.0) if step else 2.0
    guess = float(factor) * (AIM / ratio) ** (1 / slope)
    low = max((float(factor) for factor, ratio in tried if ratio <= 1), default=0.0)
    high = min((float(factor) for factor, ratio in tried if ratio > 1), default=1.0)
    inner = guess if low < guess < high else (low + high) / 2
    return DIGITS.create_decimal(repr(max(inner, LEAST)))


def allocation_of(recipe: Recipe) -> Allocation:
    """The noise of one release as a draft has it."""
    return Allocation(recipe.choices, recipe.loss(), dict(recipe.alternatives), recipe.spare, recipe.window)


def kept(limit: Limit, loss: PrivacyLoss, share: Decimal) -> Budget:
    """What noise within a share keeps by itself: at the share of every δ the least ε, rounded up to six digits."""
    points = [
        _point(loss, product(delta, share)) if epsilon > 0 else (epsilon, _up(loss.total_variation()))
        for epsilon, delta in limit.budget.stated
    ]
    return Budget(points=points, delta=product(limit.budget.delta, share))


def _point(loss: PrivacyLoss, delta: Decimal) -> tuple[Decimal, Decimal]:
    return _up(loss.epsilon(at_most(delta))), delta


def _up(value: float) -> Decimal:
    return UPWARDS.create_decimal(repr(value))


def _moments(limit: Limit) -> Moments:
    if limit.moments is None:
        raise TypeError(limit.rule)
    return limit.moments
