"""The hash chain of a ledger: its entries and tables, and functions that read and append entries in a transaction."""

from __future__ import annotations

import hashlib
import json
import secrets
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from sqlalchemy import (
    DDL,
    BigInteger,
    Column,
    ColumnElement,
    Connection,
    Index,
    MetaData,
    Table,
    Text,
    UniqueConstraint,
    case,
    event,
    func,
    insert,
    select,
)

from tightrope.errors import LedgerError

_CANONICAL = json.JSONEncoder(sort_keys=True, separators=(",", ":"), ensure_ascii=True, allow_nan=False)
DATASET, DECLARATION, RESERVED, CHARGED, RETRIED, ANSWERED, REFUSED = KINDS = (
    "dataset",
    "declaration",
    "reserved",
    "charged",
    "retried",
    "answered",
    "refused",
)


@dataclass(frozen=True)  # not slotted: body and state are parsed once, at first use
class Entry:
    """The ``number``-th entry of a ledger: what happened, the dataset's state after it, and the hash of the one before.

    ``body`` and ``state`` are canonical JSON; ``key`` is None for a refusal.
    """

    number: int
    dataset: str
    kind: str
    key: str | None
    time: str
    body: str
    state: str
    previous: str
    hash: str

    @cached_property
    def body_data(self) -> dict[str, Any]:
        """The body, parsed."""
        body: dict[str, Any] = json.loads(self.body)
        return body

    @cached_property
    def state_data(self) -> dict[str, Any]:
        """The dataset's state after the entry, parsed."""
        state: dict[str, Any] = json.loads(self.state)
        return state

    @property
    def expected_hash(self) -> str:
        """The hash computed from the other fields."""
        fields = [self.number, self.dataset, self.kind, self.key, self.time, self.body, self.state, self.previous]
        return hashlib.sha256(_CANONICAL.encode(fields).encode()).hexdigest()

    @property
    def hash_matches(self) -> bool:
        """True if the entry is unchanged since it was written."""
        return self.hash == self.expected_hash


def genesis_hash(ledger: str) -> str:
    """Return the hash that the first entry of a ledger refers to.

    >>> genesis_hash("a") == genesis_hash("b")
    False
    """
    return hashlib.sha256(f"tightrope ledger {ledger}".encode()).hexdigest()


def sha256_hex(text: str) -> str:
    """Return the SHA-256 of a text, in hexadecimal."""
    return hashlib.sha256(text.encode()).hexdigest()


def combined_digest(questions: str, noise_record: str) -> str:
    """Return the digest of a whole plan from the digest of its questions and the text of its noise record."""
    return sha256_hex(questions + sha256_hex(noise_record))


def canonical_json(data: Any) -> str:
    """Return the data as canonical JSON: sorted keys, no spaces, ASCII."""
    return _CANONICAL.encode(data)


# The three tables of a ledger, the same in SQLite and PostgreSQL. Rows are added and never changed.

VERSION, READABLE_VERSIONS = 2, (1, 2)
"""The version of new ledgers, and those that can be read. From version 2 on a dataset may have several declarations,
and a charge an exact fraction such as 1/3. A ledger of version 1 stays one, but gets such entries, too: every entry has
the resulting sums, so software that reads only version 1 adds further charges to the right sums."""
METADATA = MetaData()
LEDGER = Table(
    "tightrope_ledger",
    METADATA,
    Column("id", Text, primary_key=True),
    Column("version", BigInteger, nullable=False),
)
ENTRIES = Table(
    "tightrope_entries",
    METADATA,
    Column("number", BigInteger, primary_key=True, autoincrement=False),
    Column("dataset", Text, nullable=False),
    Column("kind", Text, nullable=False),
    Column("key", Text),
    Column("time", Text, nullable=False),
    Column("body", Text, nullable=False),
    Column("state", Text, nullable=False),
    Column("previous", Text, nullable=False),
    Column("hash", Text, nullable=False),
    UniqueConstraint("dataset", "kind", "key", name="tightrope_once"),
    Index("tightrope_of_dataset", "dataset", "number"),
)
DOCUMENTS = Table(
    "tightrope_documents",
    METADATA,
    Column("hash", Text, primary_key=True),
    Column("content", Text, nullable=False),
)
"""Longer texts (noise records, charged answers) under their SHA-256."""
REFUSAL = "rows of a ledger are never changed"
"""The error of the triggers."""
ROWS_PER_FETCH = 10_000
CORRUPT = "run tightrope ledger check, and put the newest copy back"
"""The remedy for an entry that was changed after it was written."""


def _ddl_statement(statement: str) -> DDL:
    return DDL(statement)  # type: ignore[no-untyped-call]  # SQLAlchemy has no types for it


def _add_immutability_triggers() -> None:
    """Create triggers with the tables: updates and deletions, such as by accident, fail with ``REFUSAL``."""
    refuse_function = _ddl_statement(
        "CREATE OR REPLACE FUNCTION tightrope_refuse() RETURNS trigger LANGUAGE plpgsql AS "
        f"$$ BEGIN RAISE EXCEPTION '{REFUSAL}'; END $$"
    )
    event.listen(METADATA, "before_create", refuse_function.execute_if(dialect="postgresql"))
    for table in (LEDGER, ENTRIES, DOCUMENTS):
        for operation in ("UPDATE", "DELETE"):
            trigger = f"CREATE TRIGGER {table.name}_{operation.lower()} BEFORE {operation} ON {table.name}"
            sqlite_trigger = _ddl_statement(f"{trigger} BEGIN SELECT RAISE(ABORT, '{REFUSAL}'); END")
            event.listen(table, "after_create", sqlite_trigger.execute_if(dialect="sqlite"))
            postgres_trigger = _ddl_statement(f"{trigger} EXECUTE FUNCTION tightrope_refuse()")
            event.listen(table, "after_create", postgres_trigger.execute_if(dialect="postgresql"))


_add_immutability_triggers()


def create_ledger_id(connection: Connection) -> None:
    """Write the random name of a new ledger, which distinguishes it from every other ledger."""
    connection.execute(insert(LEDGER), {"id": secrets.token_hex(16), "version": VERSION})


def ledger_id(connection: Connection) -> str:
    """Return the ledger's random name; ``LedgerError`` for a ledger of an unknown version."""
    rows = connection.execute(select(LEDGER)).all()
    if len(rows) != 1:
        raise LedgerError("this is not a ledger; name another one")
    if rows[0].version not in READABLE_VERSIONS:
        known = " and ".join(map(str, READABLE_VERSIONS))
        raise LedgerError(
            f"this ledger is of version {rows[0].version}, and this Tightrope reads versions {known}; install a newer "
            f"Tightrope"
        )
    return str(rows[0].id)


def last_entry(connection: Connection) -> Entry | None:
    """Return the last entry; None for an empty ledger."""
    return _checked_entry(connection, select(ENTRIES).order_by(ENTRIES.c.number.desc()).limit(1))


def entry_at(connection: Connection, number: int) -> Entry | None:
    """Return the entry with this number; None if the ledger does not contain it."""
    return _checked_entry(connection, select(ENTRIES).where(ENTRIES.c.number == number))


def last_entry_of_dataset(connection: Connection, dataset: str) -> Entry | None:
    """Return a dataset's last entry, which contains its current state.

    Raises ``LedgerError`` if the table has a later entry of the dataset, which an outdated index page would hide.
    """
    query = select(ENTRIES).where(ENTRIES.c.dataset == dataset)
    entry = _checked_entry(connection, query.order_by(ENTRIES.c.number.desc()).limit(1))
    _refuse_hidden_entries(connection, 0 if entry is None else entry.number, ENTRIES.c.dataset.concat("") == dataset)
    return entry


def entry_after_charge(connection: Connection, dataset: str, kind: str, charged: Entry) -> Entry | None:
    """Return the entry of a kind that follows a charge under its key (answers, or a second reading); None if missing.

    Raises ``LedgerError`` if the table has the entry, but an outdated index page hides it.
    """
    entry = entry_by_key(connection, dataset, kind, str(charged.key))
    if entry is None:
        matches = (ENTRIES.c.dataset.concat("") == dataset) & (ENTRIES.c.kind.concat("") == kind)
        _refuse_hidden_entries(connection, charged.number, matches & (ENTRIES.c.key.concat("") == charged.key))
    return entry


def entry_by_key(connection: Connection, dataset: str, kind: str, key: str) -> Entry | None:
    """Return the only entry of this kind under a key; None if there is none yet."""
    matches = (ENTRIES.c.dataset == dataset) & (ENTRIES.c.kind == kind) & (ENTRIES.c.key == key)
    return _checked_entry(connection, select(ENTRIES).where(matches))


def list_entries(connection: Connection, dataset: str | None = None) -> Iterator[Entry]:
    """Return all entries, or the entries of one dataset, in order; unchecked."""
    query = select(ENTRIES).order_by(ENTRIES.c.number)
    query = query if dataset is None else query.where(ENTRIES.c.dataset == dataset)
    for row in connection.execute(query.execution_options(yield_per=ROWS_PER_FETCH)):
        yield Entry(*row)


def entries_by_kind(connection: Connection, kind: str, dataset: str | None = None) -> list[Entry]:
    """Return all entries of a kind, or those of one dataset, in order; unchecked."""
    query = select(ENTRIES).where(ENTRIES.c.kind == kind).order_by(ENTRIES.c.number)
    query = query if dataset is None else query.where(ENTRIES.c.dataset == dataset)
    return [Entry(*row) for row in connection.execute(query)]


def read_text(connection: Connection, name: str) -> str:
    """Return a longer text by its hash; ``LedgerError`` if it was changed."""
    content = connection.execute(select(DOCUMENTS.c.content).where(DOCUMENTS.c.hash == name)).scalar()
    if content is None or sha256_hex(content) != name:
        raise LedgerError(f"a document of the ledger was changed after it was written; {CORRUPT}")
    return str(content)


def texts_by_hash(connection: Connection) -> dict[str, str]:
    """Return all longer texts by their hashes; unchecked."""
    return {row.hash: row.content for row in connection.execute(select(DOCUMENTS))}


def checked_texts(connection: Connection) -> set[str]:
    """Return the hashes of all longer texts that were not changed since they were written."""
    rows = connection.execute(select(DOCUMENTS).execution_options(yield_per=100))
    return {row.hash for row in rows if sha256_hex(row.content) == row.hash}


def store_text(connection: Connection, content: str) -> str:
    """Write a longer text unless the ledger already contains it, and return its hash."""
    name = sha256_hex(content)
    stored = connection.execute(select(DOCUMENTS.c.hash).where(DOCUMENTS.c.hash == name)).scalar()
    if stored is None:
        connection.execute(insert(DOCUMENTS), {"hash": name, "content": content})
    read_text(connection, name)
    return name


def append_entry(
    connection: Connection, dataset: str, kind: str, key: str | None, time: str, body_and_state: tuple[Any, Any]
) -> Entry:
    """Append and return an entry; the transaction has to exclude other writers."""
    last = last_entry(connection)
    previous = genesis_hash(ledger_id(connection)) if last is None else last.hash
    number = 1 if last is None else last.number + 1
    body, state = (text if isinstance(text, str) else canonical_json(text) for text in body_and_state)
    without_hash = Entry(number, dataset, kind, key, time, body, state, previous, "")
    entry = Entry(number, dataset, kind, key, time, body, state, previous, without_hash.expected_hash)
    connection.execute(insert(ENTRIES), {column.name: getattr(entry, column.name) for column in ENTRIES.columns})
    # Read the entry again: a trigger or a rule, even a deferred one, may have dropped or changed it.
    if connection.dialect.name == "postgresql":
        connection.exec_driver_sql("SET CONSTRAINTS ALL IMMEDIATE")
    rows = connection.execute(select(ENTRIES).where(ENTRIES.c.number == entry.number)).all()
    if [Entry(*row) for row in rows] != [entry]:
        raise LedgerError(
            f"the database did not keep entry {entry.number} as it was written: a trigger, a rule or a policy of "
            f"another user is on the table {ENTRIES.name}; remove it; nothing was spent"
        )
    return entry


def _refuse_hidden_entries(connection: Connection, number: int, condition: ColumnElement[bool]) -> None:
    """Raise ``LedgerError`` if an entry after this number is missing or matches the condition, without any index."""
    query = select(func.count(), func.sum(func.length(ENTRIES.c.hash)), func.sum(case((condition, 1), else_=0)))
    count, hash_characters, hidden = connection.execute(query.where(ENTRIES.c.number > number)).one()
    last = last_entry(connection)
    if hidden or (count or 0) != (0 if last is None else last.number) - number or (hash_characters or 0) != 64 * count:
        raise LedgerError(f"an index of the ledger is older than its entries; {CORRUPT}")


def _checked_entry(connection: Connection, query: Any) -> Entry | None:
    """Return the entry of a row; ``LedgerError`` if it was changed after it was written."""
    row = connection.execute(query).first()
    if row is None:
        return None
    entry = Entry(*row)
    if not entry.hash_matches:
        raise LedgerError(f"entry {entry.number} of the ledger was changed after it was written; {CORRUPT}")
    return entry
