"""Transactions: one writer at a time, on disk before they end, in SQLite and in PostgreSQL alike."""

from __future__ import annotations

import os
import sqlite3
import threading
import weakref
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from sqlalchemy import Connection, Engine, create_engine, event, text
from sqlalchemy.exc import DBAPIError, NoSuchModuleError, SQLAlchemyError

from tightrope.errors import LedgerError, MissingExtraError
from tightrope.ledger.storage.places import checked_url

PATIENCE = 60
"""Seconds that a charge waits for others."""
LOCK = 0x7469676874726F70
"""The advisory lock of PostgreSQL that every writer takes: "tightrop"."""
PRAGMAS = ("PRAGMA synchronous=FULL", "PRAGMA foreign_keys=ON", "PRAGMA trusted_schema=OFF")


class LostError(LedgerError):
    """The connection ended, and nobody knows yet whether the transaction did."""


class Store:
    """A database of a ledger. Connections belong to the process that opened them; a forked child opens its own."""

    def __init__(self, place: Path | str) -> None:
        self.place, self.is_file = place, isinstance(place, Path)
        self._process, self._turn = os.getpid(), threading.Lock()
        self._engine = self._opened()

    @property
    def name(self) -> str:
        """The file, or the URL without its password."""
        return str(self.place) if self.is_file else self._engine.url.render_as_string(hide_password=True)

    @contextmanager
    def writing(self) -> Iterator[Connection]:
        """A transaction that no other writer overlaps; on disk when it ends, undone where something is raised."""
        with self._transaction({"tightrope_writes": True}) as connection:
            if not self.is_file:
                connection.execute(text("SELECT pg_advisory_xact_lock(:lock)"), {"lock": LOCK})
            yield connection

    @contextmanager
    def reading(self) -> Iterator[Connection]:
        """A transaction that sees one moment and writes nothing."""
        options: dict[str, Any] = {} if self.is_file else {"isolation_level": "REPEATABLE READ"}
        with self._transaction(options) as connection:
            yield connection

    def close(self) -> None:
        """Let go of all connections."""
        self._engine.dispose()

    @contextmanager
    def _transaction(self, options: dict[str, Any]) -> Iterator[Connection]:
        with self._telling(), self._mine().connect().execution_options(**options) as connection, connection.begin():
            yield connection

    @contextmanager
    def _telling(self) -> Iterator[None]:
        """Errors of the database as errors of ours."""
        try:
            yield
        except SQLAlchemyError as error:
            raise self._told(error) from None
        except sqlite3.Error as error:
            raise self._told_lite(error) from None

    def _mine(self) -> Engine:
        """The engine of this process: connections of a parent are left alone."""
        with self._turn:
            if os.getpid() != self._process:
                self._engine.dispose(close=False)
                self._process, self._engine = os.getpid(), self._opened()
            return self._engine

    def _opened(self) -> Engine:
        engine = _file_engine(self.place) if isinstance(self.place, Path) else _url_engine(self.place)
        weakref.finalize(self, _closed_by, engine, os.getpid())
        return engine

    def _told(self, error: SQLAlchemyError) -> LedgerError:
        """An error of ours, without the statement and its values."""
        origin = getattr(error, "orig", None)
        if isinstance(origin, sqlite3.Error):
            return self._told_lite(origin)
        if isinstance(error, DBAPIError) and (error.connection_invalidated or _is_lost(origin)):
            return LostError(f"the connection to the ledger {self.name} was lost")
        why = type(origin or error).__name__
        return LedgerError(f"the ledger {self.name} cannot be used ({why})")

    def _told_lite(self, error: sqlite3.Error) -> LedgerError:
        why = str(error).partition(":")[0]
        remedy = next((said for part, said in REMEDIES.items() if part in why), "see docs/ledger.md")
        return LedgerError(f"the ledger {self.name} cannot be used ({why}); {remedy}")


REMEDIES = {
    "locked": "another program holds it; try again",
    "readonly": "let this user write to the file and to its folder",
    "full": "make room on the disk",
    "disk I/O": "see whether the disk is full or failing",
    "malformed": "put the newest copy back; tightrope ledger check says what still holds",
    "not a database": "put the newest copy back, or name another file",
    "unable to open": "let this user read and write the file and its folder",
    "no such table": "this is a database, but no ledger; name another file",
    "never changed": "open another ledger",
}


def _is_lost(origin: object) -> bool:
    """Whether the server ended the connection: class 08 and 57 of its codes, or none."""
    code = getattr(origin, "sqlstate", None)
    return type(origin).__name__ in ("OperationalError", "AdminShutdown") and (code is None or code[:2] in ("08", "57"))


def _file_engine(path: Path) -> Engine:
    def connect() -> sqlite3.Connection:
        address = f"{path.as_uri()}?mode=rw"
        made = sqlite3.connect(address, uri=True, timeout=PATIENCE, isolation_level=None, check_same_thread=False)
        for pragma in PRAGMAS:
            made.execute(pragma)
        return made

    engine = create_engine("sqlite://", creator=connect, pool_size=1, max_overflow=64, poolclass=_queue())
    event.listen(engine, "begin", _begin)
    return engine


def _begin(connection: Connection) -> None:
    """Writers take the lock at once: none that read first has to give up later."""
    writes = connection.get_execution_options().get("tightrope_writes", False)
    connection.exec_driver_sql("BEGIN IMMEDIATE" if writes else "BEGIN")


def _queue() -> Any:
    from sqlalchemy.pool import QueuePool

    return QueuePool


def _url_engine(url: str) -> Engine:
    try:
        return create_engine(checked_url(url), pool_size=1, max_overflow=64, pool_pre_ping=True)
    except (ImportError, NoSuchModuleError):
        raise MissingExtraError("psycopg", "postgres") from None


def _closed_by(engine: Engine, process: int) -> None:
    if os.getpid() == process:
        engine.dispose()
