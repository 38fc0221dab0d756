"""Spark: results without pandas, cached rows in place of temporary tables, and jobs that its workers do."""

from __future__ import annotations

import shutil
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from tightrope.errors import EngineError, InputError
from tightrope.tables.backends.backend import Backend, compile_sql
from tightrope.tables.engine_calls import engine_call, load_library
from tightrope.tables.files import SumJob, Totals, WriteJob, make_record_batch, split_batches

if TYPE_CHECKING:
    import ibis.expr.types as ir

EXTRA = "spark"
_TYPES = {
    "int8": ("ByteType", "int8"),
    "int16": ("ShortType", "int16"),
    "int32": ("IntegerType", "int32"),
    "int64": ("LongType", "int64"),
    "uint8": ("ShortType", "int16"),
    "uint16": ("IntegerType", "int32"),
    "uint32": ("LongType", "int64"),
    "uint64": ("LongType", "int64"),
    "string": ("StringType", "string"),
}
"""Spark's type and its Arrow form, for Arrow types of results: Spark has no unsigned numbers. All others are binary."""
_BINARY = ("BinaryType", "binary")


def fetch_arrow(backend: Any, rows: ir.Table) -> Any:
    """The rows as an Arrow table; not by ibis, whose way leads through pandas, where decimals fail."""
    return backend.raw_sql(compile_sql(backend, rows)).toArrow().cast(rows.schema().to_pyarrow())


@contextmanager
def cached_table(step: str, backend: Any, rows: ir.Table) -> Iterator[ir.Table]:
    """Spark has no temporary tables: a view of cached rows. What is lost may be computed again: the same, no noise."""
    name = f"tightrope_{uuid.uuid4().hex}"
    frame = engine_call(step, lambda: backend.raw_sql(compile_sql(backend, rows)).cache())
    try:
        engine_call(step, lambda: frame.createOrReplaceTempView(name))
        yield engine_call(step, lambda: backend.table(name))
    finally:
        engine_call("drop a temporary table", lambda: frame.sparkSession.catalog.dropTempView(name))
        engine_call("drop a temporary table", frame.unpersist)


@contextmanager
def snapshot_session(backend: Any, rows: ir.Table, longest: int | None = None) -> Iterator[tuple[Any, ir.Table]]:
    """The rows as they are now, and our own session, without functions or settings of the user.

    They are computed once and their origin is forgotten (a local checkpoint): rows that are lost with a worker are an
    error, where cached ones would be computed again, perhaps otherwise. Speculation is refused, for two tries of a task
    may keep different rows. At the end the rows must have the fingerprint that they had in the beginning.
    """
    frame = _lazy_frame(backend, rows)
    _refuse_speculation(frame.sparkSession)

    # A session separate from the user's: functions, settings and views of its own, and the same workers.
    def open_session() -> Any:
        try:
            return frame.sparkSession.newSession()
        except (AttributeError, NotImplementedError):
            return None

    second = engine_call("open a session of our own", open_session)
    if second is None:
        expected = "a frame of a Spark session that can open a second one (newSession)"
        raise InputError(
            "source", type(frame.sparkSession), expected, "use a classic session, or write the rows to Parquet parts"
        )
    kept = engine_call("hold the rows", lambda: _with_binary_collation(frame).localCheckpoint(eager=True))
    first = _row_fingerprint(kept)
    name = f"tightrope_{uuid.uuid4().hex}"
    engine_call("name the rows", lambda: kept.createGlobalTempView(name))
    try:
        ours = engine_call("open a session of our own", lambda: _prepare_session(second, name))
        yield (
            ours,
            engine_call("find the rows", lambda: drop_long_texts(with_instants(ours.table(name), kept), longest)),
        )
        if _row_fingerprint(kept) != first:
            raise EngineError("Spark gave other rows at the second look than at the first; nothing was answered")
    finally:
        engine_call("drop a temporary table", lambda: frame.sparkSession.catalog.dropGlobalTempView(name))


def _prepare_session(ours: Any, name: str) -> Any:
    """The materialized rows in our own session; overflows are errors there, for every cluster setting."""
    ours.conf.set("spark.sql.ansi.enabled", "true")
    ours.table(f"global_temp.{name}").createOrReplaceTempView(name)
    backend = load_library("ibis").pyspark.connect(ours)
    backend._register_in_memory_table = partial(_register_table, ours)
    return backend


def _register_table(session: Any, table: Any) -> None:
    """A table in memory under its name; not by ibis, whose way leads through pandas: no decimals, no NULL in integers.

    The hook is not public: ibis is held below 13.
    """
    rows = table.data.to_pyarrow(table.schema)
    session.createDataFrame(rows).createOrReplaceTempView(table.name)


def with_instants(table: ir.Table, frame: Any) -> ir.Table:
    """The table with instants as instants: ibis takes Spark's two kinds of timestamp for times without a zone."""
    types = load_library("pyspark.sql.types", EXTRA)
    instants = {field.name for field in frame.schema if isinstance(field.dataType, types.TimestampType)}
    kinds = {name: kind.copy(timezone="UTC") if name in instants else kind for name, kind in table.schema().items()}
    return table.op().copy(schema=load_library("ibis").schema(kinds)).to_expr()


def drop_long_texts(table: ir.Table, longest: int | None) -> ir.Table:
    """The table without texts of more bytes than this: they are missing. Spark stores the length with each."""
    if longest is None:
        return table
    ibis = load_library("ibis")
    bytes_of = ibis.udf.scalar.builtin(octet_length)
    fitting = {
        name: ibis.ifelse(bytes_of(table[name]) <= longest, table[name], None)
        for name, kind in table.schema().items()
        if kind.is_string()
    }
    return table.mutate(**fitting)


def octet_length(text: str) -> int:
    """Spark's function of this name, said in Python: the bytes of a text in UTF-8."""
    return len(text.encode())


def _with_binary_collation(frame: Any) -> Any:
    """The rows with text that is compared byte by byte: under a collation one person's spelling is another's."""
    types, functions = load_library("pyspark.sql.types", EXTRA), load_library("pyspark.sql.functions", EXTRA)
    text = types.StringType()
    collated = [
        field.name for field in frame.schema if isinstance(field.dataType, types.StringType) and field.dataType != text
    ]
    binary = {name: functions.collate(frame[_quote_name(name)], "UTF8_BINARY") for name in collated}
    return frame.withColumns(binary) if binary else frame


def _quote_name(name: str) -> str:
    return "`" + name.replace("`", "``") + "`"


def _row_fingerprint(frame: Any) -> tuple[int, int]:
    """Return the number of rows and the sum of their hashes, which do not depend on the order of rows."""
    functions = load_library("pyspark.sql.functions", EXTRA)
    hashes = functions.xxhash64(*(frame[_quote_name(name)] for name in frame.columns))
    sums = frame.select(hashes.cast("decimal(38, 0)").alias("hash")).agg({"*": "count", "hash": "sum"})
    count, total = engine_call("take a fingerprint of the rows", lambda: tuple(sums.first()))
    return int(count), int(total or 0)


def write_on_workers(backend: Any, rows: ir.Table, job: WriteJob, destination: str) -> int:
    """A folder of Parquet parts of what the job makes of the rows; how many there are, as they were written."""
    frame = _lazy_frame(backend, rows)
    session = frame.sparkSession
    _refuse_speculation(session)
    made = engine_call(
        "prepare the job", lambda: frame.mapInArrow(_write_worker(job), _spark_schema(job, frame.schema))
    )
    try:
        engine_call("write the Parquet parts", lambda: made.write.mode("error").parquet(destination))
    except BaseException:  # an interruption, too
        # A folder that a failed job left here goes, unless it holds anything but Spark's own hidden files.
        folder = Path(destination)
        if folder.is_dir() and all(entry.name.startswith(("_", ".")) for entry in folder.iterdir()):
            shutil.rmtree(folder, ignore_errors=True)
        raise
    return int(engine_call("count what was written", lambda: session.read.parquet(destination).count()))


def sum_on_workers(backend: Any, rows: ir.Table, job: SumJob) -> Totals:
    """The sum of what the job makes of the rows: workers add up theirs, Spark adds up what they send."""
    made = engine_call(
        "prepare the job", lambda: _lazy_frame(backend, rows).mapInArrow(_sum_worker(job), "place long, total long")
    )
    sums = made.groupBy("place").sum("total")
    places, totals = engine_call("add up the rows", lambda: [column.to_numpy() for column in sums.toArrow().columns])
    out = np.zeros(job.length, dtype=np.int64)
    out[places] = totals
    return out


def _lazy_frame(backend: Any, rows: ir.Table) -> Any:
    """The rows as a Spark frame: a plan, not yet run."""
    return engine_call("prepare the rows", lambda: backend.raw_sql(compile_sql(backend, rows)))


def _refuse_speculation(session: Any) -> None:
    """A speculative copy of a task would draw a second report for each of its rows."""
    setting = engine_call("read Spark's settings", lambda: session.conf.get("spark.speculation", "false"))
    if str(setting).lower() != "false":
        raise InputError("spark.speculation", setting, "false", "set it so when the Spark session is made")


def _spark_schema(job: WriteJob, given: Any) -> Any:
    types = load_library("pyspark.sql.types", EXTRA)
    made = [types.StructField(field.name, getattr(types, _spark_type(field.type)[0])()) for field in job.schema]
    return types.StructType([*made, *(given[name] for name in job.kept_columns)])


def _spark_type(arrow_type: Any) -> tuple[str, str]:
    return _TYPES.get(str(arrow_type), _BINARY)


def _write_worker(job: WriteJob) -> Any:
    """The function that workers run; only objects that it refers to are sent."""

    def write_batches(batches: Iterator[Any]) -> Iterator[Any]:
        arrow = load_library("pyarrow")
        for batch in split_batches(batches, job.rows):
            columns, names = job.output_columns(batch), [*job.schema.names, *job.kept_columns]
            forms = [arrow.type_for_alias(_spark_type(field.type)[1]) for field in job.schema]
            cast = [column.cast(form) for column, form in zip(columns, forms, strict=False)]
            yield arrow.RecordBatch.from_arrays([*cast, *columns[len(cast) :]], names=names)

    return write_batches


def _sum_worker(job: SumJob) -> Any:
    """The function that workers run: the places and totals that are not 0."""

    def sum_batches(batches: Iterator[Any]) -> Iterator[Any]:
        arrow = load_library("pyarrow")
        total = job.sum_batches(batches)
        places = np.flatnonzero(total)
        schema = arrow.schema([("place", arrow.int64()), ("total", arrow.int64())])
        yield make_record_batch([arrow.array(places), arrow.array(total[places])], schema)

    return sum_batches


SPARK = Backend(
    "pyspark",
    has_wide_sums=False,
    fetch_arrow=fetch_arrow,
    materialize_table=cached_table,
    hold_snapshot=snapshot_session,
    write_on_workers=write_on_workers,
    sum_on_workers=sum_on_workers,
)
