"""Spark: results without pandas, cached rows instead of temporary tables, snapshots, and jobs on its workers."""

from __future__ import annotations

import shutil
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from tightrope.errors import EngineError, InputError
from tightrope.tables.backends.backend import Backend, compile_sql
from tightrope.tables.engine_calls import engine_call, load_library
from tightrope.tables.files import SumJob, Totals, WriteJob, make_record_batch, split_batches

if TYPE_CHECKING:
    import ibis.expr.types as ir
    import pyarrow as pa
    from ibis.backends import BaseBackend
    from pyspark.sql import DataFrame, SparkSession

EXTRA = "spark"
_SPARK_TYPES = {
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
"""Spark's type and its Arrow form, by Arrow types of results; Spark has no unsigned types. Others become binary."""
_BINARY = ("BinaryType", "binary")


def fetch_arrow(backend: BaseBackend, rows: ir.Table) -> pa.Table:
    """Return the rows as an Arrow table; ibis would convert them to pandas, where decimals fail."""
    return backend.raw_sql(compile_sql(backend, rows)).toArrow().cast(rows.schema().to_pyarrow())


@contextmanager
def cached_table(step: str, backend: BaseBackend, rows: ir.Table) -> Iterator[ir.Table]:
    """Yield a view of cached rows, in place of a temporary table, which Spark lacks.

    Rows that are lost with a worker are computed again; they are the same, because no noise is drawn here.
    """
    name = f"tightrope_{uuid.uuid4().hex}"
    frame = engine_call(step, lambda: backend.raw_sql(compile_sql(backend, rows)).cache())
    try:
        engine_call(step, lambda: frame.createOrReplaceTempView(name))
        yield engine_call(step, lambda: backend.table(name))
    finally:
        engine_call("drop a temporary table", lambda: frame.sparkSession.catalog.dropTempView(name))
        engine_call("drop a temporary table", frame.unpersist)


@contextmanager
def snapshot_session(
    backend: BaseBackend, rows: ir.Table, longest: int | None = None
) -> Iterator[tuple[BaseBackend, ir.Table]]:
    """Yield the back end of a separate Spark session, without the user's functions and settings, and the current rows.

    The rows are computed once and disconnected from their source by a local checkpoint: rows that are lost with a
    worker are an error, while cached rows would be computed again, perhaps with another result. Speculative execution
    is rejected, because two attempts of a task may keep different rows. At the end the rows must have the same
    fingerprint as in the beginning.
    """
    frame = _lazy_frame(backend, rows)
    _reject_speculation(frame.sparkSession)

    # A new session has its own functions, settings and views, and the same workers.
    def open_session() -> SparkSession | None:
        try:
            return frame.sparkSession.newSession()
        except (AttributeError, NotImplementedError):
            return None

    new_session = engine_call("open a new session", open_session)
    if new_session is None:
        expected = "a frame of a Spark session that can open a second one (newSession)"
        raise InputError(
            "source", type(frame.sparkSession), expected, "use a classic session, or write the rows to Parquet parts"
        )
    rows_frame = engine_call("hold the rows", lambda: _with_binary_collation(frame).localCheckpoint(eager=True))
    fingerprint = _row_fingerprint(rows_frame)
    name = f"tightrope_{uuid.uuid4().hex}"
    engine_call("name the rows", lambda: rows_frame.createGlobalTempView(name))

    def register_table(table: Any) -> None:
        """Register a table in memory; ibis would convert it to pandas, which loses decimals and NULL in integers."""
        rows_in_memory = table.data.to_pyarrow(table.schema)
        new_session.createDataFrame(rows_in_memory).createOrReplaceTempView(table.name)

    def prepare_session() -> BaseBackend:
        """Return ibis' back end of the session, with a view of the rows; overflows are errors, whatever the settings.

        The hook is private in ibis, whose version is therefore kept below 13.
        """
        new_session.conf.set("spark.sql.ansi.enabled", "true")
        new_session.table(f"global_temp.{name}").createOrReplaceTempView(name)
        own_backend = load_library("ibis").pyspark.connect(new_session)
        own_backend._register_in_memory_table = register_table
        return own_backend

    try:
        own_backend = engine_call("open a new session", prepare_session)
        table = engine_call(
            "find the rows", lambda: drop_long_texts(with_instants(own_backend.table(name), rows_frame), longest)
        )
        yield own_backend, table
        if _row_fingerprint(rows_frame) != fingerprint:
            raise EngineError("Spark gave other rows at the second look than at the first; nothing was answered")
    finally:
        engine_call("drop a temporary table", lambda: frame.sparkSession.catalog.dropGlobalTempView(name))


def without_unsupported_types(frame: DataFrame) -> DataFrame:
    """Return the frame with columns of types that ibis lacks, such as variants, as bytes, which are not supported."""
    to_ibis = load_library("ibis.backends.pyspark.datatypes").PySparkType.to_ibis
    functions = load_library("pyspark.sql.functions", EXTRA)
    unsupported = []
    for field in frame.schema:
        try:
            to_ibis(field.dataType)
        except NotImplementedError:
            unsupported.append(field.name)
    empty_bytes = functions.lit(None).cast("binary")
    return frame.withColumns(dict.fromkeys(unsupported, empty_bytes)) if unsupported else frame


def with_instants(table: ir.Table, frame: DataFrame) -> ir.Table:
    """Return the table with Spark's TIMESTAMP columns as instants in UTC, which ibis takes for times without a zone."""
    types = load_library("pyspark.sql.types", EXTRA)
    instants = {field.name for field in frame.schema if isinstance(field.dataType, types.TimestampType)}
    kinds = {name: kind.copy(timezone="UTC") if name in instants else kind for name, kind in table.schema().items()}
    return table.op().copy(schema=load_library("ibis").schema(kinds)).to_expr()


def drop_long_texts(table: ir.Table, longest: int | None) -> ir.Table:
    """Return the table with texts of more than ``longest`` bytes missing."""
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
    """Return the bytes of a text in UTF-8; stands for Spark's function of this name in ibis expressions."""
    return len(text.encode())


def _with_binary_collation(frame: DataFrame) -> DataFrame:
    """Return the rows with text that is compared byte by byte; a collation may treat two persons' texts as equal."""
    types, functions = load_library("pyspark.sql.types", EXTRA), load_library("pyspark.sql.functions", EXTRA)
    text = types.StringType()
    collated = [
        field.name for field in frame.schema if isinstance(field.dataType, types.StringType) and field.dataType != text
    ]
    binary = {name: functions.collate(frame[_quote_name(name)], "UTF8_BINARY") for name in collated}
    return frame.withColumns(binary) if binary else frame


def _quote_name(name: str) -> str:
    return "`" + name.replace("`", "``") + "`"


def _row_fingerprint(frame: DataFrame) -> tuple[int, int]:
    """Return the number of rows and the sum of their hashes, which do not depend on the order of rows."""
    functions = load_library("pyspark.sql.functions", EXTRA)
    hashes = functions.xxhash64(*(frame[_quote_name(name)] for name in frame.columns))
    sums = frame.select(hashes.cast("decimal(38, 0)").alias("hash")).agg({"*": "count", "hash": "sum"})
    count, total = engine_call("take a fingerprint of the rows", lambda: tuple(sums.first()))
    return int(count), int(total or 0)


def write_on_workers(backend: BaseBackend, rows: ir.Table, job: WriteJob, destination: str) -> int:
    """Write the job's result as a folder of Parquet parts; return the number of rows, read from the parts."""
    frame = _lazy_frame(backend, rows)
    session = frame.sparkSession
    _reject_speculation(session)

    def prepare_job() -> DataFrame:
        types = load_library("pyspark.sql.types", EXTRA)
        fields = [types.StructField(field.name, getattr(types, _spark_type(field.type)[0])()) for field in job.schema]
        given = frame.schema
        schema = types.StructType([*fields, *(given[name] for name in job.kept_columns)])
        return frame.mapInArrow(_write_worker(job), schema)

    results = engine_call("prepare the job", prepare_job)
    try:
        engine_call("write the Parquet parts", lambda: results.write.mode("error").parquet(destination))
    except BaseException:  # also an interruption
        # Remove the folder that a failed job left on this machine, if it holds only Spark's hidden files.
        folder = Path(destination)
        if folder.is_dir() and all(entry.name.startswith(("_", ".")) for entry in folder.iterdir()):
            shutil.rmtree(folder, ignore_errors=True)
        raise
    return int(engine_call("count what was written", lambda: session.read.parquet(destination).count()))


def sum_on_workers(backend: BaseBackend, rows: ir.Table, job: SumJob) -> Totals:
    """Return the sum of the job's results: workers sum over their batches, Spark sums over the workers."""
    worker_sums = engine_call(
        "prepare the job", lambda: _lazy_frame(backend, rows).mapInArrow(_sum_worker(job), "position long, total long")
    )
    sums = worker_sums.groupBy("position").sum("total")
    positions, totals = engine_call("add up the rows", lambda: [column.to_numpy() for column in sums.toArrow().columns])
    result = np.zeros(job.length, dtype=np.int64)
    result[positions] = totals
    return result


def _lazy_frame(backend: BaseBackend, rows: ir.Table) -> DataFrame:
    """Return the rows as a Spark frame, which is not yet computed."""
    return engine_call("prepare the rows", lambda: backend.raw_sql(compile_sql(backend, rows)))


def _reject_speculation(session: SparkSession) -> None:
    """Raise ``InputError`` if Spark may run a task twice: it would draw two reports for each of its rows."""
    setting = engine_call("read Spark's settings", lambda: session.conf.get("spark.speculation", "false"))
    if str(setting).lower() != "false":
        raise InputError("spark.speculation", setting, "false", "set it so when the Spark session is made")


def _spark_type(arrow_type: pa.DataType) -> tuple[str, str]:
    return _SPARK_TYPES.get(str(arrow_type), _BINARY)


def _write_worker(job: WriteJob) -> Any:
    """Return the function that workers run to write batches; it must refer only to objects that can be sent."""

    def write_batches(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        arrow = load_library("pyarrow")
        for batch in split_batches(batches, job.rows):
            columns, names = job.output_columns(batch), [*job.schema.names, *job.kept_columns]
            arrow_types = [arrow.type_for_alias(_spark_type(field.type)[1]) for field in job.schema]
            cast = [column.cast(arrow_type) for column, arrow_type in zip(columns, arrow_types, strict=False)]
            yield arrow.RecordBatch.from_arrays([*cast, *columns[len(cast) :]], names=names)

    return write_batches


def _sum_worker(job: SumJob) -> Any:
    """Return the function that workers run to sum batches; it yields the positions and values of nonzero totals."""

    def sum_batches(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        arrow = load_library("pyarrow")
        total = job.sum_batches(batches)
        positions = np.flatnonzero(total)
        schema = arrow.schema([("position", arrow.int64()), ("total", arrow.int64())])
        yield make_record_batch([arrow.array(positions), arrow.array(total[positions])], schema)

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
