"""Plans on a limit that adds up log moments: a share of it is a share of its moments, not of its ε."""

from __future__ import annotations

from collections.abc import Sequence
from decimal import ROUND_CEILING, Context, Decimal
from fractions import Fraction
from typing import TYPE_CHECKING

from tightrope.certificates.budget import Budget, at_most, product
from tightrope.design.allocation.allocation import Allocation, allocate
from tightrope.errors import BudgetRefused
from tightrope.ledger.limits import TOTAL
from tightrope.ledger.recipe import Recipe
from tightrope.release.draft import Draft, units_of
from tightrope.release.wanted import least

if TYPE_CHECKING:
    from tightrope.design.allocation.units import Unit
    from tightrope.ledger import Account, Limit
    from tightrope.ledger.moments import Moments
    from tightrope.privacy.loss import PrivacyLoss
    from tightrope.release.questions.tasks import Person, Task
    from tightrope.release.wanted import Wanted

MOST_TOGETHER = 1000
"""As if the plan were released so many times at most, noise is chosen."""
TRIES, CLOSE_ENOUGH = 12, 0.997
"""Trials of a budget for all of them, and the part of the share that is enough to take."""
UPWARDS, DIGITS = Context(prec=6, rounding=ROUND_CEILING), Context(prec=6)


def limit_by_moments(account: Account | None) -> Limit | None:
    """The limit of the whole budget, where it adds up moments."""
    limits = () if account is None else account.limits
    return next((limit for limit in limits if limit.name == TOTAL and limit.moments is not None), None)


def drafted(
    limit: Limit, asked: tuple[tuple[Task, ...], Person, tuple[int, ...]], share: Decimal, goal: Wanted | None
) -> Draft:
    """The least noise within a share of the limit's moments, or the least share that does for a goal.

    ``asked``: tasks, person and group sizes of the draft. Raises ``BudgetRefused`` where no noise will do.
    """
    tasks, person, sizes = asked

    def one(part: Decimal) -> Draft:
        recipe = fitted(tuple(units_of(tasks)), limit, part)
        allocation = allocation_of(recipe)
        return Draft(tasks, allocation, kept(limit, allocation.loss, part), part, person, sizes)

    found = one(share) if goal is None else least(one, goal, share)
    if found is None:
        raise BudgetRefused(f"a share of {share} of {limit.words} is not enough for what is wanted; nothing was spent")
    return found


def fitted(units: tuple[Unit, ...], limit: Limit, share: Decimal, times: int = 1) -> Recipe:
    """The noise of one of ``times`` equal releases that together take no more than the share of the limit's moments.

    It is the least noise for which so many such releases as the whole limit holds would keep a budget, composed
    exactly: the largest budget, among multiples of the limit's, whose moments fit. So families of noise compete as they
    do where all is planned together.
    """
    together = max(1, min(MOST_TOGETHER, round(times / Fraction(share))))
    part, factor = Fraction(share) / times, Decimal(1)
    fits: tuple[Decimal, Recipe] | None = None
    fails: Decimal | None = None
    for _ in range(TRIES):
        recipe, taken = _tried(units, together, limit, factor)
        ratio = float(taken / part)
        if ratio <= 1:
            fits = (factor, recipe)
            if ratio >= CLOSE_ENOUGH or factor == 1:
                break
        else:
            fails = factor
        factor = _next(factor, ratio, fits and fits[0], fails)
    if fits is None:
        raise BudgetRefused(f"no noise fits into a share of {share} of {limit.words}; plan with more of it")
    return fits[1]


def _tried(units: Sequence[Unit], together: int, limit: Limit, factor: Decimal) -> tuple[Recipe, Fraction]:
    """The noise for a multiple of the whole budget, and the share of moments that one release takes."""
    moments = _moments(limit)
    budget = Budget(points=[_scaled(*point, factor) for point in limit.budget.stated], delta=moments.infinite_mass)
    found = allocate(tuple(units) * together, budget)
    recipe = Recipe(
        tuple(units), found.choices[: len(units)], found.window, found.alternatives, found.spare
    )  # fmt: skip
    taken = moments.share(recipe.releases())
    return recipe, Fraction(2**20) if taken is None else taken


def _scaled(epsilon: Decimal, delta: Decimal, factor: Decimal) -> tuple[Decimal, Decimal]:
    return (product(epsilon, factor), delta) if epsilon > 0 else (epsilon, product(delta, factor))


def _next(factor: Decimal, ratio: float, fits: Decimal | None, fails: Decimal | None) -> Decimal:
    """Moments grow as the square of ε where there is much noise; kept strictly between what fits and what does not."""
    guess = DIGITS.multiply(factor, Decimal(repr(min(max(ratio, 1e-6), 1e6) ** -0.5 * 0.9993)))
    low, high = fits or Decimal(0), fails or Decimal(1)
    if low < guess < high or (guess >= high == 1 and fails is None):
        return min(guess, high)
    return DIGITS.divide(low + high, Decimal(2))


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
