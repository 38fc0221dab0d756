"""The door for users' tables: anything that can be read becomes a ``Table``."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from tightrope.engines.backends.column_types import schema_of
from tightrope.engines.guard import guarded, load
from tightrope.engines.sources import files, frames
from tightrope.engines.table import Table
from tightrope.errors import InputError

DUCKDB_SUFFIXES = (".duckdb", ".db", ".ddb")
SOURCES = (
    "a path to a .parquet, .csv or .duckdb file or a folder of .parquet parts, a pandas, polars or Spark frame, "
    "a pyarrow table or an ibis table"
)


def open_source(source: object, *, table: str | None = None, types: Mapping[str, str] | None = None) -> Table:
    """The table in a source, of which only the schema is read now.

    Parameters:
        source: a path to a ``.parquet``, ``.csv`` or ``.duckdb`` (``.db``, ``.ddb``) file, or to a folder of
            ``.parquet`` parts (what Spark writes); a pandas ``DataFrame``, polars ``DataFrame`` or ``LazyFrame``, Spark
            ``DataFrame`` (its session's time zone becomes UTC), pyarrow ``Table``; or an ibis table expression on any
            back end.
        table: the name of the table, for a DuckDB file and only there.
        types: the kinds of a CSV file's columns, for example ``{"income": "number"}``; others are text. Only for CSV.

    An ibis expression must treat rows one by one (select, filter, mutate): through a limit, sample, join, window,
    aggregate or set operation one person can decide what another's row says, and it is refused. A view of a DuckDB
    file and a lazy polars frame are taken as the tables that they compute.

    Raises ``InputError`` or ``SchemaError`` for what cannot be read, ``MissingExtraError`` without ibis.

    >>> import pyarrow
    >>> open_source(pyarrow.table({"city": ["Oslo"], "income": [52_000.0]})).schema.names
    ('city', 'income')
    """
    path = Path(source) if isinstance(source, (str, Path)) else None
    _refuse_misplaced(path, table, types)
    return _open_frame(source) if path is None else _open_file(path, table, types or {})


def _refuse_misplaced(path: Path | None, table: str | None, types: Mapping[str, str] | None) -> None:
    """An option that has no meaning for the source would be ignored silently: refuse it."""
    suffix = None if path is None else path.suffix.lower()
    if table is not None and suffix not in DUCKDB_SUFFIXES:
        raise InputError("table", table, "None unless the source is a DuckDB file", "leave it out")
    if types is not None and suffix != ".csv":
        raise InputError(
            "types", types, "None unless the source is a CSV file", "other sources have types; leave it out"
        )


def _open_file(path: Path, table: str | None, types: Mapping[str, str]) -> Table:
    suffix = path.suffix.lower()
    if path.is_dir() and path != Path():  # not where an empty text leads
        return files.open_parts(path)
    if suffix not in (".parquet", ".csv", *DUCKDB_SUFFIXES):
        raise InputError("source", str(path), SOURCES, "convert it to Parquet")
    if not path.is_file():
        raise InputError("source", str(path), "a file that exists", "check the path; it is relative to where you are")
    if suffix == ".parquet":
        return files.open_parquet(path)
    if suffix == ".csv":
        return files.open_csv(path, types)
    if table is None:
        raise InputError("table", table, "the name of a table in the DuckDB file", "pass table='...'")
    return files.open_duckdb(path, table)


def _open_ibis(expression: Any) -> Table:
    stray = _not_by_row(expression)
    if stray:
        raise InputError("source", stray, "an ibis table that treats rows one by one", "create the table first")
    backend = guarded("find the back end of the ibis table", expression.get_backend)
    return Table(schema_of(expression.schema()), "ibis", backend, lambda _: expression)


_TABLES = ("DatabaseTable", "InMemoryTable", "UnboundTable")
_ROW_BY_ROW = (*_TABLES, "Project", "Filter", "DropColumns", "DropNull", "FillNull")
"""Relations in which whether and how a row appears depends on that row alone."""
_ACROSS = ("Reduction", "Analytic", "WindowFunction", "Subquery", "Impure")
"""Values that look at other rows, or that nobody could compute again."""


def _not_by_row(expression: Any) -> list[str]:
    """The operations of an expression through which one person's rows reach another's: limits, windows, joins, ..."""
    operations = load("ibis.expr.operations")
    across = tuple(getattr(operations, kind) for kind in _ACROSS)
    relations = {type(node).__name__ for node in expression.op().find(operations.Relation)}
    return sorted((relations - set(_ROW_BY_ROW)) | {type(node).__name__ for node in expression.op().find(across)})


_FRAMES: Mapping[tuple[str, str], Callable[[Any], Table]] = {
    ("pandas", "DataFrame"): frames.open_pandas,
    ("polars", "DataFrame"): frames.open_polars,
    ("polars", "LazyFrame"): frames.open_polars_lazy,
    ("pyarrow", "Table"): frames.open_arrow,
    ("pyspark", "DataFrame"): frames.open_spark,
    ("ibis", "Table"): _open_ibis,
}
"""By library and class, so that no library is imported to ask whether it is the source's."""


def _open_frame(source: object) -> Table:
    for ancestor in type(source).__mro__:
        opener = _FRAMES.get((ancestor.__module__.partition(".")[0], ancestor.__name__))
        if opener is not None:
            return opener(source)
    # The value itself is not shown: its repr may hold data.
    raise InputError("source", type(source), SOURCES)
