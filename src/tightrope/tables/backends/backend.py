"""An engine as a table of facts: what ibis does for all of them, and where one does otherwise."""

from __future__ import annotations

import re
import uuid
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from tightrope.errors import InputError
from tightrope.tables.engine_calls import guarded, load
from tightrope.tables.files import Folding, Progress, RowGroups, Totals, Writing, portions, record_batch, whole_file

if TYPE_CHECKING:
    import ibis.expr.types as ir

# Jobs on this machine: the engine streams Arrow batches, and no more than a few of them are in memory at once.

Stream = AbstractContextManager[Any]
"""Opens a reader of record batches."""


def write(rows: Stream, job: Writing, destination: Path, progress: Progress) -> int:
    """One Parquet file of what the job makes of the rows; how many there are."""
    check_destination(destination)
    with rows as reader:
        kept = [reader.schema.field(name) for name in job.keep]
        schema = load("pyarrow").schema([*job.schema, *kept])
        with whole_file(destination, schema, job.rows) as groups:
            return sum(_write_batch(groups, batch, job, schema) for batch in _watched(reader, job.rows, progress))


def fold(rows: Stream, job: Folding, progress: Progress) -> Totals:
    """The sum of what the job makes of the rows."""
    with rows as reader:
        return job.total(_watched(reader, job.rows, progress))


def _watched(reader: Any, size: int, progress: Progress) -> Iterator[Any]:
    """Batches of at most ``size`` rows; the sum of those that were worked on is told before the next one."""
    done = 0
    while (batch := guarded("read the rows", lambda: next(reader, None))) is not None:
        for part in portions([batch], size):
            yield part
            done += len(part)
            progress(done)


def _write_batch(groups: RowGroups, batch: Any, job: Writing, schema: Any) -> int:
    columns = job.output_columns(batch)
    guarded("write a batch of rows", lambda: groups.add(record_batch(columns, schema)))
    return len(batch)


def check_destination(destination: Path) -> None:
    """Raise ``InputError`` unless it is the name of a Parquet file in a folder that exists."""
    if destination.suffix.lower() != ".parquet":
        raise InputError("destination", str(destination), "a path to a .parquet file", "name it something.parquet")
    if not destination.parent.is_dir():
        raise InputError("destination", str(destination), "in a folder that exists", "make the folder first")


Writer = Callable[[Any, "ir.Table", Writing, str], int]
Folder = Callable[[Any, "ir.Table", Folding], Totals]


def sql(backend: Any, rows: ir.Table) -> str:
    """The query for these rows; the tables in memory that it refers to are made known to the engine.

    For calls that ibis 12 has no working way for. The hook is not public: ibis is held below 13.
    """
    backend._run_pre_execute_hooks(rows)
    return str(backend.compile(rows))


def fetched(backend: Any, rows: ir.Table) -> Any:
    """The rows as an Arrow table."""
    return backend.to_pyarrow(rows)


def batches(backend: Any, rows: ir.Table, size: int) -> Any:
    """A reader of record batches of about this size."""
    return guarded("read the rows", lambda: backend.to_pyarrow_batches(rows, chunk_size=size))


@contextmanager
def temporary(step: str, backend: Any, rows: ir.Table) -> Iterator[ir.Table]:
    """The rows as a temporary table, computed once, dropped at the end; its name is fresh and says nothing."""
    name = f"tightrope_{uuid.uuid4().hex}"
    try:
        yield guarded(step, lambda: backend.create_table(name, rows, temp=True))
    finally:
        guarded("drop a temporary table", lambda: backend.drop_table(name, force=True))


@dataclass(frozen=True, slots=True)
class Backend:
    """What differs between engines. ``name`` is what ibis calls it; every default is what ibis does by itself.

    Its functions get the connection (ibis' back end) first. An engine is one file that makes one of these, and is
    registered by its name.
    """

    name: str
    wide_sums: bool = True
    """Whether sums of 64-bit integers are wider than 64 bits; otherwise contributions are widened first."""
    exact: Callable[[Any], AbstractContextManager[None]] = lambda _: nullcontext()
    """Within it the engine's answers are right: settings that make them wrong are off."""
    fetched: Callable[[Any, ir.Table], Any] = fetched
    """Rows as an Arrow table."""
    materialised: Callable[[str, Any, ir.Table], AbstractContextManager[ir.Table]] = temporary
    """Rows computed once, for as long as they are needed."""
    reader: Callable[[Any, ir.Table, int], Any] = batches
    """A reader of Arrow batches, none of which is computed twice."""
    snapshot: Callable[[Any, ir.Table, int | None], AbstractContextManager[tuple[Any, ir.Table]]] | None = None
    """Where rows stay in the engine: holds them there, once, without texts of more bytes than that. None: they are read
    into a room of ours."""
    writer: Writer | None = None
    """Where jobs run on workers: writes a folder of Parquet parts. None: batches are streamed to this machine."""
    folder: Folder | None = None
    """Where jobs run on workers: adds up there."""

    instead: str = ""
    """What to open in place of an ibis table on this engine, where ibis' ways to its rows are not safe enough."""

    @property
    def in_parts(self) -> bool:
        """Whether what a job writes is a folder of parts."""
        return self.writer is not None

    def write(self, backend: Any, rows: ir.Table, job: Writing, destination: Path, progress: Progress) -> int:
        """Write what the job makes of the rows; how many there are."""
        if self.writer is None:
            return write(self.stream(backend, rows, job.rows), job, destination, progress)
        count = self.writer(backend, rows, job, str(destination))
        progress(count)
        return count

    def fold(self, backend: Any, rows: ir.Table, job: Folding, progress: Progress) -> Totals:
        """The sum of what the job makes of the rows."""
        if self.folder is None:
            return fold(self.stream(backend, rows, job.rows), job, progress)
        return self.folder(backend, rows, job)

    @contextmanager
    def stream(self, backend: Any, rows: ir.Table, size: int) -> Iterator[Any]:
        """A reader of record batches; closed at the end, also where it was not read to its end."""
        with self.exact(backend):
            reader = self.reader(backend, rows, size)
            try:
                yield reader
            finally:
                guarded("stop reading the rows", reader.close)


# Names of tables in databases: ``table`` or ``schema.table``, a part with a dot or a quote in quotes, as in SQL.

_PART = r'[^."]+|"(?:[^"]|"")+"'
_NAME = re.compile(rf"(?:({_PART})\.)?({_PART})")


@dataclass(frozen=True, slots=True)
class Relation:
    """A table or view by its two names.

    >>> Relation.of("visits", "public"), str(Relation.of('clinic."a.b"', "public"))
    (Relation(schema='public', name='visits'), 'clinic."a.b"')
    """

    schema: str
    name: str

    @classmethod
    def of(cls, text: object, schema: str) -> Self:
        """The table, in this schema where none is named. Capitals count, in quotes or not."""
        found = _NAME.fullmatch(text) if isinstance(text, str) else None
        if found is None:
            raise InputError("table", text, "'table' or 'schema.table'", "put a part that has a dot in double quotes")
        before, name = found.groups()
        return cls(_plain(before) if before else schema, _plain(name))

    def __str__(self) -> str:
        return f"{_spelled(self.schema)}.{_spelled(self.name)}"

    def within(self, schema: str) -> str:
        """As short as it can be said where this schema is understood."""
        return _spelled(self.name) if self.schema == schema else str(self)


def _spelled(name: str) -> str:
    plain = name and not any(letter in name for letter in '."')
    return name if plain else '"' + name.replace('"', '""') + '"'


def _plain(part: str) -> str:
    return part[1:-1].replace('""', '"') if part.startswith('"') else part
