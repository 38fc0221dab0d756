"""The chain in a transaction: its head, entries by key, and one entry more."""

from __future__ import annotations

import secrets
from collections.abc import Iterator
from typing import Any

from sqlalchemy import ColumnElement, Connection, case, func, insert, select

from tightrope.errors import LedgerError
from tightrope.ledger.storage.entry import Entry, beginning, canonical, digest
from tightrope.ledger.storage.tables import DOCUMENTS, ENTRIES, LEDGER, VERSION

AT_ONCE = 10_000
CORRUPT = "run tightrope ledger check, and put the newest copy back"


def begun(connection: Connection) -> None:
    """A new ledger's name: random, so that no two are taken for one."""
    connection.execute(insert(LEDGER), {"id": secrets.token_hex(16), "version": VERSION})


def ledger_id(connection: Connection) -> str:
    """The ledger's name; ``LedgerError`` for one of another version."""
    rows = connection.execute(select(LEDGER)).all()
    if len(rows) != 1 or rows[0].version != VERSION:
        raise LedgerError(f"this is no ledger of version {VERSION}; name another one")
    return str(rows[0].id)


def head(connection: Connection) -> Entry | None:
    """The last entry."""
    return _one(connection, select(ENTRIES).order_by(ENTRIES.c.number.desc()).limit(1))


def at(connection: Connection, number: int) -> Entry | None:
    """The entry of this number."""
    return _one(connection, select(ENTRIES).where(ENTRIES.c.number == number))


def last_of(connection: Connection, dataset: str) -> Entry | None:
    """A dataset's last entry, which has its state.

    ``LedgerError`` where a later one is of the dataset, too: an older page of the index would hide it.
    """
    chosen = select(ENTRIES).where(ENTRIES.c.dataset == dataset)
    found = _one(connection, chosen.order_by(ENTRIES.c.number.desc()).limit(1))
    _refuse_hidden(connection, 0 if found is None else found.number, ENTRIES.c.dataset.concat("") == dataset)
    return found


def after_charge(connection: Connection, dataset: str, kind: str, charged: Entry) -> Entry | None:
    """The entry of a kind that was kept after a charge, under its key: its answers, or that its table is read again.

    ``LedgerError`` where an older page of the index would hide it.
    """
    found = of_key(connection, dataset, kind, str(charged.key))
    if found is None:
        mine = (ENTRIES.c.dataset.concat("") == dataset) & (ENTRIES.c.kind.concat("") == kind)
        _refuse_hidden(connection, charged.number, mine & (ENTRIES.c.key.concat("") == charged.key))
    return found


def of_key(connection: Connection, dataset: str, kind: str, key: str) -> Entry | None:
    """The entry of this kind under a key: there is at most one."""
    here = (ENTRIES.c.dataset == dataset) & (ENTRIES.c.kind == kind) & (ENTRIES.c.key == key)
    return _one(connection, select(ENTRIES).where(here))


def entries(connection: Connection, dataset: str | None = None) -> Iterator[Entry]:
    """All entries, or those of one dataset, in their order; not checked."""
    chosen = select(ENTRIES).order_by(ENTRIES.c.number)
    chosen = chosen if dataset is None else chosen.where(ENTRIES.c.dataset == dataset)
    for row in connection.execute(chosen.execution_options(yield_per=AT_ONCE)):
        yield Entry(*row)


def of_kind(connection: Connection, kind: str) -> list[Entry]:
    """All entries of a kind, in their order; not checked."""
    chosen = select(ENTRIES).where(ENTRIES.c.kind == kind).order_by(ENTRIES.c.number)
    return [Entry(*row) for row in connection.execute(chosen)]


def document(connection: Connection, name: str) -> str:
    """A longer text by its hash; ``LedgerError`` where it is not what it was."""
    found = connection.execute(select(DOCUMENTS.c.content).where(DOCUMENTS.c.hash == name)).scalar()
    if found is None or digest(found) != name:
        raise LedgerError(f"a document of the ledger is not what was written; {CORRUPT}")
    return str(found)


def documents(connection: Connection) -> dict[str, str]:
    """All longer texts by their hashes; not checked."""
    return {row.hash: row.content for row in connection.execute(select(DOCUMENTS))}


def whole_documents(connection: Connection) -> set[str]:
    """The hashes of all longer texts that are what was written."""
    rows = connection.execute(select(DOCUMENTS).execution_options(yield_per=100))
    return {row.hash for row in rows if digest(row.content) == row.hash}


def keep_document(connection: Connection, content: str) -> str:
    """Write a longer text, unless it is there, and say its hash."""
    name = digest(content)
    there = connection.execute(select(DOCUMENTS.c.hash).where(DOCUMENTS.c.hash == name)).scalar()
    if there is None:
        connection.execute(insert(DOCUMENTS), {"hash": name, "content": content})
    document(connection, name)
    return name


def append(connection: Connection, dataset: str, kind: str, key: str | None, time: str, said: tuple[Any, Any]) -> Entry:
    """One entry more, with its body and its state; in a transaction that no other writer overlaps."""
    last = head(connection)
    previous = beginning(ledger_id(connection)) if last is None else last.hash
    number = 1 if last is None else last.number + 1
    body, state = (text if isinstance(text, str) else canonical(text) for text in said)
    bare = Entry(number, dataset, kind, key, time, body, state, previous, "")
    entry = Entry(number, dataset, kind, key, time, body, state, previous, bare.expected_hash)
    connection.execute(
        insert(ENTRIES),
        {column.name: value for column, value in zip(ENTRIES.columns, _values(entry), strict=True)},
    )
    _refuse_unkept(connection, entry)
    return entry


def _refuse_unkept(connection: Connection, entry: Entry) -> None:
    """Read an entry again: a trigger or a rule may have dropped it or changed it, also one that waits for the end."""
    if connection.dialect.name == "postgresql":
        connection.exec_driver_sql("SET CONSTRAINTS ALL IMMEDIATE")
    rows = connection.execute(select(ENTRIES).where(ENTRIES.c.number == entry.number)).all()
    if [Entry(*row) for row in rows] != [entry]:
        raise LedgerError(
            f"the database did not keep entry {entry.number} as it was written: a trigger, a rule or a policy of "
            f"somebody else is on the table {ENTRIES.name}; take it off; nothing was spent"
        )


def _refuse_hidden(connection: Connection, number: int, mine: ColumnElement[bool]) -> None:
    """``LedgerError`` unless each entry after this number is there and none is ``mine``: read from the table itself."""
    chosen = select(func.count(), func.sum(func.length(ENTRIES.c.hash)), func.sum(case((mine, 1), else_=0)))
    count, letters, hidden = connection.execute(chosen.where(ENTRIES.c.number > number)).one()
    last = head(connection)
    if hidden or (count or 0) != (0 if last is None else last.number) - number or (letters or 0) != 64 * count:
        raise LedgerError(f"an index of the ledger is older than its entries; {CORRUPT}")


def _values(entry: Entry) -> tuple[Any, ...]:
    return (
        entry.number, entry.dataset, entry.kind, entry.key, entry.time, entry.body, entry.state, entry.previous,
        entry.hash,
    )  # fmt: skip


def _one(connection: Connection, chosen: Any) -> Entry | None:
    """The entry of a row; ``LedgerError`` where it is not what was written."""
    row = connection.execute(chosen).first()
    if row is None:
        return None
    entry = Entry(*row)
    if not entry.whole:
        raise LedgerError(f"entry {entry.number} of the ledger is not what was written; {CORRUPT}")
    return entry
