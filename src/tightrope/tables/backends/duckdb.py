"""DuckDB: connections, the optimizer rules that it must not use, and how it streams."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tightrope.tables.backends.backend import Backend, compile_sql
from tightrope.tables.engine_calls import engine_call, load_library
from tightrope.tables.files import spill_folder

if TYPE_CHECKING:
    import ibis.expr.types as ir


MISLEADING = ("statistics_propagation", "type_pushdown")
"""Optimizer rules of DuckDB 2.0 that give wrong answers, found by tests/tables.

``statistics_propagation``: a Parquet file's minimum and maximum leave NaN out, so DuckDB concludes that nothing is NaN,
takes ``isnan(x)`` for false, and would clamp NaN to the upper bound instead of dropping it.
``type_pushdown``: turns TRY_CAST of a CSV column into a CAST while reading, which fails on what should become NULL.
"""

MEMORY = "700MB"
"""Memory limit of our connections; the rest is spilled to disk, in a folder only this user can open.

Not encrypted: DuckDB 2.0 writes encrypted files only with an extension that would have to be installed.
"""


def open_connection(database: Path | None = None) -> Any:
    """Return a new DuckDB back end of ibis: in memory, or on one file, read-only, without access to other files.

    What does not fit in memory spills into a private folder. Nothing is installed from the network, no
    progress bar is drawn, and misleading optimizer rules are turned off.
    """
    ibis = load_library("ibis")
    load_library("ibis.backends.duckdb")
    settings = {
        "preserve_insertion_order": False,
        "autoinstall_known_extensions": False,
        "autoload_known_extensions": False,
        "temp_directory": str(spill_folder(database)),
        "memory_limit": MEMORY,
        "disabled_optimizers": ",".join(MISLEADING),
    }
    place = ":memory:" if database is None else database
    backend = ibis.duckdb.connect(place, read_only=database is not None, **settings)
    backend.raw_sql("SET enable_progress_bar = false")
    if database is not None:  # views in the file are run: they see no other file
        backend.raw_sql("SET enable_external_access = false")
    return backend


def seal_connection(backend: Any) -> None:
    """From here on the connection opens no file and changes no setting, for any query."""
    backend.raw_sql("SET enable_external_access = false")
    backend.raw_sql("SET lock_configuration = true")


@dataclass(slots=True)
class _RuleOverride:
    """Number of readers of a user's database that need the rules off, and the user's settings before the first."""

    readers: int
    original_rules: str


_careful: dict[int, _RuleOverride] = {}
_turn = threading.Lock()


@contextmanager
def without_misleading_rules(backend: Any) -> Iterator[None]:
    """Within it the rules are off; when the last of those who need it leaves, the connection is as it was.

    Raises ``EngineError`` where the setting cannot be changed.
    """
    engine_call("change the settings", lambda: _disable_rules(backend))
    try:
        yield
    finally:
        engine_call("restore the settings", lambda: _restore_rules(backend))


def _disable_rules(backend: Any) -> None:
    with _turn:
        found = _careful.get(id(backend.con))
        if found is not None:
            found.readers += 1
            return
        before = _disabled_rules(backend)
        named = [*filter(None, before.split(","))]
        if not set(MISLEADING) <= set(named):
            backend.settings["disabled_optimizers"] = ",".join(dict.fromkeys((*named, *MISLEADING)))
        _careful[id(backend.con)] = _RuleOverride(1, before)


def _restore_rules(backend: Any) -> None:
    with _turn:
        found = _careful[id(backend.con)]
        found.readers -= 1
        if found.readers == 0:
            del _careful[id(backend.con)]
            if _disabled_rules(backend) != found.original_rules:
                backend.settings["disabled_optimizers"] = found.original_rules


def _disabled_rules(backend: Any) -> str:
    ((rules,),) = backend.raw_sql("SELECT current_setting('disabled_optimizers')").fetchall()
    return str(rules or "")


def arrow_reader(backend: Any, rows: ir.Table, size: int) -> Any:
    """A reader of record batches that runs the query once, as it is read.

    Not by ibis 12: its ``to_pyarrow_batches`` fails with DuckDB 2, and a result that is executed first is held whole.
    """
    query = engine_call("prepare the rows", lambda: backend.con.sql(compile_sql(backend, rows)))
    return engine_call("read the rows", lambda: query.to_arrow_reader(size))


DUCKDB = Backend("duckdb", safe_settings=without_misleading_rules, open_batch_reader=arrow_reader)
