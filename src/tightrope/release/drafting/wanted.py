"""The least budget that makes answers as accurate as is wanted: a search that ends on the side that does."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from decimal import ROUND_CEILING, Context, Decimal

from tightrope.certificates.budget import Budget, Number
from tightrope.certificates.printable import printable
from tightrope.errors import BudgetRefused, PlanError, listed, nearest
from tightrope.release.drafting.draft import Draft
from tightrope.release.questions.node import Question
from tightrope.release.questions.within import Within

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
            _half(accuracy.at(self.rows or 1)["half_width_95"]) / self.halves[accuracy.question.name]
            for accuracy in draft.accuracies()
            if accuracy.question.name in self.halves
        )


def wanted(questions: Sequence[Question], within: Mapping[str, Number | str] | None, rows: int | None) -> Wanted | None:
    """What is asked for, in the questions and beside them; None where nothing is. Raises ``PlanError``."""
    asked = {question.name: question.asked.within for question in questions}
    for name, half in (within or {}).items():
        if name not in asked:
            raise PlanError(
                "within", name, f"the name of a question: {listed(tuple(asked))}", nearest(name, tuple(asked))
            )
        asked[name] = Within.of(half)
    for question in questions:
        _check(question, asked[question.name], rows)
    halves = {name: half.at(rows) for name, half in asked.items() if half is not None}
    return Wanted(halves, rows) if halves else None


def least(draft: DRAFTED, goal: Wanted, most: Decimal) -> Draft | None:
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

    found = least(of_share, goal, most)
    if found is None:
        short = budget.share(most)
        raise BudgetRefused(_refusal(lambda other, like: drafted(other, most, compare=False, like=like), goal, short))
    for _ in range(COMPARISONS):
        compared = drafted(found.budget, found.share)
        if goal.excess(compared) > 1:
            return found
        better = least(of_share, goal, found.share) if goal.excess(compared) < WORTH else None
        if better is None or better.share >= found.share:
            return compared
        found = better
    return found


def _refusal(draft: Callable[[Budget, Draft | None], Draft], goal: Wanted, budget: Budget) -> str:
    """What would do, in words: the least ε at the budget's δ, where there is one."""
    asked = ", ".join(f"{printable(name)} within ± {half:g}" for name, half in goal.halves.items())

    def of_epsilon(epsilon: Decimal, like: Draft | None) -> Draft:
        return draft(Budget(epsilon=epsilon, delta=budget.delta), like)

    tries = (least(of_epsilon, goal, most) for most in RAISED)
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
    return f"within of {printable(question.name)}"


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
