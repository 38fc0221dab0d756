"""A table that questions can be asked of, wherever it lives."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from tightrope.errors import InputError, SchemaError
from tightrope.tables.backends.backend import Backend
from tightrope.tables.backends.column_types import arrow_kind, portable
from tightrope.tables.backends.duckdb import connect
from tightrope.tables.backends.registry import of
from tightrope.tables.bounding import check, check_given, used_columns
from tightrope.tables.engine_calls import Once, guarded, load, needed
from tightrope.tables.expressions.tree import LONGEST_TEXT
from tightrope.tables.files import ROWS
from tightrope.tables.materialize import Rows, filled, normalize_batch, settled_schema, settled_type
from tightrope.tables.memory import refuse_large
from tightrope.tables.public_table import PublicTable, joined, private_names, used_tables
from tightrope.tables.request import Grouped, Request
from tightrope.tables.schema import Column, Schema
from tightrope.tables.snapshot import Crowds, Snapshot

if TYPE_CHECKING:
    import ibis.expr.datatypes as dt
    import ibis.expr.types as ir

Loader = Callable[[Sequence[str]], "ir.Table"]
"""Gives an ibis table that holds at least the named columns."""
Stream = Callable[[Sequence[str]], Rows]
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
    _connect: Callable[[], Any] = field(repr=False)
    """The back end: the same one each time. One of ours is made when rows are asked for, for a plan needs none."""
    _load: Loader = field(repr=False)
    _stream: Stream | None = field(default=None, repr=False)
    """Where rows come as Arrow batches; otherwise they are read through _load."""
    _arrow: Any = field(default=None, repr=False)
    """The Arrow schema of all columns of a stream."""
    _ready: Ready = field(default=lambda _: None, repr=False)
    public: tuple[PublicTable, ...] = field(default=(), repr=False)
    """Public tables in which its rows look something up; their columns are the last of the schema."""
    markers: int = 0
    """How many files of a folder are but marks of its writer (``_SUCCESS``, checksums) and hold no rows."""

    @property
    def private(self) -> Schema:
        """Its own columns, without those that are looked up."""
        looked_up = {name for table in self.public for name in table.added.names}
        return Schema(tuple(column for column in self.schema.columns if column.name not in looked_up))

    def public_for(self, requests: Sequence[Request]) -> tuple[PublicTable, ...]:
        """The public tables that these requests look something up in."""
        return used_tables(self.public, _names(requests))

    @property
    def _backend(self) -> Any:
        return self._connect()

    @property
    def engine(self) -> Backend:
        """What is particular about the engine that it lives in."""
        return of(self._backend)

    def chosen(self, names: Sequence[str]) -> tuple[Any, ir.Table]:
        """The back end and a table of exactly these columns, for jobs; ``SchemaError`` for a name that is none."""
        for name in names:
            self.schema.column(name)
        return self._backend, self._load(names).select(*names)

    @contextmanager
    def snapshot(self, requests: Sequence[Request]) -> Iterator[Snapshot]:
        """The rows as they are now, in a room of ours: read once, in the columns of all these requests together.

        Raises ``SchemaError`` when a column is missing or has a kind that cannot serve, ``InputError`` where the source
        is not what it was when it was opened, ``EngineError`` when the engine fails, without a value from the data.
        """
        for request in requests:
            if not isinstance(request, Request):
                raise InputError("request", type(request), "a tightrope.tables.Request")
            check(self.schema, request)
            refuse_large(request, self.schema)
        names = _names(requests)
        tables = used_tables(self.public, names)
        with self.snapshot_columns(private_names(self.public, names), LONGEST_TEXT) as (types, backend, rows):
            every = {**types, **{name: kind for table in tables for name, kind in table.types.items()}}
            whole = joined(rows, self.schema, backend, tables)
            with ExitStack() as stack:
                yield Snapshot(self.schema, every, Crowds.of(backend, whole, requests, stack), whole)

    def check(self, requests: Sequence[Request]) -> None:
        """Raise where reading would fail whatever is asked: the source has changed, is gone or does not answer.

        Reads no row. Raises what ``snapshot`` raises.
        """
        for request in requests:
            check(self.schema, request)
        names = private_names(self.public, _names(requests))
        self._ready(names)
        types = {table_column: kind for table in self.public for table_column, kind in table.types.items()}
        if self._stream is None:
            rows = guarded("look for the table", lambda: _only(self._load(names), names))
            guarded("look for the table", lambda: rows.limit(0).count().execute())
            types |= {name: rows[name].type() for name in rows.columns}
        else:
            types |= {name: load("ibis").dtype(settled_type(self._arrow.field(name).type)) for name in names}
        for request in requests:
            check_given(request, types)

    def snapshot_columns(self, names: Sequence[str], longest: int | None = None) -> AbstractContextManager[_Entered]:
        """The named columns of its own as they are now, where nothing changes them: types, back end and rows.

        Texts of more than ``longest`` bytes are missing in them.
        """
        return self._read_once(names, longest) if self._stream is None else self._streamed(names, longest)

    def collect(self, request: Request) -> Grouped:
        """The integers of one request, from a snapshot of its own: see ``Snapshot.collect``."""
        with self.snapshot((request,)) as rows:
            return rows.collect(request)

    @contextmanager
    def _streamed(self, names: Sequence[str], longest: int | None) -> Iterator[_Entered]:
        assert self._stream is not None  # noqa: S101 - the caller asked
        found = self._stream(list(names) or [_any_column(self.private)])
        types = {field.name: load("ibis").dtype(field.type) for field in settled_schema(found.schema)}
        with filled(found, longest) as (backend, rows):
            yield types, backend, rows

    @contextmanager
    def _read_once(self, names: Sequence[str], longest: int | None) -> Iterator[_Entered]:
        """Through the engine that the source lives in: plain columns, once."""
        rows = guarded("prepare the rows", lambda: _only(self._load(names), names))
        types = {name: rows[name].type() for name in rows.columns}
        if self.engine.snapshot is not None:
            with self.engine.snapshot(self._backend, rows, longest) as (backend, held):
                yield types, backend, held
            return
        with ExitStack() as stack:
            ours = guarded("prepare the rows", lambda: portable(rows))
            with self.engine.stream(self._backend, ours, ROWS) as reader:
                backend, held = stack.enter_context(filled(Rows(reader.schema, lambda: _batches(reader)), longest))
            yield types, backend, held


_Entered = tuple["Mapping[str, dt.DataType]", Any, "ir.Table"]
"""The types of the source's columns, the room, and the rows in it."""


def streamed(kind: str, arrow: Any, stream: Stream, ready: Ready = lambda _: None) -> Table:
    """A table of Arrow batches. ``arrow`` is the schema of all its columns; types that nobody knows are ``other``."""
    check_names(arrow.names)
    schema = Schema(tuple(Column(column.name, arrow_kind(settled_type(column.type))) for column in arrow))
    needed("ibis", "duckdb")
    ours = Once(connect)

    def loaded(names: Sequence[str]) -> ir.Table:
        found = stream(list(names) or [_any_column(schema)])
        stored = settled_schema(found.schema)
        batches = (normalize_batch(batch, stored) for batch in found.batches())
        reader = load("pyarrow").RecordBatchReader.from_batches(stored, batches)
        name = f"tightrope_{uuid.uuid4().hex}"
        guarded("read the rows", lambda: ours().con.register(name, reader))
        return guarded("read the rows", lambda: ours().table(name))

    return Table(schema, kind, ours, loaded, stream, arrow, ready)


def _any_column(schema: Schema) -> str:
    """A column to count rows by."""
    return next((column.name for column in schema.columns if column.kind != "other"), schema.names[0])


def _names(requests: Sequence[Request]) -> tuple[str, ...]:
    """The columns that requests speak of, each once."""
    return tuple(dict.fromkeys(name for request in requests for name in used_columns(request)))


def _only(rows: ir.Table, names: Sequence[str]) -> ir.Table:
    """The named columns, or, where none is named, rows that can be counted."""
    return rows.select(*names) if names else rows.select(row=load("ibis").literal(1))


def _batches(reader: Any) -> Iterator[Any]:
    while (batch := guarded("read the rows", lambda: next(reader, None))) is not None:
        yield batch


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
