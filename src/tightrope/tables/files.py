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
from tightrope.tables.engine_calls import guarded, load


@dataclass(slots=True)
class RowGroups:
    """Batches in, row groups of exactly ``rows`` rows out; the last one holds the rest.

    Where an engine ends its batches may depend on the data – on how many bytes the lines of a CSV file have, say – and
    row groups that ended there would tell.
    """

    writer: Any
    schema: Any
    rows: int
    _waiting: list[Any] = field(default_factory=list)
    _count: int = 0

    def add(self, batch: Any) -> None:
        """Take a record batch; groups that are full are written."""
        while len(batch):
            part = batch.slice(0, self.rows - self._count)
            batch = batch.slice(len(part))
            self._waiting.append(part)
            self._count += len(part)
            if self._count == self.rows:
                self.flush()

    def flush(self) -> None:
        """Write what waits as one group."""
        if self._waiting:
            table = load("pyarrow").Table.from_batches(self._waiting, self.schema)
            self.writer.write_table(table, row_group_size=self.rows)
        self._waiting, self._count = [], 0


@contextmanager
def whole_file(destination: Path, schema: Any, rows: int) -> Iterator[RowGroups]:
    """What takes the batches of a file; it appears at the end of the block, unless that fails.

    Raises ``InputError`` where something else got the name meanwhile. Who is killed in the block leaves a hidden
    ``.NAME.….part`` beside the destination.
    """
    part = destination.with_name(f".{destination.name}.{uuid.uuid4().hex}.part")
    make = load("pyarrow.parquet").ParquetWriter
    try:
        writer = guarded("create the Parquet file", lambda: make(part, schema, compression="zstd"))
        try:
            groups = RowGroups(writer, schema, rows)
            yield groups
            guarded("write the last rows", groups.flush)
        finally:
            guarded("finish the Parquet file", writer.close)
        _publish(part, destination)
    finally:
        part.unlink(missing_ok=True)


def destination_exists(destination: Path) -> InputError:
    """The refusal to replace what is there."""
    return InputError(
        "destination", str(destination), "a path that does not exist yet", "remove what is there, or rename"
    )


def _publish(part: Path, destination: Path) -> None:
    """The file under its name; a second link, unlike a new name, never replaces what is there."""
    try:
        os.link(part, destination)
    except FileExistsError:
        raise destination_exists(destination) from None
    except OSError:  # a file system without links: whoever makes the empty file first has the name
        try:
            destination.touch(exist_ok=False)
        except FileExistsError:
            raise destination_exists(destination) from None
        part.replace(destination)


# A folder that only we can enter, for what does not fit in memory: gone when we leave, or when the next one comes.

PREFIX = "tightrope-"
LOCK = "lock"


def spill(database: Path | None = None) -> Path:
    """A name for a database's own folder of spilled rows; made (0700, in ours) by whoever spills.

    Two databases that shared a folder would share file names. DuckDB opens a file twice in a process only with the same
    settings, so that a file has the same folder every time.
    """
    name = uuid.uuid4().hex if database is None else hashlib.sha256(str(database.absolute()).encode()).hexdigest()
    return _ours(os.getpid()) / name


@functools.cache
def _ours(process: int) -> Path:
    """The folder of this process (a fork makes its own), held by a lock that ends with the process, however it ends."""
    parent = Path(tempfile.gettempdir())
    for stale in _abandoned(parent):
        shutil.rmtree(stale, ignore_errors=True)
    while True:
        folder = Path(tempfile.mkdtemp(prefix=PREFIX, dir=parent))  # 0700
        held = _locked(folder, create=True)
        if held is not None:
            atexit.register(_leave, folder, process)
            return folder


def _leave(folder: Path, process: int) -> None:
    """Remove the folder, in the process that made it."""
    if os.getpid() == process:
        shutil.rmtree(folder, ignore_errors=True)


def _abandoned(parent: Path) -> Iterator[Path]:
    """Folders of ours whose process is gone: a lock tells, where a number of a process may be in use again."""
    for folder in parent.glob(f"{PREFIX}*"):
        if _is_ours(folder):
            held = _locked(folder, create=False)
            if held is not None:
                yield folder
                os.close(held)


def _is_ours(folder: Path) -> bool:
    try:
        facts = folder.lstat()
    except OSError:
        return False
    return not folder.is_symlink() and folder.is_dir() and facts.st_uid == getattr(os, "getuid", lambda: -1)()


def _locked(folder: Path, *, create: bool) -> int | None:
    """The lock of a folder, as an open file; None where another process holds it, or where it is not there."""
    place, flags = folder / LOCK, os.O_RDWR | (os.O_CREAT if create else 0)
    try:
        file = os.open(place, flags, 0o600)
    except OSError:
        return None
    if _lock(file) and place.exists():
        return file
    os.close(file)
    return None


def _lock(file: int) -> bool:
    """Whether the lock is ours now. Where the system has no such locks, nothing is ever taken for abandoned."""
    try:
        import fcntl
    except ImportError:
        return True
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return False
    return True


# What is done to the rows of a table, batch by batch: plain data that travels to wherever the rows are.
#
# A job holds no engine and no source of randomness: whatever it draws, it draws in the process that works on the
# batch.

Totals = NDArray[np.int64]
Work = Callable[[Any], Any]
"""An Arrow record batch becomes another one with as many rows, or whole numbers of shape [length]."""
Progress = Callable[[int], None]
"""Told how many rows are done."""

ROWS = 1 << 19
"""Rows of a batch, at most."""


@dataclass(frozen=True, slots=True)
class Writing:
    """``work`` on each batch of ``columns`` gives a batch of ``schema``; ``keep`` columns go beside it unchanged."""

    columns: tuple[str, ...]
    keep: tuple[str, ...]
    work: Work
    schema: Any
    rows: int = ROWS

    def output_columns(self, batch: Any) -> list[Any]:
        """The columns that are written for a batch.

        Raises ``EngineError``, without a value of the data, where the work fails or does not keep to its schema;
        a ``TightropeError`` of the work passes.
        """
        given = batch.select(list(self.columns))
        made = guarded("work on a batch of rows", lambda: self.work(given))
        if made.schema != self.schema or len(made) != len(batch):
            raise EngineError("a job gave other rows or columns than it promised; nothing was written")
        return [*made.columns, *(batch.column(name) for name in self.keep)]


@dataclass(frozen=True, slots=True)
class Folding:
    """``work`` on each batch of ``columns`` gives whole numbers, shape [length], that are added up."""

    columns: tuple[str, ...]
    work: Work
    length: int
    rows: int = ROWS

    def total(self, batches: Iterable[Any]) -> Totals:
        """The sum over all batches, exactly (it must fit in 64 bits, as counts do).

        Raises like ``Writing.output_columns``.
        """
        total = np.zeros(self.length, dtype=np.int64)
        for batch in portions(batches, self.rows):
            total += self._batch_totals(batch.select(list(self.columns)))
        return total

    def _batch_totals(self, batch: Any) -> Totals:
        part: Totals = guarded("work on a batch of rows", lambda: self.work(batch))
        if part.dtype != np.int64 or part.shape != (self.length,):
            raise EngineError("a job gave other numbers than it promised; nothing was added up")
        return part


def portions(batches: Iterable[Any], rows: int) -> Iterator[Any]:
    """The same rows in batches of at most ``rows``; none is copied."""
    for batch in batches:
        for start in range(0, len(batch), rows):
            yield batch.slice(start, rows)


def record_batch(columns: list[Any], schema: Any) -> Any:
    """A record batch of these columns."""
    return load("pyarrow").RecordBatch.from_arrays(columns, schema=schema)
