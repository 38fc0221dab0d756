"""A table that questions can be asked of, wherever it lives."""

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
from tightrope.tables.files import ROWS, iterate_batches
from tightrope.tables.materialize import RowSource, materialize_rows, normalize_batch, storage_schema, storage_type
from tightrope.tables.memory import check_row_memory
from tightrope.tables.public_table import PublicTable, join_public_tables, private_names, used_tables
from tightrope.tables.request import GroupTotals, Request
from tightrope.tables.schema import Column, Schema
from tightrope.tables.snapshot import OverBoundRows, Snapshot

if TYPE_CHECKING:
    import ibis.expr.datatypes as dt
    import ibis.expr.types as ir

Loader = Callable[[Sequence[str]], "ir.Table"]
"""Gives an ibis table that holds at least the named columns."""
Stream = Callable[[Sequence[str]], RowSource]
"""Gives exactly the named columns; errors of it are ``TightropeError``."""
Ready = Callable[[Sequence[str]], None]
"""Raises where the source of these columns is gone, has changed or does not answer; reads no value."""


@dataclass(frozen=True, slots=True)
class Table:
    """A source, opened: its schema is known, its data has not been read.

    ``source_kind`` is one of ``parquet, csv, duckdb, pandas, polars, arrow, spark, postgres, ibis``.
    """

    schema: Schema
    source_kind: str
    _open_backend: Callable[[], Any] = field(repr=False)
    """The back end, the same each time. Ours is created when rows are read, because plans do not need it."""
    _load_rows: Loader = field(repr=False)
    _read_stream: Stream | None = field(default=None, repr=False)
    """Set if rows come as Arrow batches; otherwise they are read through _load."""
    _arrow_schema: Any = field(default=None, repr=False)
    """The Arrow schema of all columns of a stream."""
    _check_ready: Ready = field(default=lambda _: None, repr=False)
    public_tables: tuple[PublicTable, ...] = field(default=(), repr=False)
    """Public tables in which its rows look something up; their columns are the last of the schema."""
    marker_count: int = 0
    """The number of files in a folder that are only marks of its writer (``_SUCCESS``, checksums), without rows."""

    @property
    def private_schema(self) -> Schema:
        """Its own columns, without looked-up columns."""
        looked_up = {name for table in self.public_tables for name in table.added_schema.column_names}
        return Schema(tuple(column for column in self.schema.columns if column.name not in looked_up))

    def public_for(self, requests: Sequence[Request]) -> tuple[PublicTable, ...]:
        """The public tables that these requests look something up in."""
        return used_tables(self.public_tables, _requested_columns(requests))

    @property
    def _connected_backend(self) -> Any:
        return self._open_backend()

    @property
    def backend_adapter(self) -> Backend:
        """The engine-specific behavior of its back end."""
        return backend_for(self._connected_backend)

    def select_columns(self, names: Sequence[str]) -> tuple[Any, ir.Table]:
        """The back end and a table of exactly these columns, for jobs; ``SchemaError`` for an unknown name."""
        for name in names:
            self.schema.find_column(name)
        return self._connected_backend, self._load_rows(names).select(*names)

    @contextmanager
    def open_snapshot(self, requests: Sequence[Request]) -> Iterator[Snapshot]:
        """Return a snapshot of the rows as they are now: read once, in the columns of all these requests together.

        Raises ``SchemaError`` when a column is missing or has a kind that cannot serve, ``InputError`` where the source
        is not what it was when it was opened, ``EngineError`` when the engine fails, without a value from the data.
        """
        for request in requests:
            if not isinstance(request, Request):
                raise InputError("request", type(request), "a tightrope.tables.Request")
            check_request(self.schema, request)
            check_row_memory(request, self.schema)
        names = _requested_columns(requests)
        tables = used_tables(self.public_tables, names)
        with self.snapshot_columns(private_names(self.public_tables, names), MAX_TEXT_BYTES) as (types, backend, rows):
            every = {**types, **{name: kind for table in tables for name, kind in table.added_types.items()}}
            whole = join_public_tables(rows, self.schema, backend, tables)
            with ExitStack() as stack:
                yield Snapshot(self.schema, every, OverBoundRows.from_requests(backend, whole, requests, stack), whole)

    def check_readable(self, requests: Sequence[Request]) -> None:
        """Raise if every read would fail: the source has changed, is gone or does not respond.

        Reads no row. Raises what ``open_snapshot`` raises.
        """
        for request in requests:
            check_request(self.schema, request)
        names = private_names(self.public_tables, _requested_columns(requests))
        self._check_ready(names)
        types = {table_column: kind for table in self.public_tables for table_column, kind in table.added_types.items()}
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

    def snapshot_columns(self, names: Sequence[str], longest: int | None = None) -> AbstractContextManager[_Entered]:
        """The named columns of its own as they are now, where nothing changes them: types, back end and rows.

        Texts of more than ``longest`` bytes are missing in them.
        """
        return (
            self._snapshot_of_engine(names, longest)
            if self._read_stream is None
            else self._snapshot_of_stream(names, longest)
        )

    def collect_totals(self, request: Request) -> GroupTotals:
        """The integers of one request, from a snapshot of its own: see ``Snapshot.collect_totals``."""
        with self.open_snapshot((request,)) as rows:
            return rows.collect_totals(request)

    @contextmanager
    def _snapshot_of_stream(self, names: Sequence[str], longest: int | None) -> Iterator[_Entered]:
        assert self._read_stream is not None  # noqa: S101 - the caller asked
        found = self._read_stream(list(names) or [_any_column(self.private_schema)])
        types = {field.name: load_library("ibis").dtype(field.type) for field in storage_schema(found.schema)}
        with materialize_rows(found, longest) as (backend, rows):
            yield types, backend, rows

    @contextmanager
    def _snapshot_of_engine(self, names: Sequence[str], longest: int | None) -> Iterator[_Entered]:
        """Through the engine that the source lives in: plain columns, once."""
        rows = engine_call("prepare the rows", lambda: _select_or_count(self._load_rows(names), names))
        types = {name: rows[name].type() for name in rows.columns}
        if self.backend_adapter.hold_snapshot is not None:
            with self.backend_adapter.hold_snapshot(self._connected_backend, rows, longest) as (backend, held):
                yield types, backend, held
            return
        with ExitStack() as stack:
            ours = engine_call("prepare the rows", lambda: to_portable_types(rows))
            with self.backend_adapter.open_stream(self._connected_backend, ours, ROWS) as reader:
                backend, held = stack.enter_context(
                    materialize_rows(RowSource(reader.schema, lambda: iterate_batches(reader)), longest)
                )
            yield types, backend, held


_Entered = tuple["Mapping[str, dt.DataType]", Any, "ir.Table"]
"""The types of the source's columns, the room, and the rows in it."""


def table_from_stream(kind: str, arrow: Any, stream: Stream, ready: Ready = lambda _: None) -> Table:
    """A table of Arrow batches. ``arrow`` is the schema of all its columns; unknown types are ``other``."""
    check_names(arrow.names)
    schema = Schema(tuple(Column(column.name, arrow_kind(storage_type(column.type))) for column in arrow))
    require_libraries("ibis", "duckdb")
    ours = LazyValue(open_connection)

    def load_rows(names: Sequence[str]) -> ir.Table:
        found = stream(list(names) or [_any_column(schema)])
        stored = storage_schema(found.schema)
        batches = (normalize_batch(batch, stored) for batch in found.read_batches())
        reader = load_library("pyarrow").RecordBatchReader.from_batches(stored, batches)
        name = f"tightrope_{uuid.uuid4().hex}"
        engine_call("read the rows", lambda: ours().con.register(name, reader))
        return engine_call("read the rows", lambda: ours().table(name))

    return Table(schema, kind, ours, load_rows, stream, arrow, ready)


def _any_column(schema: Schema) -> str:
    """A column to count rows by."""
    return next((column.name for column in schema.columns if column.kind != "other"), schema.column_names[0])


def _requested_columns(requests: Sequence[Request]) -> tuple[str, ...]:
    """The columns that requests speak of, each once."""
    return tuple(dict.fromkeys(name for request in requests for name in used_columns(request)))


def _select_or_count(rows: ir.Table, names: Sequence[str]) -> ir.Table:
    """The named columns, or, where none is named, rows that can be counted."""
    return rows.select(*names) if names else rows.select(row=load_library("ibis").literal(1))


def check_names(names: Iterable[object]) -> None:
    """``SchemaError`` unless there are columns and each has a name of its own that is text and not empty.

    Engines take ``a`` and ``A`` for one name: so does this.
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
