"""Promises that protect nobody, or hardly: refused, or said in words."""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal

from tightrope.certificates.budget import TYPICAL, Budget
from tightrope.design.allocation.size_search import MOST_EPSILON
from tightrope.errors import InputError
from tightrope.release.questions.tasks import Task

LARGEST_DELTA, WORRYING_DELTA = Decimal("0.1"), Decimal("1e-4")
"""A δ that is refused; and one from which on a plan warns."""


def usable_delta(budget: Budget, tasks: Sequence[Task]) -> None:
    """Raises ``InputError`` for a δ that protects nobody, and for none where keys must be hidden."""
    if not budget.delta < LARGEST_DELTA:
        remedy = f"delta is the chance that somebody is given away for certain; {TYPICAL}"
        raise InputError("delta", budget.delta, f"below {LARGEST_DELTA} for a release", remedy)
    discovered = [question.name for task in tasks if task.key_count is not None for question in task.questions]
    if discovered and not budget.delta > 0:
        remedy = f"list the keys of {discovered[0]} with keys=[...], or say delta=1e-12: it costs next to nothing"
        raise InputError("delta", budget.delta, "above 0 where keys are discovered", remedy)


def large_delta(budget: Budget) -> str | None:
    """Words of warning for a δ that would be one over the number of people in a small town, or more."""
    if budget.delta < WORRYING_DELTA:
        return None
    return (
        f"delta {float(budget.delta):g} is large: with {int(1 / budget.delta):,} people the promise allows to publish "
        "one of them, picked at random; it should be far below one over the number of people"
    )


def large_epsilon(budget: Budget) -> str | None:
    """Words of warning for an ε beyond every noise that is made."""
    largest = max(epsilon for epsilon, _ in budget.stated)
    if largest <= MOST_EPSILON:
        return None
    return (
        f"epsilon {float(largest):g} protects nobody, and the noise is that of epsilon {MOST_EPSILON:g}: next to none; "
        "a typical value is 1"
    )
