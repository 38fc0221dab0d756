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
from tightrope.ledger.storage.places import checked_url, refuse_other_names

PATIENCE = 60
"""Seconds that a charge waits for others."""
LOCK = 0x7469676874726F70
"""The advisory lock of PostgreSQL that every writer takes: "tightrop"."""
SETTINGS = text(
    "SELECT set_config('row_security', 'off', true), set_config('lock_timeout', :patience, true), "
    "set_config('synchronous_commit', CASE current_setting('synchronous_commit') WHEN 'off' THEN 'on' "
    "ELSE current_setting('synchronous_commit') END, true)"
)
"""For each transaction of PostgreSQL, whatever its role or database has set: a policy that hides rows is an error, a
lock is waited for as long as in SQLite, and a commit is on disk when it returns."""
PRAGMAS = ("PRAGMA synchronous=FULL", "PRAGMA foreign_keys=ON", "PRAGMA trusted_schema=OFF")


class LostError(LedgerError):
    """The connection ended, and nobody knows yet whether the transaction did."""


class Store:
    """A database of a ledger. Connections belong to the process that opened them; a forked child opens its own."""

    def __init__(self, place: Path | str) -> None:
        self.place, self.is_file = place, isinstance(place, Path)
        self.schema: str | None = None
        """The schema of PostgreSQL that has the tables, from when it is found: all statements name it."""
        self._identity = _identity(place) if isinstance(place, Path) else None
        self._process, self._turn = os.getpid(), threading.Lock()
        self._engine = self._opened()

    @property
    def name(self) -> str:
        """The file, or the URL without its password."""
        return str(self.place) if self.is_file else self._engine.url.render_as_string(hide_password=True)

    @contextmanager
    def writing(self) -> Iterator[Connection]:
        """A transaction that no other writer overlaps; on disk when it ends, undone where something is raised."""
        isolation: dict[str, Any] = {} if self.is_file else {"isolation_level": "READ COMMITTED"}
        with self._transaction({"tightrope_writes": True, **isolation}) as connection:
            if not self.is_file:  # what is read after the lock has to see what the last writer wrote
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
        schema = {} if self.schema is None else {"schema_translate_map": {None: self.schema}}
        every = {**options, **schema}
        with self._telling(), self._mine().connect().execution_options(**every) as connection, connection.begin():
            if isinstance(self.place, Path):
                _refuse_replaced(self.place, self._identity)
            else:
                connection.execute(SETTINGS, {"patience": f"{PATIENCE}s"})
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
        except UnicodeError:
            raise LedgerError(
                f"the ledger {self.name} cannot hold these letters; use a database with the encoding UTF8"
            ) from None

    def _mine(self) -> Engine:
        """The engine of this process: connections of a parent are left alone."""
        with self._turn:
            if os.getpid() != self._process:
                self._engine.dispose(close=False)
                self._process, self._engine = os.getpid(), self._opened()
            return self._engine

    def _opened(self) -> Engine:
        lite = isinstance(self.place, Path)
        engine = _file_engine(Path(self.place), self._identity) if lite else _url_engine(str(self.place))
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
        remedy = f"; {POSTGRES_REMEDIES[why]}" if why in POSTGRES_REMEDIES else ""
        return LedgerError(f"the ledger {self.name} cannot be used ({why}){remedy}")

    def _told_lite(self, error: sqlite3.Error) -> LedgerError:
        why = str(error).partition(":")[0]
        remedy = next((said for part, said in REMEDIES.items() if part in why), "see docs/ledger.md")
        return LedgerError(f"the ledger {self.name} cannot be used ({why}); {remedy}")


POSTGRES_REMEDIES = {
    "InsufficientPrivilege": "let this role read and insert, and take policies (row-level security) off its tables",
    "LockNotAvailable": "another program holds it; try again",
    "ReadOnlySqlTransaction": "this server, or this role, may only read",
    "UntranslatableCharacter": "use a database with the encoding UTF8",
}
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


def _identity(path: Path) -> tuple[int, int, int]:
    """Which file a name leads to, and how many names that has."""
    try:
        found = path.stat()
    except OSError:
        return (0, 0, 0)
    return found.st_dev, found.st_ino, found.st_nlink


def _refuse_replaced(path: Path, opened: tuple[int, int, int] | None) -> None:
    """``LedgerError`` unless the name still leads to the file that was opened, ``InputError`` where it has another."""
    *file, names = _identity(path)
    if opened is None or file != list(opened[:2]):
        raise LedgerError(
            f"the ledger {path} was moved, replaced or removed while it was open, and what is written to the file "
            f"that was opened would be lost; put it back, or open the ledger again; nothing was spent"
        )
    if names > 1:
        refuse_other_names(path)


def _is_lost(origin: object) -> bool:
    """Whether the server ended the connection: class 08 and 57 of its codes, or none."""
    code = getattr(origin, "sqlstate", None)
    return type(origin).__name__ in ("OperationalError", "AdminShutdown") and (code is None or code[:2] in ("08", "57"))


def _file_engine(path: Path, opened: tuple[int, int, int] | None) -> Engine:
    def connect() -> sqlite3.Connection:
        address = f"{path.as_uri()}?mode=rw"
        made = sqlite3.connect(address, uri=True, timeout=PATIENCE, isolation_level=None, check_same_thread=False)
        for pragma in PRAGMAS:
            made.execute(pragma)
        _refuse_replaced(path, opened)
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
        letters = {"client_encoding": "utf8"}
        return create_engine(checked_url(url), pool_size=1, max_overflow=64, pool_pre_ping=True, connect_args=letters)
    except (ImportError, NoSuchModuleError):
        raise MissingExtraError("psycopg", "postgres") from None


def _closed_by(engine: Engine, process: int) -> None:
    if os.getpid() == process:
        engine.dispose()
