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
from tightrope.tables.engine_calls import engine_call, load_library
from tightrope.tables.files import (
    Progress,
    RowGroupWriter,
    SumJob,
    Totals,
    WriteJob,
    atomic_parquet_file,
    iterate_batches,
    make_record_batch,
    split_batches,
)

if TYPE_CHECKING:
    import ibis.expr.types as ir

# Jobs on this machine: the engine streams Arrow batches, and no more than a few of them are in memory at once.

Stream = AbstractContextManager[Any]
"""Opens a reader of record batches."""


def write_streamed_job(rows: Stream, job: WriteJob, destination: Path, progress: Progress) -> int:
    """One Parquet file of what the job makes of the rows; how many there are."""
    check_destination(destination)
    with rows as reader:
        kept = [reader.schema.field(name) for name in job.kept_columns]
        schema = load_library("pyarrow").schema([*job.schema, *kept])
        with atomic_parquet_file(destination, schema, job.rows) as groups:
            return sum(
                _write_batch(groups, batch, job, schema) for batch in _report_progress(reader, job.rows, progress)
            )


def sum_streamed_job(rows: Stream, job: SumJob, progress: Progress) -> Totals:
    """The sum of what the job makes of the rows."""
    with rows as reader:
        return job.sum_batches(_report_progress(reader, job.rows, progress))


def _report_progress(reader: Any, size: int, progress: Progress) -> Iterator[Any]:
    """Batches of at most ``size`` rows; the number processed is reported before the next one."""
    done = 0
    for part in split_batches(iterate_batches(reader), size):
        yield part
        done += len(part)
        progress(done)


def _write_batch(groups: RowGroupWriter, batch: Any, job: WriteJob, schema: Any) -> int:
    columns = job.output_columns(batch)
    engine_call("write a batch of rows", lambda: groups.add_batch(make_record_batch(columns, schema)))
    return len(batch)


def check_destination(destination: Path) -> None:
    """Raise ``InputError`` unless it is the name of a Parquet file in a folder that exists."""
    if destination.suffix.lower() != ".parquet":
        raise InputError("destination", str(destination), "a path to a .parquet file", "name it something.parquet")
    if not destination.parent.is_dir():
        raise InputError("destination", str(destination), "in a folder that exists", "make the folder first")


Writer = Callable[[Any, "ir.Table", WriteJob, str], int]
Folder = Callable[[Any, "ir.Table", SumJob], Totals]


def compile_sql(backend: Any, rows: ir.Table) -> str:
    """The query for these rows; the tables in memory that it refers to are made known to the engine.

    For calls that ibis 12 has no working way for. The hook is not public: ibis is held below 13.
    """
    backend._run_pre_execute_hooks(rows)
    return str(backend.compile(rows))


def fetch_arrow(backend: Any, rows: ir.Table) -> Any:
    """The rows as an Arrow table."""
    return backend.to_pyarrow(rows)


def open_batch_reader(backend: Any, rows: ir.Table, size: int) -> Any:
    """A reader of record batches of about this size."""
    return engine_call("read the rows", lambda: backend.to_pyarrow_batches(rows, chunk_size=size))


@contextmanager
def materialize_table(step: str, backend: Any, rows: ir.Table) -> Iterator[ir.Table]:
    """The rows as a temporary table, computed once, dropped at the end; its name is fresh and says nothing."""
    name = f"tightrope_{uuid.uuid4().hex}"
    try:
        yield engine_call(step, lambda: backend.create_table(name, rows, temp=True))
    finally:
        engine_call("drop a temporary table", lambda: backend.drop_table(name, force=True))


@dataclass(frozen=True, slots=True)
class Backend:
    """Engine-specific behavior. ``name`` is the engine's name in ibis; every default is the behavior of ibis.

    Its functions get the connection (ibis' back end) first. An engine is one file that makes one of these, and is
    registered by its name.
    """

    name: str
    has_wide_sums: bool = True
    """True if sums of 64-bit integers are wider than 64 bits; otherwise contributions are widened first."""
    safe_settings: Callable[[Any], AbstractContextManager[None]] = lambda _: nullcontext()
    """Within it the engine's answers are right: settings that make them wrong are off."""
    fetch_arrow: Callable[[Any, ir.Table], Any] = fetch_arrow
    """Rows as an Arrow table."""
    materialize_table: Callable[[str, Any, ir.Table], AbstractContextManager[ir.Table]] = materialize_table
    """Rows computed once, for as long as they are needed."""
    open_batch_reader: Callable[[Any, ir.Table, int], Any] = open_batch_reader
    """A reader of Arrow batches, each computed once."""
    hold_snapshot: Callable[[Any, ir.Table, int | None], AbstractContextManager[tuple[Any, ir.Table]]] | None = None
    """If rows stay in the engine: holds them there, once, without texts of more bytes than that. None: they are read
    into our own snapshot."""
    write_on_workers: Writer | None = None
    """If jobs run on workers: writes a folder of Parquet parts. None: batches are streamed to this machine."""
    sum_on_workers: Folder | None = None
    """If jobs run on workers: adds up there."""

    alternative_source: str = ""
    """The source to open instead of an ibis table on this engine, if reading rows through ibis is unsafe."""

    @property
    def writes_parts(self) -> bool:
        """Return whether a job writes a folder of parts."""
        return self.write_on_workers is not None

    def run_write_job(self, backend: Any, rows: ir.Table, job: WriteJob, destination: Path, progress: Progress) -> int:
        """Write what the job makes of the rows; how many there are."""
        if self.write_on_workers is None:
            return write_streamed_job(self.open_stream(backend, rows, job.rows), job, destination, progress)
        count = self.write_on_workers(backend, rows, job, str(destination))
        progress(count)
        return count

    def run_sum_job(self, backend: Any, rows: ir.Table, job: SumJob, progress: Progress) -> Totals:
        """The sum of what the job makes of the rows."""
        if self.sum_on_workers is None:
            return sum_streamed_job(self.open_stream(backend, rows, job.rows), job, progress)
        return self.sum_on_workers(backend, rows, job)

    @contextmanager
    def open_stream(self, backend: Any, rows: ir.Table, size: int) -> Iterator[Any]:
        """A reader of record batches; closed at the end, also where it was not read to its end."""
        with self.safe_settings(backend):
            reader = self.open_batch_reader(backend, rows, size)
            try:
                yield reader
            finally:
                engine_call("stop reading the rows", reader.close)


# Names of tables in databases: ``table`` or ``schema.table``, a part with a dot or a quote in quotes, as in SQL.

_PART = r'[^."]+|"(?:[^"]|"")+"'
_NAME = re.compile(rf"(?:({_PART})\.)?({_PART})")


@dataclass(frozen=True, slots=True)
class Relation:
    """A table or view by its two names.

    >>> Relation.from_text("visits", "public"), str(Relation.from_text('clinic."a.b"', "public"))
    (Relation(schema='public', name='visits'), 'clinic."a.b"')
    """

    schema: str
    name: str

    @classmethod
    def from_text(cls, text: object, schema: str) -> Self:
        """The table, in this schema where none is named. Capitals count, in quotes or not."""
        found = _NAME.fullmatch(text) if isinstance(text, str) else None
        if found is None:
            raise InputError("table", text, "'table' or 'schema.table'", "put a part that has a dot in double quotes")
        before, name = found.groups()
        return cls(_unquote_name(before) if before else schema, _unquote_name(name))

    def __str__(self) -> str:
        return f"{_quote_name(self.schema)}.{_quote_name(self.name)}"

    def name_in_schema(self, schema: str) -> str:
        """As short as it can be said where this schema is understood."""
        return _quote_name(self.name) if self.schema == schema else str(self)


def _quote_name(name: str) -> str:
    plain = name and not any(letter in name for letter in '."')
    return name if plain else '"' + name.replace('"', '""') + '"'


def _unquote_name(part: str) -> str:
    return part[1:-1].replace('""', '"') if part.startswith('"') else part
