"""The only door to ibis, DuckDB and Spark: loading them, connecting, and keeping their messages inside.

Engine messages quote values ("Could not convert string 'Anna Schmidt' to INT64"), so every call runs in ``guarded``.
"""

from __future__ import annotations

import functools
import importlib
import logging
import operator
import tempfile
import uuid
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from tightrope.errors import EngineError, MissingExtraError, TightropeError

if TYPE_CHECKING:
    import ibis.expr.types as ir

Result = TypeVar("Result")


def load(library: str) -> Any:
    """The library, imported now and not before; ``MissingExtraError`` names what to install."""
    try:
        with _quiet():
            return importlib.import_module(library)
    except ImportError:
        name = library.partition(".")[0]
        raise MissingExtraError(name, "spark" if name == "pyspark" else "release") from None


def guarded(step: str, work: Callable[[], Result]) -> Result:
    """``work()``; whatever goes wrong in the engine becomes an ``EngineError`` that names the step and no value.

    The error is raised outside the handler: ``from None`` hides the engine's exception from a traceback but keeps
    it in ``__context__``, where error trackers look.
    """
    try:
        with _quiet():
            return work()
    except TightropeError:
        raise
    except Exception as error:  # every exception of an engine may quote the data
        kind = type(error).__name__
    raise EngineError(
        f"the engine failed to {step} ({kind}); its own message may quote the data and is not shown; "
        f"try the same step on a copy of the table with the engine itself"
    )


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
def exact(backend: Any) -> Iterator[None]:
    """With DuckDB's misleading optimizer rules switched off; afterwards the connection is as it was."""
    if backend.name != "duckdb":
        yield
        return
    before = guarded("read the settings", lambda: str(backend.settings["disabled_optimizers"] or ""))
    rules = ",".join(dict.fromkeys((*filter(None, before.split(",")), *MISLEADING)))
    guarded("change the settings", lambda: operator.setitem(backend.settings, "disabled_optimizers", rules))
    try:
        yield
    finally:
        guarded("restore the settings", lambda: operator.setitem(backend.settings, "disabled_optimizers", before))


def sql(backend: Any, rows: ir.Table) -> str:
    """The query for these rows; the tables in memory that it refers to are made known to the engine.

    For calls that ibis 12 has no working way for. The hook is not public: ibis is held below 13.
    """
    backend._run_pre_execute_hooks(rows)
    return str(backend.compile(rows))


def fetched(backend: Any, rows: ir.Table) -> Any:
    """The rows as an Arrow table. From Spark not by ibis, whose way leads through pandas, where decimals fail.

    ibis does not tell Spark's two kinds of timestamp apart: all come without a zone, instants in UTC.
    """
    if backend.name == "pyspark":
        return backend.raw_sql(sql(backend, rows)).toArrow().cast(rows.schema().to_pyarrow())
    return backend.to_pyarrow(rows)


@contextmanager
def materialised(step: str, backend: Any, rows: ir.Table) -> Iterator[ir.Table]:
    """The rows as a temporary table, computed once, dropped at the end; its name is fresh and says nothing."""
    name = f"tightrope_{uuid.uuid4().hex}"
    if backend.name == "pyspark":
        with _cached(step, backend, rows, name) as table:
            yield table
        return
    try:
        yield guarded(step, lambda: backend.create_table(name, rows, temp=True))
    finally:
        guarded("drop a temporary table", lambda: backend.drop_table(name, force=True))


@contextmanager
def _cached(step: str, backend: Any, rows: ir.Table, name: str) -> Iterator[ir.Table]:
    """Spark has no temporary tables: a view of cached rows. What is lost may be computed again: the same, no noise."""
    frame = guarded(step, lambda: backend.raw_sql(sql(backend, rows)).cache())
    try:
        guarded(step, lambda: frame.createOrReplaceTempView(name))
        yield guarded(step, lambda: backend.table(name))
    finally:
        guarded("drop a temporary table", lambda: frame.sparkSession.catalog.dropTempView(name))
        guarded("drop a temporary table", frame.unpersist)


@contextmanager
def _quiet() -> Iterator[None]:
    """Without the warnings that ibis 12 and Spark cause by themselves with pandas 3 and DuckDB 2; all others pass."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="fetch_arrow_table", category=DeprecationWarning)
        warnings.filterwarnings("ignore", message=".*Pandas4Warning.*")
        warnings.filterwarnings("ignore", category=DeprecationWarning, module="ibis")
        warnings.filterwarnings("ignore", message="PySpark does not yet fully support pandas", category=FutureWarning)
        warnings.filterwarnings("ignore", message="toPandas attempted Arrow", category=UserWarning)  # may quote a value
        with _unlogged("SQLQueryContextLogger"):
            yield


@contextmanager
def _unlogged(name: str) -> Iterator[None]:
    """Without the messages of a logger: Spark's repeats its errors there, and they may quote a value."""
    logger = logging.getLogger(name)
    before, logger.disabled = logger.disabled, True
    try:
        yield
    finally:
        logger.disabled = before
