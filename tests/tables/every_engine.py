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

from tests.postgres_server import server
from tightrope.tables import Table, open_source
from tightrope.tables.backends.duckdb import open_connection
from tightrope.tables.engine_calls import engine_call


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
    backend = open_connection()
    return open_source(engine_call("create a table", lambda: backend.create_table("people", arrow)))


def users_parquet(arrow: pyarrow.Table, folder: Path) -> Table:
    import ibis

    path = folder / f"{uuid.uuid4().hex}.parquet"
    pyarrow.parquet.write_table(arrow, path)
    return open_source(engine_call("read", lambda: ibis.duckdb.connect().read_parquet(path)))


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
    """Spark has microseconds and refuses to read finer instants: such columns are written as it would have them."""
    path = folder / f"{uuid.uuid4().hex}.parquet"
    pyarrow.parquet.write_table(arrow, path, coerce_timestamps="us")
    return open_source(spark().read.parquet(str(path)))


POSTGRES_TYPES = {
    "bool": "bool",
    "int8": "int2",
    "uint8": "int2",
    "int16": "int2",
    "int32": "int4",
    "int64": "int8",
    "uint64": "numeric(20, 0)",
    "float": "float4",
    "double": "float8",
    "uint16": "int4",
    "uint32": "int8",
    "binary": "bytea",
    "string": "text",
    "large_string": "text",
    "date32[day]": "date",
    "timestamp[us, tz=UTC]": "timestamptz",
}
"""What a column becomes there; instants without a zone are ``timestamp``, lists ``int8[]``, structs ``jsonb``."""


def postgres_type(given: pyarrow.DataType) -> str:
    types = pyarrow.types
    if types.is_dictionary(given):
        return postgres_type(given.value_type)
    if types.is_decimal(given):
        return f"numeric({given.precision}, {given.scale})"
    if types.is_timestamp(given) and given.tz is None:
        return "timestamp"
    return "int8[]" if types.is_list(given) else POSTGRES_TYPES.get(str(given), "jsonb")


@functools.cache
def postgres_database() -> str:
    return server().database()


def postgres_table(arrow: pyarrow.Table, _folder: Path) -> Table:
    """Each in a schema of its own; jsonb takes Python's spelling of a struct."""
    psycopg = pytest.importorskip("psycopg")
    name, url = uuid.uuid4().hex, postgres_database()
    identifier, sql = psycopg.sql.Identifier, psycopg.sql.SQL
    types = {field.name: postgres_type(field.type) for field in arrow.schema}
    columns = sql(", ").join(identifier(column) + sql(f" {kind}") for column, kind in types.items())
    with server().connect(url) as connection:
        connection.execute(sql("CREATE SCHEMA {}").format(identifier(name)))
        connection.execute(sql("CREATE TABLE {} ({})").format(identifier(name, "people"), columns))
        copy = sql("COPY {} FROM STDIN").format(identifier(name, "people"))
        with connection.cursor() as cursor, cursor.copy(copy) as rows:
            for row in arrow.to_pylist():
                rows.write_row([str(x).replace("'", '"') if isinstance(x, dict) else x for x in row.values()])
    return open_source(url, table=f"{name}.people")


ENGINES = {
    "arrow": in_memory,
    "parquet": parquet,
    "duckdb": duckdb_table,
    "ibis": expression,
    "ibis parquet": users_parquet,
    "spark": spark_frame,
    "postgres": postgres_table,
}
