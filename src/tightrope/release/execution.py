"""A plan whose release is charged in a ledger: paid once under its key, and never seen before it is kept there."""

from __future__ import annotations

import datetime
import json
import math
import os
import time
import uuid
from collections.abc import Callable
from contextlib import AbstractContextManager, suppress
from dataclasses import dataclass, field, replace
from decimal import Decimal
from fractions import Fraction
from typing import TYPE_CHECKING, Any, Literal

from msgspec import structs

from tightrope.documents.document import plain
from tightrope.documents.release import RELEASES, Cost, LedgerEntry, LimitLeft, ReleaseCertificate
from tightrope.errors import BudgetRefused, InputError, LedgerError
from tightrope.ledger import Claim, Identity, Limit
from tightrope.ledger.account import FAILED_READING
from tightrope.ledger.chain import canonical, digest
from tightrope.ledger.limits import MAIN_LIMIT
from tightrope.ledger.noise_record import Recipe
from tightrope.ledger.state import left_by_addition, share_text
from tightrope.release.answers import Answer, Answers
from tightrope.release.draft import Draft, units_of
from tightrope.release.plan_register import CHARGED_FIRST, Issued, refuse_again, refuse_fork, tell

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tightrope.documents.budget import Budget
    from tightrope.ledger import Account
    from tightrope.ledger.chain import Entry
    from tightrope.ledger.state import State
    from tightrope.queries.query_group import Person, Task
    from tightrope.tables.schema import Schema

# Answers as the text that a ledger keeps, and back: a value of a key is what it was, a date a date.


def _nanoseconds(text: str) -> Any:
    import pandas

    return pandas.Timestamp(text)


READ: dict[str, Any] = {
    "nanoseconds": _nanoseconds,
    "date": datetime.date.fromisoformat,
    "datetime": datetime.datetime.fromisoformat,
    "decimal": Decimal,
    "uuid": uuid.UUID,
    "float": float,
}
"""Kinds of values that JSON has no word for, and what reads them."""


def stored_text(answers: Answers) -> str:
    """The records of every answer by its name, and the certificate."""
    kept = {one.name: [{name: _json_form(value) for name, value in row.items()} for row in one.rows] for one in answers}
    costs = [plain(cost) for cost in answers.costs]
    said = {"answers": kept, "certificate": plain(answers.certificate_data), **({"costs": costs} if costs else {})}
    return json.dumps(said, allow_nan=False)


def restored(text: str, draft: Draft) -> Answers:
    """The answers of a draft that were kept: ``stored_text`` of them was. One plan may ask in several orders."""
    data = json.loads(text)
    kept = data["answers"] if "answers" in data else _as_gathered(draft, data["rows"])
    found = [
        Answer(
            accuracy.question,
            [{name: _stored_read(v) for name, v in row.items()} for row in kept[accuracy.question.asked.name]],
            draft.answer_data(accuracy),
        )
        for accuracy in draft.accuracies()
    ]
    costs = tuple(RELEASES.data(cost, Cost) for cost in data.get("costs", ()))
    return Answers(tuple(found), RELEASES.data(data["certificate"], ReleaseCertificate), costs)


def _as_gathered(draft: Draft, rows: list[Any]) -> dict[str, Any]:
    """Of ledgers before answers were kept by name: they stand task by task."""
    names = (question.asked.name for task in draft.tasks for question in task.questions)
    return dict(zip(names, rows, strict=True))


def _json_form(value: Any) -> Any:
    """A value as JSON: what it has no word for is a table of its kind and its text."""
    if isinstance(value, float) and not math.isfinite(value):
        return {"float": repr(value)}
    if value is None or isinstance(value, bool | int | float | str):
        return value
    if getattr(value, "nanosecond", 0):  # of pandas: an instant that a datetime cannot hold
        return {"nanoseconds": value.isoformat()}
    if isinstance(value, datetime.datetime | datetime.date):
        return {"datetime" if isinstance(value, datetime.datetime) else "date": value.isoformat()}
    if isinstance(value, Decimal | uuid.UUID):
        return {type(value).__name__.lower(): str(value)}
    return str(value)


def _stored_read(value: Any) -> Any:
    if not isinstance(value, dict):
        return value
    ((kind, text),) = value.items()
    return READ[kind](text)


# What a ledger is told of a plan: who is protected, what is kept, which noise, and a digest of all that was asked.


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
    share = 1 - account.state().balance(MAIN_LIMIT).fraction_left
    points = [[share_text(share * Fraction(value)) for value in point] for point in limit.budget.points]
    place = f"dataset {account.name!r} in {account.book.name}"
    said = {"points": points} if limit.moments is None else {"rule": limit.rule, "moments": limit.moments.to_data()}
    return {"share": share_text(share), **said, "ledger": place}


def recipe_of(draft: Draft) -> Recipe:
    """The noise of a draft."""
    made = draft.allocation
    return Recipe(tuple(units_of(draft.tasks)), made.choices, made.window, made.alternatives, made.spare)


def plan_digest(draft: Draft, audience: str | None) -> str:
    """A digest of all that a plan asks and promises, and whom, but not of its noise: the same on every machine."""
    kept = [[str(Fraction(value)) for value in point] for point in draft.budget.checked_points]
    public = [[table.name, table.digest, repr((table.on, table.kinds, table.added))] for table in draft.public]
    said = [kept, str(Fraction(draft.budget.delta)), audience, [_query_group_data(task) for task in draft.tasks]]
    return digest(canonical([*said, *([public] if public else [])]))


def _query_group_data(task: Task) -> list[Any]:
    """What the engine is asked, in full, with what each vector is for, and what people read."""
    vectors = [
        [v.spend.statistic, v.spend.eighths, v.sensitivity, v.exclusive, v.block, *([True] if v.whole else [])]
        for v in task.vectors
    ]
    questions = [[question.asked.name, question.kind, str(question)] for question in task.questions]
    return [repr(task.request), vectors, questions]


def claim_of(draft: Draft, key: str, audience: str | None) -> Claim:
    """What a release of the draft is charged by."""
    recipe = recipe_of(draft).text
    return Claim(key, digest(plan_digest(draft, audience) + digest(recipe)), draft.budget, recipe, audience)


def named(certificate: ReleaseCertificate, entry: Entry, account: Account) -> ReleaseCertificate:
    """The certificate with the entry under which it was charged."""
    state, series = account.after(entry), entry.body_data["series"]
    running = None if series is None else state.series[series]
    part = LedgerEntry(
        ledger=account.book.id,
        dataset=account.name,
        key=str(entry.key),
        number=entry.number,
        hash=entry.hash,
        share=str(account.fraction_charged(entry)),
        left=str(state.balance("total").fraction_left),
        position=state.releases if running is None else running.done,
        of=None if running is None else running.times,
        limits=tuple(
            _limit_left(limit, state, entry) for limit in account.limits if limit.applies(entry.body_data["audience"])
        ),
    )
    return structs.replace(certificate, ledger=part.words, entry=part)


def _limit_left(limit: Limit, state: State, entry: Entry) -> LimitLeft:
    """What was left of a limit after an entry, in the entry's period."""
    slot = limit.slot(entry.time)
    added = None if limit.moments is None else left_by_addition(state, slot)
    rule: Literal["basic", "moments"] = "basic" if limit.moments is None else "moments"
    return LimitLeft(name=slot, rule=rule, left=share_text(state.balance(slot).fraction_left), left_by_addition=added)


WAITS, PAUSE = 120, 0.5
"""How often, and after how many seconds each, the answers of another process are looked for."""

Prepared = Callable[[], AbstractContextManager[Callable[[], "Answers"]]]


@dataclass(slots=True)
class _Life:
    """What became of a plan in this process. ``charging`` is set before the ledger is asked: a signal then waits."""

    charging: bool = False
    kept: list[Answers] = field(default_factory=list)


def recorded(
    account: Account, claim: Claim, draft: Draft, prepared: Prepared, series: str | None = None
) -> Issued[Answers]:
    """A plan that a ledger knows by its key.

    Its release charges the ledger, reads the rows, draws, keeps the answers in the ledger and only then hands them
    over. A reading that fails is charged and closes the key: whether it fails can depend on the rows. Killed after the
    charge and tried again under its key, it reads and draws once more at no cost, because the first draw was seen by
    no one; that is written down first, and a third reading is refused. Killed after the answers were kept, it finds
    them. Of two processes that try at once both hand over the answers that were kept first. Every exception says
    whether the budget was spent.
    """
    life, process = _Life(), os.getpid()

    def release() -> Answers:
        if os.getpid() != process:
            refuse_fork(process)
        if life.kept:
            refuse_again()
        try:
            # The answers that were paid and kept under the key before.
            if account.charged(claim) is None:
                stored = None
            else:
                text = account.stored(claim.key)
                stored = None if text is None else _stored_answers(text, draft, claim)
            life.kept.append(stored or _paid(account, claim, draft, prepared, life, series))
        except BudgetRefused:
            life.charging = account.charged(claim) is not None
            raise
        except BaseException as error:
            tell(error, _outcome(account, claim, life))
            raise
        return life.kept[0]

    def answers() -> Answers:
        if not life.kept:
            raise InputError("answers", None, "those of a plan that was released", "plan.release() gives them")
        return life.kept[0]

    def rehearse() -> None:
        with prepared():
            pass

    return Issued(release, answers, lambda: life.charging or bool(life.kept), rehearse)


def _stored_answers(text: str, draft: Draft, claim: Claim) -> Answers:
    """The answers that were kept; raises ``BudgetRefused`` where the ledger keeps that reading failed."""
    if text == FAILED_READING:
        raise BudgetRefused(
            f"the release under the key {claim.key!r} failed while its table was read, and its budget was spent then; "
            f"choose another key to read again, at a further cost"
        )
    return restored(text, draft)


def _paid(account: Account, claim: Claim, draft: Draft, prepared: Prepared, life: _Life, series: str | None) -> Answers:
    account.check(claim, series)
    with prepared() as work:
        life.charging = True
        entry, may_read = account.begin_reading(claim, series)
        if not may_read:
            return _of_another(account, claim, draft)
        try:
            drawn = work()
        except Exception:
            with suppress(LedgerError):  # where it cannot be kept, one more reading is left, which is counted, too
                account.answer(claim.key, FAILED_READING)
            raise
        own = replace(drawn, certificate_data=named(drawn.certificate_data, entry, account))
        text = stored_text(own)
        first = account.answer(claim.key, text)
    return own if first == text else _stored_answers(first, draft, claim)


def _of_another(account: Account, claim: Claim, draft: Draft) -> Answers:
    """The answers of another process that reads under the same key, once it keeps them.

    Raises ``BudgetRefused`` where none come: both readings that the charge paid for were killed.
    """
    for _ in range(WAITS):
        text = account.stored(claim.key)
        if text is not None:
            return _stored_answers(text, draft, claim)
        time.sleep(PAUSE)
    raise BudgetRefused(
        f"the release under the key {claim.key!r} was charged, and both readings of the table that a charge pays for "
        f"were started and have no answers; if another process is still reading, try again later; else choose another "
        f"key to read again, at a further cost"
    )


def _outcome(account: Account, claim: Claim, life: _Life) -> str:
    """In words, whether the ledger was charged: it is asked, for an interrupt may have come at any moment."""
    again = f"release it again under the key {claim.key!r}, which is charged once"
    try:
        entry = account.charged(claim)
    except InputError:
        return "nothing was spent"
    except LedgerError:
        return f"it is not known whether the budget was spent: {again}"
    life.charging = entry is not None
    if entry is None:
        return "nothing was spent"
    if life.kept:
        return "the budget was spent, and plan.answers has the answers"
    return f"the budget was spent, {_published(account, claim.key, again)}"


def _published(account: Account, key: str, again: str) -> str:
    """What became of paid answers that this process does not have."""
    try:
        text, more = account.stored(key), account.may_read(key)
    except LedgerError:
        return (
            f"and the answers that were kept under the key {key!r} are damaged: put the newest copy of the ledger "
            f"back; trying again does not help, and another key is charged again"
        )
    if text is None and more:
        return f"and nothing was published: {again}, and reads once more at no cost"
    if text is None or text == FAILED_READING:
        return f"and nothing was published: {CHARGED_FIRST}; choose another key to read again, at a further cost"
    return f"and the answers are in the ledger: {again}"
