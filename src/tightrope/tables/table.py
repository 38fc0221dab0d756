"""An opened source of rows: its schema, and snapshots of its rows in the engine."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from tightrope.errors import InputError, SchemaError
from tightrope.tables.backends.backend import Backend
from tightrope.tables.backends.column_types import arrow_kind, to_portable_types
from tightrope.tables.backends.duckdb import open_connection
from tightrope.tables.backends.registry import backend_for
from tightrope.tables.bounding import check_given_keys, check_request, used_columns
from tightrope.tables.engine_calls import LazyValue, engine_call, load_library, require_libraries
from tightrope.tables.expressions.tree import MAX_TEXT_BYTES
from tightrope.tables.files import MAX_BATCH_ROWS, iterate_batches
from tightrope.tables.materialize import RowSource, materialize_rows, normalize_batch, storage_schema, storage_type
from tightrope.tables.memory import check_row_memory
from tightrope.tables.public_table import PublicTable, join_public_tables, private_names, used_tables
from tightrope.tables.request import GroupTotals, Request
from tightrope.tables.schema import Column, Schema
from tightrope.tables.snapshot import OverBoundPersons, Snapshot

if TYPE_CHECKING:
    import ibis.expr.datatypes as dt
    import ibis.expr.types as ir

RowLoader = Callable[[Sequence[str]], "ir.Table"]
"""Returns an ibis table that has at least the named columns."""
StreamOpener = Callable[[Sequence[str]], RowSource]
"""Returns a source of exactly the named columns; its errors are ``TightropeError``."""
SourceCheck = Callable[[Sequence[str]], None]
"""Raises if the source of these columns is gone, has changed or does not respond; reads no value."""
SnapshotColumns = tuple["Mapping[str, dt.DataType]", Any, "ir.Table"]
"""The types of the source's columns, the back end that holds the snapshot, and the table of rows in it."""


@dataclass(frozen=True, slots=True)
class Table:
    """An opened source: its schema is known, its data has not been read.

    ``source_kind`` is one of ``parquet, csv, duckdb, pandas, polars, arrow, spark, postgres, ibis``.
    """

    schema: Schema
    source_kind: str
    _open_backend: Callable[[], Any] = field(repr=False)
    """Returns the same back end each time; our own DuckDB starts only when rows are read, because plans need none."""
    _load_rows: RowLoader = field(repr=False)
    _read_stream: StreamOpener | None = field(default=None, repr=False)
    """Set if rows come as Arrow batches; otherwise they are read through ``_load_rows``."""
    _arrow_schema: Any = field(default=None, repr=False)
    """The Arrow schema of all columns, if rows come as Arrow batches."""
    _check_ready: SourceCheck = field(default=lambda _: None, repr=False)
    public_tables: tuple[PublicTable, ...] = field(default=(), repr=False)
    """Public tables that are joined to the rows; their columns are the last ones of the schema."""
    marker_count: int = 0
    """The number of files in a folder that are markers of its writer without rows (``_SUCCESS``, checksums)."""

    @property
    def private_schema(self) -> Schema:
        """The private table's own columns, without those of public tables."""
        public_names = {name for table in self.public_tables for name in table.added_schema.column_names}
        return Schema(tuple(column for column in self.schema.columns if column.name not in public_names))

    def public_for(self, requests: Sequence[Request]) -> tuple[PublicTable, ...]:
        """Return the public tables whose columns these requests use."""
        return used_tables(self.public_tables, _requested_columns(requests))

    @property
    def _connected_backend(self) -> Any:
        return self._open_backend()

    @property
    def backend_adapter(self) -> Backend:
        """The engine-specific behavior of the back end."""
        return backend_for(self._connected_backend)

    def select_columns(self, names: Sequence[str]) -> tuple[Any, ir.Table]:
        """Return the back end and a table of exactly these columns, for jobs; ``SchemaError`` for an unknown name."""
        for name in names:
            self.schema.find_column(name)
        return self._connected_backend, self._load_rows(names).select(*names)

    @contextmanager
    def open_snapshot(self, requests: Sequence[Request]) -> Iterator[Snapshot]:
        """Yield a snapshot of the current rows: the columns of all these requests, read once.

        Raises ``SchemaError`` if a column is missing or has an unsuitable kind, ``InputError`` if the source has
        changed since it was opened, ``EngineError`` if the engine fails, without a value from the data.
        """
        for request in requests:
            if not isinstance(request, Request):
                raise InputError("request", type(request), "a tightrope.tables.Request")
            check_request(self.schema, request)
            check_row_memory(request, self.schema)
        names = _requested_columns(requests)
        tables = used_tables(self.public_tables, names)
        with self.snapshot_columns(private_names(self.public_tables, names), MAX_TEXT_BYTES) as (types, backend, rows):
            all_types = {**types, **{name: dtype for table in tables for name, dtype in table.added_types.items()}}
            joined = join_public_tables(rows, self.schema, backend, tables)
            with ExitStack() as stack:
                over_bound = OverBoundPersons.from_requests(backend, joined, requests, stack)
                yield Snapshot(self.schema, all_types, over_bound, joined)

    def check_readable(self, requests: Sequence[Request]) -> None:
        """Raise if reading would fail now: the source has changed, is gone or does not respond.

        Reads no row. Raises the errors of ``open_snapshot``.
        """
        for request in requests:
            check_request(self.schema, request)
        names = private_names(self.public_tables, _requested_columns(requests))
        self._check_ready(names)
        types = {name: dtype for table in self.public_tables for name, dtype in table.added_types.items()}
        if self._read_stream is None:
            rows = engine_call("look for the table", lambda: _select_or_count(self._load_rows(names), names))
            engine_call("look for the table", lambda: rows.limit(0).count().execute())
            types |= {name: rows[name].type() for name in rows.columns}
        else:
            types |= {
                name: load_library("ibis").dtype(storage_type(self._arrow_schema.field(name).type)) for name in names
            }
        for request in requests:
            check_given_keys(request, types)

    def snapshot_columns(
        self, names: Sequence[str], longest: int | None = None
    ) -> AbstractContextManager[SnapshotColumns]:
        """Open a snapshot of these columns of the private table: their types, the back end and the rows.

        Texts of more than ``longest`` bytes are missing in it.
        """
        return (
            self._snapshot_of_engine(names, longest)
            if self._read_stream is None
            else self._snapshot_of_stream(names, longest)
        )

    def collect_totals(self, request: Request) -> GroupTotals:
        """Return the integers of one request, from a new snapshot; see ``Snapshot.collect_totals``."""
        with self.open_snapshot((request,)) as rows:
            return rows.collect_totals(request)

    @contextmanager
    def _snapshot_of_stream(self, names: Sequence[str], longest: int | None) -> Iterator[SnapshotColumns]:
        assert self._read_stream is not None  # noqa: S101 - checked by the caller
        source = self._read_stream(list(names) or [_any_column(self.private_schema)])
        types = {field.name: load_library("ibis").dtype(field.type) for field in storage_schema(source.schema)}
        with materialize_rows(source, longest) as (backend, rows):
            yield types, backend, rows

    @contextmanager
    def _snapshot_of_engine(self, names: Sequence[str], longest: int | None) -> Iterator[SnapshotColumns]:
        """Read plain columns once, through the engine that holds the source."""
        rows = engine_call("prepare the rows", lambda: _select_or_count(self._load_rows(names), names))
        types = {name: rows[name].type() for name in rows.columns}
        if self.backend_adapter.hold_snapshot is not None:
            with self.backend_adapter.hold_snapshot(self._connected_backend, rows, longest) as (backend, snapshot):
                yield types, backend, snapshot
            return
        with ExitStack() as stack:
            portable = engine_call("prepare the rows", lambda: to_portable_types(rows))
            with self.backend_adapter.open_stream(self._connected_backend, portable, MAX_BATCH_ROWS) as reader:
                backend, snapshot = stack.enter_context(
                    materialize_rows(RowSource(reader.schema, lambda: iterate_batches(reader)), longest)
                )
            yield types, backend, snapshot


def table_from_stream(kind: str, arrow: Any, stream: StreamOpener, check_ready: SourceCheck = lambda _: None) -> Table:
    """Return a table whose rows come as Arrow batches; ``arrow`` is the schema of all its columns.

    Columns of types without a kind are ``other``.
    """
    check_names(arrow.names)
    schema = Schema(tuple(Column(column.name, arrow_kind(storage_type(column.type))) for column in arrow))
    require_libraries("ibis", "duckdb")
    open_backend = LazyValue(open_connection)

    def load_rows(names: Sequence[str]) -> ir.Table:
        source = stream(list(names) or [_any_column(schema)])
        stored = storage_schema(source.schema)
        batches = (normalize_batch(batch, stored) for batch in source.read_batches())
        reader = load_library("pyarrow").RecordBatchReader.from_batches(stored, batches)
        name = f"tightrope_{uuid.uuid4().hex}"
        engine_call("read the rows", lambda: open_backend().con.register(name, reader))
        return engine_call("read the rows", lambda: open_backend().table(name))

    return Table(schema, kind, open_backend, load_rows, stream, arrow, check_ready)


def _any_column(schema: Schema) -> str:
    """Return the name of a column by which rows can be counted."""
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
            raise SchemaError("column", name, "a name that is text and not empty", "rename the column")
        if name.casefold() in seen:
            raise SchemaError("column", name, "the name of one column only, also in capitals", "rename one of them")
        seen.add(name.casefold())
    if not seen:
        raise SchemaError("columns", [], "at least one column")
