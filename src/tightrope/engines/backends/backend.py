"""An engine as a table of facts: what ibis does for all of them, and where one does otherwise."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tightrope.engines.backends import streamed
from tightrope.engines.ground.job import Folding, Progress, Totals, Writing
from tightrope.engines.guard import guarded

if TYPE_CHECKING:
    import ibis.expr.types as ir

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
            return streamed.write(self.stream(backend, rows, job.rows), job, destination, progress)
        count = self.writer(backend, rows, job, str(destination))
        progress(count)
        return count

    def fold(self, backend: Any, rows: ir.Table, job: Folding, progress: Progress) -> Totals:
        """The sum of what the job makes of the rows."""
        if self.folder is None:
            return streamed.fold(self.stream(backend, rows, job.rows), job, progress)
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
