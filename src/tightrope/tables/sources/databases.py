"""Database sources: tables of a DuckDB file, relations of a DuckDB connection, and tables of PostgreSQL."""

from __future__ import annotations

import re
import threading
import uuid
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, final

from tightrope.errors import EngineError, InputError, SchemaError, quoted_names, suggest_nearest
from tightrope.tables.backends import postgres
from tightrope.tables.backends.backend import Relation
from tightrope.tables.backends.column_types import schema_of, wide_integer_type, wide_integers
from tightrope.tables.backends.duckdb import open_connection
from tightrope.tables.backends.postgres import UNSUPPORTED_FORMAT, ColumnFormat
from tightrope.tables.engine_calls import engine_call, load_library
from tightrope.tables.files import MAX_BATCH_ROWS, StampedFiles, iterate_batches
from tightrope.tables.materialize import RowSource, drop_invalid_utf8
from tightrope.tables.table import Table, check_names, table_from_stream

if TYPE_CHECKING:
    import ibis.expr.types as ir
    import pyarrow as pa
    from duckdb import DuckDBPyRelation
    from ibis.backends import BaseBackend

DEFAULT_SCHEMA = "main"
SQLITE_READER = "sqlite_scanner"
"""DuckDB's extension that would read a SQLite file; the error that it is missing names it."""
SQLITE_REMEDY = "convert the table with DuckDB: ATTACH 'a.sqlite' (TYPE sqlite); COPY a.people TO 'people.parquet'"
WIDE_INTEGER = "HUGEINT"
READ_AS_TEXT = ("UHUGEINT", "UUID", '"NULL"')
"""Types of DuckDB that are texts for us: identifiers, and columns in which all values are NULL."""
NOT_READ = ("BIT", "GEOMETRY", "JSON", "TIME", "TIME_NS", "TIME WITH TIME ZONE", "BIGNUM", "VARIANT", "INTERVAL")
"""Types of DuckDB whose columns are not supported, though ibis or Arrow may have a supported one for them."""

LOCK_HOLDER = re.compile(r"held in (?P<program>[^()]*) \(PID (?P<process>\d+)\)")
"""The process that has a DuckDB file open for writing, in DuckDB's message, which quotes no value of the file."""


FileState = tuple[int, ...] | None
LOG_ENDINGS = (".wal", ".wal.checkpoint")
"""Endings of the logs next to a DuckDB file; the second one exists during a checkpoint, and after one that failed."""


def database_states(path: Path) -> tuple[FileState, ...]:
    """Return the states of a DuckDB file and of its logs, without opening them; None for a missing file.

    A writer that does not close its connection leaves what it committed in the log. The time of the last change of a
    file's state (ctime) cannot be set back, unlike the time of its last modification; it also changes with the file's
    permissions and links, after which it must be opened again.
    """
    targets = dict.fromkeys((path, path.resolve()))
    logs = [target.with_name(target.name + ending) for target in targets for ending in LOG_ENDINGS]
    return tuple(map(_file_state, (path, *logs)))


def _file_state(path: Path) -> FileState:
    try:
        status = path.stat()
    except FileNotFoundError:
        return None
    return status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns


@final
class DuckDBFile:
    """The read-only connection to a DuckDB file, open only inside ``hold_connection``.

    An open connection, even a read-only one, keeps other processes from writing, and this process from opening the file
    with other settings. The file's state is read before and after the connection is opened, which prevents changes from
    then on, and without opening the file: closing *any* descriptor of it would release the lock of the connection.
    """

    def __init__(self, path: Path) -> None:
        self._path, self._lock = path, threading.Lock()
        self._backend: BaseBackend | None = None
        self._readers = 0
        self._first_states: tuple[FileState, ...] | None = None

    def open_connection(self) -> BaseBackend:
        """Return the open connection; opens it, and raises ``InputError`` if the file has changed since the first."""
        with self._lock:
            if self._backend is not None:
                return self._backend
            before = engine_call("read the file's state", lambda: database_states(self._path))
            backend = self._connect()
            try:
                states = engine_call("read the file's state", lambda: database_states(self._path))
                if not states == before == (self._first_states or before):
                    text = f"{str(self._path)!r} was opened, but it has changed since; open it again"
                    raise InputError.from_text("source", text)
            except BaseException:
                backend.disconnect()
                raise
            self._first_states, self._backend = states, backend
            return backend

    @contextmanager
    def hold_connection(self) -> Iterator[None]:
        """Close the connection when the last reader leaves the context."""
        with self._lock:
            self._readers += 1
        try:
            yield
        finally:
            with self._lock:
                self._readers -= 1
                if not self._readers and self._backend is not None:
                    self._backend.disconnect()
                    self._backend = None

    def _connect(self) -> BaseBackend:
        """Open the file; raises ``InputError`` with the process that has it open, ``EngineError`` for other reasons."""
        errors = load_library("duckdb")

        def connect() -> BaseBackend | str:
            try:
                return open_connection(self._path)
            except errors.ConnectionException:
                return (
                    "this process has the file open in another connection; close that connection, or pass a table of "
                    "it: con.table('...')"
                )
            except errors.IOException as error:
                if SQLITE_READER in str(error):
                    return f"it is a SQLite database; {SQLITE_REMEDY}"
                holder = LOCK_HOLDER.search(str(error))
                if holder is None:
                    raise
                program = Path(holder["program"]).name or "a program"
                return (
                    f"process {holder['process']} ({program}) has the file open for writing; close it there, or open "
                    "it there with read_only=True, and try again"
                )

        opened = engine_call("open the DuckDB file", connect)
        if isinstance(opened, str):
            raise InputError.from_text("source", f"{str(self._path)!r} cannot be read now: {opened}")
        return opened


def open_duckdb(path: Path, name: str | None) -> Table:
    """Open a table or view of a DuckDB file; a name without a schema is in ``main``. ``SchemaError`` lists the tables.

    Macros, collations and views of the file are active only in the read-only connection that reads the rows. The file
    is open only while it is read, so that its owner can write between two readings; a session then refuses the file.
    """
    file = DuckDBFile(path)

    def find_table(relation: Relation) -> ir.Table:
        backend = file.open_connection()
        return engine_call("read the table's schema", lambda: _view_of_supported_columns(backend, relation))

    with file.hold_connection():
        relation = _find_relation(file.open_connection(), name)
        schema = find_table(relation).schema()
        types = _column_types(file.open_connection(), relation)
    check_names(schema)
    return Table(
        schema_of(schema, types),
        "duckdb",
        file.open_connection,
        lambda _: find_table(relation),
        _hold_connection=file.hold_connection,
    )


def _column_types(backend: BaseBackend, relation: Relation) -> dict[str, str]:
    """Return DuckDB's names of the types of the relation's columns."""
    described = engine_call("read the table's schema", lambda: backend.raw_sql(f"DESCRIBE {_sql_name(relation)}"))
    return {name: kind for name, kind, *_ in described.fetchall()}


def _view_of_supported_columns(backend: BaseBackend, relation: Relation) -> ir.Table:
    """Return the table, with columns of some types as texts, and those that cannot be read as bytes without a value.

    ibis fails to read the schema of a table with certain types, such as GEOMETRY, and does not have others.
    """
    casts = {
        name: "NULL::BLOB"
        if kind in NOT_READ
        else f"{_quoted(name)}::VARCHAR"
        if kind in READ_AS_TEXT
        else _quoted(name)
        for name, kind in _column_types(backend, relation).items()
    }
    if all(cast == _quoted(name) for name, cast in casts.items()):
        return backend.table(relation.name, database=(backend.current_catalog, relation.schema))
    columns = ", ".join(f"{cast} AS {_quoted(name)}" for name, cast in casts.items())
    view = f"tightrope_{uuid.uuid4().hex}"
    query = f"SELECT {columns} FROM {_sql_name(relation)}"  # noqa: S608 - names are quoted
    backend.raw_sql(f"CREATE TEMP VIEW {view} AS {query}")
    return backend.table(view, database=("temp", "main"))


def _sql_name(relation: Relation) -> str:
    return f"{_quoted(relation.schema)}.{_quoted(relation.name)}"


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def _find_relation(backend: BaseBackend, name: str | None) -> Relation:
    """Return the table or view of this name; raises ``InputError`` or ``SchemaError`` with the names of all."""
    query = (  # ibis 12 cannot list tables and views with DuckDB 2
        "SELECT table_schema, table_name FROM information_schema.tables WHERE table_catalog = current_database() "
        "AND table_schema NOT IN ('information_schema', 'pg_catalog') ORDER BY ALL"
    )
    relations = engine_call(
        "list the tables of the DuckDB file",
        lambda: tuple(Relation(*row) for row in backend.raw_sql(query).fetchall()),
    )
    names = tuple(relation.name_in_schema(DEFAULT_SCHEMA) for relation in relations)
    if name is None:
        raise InputError(
            "table", None, f"one of {quoted_names(names)}", "say table='...', or --table on a command line"
        )
    relation = Relation(DEFAULT_SCHEMA, name)
    if relation not in relations:
        relation = Relation.from_text(name, DEFAULT_SCHEMA)
    if relation not in relations:
        raise SchemaError("table", name, f"one of {quoted_names(names)}", suggest_nearest(name, names))
    return relation


def open_relation(relation: DuckDBPyRelation, files: StampedFiles | None = None) -> Table:
    """Open a relation of a user's DuckDB connection as the table that it computes; it is computed once for a plan.

    ``files``: the files that it reads, if they are known, which must not change.
    """
    check_names(relation.columns)
    kinds = dict(zip(relation.columns, map(str, relation.types), strict=True))
    empty = engine_call(
        "find the relation's columns", lambda: _select_portable(relation, kinds).limit(0).to_arrow_table()
    )
    arrow = load_library("pyarrow")
    replaced = {WIDE_INTEGER: wide_integer_type(), **dict.fromkeys(NOT_READ, arrow.binary())}
    types = {name: replaced.get(kind) or empty.schema.field(name).type for name, kind in kinds.items()}

    def read_columns(names: Sequence[str]) -> RowSource:
        read_kinds = {name: kinds[name] for name in names}
        schema = arrow.schema([(name, types[name]) for name in names])

        def read_batches() -> Iterator[pa.RecordBatch]:
            reader = engine_call(
                "compute the relation",
                lambda: _select_portable(relation, read_kinds).to_arrow_reader(MAX_BATCH_ROWS // 4),
            )
            for batch in iterate_batches(reader):
                columns = [
                    wide_integers(column) if read_kinds[field.name] == WIDE_INTEGER else column.cast(field.type)
                    for column, field in zip(batch.columns, schema, strict=True)
                ]
                yield arrow.RecordBatch.from_arrays(columns, schema=schema)

        if files is not None:
            return RowSource(schema, lambda: files.checked_batches(read_batches()), (), files.check_unchanged)
        return RowSource(schema, read_batches)

    def check_relation(_: Sequence[str]) -> None:
        if files is not None:
            files.check_unchanged()
        engine_call("find the relation's columns", lambda: _select_portable(relation, kinds).limit(0).to_arrow_table())

    return table_from_stream("duckdb", arrow.schema(list(types.items())), read_columns, check_relation, kinds)


def open_table_of_connection(connection: Any, name: str | None) -> Table:
    """Open a table or view of a user's DuckDB connection, by its name in DuckDB; see ``open_relation``."""
    if name is None:
        raise InputError("table", None, "the name of a table in the connection", "say table='people'")
    errors = load_library("duckdb")

    def find_table() -> DuckDBPyRelation | None:
        try:
            return connection.table(name)
        except (errors.CatalogException, errors.InvalidInputException):  # the second for a name of a Python variable
            return None

    relation = engine_call("find the table in the DuckDB connection", find_table)
    if relation is None:
        text = f"the DuckDB connection has no table {name!r}; a query is a source, too: con.sql('...')"
        raise SchemaError.from_text("table", text)
    return open_relation(relation)


REMOTE_READER = "httpfs"
"""DuckDB's extension that reads https:// and s3://; it is never installed by Tightrope."""


def open_remote_parquet(url: str) -> Table:
    """Open a Parquet file at a URL through DuckDB's extension; raises ``InputError`` if it is not installed."""
    backend, errors = engine_call("open a connection", open_connection), load_library("duckdb")

    def load_reader() -> bool:
        try:
            backend.raw_sql(f"LOAD {REMOTE_READER}")
        except errors.IOException:
            return False
        return True

    if not engine_call("load DuckDB's extension for URLs", load_reader):
        text = (
            f"DuckDB's extension {REMOTE_READER}, which reads URLs, is not installed. Install it once: "
            f"python -c \"import duckdb; duckdb.sql('INSTALL {REMOTE_READER}')\". Or copy the file here first"
        )
        raise InputError.from_text("source", text)
    step = "read the schema of the Parquet file"
    return open_relation(engine_call(step, lambda: backend.con.from_parquet(url, hive_partitioning=False)))


def open_parquet_by_duckdb(path: Path) -> Table:
    """Open a Parquet file with columns that Arrow cannot represent: DuckDB reads these as bytes, which are refused.

    Otherwise a column of integers of 128 bits, as polars writes them, would stop questions about other columns.
    """
    files = StampedFiles.from_paths(path, path)
    backend = engine_call("open a connection", open_connection)
    return open_relation(
        engine_call(
            "read the schema of the Parquet file", lambda: backend.con.from_parquet(str(path), hive_partitioning=False)
        ),
        files,
    )


def _select_portable(relation: DuckDBPyRelation, kinds: dict[str, str]) -> DuckDBPyRelation:
    """Return the columns in types that Arrow represents under all settings of the connection.

    A cast is not a function, so the user's macros cannot replace it.
    """
    column = load_library("duckdb").ColumnExpression
    columns = [
        column(name).cast("VARCHAR").alias(name) if kind in (WIDE_INTEGER, *READ_AS_TEXT) else column(name)
        for name, kind in kinds.items()
    ]
    return relation.select(*columns)


def open_postgres(url: str, table: str) -> Table:
    """Open a PostgreSQL table, partitioned or foreign table, view or materialized view.

    A name without a schema is in ``public``. The database is only read, so a role with read access is enough; columns
    that it may not read are left out. A view or foreign table is accepted as the table that it computes.
    """
    url, relation = postgres.check_url(url), Relation.from_text(table, "public")
    with postgres.read_only_transaction(url) as connection:
        formats = postgres.readable_columns(connection, relation)
    check_names(formats)

    def select_formats(names: Sequence[str]) -> dict[str, ColumnFormat]:
        for name in names:
            if formats[name] == UNSUPPORTED_FORMAT:
                raise SchemaError("column", name, postgres.SUPPORTED_TYPES, "cast it in a view")
        return {name: formats[name] for name in names}

    def read_columns(names: Sequence[str]) -> RowSource:
        read_formats = select_formats(names)

        def read_batches() -> Iterator[pa.RecordBatch]:
            # The columns are checked in the same transaction, and so in the same snapshot, as the rows.
            with postgres.read_only_transaction(url) as connection:
                _check_unchanged(connection, relation, read_formats)
                for block, count in postgres.copy_rows(connection, relation, tuple(read_formats)):
                    yield _parse_block(block, count, read_formats)

        return RowSource(_arrow_schema(read_formats), read_batches)

    def check_table(names: Sequence[str]) -> None:
        with postgres.read_only_transaction(url) as connection:
            _check_unchanged(connection, relation, select_formats(names or list(formats)[:1]))

    type_names = {name: column.type_name for name, column in formats.items() if column.type_name}
    return table_from_stream("postgres", _arrow_schema(formats), read_columns, check_table, type_names)


def _arrow_schema(formats: Mapping[str, ColumnFormat]) -> pa.Schema:
    return load_library("pyarrow").schema([(name, column.arrow_type) for name, column in formats.items()])


def _check_unchanged(connection: Any, relation: Relation, formats: Mapping[str, ColumnFormat]) -> None:
    """Raise ``InputError`` unless the table still has these columns with these formats. Reads no row."""
    if postgres.readable_columns(connection, relation, tuple(formats)) != formats:
        raise InputError.from_text(
            "source", f"the columns of {relation} have changed since it was opened; open it again"
        )


def _parse_block(block: bytes, count: int, formats: Mapping[str, ColumnFormat]) -> pa.RecordBatch:
    """Return a block of PostgreSQL's CSV, with ``count`` records, as an Arrow batch."""
    arrow, reader = load_library("pyarrow"), load_library("pyarrow.csv")
    formats_by_index = {f"c{index}": column for index, column in enumerate(formats.values())}
    read = reader.ReadOptions(column_names=list(formats_by_index), block_size=len(block) + 1, use_threads=False)
    parse = reader.ParseOptions(newlines_in_values=True, ignore_empty_lines=False)
    convert = reader.ConvertOptions(
        column_types={
            name: arrow.binary() if column.rule else column.arrow_type for name, column in formats_by_index.items()
        },
        null_values=[""],
        true_values=["t"],
        false_values=["f"],
        strings_can_be_null=True,
        quoted_strings_can_be_null=False,
    )
    table = engine_call("read the rows", lambda: reader.read_csv(arrow.BufferReader(block), read, parse, convert))
    if len(table) != count:
        raise EngineError("PostgreSQL's rows were read as another number of rows than came; nothing was answered")
    columns = []
    for name, column_format in formats_by_index.items():
        column = table[name].combine_chunks()
        if column_format.rule is not None:
            text = drop_invalid_utf8(column.view("string"))
            column = engine_call("convert the values", partial(column_format.rule, text, column_format.arrow_type))
        columns.append(column)
    return arrow.RecordBatch.from_arrays(columns, schema=_arrow_schema(formats))
