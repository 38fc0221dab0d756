"""The chain in a transaction: its head, entries by key, and one entry more."""

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

# An entry of the chain: what happened, what was spent after it, and the hash that holds it to the one before.

_CANONICAL = json.JSONEncoder(sort_keys=True, separators=(",", ":"), ensure_ascii=True, allow_nan=False)
DATASET, RESERVED, CHARGED, RETRIED, ANSWERED, REFUSED = KINDS = (
    "dataset",
    "reserved",
    "charged",
    "retried",
    "answered",
    "refused",
)


@dataclass(frozen=True)  # not slotted: body and state are parsed once, when they are asked for
class Entry:
    """The ``number``-th entry of a ledger. ``body`` and ``state`` are canonical JSON; ``key`` is None for a refusal."""

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
        """The body as data."""
        found: dict[str, Any] = json.loads(self.body)
        return found

    @cached_property
    def state_data(self) -> dict[str, Any]:
        """The dataset's state after the entry, as data."""
        found: dict[str, Any] = json.loads(self.state)
        return found

    @property
    def expected_hash(self) -> str:
        """The hash that the entry must have."""
        held = [self.number, self.dataset, self.kind, self.key, self.time, self.body, self.state, self.previous]
        return hashlib.sha256(_CANONICAL.encode(held).encode()).hexdigest()

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
    """SHA-256 of a text, in hexadecimal."""
    return hashlib.sha256(text.encode()).hexdigest()


def combined_digest(questions: str, recipe: str) -> str:
    """Return the digest of a whole plan from that of its questions, and its noise as text."""
    return sha256_hex(questions + sha256_hex(recipe))


def canonical_json(data: Any) -> str:
    """Return the data as canonical JSON: sorted keys, no spaces, ASCII."""
    return _CANONICAL.encode(data)


# The three tables of a ledger, the same in SQLite and PostgreSQL. Rows are added and never changed.

VERSION = 1
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
"""Longer texts – noise as data, answers that were paid – under their SHA-256."""
REFUSAL = "rows of a ledger are never changed"


def _ddl_statement(statement: str) -> DDL:
    return DDL(statement)  # type: ignore[no-untyped-call]  # SQLAlchemy has no types for it


FUNCTION = _ddl_statement(
    "CREATE OR REPLACE FUNCTION tightrope_refuse() RETURNS trigger LANGUAGE plpgsql AS "
    f"$$ BEGIN RAISE EXCEPTION '{REFUSAL}'; END $$"
)
event.listen(METADATA, "before_create", FUNCTION.execute_if(dialect="postgresql"))
# Triggers that refuse what an accident would do: updates and deletions.
for table in (LEDGER, ENTRIES, DOCUMENTS):
    for work in ("UPDATE", "DELETE"):
        before = f"CREATE TRIGGER {table.name}_{work.lower()} BEFORE {work} ON {table.name}"
        lite = _ddl_statement(f"{before} BEGIN SELECT RAISE(ABORT, '{REFUSAL}'); END")
        event.listen(table, "after_create", lite.execute_if(dialect="sqlite"))
        postgres = _ddl_statement(f"{before} EXECUTE FUNCTION tightrope_refuse()")
        event.listen(table, "after_create", postgres.execute_if(dialect="postgresql"))

AT_ONCE = 10_000
CORRUPT = "run tightrope ledger check, and put the newest copy back"


def create_ledger_id(connection: Connection) -> None:
    """A new ledger's name: random, so that no two are taken for one."""
    connection.execute(insert(LEDGER), {"id": secrets.token_hex(16), "version": VERSION})


def ledger_id(connection: Connection) -> str:
    """The ledger's name; ``LedgerError`` for one of another version."""
    rows = connection.execute(select(LEDGER)).all()
    if len(rows) != 1 or rows[0].version != VERSION:
        raise LedgerError(f"this is not a ledger of version {VERSION}; name another one")
    return str(rows[0].id)


def last_entry(connection: Connection) -> Entry | None:
    """The last entry."""
    return _checked_entry(connection, select(ENTRIES).order_by(ENTRIES.c.number.desc()).limit(1))


def entry_at(connection: Connection, number: int) -> Entry | None:
    """The entry of this number."""
    return _checked_entry(connection, select(ENTRIES).where(ENTRIES.c.number == number))


def last_entry_of_dataset(connection: Connection, dataset: str) -> Entry | None:
    """A dataset's last entry, which has its state.

    ``LedgerError`` where a later one is of the dataset, too: an older page of the index would hide it.
    """
    chosen = select(ENTRIES).where(ENTRIES.c.dataset == dataset)
    found = _checked_entry(connection, chosen.order_by(ENTRIES.c.number.desc()).limit(1))
    _refuse_hidden(connection, 0 if found is None else found.number, ENTRIES.c.dataset.concat("") == dataset)
    return found


def after_charge(connection: Connection, dataset: str, kind: str, charged: Entry) -> Entry | None:
    """The entry of a kind that was kept after a charge, under its key: its answers, or that its table is read again.

    ``LedgerError`` where an older page of the index would hide it.
    """
    found = entry_by_key(connection, dataset, kind, str(charged.key))
    if found is None:
        mine = (ENTRIES.c.dataset.concat("") == dataset) & (ENTRIES.c.kind.concat("") == kind)
        _refuse_hidden(connection, charged.number, mine & (ENTRIES.c.key.concat("") == charged.key))
    return found


def entry_by_key(connection: Connection, dataset: str, kind: str, key: str) -> Entry | None:
    """The entry of this kind under a key: there is at most one."""
    here = (ENTRIES.c.dataset == dataset) & (ENTRIES.c.kind == kind) & (ENTRIES.c.key == key)
    return _checked_entry(connection, select(ENTRIES).where(here))


def list_entries(connection: Connection, dataset: str | None = None) -> Iterator[Entry]:
    """Return all entries, or the entries of one dataset, in order; unchecked."""
    chosen = select(ENTRIES).order_by(ENTRIES.c.number)
    chosen = chosen if dataset is None else chosen.where(ENTRIES.c.dataset == dataset)
    for row in connection.execute(chosen.execution_options(yield_per=AT_ONCE)):
        yield Entry(*row)


def entries_by_kind(connection: Connection, kind: str) -> list[Entry]:
    """All entries of a kind, in their order; not checked."""
    chosen = select(ENTRIES).where(ENTRIES.c.kind == kind).order_by(ENTRIES.c.number)
    return [Entry(*row) for row in connection.execute(chosen)]


def read_text(connection: Connection, name: str) -> str:
    """Return a longer text by its hash; ``LedgerError`` if it was changed."""
    found = connection.execute(select(DOCUMENTS.c.content).where(DOCUMENTS.c.hash == name)).scalar()
    if found is None or sha256_hex(found) != name:
        raise LedgerError(f"a document of the ledger is not what was written; {CORRUPT}")
    return str(found)


def texts_by_hash(connection: Connection) -> dict[str, str]:
    """All longer texts by their hashes; not checked."""
    return {row.hash: row.content for row in connection.execute(select(DOCUMENTS))}


def checked_texts(connection: Connection) -> set[str]:
    """The hashes of all longer texts that are what was written."""
    rows = connection.execute(select(DOCUMENTS).execution_options(yield_per=100))
    return {row.hash for row in rows if sha256_hex(row.content) == row.hash}


def store_text(connection: Connection, content: str) -> str:
    """Write a longer text, unless it is there, and say its hash."""
    name = sha256_hex(content)
    there = connection.execute(select(DOCUMENTS.c.hash).where(DOCUMENTS.c.hash == name)).scalar()
    if there is None:
        connection.execute(insert(DOCUMENTS), {"hash": name, "content": content})
    read_text(connection, name)
    return name


def append_entry(
    connection: Connection, dataset: str, kind: str, key: str | None, time: str, said: tuple[Any, Any]
) -> Entry:
    """One entry more, with its body and its state; in a transaction that no other writer overlaps."""
    last = last_entry(connection)
    previous = genesis_hash(ledger_id(connection)) if last is None else last.hash
    number = 1 if last is None else last.number + 1
    body, state = (text if isinstance(text, str) else canonical_json(text) for text in said)
    bare = Entry(number, dataset, kind, key, time, body, state, previous, "")
    entry = Entry(number, dataset, kind, key, time, body, state, previous, bare.expected_hash)
    connection.execute(insert(ENTRIES), {column.name: getattr(entry, column.name) for column in ENTRIES.columns})
    # Read an entry again: a trigger or a rule may have dropped it or changed it, also one that waits for the end.
    if connection.dialect.name == "postgresql":
        connection.exec_driver_sql("SET CONSTRAINTS ALL IMMEDIATE")
    rows = connection.execute(select(ENTRIES).where(ENTRIES.c.number == entry.number)).all()
    if [Entry(*row) for row in rows] != [entry]:
        raise LedgerError(
            f"the database did not keep entry {entry.number} as it was written: a trigger, a rule or a policy of "
            f"another user is on the table {ENTRIES.name}; remove it; nothing was spent"
        )
    return entry


def _refuse_hidden(connection: Connection, number: int, mine: ColumnElement[bool]) -> None:
    """``LedgerError`` unless each entry after this number is there and none is ``mine``: read from the table itself."""
    chosen = select(func.count(), func.sum(func.length(ENTRIES.c.hash)), func.sum(case((mine, 1), else_=0)))
    count, letters, hidden = connection.execute(chosen.where(ENTRIES.c.number > number)).one()
    last = last_entry(connection)
    if hidden or (count or 0) != (0 if last is None else last.number) - number or (letters or 0) != 64 * count:
        raise LedgerError(f"an index of the ledger is older than its entries; {CORRUPT}")


def _checked_entry(connection: Connection, chosen: Any) -> Entry | None:
    """Return the entry of a row; ``LedgerError`` if it was changed after it was written."""
    row = connection.execute(chosen).first()
    if row is None:
        return None
    entry = Entry(*row)
    if not entry.hash_matches:
        raise LedgerError(f"entry {entry.number} of the ledger is not what was written; {CORRUPT}")
    return entry
