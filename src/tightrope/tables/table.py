"""A data source that has been opened: its schema, and snapshots of its rows."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any

from tightrope.errors import InputError, SchemaError
from tightrope.tables.backends.backend import Backend
from tightrope.tables.backends.column_types import arrow_kind, ibis_type, to_portable_types
from tightrope.tables.backends.duckdb import open_connection
from tightrope.tables.backends.registry import backend_for
from tightrope.tables.bounding import check_listed_keys, check_request, used_columns
from tightrope.tables.engine_calls import LazyValue, engine_call, load_library, require_libraries
from tightrope.tables.expressions.tree import MAX_TEXT_BYTES, SourceRows
from tightrope.tables.files import MAX_BATCH_ROWS, iterate_batches
from tightrope.tables.materialize import RowSource, materialize_rows, normalize_batch, storage_schema, storage_type
from tightrope.tables.memory import check_row_memory
from tightrope.tables.public_table import PublicTable, join_public_tables, trace_lookups
from tightrope.tables.request import GroupTotals, Request
from tightrope.tables.schema import Column, Schema
from tightrope.tables.snapshot import OverBoundPersons, Snapshot

if TYPE_CHECKING:
    import ibis.expr.datatypes as dt
    import ibis.expr.types as ir
    from ibis.backends import BaseBackend

RowLoader = Callable[[Sequence[str]], "ir.Table"]
"""Returns an ibis table that has at least the named columns."""
StreamOpener = Callable[[Sequence[str]], RowSource]
"""Returns a source of exactly the named columns; its errors are ``TightropeError``."""
SourceCheck = Callable[[Sequence[str]], None]
"""Raises if the source of these columns is gone, has changed or does not respond; reads no value."""
SnapshotRows = tuple["Mapping[str, dt.DataType]", Any, "ir.Table"]
"""The types of the source's columns, the ibis connection that has the snapshot, and the table of its rows."""


@dataclass(frozen=True, slots=True)
class Table:
    """An opened source, with its schema; its data has not been read.

    ``source_kind`` is one of ``parquet, csv, duckdb, pandas, polars, arrow, spark, postgres, ibis``.
    """

    schema: Schema
    source_kind: str
    _open_connection: Callable[[], Any] = field(repr=False)
    """Returns the same ibis connection each time; the built-in DuckDB starts at the first read, not at planning."""
    _load_rows: RowLoader = field(repr=False)
    _open_stream: StreamOpener | None = field(default=None, repr=False)
    """Opens the rows as Arrow batches for snapshots; None if snapshots are made through ``_load_rows``."""
    _arrow_schema: Any = field(default=None, repr=False)
    """The Arrow schema of all columns, if rows come as Arrow batches."""
    _check_ready: SourceCheck = field(default=lambda _: None, repr=False)
    public_tables: tuple[PublicTable, ...] = field(default=(), repr=False)
    """Public tables that are joined to the rows; their columns are the last ones of the schema."""
    untyped_columns: tuple[str, ...] = field(default=(), repr=False)
    """Columns that have neither a type of their own nor a declared one: text of a CSV file, objects of pandas."""
    marker_count: int = 0
    """Number of files without rows in a folder, such as ``_SUCCESS`` and checksums; they are not read."""
    _hold_connection: Callable[[], AbstractContextManager[None]] = field(default=nullcontext, repr=False)
    """A context within which the connection stays open; a DuckDB file is closed, and so unlocked, outside of it."""

    @property
    def private_schema(self) -> Schema:
        """The private table's own columns, without those of public tables."""
        public_names = {name for table in self.public_tables for name in table.added_schema.column_names}
        return Schema(tuple(column for column in self.schema.columns if column.name not in public_names))

    def public_tables_used_by(self, requests: Sequence[Request]) -> tuple[PublicTable, ...]:
        """Return the public tables whose columns these requests use."""
        return trace_lookups(self.public_tables, _requested_columns(requests))[0]

    @property
    def _connection(self) -> Any:
        return self._open_connection()

    @property
    def backend_adapter(self) -> Backend:
        """The adapter for the database of the ibis connection."""
        with self._hold_connection():
            return backend_for(self._connection)

    @contextmanager
    def select_columns(self, names: Sequence[str]) -> Iterator[tuple[BaseBackend, ir.Table]]:
        """Yield the ibis connection and a table of exactly these columns; a DuckDB file is closed at the end.

        ``write_columns`` and ``sum_over_batches`` use it. Raises ``SchemaError`` for an unknown name.
        """
        for name in names:
            self.schema.find_column(name)
        with self._hold_connection():
            yield self._connection, self._load_rows(names).select(*names)

    @contextmanager
    def open_snapshot(self, requests: Sequence[Request]) -> Iterator[Snapshot]:
        """Yield a snapshot of the current rows: the columns of all these requests, read once.

        Raises ``SchemaError`` if a column is missing or has an unsuitable kind, ``InputError`` if the source has
        changed since it was opened or a row needs too much memory, ``EngineError`` if the database fails. Messages of
        errors contain no value from the data.
        """
        for request in requests:
            if not isinstance(request, Request):
                raise InputError("request", type(request), "a tightrope.tables.Request")
            check_request(self.schema, request)
            check_row_memory(request, self.schema)
        names = _requested_columns(requests)
        tables, private_columns = trace_lookups(self.public_tables, names)
        with self.snapshot_columns(private_columns, MAX_TEXT_BYTES) as (types, connection, rows):
            all_types = {**types, **{name: dtype for table in tables for name, dtype in table.added_types.items()}}
            joined = join_public_tables(rows, self.schema, connection, tables)
            with ExitStack() as stack:
                over_bound = OverBoundPersons.from_requests(
                    connection, SourceRows(joined, self.schema), requests, stack
                )
                yield Snapshot(self.schema, all_types, over_bound, joined)

    def check_readable(self, requests: Sequence[Request]) -> None:
        """Raise if reading would fail now: the source has changed, is gone or does not respond.

        Reads no row. Raises ``SchemaError``, ``InputError`` (also for listed keys of another type) or ``EngineError``.
        The memory of a row is checked only by ``open_snapshot``.
        """
        for request in requests:
            check_request(self.schema, request)
        _, names = trace_lookups(self.public_tables, _requested_columns(requests))
        self._check_ready(names)
        types = {name: dtype for table in self.public_tables for name, dtype in table.added_types.items()}
        if self._open_stream is None:
            with self._hold_connection():
                rows = engine_call("check the table", lambda: _select_or_count(self._load_rows(names), names))
                engine_call("check the table", lambda: rows.limit(0).count().execute())
                types |= {name: rows[name].type() for name in rows.columns}
        else:
            types |= {name: ibis_type(storage_type(self._arrow_schema.field(name).type)) for name in names}
        for request in requests:
            check_listed_keys(request, types)

    def snapshot_columns(
        self, names: Sequence[str], max_text_bytes: int | None = None
    ) -> AbstractContextManager[SnapshotRows]:
        """Open a snapshot of these columns of the private table: their types, the connection and the rows.

        Texts of more than ``max_text_bytes`` bytes become null.
        """
        return (
            self._snapshot_of_engine(names, max_text_bytes)
            if self._open_stream is None
            else self._snapshot_of_stream(names, max_text_bytes)
        )

    def collect_totals(self, request: Request) -> GroupTotals:
        """Return the exact integer totals per group of one request (private, without noise), from a new snapshot."""
        with self.open_snapshot((request,)) as rows:
            return rows.collect_totals(request)

    @contextmanager
    def _snapshot_of_stream(self, names: Sequence[str], max_text_bytes: int | None) -> Iterator[SnapshotRows]:
        assert self._open_stream is not None  # noqa: S101 - checked by the caller
        source = self._open_stream(list(names) or [_column_for_row_count(self.private_schema)])
        types = {field.name: ibis_type(field.type) for field in storage_schema(source.schema)}
        with materialize_rows(source, max_text_bytes) as (connection, rows):
            yield types, connection, rows

    @contextmanager
    def _snapshot_of_engine(self, names: Sequence[str], max_text_bytes: int | None) -> Iterator[SnapshotRows]:
        """Copy the named columns once, through the source's own database."""
        with ExitStack() as stack:
            with ExitStack() as reading:
                reading.enter_context(self._hold_connection())
                rows = engine_call("prepare the rows", lambda: _select_or_count(self._load_rows(names), names))
                types = {name: rows[name].type() for name in rows.columns}
                if self.backend_adapter.hold_snapshot is not None:
                    held = self.backend_adapter.hold_snapshot(self._connection, rows, max_text_bytes)
                    connection, snapshot = stack.enter_context(held)
                else:
                    portable = engine_call("prepare the rows", lambda: to_portable_types(rows))
                    stream = self.backend_adapter.open_stream(self._connection, portable, MAX_BATCH_ROWS)
                    reader = reading.enter_context(stream)
                    connection, snapshot = stack.enter_context(
                        materialize_rows(RowSource(reader.schema, lambda: iterate_batches(reader)), max_text_bytes)
                    )
            yield types, connection, snapshot


def table_from_stream(
    source_kind: str,
    arrow_schema: Any,
    open_stream: StreamOpener,
    check_ready: SourceCheck = lambda _: None,
    source_types: Mapping[str, str] | None = None,
) -> Table:
    """Return a table whose rows come as Arrow batches; ``arrow_schema`` has all its columns.

    Columns of unsupported Arrow types get the kind ``other``. ``source_types`` are the source's own names of types,
    where they are not Arrow's.
    """
    check_names(arrow_schema.names)
    own_names = source_types or {}
    columns = ((column.name, column.type, own_names.get(column.name, str(column.type))) for column in arrow_schema)
    schema = Schema(tuple(Column(name, arrow_kind(storage_type(given)), shown) for name, given, shown in columns))
    require_libraries("ibis", "duckdb")
    open_connection_once = LazyValue(open_connection)

    def load_rows(names: Sequence[str]) -> ir.Table:
        source = open_stream(list(names) or [_column_for_row_count(schema)])
        stored_schema = storage_schema(source.schema)
        batches = map(partial(normalize_batch, schema=stored_schema), source.read_batches())
        reader = load_library("pyarrow").RecordBatchReader.from_batches(stored_schema, batches)
        name = f"tightrope_{uuid.uuid4().hex}"
        engine_call("read the rows", lambda: open_connection_once().con.register(name, reader))
        return engine_call("read the rows", lambda: open_connection_once().table(name))

    return Table(schema, source_kind, open_connection_once, load_rows, open_stream, arrow_schema, check_ready)


def _column_for_row_count(schema: Schema) -> str:
    """Return the name of the column to read if only rows are counted."""
    return next((column.name for column in schema.columns if column.kind != "other"), schema.column_names[0])


def _requested_columns(requests: Sequence[Request]) -> tuple[str, ...]:
    """Return the columns that the requests use, each once."""
    return tuple(dict.fromkeys(name for request in requests for name in used_columns(request)))


def _select_or_count(rows: ir.Table, names: Sequence[str]) -> ir.Table:
    """Return the named columns, or a constant column by which rows can be counted if ``names`` is empty."""
    return rows.select(*names) if names else rows.select(row=load_library("ibis").literal(1))


def check_names(names: Iterable[object]) -> None:
    """Raise ``SchemaError`` unless there are columns, and their names are non-empty texts and distinct.

    Names that differ only in capitals count as equal, because engines do not distinguish them.
    """
    seen: set[str] = set()
    for name in names:
        if not isinstance(name, str) or not name:
            raise SchemaError("column", name, "a non-empty text", "rename the column")
        if name.casefold() in seen:
            expected = "a name that occurs once (upper and lower case count as equal)"
            raise SchemaError("column", name, expected, "rename one of the two columns")
        seen.add(name.casefold())
    if not seen:
        raise SchemaError("columns", [], "at least one column")
