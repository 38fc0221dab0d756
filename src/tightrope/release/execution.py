"""Release of a plan that is charged in a ledger: once per key, and stored there before it is returned."""

from __future__ import annotations

import datetime
import json
import math
import os
import time
import uuid
from collections.abc import Callable
from contextlib import AbstractContextManager, suppress
from dataclasses import dataclass, field, fields, is_dataclass, replace
from decimal import Decimal
from fractions import Fraction
from typing import TYPE_CHECKING, Any, Literal

from msgspec import structs

from tightrope.documents.document import plain_data
from tightrope.documents.release import RELEASES, BiasPart, LedgerEntry, LimitLeft, ReleaseCertificate
from tightrope.errors import InputError, InsufficientBudgetError, LedgerError
from tightrope.ledger import Claim, Identity, Limit
from tightrope.ledger.account import FAILED_READING
from tightrope.ledger.chain import canonical_json, combined_digest, sha256_hex
from tightrope.ledger.limits import MAIN_LIMIT
from tightrope.ledger.noise_record import NoiseRecord
from tightrope.ledger.state import left_by_addition, share_text
from tightrope.release.answers import Answer, Answers
from tightrope.release.draft import NoisePlan, composition_groups_of
from tightrope.release.plan_register import (
    CHARGED_FIRST,
    ReleaseHandle,
    annotate_error,
    refuse_fork,
    refuse_second_release,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tightrope.documents.budget import Budget
    from tightrope.ledger import Account
    from tightrope.ledger.chain import Entry
    from tightrope.queries.query_group import PrivacyUnit
    from tightrope.tables.schema import Schema

# Conversion of answers to the text stored in a ledger and back; key values keep their types, such as dates.


def _pandas_timestamp(text: str) -> Any:
    import pandas

    return pandas.Timestamp(text)


READ: dict[str, Any] = {
    "nanoseconds": _pandas_timestamp,
    "date": datetime.date.fromisoformat,
    "datetime": datetime.datetime.fromisoformat,
    "decimal": Decimal,
    "uuid": uuid.UUID,
    "float": float,
}
"""Parsers for the kinds of values that JSON cannot represent."""


def stored_text(answers: Answers) -> str:
    """Return the records of every answer by its name, and the certificate, as JSON text."""
    kept = {one.name: [{name: _json_form(value) for name, value in row.items()} for row in one.rows] for one in answers}
    costs = [plain_data(cost) for cost in answers.bias]
    said = {"answers": kept, "certificate": plain_data(answers.certificate_data), **({"costs": costs} if costs else {})}
    return json.dumps(said, allow_nan=False)


def restore_answers(text: str, draft: NoisePlan) -> Answers:
    """Return the answers of a draft from their ``stored_text``; the questions may be in another order."""
    data = json.loads(text)
    if "answers" in data:
        kept = data["answers"]
    else:  # old ledgers stored the records by task
        names = (question.asked.name for task in draft.tasks for question in task.ordered_queries)
        kept = dict(zip(names, data["rows"], strict=True))
    found = [
        Answer(
            accuracy.question,
            [{name: _stored_value(v) for name, v in row.items()} for row in kept[accuracy.question.asked.name]],
            draft.answer_data(accuracy),
        )
        for accuracy in draft.accuracies()
    ]
    costs = tuple(RELEASES.convert_data(cost, BiasPart) for cost in data.get("costs", ()))
    return Answers(tuple(found), RELEASES.convert_data(data["certificate"], ReleaseCertificate), costs)


def _json_form(value: Any) -> Any:
    """Return a value as JSON: kinds that JSON lacks become an object of the kind and the text."""
    if isinstance(value, float) and not math.isfinite(value):
        return {"float": repr(value)}
    if value is None or isinstance(value, bool | int | float | str):
        return value
    if getattr(value, "nanosecond", 0):  # a pandas timestamp too fine for datetime
        return {"nanoseconds": value.isoformat()}
    if isinstance(value, datetime.datetime | datetime.date):
        return {"datetime" if isinstance(value, datetime.datetime) else "date": value.isoformat()}
    if isinstance(value, Decimal | uuid.UUID):
        return {type(value).__name__.lower(): str(value)}
    return str(value)


def _stored_value(value: Any) -> Any:
    if not isinstance(value, dict):
        return value
    ((kind, text),) = value.items()
    return READ[kind](text)


# The record of a plan in a ledger: the privacy unit, the budget, the noise, and a digest of the questions.


def identity_of(dataset: str, schema: Schema, person: PrivacyUnit) -> Identity:
    """Return the dataset's identity in a ledger."""
    columns = tuple((column.name, column.kind) for column in schema.columns)
    return Identity(
        dataset, columns, person.column, person.means, person.rows, person.max_rows_per_group, person.groups
    )


def add_total_limit(budget: Budget, limits: Sequence[Limit]) -> tuple[Limit, ...]:
    """Return the limits including the one for the whole budget; by default its shares add up."""
    own = next((limit for limit in limits if limit.name == MAIN_LIMIT), None)
    if own is None:
        return (Limit(MAIN_LIMIT, budget), *limits)
    if own.budget != budget:
        text = f"the limit {MAIN_LIMIT!r} is the whole budget, but has {own.budget} instead of {budget}; use one budget"
        raise InputError.from_text("limits", text)
    return tuple(limits)


def spent_budget(account: Account) -> dict[str, Any]:
    """Return the part of the whole budget charged so far, in all sessions: as a share, and as ε and δ or moments."""
    limit = next(limit for limit in account.limits if limit.name == MAIN_LIMIT)
    share = 1 - account.current_state().balance_of(MAIN_LIMIT).fraction_left
    points = [[share_text(share * Fraction(value)) for value in point] for point in limit.budget.points]
    place = f"dataset {account.dataset_name!r} in {account.book.display_name}"
    said = {"points": points} if limit.moments is None else {"rule": limit.rule, "moments": limit.moments.to_data()}
    return {"budget_fraction": share_text(share), **said, "ledger": place}


def recipe_of(draft: NoisePlan) -> NoiseRecord:
    """Return the noise of a draft."""
    made = draft.allocation
    return NoiseRecord(
        tuple(composition_groups_of(draft.tasks)),
        made.selections,
        made.loss_lattice,
        made.alternatives,
        made.avoidable_noise,
    )


def plan_digest(draft: NoisePlan, audience: str | None) -> str:
    """Return a digest of a plan's questions, budget and audience, without its noise; the same on every machine."""
    kept = [[str(Fraction(value)) for value in point] for point in draft.budget.checked_points]
    public = [
        [table.name, table.content_digest, digest_text((table.key_pairs, table.key_kinds, table.added_schema))]
        for table in draft.public
    ]
    groups = []
    for task in draft.tasks:
        # The full request of the group, its vectors, and the displayed text of its questions.
        vectors = [
            [
                v.noise_spec.statistic,
                v.noise_spec.eighths,
                v.sensitivity,
                v.disjoint_set,
                v.block,
                *([True] if v.over_all_groups else []),
            ]
            for v in task.noisy_statistics
        ]
        questions = [[question.asked.name, question.kind, str(question)] for question in task.ordered_queries]
        groups.append([digest_text(task.table_request), vectors, questions])
    said = [kept, str(Fraction(draft.budget.delta)), audience, groups]
    return sha256_hex(canonical_json([*said, *([public] if public else [])]))


DIGEST_CLASSES = {"ContributionBounds": "PersonBounds", "DistinctCount": "Distinct", "ColumnRef": "Column"}
DIGEST_FIELDS = {
    "person_column": "person",
    "max_rows": "rows",
    "max_rows_per_group": "rows_per_group",
    "max_groups": "groups",
    "second_column": "beside",
    "row_count_steps": "steps",
    "center": "centre",
}
"""Names in digests of what has another name in Python: ledgers keep digests forever, so these never change."""


def digest_text(value: object) -> str:
    """Return the text of a request, or of a part of one, that digests are made of.

    >>> digest_text(("a", None))
    "('a', None)"
    """
    if isinstance(value, tuple):
        return f"({', '.join(map(digest_text, value))}{',' if len(value) == 1 else ''})"
    if not is_dataclass(value) or isinstance(value, type):
        return repr(value)
    name = DIGEST_CLASSES.get(type(value).__name__, type(value).__name__)
    shown = [one.name for one in fields(value) if one.repr]
    parts = [f"{DIGEST_FIELDS.get(field, field)}={digest_text(getattr(value, field))}" for field in shown]
    return f"{name}({', '.join(parts)})"


def claim_of(draft: NoisePlan, key: str, audience: str | None) -> Claim:
    """Return the claim with which a release of the draft is charged."""
    recipe, questions = recipe_of(draft).to_text, plan_digest(draft, audience)
    return Claim(key, combined_digest(questions, recipe), draft.budget, recipe, audience, questions)


def with_ledger_entry(certificate: ReleaseCertificate, entry: Entry, account: Account) -> ReleaseCertificate:
    """Return the certificate with the ledger entry of its charge."""
    state, series = account.state_after(entry), entry.body_data["series"]
    running = None if series is None else state.series[series]
    limits = []
    for limit in account.limits:
        if limit.applies_to(entry.body_data["audience"]):
            # The remaining part of the limit, in the entry's period.
            slot = limit.slot_at(entry.time)
            added = None if limit.moments is None else left_by_addition(state, slot)
            rule: Literal["basic", "moments"] = "basic" if limit.moments is None else "moments"
            left = share_text(state.balance_of(slot).fraction_left)
            limits.append(LimitLeft(name=slot, rule=rule, left=left, left_by_addition=added))
    part = LedgerEntry(
        ledger=account.book.id,
        dataset=account.dataset_name,
        key=str(entry.key),
        number=entry.number,
        hash=entry.hash,
        budget_fraction=str(account.fraction_charged(entry)),
        left=str(state.balance_of("total").fraction_left),
        position=state.releases if running is None else running.done,
        of=None if running is None else running.times,
        limits=tuple(limits),
    )
    return structs.replace(certificate, ledger=part.entry_text, entry=part)


WAITS, PAUSE = 120, 0.5
"""Number of polls for the answers of another process, and seconds between them."""

Prepared = Callable[[], AbstractContextManager[Callable[[], "Answers"]]]


@dataclass(slots=True)
class _ReleaseState:
    """Release state of a plan in this process. ``charging`` is set before the charge, so that signals are deferred."""

    charging: bool = False
    kept: list[Answers] = field(default_factory=list)


def ledger_release_handle(
    account: Account, claim: Claim, draft: NoisePlan, prepared: Prepared, series: str | None = None
) -> ReleaseHandle[Answers]:
    """Return the release handle of a plan that is charged in a ledger under a key.

    Its release charges the ledger, reads the rows, draws noise, stores the answers in the ledger and then returns
    them. A reading that fails is charged and closes the key: whether it fails can depend on the rows. A release that
    was killed after the charge may be repeated under its key: it reads and draws once more at no cost, because the
    first draw was never published; that is recorded first, and a third reading is refused. If the answers were stored
    before it was killed, they are returned. Two concurrent processes both return the answers that were stored first.
    Every exception states whether the budget was spent.
    """
    life, process = _ReleaseState(), os.getpid()

    def release() -> Answers:
        if os.getpid() != process:
            refuse_fork(process)
        if life.kept:
            refuse_second_release()
        try:
            # The answers that were stored under the key before.
            if account.find_charge(claim) is None:
                stored = None
            else:
                text = account.stored_answers(claim.key)
                stored = None if text is None else _stored_answers(text, draft, claim)
            life.kept.append(stored or _charge_and_draw(account, claim, draft, prepared, life, series))
        except InsufficientBudgetError:
            life.charging = account.find_charge(claim) is not None
            raise
        except BaseException as error:
            annotate_error(error, _charge_outcome(account, claim, life))
            raise
        return life.kept[0]

    def get_answers() -> Answers:
        if not life.kept:
            raise InputError.from_text("answers", "release the plan first (plan.release())")
        return life.kept[0]

    def dry_run() -> None:
        with prepared():
            pass

    return ReleaseHandle(release, get_answers, lambda: life.charging or bool(life.kept), dry_run)


def _stored_answers(text: str, draft: NoisePlan, claim: Claim) -> Answers:
    """Return the stored answers; raises ``InsufficientBudgetError`` if the stored outcome is a failed reading."""
    if text == FAILED_READING:
        raise InsufficientBudgetError(
            f"the release {claim.key!r} failed while its table was read, and its budget was spent then; choose another "
            f"key to read again, which is charged again"
        )
    return restore_answers(text, draft)


def _charge_and_draw(
    account: Account, claim: Claim, draft: NoisePlan, prepared: Prepared, life: _ReleaseState, series: str | None
) -> Answers:
    account.check_charge(claim, series)
    with prepared() as work:
        life.charging = True
        entry, may_read = account.begin_reading(claim, series)
        if not may_read:
            return _await_other_process(account, claim, draft)
        try:
            drawn = work()
        except Exception:
            with suppress(LedgerError):  # if it cannot be stored, one more counted reading remains
                account.store_answers(claim.key, FAILED_READING)
            raise
        own = replace(drawn, certificate_data=with_ledger_entry(drawn.certificate_data, entry, account))
        text = stored_text(own)
        first = account.store_answers(claim.key, text)
    return own if first == text else _stored_answers(first, draft, claim)


def _await_other_process(account: Account, claim: Claim, draft: NoisePlan) -> Answers:
    """Wait for the answers of another process that reads under the same key.

    Raises ``InsufficientBudgetError`` on timeout: both readings that the charge paid for were killed.
    """
    for _ in range(WAITS):
        text = account.stored_answers(claim.key)
        if text is not None:
            return _stored_answers(text, draft, claim)
        time.sleep(PAUSE)
    raise InsufficientBudgetError(
        f"the release {claim.key!r} was charged, and both readings of the table that a charge includes were started "
        f"without answers; if another process is still reading, try again later; else choose another key to read "
        f"again, which is charged again"
    )


def _charge_outcome(account: Account, claim: Claim, life: _ReleaseState) -> str:
    """Return a sentence on whether the ledger was charged; it is queried, as an interrupt can occur at any time."""
    again = f"release it again under the key {claim.key!r}, which is charged once"
    try:
        entry = account.find_charge(claim)
    except InputError:
        return "nothing was spent"
    except LedgerError:
        return f"it is not known whether the budget was spent: {again}"
    life.charging = entry is not None
    if entry is None:
        return "nothing was spent"
    if life.kept:
        return "the budget was spent, and plan.answers has the answers"
    return f"the budget was spent, {_publication_outcome(account, claim.key, again)}"


def _publication_outcome(account: Account, key: str, again: str) -> str:
    """Return a sentence on the state of charged answers that this process does not have."""
    try:
        text, more = account.stored_answers(key), account.may_read(key)
    except LedgerError:
        return (
            f"and the answers stored under the key {key!r} are damaged: put the newest copy of the ledger back; trying "
            f"again does not help, and another key is charged again"
        )
    if text is None and more:
        return f"and nothing was published: {again}, and reads once more at no cost"
    if text is None or text == FAILED_READING:
        return f"and nothing was published: {CHARGED_FIRST}; choose another key to read again, which is charged again"
    return f"and the answers are in the ledger: {again}"
