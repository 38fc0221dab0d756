"""What a session is told beside its source, keyword by keyword."""

from __future__ import annotations

import inspect
import math
import re
from collections.abc import Mapping, Sequence
from decimal import Decimal
from typing import TYPE_CHECKING, Any, NotRequired, TypedDict, Unpack

from tightrope.documents.budget import TYPICAL, Budget, at_most
from tightrope.documents.escaping import A_PERSON, printable
from tightrope.documents.wording import Attack
from tightrope.errors import InputError, listed, nearest
from tightrope.noise.allocation import MOST_EPSILON
from tightrope.numerics.checks import whole
from tightrope.queries.query_group import Person, Task
from tightrope.tables import Lookup

if TYPE_CHECKING:
    from tightrope.accounting.privacy_loss import PrivacyLoss

# Who a person is and how much of them counts, as a session is told: checked.

LIMITS = ("rows_per_person", "rows_per_group", "groups_per_person")
MOST = 10**9
"""Rows and groups of a person at most: noise for more would drown any table."""
MEANS = re.compile(r"^an? [^ ].{0,60}$")


Given = str | tuple[str | None, str] | None
"""The column of a person, with what a person is where it is no human; None: each row is one."""


def person_of(given: Given, limits: tuple[int | None, int | None, int | None]) -> Person:
    """The person and their bounds, in the order of ``LIMITS``; raises ``InputError``."""
    person, means = given if isinstance(given, tuple) and len(given) == 2 else (given, A_PERSON)
    if not (isinstance(means, str) and MEANS.fullmatch(means) and means.isprintable()):
        raise InputError("person", means, "a noun with its article behind the column", "('tail', 'an aircraft')")
    rows, per_group, groups = limits
    if person is None:
        for name, value in zip(LIMITS, limits, strict=True):
            if value not in (None, 1):
                remedy = "each row is a person; or name the person column"
                raise InputError(name, value, "left out when person=None", remedy)
        return Person(None, 1, 1, 1, means)
    if not isinstance(person, str) or not person:
        raise InputError("person", person, "the name of a column, or None when each row is a person")
    if rows is None:
        remedy = "how many rows of one person may count at most?"
        raise InputError("rows_per_person", rows, "a whole number >= 1", remedy)
    rows = _bound("rows_per_person", rows)
    return Person(
        person,
        rows,
        rows if per_group is None else _bound("rows_per_group", per_group),
        rows if groups is None else _bound("groups_per_person", groups),
        means,
    )


def _bound(name: str, value: int) -> int:
    if whole(name, value) > MOST:
        raise InputError(name, "a larger one", f"at most {MOST:,}", "how many rows of one person may count at most?")
    return int(value)


class Settings(TypedDict):
    """What ``Session`` takes beside its source."""

    person: Given
    budget: Budget
    rows_per_person: NotRequired[int | None]
    rows_per_group: NotRequired[int | None]
    groups_per_person: NotRequired[int | None]
    table: NotRequired[str | None]
    types: NotRequired[Mapping[str, str] | None]
    lookup: NotRequired[Lookup | Sequence[Lookup]]


class Settled(TypedDict):
    """The same, each of them said."""

    person: Given
    budget: Budget
    rows_per_person: int | None
    rows_per_group: int | None
    groups_per_person: int | None
    table: str | None
    types: Mapping[str, str] | None
    lookup: Lookup | Sequence[Lookup]


REQUIRED: Mapping[str, tuple[str, str]] = {
    "person": ("the column that says whose row it is, or None", "say person=None only where each row is a person"),
    "budget": ("a tr.Budget", "say budget=tr.Budget(epsilon=1, delta=1e-8)"),
}
"""What has to be said: what it is, and how."""
RECORDED = frozenset({"ledger", "dataset", "limits", "audience", "note"})
"""Settings of ``Session.open`` alone."""


def settled(**said: Unpack[Settings]) -> Settled:
    """Every setting, by default as ``spelled_out`` has it.

    Raises ``InputError`` for one that is not known, one that has to be said and is not, and a budget that is none.
    """
    for name in said:
        if name not in Settled.__annotations__:
            known = tuple(Settled.__annotations__)
            remedy = "tr.Session.open charges a ledger" if name in RECORDED else nearest(name, known)
            raise InputError("setting", name, f"one of {listed(known)}", remedy)
    for name, (expected, remedy) in REQUIRED.items():
        if name not in said:
            raise InputError(name, None, f"said: {expected}", remedy)
    return spelled_out(**said)


def spelled_out(
    *,
    person: Given,
    budget: Budget,
    rows_per_person: int | None = None,
    rows_per_group: int | None = None,
    groups_per_person: int | None = None,
    table: str | None = None,
    types: Mapping[str, str] | None = None,
    lookup: Lookup | Sequence[Lookup] = (),
) -> Settled:
    """Every setting, by default as it is here; raises ``InputError`` for a budget that is none."""
    if not isinstance(budget, Budget):
        raise InputError("budget", budget, "a tr.Budget", "say budget=tr.Budget(epsilon=1, delta=1e-8)")
    return {
        "person": person,
        "budget": budget,
        "rows_per_person": rows_per_person,
        "rows_per_group": rows_per_group,
        "groups_per_person": groups_per_person,
        "table": table,
        "types": types,
        "lookup": lookup,
    }


def signature(*first: str) -> inspect.Signature:
    """What ``help`` shows of a function that takes settings after these."""
    own = [inspect.Parameter(name, inspect.Parameter.POSITIONAL_OR_KEYWORD) for name in first]
    return inspect.Signature([*own, *inspect.signature(spelled_out).parameters.values()])


# The promise of a release as data and in words: what is kept, what an attacker gains, whose rows are hidden.


def attack_success(loss: PrivacyLoss) -> float:
    """(1 + η)/2, rounded up."""
    return min(1.0, math.nextafter((1 + loss.total_variation()) / 2, 2.0))


def attacker(loss: PrivacyLoss, person: Person) -> str:
    """What an attacker could gain, in words; percentages are rounded up."""
    return str(Attack.on(person.protected.guess, attack_success(loss)))


def guarantee_data(loss: PrivacyLoss, budget: Budget) -> dict[str, Any]:
    """ε at the stated δ, η, attack success: rounded to the private side, and as exact decimal strings."""
    delta, proven = float(budget.delta), at_most(budget.delta)
    # ε at δ, never above what was asked for and is kept: a search for it ends some roundings above.
    kept = [epsilon for epsilon, most in budget.rounded if most <= proven and loss.delta(epsilon) <= most]
    epsilon, eta = min([loss.epsilon(proven), *kept]), loss.total_variation()
    return {
        "epsilon": epsilon,
        "epsilon_exact": str(Decimal(epsilon)),
        "delta": delta,
        "delta_exact": str(budget.delta),
        "total_variation": eta,
        "total_variation_exact": str(Decimal(eta)),
        "attack_success": attack_success(loss),
    }


def neighbours_data(person: Person) -> Mapping[str, Any]:
    """What the guarantee protects, as data and in a sentence."""
    if person.column is None:
        return {
            "relation": "add-remove",
            "person": None,
            "means": person.means,
            "rows_per_person": 1,
            "rows_per_group": 1,
            "groups_per_person": 1,
            "statement": f"Adding or removing one row (each row is {person.means})",
        }
    whose = "their rows" if person.human else "its rows"
    return {
        "relation": "add-remove",
        "person": person.column,
        "means": person.means,
        "rows_per_person": person.rows,
        "rows_per_group": person.rows_per_group,
        "groups_per_person": person.groups,
        "statement": f"Adding or removing one {person.noun} (a value of {printable(person.column)}) with all {whose}",
    }


# Promises that protect nobody, or hardly: refused, or said in words.

LARGEST_DELTA, WORRYING_DELTA = Decimal("0.1"), Decimal("1e-4")
"""A δ that is refused; and one from which on a plan warns."""


def usable_delta(budget: Budget, tasks: Sequence[Task]) -> None:
    """Raises ``InputError`` for a δ that protects nobody, and for none where keys must be hidden."""
    if not budget.delta < LARGEST_DELTA:
        remedy = f"delta is the chance that somebody is given away for certain; {TYPICAL}"
        raise InputError("delta", budget.delta, f"below {LARGEST_DELTA} for a release", remedy)
    discovered = [question.asked.name for task in tasks if task.key_count is not None for question in task.questions]
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
    largest = max(epsilon for epsilon, _ in budget.checked_points)
    if largest <= MOST_EPSILON:
        return None
    return (
        f"epsilon {float(largest):g} protects nobody, and the noise is that of epsilon {MOST_EPSILON:g}: next to none; "
        "a typical value is 1"
    )
