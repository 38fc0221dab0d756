"""Frames: pandas, polars and Arrow in memory, as Arrow batches; and Spark's."""

from __future__ import annotations

import datetime
import math
import numbers
import uuid
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from decimal import Decimal
from typing import Any, cast, get_args

from tightrope.errors import InputError, SchemaError, quoted_names, suggest_nearest
from tightrope.tables.backends.column_types import schema_of
from tightrope.tables.backends.postgres import check_address as checked
from tightrope.tables.backends.spark import with_instants
from tightrope.tables.engine_calls import engine_call, load_library
from tightrope.tables.files import ROWS
from tightrope.tables.materialize import RowSource
from tightrope.tables.schema import Kind
from tightrope.tables.sources.parquet_folders import MARKERS, Names, parse_folder_name
from tightrope.tables.table import Table, check_names, table_from_stream

# Columns of Python objects: each value fits the declared kind or is missing, independently of all other values.

DECLARED = tuple(kind for kind in get_args(Kind) if kind != "other")
ARROW_TYPES: Mapping[str, str] = {
    "integer": "int64",
    "number": "float64",
    "text": "large_string",
    "boolean": "bool",
    "date": "date32",
    "timestamp": "timestamp[us]",
}
"""The Arrow type of a declared kind."""


def is_untyped(column: Any) -> bool:
    """Return whether a pandas column holds Python objects, itself or as its categories."""
    dtype = column.dtype
    return str(getattr(getattr(dtype, "categories", None), "dtype", dtype)) == "object"


def arrow_type(column: Any, kind: str | None) -> Any:
    """The Arrow type of a pandas column, found without looking at a value; a type that no kind has where none is."""
    arrow = load_library("pyarrow")
    if kind is not None:
        return arrow.type_for_alias(ARROW_TYPES[kind])
    if is_untyped(column):
        return arrow.binary()
    empty = engine_call("find the frame's columns", lambda: arrow.Array.from_pandas(column.head(0)))
    return empty.type


def to_arrow_column(column: Any, wanted: Any, kind: str | None) -> Any:
    """A pandas column as Arrow."""
    arrow = load_library("pyarrow")
    if kind is not None:
        return engine_call(
            "read the frame's columns", lambda: arrow.array([convert_value(one, kind) for one in column], wanted)
        )

    def read_values() -> Any:
        try:
            return arrow.Array.from_pandas(column)
        except UnicodeEncodeError:  # text with an invalid character (a lone surrogate) is missing, not an error
            texts = column.map(lambda one: convert_value(one, "text")).astype(object)
            return arrow.Array.from_pandas(texts, type=arrow.large_string())

    made = engine_call("read the frame's columns", read_values)
    return made if made.type == wanted else engine_call("read the frame's columns", lambda: made.cast(wanted))


def check_types(types: Mapping[str, str], open_to: Collection[str], names: Sequence[str]) -> None:
    """Raise unless each declared column is there and waits for a type, and each kind is one."""
    for name, kind in types.items():
        if name not in names:
            raise SchemaError(
                "types",
                name,
                f"for one of the columns {quoted_names(tuple(names))}",
                suggest_nearest(name, tuple(names)),
            )
        if kind not in DECLARED:
            raise InputError(
                "types",
                {name: kind},
                f"one of {quoted_names(DECLARED)} for each column",
                suggest_nearest(kind, DECLARED),
            )
        if name not in open_to:
            raise InputError("types", name, "a column without a type of its own", "leave it out, or cast the column")


def convert_value(value: object, kind: str) -> object:
    """Return a value as that kind of column holds it; None if it does not fit.

    A value may be of any class, and fail in any way when it is asked: then only that value is missing.
    """
    try:
        return _FITTED[kind](value)
    except Exception:  # any error of a user's class
        return None


def _convert_integer(value: object) -> int | None:
    whole = isinstance(value, numbers.Integral) and not isinstance(value, bool)
    return int(value) if whole and -(1 << 63) <= int(value) < 1 << 63 else None  # type: ignore[call-overload]


def _convert_number(value: object) -> float | None:
    if isinstance(value, bool) or not isinstance(value, (numbers.Real, Decimal)):
        return None
    try:
        # The double, unless it is a whole number that the value is not: rounded, it would be another person's.
        made = float(value)
        moved = abs(made) < 2.0**53 and made == math.floor(made) and made != value
        return None if moved else made
    except OverflowError:  # an integer or a fraction beyond all doubles
        return math.inf if value > cast(Any, 0) else -math.inf
    except ValueError:  # a signalling NaN
        return None


def _convert_timestamp(value: object) -> datetime.datetime | None:
    """Of the years that Python's calendar has, in microseconds; pandas has more of both."""
    if not isinstance(value, datetime.datetime) or value.tzinfo is not None:
        return None
    day, time = (value.year, value.month, value.day), (value.hour, value.minute, value.second, value.microsecond)
    return datetime.datetime(*day, *time)  # raises for NaT, whose year is NaN


_FITTED: Mapping[str, Callable[[object], object]] = {
    "integer": _convert_integer,
    "number": _convert_number,
    # The characters that a text holds, independent of its class; a lone surrogate cannot be encoded.
    "text": lambda value: str.encode(value).decode() if isinstance(value, str) else None,
    "boolean": lambda value: bool(value) if type(value).__name__ in ("bool", "bool_") else None,
    "date": lambda value: (
        value if isinstance(value, datetime.date) and not isinstance(value, datetime.datetime) else None
    ),
    "timestamp": _convert_timestamp,
}
"""Conversion of a value for each kind of column; None if it does not fit."""


def open_arrow(table: Any) -> Table:
    """An Arrow table."""
    return table_from_stream(
        "arrow", table.schema.remove_metadata(), lambda names: _split_table(table.select(list(names)))
    )


def open_pandas(frame: Any, types: Mapping[str, str]) -> Table:
    """A pandas frame; its index is not a column.

    Columns of objects take the types that are declared for them and are ``other`` without: a type that was found in
    the values would be one that a single person's value decides.
    """
    check_names(frame.columns)
    check_types(types, [name for name in frame.columns if is_untyped(frame[name])], frame.columns)
    arrow = load_library("pyarrow")
    schema = arrow.schema([arrow.field(name, arrow_type(frame[name], types.get(name))) for name in frame])

    def check_columns(names: Sequence[str]) -> None:
        for name in names:
            if is_untyped(frame[name]) and name not in types:
                expected = "of one declared type, but it holds Python objects"
                raise SchemaError("column", name, expected, f"say types={{{name!r}: 'text'}}, or its kind")

    def read_columns(names: Sequence[str]) -> RowSource:
        check_columns(names)
        columns = [to_arrow_column(frame[name], schema.field(name).type, types.get(name)) for name in names]
        return _split_table(arrow.table(dict(zip(names, columns, strict=True))))

    return table_from_stream("pandas", schema, read_columns, check_columns)


def open_polars(frame: Any) -> Table:
    """A polars frame."""
    empty = engine_call("find the frame's columns", lambda: frame.head(0).to_arrow())

    def read_columns(names: Sequence[str]) -> RowSource:
        chosen = engine_call("read the frame's columns", lambda: frame.select(list(names)).to_arrow())
        return _split_table(chosen.cast(_select_schema(empty, names)))

    return table_from_stream("polars", empty.schema, read_columns)


def open_polars_lazy(frame: Any) -> Table:
    """A lazy polars frame: computed once for a plan, and only the columns of its questions."""
    empty = engine_call("find the lazy frame's columns", lambda: frame.collect_schema().to_frame().to_arrow())

    def read_columns(names: Sequence[str]) -> RowSource:
        chosen = engine_call("compute the lazy frame", lambda: frame.select(list(names)).collect().to_arrow())
        return _split_table(chosen.cast(_select_schema(empty, names)))

    return table_from_stream("polars", empty.schema, read_columns)


def open_spark(frame: Any) -> Table:
    """A Spark frame, classic or connected. ibis sets the session's time zone to UTC.

    Spark's ``TIMESTAMP`` is an instant, in UTC; its ``TIMESTAMP_NTZ`` has no zone.
    """
    if not hasattr(frame, "sparkSession"):
        raise InputError("source", type(frame), "a Spark frame", "call its to_spark() first")  # pandas on Spark
    ibis = load_library("ibis")
    load_library("pyspark", "spark")
    check_names(frame.columns)
    backend = engine_call("connect to the Spark session", lambda: ibis.pyspark.connect(frame.sparkSession))
    name = f"tightrope_{uuid.uuid4().hex}"
    engine_call("name the Spark frame", lambda: frame.createOrReplaceTempView(name))
    table = engine_call("read the schema of the Spark frame", lambda: with_instants(backend.table(name), frame))
    return Table(schema_of(table.schema()), "spark", lambda: backend, lambda _: table)


def open_on_spark(place: str) -> Table:
    """Parquet that Spark reads, one file or a folder of parts, in the Spark session of this process or a new one.

    ``place`` is a path or URL as Spark takes it. A separate session is used, in which partitions are text:
    Spark would take their type from all their values. Raises ``SchemaError`` where parts differ in their columns and
    where files hold a column that folders name (Spark would not read it), ``InputError`` for files that Spark would
    leave out, for Spark Connect, which lists no files, and for a URL that holds a password: Spark writes where it reads
    into its log.
    """
    checked(place)
    sql = load_library("pyspark.sql", "spark")
    first = engine_call("start Spark", lambda: sql.SparkSession.builder.appName("tightrope").getOrCreate())
    session = engine_call("open a session of our own", first.newSession)
    session.conf.set("spark.sql.sources.partitionColumnTypeInference.enabled", "false")
    one, all_parts = (
        engine_call(
            "read the Parquet files with Spark (are they there, and their columns of the same types?)",
            lambda merged=merged: session.read.option("mergeSchema", merged).parquet(place),  # type: ignore[misc]
        )
        for merged in ("false", "true")
    )
    if one.schema != all_parts.schema:
        raise SchemaError("source", place, "parts with the same columns of the same types", "write them alike")
    # The files at the place, by their names below it: Spark may leave out marks of a writer, and no others.
    if not hasattr(session, "_jvm"):
        remedy = "read a frame, spark.read.schema(...).parquet(...), and give that to tr.Session"
        raise InputError("spark", place, "a place that a classic Spark session lists", remedy)
    found = engine_call("list the files with Spark", lambda: list(_walk_spark_files(session, place)))
    left = sum(names[-1] not in MARKERS and any(map(_is_hidden, names)) for names in found)
    if left:
        expected = f"files that Spark reads, but it leaves out {left} of {len(found)} as hidden"
        raise InputError("source", place, expected, "rename them, or move what is no part of the table elsewhere")
    _check_no_shared_columns(session, place, found)
    return replace(open_spark(one), marker_count=sum(names[-1] in MARKERS for names in found))


def _is_hidden(name: str) -> bool:
    """Return whether Spark treats it as hidden."""
    return name.startswith(".") or name.endswith("._COPYING_") or (name.startswith("_") and "=" not in name)


def _walk_spark_files(session: Any, place: str) -> Iterator[Names]:
    """As the file system that Spark reads has them; a pattern leads to many places. Checksums it hides by itself."""
    path = session._jvm.org.apache.hadoop.fs.Path(place)
    system = path.getFileSystem(session._jsparkSession.sessionState().newHadoopConf())
    for top in system.globStatus(path) or ():
        above = top.getPath() if top.isDirectory() else top.getPath().getParent()
        base = above.toUri().getPath().rstrip("/") + "/"
        files = system.listFiles(top.getPath(), True)
        while files.hasNext():
            yield tuple(files.next().getPath().toUri().getPath().removeprefix(base).split("/"))


def _check_no_shared_columns(session: Any, place: str, found: Sequence[Names]) -> None:
    """``SchemaError`` where a column stands in the files and in the folders' names: Spark takes the folders' value."""
    named = {parse_folder_name(folder)[0].casefold() for names in found for folder in names[:-1] if "=" in folder}
    if not named:
        return
    alone = session.read.option("recursiveFileLookup", "true")  # folders then name no columns
    columns = engine_call("read the schema of the Parquet files", lambda: alone.parquet(place).columns)
    if any(column.casefold() in named for column in columns):
        remedy = "open the folder without Spark, which compares them, or write the files without it"
        raise SchemaError("source", place, "parts whose folders name no column that the files hold", remedy)


def _select_schema(table: Any, names: Sequence[str]) -> Any:
    """The schema of these columns."""
    return load_library("pyarrow").schema([table.schema.field(name) for name in names])


def _split_table(table: Any) -> RowSource:
    return RowSource(table.schema, lambda: table.to_batches(max_chunksize=ROWS))
