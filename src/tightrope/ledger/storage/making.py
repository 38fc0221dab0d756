"""New ledgers: a file appears whole or not at all; the tables of a server are made once."""

from __future__ import annotations

import os
import sqlite3
from contextlib import closing, suppress
from pathlib import Path

from sqlalchemy import inspect

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
    """The tables of a ledger in a database: found, or made where that is wished for."""
    with store.reading() as connection:
        there = inspect(connection).has_table(LEDGER.name)
    if there:
        return
    if not create:
        raise InputError("ledger", store.name, "a database with a ledger", "the first release makes one")
    with store.writing() as connection:
        if not inspect(connection).has_table(LEDGER.name):
            METADATA.create_all(connection)
            chain.begun(connection)


def _sync(folder: Path) -> None:
    """The new name, on disk."""
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    except OSError as error:
        raise LedgerError(f"{folder} cannot be written ({error.strerror})") from None
    finally:
        os.close(handle)
