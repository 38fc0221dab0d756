"""What a ledger is told of a plan: who is protected, what is kept, which noise, and a digest of all that was asked."""

from __future__ import annotations

from fractions import Fraction
from typing import TYPE_CHECKING, Any, Literal

from msgspec import structs

from tightrope.certificates.release import LedgerEntry, LimitLeft
from tightrope.errors import InputError
from tightrope.ledger import Claim, Identity, Limit
from tightrope.ledger.limits import MAIN_LIMIT
from tightrope.ledger.recipe import Recipe
from tightrope.ledger.shares import shown
from tightrope.ledger.state import left_by_addition
from tightrope.ledger.storage.entry import canonical, digest
from tightrope.release.drafting.arranged import units_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tightrope.certificates.budget import Budget
    from tightrope.certificates.release import ReleaseCertificate
    from tightrope.engines.schema import Schema
    from tightrope.ledger import Account
    from tightrope.ledger.state import State
    from tightrope.ledger.storage.entry import Entry
    from tightrope.release.drafting.draft import Draft
    from tightrope.release.questions.tasks import Person, Task


def identity_of(dataset: str, schema: Schema, person: Person) -> Identity:
    """A dataset as a ledger knows it."""
    columns = tuple((column.name, column.kind) for column in schema.columns)
    return Identity(dataset, columns, person.column, person.means, person.rows, person.rows_per_group, person.groups)


def with_total(budget: Budget, limits: Sequence[Limit]) -> tuple[Limit, ...]:
    """The limits with one for the whole budget: one that is called so says its rule, else shares add up."""
    own = next((limit for limit in limits if limit.name == MAIN_LIMIT), None)
    if own is None:
        return (Limit(MAIN_LIMIT, budget), *limits)
    if own.budget != budget:
        remedy = "one that is called 'total' is the whole budget: give it the same promise"
        raise InputError("limits", str(own.budget), f"{budget} for the limit {MAIN_LIMIT!r}", remedy)
    return tuple(limits)


def spending(account: Account) -> dict[str, Any]:
    """What has been charged of the whole budget, in all sessions: a share, and where shares are of ε and δ those."""
    limit = next(limit for limit in account.limits if limit.name == MAIN_LIMIT)
    share = 1 - account.state().balance(MAIN_LIMIT).left
    points = [[shown(share * Fraction(value)) for value in point] for point in limit.budget.points]
    place = f"dataset {account.name!r} in {account.book.name}"
    said = {"points": points} if limit.moments is None else {"rule": limit.rule, "moments": limit.moments.to_data()}
    return {"share": shown(share), **said, "ledger": place}


def recipe_of(draft: Draft) -> Recipe:
    """The noise of a draft."""
    made = draft.allocation
    return Recipe(tuple(units_of(draft.tasks)), made.choices, made.window, made.alternatives, made.spare)


def asked(draft: Draft, audience: str | None) -> str:
    """A digest of all that a plan asks and promises, and whom, but not of its noise: the same on every machine."""
    kept = [[str(Fraction(value)) for value in point] for point in draft.budget.stated]
    public = [[table.name, table.digest, repr((table.on, table.kinds, table.added))] for table in draft.public]
    said = [kept, str(Fraction(draft.budget.delta)), audience, [_asked(task) for task in draft.tasks]]
    return digest(canonical([*said, *([public] if public else [])]))


def _asked(task: Task) -> list[Any]:
    """What the engine is asked, in full, with what each vector is for, and what people read."""
    vectors = [
        [v.spend.statistic, v.spend.eighths, v.sensitivity, v.exclusive, v.block, *([True] if v.whole else [])]
        for v in task.vectors
    ]
    questions = [[question.name, question.kind, str(question)] for question in task.questions]
    return [repr(task.request), vectors, questions]


def claim_of(draft: Draft, key: str, audience: str | None) -> Claim:
    """What a release of the draft is charged by."""
    recipe = recipe_of(draft).text
    return Claim(key, digest(asked(draft, audience) + digest(recipe)), draft.budget, recipe, audience)


def named(certificate: ReleaseCertificate, entry: Entry, account: Account) -> ReleaseCertificate:
    """The certificate with the entry under which it was charged."""
    state, series = account.after(entry), entry.said["series"]
    running = None if series is None else state.series[series]
    part = LedgerEntry(
        ledger=account.book.id,
        dataset=account.name,
        key=str(entry.key),
        number=entry.number,
        hash=entry.hash,
        share=str(account.taken(entry)),
        left=str(state.balance("total").left),
        position=state.releases if running is None else running.done,
        of=None if running is None else running.times,
        limits=tuple(_left(limit, state, entry) for limit in account.limits if limit.applies(entry.said["audience"])),
    )
    return structs.replace(certificate, ledger=part.words, entry=part)


def _left(limit: Limit, state: State, entry: Entry) -> LimitLeft:
    """What was left of a limit after an entry, in the entry's period."""
    slot = limit.slot(entry.time)
    added = None if limit.moments is None else left_by_addition(state, slot)
    rule: Literal["basic", "moments"] = "basic" if limit.moments is None else "moments"
    return LimitLeft(name=slot, rule=rule, left=shown(state.balance(slot).left), left_by_addition=added)
