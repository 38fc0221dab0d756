"""Every engine runs the same suite: a fixture turns an Arrow table into a source of that engine."""

from __future__ import annotations

import uuid
from collections.abc import Callable
from pathlib import Path

import pyarrow
import pytest

from tightrope.engines import Table, open_source
from tightrope.engines.door import connect, guarded


def in_memory(arrow: pyarrow.Table, _folder: Path) -> Table:
    return open_source(arrow)


def parquet(arrow: pyarrow.Table, folder: Path) -> Table:
    import pyarrow.parquet

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
    import pyarrow.parquet

    path = folder / f"{uuid.uuid4().hex}.parquet"
    pyarrow.parquet.write_table(arrow, path)
    return open_source(guarded("read", lambda: ibis.duckdb.connect().read_parquet(path)))


ENGINES = {
    "arrow": in_memory,
    "parquet": parquet,
    "duckdb": duckdb_table,
    "ibis": expression,
    "ibis parquet": users_parquet,
}


@pytest.fixture(params=sorted(ENGINES))
def opened(request: pytest.FixtureRequest, tmp_path: Path) -> Callable[[pyarrow.Table], Table]:
    """Turns an Arrow table into a Table of each engine. Spark and PostgreSQL join here."""
    return lambda arrow: ENGINES[request.param](arrow, tmp_path)
