"""Jobs on the rows of a table, wherever it lives: each row is worked on once, and the result is kept, not the recipe.

A lazy expression that draws randomness is evaluated again at every use: two uses give two reports of one value, which
spend twice the privacy. So what a job makes is written, once, and later steps read what was written.
"""

from __future__ import annotations

import tempfile
import uuid
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tightrope.errors import InputError, SchemaError
from tightrope.numerics.checks import check_integer
from tightrope.tables.backends.backend import check_destination
from tightrope.tables.backends.registry import backend_for
from tightrope.tables.engine_calls import engine_call, load_library
from tightrope.tables.files import (
    ROWS,
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
    import ibis.expr.types as ir


def write_columns(
    table: Table,
    columns: Sequence[str],
    work: Work,
    schema: Any,
    destination: str | Path,
    *,
    keep: Sequence[str] = (),
    rows: int = ROWS,
    progress: Progress | None = None,
) -> int:
    """Write what ``work`` makes of each batch of ``columns``; the number of rows.

    Parameters:
        work: gets Arrow record batches of at most ``rows`` rows with ``columns``; gives as many rows of ``schema`` (an
            Arrow schema). On Spark it travels to the workers and must draw its randomness there.
        destination: a ``.parquet`` file, or on Spark a folder of Parquet parts. It must not exist.
        keep: columns that are written next to the result, unchanged; other columns are not.
        progress: told how many rows are done (on Spark once, at the end).

    The order of rows may change, but this is not a shuffle. Here, the file appears when it is whole, or
    not at all, and its row groups have ``rows`` rows each, for all data; a process that is killed leaves a
    hidden ``.NAME.….part`` next to it; keep it from readers of the file of a second run. On Spark a folder is
    whole when Spark says so (``_SUCCESS``): a task that fails is tried again, and the output committer keeps one of its
    tries only. What a lost try drew stays in a temporary file on the cluster until Spark removes it. Speculative
    execution, which runs tasks twice on purpose, is refused. A part has the rows of a partition: where a file is read,
    Spark cuts it by bytes, so a collector who is not to learn lengths of values gets repartitioned rows.

    Raises ``InputError`` for a destination that exists, ``SchemaError`` for columns that do not, ``EngineError``
    without a value of the data where the engine or the work fails.
    """
    # Results and kept columns share one table (engines take `a` and `A` for one name).
    folded_names = [name.casefold() for name in (*schema.names, *keep)]
    if len(set(folded_names)) != len(folded_names):
        raise InputError(
            "keep", tuple(keep), f"columns named unlike each other and {list(schema.names)}", "rename the column"
        )
    backend, chosen = _select_columns(table, [*columns, *keep])
    job = WriteJob(tuple(columns), tuple(keep), work, schema, check_integer("rows", rows))
    place = Path(destination)
    if place.exists():
        raise destination_exists_error(place)
    return backend_for(backend).run_write_job(backend, chosen, job, place, progress or _ignore_progress)


def sum_over_batches(
    table: Table,
    columns: Sequence[str],
    work: Work,
    length: int,
    *,
    rows: int = ROWS,
    progress: Progress | None = None,
) -> Totals:
    """Return the sum of ``work`` over all batches: integers, shape [length].

    ``work`` gives an int64 array of that shape; totals must fit in 64 bits, as numbers of rows do. It should draw no
    randomness: Spark may work on a batch again. ``progress`` is not called on Spark. Raises like ``write_columns``.
    """
    backend, chosen = _select_columns(table, columns)
    job = SumJob(tuple(columns), work, check_integer("length", length), check_integer("rows", rows))
    return backend_for(backend).run_sum_job(backend, chosen, job, progress or _ignore_progress)


def _select_columns(table: Table, names: Sequence[str]) -> tuple[Any, ir.Table]:
    """The back end and the named columns, each once."""
    if not names:
        raise SchemaError("columns", names, "at least one column")
    wanted = tuple(dict.fromkeys(names))
    if len({name.casefold() for name in wanted}) != len(wanted):
        raise SchemaError("columns", wanted, "unlike each other in more than capitals", "rename one of them")
    return table.select_columns(wanted)


def _ignore_progress(_: int) -> None:
    """No progress."""


# Jobs whose rows come out in an order of their own: where a row stands must not tell where it stood.

MEMORY = "400MB"
"""Memory limit of sorting; the rest is spilled to disk."""


def write_sorted_columns(
    table: Table,
    columns: Sequence[str],
    work: Work,
    schema: Any,
    destination: str | Path,
    *,
    keep: Sequence[str] = (),
    progress: Progress | None = None,
) -> int:
    """``write_columns``, and the rows of the file sorted by all its columns, so that it shows which rows there are, not
    their order.

    A table is often sorted by the very thing that a job hides, and batches come in its order. On Spark the parts are
    written as ``write_columns`` does; sort what is to be published.

    >>> import pyarrow, tempfile
    >>> from tightrope.tables import open_source
    >>> rows, schema = open_source(pyarrow.table({"x": [3, 1, 2]})), pyarrow.schema([("x", "int64")])
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     _ = write_sorted_columns(rows, ["x"], lambda batch: batch, schema, f"{folder}/a.parquet")
    ...     load_library("pyarrow.parquet").read_table(f"{folder}/a.parquet")["x"].to_pylist()
    [1, 2, 3]
    """
    place = Path(destination)
    if table.backend_adapter.writes_parts:
        return write_columns(table, columns, work, schema, destination, keep=keep, progress=progress)
    check_destination(place)
    if place.exists():
        raise destination_exists_error(place)
    part = place.with_name(f".{place.stem}.{uuid.uuid4().hex}{place.suffix}")
    try:
        count = write_columns(table, columns, work, schema, part, keep=keep, progress=progress)
        _sort_file(part, place)
    finally:
        part.unlink(missing_ok=True)
    return count


def _sort_file(source: Path, destination: Path) -> None:
    """The rows of a Parquet file, sorted, into another; rows beyond memory are spilled to disk next to it."""
    rows = engine_call(
        "read what was drawn", lambda: load_library("pyarrow.dataset").dataset(str(source), format="parquet")
    )
    with tempfile.TemporaryDirectory(dir=destination.parent, prefix=f".{destination.name}.") as folder:
        connection = load_library("duckdb").connect(config={"temp_directory": folder, "memory_limit": MEMORY})
        try:
            query = engine_call("sort what was drawn", lambda: connection.from_arrow(rows).order("ALL"))
            reader = engine_call("sort what was drawn", lambda: query.to_arrow_reader(ROWS))
            with atomic_parquet_file(destination, rows.schema, ROWS) as groups:
                engine_call("write what was sorted", lambda: groups.add_batches(reader))
        finally:
            connection.close()
