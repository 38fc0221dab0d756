"""Release of plans that are charged in a ledger: once per key, with answers stored there before they are returned."""

from __future__ import annotations

import datetime
import json
import math
import os
import time
import uuid
from collections.abc import Callable
from contextlib import suppress
from dataclasses import fields, is_dataclass, replace
from decimal import Decimal
from fractions import Fraction
from typing import TYPE_CHECKING, Any, Literal, final

from msgspec import structs

from tightrope.documents.document import plain_data
from tightrope.documents.release import RELEASES, BiasPart, LedgerEntry, LimitLeft, ReleaseCertificate
from tightrope.errors import InputError, InsufficientBudgetError, LedgerError
from tightrope.ledger import Claim, Identity, Limit
from tightrope.ledger.account import FAILED_READING
from tightrope.ledger.chain import canonical_json, combined_digest, sha256_hex
from tightrope.ledger.limits import MAIN_LIMIT
from tightrope.ledger.noise_record import NoiseRecord
from tightrope.ledger.state import fraction_text, left_by_addition
from tightrope.release.accounts import CHARGED_FIRST, SingleUseObject, refuse_forked_process
from tightrope.release.answers import Answer, Answers
from tightrope.release.draft import NoisePlan, composition_groups_of
from tightrope.tables.expressions.expression import resolve_term, term_columns

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tightrope.documents.budget import Budget
    from tightrope.documents.privacy_unit import PrivacyUnit
    from tightrope.ledger import Account
    from tightrope.ledger.chain import Entry
    from tightrope.queries.accuracy import Accuracy
    from tightrope.tables import Table


PARSER_BY_KIND: dict[str, Any] = {
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
        answer.question.asked.name: [
            {name: to_stored_form(value) for name, value in row.items()} for row in answer.rows
        ]
        for answer in answers
    }
    integers_by_answer = {
        answer.question.asked.name: [list(integers.values()) for integers in answer.integers]
        for answer in answers
        if answer.integers is not None
    }
    bias = [plain_data(part) for part in answers.bias]
    data = {
        "answers": records_by_answer,
        "integers": integers_by_answer,
        "certificate": plain_data(answers.certificate_data),
        **({"costs": bias} if bias else {}),
        **({"measured": answers.measured} if answers.measured else {}),
    }
    return json.dumps(data, allow_nan=False)


def restore_answers(text: str, draft: NoisePlan) -> Answers:
    """Return the answers of a draft from their ``stored_text``; the questions may be in another order."""
    data = json.loads(text)
    if "answers" in data:
        records_by_answer = data["answers"]
    else:  # old ledgers stored the records by query group
        names = (question.asked.name for query_group in draft.query_groups for question in query_group.ordered_queries)
        records_by_answer = dict(zip(names, data["rows"], strict=True))
    answers = [
        Answer(
            rows=[
                {name: from_stored_form(v) for name, v in row.items()}
                for row in records_by_answer[accuracy.question.asked.name]
            ],
            about=draft.answer_data(accuracy),
            question=accuracy.question,
            grid_width=accuracy.question.asked.round_to,
            noises=accuracy.noises_by_name,
            integers=_stored_integers(data, accuracy),
        )
        for accuracy in draft.query_accuracies
    ]
    bias = tuple(RELEASES.convert_data(part, BiasPart) for part in data.get("costs", ()))
    certificate = RELEASES.convert_data(data["certificate"], ReleaseCertificate)
    measured = tuple(map(tuple, data.get("measured", ())))
    return Answers(tuple(answers), certificate, bias, draft.comparisons, measured)


def _stored_integers(data: dict[str, Any], accuracy: Accuracy) -> tuple[dict[str, int], ...] | None:
    """Return the noisy integers of each record by statistic; None if they were not stored."""
    rows = data.get("integers", {}).get(accuracy.question.asked.name)
    names = tuple(accuracy.noises_by_name)
    return None if rows is None else tuple(dict(zip(names, row, strict=True)) for row in rows)


def to_stored_form(value: Any) -> Any:
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


def from_stored_form(value: Any) -> Any:
    """Return the value of a ``to_stored_form``."""
    if not isinstance(value, dict):
        return value
    ((kind, text),) = value.items()
    if kind == "nanoseconds":
        import pandas

        return pandas.Timestamp(text)
    return PARSER_BY_KIND[kind](text)


# The record of a plan in a ledger: the privacy unit, the budget, the noise, and a digest of the questions.


def dataset_identity(dataset: str, table: Table, privacy_unit: PrivacyUnit) -> Identity:
    """Return the dataset's identity in a ledger, from the private table's own columns."""
    schema, unit = table.private_schema, privacy_unit.column
    columns = tuple((column.name, column.kind) for column in schema.columns)
    # A text that is a column's name is that column, also if it reads like an expression.
    unit_term = unit if unit is None or unit in schema.column_names else resolve_term(unit, schema)
    return Identity(dataset, columns, privacy_unit, table.untyped_columns, term_columns(unit_term))


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
    points = [[fraction_text(share * Fraction(value)) for value in point] for point in limit.budget.points]
    ledger_name = f"dataset {account.dataset_name!r} in {account.book.display_name}"
    spent = {"points": points} if limit.moments is None else {"rule": limit.rule, "moments": limit.moments.to_data()}
    return {"budget_fraction": fraction_text(share), **spent, "ledger": ledger_name}


def noise_record_of(draft: NoisePlan) -> NoiseRecord:
    """Return the record of a draft's noise for the ledger."""
    allocation = draft.allocation
    return NoiseRecord(
        tuple(composition_groups_of(draft.query_groups)),
        allocation.selections,
        allocation.loss_lattice,
        allocation.alternatives,
        allocation.avoidable_noise,
        allocation.bounds_splits,
        draft.planning_rule,
    )


def plan_digest(draft: NoisePlan, audience: str | None) -> str:
    """Return a digest of a plan's questions, budget and audience, without its noise; the same on every machine."""
    budget_points = [[str(Fraction(value)) for value in point] for point in draft.budget.checked_points]
    public_tables = [
        [table.name, table.content_digest, digest_text((table.key_pairs, table.key_kinds, table.added_schema))]
        for table in draft.public
    ]
    groups = []
    for query_group in draft.query_groups:
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
            for v in query_group.noisy_statistics
        ]
        questions = [[question.asked.name, question.kind, str(question)] for question in query_group.ordered_queries]
        measured = [query_group.measured_text] if query_group.is_marginal else []
        groups.append([digest_text(query_group.table_request), vectors, questions, *measured])
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


def charged_budget_ratio(draft: NoisePlan) -> Fraction | None:
    """Return the fraction of the whole budget that a release is charged if it is not a decimal, else None."""
    return None if draft.charge == draft.share else draft.charge


def release_claim(draft: NoisePlan, key: str, audience: str | None) -> Claim:
    """Return the claim with which a release of the draft is charged."""
    noise_text, questions_digest = noise_record_of(draft).to_text, plan_digest(draft, audience)
    return Claim(
        key,
        combined_digest(questions_digest, noise_text),
        draft.budget,
        noise_text,
        audience,
        questions_digest,
        charged_budget_ratio(draft),
    )


UNUSED_KEY = "any"
"""The key of a claim of which only the digest of its plan is used."""


def draft_under_key(account: Account, draft: NoisePlan, key: str, audience: str | None) -> NoisePlan:
    """Return the draft, or the same questions by a planning rule before if the key was charged for that."""
    if draft.plan_by_previous_rule is None:
        return draft
    for planned in draft.drafts_by_rule():
        try:
            account.find_charge(release_claim(planned, key, audience))
        except InputError:
            continue
        return planned
    return draft


def unanswered_draft(account: Account, draft: NoisePlan, audience: str | None) -> tuple[NoisePlan, str | None]:
    """Return the key of an equal release that was charged but never answered, or None, and its draft.

    If there is none, the planning rules before are tried, too.
    """
    for planned in draft.drafts_by_rule() if account.unanswered_charges else ():
        key = account.unanswered_key(release_claim(planned, UNUSED_KEY, audience).plan)
        if key is not None:
            return planned, key
    return draft, None


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
            left = fraction_text(state.balance_of(slot).fraction_left)
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


@final
class LedgerAccount(SingleUseObject):
    """A dataset's account in a ledger, to which one plan is charged under a key, once in all processes.

    A release charges the ledger, reads the rows, draws noise, stores the answers in the ledger and then returns
    them. A reading that fails is charged and closes the key: whether it fails can depend on the rows. A release that
    was killed after the charge may be repeated under its key: it reads and draws once more at no cost, because the
    first draw was never published; that is recorded first, and a third reading is refused. If the answers were stored
    before it was killed, they are returned. Two concurrent processes both return the answers that were stored first.
    """

    __slots__ = ("_account", "_charging", "_draft", "_process", "_series", "claim")
    _account: Account
    _charging: bool
    """True from just before the charge, so that signals are deferred; then whether the ledger has the charge."""
    _draft: NoisePlan
    _process: int
    _series: str | None
    claim: Claim

    def __init__(self, account: Account, claim: Claim, draft: NoisePlan, series: str | None = None) -> None:
        self._set_parts(_account=account, claim=claim, _draft=draft, _series=series)
        self._set_parts(_charging=False, _process=os.getpid())

    @property
    def draft(self) -> NoisePlan:
        """The draft that is charged."""
        return self._draft

    def unanswered_release(self) -> LedgerAccount | None:
        """Return the account of an equal release that was charged but never answered; None without one."""
        draft, key = unanswered_draft(self._account, self._draft, self.claim.audience)
        if key is None:
            return None
        return LedgerAccount(self._account, release_claim(draft, key, self.claim.audience), draft, self._series)

    def refuse_fork(self) -> None:
        """Raise ``InsufficientBudgetError`` in a forked copy of the process that made the plan."""
        refuse_forked_process(self._process)

    def find_answers(self) -> Answers | None:
        """Return the answers stored under the key; None without them. Raises if the stored outcome is a failure."""
        if self._account.find_charge(self.claim) is None:
            return None
        text = self._account.stored_answers(self.claim.key)
        return None if text is None else self._restored_answers(text)

    def check_charge(self) -> None:
        """Raise ``InsufficientBudgetError``, also recorded, if the release cannot be charged now."""
        self._account.check_charge(self.claim, self._series)

    def charge_and_read(self, read_and_draw: Callable[[], Answers]) -> Answers:
        """Charge the ledger, then read the rows; return the answers that were stored first under the key."""
        account, claim = self._account, self.claim
        self._set_parts(_charging=True)
        entry, may_read = account.begin_reading(claim, self._series)
        if not may_read:
            return self._await_other_process()
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
        return own_answers if stored_first == own_text else self._restored_answers(stored_first)

    def was_charged(self) -> bool:
        """Return whether the ledger was charged by this plan, or is being charged."""
        return self._charging

    def outcome_text(self, *, has_answers: bool) -> str:
        """Return a clause on whether the ledger was charged; reads the ledger, as an interrupt can occur at any time.

        Charged answers that this process does not have are published, repeatable, or lost.
        """
        account, key = self._account, self.claim.key
        advice = f"release it again under the key {key!r}, which is charged once"
        try:
            entry = account.find_charge(self.claim)
        except InputError:
            return "nothing was spent"
        except LedgerError:
            return f"it is not known whether the budget was spent: {advice}"
        if entry is None:
            self._set_parts(_charging=False)
            return "nothing was spent"
        self._set_parts(_charging=True)
        if has_answers:
            return "the budget was spent, and plan.answers has the answers"
        try:
            text, may_read_again = account.stored_answers(key), account.may_read(key)
        except LedgerError:
            outcome = (
                f"and the answers stored under the key {key!r} are damaged: put the newest copy of the ledger back; "
                f"trying again does not help, and another key is charged again"
            )
        else:
            if text is None and may_read_again:
                outcome = f"and nothing was published: {advice}, and reads once more at no cost"
            elif text is None or text == FAILED_READING:
                outcome = (
                    f"and nothing was published: {CHARGED_FIRST}; choose another key to read again, which is charged "
                    f"again"
                )
            else:
                outcome = f"and the answers are in the ledger: {advice}"
        return f"the budget was spent, {outcome}"

    def _restored_answers(self, text: str) -> Answers:
        """Return the stored answers; raises ``InsufficientBudgetError`` if the stored outcome is a failed reading."""
        if text == FAILED_READING:
            raise InsufficientBudgetError(
                f"the release {self.claim.key!r} failed while its table was read, and its budget was spent then; "
                f"choose another key to read again, which is charged again"
            )
        return restore_answers(text, self._draft)

    def _await_other_process(self) -> Answers:
        """Return the answers of another process that reads under the same key, when they are stored.

        Raises ``InsufficientBudgetError`` on timeout: both readings that the charge paid for were killed.
        """
        for _ in range(MAX_POLLS):
            text = self._account.stored_answers(self.claim.key)
            if text is not None:
                return self._restored_answers(text)
            time.sleep(POLL_SECONDS)
        raise InsufficientBudgetError(
            f"the release {self.claim.key!r} was charged, and both readings of the table that a charge includes were "
            f"started without answers; if another process is still reading, try again later; else choose another key "
            f"to read again, which is charged again"
        )
