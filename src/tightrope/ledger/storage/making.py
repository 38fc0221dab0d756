"""New ledgers: a file appears whole or not at all; the tables of a server are made once."""

from __future__ import annotations

import os
import sqlite3
from contextlib import closing, suppress
from pathlib import Path

from sqlalchemy import Connection, text

from tightrope.errors import InputError, LedgerError
from tightrope.ledger.storage import chain
from tightrope.ledger.storage.places import part_name
from tightrope.ledger.storage.store import Store
from tightrope.ledger.storage.tables import LEDGER, METADATA


def file(path: Path) -> None:
    """A new ledger at a path, unless another process is quicker."""
    part = path.with_name(part_name(path))
    try:
        part.touch(exist_ok=False)
        _fill(part)
        with suppress(FileExistsError):
            os.link(part, path)
        _sync(path.parent)
    except sqlite3.Error as error:
        raise LedgerError(f"no ledger could be made at {path} ({error})") from None
    except OSError as error:
        expected = f"in a folder that can be written to ({error.strerror})"
        raise InputError("ledger", str(path), expected, "name another file") from None
    finally:
        for name in (part.name, f"{part.name}-wal", f"{part.name}-shm", f"{part.name}-journal"):
            part.with_name(name).unlink(missing_ok=True)


def _fill(part: Path) -> None:
    _ahead(part)
    store = Store(part)
    try:
        with store.writing() as connection:
            METADATA.create_all(connection)
            chain.begun(connection)
    finally:
        store.close()


def _ahead(part: Path) -> None:
    """A log ahead of the file, which the file remembers: one wait for the disk an entry, and readers never wait."""
    with closing(sqlite3.connect(part, isolation_level=None)) as connection:
        connection.execute("PRAGMA journal_mode=WAL")


def schema(store: Store, *, create: bool) -> None:
    """The tables of a ledger in a database: found, or made where that is wished for; ``store`` then names their schema.

    Raises ``LedgerError`` where a ledger lies in a schema that the role's ``search_path`` does not lead to, where
    tables are called like those of a ledger and are none, and where they would not outlive a crash.
    """
    with store.reading() as connection:
        found = _schema_found(connection, store)
    if found is None and not create:
        raise InputError("ledger", store.name, "a database with a ledger", "the first release makes one")
    if found is None:
        with store.writing() as connection:
            found = _schema_found(connection, store) or _made(connection, store)
    store.schema = found
    with store.reading() as connection:
        refuse_altered(connection, store)


def refuse_altered(connection: Connection, store: Store) -> None:
    """``LedgerError`` unless all tables in PostgreSQL are ordinary ones whose rows outlive a crash of the server."""
    if store.is_file:
        return
    ordinary = sum(
        kind == "r" and lasts == "p" for _, place, kind, lasts, _ in _tables(connection) if place == store.schema
    )
    if ordinary != len(METADATA.tables):
        raise LedgerError(
            f"the tables of the ledger {store.name} are not those that were made: each of {', '.join(METADATA.tables)} "
            f"has to be an ordinary table of the schema {store.schema!r} (no view, not UNLOGGED, not temporary)"
        )


def _schema_found(connection: Connection, store: Store) -> str | None:
    """The schema of the ledger that the role's ``search_path`` leads to; None where the database has no ledger."""
    places = {place: visible for name, place, _, _, visible in _tables(connection) if name == LEDGER.name}
    found = next((place for place, visible in places.items() if visible), None)
    if found is None and places:
        raise LedgerError(
            f"the ledger of {store.name} lies in the schema {min(places)!r}, to which the search_path of this role "
            f"does not lead; set it (ALTER ROLE ... SET search_path = ...), or another ledger would be begun"
        )
    return found


def _made(connection: Connection, store: Store) -> str:
    """The schema in which the tables were made now."""
    found = connection.scalar(text("SELECT current_schema()"))
    if found is None:
        raise LedgerError(f"the role of {store.name} has no schema to make tables in; set its search_path")
    taken = sorted(name for name, place, *_ in _tables(connection) if place == found)
    if taken:
        remedy = "somebody else made it: move it, or use another database"
        raise LedgerError(f"the database of {store.name} has a {taken[0]} and no ledger; {remedy}")
    METADATA.create_all(connection)
    chain.begun(connection)
    return str(found)


def _tables(connection: Connection) -> list[tuple[str, str, str, str, bool]]:
    """What is called like a table of a ledger: its name, schema, kind, how long it lasts, whether it is on the path."""
    chosen = text(
        "SELECT c.relname, n.nspname, c.relkind::text, c.relpersistence::text, pg_catalog.pg_table_is_visible(c.oid) "
        "FROM pg_catalog.pg_class c JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace "
        "WHERE c.relname = ANY(:names)"
    )
    return [tuple(row) for row in connection.execute(chosen, {"names": list(METADATA.tables)})]


def _sync(folder: Path) -> None:
    """The new name, on disk."""
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    except OSError as error:
        raise LedgerError(f"{folder} cannot be written ({error.strerror})") from None
    finally:
        os.close(handle)
