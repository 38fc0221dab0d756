"""Opens users' tables: anything that can be read becomes a ``Table``."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from tightrope.documents.reader import redact_secret
from tightrope.errors import InputError
from tightrope.tables.backends.column_types import schema_of
from tightrope.tables.backends.postgres import SCHEMES
from tightrope.tables.backends.registry import backend_for
from tightrope.tables.engine_calls import engine_call, load_library
from tightrope.tables.sources import csv, databases, frames, parquet
from tightrope.tables.sources.csv import Dialect
from tightrope.tables.sources.parquet_folders import is_pattern
from tightrope.tables.table import Table, check_names

# Which ibis expressions are tables row by row: only operations known to use one row alone are accepted.

RELATIONS = (
    "DatabaseTable",
    "InMemoryTable",
    "UnboundTable",
    "Project",
    "Filter",
    "DropColumns",
    "DropNull",
    "FillNull",
)
"""Relations in which whether and how a row appears depends on that row alone."""
ROOMS = ("numeric", "logical", "strings", "temporal", "arrays", "structs", "maps", "json", "histograms", "geospatial")
"""Modules of ibis whose operations compute a value from values of the same row."""
SINGLE = (
    "Alias", "Field", "Literal", "Cast", "TryCast", "Coalesce", "Greatest", "Least", "NullIf", "IsNull", "NotNull",
    "SearchedCase", "SimpleCase", "TypeOf", "Hash", "HashBytes", "HexDigest", "Pi", "E", "Constant",
)  # fmt: skip
"""Operations of other modules that do. Not among them: functions of the user or of the engine, ``rowid``, ``now()``."""
BEYOND_A_ROW = ("Impure", "Reduction", "Analytic", "Subquery")


def operations_across_rows(expression: Any) -> list[str]:
    """The operations of an expression through which one person's rows reach another's, or that change as time does."""
    operations = load_library("ibis.expr.operations")
    relations = {type(node).__name__ for node in expression.op().find(operations.Relation)} - set(RELATIONS)
    beyond_a_row = tuple(getattr(operations, kind) for kind in BEYOND_A_ROW)
    values = set()
    for node in expression.op().find(operations.Value):
        name, module = type(node).__name__, type(node).__module__.rpartition(".")[2]
        if isinstance(node, beyond_a_row) or (name not in SINGLE and module not in ROOMS):
            values.add(name)
    return sorted(relations | values)


DUCKDB_SUFFIXES = (".duckdb", ".db", ".ddb")
POSTGRES, PARTS = SCHEMES[0], "parts"
SOURCES = (
    "a path to a .parquet, .csv or .duckdb file, a folder of .parquet parts or a pattern for them, a postgresql:// "
    "URL, a pandas, polars or Spark frame, a pyarrow table, a DuckDB relation or an ibis table"
)


Kind = str | tuple[str, str]


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
            ``.parquet`` parts (what Spark writes, also in partitions, ``year=2024/part.parquet``), or a pattern
            (``data/*.parquet``); a pandas ``DataFrame``, polars ``DataFrame`` or ``LazyFrame``, Spark ``DataFrame``
            (its session's time zone becomes UTC), pyarrow ``Table``; a DuckDB relation; an ibis table expression on any
            back end but PostgreSQL; or the URL of a PostgreSQL database, ``postgresql://role@host/database``, without
            a password (PGPASSWORD or ``~/.pgpass`` hold it). A ``Table`` is given back as it is.
        table: the name of the table, ``table`` or ``schema.table``, in a DuckDB file or a PostgreSQL database.
        types: the kinds of columns that have no type of their own, for example ``{"income": "number"}``: a CSV file's
            (others are text) and columns of a pandas frame that hold objects. A value that does not fit is missing.
        dialect: how a CSV file is written, if it is not UTF-8 with commas, double quotes and a header line: any of
            ``delimiter, quote, decimal, encoding, header, date_format, timestamp_format, newlines``.

    An ibis expression must treat rows one by one (select, filter, mutate): through a limit, sample, join, window,
    aggregate or set operation one person can decide what another's row says, and it is refused. A view, a
    DuckDB relation and a lazy polars frame are taken as the tables that they compute.

    Raises ``InputError`` or ``SchemaError`` for what cannot be read, ``MissingExtraError`` without ibis.

    >>> import pyarrow
    >>> open_source(pyarrow.table({"city": ["Oslo"], "income": [52_000.0]})).schema.column_names
    ('city', 'income')
    """
    if isinstance(source, Table):
        return source
    kind = _source_kind(source)
    # An option that has no meaning for the source would be ignored silently: refuse it.
    given = {"table": table, "types": types, "dialect": dialect}
    for name, value in given.items():
        allowed, where = _OPTIONS[name]
        if value is not None and kind not in allowed:
            raise InputError(name, value, f"None unless the source is {where}", "leave it out")
    if isinstance(kind, tuple):
        return _FRAMES[kind](source, types or {})
    if kind == POSTGRES:
        url = str(source)
        if table is None:
            raise InputError(
                "table", table, "the name of a table in the database", "say table='schema.table', or --table"
            )
        return databases.open_postgres(url, table)
    return _open_file(Path(str(source)), kind, table, (types or {}, Dialect.from_entries(dialect or {})))


def _source_kind(source: object) -> Kind:
    """Return the kind that selects how it is opened: the scheme of a URL, the end of a path, or a class."""
    if isinstance(source, str) and source.startswith(SCHEMES):
        return POSTGRES
    if isinstance(source, (str, Path)):
        path = Path(source)
        is_folder = path.is_dir() and path != Path()  # not where an empty text leads
        return PARTS if is_folder or is_pattern(path) else path.suffix.lower()
    # The library and name of the class that we know the source by.
    classes = ((ancestor.__module__.partition(".")[0], ancestor.__name__) for ancestor in type(source).__mro__)
    known = next((known for known in classes if known in _FRAMES), None)
    if known is None:
        raise InputError("source", type(source), SOURCES)  # not the value: its repr may hold data
    return known


PANDAS = ("pandas", "DataFrame")
_OPTIONS: Mapping[str, tuple[tuple[Kind, ...], str]] = {
    "table": ((*DUCKDB_SUFFIXES, POSTGRES), "a DuckDB file or a PostgreSQL database"),
    "types": ((".csv", PANDAS, PARTS), "a CSV file, a pandas frame or a folder of partitions"),
    "dialect": ((".csv",), "a CSV file"),
}
"""The kinds of source to which an option applies."""


_UNPACK, _LETTERS = "unpack it first", "call it .csv and declare its delimiter: dialect={'delimiter': '\\t'}"
_REMEDIES = {**dict.fromkeys((".gz", ".zip", ".bz2", ".xz", ".zst"), _UNPACK), ".tsv": _LETTERS, ".txt": _LETTERS}


def _open_file(path: Path, suffix: str, table: str | None, written: tuple[Mapping[str, str], Dialect]) -> Table:
    if suffix == PARTS:
        return parquet.open_parquet(path, written[0])
    if suffix not in (".parquet", ".csv", *DUCKDB_SUFFIXES):
        raise InputError("source", redact_secret(str(path)), SOURCES, _REMEDIES.get(suffix, "convert it to Parquet"))
    if not path.is_file():
        remedy = "check the path; it is relative to where you are"
        raise InputError("source", redact_secret(str(path)), "a file that exists", remedy)
    if suffix == ".parquet":
        return parquet.open_parquet(path, {})
    if suffix == ".csv":
        return csv.open_csv(path, *written)
    return databases.open_duckdb(path, table)


def _open_ibis(expression: Any, _: Mapping[str, str]) -> Table:
    stray = operations_across_rows(expression)
    if stray:
        raise InputError("source", stray, "an ibis table that treats rows one by one", "create the table first")
    check_names(expression.columns)
    backend = engine_call("find the back end of the ibis table", expression.get_backend)
    instead = backend_for(backend).alternative_source
    if instead:
        raise InputError("source", f"an ibis table on {backend.name}", "rows that we read ourselves", f"say {instead}")
    return Table(schema_of(expression.schema()), "ibis", lambda: backend, lambda _: expression)


_FRAMES: Mapping[tuple[str, str], Callable[[Any, Mapping[str, str]], Table]] = {
    PANDAS: frames.open_pandas,
    ("polars", "DataFrame"): lambda frame, _: frames.open_polars(frame),
    ("polars", "LazyFrame"): lambda frame, _: frames.open_polars_lazy(frame),
    ("pyarrow", "Table"): lambda table, _: frames.open_arrow(table),
    ("pyspark", "DataFrame"): lambda frame, _: frames.open_spark(frame),
    ("duckdb", "DuckDBPyRelation"): lambda relation, _: databases.open_relation(relation),
    ("ibis", "Table"): _open_ibis,
}
"""By library and class, so that no library is imported to ask whether it is the source's."""
