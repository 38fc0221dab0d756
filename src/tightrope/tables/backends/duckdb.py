"""DuckDB: connections, the optimizer rules that it must not use, and how it streams."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tightrope.tables.backends.backend import Backend, sql
from tightrope.tables.engine_calls import guarded, load
from tightrope.tables.files import spill

if TYPE_CHECKING:
    import ibis.expr.types as ir


MISLEADING = ("statistics_propagation", "type_pushdown")
"""Optimizer rules of DuckDB 2.0 that give wrong answers, found by tests/tables.

``statistics_propagation``: a Parquet file's minimum and maximum leave NaN out, so DuckDB concludes that nothing is NaN,
takes ``isnan(x)`` for false, and would clamp NaN to the upper bound instead of dropping it.
``type_pushdown``: turns TRY_CAST of a CSV column into a CAST while reading, which fails on what should become NULL.
"""

MEMORY = "700MB"
"""What a connection of ours holds in memory; the rest waits on disk, in a folder that only we can enter.

Not encrypted: DuckDB 2.0 writes encrypted files only with an extension that would have to be installed.
"""


def connect(database: Path | None = None) -> Any:
    """A DuckDB back end of ibis of our own: in memory, or on a file that it opens read-only and cannot look beside.

    What does not fit in memory spills into a private folder. Nothing is installed from the network, no
    progress bar is drawn, and rules that mislead are off for good.
    """
    ibis = load("ibis")
    load("ibis.backends.duckdb")
    settings = {
        "preserve_insertion_order": False,
        "autoinstall_known_extensions": False,
        "autoload_known_extensions": False,
        "temp_directory": str(spill(database)),
        "memory_limit": MEMORY,
        "disabled_optimizers": ",".join(MISLEADING),
    }
    place = ":memory:" if database is None else database
    backend = ibis.duckdb.connect(place, read_only=database is not None, **settings)
    backend.raw_sql("SET enable_progress_bar = false")
    if database is not None:  # views in the file are run: they see no other file
        backend.raw_sql("SET enable_external_access = false")
    return backend


def seal(backend: Any) -> None:
    """From here on the connection opens no file and changes no setting, whatever a query says."""
    backend.raw_sql("SET enable_external_access = false")
    backend.raw_sql("SET lock_configuration = true")


@dataclass(slots=True)
class _Careful:
    """How many readers of one user's database need the rules off, and what the user had set before the first."""

    readers: int
    before: str


_careful: dict[int, _Careful] = {}
_turn = threading.Lock()


@contextmanager
def without_misleading_rules(backend: Any) -> Iterator[None]:
    """Within it the rules are off; when the last of those who need it leaves, the connection is as it was.

    Raises ``EngineError`` where the setting cannot be changed.
    """
    guarded("change the settings", lambda: _enter(backend))
    try:
        yield
    finally:
        guarded("restore the settings", lambda: _leave(backend))


def _enter(backend: Any) -> None:
    with _turn:
        found = _careful.get(id(backend.con))
        if found is not None:
            found.readers += 1
            return
        before = _rules_off(backend)
        named = [*filter(None, before.split(","))]
        if not set(MISLEADING) <= set(named):
            backend.settings["disabled_optimizers"] = ",".join(dict.fromkeys((*named, *MISLEADING)))
        _careful[id(backend.con)] = _Careful(1, before)


def _leave(backend: Any) -> None:
    with _turn:
        found = _careful[id(backend.con)]
        found.readers -= 1
        if found.readers == 0:
            del _careful[id(backend.con)]
            if _rules_off(backend) != found.before:
                backend.settings["disabled_optimizers"] = found.before


def _rules_off(backend: Any) -> str:
    ((rules,),) = backend.raw_sql("SELECT current_setting('disabled_optimizers')").fetchall()
    return str(rules or "")


def arrow_reader(backend: Any, rows: ir.Table, size: int) -> Any:
    """A reader of record batches that runs the query once, as it is read.

    Not by ibis 12: its ``to_pyarrow_batches`` fails with DuckDB 2, and a result that is executed first is held whole.
    """
    query = guarded("prepare the rows", lambda: backend.con.sql(sql(backend, rows)))
    return guarded("read the rows", lambda: query.to_arrow_reader(size))


DUCKDB = Backend("duckdb", exact=without_misleading_rules, reader=arrow_reader)
