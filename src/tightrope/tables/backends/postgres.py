"""PostgreSQL: a read-only transaction, the columns of a relation, and its rows as CSV, read once.

Queries use nothing that the database's users may have defined: plain columns by name, no casts, no operators, and only
functions of ``pg_catalog``. PostgreSQL writes each value with its type's output function, and types whose output
function is not built in are not read.

Each value is converted by itself. A value that the Arrow type cannot represent is missing.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from tightrope.documents.reader import redact_secret
from tightrope.errors import EngineError, InputError, SchemaError, quoted_names, suggest_nearest
from tightrope.tables.backends.backend import Backend, Relation
from tightrope.tables.engine_calls import engine_call, load_library

if TYPE_CHECKING:
    import pyarrow as pa

Rule = Callable[["pa.Array", "pa.DataType"], "pa.Array"]
"""A function from a column of text and an Arrow type to a column of that type."""

DAY_PATTERN = r"^\d{4}-\d\d-\d\d$"
INSTANT_PATTERN = r"^\d{4}-\d\d-\d\d \d\d:\d\d:\d\d(\.\d{1,6})?$"
"""PostgreSQL's form of days and instants of the years 1 to 9999; 'infinity' and years BC do not match."""
UTC_SUFFIX, HEX_PREFIX = "+00", "\\x"
INTEGER_PATTERN = r"^-?\d+(\.0*)?$"
MAX_NUMERIC_DIGITS = 38
NUMERIC_OID = 1700


@dataclass(frozen=True, slots=True)
class ColumnFormat:
    """The Arrow type of a column and the rule that converts its values from PostgreSQL's text.

    ``arrow_name`` is an alias of Arrow, ``instant`` or ``decimal``; ``digits`` are a decimal's precision and scale.
    Without a rule, Arrow's CSV reader parses the values. ``type_name`` is PostgreSQL's name of the type, for errors.
    """

    arrow_name: str
    rule: Rule | None = None
    digits: tuple[int, int] | None = None
    type_name: str = field(default="", compare=False)

    @property
    def arrow_type(self) -> pa.DataType:
        """The Arrow type."""
        arrow = load_library("pyarrow")
        if self.arrow_name == "decimal":
            return arrow.decimal128(*(self.digits or (MAX_NUMERIC_DIGITS, 0)))
        return (
            arrow.timestamp("us", tz="UTC") if self.arrow_name == "instant" else arrow.type_for_alias(self.arrow_name)
        )


def column_format(oid: int, modifier: int) -> ColumnFormat:
    """Return the format of a type, given by its oid and modifier; a domain has the format of its base type.

    >>> declared, bare = column_format(NUMERIC_OID, (10 << 16 | 2) + 4), column_format(NUMERIC_OID, -1)
    >>> column_format(20, -1).arrow_name, declared.digits, bare.arrow_name
    ('int64', (10, 2), 'double')
    """
    if oid != NUMERIC_OID:
        return _FORMATS_BY_OID.get(oid, UNSUPPORTED_FORMAT)
    # Exact where digits are declared and fit; otherwise the nearest double.
    digits, places = (modifier - 4) >> 16, ((modifier - 4) & 0x7FF ^ 0x400) - 0x400
    if modifier >= 4 and 0 <= places <= digits <= MAX_NUMERIC_DIGITS:
        return ColumnFormat("decimal", _PARSE_DECIMALS, (digits, places))
    return ColumnFormat("double", parse_doubles)


def _cast_matching(pattern: str, column: pa.Array, wanted: pa.DataType) -> pa.Array:
    """Return the values that match a pattern, cast; all others, NaN too, are missing."""
    return _keep_where(_match_pattern(column, pattern), column).cast(wanted)


_PARSE_DECIMALS: Rule = partial(_cast_matching, INTEGER_PATTERN.replace("0*", r"\d*"))
"""A constant, because formats are compared for equality, and two ``partial`` objects are unequal."""


def parse_doubles(column: pa.Array, wanted: pa.DataType) -> pa.Array:
    """Return the nearest doubles, infinite beyond their range; a non-integer does not become an integer.

    Otherwise two persons with 3 and 2.99999999999999999999 would be one.
    """
    doubles = column.cast(wanted)
    values = doubles.fill_null(0).to_numpy(zero_copy_only=False)
    is_fraction = ~np.asarray(_match_pattern(column, INTEGER_PATTERN).fill_null(True))
    rounded_to_integer = is_fraction & np.isfinite(values) & (np.floor(values) == values)
    if not np.any(rounded_to_integer):
        return doubles
    neighbors = np.nextafter(values, np.where(values == 0, 1.0, 0.0))
    adjusted, missing = np.where(rounded_to_integer, neighbors, values), np.asarray(column.is_null())
    return load_library("pyarrow").array(adjusted, wanted, mask=missing)


def parse_zoned_instants(column: pa.Array, wanted: pa.DataType) -> pa.Array:
    """Return instants written in UTC, our connection's zone; one in another zone is missing."""
    compute, arrow = load_library("pyarrow.compute"), load_library("pyarrow")
    without_zone = _keep_where(
        compute.ends_with(column, UTC_SUFFIX), compute.utf8_slice_codeunits(column, 0, -len(UTC_SUFFIX))
    )
    return _cast_matching(INSTANT_PATTERN, without_zone, arrow.timestamp("us")).view(wanted)


def parse_bytes(column: pa.Array, wanted: pa.DataType) -> pa.Array:
    """Return bytes written in hexadecimal, as our connection's settings request."""
    raw = [None if text is None or text[:2] != HEX_PREFIX else bytes.fromhex(text[2:]) for text in column.to_pylist()]
    return load_library("pyarrow").array(raw, wanted)


def _match_pattern(column: pa.Array, pattern: str) -> pa.Array:
    return load_library("pyarrow.compute").match_substring_regex(column, pattern)


def _keep_where(test: pa.Array, column: pa.Array) -> pa.Array:
    return load_library("pyarrow.compute").if_else(test, column, load_library("pyarrow").scalar(None, column.type))


TEXT_FORMAT = ColumnFormat("string", lambda column, _: column)
UNSUPPORTED_FORMAT = ColumnFormat("binary")
"""The format of arrays, json, times of day, intervals, ranges and composites, which cannot be used."""
_FORMATS_BY_OID = {
    16: ColumnFormat("bool"),
    17: ColumnFormat("binary", parse_bytes),
    21: ColumnFormat("int16"),
    23: ColumnFormat("int32"),
    20: ColumnFormat("int64"),
    700: ColumnFormat("float"),
    701: ColumnFormat("double"),
    25: TEXT_FORMAT,
    1043: TEXT_FORMAT,
    # Trailing spaces of a ``char(n)`` are padding, which PostgreSQL ignores in comparisons, too.
    1042: ColumnFormat("string", lambda column, _: load_library("pyarrow.compute").utf8_rtrim(column, characters=" ")),
    19: TEXT_FORMAT,
    2950: TEXT_FORMAT,
    1082: ColumnFormat("date32", partial(_cast_matching, DAY_PATTERN)),
    1114: ColumnFormat("timestamp[us]", partial(_cast_matching, INSTANT_PATTERN)),
    1184: ColumnFormat("instant", parse_zoned_instants),
}
"""Formats by the fixed oids of PostgreSQL's own types: bool, bytea, int2, int4, int8, float4, float8, text, varchar,
char(n), name, uuid, date, timestamp, timestamptz. Bytes are for jobs; they cannot be keys."""
SUPPORTED_TYPES = "a number, text, boolean, uuid, date or timestamp, or an enum"
"""The types in an error about a column of another type."""

EXTRA = "postgres"
SCHEMES = ("postgresql://", "postgres://")
SECRET_PARAMETERS = ("password", "sslpassword", "scram_client_key", "scram_server_key", "oauth_client_secret")
HIDDEN_URL = "postgresql://..."
"""Placeholder for a URL in errors, because it may contain a password whose end is uncertain."""
EXAMPLE_URL = "a URL such as 'postgresql://role@host/database'"
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
"""Our settings, for every role and database. With row security off, a query that it would filter fails; otherwise an
answer about the rows that the role may see would look like one about all rows."""
RELATION_KINDS = {"r": "table", "p": "partitioned table", "v": "view", "m": "materialized view", "f": "foreign table"}
BEGIN_ATTEMPTS, RETRY_SECONDS = 40, 0.05
"""Number of attempts to begin a transaction whose first statements are canceled, and seconds between them."""
COPY_BLOCK_BYTES = 1 << 22
"""A block of rows ends when it has this many bytes."""


def check_url(url: str, name: str = "source") -> str:
    """Return the URL; ``InputError`` about ``name`` if it is not valid or may hold a password, without repeating it."""
    conninfo = load_library("psycopg.conninfo", EXTRA)
    try:
        parts = conninfo.conninfo_to_dict(url)
    except load_library("psycopg").Error:
        parts = None
    if parts is None:
        raise InputError(name, HIDDEN_URL, EXAMPLE_URL)
    # A password may end where libpq does not expect it: at another @ or after a slash (write %40).
    user, at_sign, host = url.partition("://")[2].partition("@")
    may_hold_password = "@" in host or (bool(at_sign) and "/" in user)
    if any(parts.get(key) for key in SECRET_PARAMETERS) or may_hold_password:
        remedy = "a password in a URL ends up in files and logs: set PGPASSWORD or use ~/.pgpass; @ in a name is %40"
        raise InputError(name, HIDDEN_URL, "a URL without what may be a password", remedy)
    return url


@contextmanager
def read_only_transaction(url: str) -> Iterator[Any]:
    """Yield a connection with our settings, in a read-only transaction that sees one state of the database."""
    psycopg = load_library("psycopg", EXTRA)
    step = "connect to PostgreSQL (is it there, the role's name right, its password in PGPASSWORD or ~/.pgpass?)"
    connection = engine_call(step, lambda: psycopg.connect(url, autocommit=True, prepare_threshold=None))

    def begin_transaction() -> None:
        # Attempted several times, because the role's own time limit may cancel the first statements.
        for _ in range(BEGIN_ATTEMPTS - 1):
            with suppress(psycopg.errors.QueryCanceled):
                _begin_once(connection)
                break
            connection.rollback()
            time.sleep(RETRY_SECONDS)
        else:
            _begin_once(connection)
        for name, value in SETTINGS.items():
            _change_setting(connection, name, value)

    try:
        engine_call("begin a read-only transaction", begin_transaction)
        yield connection
    finally:
        engine_call("close the connection", connection.close)


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
"""The oids of user-defined types that are read as text: enums, and types with PostgreSQL's output function for text."""


def readable_columns(connection: Any, relation: Relation, only: Sequence[str] | None = None) -> dict[str, ColumnFormat]:
    """Return the formats of a relation's columns by name: all that we may read, or those in ``only``. Reads no row.

    Until the end of the transaction the relation cannot be replaced by another one.
    """
    relation_names = (relation.schema, relation.name)
    if only is None:
        arguments = (*relation_names, list(RELATION_KINDS))
        names: Sequence[str] = engine_call(
            "find the table's columns", lambda: tuple(name for (name,) in connection.execute(COLUMN_QUERY, arguments))
        )
    else:
        names = only
    if not names:  # the relation does not exist or has no readable column
        rows = engine_call(
            "list the tables", lambda: connection.execute(TABLE_QUERY, (list(RELATION_KINDS),)).fetchall()
        )
        readable = tuple(str(Relation(*row)) for row in rows)
        expected = f"one of those that the role may read, {quoted_names(readable)}"
        raise SchemaError("table", str(relation), expected, suggest_nearest(relation, readable))
    # With row security the query would fail later (see ``SETTINGS``), with a less helpful error.
    security = engine_call("find the table", lambda: connection.execute(SECURITY_QUERY, relation_names).fetchall())
    if security == [(True,)]:
        remedy = "use a role with BYPASSRLS, or a view that says which rows are the table"
        raise InputError("table", str(relation), "one whose rows no row-level policy hides from the role", remedy)
    empty = load_library("psycopg.sql").SQL("{} LIMIT 0").format(_select_query(relation, names))
    result = engine_call("read the table's schema", lambda: connection.execute(empty).pgresult)
    types = [(result.ftype(number), result.fmod(number)) for number in range(result.nfields)]
    oids = [oid for oid, _ in types]
    step = "read the table's types"
    text_oids = engine_call(step, lambda: {oid for (oid,) in connection.execute(TEXT_QUERY, (oids,))})
    formats = (TEXT_FORMAT if oid in text_oids else column_format(oid, modifier) for oid, modifier in types)
    return {
        name: replace(kind, type_name=_type_name(oid)) for name, kind, oid in zip(names, formats, oids, strict=True)
    }


def _type_name(oid: int) -> str:
    """Return the name of a type of PostgreSQL's own."""
    info = load_library("psycopg").adapters.types.get(oid)
    if info is None:
        return "defined in the database"
    return f"{info.regtype}[]" if oid == info.array_oid else str(info.regtype)


def copy_rows(connection: Any, relation: Relation, names: Sequence[str]) -> Iterator[tuple[bytes, int]]:
    """Yield all rows as PostgreSQL's CSV in UTF-8, in blocks of complete records with their number.

    Raises ``EngineError`` if PostgreSQL reports another number of rows than it sent.
    """
    # Request text in the database's own encoding: a single character that PostgreSQL cannot convert would be an error.
    step = "find the database's encoding"
    stored = engine_call(step, lambda: connection.info.parameter_status("server_encoding"))
    engine_call(step, lambda: _change_setting(connection, "client_encoding", stored))
    # SQL_ASCII means bytes in an unknown encoding.
    codec = "utf-8" if stored == "SQL_ASCII" else engine_call(step, lambda: str(connection.info.encoding))
    text = load_library("psycopg.sql").SQL("COPY ({}) TO STDOUT (FORMAT csv)").format(_select_query(relation, names))
    query = engine_call("name the columns", lambda: text.as_string(connection).encode(codec))
    row_count = 0
    with connection.cursor() as cursor:
        copy = cursor.copy(query)
        reader = engine_call("read the rows", copy.__enter__)

        def read_block() -> list[bytes]:
            """Return the next rows, each one message of PostgreSQL; an empty list at the end."""
            block_rows: list[bytes] = []
            size = 0
            while size < COPY_BLOCK_BYTES and (row := reader.read()):
                block_rows.append(bytes(row))
                size += len(row)
            return block_rows

        try:
            while rows := engine_call("read the rows", read_block):
                row_count += len(rows)
                # Bytes that are not valid in the encoding become invalid UTF-8, so that the field will be missing.
                raw = b"".join(rows)
                block = (
                    raw if codec == "utf-8" else raw.decode(codec, "surrogateescape").encode("utf-8", "surrogatepass")
                )
                yield block, len(rows)
            if cursor.rowcount != row_count:
                raise EngineError("PostgreSQL sent another number of rows than it says; nothing was answered")
        finally:  # also cancels the query in PostgreSQL if not all rows have been read
            engine_call("stop reading the rows", lambda: copy.__exit__(None, None, None))


def _select_query(relation: Relation, names: Sequence[str]) -> Any:
    sql = load_library("psycopg.sql")
    columns = sql.SQL(", ").join(sql.Identifier(name) for name in names)
    return sql.SQL("SELECT {} FROM {}").format(columns, sql.Identifier(relation.schema, relation.name))


POSTGRES = Backend(
    "postgres", alternative_source="open_source('postgresql://role@host/database', table='schema.table')"
)
"""For ibis tables on PostgreSQL, which are rejected: their operators and casts may be redefined in the database."""

_SECRET_PATTERN = re.compile(r":[^@]*@|[?&;][^=]*(password|passwd|pwd|secret|token|key|sig|signature)=", re.IGNORECASE)
"""Text before the host that contains a colon, or a parameter whose name suggests a secret."""


def check_address(address: str, name: str = "source") -> str:
    """Return the path or URL of a table or ledger; ``InputError`` if it may hold a password, showing only the scheme.

    The libraries that open it may write it to their logs.

    >>> check_address("s3://clinic/visits")
    's3://clinic/visits'
    """
    if address.startswith(SCHEMES):
        return check_url(address, name)
    if "://" in address and _SECRET_PATTERN.search(address.partition("://")[2]):
        remedy = "a password in a URL ends up in files and logs: say it where Spark is configured"
        raise InputError(name, redact_secret(address), "a URL without what may be a password", remedy)
    return address
