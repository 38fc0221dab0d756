"""Jobs on this machine: the engine streams Arrow batches, and no more than a few of them are in memory at once."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

from tightrope.engines.ground.job import Folding, Progress, Totals, Writing, portions, record_batch
from tightrope.engines.ground.whole_file import RowGroups, whole_file
from tightrope.engines.guard import guarded, load
from tightrope.errors import InputError

Stream = AbstractContextManager[Any]
"""Opens a reader of record batches."""


def write(rows: Stream, job: Writing, destination: Path, progress: Progress) -> int:
    """One Parquet file of what the job makes of the rows; how many there are."""
    check_destination(destination)
    with rows as reader:
        kept = [reader.schema.field(name) for name in job.keep]
        schema = load("pyarrow").schema([*job.schema, *kept])
        with whole_file(destination, schema, job.rows) as groups:
            return sum(_written(groups, batch, job, schema) for batch in _watched(reader, job.rows, progress))


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


def _written(groups: RowGroups, batch: Any, job: Writing, schema: Any) -> int:
    columns = job.done(batch)
    guarded("write a batch of rows", lambda: groups.add(record_batch(columns, schema)))
    return len(batch)


def check_destination(destination: Path) -> None:
    """Raise ``InputError`` unless it is the name of a Parquet file in a folder that exists."""
    if destination.suffix.lower() != ".parquet":
        raise InputError("destination", str(destination), "a path to a .parquet file", "name it something.parquet")
    if not destination.parent.is_dir():
        raise InputError("destination", str(destination), "in a folder that exists", "make the folder first")
