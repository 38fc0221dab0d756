"""One Parquet file that appears under its name when it is whole, and never in the place of another one."""

from __future__ import annotations

import atexit
import functools
import hashlib
import os
import shutil
import tempfile
import uuid
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tightrope.errors import EngineError, InputError
from tightrope.tables.engine_calls import engine_call, load_library


@dataclass(slots=True)
class RowGroupWriter:
    """Batches in, row groups of exactly ``rows`` rows out; the last one holds the rest.

    Where an engine ends its batches may depend on the data – on how many bytes the lines of a CSV file have, say – and
    row groups that ended there would tell.
    """

    writer: Any
    schema: Any
    rows: int
    _pending_batches: list[Any] = field(default_factory=list)
    _pending_rows: int = 0

    def add_batch(self, batch: Any) -> None:
        """Take a record batch; groups that are full are written."""
        while len(batch):
            part = batch.slice(0, self.rows - self._pending_rows)
            batch = batch.slice(len(part))
            self._pending_batches.append(part)
            self._pending_rows += len(part)
            if self._pending_rows == self.rows:
                self.write_pending()

    def add_batches(self, batches: Iterable[Any]) -> None:
        """Take record batches, cast to the schema."""
        for batch in batches:
            self.add_batch(batch.cast(self.schema))

    def write_pending(self) -> None:
        """Write what waits as one group."""
        if self._pending_batches:
            table = load_library("pyarrow").Table.from_batches(self._pending_batches, self.schema)
            self.writer.write_table(table, row_group_size=self.rows)
        self._pending_batches, self._pending_rows = [], 0


@contextmanager
def atomic_parquet_file(destination: Path, schema: Any, rows: int) -> Iterator[RowGroupWriter]:
    """Yield a writer of batches; the file appears at the end of the block, unless that fails.

    Raises ``InputError`` where something else got the name meanwhile. Who is killed in the block leaves a hidden
    ``.NAME.….part`` next to the destination.
    """
    part = destination.with_name(f".{destination.name}.{uuid.uuid4().hex}.part")
    make = load_library("pyarrow.parquet").ParquetWriter
    try:
        writer = engine_call("create the Parquet file", lambda: make(part, schema, compression="zstd"))
        try:
            groups = RowGroupWriter(writer, schema, rows)
            yield groups
            engine_call("write the last rows", groups.write_pending)
        finally:
            engine_call("finish the Parquet file", writer.close)
        _publish_file(part, destination)
    finally:
        part.unlink(missing_ok=True)


def destination_exists_error(destination: Path) -> InputError:
    """The refusal to replace what is there."""
    return InputError(
        "destination", str(destination), "a path that does not exist yet", "remove what is there, or rename"
    )


def _publish_file(part: Path, destination: Path) -> None:
    """The file under its name; a second link, unlike a new name, never replaces what is there."""
    try:
        os.link(part, destination)
    except FileExistsError:
        raise destination_exists_error(destination) from None
    except OSError:  # a file system without links: the first to make the empty file has the name
        try:
            destination.touch(exist_ok=False)
        except FileExistsError:
            raise destination_exists_error(destination) from None
        part.replace(destination)


# A folder that only we can enter, for what does not fit in memory: gone when we leave, or when the next one comes.

PREFIX = "tightrope-"
LOCK = "lock"


def spill_folder(database: Path | None = None) -> Path:
    """A name for a database's own folder of spilled rows; the database makes it (0700, in ours) when it spills.

    Two databases that shared a folder would share file names. DuckDB opens a file twice in a process only with the same
    settings, so that a file has the same folder every time.
    """
    name = uuid.uuid4().hex if database is None else hashlib.sha256(str(database.absolute()).encode()).hexdigest()
    return _process_folder(os.getpid()) / name


@functools.cache
def _process_folder(process: int) -> Path:
    """The folder of this process (a fork makes its own), held by a lock until the process ends."""
    parent = Path(tempfile.gettempdir())
    # Our folders whose process has ended, by their locks, because process numbers are reused.
    for stale in parent.glob(f"{PREFIX}*"):
        try:
            facts = stale.lstat()
        except OSError:
            continue
        ours = not stale.is_symlink() and stale.is_dir() and facts.st_uid == getattr(os, "getuid", lambda: -1)()
        held = _open_locked(stale, create=False) if ours else None
        if held is not None:
            shutil.rmtree(stale, ignore_errors=True)
            os.close(held)
    while True:
        folder = Path(tempfile.mkdtemp(prefix=PREFIX, dir=parent))  # 0700
        held = _open_locked(folder, create=True)
        if held is not None:
            atexit.register(_remove_own_folder, folder, process)
            return folder


def _remove_own_folder(folder: Path, process: int) -> None:
    """Remove the folder, in the process that made it."""
    if os.getpid() == process:
        shutil.rmtree(folder, ignore_errors=True)


def _open_locked(folder: Path, *, create: bool) -> int | None:
    """The lock of a folder, as an open file; None if another process holds it, or if it is missing."""
    place, flags = folder / LOCK, os.O_RDWR | (os.O_CREAT if create else 0)
    try:
        file = os.open(place, flags, 0o600)
    except OSError:
        return None
    locked = True
    try:
        import fcntl

        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except ImportError:  # a system without such locks, on which no folder counts as abandoned
        pass
    except OSError:
        locked = False
    if locked and place.exists():
        return file
    os.close(file)
    return None


# What is done to the rows of a table, batch by batch: plain data that travels to wherever the rows are.
#
# A job holds no engine and no source of randomness: its noise is drawn in the process that works on the
# batch.

Totals = NDArray[np.int64]
Work = Callable[[Any], Any]
"""An Arrow record batch becomes another one with as many rows, or integers of shape [length]."""
Progress = Callable[[int], None]
"""Told how many rows are done."""

ROWS = 1 << 19
"""Rows of a batch, at most."""


@dataclass(frozen=True, slots=True)
class WriteJob:
    """``work`` on each batch of ``columns`` gives a batch of ``schema``.

    ``kept_columns`` columns are added unchanged.
    """

    columns: tuple[str, ...]
    kept_columns: tuple[str, ...]
    work: Work
    schema: Any
    rows: int = ROWS

    def output_columns(self, batch: Any) -> list[Any]:
        """The columns that are written for a batch.

        Raises ``EngineError``, without a value of the data, where the work fails or does not keep to its schema;
        a ``TightropeError`` of the work passes.
        """
        given = batch.select(list(self.columns))
        made = engine_call("work on a batch of rows", lambda: self.work(given))
        if made.schema != self.schema or len(made) != len(batch):
            raise EngineError("a job gave other rows or columns than it promised; nothing was written")
        return [*made.columns, *(batch.column(name) for name in self.kept_columns)]


@dataclass(frozen=True, slots=True)
class SumJob:
    """``work`` on each batch of ``columns`` gives integers, shape [length], which are summed."""

    columns: tuple[str, ...]
    work: Work
    length: int
    rows: int = ROWS

    def sum_batches(self, batches: Iterable[Any]) -> Totals:
        """The sum over all batches, exactly (it must fit in 64 bits, as counts do).

        Raises like ``WriteJob.output_columns``.
        """
        total = np.zeros(self.length, dtype=np.int64)
        for batch in split_batches(batches, self.rows):
            total += self._batch_totals(batch.select(list(self.columns)))
        return total

    def _batch_totals(self, batch: Any) -> Totals:
        part: Totals = engine_call("work on a batch of rows", lambda: self.work(batch))
        if part.dtype != np.int64 or part.shape != (self.length,):
            raise EngineError("a job gave other numbers than it promised; nothing was added up")
        return part


def iterate_batches(reader: Any) -> Iterator[Any]:
    """The batches of a reader; every failure of it is an ``EngineError`` that shows no value."""
    while (batch := engine_call("read the rows", lambda: next(reader, None))) is not None:
        yield batch


def split_batches(batches: Iterable[Any], rows: int) -> Iterator[Any]:
    """The same rows in batches of at most ``rows``; none is copied."""
    for batch in batches:
        for start in range(0, len(batch), rows):
            yield batch.slice(start, rows)


def make_record_batch(columns: list[Any], schema: Any) -> Any:
    """A record batch of these columns."""
    return load_library("pyarrow").RecordBatch.from_arrays(columns, schema=schema)
