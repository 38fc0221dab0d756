"""Frames: pandas, polars and Arrow in memory, as Arrow batches; and Spark's."""

from __future__ import annotations

import uuid
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from tightrope.engines.backends.addresses import checked
from tightrope.engines.backends.column_types import schema_of
from tightrope.engines.backends.spark import told_apart
from tightrope.engines.ground.job import ROWS
from tightrope.engines.guard import guarded, load
from tightrope.engines.snapshot.room import Rows
from tightrope.engines.sources import objects
from tightrope.engines.sources.partitions import MARKERS, Names, said
from tightrope.engines.table import Table, check_names, streamed
from tightrope.errors import InputError, SchemaError


def open_arrow(table: Any) -> Table:
    """An Arrow table."""
    return streamed("arrow", table.schema.remove_metadata(), lambda names: _in_pieces(table.select(list(names))))


def open_pandas(frame: Any, types: Mapping[str, str]) -> Table:
    """A pandas frame; its index is not a column.

    Columns of objects take the types that are declared for them and are ``other`` without: a type that was found in
    the values would be one that a single person's value decides.
    """
    check_names(frame.columns)
    objects.check_types(types, [name for name in frame.columns if objects.untyped(frame[name])], frame.columns)
    arrow = load("pyarrow")
    schema = arrow.schema([arrow.field(name, objects.arrow_type(frame[name], types.get(name))) for name in frame])

    def ready(names: Sequence[str]) -> None:
        for name in names:
            if objects.untyped(frame[name]) and name not in types:
                expected = "of one declared type, but it holds Python objects"
                raise SchemaError("column", name, expected, f"say types={{{name!r}: 'text'}}, or its kind")

    def stream(names: Sequence[str]) -> Rows:
        ready(names)
        columns = [objects.column(frame[name], schema.field(name).type, types.get(name)) for name in names]
        return _in_pieces(arrow.table(dict(zip(names, columns, strict=True))))

    return streamed("pandas", schema, stream, ready)


def open_polars(frame: Any) -> Table:
    """A polars frame."""
    empty = guarded("find the frame's columns", lambda: frame.head(0).to_arrow())

    def stream(names: Sequence[str]) -> Rows:
        chosen = guarded("read the frame's columns", lambda: frame.select(list(names)).to_arrow())
        return _in_pieces(chosen.cast(_of(empty, names)))

    return streamed("polars", empty.schema, stream)


def open_polars_lazy(frame: Any) -> Table:
    """A lazy polars frame: computed once for a plan, and only the columns of its questions."""
    empty = guarded("find the lazy frame's columns", lambda: frame.collect_schema().to_frame().to_arrow())

    def stream(names: Sequence[str]) -> Rows:
        chosen = guarded("compute the lazy frame", lambda: frame.select(list(names)).collect().to_arrow())
        return _in_pieces(chosen.cast(_of(empty, names)))

    return streamed("polars", empty.schema, stream)


def open_spark(frame: Any) -> Table:
    """A Spark frame, classic or connected. ibis sets the session's time zone to UTC.

    Spark's ``TIMESTAMP`` is an instant, in UTC; its ``TIMESTAMP_NTZ`` has no zone.
    """
    if not hasattr(frame, "sparkSession"):
        raise InputError("source", type(frame), "a Spark frame", "call its to_spark() first")  # pandas on Spark
    ibis = load("ibis")
    load("pyspark", "spark")
    check_names(frame.columns)
    backend = guarded("connect to the Spark session", lambda: ibis.pyspark.connect(frame.sparkSession))
    name = f"tightrope_{uuid.uuid4().hex}"
    guarded("name the Spark frame", lambda: frame.createOrReplaceTempView(name))
    table = guarded("read the schema of the Spark frame", lambda: told_apart(backend.table(name), frame))
    return Table(schema_of(table.schema()), "spark", lambda: backend, lambda _: table)


def open_on_spark(place: str) -> Table:
    """Parquet that Spark reads, one file or a folder of parts, in the Spark session of this process or a new one.

    ``place`` is a path or URL as Spark takes it. A session beside the others is used, in which partitions are text:
    Spark would take their type from all their values. Raises ``SchemaError`` where parts differ in their columns and
    where files hold a column that folders name (Spark would not read it), ``InputError`` for files that Spark would
    leave out, for Spark Connect, which lists no files, and for a URL that holds a password: Spark writes where it reads
    into its log.
    """
    checked(place)
    sql = load("pyspark.sql", "spark")
    first = guarded("start Spark", lambda: sql.SparkSession.builder.appName("tightrope").getOrCreate())
    session = guarded("open a session of our own", first.newSession)
    session.conf.set("spark.sql.sources.partitionColumnTypeInference.enabled", "false")
    one, all_parts = (
        guarded(
            "read the Parquet files with Spark (are they there, and their columns of the same types?)",
            lambda merged=merged: session.read.option("mergeSchema", merged).parquet(place),  # type: ignore[misc]
        )
        for merged in ("false", "true")
    )
    if one.schema != all_parts.schema:
        raise SchemaError("source", place, "parts with the same columns of the same types", "write them alike")
    found = _listed(session, place)
    _refuse_twice(session, place, found)
    return replace(open_spark(one), markers=sum(names[-1] in MARKERS for names in found))


def _listed(session: Any, place: str) -> list[Names]:
    """The files at a place, by their names below it; ``InputError`` where Spark would leave out any but a mark."""
    if not hasattr(session, "_jvm"):
        remedy = "read a frame, spark.read.schema(...).parquet(...), and give that to tr.Session"
        raise InputError("spark", place, "a place that a classic Spark session lists", remedy)
    found = guarded("list the files with Spark", lambda: list(_files_of_spark(session, place)))
    left = sum(names[-1] not in MARKERS and any(map(_is_left_out, names)) for names in found)
    if left:
        expected = f"files that Spark reads, but it leaves out {left} of {len(found)} as hidden"
        raise InputError("source", place, expected, "rename them, or move what is no part of the table elsewhere")
    return found


def _is_left_out(name: str) -> bool:
    """What Spark takes for hidden."""
    return name.startswith(".") or name.endswith("._COPYING_") or (name.startswith("_") and "=" not in name)


def _files_of_spark(session: Any, place: str) -> Iterator[Names]:
    """As the file system that Spark reads has them; a pattern leads to many places. Checksums it hides by itself."""
    path = session._jvm.org.apache.hadoop.fs.Path(place)
    system = path.getFileSystem(session._jsparkSession.sessionState().newHadoopConf())
    for top in system.globStatus(path) or ():
        above = top.getPath() if top.isDirectory() else top.getPath().getParent()
        base = above.toUri().getPath().rstrip("/") + "/"
        files = system.listFiles(top.getPath(), True)
        while files.hasNext():
            yield tuple(files.next().getPath().toUri().getPath().removeprefix(base).split("/"))


def _refuse_twice(session: Any, place: str, found: Sequence[Names]) -> None:
    """``SchemaError`` where a column stands in the files and in the folders' names: Spark takes the folders' value."""
    named = {said(folder)[0].casefold() for names in found for folder in names[:-1] if "=" in folder}
    if not named:
        return
    alone = session.read.option("recursiveFileLookup", "true")  # folders then name no columns
    columns = guarded("read the schema of the Parquet files", lambda: alone.parquet(place).columns)
    if any(column.casefold() in named for column in columns):
        remedy = "open the folder without Spark, which compares them, or write the files without it"
        raise SchemaError("source", place, "parts whose folders name no column that the files hold", remedy)


def _of(table: Any, names: Sequence[str]) -> Any:
    """The schema of these columns."""
    return load("pyarrow").schema([table.schema.field(name) for name in names])


def _in_pieces(table: Any) -> Rows:
    return Rows(table.schema, lambda: table.to_batches(max_chunksize=ROWS))
