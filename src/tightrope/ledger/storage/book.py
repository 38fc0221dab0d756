"""A ledger, opened: transactions on its chain, and the witness beside a file that says how far it has come."""

from __future__ import annotations

import datetime
import os
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import TypeVar

from sqlalchemy import Connection

from tightrope.errors import InputError, LedgerError
from tightrope.ledger.storage import chain, making
from tightrope.ledger.storage.entry import Entry
from tightrope.ledger.storage.places import Witness, checked_file, is_url
from tightrope.ledger.storage.store import LostError, Store

Result = TypeVar("Result")
Written = tuple[Result, Entry | None]
TRIES, PAUSE = 12, 0.5
"""How often a transaction is tried whose connection was lost, and the seconds between: a server that restarts."""


class Book:
    """The chain of entries in a file or a database; made where ``create`` says so and there is none.

    Raises ``InputError`` where nothing is there or the place cannot be used, ``LedgerError`` where the ledger cannot be
    read or is older than its witness says.
    """

    def __init__(self, place: str | os.PathLike[str], *, create: bool, clock: Callable[[], str] | None) -> None:
        where = str(place) if is_url(place) else checked_file(place)
        self._witness = Witness(where) if isinstance(where, Path) else None
        if self._witness is not None:
            self._witness.refuse_gone()
        if isinstance(where, Path) and not os.path.exists(where):  # noqa: PTH110 - says no where it may not look
            _refuse_missing(place, create)
            making.file(where)
        self._store, self._clock = Store(where), clock or _now
        if not self._store.is_file:
            making.schema(self._store, create=create)
        self.id = self.read(chain.ledger_id)
        """The random name that the ledger got when it was made."""

    @property
    def name(self) -> str:
        """The file, or the URL without its password."""
        return self._store.name

    @property
    def is_file(self) -> bool:
        """Whether it is a file, with a witness beside it."""
        return self._witness is not None

    def entries(self, dataset: str | None = None) -> list[Entry]:
        """All entries, or those of one dataset, in their order; not checked."""
        return self.read(lambda connection: list(chain.entries(connection, dataset)))

    def of_kind(self, kind: str) -> list[Entry]:
        """All entries of a kind, in their order; not checked."""
        return self.read(lambda connection: chain.of_kind(connection, kind))

    def each(self, dataset: str | None = None) -> Iterator[Entry]:
        """The same, a few at a time, within one moment of the ledger."""
        with self._store.reading() as connection:
            yield from chain.entries(connection, dataset)

    def documents(self) -> dict[str, str]:
        """Every longer text by its hash; not checked."""
        return self.read(chain.documents)

    def integrity(self) -> str:
        """What the database says of its own pages: empty where nothing is wrong."""
        if not self.is_file:
            return ""
        with self._store.reading() as connection:
            said = [str(row[0]) for row in connection.exec_driver_sql("PRAGMA integrity_check(5)")]
        return "" if said == ["ok"] else said[0]

    def read(self, work: Callable[[Connection], Result]) -> Result:
        """``work`` on one moment of the ledger."""

        def once() -> Result:
            with self._store.reading() as connection:
                self._refuse_older(connection)
                return work(connection)

        return _tried(once)

    def write(self, work: Callable[[Connection], Written[Result]]) -> Result:
        """``work`` alone, on disk when this returns; it says its result and the last entry that it wrote.

        Work must be safe to do again, for it is, where a connection is lost before anybody knows how it ended.
        """

        def once() -> Written[Result]:
            with self._store.writing() as connection:
                making.refuse_altered(connection, self._store)
                self._refuse_older(connection)
                return work(connection)

        result, last = _tried(once)
        if last is not None and self._witness is not None:
            self._witness.write(last.number, last.hash)
        return result

    def now(self, connection: Connection) -> str:
        """The time of the next entry: never before the last one's, whatever the clock says."""
        last, now = chain.head(connection), self._clock()
        return now if last is None or now >= last.time else last.time

    def witnessed(self) -> tuple[int, str] | None:
        """What the witness beside a file says."""
        return None if self._witness is None else self._witness.read()

    def close(self) -> None:
        """Let go of the file or the server."""
        self._store.close()

    def _refuse_older(self, connection: Connection) -> None:
        seen = self.witnessed()
        if self._witness is None or seen is None:
            return
        found = chain.at(connection, seen[0])
        if found is None or found.hash != seen[1]:
            raise LedgerError(
                f"the ledger {self.name} is not the one that had come to entry {seen[0]}: a copy was put back, or the "
                f"file was changed; put the newest copy back, with its -wal file if there is one "
                f"(docs/ledger.md says what to do where it is lost; {self._witness.path.name} says how far it had come)"
            )


def _now() -> str:
    return datetime.datetime.now(datetime.UTC).isoformat(timespec="milliseconds")


def _refuse_missing(place: object, create: bool) -> None:
    if not create:
        raise InputError("ledger", str(place), "a ledger that exists", "the first release makes one")


def _tried(once: Callable[[], Result]) -> Result:
    """Again where the connection was lost; after the last time the error says that nobody knows."""
    for _ in range(TRIES - 1):
        with suppress(LostError):
            return once()
        time.sleep(PAUSE)
    try:
        return once()
    except LostError as error:
        said = "it is not known whether anything was spent: try again with the same key, which is charged once"
        raise LedgerError(f"{error}; {said}") from None
