"""Jobs whose rows come out in an order of their own: where a row stands must not tell where it stood."""

from __future__ import annotations

import tempfile
import uuid
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from tightrope.engines.backends.streamed import check_destination
from tightrope.engines.ground.job import ROWS, Progress, Work
from tightrope.engines.ground.whole_file import RowGroups, taken, whole_file
from tightrope.engines.guard import guarded, load
from tightrope.engines.jobs.batches import written
from tightrope.engines.table import Table

MEMORY = "400MB"
"""What sorting may hold; the rest waits on disk."""


def written_in_order(
    table: Table,
    columns: Sequence[str],
    work: Work,
    schema: Any,
    destination: str | Path,
    *,
    keep: Sequence[str] = (),
    progress: Progress | None = None,
) -> int:
    """``written``, and the rows of the file sorted by all its columns: it says which rows there are and nothing else.

    A table is often sorted by the very thing that a job hides, and batches come in its order. On Spark the parts are
    written as ``written`` does; sort what is to be published.

    >>> import pyarrow, tempfile
    >>> from tightrope.engines import open_source
    >>> rows, schema = open_source(pyarrow.table({"x": [3, 1, 2]})), pyarrow.schema([("x", "int64")])
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     _ = written_in_order(rows, ["x"], lambda batch: batch, schema, f"{folder}/a.parquet")
    ...     load("pyarrow.parquet").read_table(f"{folder}/a.parquet")["x"].to_pylist()
    [1, 2, 3]
    """
    place = Path(destination)
    if table.engine.in_parts:
        return written(table, columns, work, schema, destination, keep=keep, progress=progress)
    check_destination(place)
    if place.exists():
        raise taken(place)
    part = place.with_name(f".{place.stem}.{uuid.uuid4().hex}{place.suffix}")
    try:
        count = written(table, columns, work, schema, part, keep=keep, progress=progress)
        _sort(part, place)
    finally:
        part.unlink(missing_ok=True)
    return count


def _sort(source: Path, destination: Path) -> None:
    """The rows of a Parquet file, sorted, into another; what does not fit in memory waits on disk beside it."""
    rows = guarded("read what was drawn", lambda: load("pyarrow.dataset").dataset(str(source), format="parquet"))
    with tempfile.TemporaryDirectory(dir=destination.parent, prefix=f".{destination.name}.") as folder:
        connection = load("duckdb").connect(config={"temp_directory": folder, "memory_limit": MEMORY})
        try:
            query = guarded("sort what was drawn", lambda: connection.from_arrow(rows).order("ALL"))
            reader = guarded("sort what was drawn", lambda: query.to_arrow_reader(ROWS))
            with whole_file(destination, rows.schema, ROWS) as groups:
                guarded("write what was sorted", lambda: _copy(reader, groups, rows.schema))
        finally:
            connection.close()


def _copy(reader: Any, groups: RowGroups, schema: Any) -> None:
    for batch in reader:
        groups.add(batch.cast(schema))
