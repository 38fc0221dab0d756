"""Transactions of a ledger in SQLite or PostgreSQL: one writer at a time, on disk when they end."""

from __future__ import annotations

import datetime
import os
import secrets
import sqlite3
import threading
import time
import weakref
from collections.abc import Callable, Iterable, Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import Any, TypeVar

from sqlalchemy import Connection, Engine, create_engine, event, text
from sqlalchemy.exc import DBAPIError, NoSuchModuleError, SQLAlchemyError

from tightrope.errors import InputError, LedgerError, MissingExtraError
from tightrope.ledger import chain
from tightrope.ledger.chain import LEDGER, METADATA, Entry
from tightrope.ledger.places import HeadFile, checked_file, checked_url, is_url, refuse_hard_links

LOCK_TIMEOUT_SECONDS = 60
"""How long a charge waits for other writers."""
LOCK = 0x7469676874726F70
"""The advisory lock of PostgreSQL that every writer takes: "tightrop"."""
SETTINGS = text(
    "SELECT set_config('row_security', 'off', true), set_config('lock_timeout', :patience, true), "
    "set_config('synchronous_commit', CASE current_setting('synchronous_commit') WHEN 'off' THEN 'on' "
    "ELSE current_setting('synchronous_commit') END, true)"
)
"""Settings of each PostgreSQL transaction, overriding its role or database: a policy that hides rows is an error, the
lock timeout is that of SQLite, and a commit is on disk when it returns."""
PRAGMAS = ("PRAGMA synchronous=FULL", "PRAGMA foreign_keys=ON", "PRAGMA trusted_schema=OFF")


class MissingLedgerError(InputError):
    """The ledger does not exist yet."""


class LostError(LedgerError):
    """The connection was lost before the outcome of the transaction was confirmed."""


class Store:
    """The database of a ledger. Connections belong to the process that opened them; a forked child opens its own."""

    def __init__(self, place: Path | str) -> None:
        self.place, self.is_file = place, isinstance(place, Path)
        self.schema: str | None = None
        """The PostgreSQL schema of the tables, once ``find_or_create_schema`` has found it: all statements name it."""
        self._identity = _file_identity(place) if isinstance(place, Path) else None
        self._process, self._turn = os.getpid(), threading.Lock()
        self._engine = self._open_engine()

    @property
    def display_name(self) -> str:
        """The file, or the URL without its password."""
        return str(self.place) if self.is_file else self._engine.url.render_as_string(hide_password=True)

    @contextmanager
    def writing_transaction(self) -> Iterator[Connection]:
        """Open a transaction that excludes other writers; on disk when it ends, rolled back on an error."""
        isolation: dict[str, Any] = {} if self.is_file else {"isolation_level": "READ COMMITTED"}
        with self._open_transaction({"tightrope_writes": True, **isolation}) as connection:
            if not self.is_file:  # reads after the lock have to see what the last writer wrote
                connection.execute(text("SELECT pg_advisory_xact_lock(:lock)"), {"lock": LOCK})
            yield connection

    @contextmanager
    def reading_transaction(self) -> Iterator[Connection]:
        """Open a read-only transaction on one snapshot of the ledger."""
        options: dict[str, Any] = {} if self.is_file else {"isolation_level": "REPEATABLE READ"}
        with self._open_transaction(options) as connection:
            yield connection

    def close(self) -> None:
        """Close all connections."""
        self._engine.dispose()

    @contextmanager
    def _open_transaction(self, options: dict[str, Any]) -> Iterator[Connection]:
        schema = {} if self.schema is None else {"schema_translate_map": {None: self.schema}}
        all_options = {**options, **schema}
        with (
            self._translate_errors(),
            self._process_engine().connect().execution_options(**all_options) as connection,
            connection.begin(),
        ):
            if isinstance(self.place, Path):
                _refuse_replaced(self.place, self._identity)
            else:
                connection.execute(SETTINGS, {"patience": f"{LOCK_TIMEOUT_SECONDS}s"})
            yield connection

    @contextmanager
    def _translate_errors(self) -> Iterator[None]:
        """Raise errors of the database as ``LedgerError``."""
        try:
            yield
        except SQLAlchemyError as error:
            raise self._ledger_error(error) from None
        except sqlite3.Error as error:
            raise self._sqlite_error(error) from None
        except UnicodeError:
            raise LedgerError(
                f"the ledger {self.display_name} cannot store these characters; use a database with the encoding UTF8"
            ) from None

    def _process_engine(self) -> Engine:
        """Return the engine of this process; after a fork, a new one, without closing the parent's connections."""
        with self._turn:
            if os.getpid() != self._process:
                self._engine.dispose(close=False)
                self._process, self._engine = os.getpid(), self._open_engine()
            return self._engine

    def _open_engine(self) -> Engine:
        engine, process = _new_engine(self.place, self._identity), os.getpid()

        def dispose_in_process() -> None:
            """Close the connections, but only in the process that opened them; must not refer to the store."""
            if os.getpid() == process:
                engine.dispose()

        weakref.finalize(self, dispose_in_process)
        return engine

    def _ledger_error(self, error: SQLAlchemyError) -> LedgerError:
        """Return a ``LedgerError`` without the statement and its values."""
        origin = getattr(error, "orig", None)
        if isinstance(origin, sqlite3.Error):
            return self._sqlite_error(origin)
        # The server ended the connection: class 08 and 57 of its codes, or no code.
        code = getattr(origin, "sqlstate", None)
        ended = type(origin).__name__ in ("OperationalError", "AdminShutdown") and (
            code is None or code[:2] in ("08", "57")
        )
        if isinstance(error, DBAPIError) and (error.connection_invalidated or ended):
            return LostError(f"the connection to the ledger {self.display_name} was lost")
        why = type(origin or error).__name__
        remedy = f"; {POSTGRES_REMEDIES[why]}" if why in POSTGRES_REMEDIES else ""
        return LedgerError(f"the ledger {self.display_name} cannot be used ({why}){remedy}")

    def _sqlite_error(self, error: sqlite3.Error) -> LedgerError:
        why = str(error).partition(":")[0]
        remedy = next((advice for part, advice in REMEDIES.items() if part in why), "see docs/ledger.md")
        return LedgerError(f"the ledger {self.display_name} cannot be used ({why}); {remedy}")


POSTGRES_REMEDIES = {
    "InsufficientPrivilege": "let this role read and insert, and remove row-level security policies from its tables",
    "LockNotAvailable": "another program has locked it; try again",
    "ReadOnlySqlTransaction": "this server, or this role, is read-only",
    "UntranslatableCharacter": "use a database with the encoding UTF8",
}
REMEDIES = {
    "locked": "another program has locked it; try again",
    "readonly": "let this user write to the file and to its folder",
    "full": "make room on the disk",
    "disk I/O": "check whether the disk is full or failing",
    "malformed": "restore the newest copy; tightrope ledger check lists the problems",
    "not a database": "restore the newest copy, or choose another file",
    "unable to open": "let this user read and write the file and its folder",
    "no such table": "this is a database without a ledger; choose another file",
    "never changed": "open another ledger",
}


def _file_identity(path: Path) -> tuple[int, int, int]:
    """Return the device, the inode and the number of hard links of the file; zeros if it is missing."""
    try:
        status = path.stat()
    except OSError:
        return (0, 0, 0)
    return status.st_dev, status.st_ino, status.st_nlink


def _refuse_replaced(path: Path, opened: tuple[int, int, int] | None) -> None:
    """Raise ``LedgerError`` unless the name still refers to the opened file, ``InputError`` for a second hard link."""
    *file, names = _file_identity(path)
    if opened is None or file != list(opened[:2]):
        raise LedgerError(
            f"the ledger {path} was moved, replaced or removed while it was open, so new entries would be lost; put it "
            f"back, or open the ledger again; nothing was spent"
        )
    if names > 1:
        refuse_hard_links(path)


def _new_engine(place: Path | str, opened: tuple[int, int, int] | None) -> Engine:
    if isinstance(place, str):
        try:
            encoding = {"client_encoding": "utf8"}
            return create_engine(
                checked_url(place), pool_size=1, max_overflow=64, pool_pre_ping=True, connect_args=encoding
            )
        except (ImportError, NoSuchModuleError):
            raise MissingExtraError("psycopg", "postgres") from None

    def open_connection() -> sqlite3.Connection:
        address = f"{place.as_uri()}?mode=rw"
        connection = sqlite3.connect(
            address, uri=True, timeout=LOCK_TIMEOUT_SECONDS, isolation_level=None, check_same_thread=False
        )
        for pragma in PRAGMAS:
            connection.execute(pragma)
        _refuse_replaced(place, opened)
        return connection

    def begin_immediately(connection: Connection) -> None:
        """Take the write lock at the start of a writing transaction: SQLite could refuse it after a first read."""
        writes = connection.get_execution_options().get("tightrope_writes", False)
        connection.exec_driver_sql("BEGIN IMMEDIATE" if writes else "BEGIN")

    from sqlalchemy.pool import QueuePool

    engine = create_engine("sqlite://", creator=open_connection, pool_size=1, max_overflow=64, poolclass=QueuePool)
    event.listen(engine, "begin", begin_immediately)
    return engine


def create_file_store(path: Path) -> None:
    """Create a ledger file, complete or not at all; keep the existing one if another process was faster."""
    part = path.with_name(f".{path.name}.{secrets.token_hex(4)}.part")
    try:
        part.touch(exist_ok=False)
        _fill_file(part)
        with suppress(FileExistsError):
            os.link(part, path)
        _sync_folder(path.parent)
    except sqlite3.Error as error:
        raise LedgerError(f"the ledger {path} could not be created ({error})") from None
    except OSError as error:
        text = f"{path} cannot be created ({error.strerror}); choose another file"
        raise InputError.from_text("ledger", text) from None
    finally:
        for name in (part.name, f"{part.name}-wal", f"{part.name}-shm", f"{part.name}-journal"):
            part.with_name(name).unlink(missing_ok=True)


def _fill_file(part: Path) -> None:
    """Create the tables. A separate function, so that the store is deleted, not only closed, before linking."""
    # Write-ahead logging, a setting that the file stores: an entry needs one disk sync, and readers never wait.
    with closing(sqlite3.connect(part, isolation_level=None)) as connection:
        connection.execute("PRAGMA journal_mode=WAL")
    store = Store(part)
    try:
        with store.writing_transaction() as connection:
            METADATA.create_all(connection)
            chain.create_ledger_id(connection)
    finally:
        store.close()


def _sync_folder(folder: Path) -> None:
    """Write the new name to disk. A separate function, so that tests can kill the process between its two names."""
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    except OSError as error:
        raise LedgerError(f"{folder} cannot be written ({error.strerror})") from None
    finally:
        os.close(handle)


def find_or_create_schema(store: Store, *, create: bool) -> None:
    """Find the tables of a ledger in a database, or create them on request, and set their schema in ``store``.

    Raises ``LedgerError`` if a ledger lies in a schema outside the role's ``search_path``, if other
    tables have the names of a ledger's tables, and if they would not survive a crash.
    """
    with store.reading_transaction() as connection:
        found = _schema_found(connection, store)
    if found is None and not create:
        text = f"{store.display_name} has no ledger; the first release creates it"
        raise MissingLedgerError.from_text("ledger", text)
    if found is None:
        with store.writing_transaction() as connection:
            found = _schema_found(connection, store) or _create_tables(connection, store)
    store.schema = found
    with store.reading_transaction() as connection:
        refuse_altered_tables(connection, store)


def refuse_altered_tables(connection: Connection, store: Store) -> None:
    """Raise ``LedgerError`` unless all tables in PostgreSQL are ordinary ones, whose rows survive a crash."""
    if store.is_file:
        return
    ordinary = sum(
        kind == "r" and persistence == "p"
        for _, schema, kind, persistence, _ in _ledger_table_facts(connection)
        if schema == store.schema
    )
    if ordinary != len(METADATA.tables):
        raise LedgerError(
            f"the tables of the ledger {store.display_name} were replaced: each of {', '.join(METADATA.tables)} has to "
            f"be an ordinary table of the schema {store.schema!r} (no view, not UNLOGGED, not temporary)"
        )


def _schema_found(connection: Connection, store: Store) -> str | None:
    """Return the ledger's schema on the role's ``search_path``; None if the database has no ledger."""
    schemas = {
        schema: visible for name, schema, _, _, visible in _ledger_table_facts(connection) if name == LEDGER.name
    }
    found = next((schema for schema, visible in schemas.items() if visible), None)
    if found is None and schemas:
        raise LedgerError(
            f"the ledger of {store.display_name} is in the schema {min(schemas)!r}, which is not on the search_path of "
            f"this role; add it (ALTER ROLE ... SET search_path = ...), or a second ledger would be created"
        )
    return found


def _create_tables(connection: Connection, store: Store) -> str:
    """Create the tables in the role's current schema, and return its name."""
    schema = connection.scalar(text("SELECT current_schema()"))
    if schema is None:
        raise LedgerError(f"the role of {store.display_name} has no schema to create tables in; set its search_path")
    taken = sorted(name for name, place, *_ in _ledger_table_facts(connection) if place == schema)
    if taken:
        remedy = "move the table, or use another database"
        raise LedgerError(f"the database of {store.display_name} has another table named {taken[0]!r}; {remedy}")
    METADATA.create_all(connection)
    chain.create_ledger_id(connection)
    return str(schema)


def _ledger_table_facts(connection: Connection) -> list[tuple[str, str, str, str, bool]]:
    """Return the facts of tables named like a ledger's: name, schema, kind, persistence, whether on the path."""
    query = text(
        "SELECT c.relname, n.nspname, c.relkind::text, c.relpersistence::text, pg_catalog.pg_table_is_visible(c.oid) "
        "FROM pg_catalog.pg_class c JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace "
        "WHERE c.relname = ANY(:names)"
    )
    return [tuple(row) for row in connection.execute(query, {"names": list(METADATA.tables)})]


Result = TypeVar("Result")
WriteResult = tuple[Result, Entry | None]
"""The result of a writing transaction, and the last entry that it wrote; None if it wrote none."""
MAX_TRIES, PAUSE_SECONDS = 12, 0.5
"""Number of tries of a transaction after lost connections, and the pause between them: a server may restart."""


class EntryBook:
    """The chain of entries in a file or a database; ``create`` makes a new one if it does not exist.

    Raises ``InputError`` if the ledger does not exist or its location is not allowed, ``LedgerError`` if it cannot be
    read or lacks the entry that its head file records.
    """

    def __init__(self, place: str | os.PathLike[str], *, create: bool, clock: Callable[[], str] | None) -> None:
        where = str(place) if is_url(place) else checked_file(place)
        self._head_file = HeadFile(where) if isinstance(where, Path) else None
        if self._head_file is not None:
            self._head_file.require_existing_ledger()
        if isinstance(where, Path) and not os.path.exists(where):  # noqa: PTH110 - returns False without permission
            if not create:
                raise MissingLedgerError.from_text("ledger", f"{place} does not exist; the first release creates it")
            create_file_store(where)
        self._store = Store(where)
        self._clock = clock or (lambda: datetime.datetime.now(datetime.UTC).isoformat(timespec="milliseconds"))
        if not self._store.is_file:
            find_or_create_schema(self._store, create=create)
        self.id = self.read_transaction(chain.ledger_id)
        """The ledger's random name, set when it was created."""

    @property
    def display_name(self) -> str:
        """The file, or the URL without its password."""
        return self._store.display_name

    @property
    def is_file(self) -> bool:
        """True if the ledger is a file, with a head file next to it."""
        return self._head_file is not None

    def list_entries(self, dataset: str | None = None) -> list[Entry]:
        """Return all entries, or the entries of one dataset, in order; unchecked."""
        return self.read_transaction(lambda connection: list(chain.list_entries(connection, dataset)))

    def entries_of_kind(self, kind: str) -> list[Entry]:
        """Return all entries of a kind in order; unchecked."""
        return self.read_transaction(lambda connection: chain.entries_by_kind(connection, kind))

    def iterate_entries(self, dataset: str | None = None) -> Iterator[Entry]:
        """Yield all entries, or the entries of one dataset, from one snapshot of the ledger, in batches; unchecked."""
        with self._store.reading_transaction() as connection:
            yield from chain.list_entries(connection, dataset)

    def texts_by_hash(self) -> dict[str, str]:
        """Return every longer text by its hash; unchecked."""
        return self.read_transaction(chain.texts_by_hash)

    def read_texts(self, names: Iterable[str]) -> dict[str, str]:
        """Return the longer texts with these hashes; ``LedgerError`` if one was changed."""
        return self.read_transaction(lambda connection: {name: chain.read_text(connection, name) for name in names})

    def integrity_problems(self) -> str:
        """Return the first problem that SQLite reports about its pages; empty for an intact file or a server."""
        if not self.is_file:
            return ""
        with self._store.reading_transaction() as connection:
            problems = [str(row[0]) for row in connection.exec_driver_sql("PRAGMA integrity_check(5)")]
        return "" if problems == ["ok"] else problems[0]

    def read_transaction(self, work: Callable[[Connection], Result]) -> Result:
        """Run ``work`` on one snapshot of the ledger, and return its result."""

        def run_once() -> Result:
            with self._store.reading_transaction() as connection:
                self._refuse_older_copy(connection)
                return work(connection)

        return _retry_lost_connection(run_once)

    def write_entry(self, work: Callable[[Connection], WriteResult[Result]]) -> Result:
        """Run ``work`` without other writers and return its result; what it wrote is on disk when this returns.

        ``work`` returns its result and the last entry that it wrote. It must be idempotent: it is retried
        if the connection is lost before the outcome is confirmed.
        """

        def run_once() -> WriteResult[Result]:
            with self._store.writing_transaction() as connection:
                refuse_altered_tables(connection, self._store)
                self._refuse_older_copy(connection)
                return work(connection)

        result, last = _retry_lost_connection(run_once)
        if last is not None and self._head_file is not None:
            self._head_file.write_head(last.number, last.hash)
        return result

    def next_entry_time(self, connection: Connection) -> str:
        """Return the time of the next entry: never before the last entry's time, even if the clock runs back."""
        last, now = chain.last_entry(connection), self._clock()
        return now if last is None or now >= last.time else last.time

    def close(self) -> None:
        """Close the file or the connections."""
        self._store.close()

    def _refuse_older_copy(self, connection: Connection) -> None:
        """Raise ``LedgerError`` unless the ledger contains the entry that the head file records."""
        recorded = None if self._head_file is None else self._head_file.last_seen_entry()
        if self._head_file is None or recorded is None:
            return
        found = chain.entry_at(connection, recorded[0])
        if found is None or found.hash != recorded[1]:
            raise LedgerError(
                f"the ledger {self.display_name} does not contain the recorded entry {recorded[0]}: a copy was "
                f"put back, or the "
                f"file was changed; restore the newest copy, with its -wal file if there is one "
                f"(if it is lost, see docs/ledger.md; {self._head_file.path.name} names the last entry)"
            )


def _retry_lost_connection(once: Callable[[], Result]) -> Result:
    """Return the result of ``once``, retried after lost connections; the last error says what to do."""
    for _ in range(MAX_TRIES - 1):
        with suppress(LostError):
            return once()
        time.sleep(PAUSE_SECONDS)
    try:
        return once()
    except LostError as error:
        outcome = "it is not known whether the budget was spent: try again with the same key, which is charged once"
        raise LedgerError(f"{error}; {outcome}") from None
