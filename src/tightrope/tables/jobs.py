"""Jobs on all rows of a table in any engine: the result is written once, and later steps read the written result.

A lazy expression that draws randomness would be evaluated again at every use: two uses give two randomized reports of
one value, which cost twice the privacy.
"""

from __future__ import annotations

import tempfile
import uuid
from collections.abc import Sequence
from contextlib import closing
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from tightrope.errors import InputError, SchemaError
from tightrope.numerics.checks import check_integer
from tightrope.tables.backends.backend import check_destination
from tightrope.tables.backends.registry import backend_for
from tightrope.tables.engine_calls import engine_call, load_library
from tightrope.tables.files import (
    MAX_BATCH_ROWS,
    Progress,
    SumJob,
    Totals,
    Work,
    WriteJob,
    atomic_parquet_file,
    destination_exists_error,
)
from tightrope.tables.table import Table

if TYPE_CHECKING:
    import pyarrow as pa

SORT_MEMORY = "400MB"
"""Memory limit of sorting; the rest is spilled to disk."""


def write_columns(
    table: Table,
    columns: Sequence[str],
    work: Work,
    schema: pa.Schema,
    destination: str | Path,
    *,
    keep: Sequence[str] = (),
    rows: int = MAX_BATCH_ROWS,
    progress: Progress | None = None,
) -> int:
    """Write the result of ``work`` for each batch of ``columns``; return the number of rows.

    Parameters:
        work: gets Arrow record batches of at most ``rows`` rows with ``columns``; returns as many rows of ``schema``
            (an Arrow schema). On Spark it is sent to the workers and must draw its randomness there.
        destination: a ``.parquet`` file, or on Spark a folder of Parquet parts. It must not exist.
        keep: columns that are written unchanged next to the result; no other columns are written.
        progress: called with the number of rows done (on Spark once, at the end).

    The order of rows may change, but rows are not shuffled.

    Without Spark: the file appears when it is complete, or not at all. Its row groups have ``rows`` rows each, whatever
    the data. A killed process leaves a hidden ``.NAME.….part`` next to the destination; do not give it to readers who
    also get the file of a second run.

    On Spark: the folder is complete when Spark has written ``_SUCCESS``. A failed task is repeated, and only one of its
    attempts is kept; draws of a lost attempt stay in a temporary file on the cluster until Spark removes it.
    Speculative execution, which runs tasks twice on purpose, is rejected. A part holds the rows of a partition, and
    Spark partitions files by bytes: repartition the rows if a reader must not learn the lengths of values.

    Raises ``InputError`` for a destination that exists, ``SchemaError`` for missing columns, ``EngineError`` without a
    value from the data if the engine or ``work`` fails.
    """
    # Results and kept columns share one table, and engines do not distinguish `a` from `A`.
    folded_names = [name.casefold() for name in (*schema.names, *keep)]
    if len(set(folded_names)) != len(folded_names):
        text = f"{list(keep)} and {list(schema.names)} must be named unlike each other (capitals do not count)"
        raise InputError.from_text("keep", f"{text}; rename a column")
    names = _checked_names([*columns, *keep])
    job = WriteJob(tuple(columns), tuple(keep), work, schema, check_integer("rows", rows))
    path = Path(destination)
    if path.exists():
        raise destination_exists_error(path)
    with table.select_columns(names) as (backend, selected):
        return backend_for(backend).run_write_job(backend, selected, job, path, progress or _ignore_progress)


def sum_over_batches(
    table: Table,
    columns: Sequence[str],
    work: Work,
    length: int,
    *,
    rows: int = MAX_BATCH_ROWS,
    progress: Progress | None = None,
) -> Totals:
    """Return the sum of ``work`` over all batches: integers, shape [length].

    ``work`` returns an int64 array of that shape; totals must fit in 64 bits, as numbers of rows do. It should draw no
    randomness, because Spark may process a batch twice. ``progress`` is not called on Spark. Raises like
    ``write_columns``.
    """
    names = _checked_names(columns)
    job = SumJob(tuple(columns), work, check_integer("length", length), check_integer("rows", rows))
    with table.select_columns(names) as (backend, selected):
        return backend_for(backend).run_sum_job(backend, selected, job, progress or _ignore_progress)


def _checked_names(names: Sequence[str]) -> tuple[str, ...]:
    """Return the names of columns, each once; raises ``SchemaError`` if there are none or engines confuse them."""
    if not names:
        raise SchemaError("columns", names, "at least one column")
    unique_names = tuple(dict.fromkeys(names))
    if len({name.casefold() for name in unique_names}) != len(unique_names):
        text = f"{list(unique_names)} differ only in capitals, which engines do not distinguish; rename one of them"
        raise SchemaError.from_text("columns", text)
    return unique_names


def _ignore_progress(_: int) -> None:
    """Do nothing; stands in for a missing progress callback."""


def write_sorted_columns(
    table: Table,
    columns: Sequence[str],
    work: Work,
    schema: pa.Schema,
    destination: str | Path,
    *,
    keep: Sequence[str] = (),
    progress: Progress | None = None,
) -> int:
    """Write like ``write_columns``, with the rows of the file sorted by all its columns.

    Then their order reveals nothing: a table is often sorted by the very value that a job hides, and batches come in
    the table's order. On Spark the parts are not sorted; sort them before they are published.

    >>> import pyarrow, tempfile
    >>> from tightrope.tables import open_source
    >>> rows, schema = open_source(pyarrow.table({"x": [3, 1, 2]})), pyarrow.schema([("x", "int64")])
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     _ = write_sorted_columns(rows, ["x"], lambda batch: batch, schema, f"{folder}/a.parquet")
    ...     load_library("pyarrow.parquet").read_table(f"{folder}/a.parquet")["x"].to_pylist()
    [1, 2, 3]
    """
    path = Path(destination)
    if table.backend_adapter.writes_parts:
        return write_columns(table, columns, work, schema, destination, keep=keep, progress=progress)
    check_destination(path)
    if path.exists():
        raise destination_exists_error(path)
    unsorted = path.with_name(f".{path.stem}.{uuid.uuid4().hex}{path.suffix}")
    try:
        count = write_columns(table, columns, work, schema, unsorted, keep=keep, progress=progress)
        # What exceeds memory is spilled to disk next to the file.
        source = partial(load_library("pyarrow.dataset").dataset, str(unsorted), format="parquet")
        rows = engine_call("read what was drawn", source)
        connect = load_library("duckdb").connect
        with (
            tempfile.TemporaryDirectory(dir=path.parent, prefix=f".{path.name}.") as folder,
            closing(connect(config={"temp_directory": folder, "memory_limit": SORT_MEMORY})) as connection,
        ):
            query = engine_call("sort what was drawn", lambda: connection.from_arrow(rows).order("ALL"))
            reader = engine_call("sort what was drawn", lambda: query.to_arrow_reader(MAX_BATCH_ROWS))
            with atomic_parquet_file(path, rows.schema, MAX_BATCH_ROWS) as groups:
                engine_call("write what was sorted", lambda: groups.add_batches(reader))
    finally:
        unsorted.unlink(missing_ok=True)
    return count
