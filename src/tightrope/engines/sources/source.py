"""The door for users' tables: anything that can be read becomes a ``Table``."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from tightrope.engines.backends.column_types import schema_of
from tightrope.engines.backends.known import of
from tightrope.engines.backends.postgres import SCHEMES
from tightrope.engines.guard import guarded
from tightrope.engines.sources import csv_table, files, frames, postgres_table
from tightrope.engines.sources.dialect import Dialect
from tightrope.engines.sources.row_by_row import not_by_row
from tightrope.engines.table import Table, check_names
from tightrope.errors import InputError

DUCKDB_SUFFIXES = (".duckdb", ".db", ".ddb")
POSTGRES = SCHEMES[0]
SOURCES = (
    "a path to a .parquet, .csv or .duckdb file or a folder of .parquet parts, a postgresql:// URL, a pandas, polars "
    "or Spark frame, a pyarrow table or an ibis table"
)


def open_source(
    source: object,
    *,
    table: str | None = None,
    types: Mapping[str, str] | None = None,
    dialect: Mapping[str, object] | Dialect | None = None,
) -> Table:
    """The table in a source, of which only the schema is read now.

    Parameters:
        source: a path to a ``.parquet``, ``.csv`` or ``.duckdb`` (``.db``, ``.ddb``) file, or to a folder of
            ``.parquet`` parts (what Spark writes); a pandas ``DataFrame``, polars ``DataFrame`` or ``LazyFrame``, Spark
            ``DataFrame`` (its session's time zone becomes UTC), pyarrow ``Table``; an ibis table expression on any
            back end but PostgreSQL; or the URL of a PostgreSQL database, ``postgresql://role@host/database``, without
            a password (PGPASSWORD or ``~/.pgpass`` hold it). A ``Table`` is given back as it is.
        table: the name of the table, for a DuckDB file or (``schema.table``) a PostgreSQL database, and only there.
        types: the kinds of columns that have no type of their own, for example ``{"income": "number"}``: a CSV file's
            (others are text) and those of a pandas frame that hold objects. A value that does not fit is missing.
        dialect: how a CSV file is written, where it is not UTF-8 with commas, double quotes and a header line: any of
            ``delimiter, quote, decimal, encoding, header, date_format, timestamp_format, newlines``.

    An ibis expression must treat rows one by one (select, filter, mutate): through a limit, sample, join, window,
    aggregate or set operation one person can decide what another's row says, and it is refused. A view of a DuckDB
    file and a lazy polars frame are taken as the tables that they compute.

    Raises ``InputError`` or ``SchemaError`` for what cannot be read, ``MissingExtraError`` without ibis.

    >>> import pyarrow
    >>> open_source(pyarrow.table({"city": ["Oslo"], "income": [52_000.0]})).schema.names
    ('city', 'income')
    """
    if isinstance(source, Table):
        return source
    path = Path(source) if isinstance(source, (str, Path)) else None
    is_url = isinstance(source, str) and source.startswith(SCHEMES)
    suffix = POSTGRES if is_url else None if path is None else path.suffix.lower()
    _refuse_misplaced(source, suffix, {"table": table, "types": types, "dialect": dialect})
    if is_url:
        return _open_postgres(str(source), table)
    return (
        _open_frame(source, types or {})
        if path is None
        else _open_file(path, table, types or {}, Dialect.of(dialect or {}))
    )


def _refuse_misplaced(source: object, suffix: str | None, given: Mapping[str, object]) -> None:
    """An option that has no meaning for the source would be ignored silently: refuse it."""
    for name, value in given.items():
        allowed, where = _OPTIONS[name]
        if value is not None and suffix not in allowed and not (name == "types" and _class(source) == PANDAS):
            raise InputError(name, value, f"None unless the source is {where}", "leave it out")


_OPTIONS: Mapping[str, tuple[tuple[str, ...], str]] = {
    "table": ((*DUCKDB_SUFFIXES, POSTGRES), "a DuckDB file or a PostgreSQL database"),
    "types": ((".csv",), "a CSV file or a pandas frame"),
    "dialect": ((".csv",), "a CSV file"),
}
"""Where an option has a meaning."""


_UNPACK, _LETTERS = "unpack it first", "call it .csv and declare its delimiter: dialect={'delimiter': '\\t'}"
_REMEDIES = {**dict.fromkeys((".gz", ".zip", ".bz2", ".xz", ".zst"), _UNPACK), ".tsv": _LETTERS, ".txt": _LETTERS}


def _open_file(path: Path, table: str | None, types: Mapping[str, str], dialect: Dialect) -> Table:
    suffix = path.suffix.lower()
    if path.is_dir() and path != Path():  # not where an empty text leads
        return files.open_parts(path)
    if suffix not in (".parquet", ".csv", *DUCKDB_SUFFIXES):
        raise InputError("source", str(path), SOURCES, _REMEDIES.get(suffix, "convert it to Parquet"))
    if not path.is_file():
        raise InputError("source", str(path), "a file that exists", "check the path; it is relative to where you are")
    if suffix == ".parquet":
        return files.open_parquet(path)
    if suffix == ".csv":
        return csv_table.open_csv(path, types, dialect)
    if table is None:
        raise InputError("table", table, "the name of a table in the DuckDB file", "pass table='...'")
    return files.open_duckdb(path, table)


def _open_postgres(url: str, table: str | None) -> Table:
    if table is None:
        raise InputError("table", table, "the name of a table in the database", "pass table='schema.table'")
    return postgres_table.open_postgres(url, table)


def _open_ibis(expression: Any, _: Mapping[str, str]) -> Table:
    stray = not_by_row(expression)
    if stray:
        raise InputError("source", stray, "an ibis table that treats rows one by one", "create the table first")
    check_names(expression.columns)
    backend = guarded("find the back end of the ibis table", expression.get_backend)
    instead = of(backend).instead
    if instead:
        raise InputError("source", f"an ibis table on {backend.name}", "rows that we read ourselves", f"say {instead}")
    return Table(schema_of(expression.schema()), "ibis", lambda: backend, lambda _: expression)


PANDAS = ("pandas", "DataFrame")
_FRAMES: Mapping[tuple[str, str], Callable[[Any, Mapping[str, str]], Table]] = {
    PANDAS: frames.open_pandas,
    ("polars", "DataFrame"): lambda frame, _: frames.open_polars(frame),
    ("polars", "LazyFrame"): lambda frame, _: frames.open_polars_lazy(frame),
    ("pyarrow", "Table"): lambda table, _: frames.open_arrow(table),
    ("pyspark", "DataFrame"): lambda frame, _: frames.open_spark(frame),
    ("ibis", "Table"): _open_ibis,
}
"""By library and class, so that no library is imported to ask whether it is the source's."""


def _open_frame(source: object, types: Mapping[str, str]) -> Table:
    known = _class(source)
    if known is None:
        raise InputError("source", type(source), SOURCES)  # not the value: its repr may hold data
    return _FRAMES[known](source, types)


def _class(source: object) -> tuple[str, str] | None:
    """The library and name of the class that we know the source by."""
    classes = ((ancestor.__module__.partition(".")[0], ancestor.__name__) for ancestor in type(source).__mro__)
    return next((known for known in classes if known in _FRAMES), None)
