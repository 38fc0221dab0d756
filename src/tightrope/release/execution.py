"""Release of plans that are charged in a ledger: once per key, with answers stored there before they are returned."""

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


def _pandas_timestamp(text: str) -> Any:
    import pandas

    return pandas.Timestamp(text)


PARSER_BY_KIND: dict[str, Any] = {
    "nanoseconds": _pandas_timestamp,
    "date": datetime.date.fromisoformat,
    "datetime": datetime.datetime.fromisoformat,
    "decimal": Decimal,
    "uuid": uuid.UUID,
    "float": float,
}
"""Functions that parse the text of values that JSON cannot represent, by their kind."""


def stored_text(answers: Answers) -> str:
    """Return the records of every answer by its name, and the certificate, as JSON text; keys keep their types."""
    records_by_answer = {
        answer.name: [{name: _json_form(value) for name, value in row.items()} for row in answer.rows]
        for answer in answers
    }
    bias = [plain_data(part) for part in answers.bias]
    data = {
        "answers": records_by_answer,
        "certificate": plain_data(answers.certificate_data),
        **({"costs": bias} if bias else {}),
    }
    return json.dumps(data, allow_nan=False)


def restore_answers(text: str, draft: NoisePlan) -> Answers:
    """Return the answers of a draft from their ``stored_text``; the questions may be in another order."""
    data = json.loads(text)
    if "answers" in data:
        records_by_answer = data["answers"]
    else:  # old ledgers stored the records by task
        names = (question.asked.name for task in draft.tasks for question in task.ordered_queries)
        records_by_answer = dict(zip(names, data["rows"], strict=True))
    answers = [
        Answer(
            accuracy.question,
            [
                {name: _stored_value(v) for name, v in row.items()}
                for row in records_by_answer[accuracy.question.asked.name]
            ],
            draft.answer_data(accuracy),
        )
        for accuracy in draft.accuracies()
    ]
    bias = tuple(RELEASES.convert_data(part, BiasPart) for part in data.get("costs", ()))
    return Answers(tuple(answers), RELEASES.convert_data(data["certificate"], ReleaseCertificate), bias)


def _json_form(value: Any) -> Any:
    """Return a value for JSON; a kind that JSON lacks becomes an object with the kind as key and the text as value."""
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
    return PARSER_BY_KIND[kind](text)


# The record of a plan in a ledger: the privacy unit, the budget, the noise, and a digest of the questions.


def identity_of(dataset: str, schema: Schema, person: PrivacyUnit) -> Identity:
    """Return the dataset's identity in a ledger."""
    columns = tuple((column.name, column.kind) for column in schema.columns)
    return Identity(
        dataset, columns, person.column, person.means, person.rows, person.max_rows_per_group, person.groups
    )


def add_total_limit(budget: Budget, limits: Sequence[Limit]) -> tuple[Limit, ...]:
    """Return the limits, including the one for the whole budget; if it is not given, its rule is basic composition."""
    total_limit = next((limit for limit in limits if limit.name == MAIN_LIMIT), None)
    if total_limit is None:
        return (Limit(MAIN_LIMIT, budget), *limits)
    if total_limit.budget != budget:
        text = (
            f"the limit {MAIN_LIMIT!r} is the whole budget, but has {total_limit.budget} instead of {budget}; use one "
            f"budget"
        )
        raise InputError.from_text("limits", text)
    return tuple(limits)


def spent_budget(account: Account) -> dict[str, Any]:
    """Return what all sessions together spent so far: the fraction of the whole budget, and its ε and δ or moments."""
    limit = next(limit for limit in account.limits if limit.name == MAIN_LIMIT)
    share = 1 - account.current_state().balance_of(MAIN_LIMIT).fraction_left
    points = [[share_text(share * Fraction(value)) for value in point] for point in limit.budget.points]
    ledger_name = f"dataset {account.dataset_name!r} in {account.book.display_name}"
    spent = {"points": points} if limit.moments is None else {"rule": limit.rule, "moments": limit.moments.to_data()}
    return {"budget_fraction": share_text(share), **spent, "ledger": ledger_name}


def recipe_of(draft: NoisePlan) -> NoiseRecord:
    """Return the record of a draft's noise for the ledger."""
    allocation = draft.allocation
    return NoiseRecord(
        tuple(composition_groups_of(draft.tasks)),
        allocation.selections,
        allocation.loss_lattice,
        allocation.alternatives,
        allocation.avoidable_noise,
    )


def plan_digest(draft: NoisePlan, audience: str | None) -> str:
    """Return a digest of a plan's questions, budget and audience, without its noise; the same on every machine."""
    budget_points = [[str(Fraction(value)) for value in point] for point in draft.budget.checked_points]
    public_tables = [
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
    content = [budget_points, str(Fraction(draft.budget.delta)), audience, groups]
    return sha256_hex(canonical_json([*content, *([public_tables] if public_tables else [])]))


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
"""The names that digests use for classes and fields renamed since: ledgers keep digests forever, so these stay."""


def digest_text(value: object) -> str:
    """Return the text of a request, or of a part of one, from which a digest is computed.

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


def ratio_of(draft: NoisePlan) -> Fraction | None:
    """Return the fraction of the whole budget that a release is charged if it is not a decimal, else None."""
    return None if draft.charge == draft.share else draft.charge


def claim_of(draft: NoisePlan, key: str, audience: str | None) -> Claim:
    """Return the claim with which a release of the draft is charged."""
    noise_text, questions_digest = recipe_of(draft).to_text, plan_digest(draft, audience)
    return Claim(
        key,
        combined_digest(questions_digest, noise_text),
        draft.budget,
        noise_text,
        audience,
        questions_digest,
        ratio_of(draft),
    )


def with_ledger_entry(certificate: ReleaseCertificate, entry: Entry, account: Account) -> ReleaseCertificate:
    """Return the certificate with the ledger entry of its charge."""
    state, series = account.state_after(entry), entry.body_data["series"]
    series_state = None if series is None else state.series[series]
    limits = []
    for limit in account.limits:
        if limit.applies_to(entry.body_data["audience"]):
            # The remaining part of the limit, in the entry's period.
            slot = limit.slot_at(entry.time)
            left_by_adding = None if limit.moments is None else left_by_addition(state, slot)
            rule: Literal["basic", "moments"] = "basic" if limit.moments is None else "moments"
            left = share_text(state.balance_of(slot).fraction_left)
            limits.append(LimitLeft(name=slot, rule=rule, left=left, left_by_addition=left_by_adding))
    part = LedgerEntry(
        ledger=account.book.id,
        dataset=account.dataset_name,
        key=str(entry.key),
        number=entry.number,
        hash=entry.hash,
        budget_fraction=str(account.fraction_charged(entry)),
        left=str(state.balance_of("total").fraction_left),
        position=state.releases if series_state is None else series_state.done,
        of=None if series_state is None else series_state.times,
        limits=tuple(limits),
    )
    return structs.replace(certificate, ledger=part.entry_text, entry=part)


MAX_POLLS, POLL_SECONDS = 120, 0.5
"""Number of polls for the answers of another process, and seconds between them."""

PrepareRelease = Callable[[], AbstractContextManager[Callable[[], "Answers"]]]


@dataclass(slots=True)
class _ReleaseState:
    """Release state of a plan in this process; ``charging`` is set before the charge, so that signals are deferred."""

    charging: bool = False
    released_answers: list[Answers] = field(default_factory=list)


def ledger_release_handle(
    account: Account, claim: Claim, draft: NoisePlan, prepared: PrepareRelease, series: str | None = None
) -> ReleaseHandle[Answers]:
    """Return the release handle of a plan that is charged in a ledger under a key.

    Its release charges the ledger, reads the rows, draws noise, stores the answers in the ledger and then returns
    them. A reading that fails is charged and closes the key: whether it fails can depend on the rows. A release that
    was killed after the charge may be repeated under its key: it reads and draws once more at no cost, because the
    first draw was never published; that is recorded first, and a third reading is refused. If the answers were stored
    before it was killed, they are returned. Two concurrent processes both return the answers that were stored first.
    Every exception states whether the budget was spent.
    """
    state, process = _ReleaseState(), os.getpid()

    def release() -> Answers:
        if os.getpid() != process:
            refuse_fork(process)
        if state.released_answers:
            refuse_second_release()
        try:
            # The answers that were stored under the key before.
            if account.find_charge(claim) is None:
                stored = None
            else:
                text = account.stored_answers(claim.key)
                stored = None if text is None else _stored_answers(text, draft, claim)
            state.released_answers.append(stored or _charge_and_draw(account, claim, draft, prepared, state, series))
        except InsufficientBudgetError:
            state.charging = account.find_charge(claim) is not None
            raise
        except BaseException as error:
            annotate_error(error, _charge_outcome(account, claim, state))
            raise
        return state.released_answers[0]

    def get_answers() -> Answers:
        if not state.released_answers:
            raise InputError.from_text("answers", "release the plan first (plan.release())")
        return state.released_answers[0]

    def dry_run() -> None:
        with prepared():
            pass

    return ReleaseHandle(release, get_answers, lambda: state.charging or bool(state.released_answers), dry_run)


def _stored_answers(text: str, draft: NoisePlan, claim: Claim) -> Answers:
    """Return the stored answers; raises ``InsufficientBudgetError`` if the stored outcome is a failed reading."""
    if text == FAILED_READING:
        raise InsufficientBudgetError(
            f"the release {claim.key!r} failed while its table was read, and its budget was spent then; choose another "
            f"key to read again, which is charged again"
        )
    return restore_answers(text, draft)


def _charge_and_draw(
    account: Account, claim: Claim, draft: NoisePlan, prepared: PrepareRelease, state: _ReleaseState, series: str | None
) -> Answers:
    account.check_charge(claim, series)
    with prepared() as read_and_draw:
        state.charging = True
        entry, may_read = account.begin_reading(claim, series)
        if not may_read:
            return _await_other_process(account, claim, draft)
        try:
            drawn_answers = read_and_draw()
        except Exception:
            with suppress(LedgerError):  # if it cannot be stored, one more counted reading remains
                account.store_answers(claim.key, FAILED_READING)
            raise
        own_answers = replace(
            drawn_answers, certificate_data=with_ledger_entry(drawn_answers.certificate_data, entry, account)
        )
        own_text = stored_text(own_answers)
        stored_first = account.store_answers(claim.key, own_text)
    return own_answers if stored_first == own_text else _stored_answers(stored_first, draft, claim)


def _await_other_process(account: Account, claim: Claim, draft: NoisePlan) -> Answers:
    """Return the answers of another process that reads under the same key, when they are stored.

    Raises ``InsufficientBudgetError`` on timeout: both readings that the charge paid for were killed.
    """
    for _ in range(MAX_POLLS):
        text = account.stored_answers(claim.key)
        if text is not None:
            return _stored_answers(text, draft, claim)
        time.sleep(POLL_SECONDS)
    raise InsufficientBudgetError(
        f"the release {claim.key!r} was charged, and both readings of the table that a charge includes were started "
        f"without answers; if another process is still reading, try again later; else choose another key to read "
        f"again, which is charged again"
    )


def _charge_outcome(account: Account, claim: Claim, state: _ReleaseState) -> str:
    """Return a clause on whether the ledger was charged; reads the ledger, as an interrupt can occur at any time."""
    advice = f"release it again under the key {claim.key!r}, which is charged once"
    try:
        entry = account.find_charge(claim)
    except InputError:
        return "nothing was spent"
    except LedgerError:
        return f"it is not known whether the budget was spent: {advice}"
    state.charging = entry is not None
    if entry is None:
        return "nothing was spent"
    if state.released_answers:
        return "the budget was spent, and plan.answers has the answers"
    return f"the budget was spent, {_publication_outcome(account, claim.key, advice)}"


def _publication_outcome(account: Account, key: str, advice: str) -> str:
    """Return a clause on charged answers that this process does not have: published, repeatable, or lost."""
    try:
        text, may_read_again = account.stored_answers(key), account.may_read(key)
    except LedgerError:
        return (
            f"and the answers stored under the key {key!r} are damaged: put the newest copy of the ledger back; trying "
            f"again does not help, and another key is charged again"
        )
    if text is None and may_read_again:
        return f"and nothing was published: {advice}, and reads once more at no cost"
    if text is None or text == FAILED_READING:
        return f"and nothing was published: {CHARGED_FIRST}; choose another key to read again, which is charged again"
    return f"and the answers are in the ledger: {advice}"
