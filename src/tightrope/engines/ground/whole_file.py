"""One Parquet file that appears under its name when it is whole, and never in the place of another one."""

from __future__ import annotations

import os
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tightrope.engines.guard import guarded, load
from tightrope.errors import InputError


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


def taken(destination: Path) -> InputError:
    """The refusal to replace what is there."""
    return InputError(
        "destination", str(destination), "a path that does not exist yet", "remove what is there, or rename"
    )


def _publish(part: Path, destination: Path) -> None:
    """The file under its name; a second link, unlike a new name, never replaces what is there."""
    try:
        os.link(part, destination)
    except FileExistsError:
        raise taken(destination) from None
    except OSError:  # a file system without links: whoever makes the empty file first has the name
        _claim(destination)
        part.replace(destination)


def _claim(destination: Path) -> None:
    try:
        destination.touch(exist_ok=False)
    except FileExistsError:
        raise taken(destination) from None
