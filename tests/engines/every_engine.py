"""Every engine: how an Arrow table becomes a source of it."""

from __future__ import annotations

import functools
import os
import shutil
import sys
import uuid
import warnings
from pathlib import Path
from typing import Any

import pyarrow
import pyarrow.parquet
import pytest

from tightrope.engines import Table, open_source
from tightrope.engines.backends.duckdb import connect
from tightrope.engines.guard import guarded


def in_memory(arrow: pyarrow.Table, _folder: Path) -> Table:
    return open_source(arrow)


def parquet(arrow: pyarrow.Table, folder: Path) -> Table:
    path = folder / f"{uuid.uuid4().hex}.parquet"
    pyarrow.parquet.write_table(arrow, path)
    return open_source(path)


def duckdb_table(arrow: pyarrow.Table, folder: Path) -> Table:
    import duckdb

    path = folder / f"{uuid.uuid4().hex}.duckdb"
    with duckdb.connect(path) as connection:
        connection.register("arrow", arrow)
        connection.execute("CREATE TABLE people AS SELECT * FROM arrow")
    return open_source(path, table="people")


def expression(arrow: pyarrow.Table, _folder: Path) -> Table:
    backend = connect()
    return open_source(guarded("create a table", lambda: backend.create_table("people", arrow)))


def users_parquet(arrow: pyarrow.Table, folder: Path) -> Table:
    import ibis

    path = folder / f"{uuid.uuid4().hex}.parquet"
    pyarrow.parquet.write_table(arrow, path)
    return open_source(guarded("read", lambda: ibis.duckdb.connect().read_parquet(path)))


@functools.cache
def spark() -> Any:
    """The one Spark session of this process: two threads here, no web page, few words."""
    if shutil.which("java") is None:
        pytest.skip("Spark needs Java")
    sql = pytest.importorskip("pyspark.sql", reason="Spark is an extra")
    os.environ["PYSPARK_PYTHON"] = sys.executable  # workers need the same libraries
    settings = {
        "spark.ui.enabled": "false",
        "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.sql.shuffle.partitions": "1",
        "spark.sql.codegen.wholeStage": "false",  # tables are small: compiling each query takes longer than running it
        "spark.sql.adaptive.enabled": "false",
        "spark.log.level": "OFF",
        "spark.executorEnv.PYTHONPATH": os.pathsep.join(sys.path),  # and find the tests' own functions
    }
    builder = sql.SparkSession.builder.master("local[2]").appName("tightrope")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return builder.config(map=settings).getOrCreate()


def spark_frame(arrow: pyarrow.Table, folder: Path) -> Table:
    path = folder / f"{uuid.uuid4().hex}.parquet"
    pyarrow.parquet.write_table(arrow, path)
    return open_source(spark().read.parquet(str(path)))


ENGINES = {
    "arrow": in_memory,
    "parquet": parquet,
    "duckdb": duckdb_table,
    "ibis": expression,
    "ibis parquet": users_parquet,
    "spark": spark_frame,
}
