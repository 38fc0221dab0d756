"""A ledger and the accounts of its datasets: declare a dataset, reserve a series, charge a release, store answers."""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable, Sequence
from dataclasses import replace
from fractions import Fraction
from typing import Any

from sqlalchemy import Connection

from tightrope.errors import InputError, InsufficientBudgetError, LedgerError, LedgerWarning
from tightrope.ledger import chain
from tightrope.ledger.chain import (
    ANSWERED,
    CHARGED,
    DATASET,
    DECLARATION,
    REFUSED,
    RESERVED,
    RETRIED,
    Entry,
    canonical_json,
    combined_digest,
    sha256_hex,
)
from tightrope.ledger.identity import Claim, Identity, SeriesClaim, series_of_date
from tightrope.ledger.limits import MAIN_LIMIT, Limit
from tightrope.ledger.state import State, fraction_of_charge, moment_costs, state_after_entry
from tightrope.ledger.store import EntryBook, WriteResult

ChargeResult = WriteResult[Entry | InsufficientBudgetError]
"""The entry of a charge, existing or new, or the refusal; and the entry that was written, None if there is none."""
FAILED_READING = '{"reading": "failed"}'
"""Stored instead of answers if the table could not be read after the charge."""


class Account:
    """A dataset with its limits. Each release has a key, charged once and answered once, even by several processes."""

    def __init__(self, book: EntryBook, declared: Entry, declaration: Identity | None = None) -> None:
        self.book, self.declared = book, declared
        self.identity = Identity.from_data(declared.body_data["identity"])
        """The first declaration of the dataset."""
        self.declaration = self.identity if declaration is None else declaration
        """The declaration of this session, recorded with its first charge if the ledger does not have it yet."""
        self.limits = tuple(map(Limit.from_data, declared.body_data["limits"]))

    @property
    def dataset_name(self) -> str:
        """The name of the dataset."""
        return self.identity.name

    @property
    def owner_note(self) -> str:
        """The note that the owner wrote."""
        return str(self.declared.body_data["note"])

    def declarations(self) -> list[Identity]:
        """Return the declarations of the dataset in the order in which they were recorded."""
        return self.book.read_transaction(self._declarations_in)

    def check_declaration(self, limits: Sequence[Limit]) -> None:
        """Raise ``InputError`` unless these are the limits of the ledger."""
        recorded, found = ({limit.name: limit for limit in limit_list} for limit_list in (self.limits, limits))
        for name in sorted(recorded.keys() | found.keys()):
            if recorded.get(name) != found.get(name):
                in_ledger, given = (
                    next((limit.rule_text for limit in limit_list if limit.name == name), "no such limit")
                    for limit_list in (self.limits, limits)
                )
                text = (
                    f"the plan has {given}, but the ledger has {in_ledger}; use the same budget and rule (a plan may "
                    f"use a budget_fraction of it), because a declared budget cannot be changed"
                )
                raise InputError.from_text(f"budget {name!r}", text)

    def state_after(self, entry: Entry) -> State:
        """Return the amounts spent and reserved after an entry of the dataset."""
        return State.from_data(entry.state_data)

    def fraction_charged(self, entry: Entry) -> Fraction:
        """Return the part of the whole budget that a charge took."""
        return fraction_of_charge(self.state_after(entry), self.limits, entry.body_data)

    def current_state(self) -> State:
        """Return the amounts spent and reserved now."""
        return self.book.read_transaction(self._state_in)

    def check_charge(self, claim: Claim, series: str | None = None) -> None:
        """Raise ``InsufficientBudgetError``, also recorded, if ``charge_release`` would refuse the claim now."""
        if self.find_refusal(claim, series) is not None:
            self.charge_release(claim, series)

    def find_refusal(self, claim: Claim, series: str | None = None) -> InsufficientBudgetError | None:
        """Return the error that ``charge_release`` would raise now, or None; the refusal is not recorded."""
        costs = self._moment_costs(claim, series)

        def run_transaction(connection: Connection) -> Entry | InsufficientBudgetError:
            same_claim = self._with_reserved_noise(connection, claim, series)
            found = self._existing_entry(connection, CHARGED, same_claim)
            return found or self._next_entry(connection, same_claim, series, costs)

        found = self.book.read_transaction(run_transaction)
        return found if isinstance(found, InsufficientBudgetError) else None

    def charge_release(self, claim: Claim, series: str | None = None) -> Entry:
        """Charge a release, or the next date of a ``series``; the entry is on disk when this returns.

        If the key was already charged for the same plan, its entry is returned without a new charge. Raises
        ``InsufficientBudgetError``, also recorded, if a limit has not enough left; ``InputError`` for another
        plan.
        """
        costs = self._moment_costs(claim, series)
        return _raise_if_refused(
            self.book.write_entry(lambda connection: self._charge_claim(connection, claim, series, costs))
        )

    def begin_reading(self, claim: Claim, series: str | None = None) -> tuple[Entry, bool]:
        """Charge a release, and return its entry and whether the table may be read under it now.

        A charge permits two readings: the first, and a second one if the first has no stored outcome because its
        process was killed. This function records the second reading before it begins. It runs in one transaction: if
        many processes begin under one key at once, at most two may read. Raises as ``charge_release`` does.
        """
        costs = self._moment_costs(claim, series)

        def run_transaction(connection: Connection) -> WriteResult[tuple[Entry | InsufficientBudgetError, bool]]:
            # ``charged`` is an entry or a refusal; ``new_entry`` is None if the key was charged before.
            charged, new_entry = self._charge_claim(connection, claim, series, costs)
            if new_entry is not None:
                return (charged, True), new_entry
            if not isinstance(charged, Entry) or self._reading_is_over(connection, charged):
                return (charged, False), None
            now, state = self.book.next_entry_time(connection), self._state_in(connection).to_data()
            return (charged, True), chain.append_entry(
                connection, self.dataset_name, RETRIED, claim.key, now, ({}, state)
            )

        charged, may_read = self.book.write_entry(run_transaction)
        return _raise_if_refused(charged), may_read

    def may_read(self, key: str) -> bool:
        """Return whether the key was charged and the table may still be read for it, at no further charge."""

        def run_transaction(connection: Connection) -> bool:
            charged = chain.entry_by_key(connection, self.dataset_name, CHARGED, key)
            return charged is not None and not self._reading_is_over(connection, charged)

        return self.book.read_transaction(run_transaction)

    def reserve_series(self, claim: SeriesClaim) -> Entry:
        """Reserve the budget of a whole series, or return its existing entry; raises as ``charge_release`` does."""
        costs = self._moment_costs(claim)

        def run_transaction(connection: Connection) -> ChargeResult:
            found = self._existing_entry(connection, RESERVED, claim)
            if found is not None:
                return found, None
            self._refuse_taken_dates(connection, claim)
            body = {**_charge_fields(claim, self.book.next_entry_time(connection)), **costs, "times": claim.times}
            body |= {} if claim.description is None else {"description": dict(claim.description)}
            entry = self._draft_entry(connection, RESERVED, claim.key, body)
            if isinstance(entry, InsufficientBudgetError):
                return entry, self._refusal_entry(connection, claim, entry)
            self._record_declaration(connection, entry.time)
            chain.store_text(connection, claim.noise_record)
            written = chain.append_entry(
                connection, self.dataset_name, RESERVED, claim.key, entry.time, (entry.body, entry.state)
            )
            return written, written

        return _raise_if_refused(self.book.write_entry(run_transaction))

    def store_answers(self, key: str, text: str) -> str:
        """Store the answers of a charged release, and return the valid ones: those that were stored first.

        If the table could not be read, callers store ``FAILED_READING`` instead.
        Raises ``InputError`` if the key was not charged.
        """

        def run_transaction(connection: Connection) -> tuple[str, Entry | None]:
            charged = chain.entry_by_key(connection, self.dataset_name, CHARGED, key)
            if charged is None:
                raise InputError.from_text("key", f"nothing was charged under {key!r}")
            found = chain.entry_after_charge(connection, self.dataset_name, ANSWERED, charged)
            if found is not None:
                return chain.read_text(connection, found.body_data["document"]), None
            body, state = {"document": chain.store_text(connection, text)}, self._state_in(connection).to_data()
            body |= {"reading": "failed"} if text == FAILED_READING else {}
            written = chain.append_entry(
                connection, self.dataset_name, ANSWERED, key, self.book.next_entry_time(connection), (body, state)
            )
            return text, written

        return self.book.write_entry(run_transaction)

    def stored_answers(self, key: str) -> str | None:
        """Return the answers stored under a key; None if it has no answers yet."""

        def run_transaction(connection: Connection) -> str | None:
            found = chain.entry_by_key(connection, self.dataset_name, ANSWERED, key)
            return None if found is None else str(chain.read_text(connection, found.body_data["document"]))

        return self.book.read_transaction(run_transaction)

    def find_charge(self, claim: Claim) -> Entry | None:
        """Return the charge with the claim's key, or None; ``InputError`` if its plan or audience differs."""
        return self.book.read_transaction(lambda connection: self._existing_entry(connection, CHARGED, claim))

    def find_reservation(self, key: str) -> tuple[Entry, str] | None:
        """Return the entry and the noise record of a reserved series; None if the key is not reserved."""

        def run_transaction(connection: Connection) -> tuple[Entry, str] | None:
            found = chain.entry_by_key(connection, self.dataset_name, RESERVED, key)
            return None if found is None else (found, chain.read_text(connection, found.body_data["recipe"]))

        return self.book.read_transaction(run_transaction)

    def unanswered_key(self, plan: str) -> str | None:
        """Return the key of a plan's last charge with neither answers nor a second reading; None if all have one."""
        return next((entry.key for entry in self.unanswered_charges if entry.body_data["plan"] == plan), None)

    @property
    def unanswered_charges(self) -> list[Entry]:
        """The charges that have neither answers nor a second reading, the last one first."""
        entries = self.book.list_entries(self.dataset_name)
        answered = {entry.key for entry in entries if entry.kind in (ANSWERED, RETRIED)}
        charged = (entry for entry in reversed(entries) if entry.kind == CHARGED)
        return [entry for entry in charged if entry.key not in answered]

    def _charge_claim(
        self, connection: Connection, claim: Claim, series: str | None, costs: dict[str, Any]
    ) -> ChargeResult:
        """Return the existing or new entry of a claim, or the refusal; and the entry that was written, or None."""
        claim = self._with_reserved_noise(connection, claim, series)
        found = self._existing_entry(connection, CHARGED, claim)
        if found is not None:
            return found, None
        entry = self._next_entry(connection, claim, series, costs)
        if isinstance(entry, InsufficientBudgetError):
            return entry, self._refusal_entry(connection, claim, entry)
        self._record_declaration(connection, entry.time)
        if claim.noise_record:
            chain.store_text(connection, claim.noise_record)
        written = chain.append_entry(
            connection, self.dataset_name, CHARGED, claim.key, entry.time, (entry.body, entry.state)
        )
        return written, written

    def _with_reserved_noise(self, connection: Connection, claim: Claim, series: str | None) -> Claim:
        """Return the claim with the series' reserved noise record in place of its own, if the noise is the same.

        An older version of the library may have written the same noise differently.
        """
        reserved = None if series is None else chain.entry_by_key(connection, self.dataset_name, RESERVED, series)
        if reserved is None or not (claim.noise_record and reserved.body_data["recipe"]):
            return claim
        recorded = chain.read_text(connection, reserved.body_data["recipe"])
        if recorded == claim.noise_record:
            return claim
        from tightrope.ledger.noise_record import has_same_noise  # loads the accounting

        if not has_same_noise(recorded, claim.noise_record):
            return claim  # the caller refuses it with the reason, unless it was charged before
        plan = combined_digest(claim.questions, recorded) if claim.questions else claim.plan
        return replace(claim, noise_record=recorded, plan=plan)

    def _reading_is_over(self, connection: Connection, charged: Entry) -> bool:
        """Return whether the answers of a charge are stored, or its second reading has begun."""
        kinds = (ANSWERED, RETRIED)
        return any(chain.entry_after_charge(connection, self.dataset_name, kind, charged) is not None for kind in kinds)

    def _state_in(self, connection: Connection) -> State:
        last = chain.last_entry_of_dataset(connection, self.dataset_name)
        return State.from_data((last or self.declared).state_data)

    def _declarations_in(self, connection: Connection) -> list[Identity]:
        later = chain.entries_by_kind(connection, DECLARATION, self.dataset_name)
        if any(not entry.hash_matches for entry in later):
            raise LedgerError(
                f"a declaration of {self.dataset_name!r} was changed after it was written; {chain.CORRUPT}"
            )
        return [self.identity, *(Identity.from_data(entry.body_data["identity"]) for entry in later)]

    def _record_declaration(self, connection: Connection, time: str) -> None:
        """Append this session's declaration of the dataset (columns, row bounds) if it is new.

        Raises ``InputError`` if another process has meanwhile recorded a declaration that contradicts it.
        """
        data = self.declaration.to_data()
        if data == self.identity.to_data():
            return
        recorded = self._declarations_in(connection)
        if any(one.to_data() == data for one in recorded):
            return
        for one in recorded:
            one.check_same_as(self.declaration)
        body, state = {"identity": data}, self._state_in(connection).to_data()
        key = sha256_hex(canonical_json(data))
        chain.append_entry(connection, self.dataset_name, DECLARATION, key, time, (body, state))

    def _existing_entry(self, connection: Connection, kind: str, claim: Claim | SeriesClaim) -> Entry | None:
        """Return the entry with the claim's key, or None; ``InputError`` if its plan or audience differs."""
        found: Entry | None = chain.entry_by_key(connection, self.dataset_name, kind, claim.key)
        if found is None:
            return None
        body = found.body_data
        for_same_audience = body["audience"] == claim.audience
        is_same = for_same_audience and body["plan"] == claim.plan
        # The digest of a plan covers the figures for other families of noise, whose last digits depend on the machine
        # and on library versions. If digests differ, questions and the noise itself are compared.
        if for_same_audience and not is_same and isinstance(claim, Claim) and claim.questions and body["recipe"]:
            from tightrope.ledger.noise_record import has_same_noise  # loads the accounting

            recorded = chain.read_text(connection, body["recipe"])
            has_same_questions = combined_digest(claim.questions, recorded) == body["plan"]
            is_same = has_same_questions and has_same_noise(recorded, claim.noise_record)
        if not is_same:
            text = (
                f"{claim.key!r} is already the name of a release of a different plan or for a different audience; "
                f"choose a new key, or leave it out"
            )
            raise InputError.from_text("key", text)
        return found

    def _moment_costs(self, claim: Claim | SeriesClaim, series: str | None = None) -> dict[str, Any]:
        """Return the moment costs of an entry; empty without a moments limit, and for dates of a reserved series.

        Computed before a transaction begins, so that other writers do not wait for it.
        """
        times = claim.times if isinstance(claim, SeriesClaim) else 1
        costs = moment_costs(self.limits, claim.noise_record, times, claim.audience) if series is None else {}
        return {"costs": costs} if costs else {}

    def _next_entry(
        self, connection: Connection, claim: Claim, series: str | None, costs: dict[str, Any]
    ) -> Entry | InsufficientBudgetError:
        key_series = series_of_date(claim.key) if series is None else None
        if (
            key_series is not None
            and chain.entry_by_key(connection, self.dataset_name, RESERVED, key_series) is not None
        ):
            raise InputError.from_text(
                "key", f"{claim.key!r} is reserved for a date of the series {key_series!r}; choose another key"
            )
        reserved = None if series is None else chain.entry_by_key(connection, self.dataset_name, RESERVED, series)
        if reserved is not None and reserved.body_data["audience"] != claim.audience:
            text = (
                f"the series {series!r} was charged for the audience {reserved.body_data['audience']!r}, not for "
                f"{claim.audience!r}; another audience needs its own series"
            )
            raise InputError.from_text("audience", text)
        body: dict[str, Any] = {
            **_charge_fields(claim, self.book.next_entry_time(connection)),
            **costs,
            "series": series,
        }
        if reserved is not None and reserved.body_data["recipe"] != body["recipe"]:
            text = f"it differs from the noise reserved for the series {series!r}; use session.series(...)"
            raise InputError.from_text("noise", text)
        return self._draft_entry(connection, CHARGED, claim.key, body)

    def _refuse_taken_dates(self, connection: Connection, claim: SeriesClaim) -> None:
        """Raise ``InputError`` if a release already has the key of one of the series' dates."""
        dates = claim.release_keys()
        taken = next(
            (key for key in dates if chain.entry_by_key(connection, self.dataset_name, CHARGED, key) is not None), None
        )
        if taken is not None:
            text = (
                f"{taken!r}, the key of a date of this series, is already a release; choose another key for the series"
            )
            raise InputError.from_text("key", text)

    def _draft_entry(
        self, connection: Connection, kind: str, key: str, body: dict[str, Any]
    ) -> Entry | InsufficientBudgetError:
        """Return the entry before it is appended to the chain, or the refusal."""
        try:
            state = state_after_entry(self._state_in(connection), self.limits, kind, key, body)
        except InsufficientBudgetError as refusal:
            return refusal
        return Entry(
            0, self.dataset_name, kind, key, body["time"], canonical_json(body), canonical_json(state.to_data()), "", ""
        )

    def _refusal_entry(
        self, connection: Connection, claim: Claim | SeriesClaim, refusal: InsufficientBudgetError
    ) -> Entry:
        """Append the refusal as an entry: it depends on declared parameters alone, never on data."""
        body = {
            **_charge_fields(claim, self.book.next_entry_time(connection)),
            "key": claim.key,
            "reason": str(refusal),
        }
        state = self._state_in(connection).to_data()
        written: Entry = chain.append_entry(connection, self.dataset_name, REFUSED, None, body["time"], (body, state))
        return written


def _charge_fields(claim: Claim | SeriesClaim, time: str) -> dict[str, Any]:
    # The ledger's names, which cannot change: the noise record is "recipe", and the guarantee "kept".
    noise_record = sha256_hex(claim.noise_record) if claim.noise_record else ""
    ratio = {} if claim.fraction is None else {"fraction": str(claim.fraction)}
    return {
        "plan": claim.plan, "kept": claim.guarantee.to_data(), "recipe": noise_record,
        "audience": claim.audience, "time": time,
        **ratio,
    }  # fmt: skip


def _raise_if_refused(found: Entry | InsufficientBudgetError) -> Entry:
    if isinstance(found, InsufficientBudgetError):
        raise found
    return found


# The datasets of a ledger: each is declared once, with its privacy unit and its limits.


class Ledger:
    """The ledger in a file, or in PostgreSQL by URL (``postgresql://...``).

    ``create`` makes a missing one; ``clock`` returns the time (default: UTC, to the millisecond). Raises
    ``InputError`` if it does not exist or the place cannot be used, ``LedgerError`` if the ledger cannot be read
    or is older than its head file.
    """

    def __init__(
        self, place: str | os.PathLike[str], *, create: bool = False, clock: Callable[[], str] | None = None
    ) -> None:
        self.book = EntryBook(place, create=create, clock=clock)

    @property
    def ledger_id(self) -> str:
        """The ledger's random name, set when it was created."""
        return self.book.id

    @property
    def display_name(self) -> str:
        """The file, or the URL without its password."""
        return self.book.display_name

    def declare_dataset(self, identity: Identity, limits: Sequence[Limit], *, note: str = "") -> Account:
        """Return the account of a dataset, which is declared with these limits if the ledger does not contain it.

        Columns and contribution bounds that differ from the first declaration are recorded with the next charge.
        Raises ``InputError`` if the ledger has another privacy unit or other limits for the dataset, or a column of
        another type.
        Emits a ``LedgerWarning`` if a new dataset has the columns and the privacy unit of another one: their privacy
        losses may add up.
        """
        _check_limits(limits)
        body = {"identity": identity.to_data(), "limits": [limit.to_data() for limit in limits], "note": note}

        def run_transaction(connection: Connection) -> WriteResult[Entry]:
            found = chain.entry_by_key(connection, identity.name, DATASET, DATASET)
            if found is not None:
                return found, None
            if chain.last_entry_of_dataset(connection, identity.name) is not None:
                raise LedgerError(f"the declaration of {identity.name!r} is missing from the ledger; {chain.CORRUPT}")
            written = chain.append_entry(
                connection,
                identity.name,
                DATASET,
                DATASET,
                self.book.next_entry_time(connection),
                (body, State().to_data()),
            )
            return written, written

        known = self.book.read_transaction(
            lambda connection: chain.entry_by_key(connection, identity.name, DATASET, DATASET)
        )
        if known is None:
            self._warn_about_similar_datasets(identity)
        account = Account(self.book, known or self.book.write_entry(run_transaction), identity)
        for recorded in account.declarations():
            recorded.check_same_as(account.declaration)
        account.check_declaration(limits)
        return account

    def _warn_about_similar_datasets(self, identity: Identity) -> None:
        declared = (Account(self.book, entry).identity for entry in self.book.entries_of_kind(DATASET))
        similar_datasets = [
            repr(other.name) for other in declared if other.name != identity.name and other.is_similar_to(identity)
        ]
        if similar_datasets:
            warnings.warn(
                LedgerWarning(
                    f"the ledger already has {' and '.join(similar_datasets)}, with the same columns and privacy unit "
                    f"as the new dataset {identity.name!r}; if they are about the same people, their privacy losses "
                    f"add up, and no limit accounts for it: use one name, or write in the note why the people are "
                    f"different"
                ),
                stacklevel=3,
            )

    def open_account(self, dataset: str) -> Account:
        """Return the account of a dataset; ``InputError`` if the ledger does not contain it."""
        found = self.book.read_transaction(lambda connection: chain.entry_by_key(connection, dataset, DATASET, DATASET))
        if found is None:
            names = self.dataset_names()
            raise InputError("dataset", dataset, f"one of {names}", "the first release of a dataset declares it")
        return Account(self.book, found)

    def dataset_names(self) -> list[str]:
        """Return the names of all datasets in the order of their declaration."""
        return [entry.dataset for entry in self.book.entries_of_kind(DATASET)]

    def list_entries(self, dataset: str | None = None) -> list[Entry]:
        """Return all entries, or the entries of one dataset, in order; unchecked."""
        return self.book.list_entries(dataset)

    def close(self) -> None:
        """Close the file or the connections."""
        self.book.close()


def _check_limits(limits: Sequence[Limit]) -> None:
    names = [limit.name for limit in limits]
    if len(set(names)) != len(names):
        raise InputError.from_text("limits", f"two have the same name in {names}; give each limit its own name")
    for limit in limits:
        period = next((name for name in names if limit.is_a_period(name)), None)
        if period is not None:
            text = f"the limit {period!r} has the name of a period of {limit.name!r} (every {limit.every}); rename one"
            raise InputError.from_text("limits", text)
    if not any(limit.name == MAIN_LIMIT and limit.every is None and limit.audience is None for limit in limits):
        text = f"one limit must be named {MAIN_LIMIT!r}, without a period and for all audiences; the names are {names}"
        raise InputError.from_text("limits", text)
