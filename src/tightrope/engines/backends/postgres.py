"""PostgreSQL: one read-only transaction of ours, what a relation's columns are, and its rows as CSV, once.

Nothing of the database's own has a place in what we ask: plain columns by name, no cast, no operator, no function but
those of ``pg_catalog``; PostgreSQL writes each value down by its type's output function, and types whose output
function is not built in are not read.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import Any

from tightrope.engines.backends.backend import Backend
from tightrope.engines.backends.postgres_types import TEXT, Form, form_of
from tightrope.engines.backends.relation import Relation
from tightrope.engines.guard import guarded, load
from tightrope.errors import EngineError, InputError, SchemaError, listed, nearest

EXTRA = "postgres"
SCHEMES = ("postgresql://", "postgres://")
SECRETS = ("password", "sslpassword", "scram_client_key", "scram_server_key", "oauth_client_secret")
HIDDEN_URL = "postgresql://..."
"""What an error repeats of a URL: where a password ends is not always where it seems to."""
AN_URL = "a URL such as 'postgresql://role@host/database'"
SETTINGS = {
    "search_path": "pg_catalog, pg_temp",
    "client_encoding": "UTF8",
    "TimeZone": "UTC",
    "DateStyle": "ISO, YMD",
    "extra_float_digits": "3",
    "bytea_output": "hex",
    "row_security": "off",
    "standard_conforming_strings": "on",
    "idle_in_transaction_session_timeout": "0",
    "lock_timeout": "60s",
    "jit": "off",
}
"""Ours, whatever role and database have set. Without row security a query that it would filter fails: an answer for the
rows that some role sees would be taken for one about all."""
RELATIONS = {"r": "table", "p": "partitioned table", "v": "view", "m": "materialised view", "f": "foreign table"}
TRIES, PAUSE = 40, 0.05
"""How often a transaction is begun whose first words are cancelled, and the seconds between."""
COPY_BLOCK = 1 << 22
"""Bytes of rows that are handed over together, or one row where that is longer."""


def checked(url: str, name: str = "source") -> str:
    """The URL; ``InputError`` of ``name``, which does not repeat it, where it cannot be read or holds a password."""
    conninfo = load("psycopg.conninfo", EXTRA)
    try:
        parts = conninfo.conninfo_to_dict(url)
    except load("psycopg").Error:
        parts = None
    if parts is None:
        raise InputError(name, HIDDEN_URL, AN_URL)
    if any(parts.get(key) for key in SECRETS) or _is_torn(url):
        remedy = "a password in a URL ends up in files and logs: set PGPASSWORD or use ~/.pgpass; @ in a name is %40"
        raise InputError(name, HIDDEN_URL, "a URL without what may be a password", remedy)
    return url


def _is_torn(url: str) -> bool:
    """Whether a password may end elsewhere than libpq thinks: at another @, or behind a slash. Names write %40."""
    before, at, behind = url.partition("://")[2].partition("@")
    return "@" in behind or (bool(at) and "/" in before)


@contextmanager
def transaction(url: str) -> Iterator[Any]:
    """A connection in a read-only transaction that sees the database as it is at its first query, with our settings."""
    psycopg = load("psycopg", EXTRA)
    step = "connect to PostgreSQL (is it there, the role's name right, its password in PGPASSWORD or ~/.pgpass?)"
    connection = guarded(step, lambda: psycopg.connect(url, autocommit=True, prepare_threshold=None))
    try:
        guarded("begin a read-only transaction", lambda: _begin(connection))
        yield connection
    finally:
        guarded("leave PostgreSQL", connection.close)


def _begin(connection: Any) -> None:
    _unhurried(connection)
    for name, value in SETTINGS.items():
        _set(connection, name, value)


def _unhurried(connection: Any) -> None:
    """A transaction without a limit of time; tried again where the role's own limit is shorter than this takes."""
    for _ in range(TRIES - 1):
        with suppress(load("psycopg").errors.QueryCanceled):
            _opened(connection)
            return
        connection.rollback()
        time.sleep(PAUSE)
    _opened(connection)


def _opened(connection: Any) -> None:
    connection.execute("BEGIN ISOLATION LEVEL REPEATABLE READ, READ ONLY")
    _set(connection, "statement_timeout", "0")


def _set(connection: Any, name: str, value: str) -> None:
    connection.execute("SELECT pg_catalog.set_config(%s, %s, true)", (name, value))


def columns(connection: Any, relation: Relation, only: Sequence[str] | None = None) -> dict[str, Form]:
    """The columns of a relation that we may read, or those named, and their forms. Reads no row.

    From here to the end of the transaction the relation cannot be changed into another one.
    """
    names = guarded("find the table's columns", lambda: _readable(connection, relation)) if only is None else only
    if not names:
        _refuse(connection, relation)
    guarded("find the table", lambda: _refuse_filtered(connection, relation))
    empty = load("psycopg.sql").SQL("{} LIMIT 0").format(_select(relation, names))
    found = guarded("read the table's schema", lambda: connection.execute(empty).pgresult)
    types = [(found.ftype(place), found.fmod(place)) for place in range(found.nfields)]
    ours = guarded("read the table's types", lambda: _text_types(connection, [oid for oid, _ in types]))
    forms = (TEXT if oid in ours else form_of(oid, modifier) for oid, modifier in types)
    return dict(zip(names, forms, strict=True))


def copied(connection: Any, relation: Relation, names: Sequence[str]) -> Iterator[tuple[bytes, int]]:
    """All rows as PostgreSQL writes CSV, in blocks of whole records in UTF-8, and how many records each holds.

    Raises ``EngineError`` where PostgreSQL says at the end that it sent another number of rows.
    """
    codec = guarded("find the database's encoding", lambda: _unconverted(connection))
    text = load("psycopg.sql").SQL("COPY ({}) TO STDOUT (FORMAT csv)").format(_select(relation, names))
    query = guarded("name the columns", lambda: text.as_string(connection).encode(codec))
    came = 0
    with connection.cursor() as cursor, _copying(cursor, query) as reader:
        while rows := guarded("read the rows", lambda: _block(reader)):
            came += len(rows)
            yield _in_utf8(b"".join(rows), codec), len(rows)
        if cursor.rowcount != came:
            raise EngineError("PostgreSQL sent another number of rows than it says; nothing was answered")


def _unconverted(connection: Any) -> str:
    """From here on text comes as it is stored: one letter that PostgreSQL cannot convert would stop all rows."""
    stored = connection.info.parameter_status("server_encoding")
    _set(connection, "client_encoding", stored)
    return "utf-8" if stored == "SQL_ASCII" else str(connection.info.encoding)  # the first is any bytes


@contextmanager
def _copying(cursor: Any, query: Any) -> Iterator[Any]:
    """What gives the rows; PostgreSQL is told to stop where not all of them are wanted."""
    copy = cursor.copy(query)
    reader = guarded("read the rows", copy.__enter__)
    try:
        yield reader
    finally:
        guarded("stop reading the rows", lambda: copy.__exit__(None, None, None))


def _block(reader: Any) -> list[bytes]:
    """The next rows, each a message of its own; none at the end."""
    rows: list[bytes] = []
    size = 0
    while size < COPY_BLOCK and (row := reader.read()):
        rows.append(bytes(row))
        size += len(row)
    return rows


def _in_utf8(block: bytes, codec: str) -> bytes:
    """Bytes that are no letter become such as are none in UTF-8 either: the field will be missing."""
    return block if codec == "utf-8" else block.decode(codec, "surrogateescape").encode("utf-8", "surrogatepass")


def _select(relation: Relation, names: Sequence[str]) -> Any:
    sql = load("psycopg.sql")
    chosen = sql.SQL(", ").join(sql.Identifier(name) for name in names)
    return sql.SQL("SELECT {} FROM {}").format(chosen, sql.Identifier(relation.schema, relation.name))


def _readable(connection: Any, relation: Relation) -> tuple[str, ...]:
    query = """
        SELECT a.attname FROM pg_attribute a JOIN pg_class c ON c.oid = a.attrelid
        JOIN pg_namespace n ON n.oid = c.relnamespace
        WHERE n.nspname = %s AND c.relname = %s AND c.relkind = ANY(%s) AND a.attnum > 0 AND NOT a.attisdropped
            AND has_schema_privilege(n.oid, 'USAGE') AND has_column_privilege(c.oid, a.attnum, 'SELECT')
        ORDER BY a.attnum
    """
    return tuple(name for (name,) in connection.execute(query, (relation.schema, relation.name, list(RELATIONS))))


def _refuse(connection: Any, relation: Relation) -> None:
    """There is no such relation, or no column of it may be read."""
    query = """
        SELECT n.nspname, c.relname FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
        WHERE c.relkind = ANY(%s) AND n.nspname <> ALL('{pg_catalog,information_schema,pg_toast}')
            AND has_schema_privilege(n.oid, 'USAGE') AND has_any_column_privilege(c.oid, 'SELECT')
        ORDER BY 1, 2
    """
    found = guarded("list the tables", lambda: connection.execute(query, (list(RELATIONS),)).fetchall())
    names = tuple(str(Relation(*row)) for row in found)
    expected = f"one of those that the role may read, {listed(names)}"
    raise SchemaError("table", str(relation), expected, nearest(relation, names))


def _refuse_filtered(connection: Any, relation: Relation) -> None:
    """Row security would refuse the rows anyhow (see ``SETTINGS``), in words of its own."""
    query = """
        SELECT row_security_active(c.oid) FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
        WHERE n.nspname = %s AND c.relname = %s
    """
    found = connection.execute(query, (relation.schema, relation.name)).fetchall()
    if found == [(True,)]:
        remedy = "use a role with BYPASSRLS, or a view that says which rows are the table"
        raise InputError("table", str(relation), "one whose rows no row-level policy hides from the role", remedy)


def _text_types(connection: Any, oids: Sequence[int]) -> set[int]:
    """Types that are text for us: enums, and those that are written down by PostgreSQL's own function for text."""
    query = """
        SELECT t.oid FROM pg_type t JOIN pg_proc p ON p.oid = t.typoutput
        WHERE t.oid = ANY(%s::oid[]) AND t.oid >= 16384
            AND (t.typtype = 'e' OR (p.prolang = 12 AND p.prosrc = 'textout'))
    """
    return {oid for (oid,) in connection.execute(query, (list(oids),))}


POSTGRES = Backend("postgres", instead="open_source('postgresql://role@host/database', table='schema.table')")
"""Only for ibis tables on PostgreSQL, which are refused: their operators and casts are looked up in the database."""
