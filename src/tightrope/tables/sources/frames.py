"""Frames as tables: pandas, polars, Arrow and Spark. Those in memory are read as Arrow batches."""

from __future__ import annotations

import datetime
import math
import numbers
import uuid
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from decimal import Decimal
from typing import TYPE_CHECKING, Any, cast, get_args

from tightrope.errors import EngineError, InputError, SchemaError, quoted_names, suggest_nearest
from tightrope.tables.backends.column_types import schema_of, wide_integer_type, wide_integers
from tightrope.tables.backends.postgres import check_address
from tightrope.tables.backends.spark import with_instants, without_unsupported_types
from tightrope.tables.engine_calls import engine_call, load_library
from tightrope.tables.files import MAX_BATCH_ROWS
from tightrope.tables.materialize import RowSource
from tightrope.tables.schema import PYTHON_OBJECTS, Kind
from tightrope.tables.sources.parquet_folders import MARKERS, PathNames, parse_folder_name
from tightrope.tables.table import Table, check_names, table_from_stream

if TYPE_CHECKING:
    import polars as pl
    import pyarrow as pa
    from pyspark.sql import DataFrame, SparkSession

_WIDE_POLARS_TYPES = ("Int128", "UInt128")
"""Integers of 128 bits, which Arrow lacks; they are read by their digits."""
DECLARABLE_KINDS = tuple(kind for kind in get_args(Kind) if kind != "other")
ARROW_TYPES: Mapping[str, str] = {
    "integer": "int64",
    "number": "float64",
    "text": "large_string",
    "boolean": "bool",
    "date": "date32",
    "timestamp": "timestamp[us]",
}
"""The Arrow type of each declared kind."""


def is_untyped(column: Any) -> bool:
    """Return whether the values, or the categories, of a pandas column are Python objects."""
    dtype = column.dtype
    subtype = getattr(dtype, "subtype", dtype)  # of a sparse column
    return str(getattr(getattr(dtype, "categories", None), "dtype", subtype)) == "object"


def arrow_type(column: Any, kind: str | None) -> pa.DataType:
    """Return the Arrow type of a pandas column without reading a value.

    It is binary, which is not supported, for objects without a declared kind and for types that Arrow lacks, such as
    complex numbers.
    """
    arrow = load_library("pyarrow")
    if kind is not None:
        return arrow.type_for_alias(ARROW_TYPES[kind])
    if is_untyped(column):
        return arrow.binary()
    try:
        empty = engine_call("find the frame's columns", lambda: arrow.Array.from_pandas(dense_column(column.head(0))))
    except EngineError:
        return arrow.binary()
    return empty.type


def dense_column(column: Any) -> Any:
    """Return a pandas column with every value stored, which Arrow needs; a sparse one stores only some of them."""
    return column.sparse.to_dense() if type(column.dtype).__name__ == "SparseDtype" else column


def to_arrow_column(column: Any, wanted: pa.DataType, kind: str | None) -> pa.Array:
    """Return a pandas column as an Arrow column of the type ``wanted``."""
    arrow = load_library("pyarrow")
    column = engine_call("read the frame's columns", lambda: dense_column(column))
    if kind is not None:
        return engine_call(
            "read the frame's columns", lambda: arrow.array([convert_value(value, kind) for value in column], wanted)
        )

    def read_values() -> pa.Array:
        try:
            return arrow.Array.from_pandas(column)
        except UnicodeEncodeError:  # a text with an invalid character (a lone surrogate) becomes missing
            texts = column.map(lambda value: convert_value(value, "text")).astype(object)
            return arrow.Array.from_pandas(texts, type=arrow.large_string())

    values = engine_call("read the frame's columns", read_values)
    return values if values.type == wanted else engine_call("read the frame's columns", lambda: values.cast(wanted))


def check_types(types: Mapping[str, str], untyped: Collection[str], names: Sequence[str]) -> None:
    """Raise ``InputError`` or ``SchemaError`` unless each declared column is among ``untyped`` and each kind exists."""
    for name, kind in types.items():
        if name not in names:
            nearest = suggest_nearest(name, tuple(names))
            listed = f"columns: {quoted_names(tuple(names))}"
            raise SchemaError.from_text(
                "types", f"there is no column {name!r}; {f'{nearest} ' if nearest else ''}{listed}"
            )
        if kind not in DECLARABLE_KINDS:
            raise InputError(
                "types",
                {name: kind},
                f"one of {quoted_names(DECLARABLE_KINDS)} for each column",
                suggest_nearest(kind, DECLARABLE_KINDS),
            )
        if name not in untyped:
            text = f"{name!r} is not a column without a type of its own; leave it out, or cast the column"
            raise InputError.from_text("types", text)


def convert_value(value: object, kind: str) -> object:
    """Return a value as that kind of column stores it; None if it does not fit.

    A value may be of any class; if its methods raise an error, only that value is missing.
    """
    try:
        return _CONVERTERS[kind](value)
    except Exception:  # any error of a user's class
        return None


def convert_text(value: object) -> str | None:
    """Return the characters of a text, whatever its class overrides, or of a UUID; None for a lone surrogate."""
    text = str(value) if type(value) is uuid.UUID else value
    return str.encode(text).decode() if isinstance(text, str) else None


def convert_integer(value: object) -> int | None:
    """Return an integer of 64 bits; None for other values, such as a boolean."""
    is_integer = isinstance(value, numbers.Integral) and not isinstance(value, bool)
    return int(value) if is_integer and -(1 << 63) <= int(value) < 1 << 63 else None  # type: ignore[call-overload]


def convert_number(value: object) -> float | None:
    """Return the nearest double of a real number; None for other values, and if it would become another integer."""
    if isinstance(value, bool) or not isinstance(value, (numbers.Real, Decimal)):
        return None
    try:
        # A value that is rounded to an integer is missing, because the integer may be another person.
        number = float(value)
        was_rounded = abs(number) < 2.0**53 and number == math.floor(number) and number != value
        return None if was_rounded else number
    except OverflowError:  # an integer or a fraction beyond all doubles
        return math.inf if value > cast(Any, 0) else -math.inf
    except ValueError:  # a signaling NaN
        return None


def convert_timestamp(value: object) -> datetime.datetime | None:
    """Return a time without a zone, in microseconds; pandas' nanoseconds are cut off."""
    if not isinstance(value, datetime.datetime) or value.tzinfo is not None:
        return None
    day, time = (value.year, value.month, value.day), (value.hour, value.minute, value.second, value.microsecond)
    return datetime.datetime(*day, *time)  # raises for NaT, whose year is NaN


_CONVERTERS: Mapping[str, Callable[[object], object]] = {
    "integer": convert_integer,
    "number": convert_number,
    "text": convert_text,
    "boolean": lambda value: bool(value) if type(value).__name__ in ("bool", "bool_") else None,
    "date": lambda value: (
        value if isinstance(value, datetime.date) and not isinstance(value, datetime.datetime) else None
    ),
    "timestamp": convert_timestamp,
}
"""Conversion of a value for each kind of column; None, or an error, if it does not fit."""


def open_arrow(table: pa.Table) -> Table:
    """Open an Arrow table."""
    return table_from_stream(
        "arrow", table.schema.remove_metadata(), lambda names: _split_table(table.select(list(names)))
    )


def open_pandas(frame: Any, types: Mapping[str, str]) -> Table:
    """Open a pandas frame; its index is not a column.

    Columns of objects have the declared types, and without one they are ``other``: a type inferred from the values
    could depend on a single person's value.
    """
    check_names(frame.columns)
    check_types(types, [name for name in frame.columns if is_untyped(frame[name])], frame.columns)
    arrow = load_library("pyarrow")
    schema = arrow.schema([arrow.field(name, arrow_type(frame[name], types.get(name))) for name in frame])
    untyped = tuple(name for name in frame.columns if is_untyped(frame[name]) and name not in types)
    has_no_arrow_type = arrow.types.is_binary
    source_types = {
        name: PYTHON_OBJECTS if name in untyped else str(frame[name].dtype)
        for name in frame.columns
        if has_no_arrow_type(schema.field(name).type)
    }

    def check_columns(names: Sequence[str]) -> None:
        for name in untyped:
            if name in names:
                expected = "of one declared type, but it holds Python objects"
                raise SchemaError("column", name, expected, f"say types={{{name!r}: 'text'}}, or its kind")

    def read_columns(names: Sequence[str]) -> RowSource:
        check_columns(names)
        columns = [to_arrow_column(frame[name], schema.field(name).type, types.get(name)) for name in names]
        return _split_table(arrow.table(dict(zip(names, columns, strict=True))))

    table = table_from_stream("pandas", schema, read_columns, check_columns, source_types)
    return replace(table, untyped_columns=untyped)


def open_polars(frame: pl.DataFrame) -> Table:
    """Open a polars frame."""
    empty = engine_call("find the frame's columns", lambda: frame.head(0))
    return _open_polars_columns(empty, frame.select, "read the frame's columns")


def open_polars_lazy(frame: pl.LazyFrame) -> Table:
    """Open a lazy polars frame; the columns of a plan's questions are computed once."""
    empty = engine_call("find the lazy frame's columns", lambda: frame.collect_schema().to_frame())
    return _open_polars_columns(empty, lambda columns: frame.select(columns).collect(), "compute the lazy frame")


def _open_polars_columns(empty: pl.DataFrame, select: Callable[[Sequence[pl.Expr]], pl.DataFrame], step: str) -> Table:
    """Return the table of a frame whose first rows are ``empty``; ``select`` computes some of its columns."""
    arrow, polars = load_library("pyarrow"), load_library("polars")
    dtypes = {name: str(dtype) for name, dtype in empty.schema.items()}

    def find_type(name: str) -> pa.DataType:
        """Return a column's Arrow type; binary, which is not supported, for types that Arrow lacks."""
        if dtypes[name] in _WIDE_POLARS_TYPES:
            return wide_integer_type() if dtypes[name] == "Int128" else arrow.large_string()
        try:
            return engine_call("find the frame's columns", lambda: empty.select(name).to_arrow().field(name).type)
        except EngineError:
            return arrow.binary()

    schema = arrow.schema([(name, find_type(name)) for name in dtypes])

    def read_columns(names: Sequence[str]) -> RowSource:
        chosen = arrow.schema([schema.field(name) for name in names])
        columns = [
            polars.col(name).cast(polars.String) if dtypes[name] in _WIDE_POLARS_TYPES else polars.col(name)
            for name in names
        ]

        def convert_columns() -> pa.Table:
            table = select(columns).to_arrow()
            arrays = [
                wide_integers(column.combine_chunks()) if field.type == wide_integer_type() else column.cast(field.type)
                for column, field in zip(table.columns, chosen, strict=True)
            ]
            return arrow.Table.from_arrays(arrays, schema=chosen)

        return _split_table(engine_call(step, convert_columns))

    return table_from_stream("polars", schema, read_columns, source_types=dtypes)


def open_spark(frame: DataFrame) -> Table:
    """Open a Spark frame, of a classic session or of Spark Connect. ibis sets the session's time zone to UTC.

    Spark's ``TIMESTAMP`` is an instant, in UTC; its ``TIMESTAMP_NTZ`` has no zone.
    """
    if not hasattr(frame, "sparkSession"):
        raise InputError("source", type(frame), "a Spark frame", "call its to_spark() first")  # pandas on Spark
    ibis = load_library("ibis")
    load_library("pyspark", "spark")
    check_names(frame.columns)
    source_types = {field.name: field.dataType.simpleString() for field in frame.schema}
    frame = engine_call("find the columns of the Spark frame", lambda: without_unsupported_types(frame))
    backend = engine_call("connect to the Spark session", lambda: ibis.pyspark.connect(frame.sparkSession))
    name = f"tightrope_{uuid.uuid4().hex}"
    engine_call("name the Spark frame", lambda: frame.createOrReplaceTempView(name))
    table = engine_call("read the schema of the Spark frame", lambda: with_instants(backend.table(name), frame))
    return Table(schema_of(table.schema(), source_types), "spark", lambda: backend, lambda _: table)


def open_on_spark(place: str) -> Table:
    """Open a Parquet file or a folder of parts that Spark reads, in the Spark session of this process or a new one.

    ``place`` is a path or URL of Spark. A separate session is used, in which partition columns are text, because Spark
    would infer their type from all their values.

    Raises ``SchemaError`` if parts differ in their columns, or if a folder names a column that the files have (Spark
    would ignore the files' values). Raises ``InputError`` for files that Spark would skip, for Spark Connect, which
    cannot list files, and for a URL with a password, because Spark logs the URL.
    """
    check_address(place)
    sql = load_library("pyspark.sql", "spark")
    first = engine_call("start Spark", lambda: sql.SparkSession.builder.appName("tightrope").getOrCreate())
    session = engine_call("open a new session", first.newSession)
    session.conf.set("spark.sql.sources.partitionColumnTypeInference.enabled", "false")
    frame, merged_frame = (
        engine_call(
            "read the Parquet files with Spark (are they there, and their columns of the same types?)",
            lambda merged=merged: session.read.option("mergeSchema", merged).parquet(place),  # type: ignore[misc]
        )
        for merged in ("false", "true")
    )
    if frame.schema != merged_frame.schema:
        raise SchemaError("source", place, "parts with the same columns of the same types", "write them alike")
    # Spark skips hidden files; only a writer's markers may be skipped.
    if not hasattr(session, "_jvm"):
        remedy = "read a frame, spark.read.schema(...).parquet(...), and give that to tr.Session"
        raise InputError("spark", place, "a place that a classic Spark session lists", remedy)
    files = engine_call("list the files with Spark", lambda: list(_walk_spark_files(session, place)))
    skipped = sum(names[-1] not in MARKERS and any(map(is_hidden_by_spark, names)) for names in files)
    if skipped:
        expected = f"files that Spark reads, but it leaves out {skipped} of {len(files)} as hidden"
        raise InputError("source", place, expected, "rename them, or move what is no part of the table elsewhere")
    _check_no_shared_columns(session, place, files)
    return replace(open_spark(frame), marker_count=sum(names[-1] in MARKERS for names in files))


def is_hidden_by_spark(name: str) -> bool:
    """Return whether Spark treats a file or folder of this name as hidden."""
    return name.startswith(".") or name.endswith("._COPYING_") or (name.startswith("_") and "=" not in name)


def _walk_spark_files(session: SparkSession, place: str) -> Iterator[PathNames]:
    """Yield the names of all files at a place, which may be a pattern, from Spark's file system, without checksums."""
    path = session._jvm.org.apache.hadoop.fs.Path(place)
    system = path.getFileSystem(session._jsparkSession.sessionState().newHadoopConf())
    for top in system.globStatus(path) or ():
        folder = top.getPath() if top.isDirectory() else top.getPath().getParent()
        base = folder.toUri().getPath().rstrip("/") + "/"
        files = system.listFiles(top.getPath(), True)
        while files.hasNext():
            yield tuple(files.next().getPath().toUri().getPath().removeprefix(base).split("/"))


def _check_no_shared_columns(session: SparkSession, place: str, files: Sequence[PathNames]) -> None:
    """Raise ``SchemaError`` if files have a column that folder names have too; Spark would use the folders' values."""
    folder_columns = {
        parse_folder_name(folder)[0].casefold() for names in files for folder in names[:-1] if "=" in folder
    }
    if not folder_columns:
        return
    files_only = session.read.option("recursiveFileLookup", "true")  # without the columns of folder names
    columns = engine_call("read the schema of the Parquet files", lambda: files_only.parquet(place).columns)
    if any(column.casefold() in folder_columns for column in columns):
        remedy = "open the folder without Spark, which compares them, or write the files without it"
        raise SchemaError("source", place, "parts whose folders name no column that the files hold", remedy)


def _split_table(table: pa.Table) -> RowSource:
    return RowSource(table.schema, lambda: table.to_batches(max_chunksize=MAX_BATCH_ROWS))
