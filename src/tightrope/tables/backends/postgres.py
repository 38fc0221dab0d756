"""PostgreSQL: one read-only transaction, the columns of a relation, and its rows as CSV, read once.

Queries use no definitions of the database's own: plain columns by name, no cast, no operator, only functions
of ``pg_catalog``; PostgreSQL writes each value down by its type's output function, and types whose output
function is not built in are not read.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from tightrope.documents.reader import redact_secret
from tightrope.errors import EngineError, InputError, SchemaError, quoted_names, suggest_nearest
from tightrope.tables.backends.backend import Backend, Relation
from tightrope.tables.engine_calls import engine_call, load_library

# PostgreSQL's types as ours: which Arrow type a column becomes, and what each written value means there.
#
# Every rule looks at one value. What the type cannot say is missing.

Rule = Callable[[Any, Any], Any]
"""A column of text and an Arrow type become a column of that type."""

A_DAY = r"^\d{4}-\d\d-\d\d$"
AN_INSTANT = r"^\d{4}-\d\d-\d\d \d\d:\d\d:\d\d(\.\d{1,6})?$"
IN_UTC, IN_HEX = "+00", "\\x"
"""Days and instants of the years 1 to 9999, as PostgreSQL writes them; 'infinity' and 'BC' look otherwise."""
WHOLE = r"^-?\d+(\.0*)?$"
WIDEST_NUMERIC = 38
NUMERIC = 1700


@dataclass(frozen=True, slots=True)
class ColumnFormat:
    """The Arrow type of a column, by its name (``decimal`` has two numbers with it), and the rule for its values.

    Without a rule Arrow's reader of CSV takes PostgreSQL's spelling as it is.
    """

    arrow_name: str
    rule: Rule | None = None
    digits: tuple[int, int] | None = None

    @property
    def arrow_type(self) -> Any:
        """The Arrow type."""
        arrow = load_library("pyarrow")
        if self.arrow_name == "decimal":
            return arrow.decimal128(*(self.digits or (WIDEST_NUMERIC, 0)))
        return (
            arrow.timestamp("us", tz="UTC") if self.arrow_name == "instant" else arrow.type_for_alias(self.arrow_name)
        )


def column_format(oid: int, modifier: int) -> ColumnFormat:
    """The form of a type, by its number and modifier (for a domain, the form of its base type).

    >>> declared, bare = column_format(NUMERIC, (10 << 16 | 2) + 4), column_format(NUMERIC, -1)
    >>> column_format(20, -1).arrow_name, declared.digits, bare.arrow_name
    ('int64', (10, 2), 'double')
    """
    if oid != NUMERIC:
        return _FORMS.get(oid, UNREAD)
    # Exact where digits are declared and fit; otherwise the nearest double.
    digits, places = (modifier - 4) >> 16, ((modifier - 4) & 0x7FF ^ 0x400) - 0x400
    if modifier >= 4 and 0 <= places <= digits <= WIDEST_NUMERIC:
        return ColumnFormat("decimal", _DECIMALS, (digits, places))
    return ColumnFormat("double", _parse_doubles)


def _cast_matching(pattern: str, column: Any, wanted: Any) -> Any:
    """The values that fit a pattern, cast; all others are missing, NaN too."""
    return _keep_where(_match_pattern(column, pattern), column).cast(wanted)


_DECIMALS: Rule = partial(_cast_matching, WHOLE.replace("0*", r"\d*"))
"""One object: formats are equal where their rules are the same one."""


def _parse_doubles(column: Any, wanted: Any) -> Any:
    """The nearest double; beyond all doubles infinity. Non-integers stay non-integers as doubles.

    Two people with 3 and 2.99999999999999999999 would be one.
    """
    doubles = column.cast(wanted)
    values = doubles.fill_null(0).to_numpy(zero_copy_only=False)
    fraction = ~np.asarray(_match_pattern(column, WHOLE).fill_null(True))
    stray = fraction & np.isfinite(values) & (np.floor(values) == values)
    if not np.any(stray):
        return doubles
    aside = np.nextafter(values, np.where(values == 0, 1.0, 0.0))
    return load_library("pyarrow").array(np.where(stray, aside, values), wanted, mask=np.asarray(column.is_null()))


def _parse_zoned_instants(column: Any, wanted: Any) -> Any:
    """Written in UTC, for that is our connection's zone; in any other zone a value is missing."""
    compute, arrow = load_library("pyarrow.compute"), load_library("pyarrow")
    bare = _keep_where(compute.ends_with(column, IN_UTC), compute.utf8_slice_codeunits(column, 0, -len(IN_UTC)))
    return _cast_matching(AN_INSTANT, bare, arrow.timestamp("us")).view(wanted)


def _parse_bytes(column: Any, wanted: Any) -> Any:
    """Written in hexadecimal, for that is what our connection asks for."""
    raw = [None if text is None or text[:2] != IN_HEX else bytes.fromhex(text[2:]) for text in column.to_pylist()]
    return load_library("pyarrow").array(raw, wanted)


def _match_pattern(column: Any, pattern: str) -> Any:
    return load_library("pyarrow.compute").match_substring_regex(column, pattern)


def _keep_where(test: Any, column: Any) -> Any:
    return load_library("pyarrow.compute").if_else(test, column, load_library("pyarrow").scalar(None, column.type))


TEXT = ColumnFormat("string", lambda column, _: column)
UNREAD = ColumnFormat("binary")
"""Arrays, json, times of day, intervals, ranges, composites: neither a person, a key nor a value."""
_FORMS = {
    16: ColumnFormat("bool"),
    17: ColumnFormat("binary", _parse_bytes),
    21: ColumnFormat("int16"),
    23: ColumnFormat("int32"),
    20: ColumnFormat("int64"),
    700: ColumnFormat("float"),
    701: ColumnFormat("double"),
    25: TEXT,
    1043: TEXT,
    # Spaces at the end of a ``char(n)`` mean nothing, in PostgreSQL's comparisons neither.
    1042: ColumnFormat("string", lambda column, _: load_library("pyarrow.compute").utf8_rtrim(column, characters=" ")),
    19: TEXT,
    2950: TEXT,
    1082: ColumnFormat("date32", partial(_cast_matching, A_DAY)),
    1114: ColumnFormat("timestamp[us]", partial(_cast_matching, AN_INSTANT)),
    1184: ColumnFormat("instant", _parse_zoned_instants),
}
"""By the numbers that PostgreSQL has given its own types for good: bool, bytea, int2, int4, int8, float4, float8,
text, varchar, char(n), name, uuid, date, timestamp, timestamptz. Bytes are for jobs; they are no key."""

EXTRA = "postgres"
SCHEMES = ("postgresql://", "postgres://")
SECRETS = ("password", "sslpassword", "scram_client_key", "scram_server_key", "oauth_client_secret")
HIDDEN_URL = "postgresql://..."
"""Placeholder for a URL in errors: the end of a password is not always where it seems to be."""
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
"""Our settings, for every role and database. Without row security a query that it would filter fails: answers for the
rows that some role sees would be taken for one about all."""
RELATIONS = {"r": "table", "p": "partitioned table", "v": "view", "m": "materialized view", "f": "foreign table"}
TRIES, PAUSE = 40, 0.05
"""Number of attempts to begin a transaction whose first statements are canceled, and seconds between."""
COPY_BLOCK = 1 << 22
"""Bytes of rows that are handed over together, or one row where that is longer."""


def check_url(url: str, name: str = "source") -> str:
    """The URL; ``InputError`` of ``name``, which does not repeat it, where it cannot be read or holds a password."""
    conninfo = load_library("psycopg.conninfo", EXTRA)
    try:
        parts = conninfo.conninfo_to_dict(url)
    except load_library("psycopg").Error:
        parts = None
    if parts is None:
        raise InputError(name, HIDDEN_URL, AN_URL)
    # A password may end where libpq does not expect it: at another @ or after a slash (write %40).
    before, at, behind = url.partition("://")[2].partition("@")
    may_hold_password = "@" in behind or (bool(at) and "/" in before)
    if any(parts.get(key) for key in SECRETS) or may_hold_password:
        remedy = "a password in a URL ends up in files and logs: set PGPASSWORD or use ~/.pgpass; @ in a name is %40"
        raise InputError(name, HIDDEN_URL, "a URL without what may be a password", remedy)
    return url


@contextmanager
def read_only_transaction(url: str) -> Iterator[Any]:
    """A connection in a read-only transaction that sees the database as it is at its first query, with our settings."""
    psycopg = load_library("psycopg", EXTRA)
    step = "connect to PostgreSQL (is it there, the role's name right, its password in PGPASSWORD or ~/.pgpass?)"
    connection = engine_call(step, lambda: psycopg.connect(url, autocommit=True, prepare_threshold=None))
    try:
        engine_call("begin a read-only transaction", lambda: _begin_transaction(connection))
        yield connection
    finally:
        engine_call("leave PostgreSQL", connection.close)


def _begin_transaction(connection: Any) -> None:
    """With our settings and no limit of time; tried again where the role's own limit is shorter than this takes."""
    for _ in range(TRIES - 1):
        with suppress(load_library("psycopg").errors.QueryCanceled):
            _begin_once(connection)
            break
        connection.rollback()
        time.sleep(PAUSE)
    else:
        _begin_once(connection)
    for name, value in SETTINGS.items():
        _change_setting(connection, name, value)


def _begin_once(connection: Any) -> None:
    connection.execute("BEGIN ISOLATION LEVEL REPEATABLE READ, READ ONLY")
    _change_setting(connection, "statement_timeout", "0")


def _change_setting(connection: Any, name: str, value: str) -> None:
    connection.execute("SELECT pg_catalog.set_config(%s, %s, true)", (name, value))


COLUMN_QUERY = """
    SELECT a.attname FROM pg_attribute a JOIN pg_class c ON c.oid = a.attrelid
    JOIN pg_namespace n ON n.oid = c.relnamespace
    WHERE n.nspname = %s AND c.relname = %s AND c.relkind = ANY(%s) AND a.attnum > 0 AND NOT a.attisdropped
        AND has_schema_privilege(n.oid, 'USAGE') AND has_column_privilege(c.oid, a.attnum, 'SELECT')
    ORDER BY a.attnum
"""
TABLE_QUERY = """
    SELECT n.nspname, c.relname FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
    WHERE c.relkind = ANY(%s) AND n.nspname <> ALL('{pg_catalog,information_schema,pg_toast}')
        AND has_schema_privilege(n.oid, 'USAGE') AND has_any_column_privilege(c.oid, 'SELECT')
    ORDER BY 1, 2
"""
SECURITY_QUERY = """
    SELECT row_security_active(c.oid) FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
    WHERE n.nspname = %s AND c.relname = %s
"""
TEXT_QUERY = """
    SELECT t.oid FROM pg_type t JOIN pg_proc p ON p.oid = t.typoutput
    WHERE t.oid = ANY(%s::oid[]) AND t.oid >= 16384
        AND (t.typtype = 'e' OR (p.prolang = 12 AND p.prosrc = 'textout'))
"""
"""Types that are text for us: enums, and those that are written down by PostgreSQL's own function for text."""


def readable_columns(connection: Any, relation: Relation, only: Sequence[str] | None = None) -> dict[str, ColumnFormat]:
    """The columns of a relation that we may read, or those named, and their forms. Reads no row.

    From here to the end of the transaction the relation cannot be changed into another one.
    """
    place = (relation.schema, relation.name)
    if only is None:
        arguments = (*place, list(RELATIONS))
        names: Sequence[str] = engine_call(
            "find the table's columns", lambda: tuple(name for (name,) in connection.execute(COLUMN_QUERY, arguments))
        )
    else:
        names = only
    if not names:  # the relation does not exist or has no readable column
        rows = engine_call("list the tables", lambda: connection.execute(TABLE_QUERY, (list(RELATIONS),)).fetchall())
        known = tuple(str(Relation(*row)) for row in rows)
        expected = f"one of those that the role may read, {quoted_names(known)}"
        raise SchemaError("table", str(relation), expected, suggest_nearest(relation, known))
    # Row security would refuse the rows anyhow (see ``SETTINGS``), in words of its own.
    security = engine_call("find the table", lambda: connection.execute(SECURITY_QUERY, place).fetchall())
    if security == [(True,)]:
        remedy = "use a role with BYPASSRLS, or a view that says which rows are the table"
        raise InputError("table", str(relation), "one whose rows no row-level policy hides from the role", remedy)
    empty = load_library("psycopg.sql").SQL("{} LIMIT 0").format(_select_query(relation, names))
    found = engine_call("read the table's schema", lambda: connection.execute(empty).pgresult)
    types = [(found.ftype(number), found.fmod(number)) for number in range(found.nfields)]
    oids = [oid for oid, _ in types]
    ours = engine_call("read the table's types", lambda: {oid for (oid,) in connection.execute(TEXT_QUERY, (oids,))})
    forms = (TEXT if oid in ours else column_format(oid, modifier) for oid, modifier in types)
    return dict(zip(names, forms, strict=True))


def copy_rows(connection: Any, relation: Relation, names: Sequence[str]) -> Iterator[tuple[bytes, int]]:
    """All rows as PostgreSQL writes CSV, in blocks of whole records in UTF-8, and how many records each holds.

    Raises ``EngineError`` where PostgreSQL says at the end that it sent another number of rows.
    """
    # From here on text comes as it is stored: one letter that PostgreSQL cannot convert would stop all rows.
    step = "find the database's encoding"
    stored = engine_call(step, lambda: connection.info.parameter_status("server_encoding"))
    engine_call(step, lambda: _change_setting(connection, "client_encoding", stored))
    # SQL_ASCII is any bytes.
    codec = "utf-8" if stored == "SQL_ASCII" else engine_call(step, lambda: str(connection.info.encoding))
    text = load_library("psycopg.sql").SQL("COPY ({}) TO STDOUT (FORMAT csv)").format(_select_query(relation, names))
    query = engine_call("name the columns", lambda: text.as_string(connection).encode(codec))
    came = 0
    with connection.cursor() as cursor:
        copy = cursor.copy(query)
        reader = engine_call("read the rows", copy.__enter__)
        try:
            while rows := engine_call("read the rows", lambda: _read_block(reader)):
                came += len(rows)
                # Bytes that are no letter become such as are none in UTF-8 either: the field will be missing.
                raw = b"".join(rows)
                same = codec == "utf-8"
                block = raw if same else raw.decode(codec, "surrogateescape").encode("utf-8", "surrogatepass")
                yield block, len(rows)
            if cursor.rowcount != came:
                raise EngineError("PostgreSQL sent another number of rows than it says; nothing was answered")
        finally:  # cancels the query in PostgreSQL if not all of the rows are read
            engine_call("stop reading the rows", lambda: copy.__exit__(None, None, None))


def _read_block(reader: Any) -> list[bytes]:
    """The next rows, each a message of its own; none at the end."""
    rows: list[bytes] = []
    size = 0
    while size < COPY_BLOCK and (row := reader.read()):
        rows.append(bytes(row))
        size += len(row)
    return rows


def _select_query(relation: Relation, names: Sequence[str]) -> Any:
    sql = load_library("psycopg.sql")
    chosen = sql.SQL(", ").join(sql.Identifier(name) for name in names)
    return sql.SQL("SELECT {} FROM {}").format(chosen, sql.Identifier(relation.schema, relation.name))


POSTGRES = Backend(
    "postgres", alternative_source="open_source('postgresql://role@host/database', table='schema.table')"
)
"""Only for ibis tables on PostgreSQL, which are refused: their operators and casts are looked up in the database."""

# Addresses of tables and ledgers: no address holds a password, and no error repeats one that might.

_SECRET = re.compile(r":[^@]*@|[?&;][^=]*(password|passwd|pwd|secret|token|key|sig|signature)=", re.IGNORECASE)
"""Text with a colon before the host, or a parameter that is called like a secret."""


def check_address(address: str, name: str = "source") -> str:
    """The path or URL; ``InputError``, which shows its scheme alone, where it may hold a password.

    The libraries that open it may write it into their logs.

    >>> check_address("s3://clinic/visits")
    's3://clinic/visits'
    """
    if address.startswith(SCHEMES):
        return check_url(address, name)
    if "://" in address and _SECRET.search(address.partition("://")[2]):
        remedy = "a password in a URL ends up in files and logs: say it where Spark is configured"
        raise InputError(name, redact_secret(address), "a URL without what may be a password", remedy)
    return address
