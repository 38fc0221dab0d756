"""The least budget that makes answers as accurate as is wanted: a search that ends on the side that does."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from decimal import ROUND_CEILING, Context, Decimal
from fractions import Fraction
from functools import lru_cache
from typing import TYPE_CHECKING

from tightrope.documents.budget import Budget, Number, at_most, product
from tightrope.documents.escaping import printable
from tightrope.errors import BudgetRefused, PlanError, listed, nearest
from tightrope.ledger.limits import MAIN_LIMIT
from tightrope.ledger.noise_record import Recipe
from tightrope.noise.allocation import Allocation, allocate
from tightrope.queries.options import Within
from tightrope.queries.query import Question
from tightrope.release.draft import Draft, units_of

if TYPE_CHECKING:
    from tightrope.accounting.privacy_loss import PrivacyLoss
    from tightrope.ledger import Account, Limit
    from tightrope.ledger.moments import Moments
    from tightrope.noise.worst_split import Unit
    from tightrope.queries.query_group import Task

UPWARDS = Context(prec=4, rounding=ROUND_CEILING)
"""Budgets are tried at so many digits."""
CLOSE_ENOUGH = Decimal("1.002")
"""How near the least budget is approached, by ratio."""
WORTH = 0.999
"""Where other noise is so much better than what was found, it is sought anew."""
STEPS, LEAST = 40, Decimal("1e-9")
WIDER = 16
"""Where nothing is known yet, the next try is so many times less or more."""
RAISED = tuple(Decimal(2) ** power for power in range(-3, 6))
"""ε that are tried where a budget is not enough: beyond the last there is next to no noise."""
DRAFTED = Callable[[Decimal, Draft | None], Draft]
"""The draft of a size; one that is given has the families of noise that are tried alone."""
COMPARISONS = 3
"""How often families are compared anew at what was found."""


@dataclass(frozen=True, slots=True)
class Wanted:
    """The half-width that each question may have, and the rows of a group for which it is stated."""

    halves: Mapping[str, float]
    rows: int | None

    def excess(self, draft: Draft) -> float:
        """The largest half-width over what is wanted; at most 1 where every question is as accurate."""
        return max(
            _half(accuracy.at(self.rows or 1)["half_width_95"]) / self.halves[accuracy.question.asked.name]
            for accuracy in draft.accuracies()
            if accuracy.question.asked.name in self.halves
        )


def accuracy_target(
    questions: Sequence[Question], within: Mapping[str, Number | str] | None, rows: int | None
) -> Wanted | None:
    """What is asked for, in the questions and beside them; None where nothing is. Raises ``PlanError``."""
    asked = {question.asked.name: question.asked.within for question in questions}
    for name, half in (within or {}).items():
        if name not in asked:
            raise PlanError(
                "within", name, f"the name of a question: {listed(tuple(asked))}", nearest(name, tuple(asked))
            )
        asked[name] = Within.of(half)
    for question in questions:
        _check(question, asked[question.asked.name], rows)
    halves = {name: half.at(rows) for name, half in asked.items() if half is not None}
    return Wanted(halves, rows) if halves else None


def minimal_draft(draft: DRAFTED, goal: Wanted, most: Decimal) -> Draft | None:
    """The draft of the least size up to ``most`` that does, within 0.2 %; None where ``most`` does not.

    Half-widths fall about as one over the size: each try is where that law, or the middle, would have it. Nothing is
    concluded from the law: what is returned was drafted and does. All tries have the noise that is best at ``most``.
    """
    found, fails = _tried(draft, goal, most, None), Decimal(0)
    if found is None or found[1] > 1:
        return None
    like = found[0]
    does, best = most, found
    guess = does * _fraction(found[1])
    for _ in range(STEPS):
        place = _between(fails, does, guess)
        if place is None:
            break
        tried = _tried(draft, goal, place, like)
        if tried is not None and tried[1] <= 1:
            does, best = place, tried
        else:
            fails = place
        guess = place * _fraction(tried[1]) if tried is not None else does / WIDER
    return best[0]


def accurate(drafted: Callable[..., Draft], goal: Wanted, budget: Budget, most: Decimal) -> Draft:
    """The draft of the least share of the budget, up to ``most``; ``drafted`` is given a budget and what share it is.

    Raises ``BudgetRefused``, which says which ε would do.
    """

    def of_share(part: Decimal, like: Draft | None) -> Draft:
        return drafted(budget.share(part), part, compare=False, like=like)

    found = minimal_draft(of_share, goal, most)
    if found is None:
        short = budget.share(most)
        raise BudgetRefused(_refusal(lambda other, like: drafted(other, most, compare=False, like=like), goal, short))
    for _ in range(COMPARISONS):
        compared = drafted(found.budget, found.share)
        if goal.excess(compared) > 1:
            return found
        better = minimal_draft(of_share, goal, found.share) if goal.excess(compared) < WORTH else None
        if better is None or better.share >= found.share:
            return compared
        found = better
    return found


def _refusal(draft: Callable[[Budget, Draft | None], Draft], goal: Wanted, budget: Budget) -> str:
    """What would do, in words: the least ε at the budget's δ, where there is one."""
    asked = ", ".join(f"{printable(name)} within ± {half:g}" for name, half in goal.halves.items())

    def of_epsilon(epsilon: Decimal, like: Draft | None) -> Draft:
        return draft(Budget(epsilon=epsilon, delta=budget.delta), like)

    tries = (minimal_draft(of_epsilon, goal, most) for most in RAISED)
    found = next((tried for tried in tries if tried is not None), None)
    if found is None:
        remedy = "no budget does: tighten between or the rows of a person, or ask about larger groups"
        return f"{budget} is not enough for {asked}; {remedy}"
    return f"{budget} is not enough for {asked}; epsilon={found.budget.epsilon} is, within 0.2 % of the least"


def _check(question: Question, half: Within | None, rows: int | None) -> None:
    if half is None:
        return
    if half.relative and not question.counts:
        expected = f"a number for a {question.kind}"
        raise PlanError(_within(question), str(half), expected, "only counts have a share of rows")
    if rows is None and (half.relative or not question.uniform):
        remedy = "say for groups of which size: expected_rows=500"
        raise PlanError(_within(question), str(half), "given with expected_rows, for its error depends on them", remedy)


def _within(question: Question) -> str:
    return f"within of {printable(question.asked.name)}"


def _tried(draft: DRAFTED, goal: Wanted, size: Decimal, like: Draft | None) -> tuple[Draft, float] | None:
    """The draft and its excess; None where no noise keeps so little, neither as before nor of any other kind."""
    try:
        made = draft(size, like)
    except BudgetRefused:
        return None if like is None else _tried(draft, goal, size, None)
    return made, goal.excess(made)


def _between(fails: Decimal, does: Decimal, guess: Decimal) -> Decimal | None:
    """The next size, strictly between: the guess, kept away from both ends; None where they are close enough."""
    if does <= LEAST or (fails > 0 and does <= fails * CLOSE_ENOUGH):
        return None
    low = fails if fails > 0 else does / (WIDER * WIDER)
    wanted = guess * CLOSE_ENOUGH
    if wanted >= does:  # where the law has it: what is a little less decides
        place = UPWARDS.divide(does, CLOSE_ENOUGH)
    else:
        inner = (low * (does / low) ** Decimal("0.1"), does / (does / low) ** Decimal("0.1"))
        place = UPWARDS.plus(min(max(wanted, inner[0]), inner[1]))
    return place if fails < place < does else None


def _fraction(excess: float) -> Decimal:
    return Decimal(repr(min(max(excess, 1 / WIDER), WIDER))) if math.isfinite(excess) else Decimal(WIDER)


def _half(found: float | None) -> float:
    return math.inf if found is None else found


# Plans on a limit that adds up log moments: a share of it is a share of its moments, not of its ε.

MOST_TOGETHER = 1000
"""As if the plan were released so many times at most, noise is chosen."""
TRIES, AIM, CLOSE_BY_MOMENTS, LEAST_BY_MOMENTS = 8, 0.995, 0.985, 1e-6
"""Trials of a budget for all of them; the part of a share that is aimed at and that is enough; the least factor."""
STRICTER, FEW = (Decimal(1), Decimal("0.001")), 12
"""Parts of δ that noise is chosen for, and below how many releases together all of them are tried."""
DRAFTS, CLOSE_SHARE = 6, 0.98
"""Trials of a share for wanted errors, and how near the least one is approached, by ratio."""
UPWARDS_BY_MOMENTS, DIGITS = Context(prec=6, rounding=ROUND_CEILING), Context(prec=6)


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

    def draft_of_part(part: Decimal) -> Draft:
        recipe = fitted(tuple(units_of(tasks)), limit, part)
        allocation = allocation_of(recipe)
        return made(allocation, budget_of_share(limit, allocation.loss, part), part)

    return draft_of_part(share) if goal is None else _minimal_draft_by_root(draft_of_part, goal, share, limit)


def _minimal_draft_by_root(one: Callable[[Decimal], Draft], goal: Wanted, most: Decimal, limit: Limit) -> Draft:
    """The draft of nearly the least share that does: half-widths fall about as one over its root."""
    best, fails = one(most), Decimal(0)
    if goal.excess(best) > 1:
        raise BudgetRefused(f"a share of {most} of {limit.words} is not enough for what is wanted; nothing was spent")
    for _ in range(DRAFTS):
        guess = UPWARDS_BY_MOMENTS.create_decimal(repr(float(best.share) * min(goal.excess(best), 1.0) ** 2 * 1.005))
        if not fails < guess < best.share * Decimal(CLOSE_SHARE):
            guess = UPWARDS_BY_MOMENTS.divide(fails + best.share, Decimal(2))
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
            for epsilon, delta in self.limit.budget.checked_points
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
        if CLOSE_BY_MOMENTS <= ratio <= 1 or (factor == 1 and fits):
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
    return DIGITS.create_decimal(repr(max(inner, LEAST_BY_MOMENTS)))


def allocation_of(recipe: Recipe) -> Allocation:
    """The noise of one release as a draft has it."""
    return Allocation(recipe.choices, recipe.loss(), dict(recipe.alternatives), recipe.spare, recipe.window)


def budget_of_share(limit: Limit, loss: PrivacyLoss, share: Decimal) -> Budget:
    """What noise within a share keeps by itself: at the share of every δ the least ε, rounded up to six digits."""
    points = [
        _point(loss, product(delta, share)) if epsilon > 0 else (epsilon, _up(loss.total_variation()))
        for epsilon, delta in limit.budget.checked_points
    ]
    return Budget(points=points, delta=product(limit.budget.delta, share))


def _point(loss: PrivacyLoss, delta: Decimal) -> tuple[Decimal, Decimal]:
    return _up(loss.epsilon(at_most(delta))), delta


def _up(value: float) -> Decimal:
    return UPWARDS_BY_MOMENTS.create_decimal(repr(value))


def _moments(limit: Limit) -> Moments:
    if limit.moments is None:
        raise TypeError(limit.rule)
    return limit.moments
