"""DuckDB: connections, the optimizer rules that it must not use, and how it streams."""

from __future__ import annotations

import functools
import operator
import tempfile
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tightrope.engines.backends.backend import Backend, sql
from tightrope.engines.guard import guarded, load

if TYPE_CHECKING:
    import ibis.expr.types as ir


def connect(database: Path | None = None) -> Any:
    """A DuckDB back end of ibis: in memory, or on a file that it opens read-only.

    What does not fit in memory spills into the system's temporary folder, never beside the user's file or into the
    working directory. Nothing is installed from the network and no progress bar is drawn.
    """
    ibis = load("ibis")
    load("ibis.backends.duckdb")
    settings = {
        "preserve_insertion_order": False,
        "autoinstall_known_extensions": False,
        "temp_directory": str(_spill()),
    }
    place = ":memory:" if database is None else database
    backend = ibis.duckdb.connect(place, read_only=database is not None, **settings)
    backend.raw_sql("SET enable_progress_bar = false")
    return backend


@functools.cache
def _spill() -> Path:
    """One folder a process, made when something spills: DuckDB opens a file twice only with the same settings."""
    return Path(tempfile.gettempdir()) / f"tightrope-{uuid.uuid4().hex}"


MISLEADING = ("statistics_propagation", "type_pushdown")
"""Optimizer rules of DuckDB 2.0 that give wrong answers, found by tests/engines.

``statistics_propagation``: a Parquet file's minimum and maximum leave NaN out, so DuckDB concludes that nothing is NaN,
takes ``isnan(x)`` for false, and would clamp NaN to the upper bound instead of dropping it.
``type_pushdown``: turns TRY_CAST of a CSV column into a CAST while reading, which fails on what should become NULL.
"""


@contextmanager
def without_misleading_rules(backend: Any) -> Iterator[None]:
    """Afterwards the connection is as it was."""
    before = guarded("read the settings", lambda: str(backend.settings["disabled_optimizers"] or ""))
    rules = ",".join(dict.fromkeys((*filter(None, before.split(",")), *MISLEADING)))
    guarded("change the settings", lambda: operator.setitem(backend.settings, "disabled_optimizers", rules))
    try:
        yield
    finally:
        guarded("restore the settings", lambda: operator.setitem(backend.settings, "disabled_optimizers", before))


def arrow_reader(backend: Any, rows: ir.Table, size: int) -> Any:
    """A reader of record batches that runs the query once, as it is read.

    Not by ibis 12: its ``to_pyarrow_batches`` fails with DuckDB 2, and a result that is executed first is held whole.
    """
    query = guarded("prepare the rows", lambda: backend.con.sql(sql(backend, rows)))
    return guarded("read the rows", lambda: query.to_arrow_reader(size))


DUCKDB = Backend("duckdb", exact=without_misleading_rules, reader=arrow_reader)
