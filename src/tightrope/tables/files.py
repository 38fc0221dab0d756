"""Files and batches: atomic Parquet files, private folders for spilled rows, jobs on record batches, changed files."""

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
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from tightrope.errors import EngineError, InputError
from tightrope.tables.engine_calls import engine_call, load_library

if TYPE_CHECKING:
    import pyarrow as pa
    import pyarrow.parquet as pq


@dataclass(slots=True)
class RowGroupWriter:
    """Writes batches of any size as row groups of exactly ``rows`` rows; the last group holds the remaining rows.

    The size of an engine's batches may depend on the data, for example on the lengths of lines in a CSV file, and row
    groups of that size would reveal it.
    """

    writer: pq.ParquetWriter
    schema: pa.Schema
    rows: int
    _pending_batches: list[pa.RecordBatch] = field(default_factory=list)
    _pending_rows: int = 0

    def add_batch(self, batch: pa.RecordBatch) -> None:
        """Add a record batch, and write each row group that becomes full."""
        while len(batch):
            part = batch.slice(0, self.rows - self._pending_rows)
            batch = batch.slice(len(part))
            self._pending_batches.append(part)
            self._pending_rows += len(part)
            if self._pending_rows == self.rows:
                self.write_pending()

    def add_batches(self, batches: Iterable[pa.RecordBatch]) -> None:
        """Add record batches, cast to the schema."""
        for batch in batches:
            self.add_batch(batch.cast(self.schema))

    def write_pending(self) -> None:
        """Write the pending rows, if any, as one row group."""
        if self._pending_batches:
            table = load_library("pyarrow").Table.from_batches(self._pending_batches, self.schema)
            self.writer.write_table(table, row_group_size=self.rows)
        self._pending_batches, self._pending_rows = [], 0


@contextmanager
def atomic_parquet_file(destination: Path, schema: pa.Schema, rows: int) -> Iterator[RowGroupWriter]:
    """Yield a writer of batches; the file appears, complete, when the block ends without an error.

    Raises ``InputError`` if another file of that name has appeared meanwhile; it is never replaced. A process killed
    inside the block leaves a hidden ``.NAME.….part`` next to the destination.
    """
    part = destination.with_name(f".{destination.name}.{uuid.uuid4().hex}.part")
    open_writer = load_library("pyarrow.parquet").ParquetWriter
    try:
        writer = engine_call("create the Parquet file", lambda: open_writer(part, schema, compression="zstd"))
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
    """Return the error for a destination that exists."""
    return InputError(
        "destination", str(destination), "a path that does not exist yet", "remove what is there, or rename"
    )


def _publish_file(part: Path, destination: Path) -> None:
    """Give the file its final name, by a hard link, which unlike renaming never replaces an existing file."""
    try:
        os.link(part, destination)
    except FileExistsError:
        raise destination_exists_error(destination) from None
    except OSError:  # a file system without links: whoever creates the empty file first gets the name
        try:
            destination.touch(exist_ok=False)
        except FileExistsError:
            raise destination_exists_error(destination) from None
        part.replace(destination)


# A folder that only this user can enter, for rows that do not fit in memory. It is removed when the process ends, or,
# if the process was killed, by the next process.

FOLDER_PREFIX = "tightrope-"
LOCK_FILE = "lock"


def spill_folder(database: Path | None = None) -> Path:
    """Return the path of a database's folder for spilled rows; the database creates it (mode 0700) when it spills.

    Each database has its own folder, because spilled files of two databases may have the same names. A database file
    always gets the same folder: DuckDB opens a file twice in a process only with equal settings.
    """
    name = uuid.uuid4().hex if database is None else hashlib.sha256(str(database.absolute()).encode()).hexdigest()
    return _process_folder(os.getpid()) / name


@functools.cache
def _process_folder(process: int) -> Path:
    """Return the folder of this process (a fork makes its own), locked until the process ends.

    Folders whose process has ended are removed. They are recognized by their free locks, because process numbers are
    reused.
    """
    parent = Path(tempfile.gettempdir())
    for stale in parent.glob(f"{FOLDER_PREFIX}*"):
        try:
            status = stale.lstat()
        except OSError:
            continue
        is_ours = not stale.is_symlink() and stale.is_dir() and status.st_uid == getattr(os, "getuid", lambda: -1)()
        lock = _open_locked(stale, create=False) if is_ours else None
        if lock is not None:
            shutil.rmtree(stale, ignore_errors=True)
            os.close(lock)
    while True:
        folder = Path(tempfile.mkdtemp(prefix=FOLDER_PREFIX, dir=parent))  # 0700
        if _open_locked(folder, create=True) is not None:
            atexit.register(_remove_own_folder, folder, process)
            return folder


def _remove_own_folder(folder: Path, process: int) -> None:
    """Remove the folder, in the process that made it."""
    if os.getpid() == process:
        shutil.rmtree(folder, ignore_errors=True)


def _open_locked(folder: Path, *, create: bool) -> int | None:
    """Lock a folder and return the open lock file; None if another process has locked it, or if it is missing."""
    path, flags = folder / LOCK_FILE, os.O_RDWR | (os.O_CREAT if create else 0)
    try:
        file = os.open(path, flags, 0o600)
    except OSError:
        return None
    locked = True
    try:
        import fcntl

        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except ImportError:  # a system without such locks
        pass
    except OSError:
        locked = False
    if locked and path.exists():
        return file
    os.close(file)
    return None


# Jobs on the rows of a table, batch by batch. A job is plain data that can be sent to other processes: it holds no
# engine and no source of randomness. Noise is drawn in the process that works on the batch.

Totals = NDArray[np.int64]
Work = Callable[["pa.RecordBatch"], Any]
"""A function from an Arrow record batch to one with as many rows, or to integers of shape [length]."""
Progress = Callable[[int], None]
"""A callback with the number of rows done so far."""

MAX_BATCH_ROWS = 1 << 19
"""Most rows in a batch."""


@dataclass(frozen=True, slots=True)
class WriteJob:
    """A job that writes rows: ``work`` turns each batch of ``columns`` into a batch of ``schema``.

    The columns ``kept_columns`` are written next to it, unchanged.
    """

    columns: tuple[str, ...]
    kept_columns: tuple[str, ...]
    work: Work
    schema: pa.Schema
    rows: int = MAX_BATCH_ROWS

    def output_columns(self, batch: pa.RecordBatch) -> list[pa.Array]:
        """Return the columns that are written for a batch.

        Raises ``EngineError``, without a value from the data, if the work fails or its result has another schema or
        length; a ``TightropeError`` of the work is raised unchanged.
        """
        selected = batch.select(list(self.columns))
        result = engine_call("work on a batch of rows", lambda: self.work(selected))
        if result.schema != self.schema or len(result) != len(batch):
            raise EngineError("a job gave other rows or columns than it promised; nothing was written")
        return [*result.columns, *(batch.column(name) for name in self.kept_columns)]

    def write_batch(self, batch: pa.RecordBatch, schema: pa.Schema, groups: RowGroupWriter) -> int:
        """Write the columns for a batch, as rows of ``schema``; return the number of rows."""
        columns = self.output_columns(batch)
        engine_call("write a batch of rows", lambda: groups.add_batch(make_record_batch(columns, schema)))
        return len(batch)


@dataclass(frozen=True, slots=True)
class SumJob:
    """A job that sums integers: ``work`` turns each batch of ``columns`` into integers, shape [length]."""

    columns: tuple[str, ...]
    work: Work
    length: int
    rows: int = MAX_BATCH_ROWS

    def sum_batches(self, batches: Iterable[pa.RecordBatch]) -> Totals:
        """Return the exact sum over all batches (it must fit in 64 bits, as counts do).

        Raises like ``WriteJob.output_columns``.
        """
        total = np.zeros(self.length, dtype=np.int64)
        for batch in split_batches(batches, self.rows):
            total += self._batch_totals(batch.select(list(self.columns)))
        return total

    def _batch_totals(self, batch: pa.RecordBatch) -> Totals:
        part: Totals = engine_call("work on a batch of rows", lambda: self.work(batch))
        if part.dtype != np.int64 or part.shape != (self.length,):
            raise EngineError("a job gave other numbers than it promised; nothing was added up")
        return part


def iterate_batches(reader: pa.RecordBatchReader) -> Iterator[pa.RecordBatch]:
    """Yield the batches of a reader; a failure becomes an ``EngineError`` that shows no value."""
    while (batch := engine_call("read the rows", lambda: next(reader, None))) is not None:
        yield batch


def split_batches(batches: Iterable[pa.RecordBatch], rows: int) -> Iterator[pa.RecordBatch]:
    """Yield the same rows in batches of at most ``rows`` rows, without copying."""
    for batch in batches:
        for start in range(0, len(batch), rows):
            yield batch.slice(start, rows)


def make_record_batch(columns: list[pa.Array], schema: pa.Schema) -> pa.RecordBatch:
    """Return a record batch of these columns."""
    return load_library("pyarrow").RecordBatch.from_arrays(columns, schema=schema)


# Detection of files that changed since they were opened, by inode, size, modification time, and both ends.

HASHED_END_BYTES = 1 << 16
"""Bytes at each end that are hashed; of a Parquet file, at least the footer."""
PARQUET_MARK = b"PAR1"


@dataclass(frozen=True, slots=True)
class FileStamp:
    """The state of a file; two stamps of an unchanged file are equal."""

    device: int
    inode: int
    size: int
    nanoseconds: int
    ends: bytes

    @classmethod
    def from_path(cls, path: Path) -> FileStamp:
        """Return the stamp of a file; raises ``EngineError`` if it cannot be read."""
        return engine_call("read the file's state", lambda: cls._read_stamp(path))

    @classmethod
    def _read_stamp(cls, path: Path) -> FileStamp:
        status = path.stat()
        with path.open("rb") as file:
            head = file.read(HASHED_END_BYTES)
            # A Parquet file ends with the length of its footer and a mark; all of the footer is hashed.
            file.seek(max(0, status.st_size - 8))
            length, mark = file.read(4), file.read(4)
            tail = (
                max(HASHED_END_BYTES, int.from_bytes(length, "little") + 8)
                if mark == PARQUET_MARK
                else HASHED_END_BYTES
            )
            file.seek(max(0, status.st_size - tail))
            ends = hashlib.blake2b(head + file.read(), digest_size=16).digest()
        return cls(status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns, ends)


def numbered_parts(*indices: int, of: int) -> str:
    """Return how errors name files below a path: by number in the order of paths, because names may hold values.

    >>> numbered_parts(6, of=12), numbered_parts(0, 6, of=12), numbered_parts(0, of=1)
    ('part 7 of 12', 'parts 1 and 7 of 12', 'it')
    """
    numbers = " and ".join(str(index + 1) for index in indices)
    return f"{'part' if len(indices) == 1 else 'parts'} {numbers} of {of}" if of > 1 else "it"


@dataclass(frozen=True, slots=True)
class StampedFiles:
    """Files with their stamps from when they were opened, and the path that the user gave."""

    given_path: Path
    paths: tuple[Path, ...]
    stamps: tuple[FileStamp, ...]

    @classmethod
    def from_paths(cls, given_path: Path, *parts: Path) -> StampedFiles:
        """Stamp the parts of a path, or the file itself; raises ``EngineError`` if one cannot be read."""
        paths = parts or (given_path,)
        return cls(given_path, paths, tuple(map(FileStamp.from_path, paths)))

    def check_unchanged(self) -> None:
        """Raise ``InputError`` if a file has changed, ``EngineError`` if one can no longer be read."""
        for index, (path, stamp) in enumerate(zip(self.paths, self.stamps, strict=True)):
            if not engine_call("look for the file", path.is_file) or FileStamp.from_path(path) != stamp:
                which = numbered_parts(index, of=len(self.paths))
                text = f"{str(self.given_path)!r} was opened, but {which} has changed since; open it again"
                raise InputError.from_text("source", text)

    def checked_batches(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Yield the batches, and check that the files are unchanged before the first and after the last one."""
        self.check_unchanged()
        yield from batches
        self.check_unchanged()
