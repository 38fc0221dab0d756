"""``Backend``: an engine described by data, with ibis' behavior as the default; and jobs streamed to this machine."""

from __future__ import annotations

import re
import uuid
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Self

from tightrope.errors import InputError
from tightrope.tables.engine_calls import engine_call, load_library
from tightrope.tables.files import (
    Progress,
    SumJob,
    Totals,
    WriteJob,
    atomic_parquet_file,
    iterate_batches,
    split_batches,
)

if TYPE_CHECKING:
    import ibis.expr.types as ir
    import pyarrow as pa
    from ibis.backends import BaseBackend

BatchReader = AbstractContextManager["pa.RecordBatchReader"]
"""A context that opens a reader of Arrow record batches; only a few batches are in memory at once."""


def write_streamed_job(rows: BatchReader, job: WriteJob, destination: Path, progress: Progress) -> int:
    """Write the job's result for all rows as one Parquet file; return the number of rows."""
    check_destination(destination)
    with rows as reader:
        kept_fields = [reader.schema.field(name) for name in job.kept_columns]
        schema = load_library("pyarrow").schema([*job.schema, *kept_fields])
        with atomic_parquet_file(destination, schema, job.rows) as groups:
            batches = _report_progress(reader, job.rows, progress)
            return sum(job.write_batch(batch, schema, groups) for batch in batches)


def sum_streamed_job(rows: BatchReader, job: SumJob, progress: Progress) -> Totals:
    """Return the sum of the job's results for all rows."""
    with rows as reader:
        return job.sum_batches(_report_progress(reader, job.rows, progress))


def _report_progress(reader: pa.RecordBatchReader, size: int, progress: Progress) -> Iterator[pa.RecordBatch]:
    """Yield batches of at most ``size`` rows, and report the number of rows done after each."""
    done = 0
    for part in split_batches(iterate_batches(reader), size):
        yield part
        done += len(part)
        progress(done)


def check_destination(destination: Path) -> None:
    """Raise ``InputError`` unless the destination is a ``.parquet`` file in a folder that exists."""
    if destination.suffix.lower() != ".parquet":
        raise InputError("destination", str(destination), "a path to a .parquet file", "name it something.parquet")
    if not destination.parent.is_dir():
        raise InputError("destination", str(destination), "in a folder that exists", "make the folder first")


WorkerWriter = Callable[["BaseBackend", "ir.Table", WriteJob, str], int]
"""Writes a job's result to a folder, on the engine's workers; returns the number of rows."""
WorkerSum = Callable[["BaseBackend", "ir.Table", SumJob], Totals]
"""Sums a job's results on the engine's workers."""


def compile_sql(backend: BaseBackend, rows: ir.Table) -> str:
    """Return the SQL query for these rows, and register the tables in memory that it refers to.

    For calls that do not work through ibis 12. The hook is private in ibis, whose version is therefore kept below 13.
    """
    backend._run_pre_execute_hooks(rows)
    return str(backend.compile(rows))


def fetch_arrow(backend: BaseBackend, rows: ir.Table) -> pa.Table:
    """Return the rows as an Arrow table."""
    return backend.to_pyarrow(rows)


def open_batch_reader(backend: BaseBackend, rows: ir.Table, size: int) -> pa.RecordBatchReader:
    """Return a reader of record batches of about this size."""
    return engine_call("read the rows", lambda: backend.to_pyarrow_batches(rows, chunk_size=size))


@contextmanager
def materialize_table(step: str, backend: BaseBackend, rows: ir.Table) -> Iterator[ir.Table]:
    """Yield the rows as a temporary table with a random name, computed once and dropped at the end."""
    name = f"tightrope_{uuid.uuid4().hex}"
    try:
        yield engine_call(step, lambda: backend.create_table(name, rows, temp=True))
    finally:
        engine_call("drop a temporary table", lambda: backend.drop_table(name, force=True))


@dataclass(frozen=True, slots=True)
class Backend:
    """Engine-specific behavior. ``name`` is the engine's name in ibis; every default is the behavior of ibis.

    The functions get the connection (ibis' back end) as their first argument. Each engine has a module that defines one
    ``Backend``; the registry finds it by its name.
    """

    name: str
    has_wide_sums: bool = True
    """True if sums of 64-bit integers are wider than 64 bits; otherwise contributions are widened first."""
    safe_settings: Callable[[BaseBackend], AbstractContextManager[None]] = lambda _: nullcontext()
    """A context in which settings that make the engine's results wrong are turned off."""
    fetch_arrow: Callable[[BaseBackend, ir.Table], pa.Table] = fetch_arrow
    """Returns rows as an Arrow table."""
    materialize_table: Callable[[str, BaseBackend, ir.Table], AbstractContextManager[ir.Table]] = materialize_table
    """A context with a temporary table of rows, computed once."""
    open_batch_reader: Callable[[BaseBackend, ir.Table, int], pa.RecordBatchReader] = open_batch_reader
    """Returns a reader of Arrow batches, each computed once."""
    drop_rare_persons: Callable[[BaseBackend, ir.Table, int], ir.Table] = lambda _, persons, __: persons
    """Returns rows (column ``person``) without persons of at most that many rows, or with some of them: finding who has
    more rows is then cheaper."""
    hold_snapshot: (
        Callable[[BaseBackend, ir.Table, int | None], AbstractContextManager[tuple[BaseBackend, ir.Table]]] | None
    ) = None
    """If snapshots stay in the engine: a context with a back end and a table of the rows, computed once, in which texts
    of more than that many bytes are missing. None: rows are copied into our own DuckDB."""
    write_on_workers: WorkerWriter | None = None
    """If jobs run on workers: writes a folder of Parquet parts. None: batches are streamed to this machine."""
    sum_on_workers: WorkerSum | None = None
    """If jobs run on workers: returns the sum of their results."""
    alternative_source: str = ""
    """The source to open instead of an ibis table on this engine, if reading rows through ibis is unsafe."""

    @property
    def writes_parts(self) -> bool:
        """Return whether a job writes a folder of parts."""
        return self.write_on_workers is not None

    def run_write_job(
        self, backend: BaseBackend, rows: ir.Table, job: WriteJob, destination: Path, progress: Progress
    ) -> int:
        """Write the job's result for all rows; return the number of rows."""
        if self.write_on_workers is None:
            return write_streamed_job(self.open_stream(backend, rows, job.rows), job, destination, progress)
        count = self.write_on_workers(backend, rows, job, str(destination))
        progress(count)
        return count

    def run_sum_job(self, backend: BaseBackend, rows: ir.Table, job: SumJob, progress: Progress) -> Totals:
        """Return the sum of the job's results for all rows."""
        if self.sum_on_workers is None:
            return sum_streamed_job(self.open_stream(backend, rows, job.rows), job, progress)
        return self.sum_on_workers(backend, rows, job)

    @contextmanager
    def open_stream(self, backend: BaseBackend, rows: ir.Table, size: int) -> Iterator[pa.RecordBatchReader]:
        """Yield a reader of record batches; it is closed afterwards, even if it was not read to the end."""
        with self.safe_settings(backend):
            reader = self.open_batch_reader(backend, rows, size)
            try:
                yield reader
            finally:
                engine_call("stop reading the rows", reader.close)


_NAME_PART = r'[^."]+|"(?:[^"]|"")+"'
_RELATION_NAME = re.compile(rf"(?:({_NAME_PART})\.)?({_NAME_PART})")
"""``table`` or ``schema.table``; a part with a dot or a quote is in double quotes, as in SQL."""


@dataclass(frozen=True, slots=True)
class Relation:
    """A table or view of a database, by schema and name.

    >>> Relation.from_text("visits", "public"), str(Relation.from_text('clinic."a.b"', "public"))
    (Relation(schema='public', name='visits'), 'clinic."a.b"')
    """

    schema: str
    name: str

    @classmethod
    def from_text(cls, text: object, schema: str) -> Self:
        """Parse ``table`` or ``schema.table``; ``schema`` is the default. Names are case-sensitive, quoted or not."""
        match = _RELATION_NAME.fullmatch(text) if isinstance(text, str) else None
        if match is None:
            raise InputError("table", text, "'table' or 'schema.table'", "put a part that has a dot in double quotes")
        schema_part, name = match.groups()
        return cls(_unquote_name(schema_part) if schema_part else schema, _unquote_name(name))

    def __str__(self) -> str:
        return f"{_quote_name(self.schema)}.{_quote_name(self.name)}"

    def name_in_schema(self, schema: str) -> str:
        """Return the text form, without the schema if it is this one."""
        return _quote_name(self.name) if self.schema == schema else str(self)


def _quote_name(name: str) -> str:
    is_plain = name and not any(character in name for character in '."')
    return name if is_plain else '"' + name.replace('"', '""') + '"'


def _unquote_name(part: str) -> str:
    return part[1:-1].replace('""', '"') if part.startswith('"') else part
