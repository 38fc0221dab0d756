"""What a ledger is told of a plan: who is protected, what is kept, which noise, and a digest of all that was asked."""

from __future__ import annotations

from fractions import Fraction
from typing import TYPE_CHECKING, Any

from msgspec import structs

from tightrope.certificates.release import LedgerEntry
from tightrope.ledger import Claim, Identity
from tightrope.ledger.recipe import Recipe
from tightrope.ledger.shares import shown
from tightrope.ledger.storage.entry import canonical, digest
from tightrope.release.draft import units_of

if TYPE_CHECKING:
    from tightrope.certificates.release import ReleaseCertificate
    from tightrope.engines.schema import Schema
    from tightrope.ledger import Account
    from tightrope.ledger.storage.entry import Entry
    from tightrope.release.draft import Draft
    from tightrope.release.questions.tasks import Person, Task


def identity_of(dataset: str, schema: Schema, person: Person) -> Identity:
    """A dataset as a ledger knows it."""
    columns = tuple((column.name, column.kind) for column in schema.columns)
    return Identity(dataset, columns, person.column, person.means, person.rows, person.rows_per_group, person.groups)


def recipe_of(draft: Draft) -> Recipe:
    """The noise of a draft."""
    made = draft.allocation
    return Recipe(tuple(units_of(draft.tasks)), made.choices, made.window, made.alternatives, made.spare)


def asked(draft: Draft, audience: str | None) -> str:
    """A digest of all that a plan asks and promises, and whom, but not of its noise: the same on every machine."""
    kept = [[str(Fraction(value)) for value in point] for point in draft.budget.stated]
    public = [[table.name, table.digest] for table in draft.public]
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
    )
    return structs.replace(certificate, ledger=part.words, entry=part)


def recorded_spending(account: Account) -> dict[str, Any]:
    """What all sessions of a dataset spent: the share of the budget, and what ε and δ that is."""
    state = account.state()
    share = 1 - state.balance("total").left
    points = [[shown(share * Fraction(value)) for value in point] for point in account.limits[0].budget.points]
    return {"share": shown(share), "points": points, "ledger": f"dataset {account.name!r} in {account.book.name}"}
