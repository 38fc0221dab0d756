"""``open_source`` opens every supported kind of source as a ``Table``."""

from __future__ import annotations

import re
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from tightrope.documents.reader import redact_secret
from tightrope.errors import EngineError, InputError
from tightrope.tables.backends.column_types import schema_of
from tightrope.tables.backends.postgres import SCHEMES
from tightrope.tables.backends.registry import backend_for
from tightrope.tables.engine_calls import engine_call, load_library
from tightrope.tables.files import MAX_BATCH_ROWS, StampedFiles, iterate_batches
from tightrope.tables.materialize import RowSource
from tightrope.tables.sources import csv, databases, frames, parquet
from tightrope.tables.sources.canonical_text import EXACT_INTEGER_END, parse_value
from tightrope.tables.sources.csv import CSV_BLOCK, MAX_RECORD_BYTES, Dialect, open_binary_file
from tightrope.tables.sources.frames import ARROW_TYPES, check_types, convert_value
from tightrope.tables.sources.parquet_folders import is_pattern
from tightrope.tables.table import Table, check_names, table_from_stream

if TYPE_CHECKING:
    import pyarrow as pa
    from pyarrow.dataset import Dataset

# Sources that come as records: Arrow streams, Arrow datasets, and files of JSON lines.


JSON_LINES = (".jsonl", ".ndjson", ".jsonl.gz", ".ndjson.gz")
"""Endings of files with one JSON object in each line."""


def open_arrow_stream(source: Any) -> Table:
    """Open anything with the Arrow C stream interface, such as a ``RecordBatchReader``; no record is read.

    Its records are held in memory from the first reading on, so that a second plan sees the same ones. Raises
    ``InputError`` for a stream of single values, such as a column.
    """
    arrow = load_library("pyarrow")
    try:
        reader = engine_call("open the Arrow stream", lambda: arrow.RecordBatchReader.from_stream(source))
    except EngineError:
        reader = None
    if reader is None:
        raise InputError("source", type(source), "a stream of records with named columns that was not read before")
    lock, has_failed, tables = threading.Lock(), threading.Event(), list[Any]()

    def check_readable(_: Sequence[str] = ()) -> None:
        if has_failed.is_set():  # what is left of a stream would be another table
            text = "reading this stream failed, and a stream can be read only once; make a new one, or pass a table"
            raise InputError.from_text("source", text)

    def read_table() -> pa.Table:
        with lock:
            check_readable()
            if not tables:
                try:
                    tables.append(engine_call("read the Arrow stream", reader.read_all))
                except BaseException:
                    has_failed.set()
                    raise
            return tables[0]

    def read_columns(names: Sequence[str]) -> RowSource:
        schema = arrow.schema([reader.schema.field(name) for name in names])
        return RowSource(schema, lambda: read_table().select(list(names)).to_batches(MAX_BATCH_ROWS))

    return table_from_stream("arrow", reader.schema.remove_metadata(), read_columns, check_readable)


def open_dataset(dataset: Dataset) -> Table:
    """Open a ``pyarrow.dataset``; the columns of a plan's questions are read batch by batch."""
    arrow = load_library("pyarrow")
    schema = dataset.schema.remove_metadata()

    def read_columns(names: Sequence[str]) -> RowSource:
        chosen = arrow.schema([schema.field(name) for name in names])

        def read_batches() -> Iterator[pa.RecordBatch]:
            reader = engine_call(
                "read the Arrow dataset",
                lambda: dataset.scanner(columns=list(names), batch_size=MAX_BATCH_ROWS).to_reader(),
            )
            for batch in iterate_batches(reader):
                yield engine_call("read the Arrow dataset", lambda batch=batch: batch.cast(chosen))  # type: ignore[misc]

        return RowSource(chosen, read_batches)

    return table_from_stream("arrow", schema, read_columns)


def open_json_lines(path: Path, types: Mapping[str, str]) -> Table:
    """Open a file with one JSON object in each line, in UTF-8; files whose names end in ``.gz`` are decompressed.

    ``types`` declares the columns and their kinds: names or types found in the lines would depend on single persons.
    Each line is one record. A value that is absent or does not fit its kind is missing; in a line that is not a JSON
    object every value is missing, so that no line has an effect on another one. Texts are read as in CSV fields for
    kinds other than text. Raises ``InputError`` without ``types``.
    """
    if not types:
        text = "declare the columns of JSON lines and their kinds: types={'person': 'integer', 'city': 'text'}"
        raise InputError.from_text("types", text)
    check_types(types, tuple(types), tuple(types))
    stamped, arrow = StampedFiles.from_paths(path), load_library("pyarrow")
    schema = arrow.schema([(name, arrow.type_for_alias(ARROW_TYPES[kind])) for name, kind in types.items()])

    def read_columns(names: Sequence[str]) -> RowSource:
        chosen = arrow.schema([schema.field(name) for name in names])

        def read_batches() -> Iterator[pa.RecordBatch]:
            for lines in _line_blocks(path):
                records = [_parse_object(line) for line in lines]
                columns = [
                    arrow.array([_fitting_value(record.get(name), types[name]) for record in records], kind)
                    for name, kind in zip(names, chosen.types, strict=True)
                ]
                yield arrow.RecordBatch.from_arrays(columns, schema=chosen)

        return RowSource(chosen, lambda: stamped.checked_batches(read_batches()), (), stamped.check_unchanged)

    return table_from_stream("json", schema, read_columns, lambda _: stamped.check_unchanged())


def _line_blocks(path: Path) -> Iterator[list[bytes]]:
    """Yield the lines of the file, some at a time; raises ``InputError`` for a line that does not fit in memory."""
    with open_binary_file(path) as file:
        pending = b""
        while block := engine_call("read the JSON lines", lambda: file.read(CSV_BLOCK)):
            *lines, pending = (pending + block).split(b"\n")
            if lines:
                yield lines
            if len(pending) > MAX_RECORD_BYTES:
                raise InputError.from_text(
                    "source", f"{str(path)!r} has a line of more than {MAX_RECORD_BYTES:,} bytes"
                )
        if pending:
            yield [pending]


def _parse_object(line: bytes) -> dict[str, Any]:
    """Return the object in a line; an empty one for any other line."""
    try:
        record = msgspec.json.decode(line)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return {}
    return record if isinstance(record, dict) else {}


def _fitting_value(value: object, kind: str) -> object:
    """Return the value in a column of this kind; None if it does not fit.

    >>> [_fitting_value(value, "integer") for value in (7, 7.0, "7", 7.5, True, None)]
    [7, 7, 7, None, None, None]
    """
    if isinstance(value, str):
        return parse_value(value, kind)
    if kind == "integer" and isinstance(value, float) and abs(value) < EXACT_INTEGER_END and value.is_integer():
        return int(value)
    return convert_value(value, kind)


ROW_WISE_RELATIONS = (
    "DatabaseTable",
    "InMemoryTable",
    "UnboundTable",
    "Project",
    "Filter",
    "DropColumns",
    "DropNull",
    "FillNull",
)
"""Operations of ibis on tables in which each row of the result depends on one row alone; others are rejected."""
ROW_WISE_MODULES = (
    "numeric",
    "logical",
    "strings",
    "temporal",
    "arrays",
    "structs",
    "maps",
    "json",
    "histograms",
    "geospatial",
)
"""Modules of ibis whose operations compute a value from the same row."""
ROW_WISE_OPERATIONS = (
    "Alias", "Field", "Literal", "Cast", "TryCast", "Coalesce", "Greatest", "Least", "NullIf", "IsNull", "NotNull",
    "SearchedCase", "SimpleCase", "TypeOf", "Hash", "HashBytes", "HexDigest", "Pi", "E", "Constant",
)  # fmt: skip
"""Operations of other modules that do so too. Functions of users or of engines, ``rowid`` and ``now()`` do not."""
CROSS_ROW_OPERATIONS = ("Impure", "Reduction", "Analytic", "Subquery")


def operations_across_rows(expression: Any) -> list[str]:
    """Return the operations of an expression that may use other rows of the table, or depend on the time."""
    operations = load_library("ibis.expr.operations")
    relations = {type(node).__name__ for node in expression.op().find(operations.Relation)} - set(ROW_WISE_RELATIONS)
    cross_row_types = tuple(getattr(operations, kind) for kind in CROSS_ROW_OPERATIONS)
    values = set()
    for node in expression.op().find(operations.Value):
        name, module = type(node).__name__, type(node).__module__.rpartition(".")[2]
        if isinstance(node, cross_row_types) or (name not in ROW_WISE_OPERATIONS and module not in ROW_WISE_MODULES):
            values.add(name)
    return sorted(relations | values)


DUCKDB_SUFFIXES = (".duckdb", ".db", ".ddb")
POSTGRES, PARQUET_FOLDER, REMOTE, STREAM = SCHEMES[0], "parts", "https://", "stream"
SOURCES = (
    "a path to a .parquet, .csv, .tsv, .csv.gz, .jsonl or .duckdb file, a folder of .parquet parts or a pattern for "
    "them, a postgresql:// URL, a pandas, polars or Spark frame, an Arrow table, stream or dataset, a DuckDB relation "
    "or an ibis table"
)
_URL = re.compile(r"([A-Za-z][A-Za-z0-9+.-]+):(/+)")
"""A URL, or what is left of one that was made a path: ``s3:/bucket``."""
REMOTE_SCHEMES = ("https", "http", "s3", "gs", "gcs", "r2")
"""Schemes of URLs that DuckDB's extension reads."""
IBIS_SCHEMES = ("snowflake", "bigquery", "trino", "clickhouse", "mysql", "mssql", "oracle", "databricks", "sqlite")
"""Schemes of URLs of databases whose tables are opened by ibis."""
SourceKind = str | tuple[str, str]
"""The suffix of a file, the scheme of a URL, ``PARQUET_FOLDER``, or the library and the name of a class."""


def open_source(
    source: object,
    *,
    table: str | None = None,
    types: Mapping[str, str] | None = None,
    dialect: Mapping[str, object] | Dialect | None = None,
) -> Table:
    """Open a source as a table; only its schema is read now.

    Parameters:
        source: a path to a ``.parquet``, ``.csv`` (``.tsv``, ``.csv.gz``) or ``.duckdb`` (``.db``, ``.ddb``) file, or
            to a folder of ``.parquet`` parts (what Spark writes, also in partitions, ``year=2024/part.parquet``), or a
            pattern (``data/*.parquet``); a pandas ``DataFrame``, polars ``DataFrame`` or ``LazyFrame``, Spark
            ``DataFrame`` (its session's time zone becomes UTC), pyarrow ``Table``; a DuckDB relation; an ibis table
            expression on any back end but PostgreSQL; a ``.jsonl`` file (``.ndjson``, also ``.gz``) of JSON objects;
            a DuckDB connection; a ``pyarrow.dataset``; anything with the Arrow C stream interface, whose records are
            held in memory; ``https://`` or ``s3://`` with a Parquet file, if DuckDB's extension for it is installed;
            or the URL of a PostgreSQL database, ``postgresql://role@host/database``, without a password (PGPASSWORD
            or ``~/.pgpass`` hold it). A ``Table`` is returned unchanged.
        table: the name of the table, ``table`` or ``schema.table``, in a DuckDB file or a PostgreSQL database, or its
            name in a DuckDB connection.
        types: the kinds of columns that have no type of their own, for example ``{"income": "number"}``: a CSV file's
            (others are text), those of JSON lines (which have no others) and columns of a pandas frame that hold
            objects. A value that does not fit is missing.
        dialect: how a CSV file is written, if it is not UTF-8 with commas, double quotes and a header line: any of
            ``delimiter, quote, decimal, encoding, header, date_format, timestamp_format, newlines, null_values``.

    An ibis expression must treat rows one by one (select, filter, mutate). A limit, sample, join, window, aggregate or
    set operation is rejected, because one person's rows could change those of another. A view, a DuckDB relation and a
    lazy polars frame are accepted as the tables that they compute: joins of private tables must be on the privacy unit.

    Raises ``InputError`` or ``SchemaError`` for sources that cannot be read, ``MissingExtraError`` without ibis.

    >>> import pyarrow
    >>> open_source(pyarrow.table({"city": ["Oslo"], "income": [52_000.0]})).schema.column_names
    ('city', 'income')
    """
    if isinstance(source, Table):
        return source
    kind = _source_kind(source)
    # Reject options that do not apply to the source, instead of ignoring them.
    given = {"table": table, "types": types, "dialect": dialect}
    for name, value in given.items():
        allowed, sources = _OPTIONS[name]
        if value is not None and kind not in allowed:
            raise InputError(name, value, f"None unless the source is {sources}", "leave it out")
    if kind == DUCKDB_CONNECTION:
        return databases.open_table_of_connection(source, table)
    if kind in _OPENERS:
        return _OPENERS[kind](source, types or {})
    if kind == POSTGRES:
        url = str(source)
        if table is None:
            raise InputError(
                "table", table, "the name of a table in the database", "say table='schema.table', or --table"
            )
        return databases.open_postgres(url, table)
    return _open_file(Path(str(source)), str(kind), table, (types or {}, Dialect.from_entries(dialect or {})))


def _source_kind(source: object) -> SourceKind:
    """Return the kind of a source, which selects the function that opens it."""
    if isinstance(source, str) and source.startswith(SCHEMES):
        return POSTGRES
    if isinstance(source, (str, Path)):
        path, url = Path(source), _URL.match(str(source))
        if url and not path.exists():
            return _check_remote_url(str(source), url[1].lower(), is_path=len(url[2]) == 1)
        is_folder = path.is_dir() and path != Path()  # an empty text is not the current folder
        if is_folder or is_pattern(path):
            return PARQUET_FOLDER
        endings = (*csv.SUFFIXES, *JSON_LINES)
        return next((ending for ending in endings if path.name.lower().endswith(ending)), path.suffix.lower())
    # The library and name of the first class of the source that can be opened.
    parents = type(source).__mro__
    classes = ((parent.__module__.partition(".")[0].lstrip("_"), parent.__name__) for parent in parents)
    openable = next((name for name in classes if name in _OPENERS), None)
    if openable is None and hasattr(source, "__arrow_c_stream__"):
        return STREAM
    if openable is None:
        remedy = JOIN_REMEDY if isinstance(source, list | tuple | Mapping) else ""
        raise InputError("source", type(source), SOURCES, remedy)  # not the value: its repr may hold data
    return openable


def _check_remote_url(url: str, scheme: str, *, is_path: bool) -> SourceKind:
    """Return ``REMOTE`` for a URL that DuckDB's extension reads; raises ``InputError`` that says what to do else."""
    shown = f"{scheme}://..."
    if is_path:
        remedy = f"{shown} was made a path; pass the URL as text"
    elif scheme in REMOTE_SCHEMES:
        if url.partition("?")[0].lower().endswith(".parquet"):
            return REMOTE
        remedy = f"{shown} is read only for a .parquet file; copy other files here first"
    elif scheme.startswith(("postgresql+", "postgres+")):
        remedy = f"{shown} names a driver of SQLAlchemy; leave it out: postgresql://role@host/database"
    elif scheme in IBIS_SCHEMES:
        remedy = f"tables of {scheme} are opened by ibis: tr.Session(ibis.{scheme}.connect(...).table('people'), ...)"
    elif scheme in ("file", "duckdb"):
        remedy = f"give the path of the file, without {scheme}://"
    else:
        remedy = f"{shown} cannot be read; copy the table here, or open it as an ibis table"
    raise InputError.from_text("source", f"{remedy} (docs/engines.md)")


PANDAS, DUCKDB_CONNECTION = ("pandas", "DataFrame"), ("duckdb", "DuckDBPyConnection")
_OPTIONS: Mapping[str, tuple[tuple[SourceKind, ...], str]] = {
    "table": (
        (*DUCKDB_SUFFIXES, POSTGRES, DUCKDB_CONNECTION),
        "a DuckDB file or connection, or a PostgreSQL database",
    ),
    "types": (
        (*csv.SUFFIXES, *JSON_LINES, PANDAS, PARQUET_FOLDER),
        "a CSV file, JSON lines, a pandas frame or a folder of partitions",
    ),
    "dialect": (csv.SUFFIXES, "a CSV file"),
}
"""The kinds of source to which each option applies, and how errors name them."""


_REMEDIES = {
    **dict.fromkeys((".gz", ".zip", ".bz2", ".xz", ".zst"), "unpack it first; .csv.gz is read as it is"),
    **dict.fromkeys((".txt", ".tab"), "call it .csv, or .tsv if tabs separate its columns"),
    ".json": "write one object a line and call it .jsonl",
    **dict.fromkeys((".sqlite", ".sqlite3"), databases.SQLITE_REMEDY),
}


def _open_file(path: Path, suffix: str, table: str | None, written: tuple[Mapping[str, str], Dialect]) -> Table:
    if suffix == PARQUET_FOLDER:
        return parquet.open_parquet(path, written[0])
    if suffix not in (".parquet", *csv.SUFFIXES, *JSON_LINES, *DUCKDB_SUFFIXES):
        raise InputError("source", redact_secret(str(path)), SOURCES, _REMEDIES.get(suffix, "convert it to Parquet"))
    if not path.is_file():
        remedy = "check the path; it is relative to the current directory"
        raise InputError("source", redact_secret(str(path)), "a file that exists", remedy)
    if suffix == ".parquet":
        is_readable = parquet.has_arrow_types(path)
        return parquet.open_parquet(path, {}) if is_readable else databases.open_parquet_by_duckdb(path)
    if suffix in JSON_LINES:
        return open_json_lines(path, written[0])
    if suffix in csv.SUFFIXES:
        return csv.open_csv(path, *written)
    return databases.open_duckdb(path, table)


JOIN_REMEDY = (
    "join private tables on the column of the privacy unit in DuckDB and pass that relation, or a view that does so "
    "(docs/engines.md, Two private tables); tr.public_table adds columns of a public one"
)
"""The remedy in errors for several private tables."""


def open_ibis(expression: Any, _: Mapping[str, str]) -> Table:
    """Open an ibis table; ``InputError`` unless it treats rows one by one, on a back end that is safe to read."""
    cross_row = operations_across_rows(expression)
    if any(name.startswith("Join") for name in cross_row):
        raise InputError("source", cross_row, "one table, not a join of ibis tables", JOIN_REMEDY)
    if cross_row:
        raise InputError("source", cross_row, "an ibis table that treats rows one by one", "create the table first")
    check_names(expression.columns)
    backend = engine_call("find the back end of the ibis table", expression.get_backend)
    alternative = backend_for(backend).alternative_source
    if alternative:
        raise InputError(
            "source", f"an ibis table on {backend.name}", "rows that we read ourselves", f"say {alternative}"
        )
    return Table(schema_of(expression.schema()), "ibis", lambda: backend, lambda _: expression)


_OPENERS: Mapping[SourceKind, Callable[[Any, Mapping[str, str]], Table]] = {
    PANDAS: frames.open_pandas,
    ("polars", "DataFrame"): lambda frame, _: frames.open_polars(frame),
    ("polars", "LazyFrame"): lambda frame, _: frames.open_polars_lazy(frame),
    STREAM: lambda source, _: open_arrow_stream(source),
    REMOTE: lambda url, _: databases.open_remote_parquet(str(url)),
    ("pyarrow", "Dataset"): lambda dataset, _: open_dataset(dataset),
    DUCKDB_CONNECTION: lambda connection, _: databases.open_table_of_connection(connection, None),
    ("pyarrow", "Table"): lambda table, _: frames.open_arrow(table),
    ("pyspark", "DataFrame"): lambda frame, _: frames.open_spark(frame),
    ("duckdb", "DuckDBPyRelation"): lambda relation, _: databases.open_relation(relation),
    ("ibis", "Table"): open_ibis,
}
"""Functions that open a source, mostly by the library and the name of its class: no library is imported to check."""
