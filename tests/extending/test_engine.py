"""An engine that nobody foresaw, in one file: declared, registered, and a release runs in it."""

from __future__ import annotations

from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow
import pyarrow.parquet
import pytest
from ibis.backends.duckdb import Backend as DuckDB
from sqlglot.dialects.duckdb import DuckDB as Dialect

import tightrope as tr
from tightrope.errors import InputError
from tightrope.tables import open_source, sum_over_batches, write_columns
from tightrope.tables.backends import registry
from tightrope.tables.backends.backend import Backend
from tightrope.tables.backends.duckdb import arrow_reader, without_misleading_rules
from tightrope.tables.engine_calls import engine_call

asked: list[str] = []
"""What the engine was asked to do in its own way."""


class Quack(Dialect):
    """The SQL of the engine, which sqlglot knows by the name of this class."""


class QuackDB(DuckDB):
    """DuckDB under another name: what ibis needs to know of an engine."""

    name = "quack"


@contextmanager
def settings(backend):
    asked.append("exact")
    with without_misleading_rules(backend):
        yield


def reader(backend, rows, size):
    asked.append("reader")
    return arrow_reader(backend, rows, size)


QUACK = Backend("quack", safe_settings=settings, open_batch_reader=reader)


@pytest.fixture
def table(tmp_path: Path):
    registry.register_backend(QUACK)
    rng = np.random.default_rng(2)
    frame = pd.DataFrame({
        "person": np.repeat(np.arange(3000), 3), "g": rng.choice(["a", "b", None], 9000), "x": rng.normal(3, 2, 9000),
    })  # fmt: skip
    pyarrow.parquet.write_table(pyarrow.Table.from_pandas(frame), tmp_path / "people.parquet")
    backend = QuackDB()
    backend.do_connect()
    yield frame, engine_call("read", lambda: backend.read_parquet(tmp_path / "people.parquet"))
    del registry.BACKENDS[QUACK.name]


def test_a_release_runs_in_it(table):
    frame, expression = table
    asked.clear()
    session = tr.Session(expression, privacy_unit="person", max_rows=3, budget=tr.Budget(epsilon=5, delta=1e-6))
    answers = session.plan([tr.count(by="g"), tr.mean("x", bounds=(0, 10), by="g", keys=["a", "b"])]).release()
    assert asked == ["exact", "reader"]  # one reading for both questions
    counts = {row["g"]: row["value"] for row in answers["count_by_g"].rows}
    assert list(counts) == [None, "a", "b"]
    assert all(abs(counts[g] - (frame["g"] == g).sum()) < 100 for g in ("a", "b"))
    for row in answers["mean_x_by_g"].rows:
        assert row["value"] == pytest.approx(frame["x"].clip(0, 10)[frame["g"] == row["g"]].mean(), abs=0.2)
    assert 0 < answers.certificate["epsilon"] <= 5


def test_its_integers_are_those_of_every_engine(table):
    """Where nothing is dropped: which rows of a person are, depends on how an engine writes their values."""
    frame, expression = table
    session = tr.Session(frame, privacy_unit="person", max_rows=3, budget=tr.Budget(epsilon=5, delta=1e-6))
    for query_group in session.plan([tr.sum("x", bounds=(-1, 5), by="g"), tr.count()])._draft.query_groups:
        assert open_source(expression).collect_totals(query_group.table_request) == open_source(frame).collect_totals(
            query_group.table_request
        )


def test_jobs_run_in_it(table, tmp_path: Path):
    _, expression = table
    opened = open_source(expression)
    assert opened.backend_adapter is QUACK
    assert sum_over_batches(opened, ["person"], lambda batch: np.array([len(batch)]), 1).tolist() == [9000]
    schema = pyarrow.schema([("g", pyarrow.string())])
    assert write_columns(opened, ["g"], lambda batch: batch.cast(schema), schema, tmp_path / "out.parquet") == 9000


def test_a_name_belongs_to_one_engine():
    with pytest.raises(InputError, match="no other engine"):
        registry.register_backend(Backend("duckdb"))
