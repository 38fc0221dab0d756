"""One dataset in a ledger: what is left, and the three things that can be done: reserve, charge, answer."""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import Any

from sqlalchemy import Connection

from tightrope.errors import BudgetRefused, InputError, LedgerError, LedgerWarning
from tightrope.ledger import chain
from tightrope.ledger.chain import ANSWERED, CHARGED, DATASET, REFUSED, RESERVED, RETRIED, Entry, canonical, digest
from tightrope.ledger.identity import Claim, Identity, SeriesClaim, series_of_date
from tightrope.ledger.limits import MAIN_LIMIT, Limit
from tightrope.ledger.state import State, after, fraction_of_charge, moment_costs
from tightrope.ledger.store import Book, Written

Outcome = Written[Entry | BudgetRefused]
FAILED_READING = '{"reading": "failed"}'
"""What is kept instead of answers where the table could not be read after the charge."""


class Account:
    """A dataset with its limits. Everything under a key happens once, however often and by whomever it is tried."""

    def __init__(self, book: Book, declared: Entry) -> None:
        self.book, self.declared = book, declared
        self.identity = Identity.from_data(declared.body_data["identity"])
        self.limits = tuple(map(Limit.from_data, declared.body_data["limits"]))

    @property
    def name(self) -> str:
        """The dataset's."""
        return self.identity.name

    @property
    def note(self) -> str:
        """What its owner wrote down."""
        return str(self.declared.body_data["note"])

    def agree(self, limits: Sequence[Limit]) -> None:
        """Raises ``InputError`` unless these are the limits that the ledger has."""
        recorded, found = ({limit.name: limit for limit in own} for own in (self.limits, limits))
        for name in sorted(recorded.keys() | found.keys()):
            if recorded.get(name) != found.get(name):
                has = next((limit.words for limit in self.limits if limit.name == name), "no such limit")
                remedy = (
                    "say the same budget and rule and plan with a share of it; a promise to people is not changed later"
                )
                raise InputError(
                    f"budget {name!r}",
                    next((limit.words for limit in limits if limit.name == name), "nothing"),
                    f"as the ledger has it ({has})",
                    remedy,
                )

    def after(self, entry: Entry) -> State:
        """What was spent and reserved after an entry of the dataset."""
        return State.from_data(entry.after)

    def fraction_charged(self, entry: Entry) -> Fraction:
        """What a charge took of the whole budget."""
        return fraction_of_charge(self.after(entry), self.limits, entry.body_data)

    def state(self) -> State:
        """What is spent and reserved now."""
        return self.book.read_transaction(self._state)

    def check(self, claim: Claim, series: str | None = None) -> None:
        """Whether ``charge`` would pass now; a refusal is recorded and raised as ``BudgetRefused``."""
        if self.refusal(claim, series) is not None:
            self.charge(claim, series)

    def refusal(self, claim: Claim, series: str | None = None) -> BudgetRefused | None:
        """Why ``charge`` would not pass now, if it would not; nothing is written down."""
        costs = self._costs(claim, series)

        def work(connection: Connection) -> Entry | BudgetRefused:
            found = self._existing_entry(connection, CHARGED, claim)
            return found or self._next(connection, claim, series, costs)

        found = self.book.read_transaction(work)
        return found if isinstance(found, BudgetRefused) else None

    def charge(self, claim: Claim, series: str | None = None) -> Entry:
        """Charge a release, or the next date of a ``series``; the entry is on disk when this returns.

        Under a key that was charged for the same plan the entry is found and nothing is charged. Raises
        ``BudgetRefused``, which is recorded, where a limit has not enough left; ``InputError`` for another plan.
        """
        costs = self._costs(claim, series)
        return _passed(self.book.write(lambda connection: self._charge(connection, claim, series, costs)))

    def begin_reading(self, claim: Claim, series: str | None = None) -> tuple[Entry, bool]:
        """Charge a release, and return its entry and whether the table may be read under it now.

        A charge pays for two readings: the one that it was made for, and one more where no outcome of the first is
        kept, because its process was killed. The second is written down here, before it begins. All this is one
        transaction: of many processes that begin under one key at once, two may read. Raises as ``charge`` does.
        """
        costs = self._costs(claim, series)

        def work(connection: Connection) -> Written[tuple[Entry | BudgetRefused, bool]]:
            found, made = self._charge(connection, claim, series, costs)
            if made is not None:
                return (found, True), made
            if not isinstance(found, Entry) or self._closed(connection, found):
                return (found, False), None
            now, state = self.book.now(connection), self._state(connection).to_data()
            return (found, True), chain.append(connection, self.name, RETRIED, claim.key, now, ({}, state))

        found, may_read = self.book.write(work)
        return _passed(found), may_read

    def may_read(self, key: str) -> bool:
        """Return whether a release was charged under the key that may read the table once more at no cost."""

        def work(connection: Connection) -> bool:
            charged = chain.of_key(connection, self.name, CHARGED, key)
            return charged is not None and not self._closed(connection, charged)

        return self.book.read_transaction(work)

    def reserve(self, claim: SeriesClaim) -> Entry:
        """Set a whole series aside, or find it; raises as ``charge`` does."""
        costs = self._costs(claim)

        def work(connection: Connection) -> Outcome:
            found = self._existing_entry(connection, RESERVED, claim)
            if found is not None:
                return found, None
            self._refuse_taken_dates(connection, claim)
            said = {**_said_of(claim, self.book.now(connection)), **costs, "times": claim.times}
            entry = self._drafted(connection, RESERVED, claim.key, said)
            if isinstance(entry, BudgetRefused):
                return entry, self._refused(connection, claim, entry)
            chain.keep_document(connection, claim.recipe)
            made = chain.append(connection, self.name, RESERVED, claim.key, entry.time, (entry.body, entry.state))
            return made, made

        return _passed(self.book.write(work))

    def answer(self, key: str, text: str) -> str:
        """Keep the answers that were paid under a key, and say the ones that count: the first that were kept.

        ``FAILED_READING`` is kept instead where the table could not be read.
        Raises ``InputError`` where nothing was charged under the key: no answer is kept that was not paid.
        """

        def work(connection: Connection) -> tuple[str, Entry | None]:
            charged = chain.of_key(connection, self.name, CHARGED, key)
            if charged is None:
                raise InputError("key", key, "one that was charged")
            found = chain.after_charge(connection, self.name, ANSWERED, charged)
            if found is not None:
                return chain.document(connection, found.body_data["document"]), None
            said, state = {"document": chain.keep_document(connection, text)}, self._state(connection).to_data()
            said |= {"reading": "failed"} if text == FAILED_READING else {}
            made = chain.append(connection, self.name, ANSWERED, key, self.book.now(connection), (said, state))
            return text, made

        return self.book.write(work)

    def stored(self, key: str) -> str | None:
        """The answers under a key; None where there are none yet."""

        def work(connection: Connection) -> str | None:
            found = chain.of_key(connection, self.name, ANSWERED, key)
            return None if found is None else str(chain.document(connection, found.body_data["document"]))

        return self.book.read_transaction(work)

    def charged(self, claim: Claim) -> Entry | None:
        """The entry under the claim's key; ``InputError`` where it is another plan's."""
        return self.book.read_transaction(lambda connection: self._existing_entry(connection, CHARGED, claim))

    def reserved(self, key: str) -> tuple[Entry, str] | None:
        """A series by its key with its recipe."""

        def work(connection: Connection) -> tuple[Entry, str] | None:
            found = chain.of_key(connection, self.name, RESERVED, key)
            return None if found is None else (found, chain.document(connection, found.body_data["recipe"]))

        return self.book.read_transaction(work)

    def unanswered(self, plan: str) -> str | None:
        """The key of the last charge of a plan that has no answers and may read once more at no cost."""
        own = self.book.entries(self.name)
        answered = {entry.key for entry in own if entry.kind in (ANSWERED, RETRIED)}
        paid = [entry.key for entry in own if entry.kind == CHARGED and entry.body_data["plan"] == plan]
        return next((key for key in reversed(paid) if key not in answered), None)

    def _charge(self, connection: Connection, claim: Claim, series: str | None, costs: dict[str, Any]) -> Outcome:
        """The entry of a claim, found or made, or the refusal; and what was written now."""
        found = self._existing_entry(connection, CHARGED, claim)
        if found is not None:
            return found, None
        entry = self._next(connection, claim, series, costs)
        if isinstance(entry, BudgetRefused):
            return entry, self._refused(connection, claim, entry)
        if claim.recipe:
            chain.keep_document(connection, claim.recipe)
        made = chain.append(connection, self.name, CHARGED, claim.key, entry.time, (entry.body, entry.state))
        return made, made

    def _closed(self, connection: Connection, charged: Entry) -> bool:
        """Whether the answers of a charge are kept, or its second reading has begun."""
        kinds = (ANSWERED, RETRIED)
        return any(chain.after_charge(connection, self.name, kind, charged) is not None for kind in kinds)

    def _state(self, connection: Connection) -> State:
        last = chain.last_of(connection, self.name)
        return State.from_data((last or self.declared).after)

    def _existing_entry(self, connection: Connection, kind: str, claim: Claim | SeriesClaim) -> Entry | None:
        found: Entry | None = chain.of_key(connection, self.name, kind, claim.key)
        if found is not None and (found.body_data["plan"], found.body_data["audience"]) != (claim.plan, claim.audience):
            remedy = "the same key means the same plan for the same audience; for a new release leave it out"
            raise InputError("key", claim.key, "new, or that of this very plan", remedy)
        return found

    def _costs(self, claim: Claim | SeriesClaim, series: str | None = None) -> dict[str, Any]:
        """What an entry says of moments: nothing where no limit asks, and for a date whose series has paid.

        Computed before a transaction begins: others wait for that.
        """
        times = claim.times if isinstance(claim, SeriesClaim) else 1
        costs = moment_costs(self.limits, claim.recipe, times, claim.audience) if series is None else {}
        return {"costs": costs} if costs else {}

    def _next(
        self, connection: Connection, claim: Claim, series: str | None, costs: dict[str, Any]
    ) -> Entry | BudgetRefused:
        named = series_of_date(claim.key) if series is None else None
        if named is not None and chain.of_key(connection, self.name, RESERVED, named) is not None:
            raise InputError("key", claim.key, f"no date of the series {named!r}", "choose another key")
        reserved = None if series is None else chain.of_key(connection, self.name, RESERVED, series)
        if reserved is not None and reserved.body_data["audience"] != claim.audience:
            expected = f"{reserved.body_data['audience']!r}, whose limits the series {series!r} was charged to"
            raise InputError("audience", claim.audience, expected, "another audience needs a series of its own")
        said: dict[str, Any] = {**_said_of(claim, self.book.now(connection)), **costs, "series": series}
        declared = None if series is None else chain.of_key(connection, self.name, RESERVED, series)
        if declared is not None and declared.body_data["recipe"] != said["recipe"]:
            remedy = "a series has one noise, fixed when it is reserved: use session.series(...)"
            raise InputError("noise", said["recipe"][:12], f"that of the series {series!r}", remedy)
        return self._drafted(connection, CHARGED, claim.key, said)

    def _refuse_taken_dates(self, connection: Connection, claim: SeriesClaim) -> None:
        """``InputError`` where a release has the key of a date already: that date could never be released."""
        dates = claim.dates()
        taken = next((key for key in dates if chain.of_key(connection, self.name, CHARGED, key) is not None), None)
        if taken is not None:
            remedy = "choose another key for the series"
            raise InputError("key", claim.key, f"a series none of whose dates is released ({taken!r} is)", remedy)

    def _drafted(self, connection: Connection, kind: str, key: str, said: dict[str, Any]) -> Entry | BudgetRefused:
        """The entry without its place in the chain, or why there is none."""
        try:
            state = after(self._state(connection), self.limits, kind, key, said)
        except BudgetRefused as refusal:
            return refusal
        return Entry(0, self.name, kind, key, said["time"], canonical(said), canonical(state.to_data()), "", "")

    def _refused(self, connection: Connection, claim: Claim | SeriesClaim, refusal: BudgetRefused) -> Entry:
        """The refusal as an entry: it depends on declared parameters alone, never on data."""
        said = {**_said_of(claim, self.book.now(connection)), "key": claim.key, "reason": str(refusal)}
        state = self._state(connection).to_data()
        made: Entry = chain.append(connection, self.name, REFUSED, None, said["time"], (said, state))
        return made


def _said_of(claim: Claim | SeriesClaim, time: str) -> dict[str, Any]:
    recipe = digest(claim.recipe) if claim.recipe else ""
    return {
        "plan": claim.plan, "kept": claim.kept.to_data(), "recipe": recipe, "audience": claim.audience, "time": time,
    }  # fmt: skip


def _passed(found: Entry | BudgetRefused) -> Entry:
    if isinstance(found, BudgetRefused):
        raise found
    return found


# The datasets of a ledger: each declared once, with what a person is and what was promised.


class Ledger:
    """The ledger in a file, or in PostgreSQL by URL (``postgresql://...``).

    ``create`` makes one where there is none; ``clock`` says the time (default: UTC, to the millisecond). Raises
    ``InputError`` where nothing is there or the place cannot be used, ``LedgerError`` where the ledger cannot be read
    or is older than its witness says.
    """

    def __init__(
        self, place: str | os.PathLike[str], *, create: bool = False, clock: Callable[[], str] | None = None
    ) -> None:
        self.book = Book(place, create=create, clock=clock)

    @property
    def id(self) -> str:
        """The random name that the ledger got when it was made."""
        return self.book.id

    @property
    def name(self) -> str:
        """The file, or the URL without its password."""
        return self.book.name

    def declare(self, identity: Identity, limits: Sequence[Limit], *, note: str = "") -> Account:
        """The account of a dataset: opened with these limits, or found as it was declared.

        Raises ``InputError`` where the dataset has another person, bounds, columns or limits in the ledger. A
        ``LedgerWarning`` says where a new one has the columns and the person of another: their promises add up.
        """
        _check_limits(limits)
        said = {"identity": identity.to_data(), "limits": [limit.to_data() for limit in limits], "note": note}

        def work(connection: Connection) -> Written[Entry]:
            found = chain.of_key(connection, identity.name, DATASET, DATASET)
            if found is not None:
                return found, None
            if chain.last_of(connection, identity.name) is not None:
                raise LedgerError(f"the ledger does not find what {identity.name!r} was declared as; {chain.CORRUPT}")
            made = chain.append(
                connection, identity.name, DATASET, DATASET, self.book.now(connection), (said, State().to_data())
            )
            return made, made

        known = self.book.read_transaction(lambda connection: chain.of_key(connection, identity.name, DATASET, DATASET))
        if known is None:
            self._warn_of_twins(identity)
        account = Account(self.book, known or self.book.write(work))
        account.identity.agree(identity)
        account.agree(limits)
        return account

    def _warn_of_twins(self, identity: Identity) -> None:
        declared = (Account(self.book, entry).identity for entry in self.book.of_kind(DATASET))
        twins = [repr(other.name) for other in declared if other.name != identity.name and other.alike(identity)]
        if twins:
            warnings.warn(
                LedgerWarning(
                    f"the ledger has {' and '.join(twins)} with the columns and the person of the new dataset "
                    f"{identity.name!r}; if they are about the same people, what both promise adds up, and no limit "
                    f"knows it: use one name, or say in its note why they are others"
                ),
                stacklevel=3,
            )

    def account(self, dataset: str) -> Account:
        """The account of a dataset; ``InputError`` where the ledger has none of this name."""
        found = self.book.read_transaction(lambda connection: chain.of_key(connection, dataset, DATASET, DATASET))
        if found is None:
            raise InputError("dataset", dataset, f"one of {self.datasets()}", "a first release declares it")
        return Account(self.book, found)

    def datasets(self) -> list[str]:
        """The names of all datasets, in the order in which they were declared."""
        return [entry.dataset for entry in self.book.of_kind(DATASET)]

    def entries(self, dataset: str | None = None) -> list[Entry]:
        """All entries, or those of one dataset, in their order; not checked."""
        return self.book.entries(dataset)

    def close(self) -> None:
        """Let go of the file or the server."""
        self.book.close()


def _check_limits(limits: Sequence[Limit]) -> None:
    names = [limit.name for limit in limits]
    if len(set(names)) != len(names):
        raise InputError("limits", names, "a different name for each")
    for limit in limits:
        alike = next((name for name in names if limit.is_a_period(name)), None)
        if alike is not None:
            remedy = f"{limit.name!r} renews every {limit.every}, and one of its periods is called so"
            raise InputError("limits", alike, "no name of another limit's period", remedy)
    if not any(limit.name == MAIN_LIMIT and limit.every is None and limit.audience is None for limit in limits):
        raise InputError("limits", names, f"with one called {MAIN_LIMIT!r}, for everybody and for good")
