"""Spark with three executors, each a process of its own, as a program: a JVM has one Spark context, ever.

python -m tests.tables.several_executors      # prints one line of JSON
"""

from __future__ import annotations

import json
import os
import signal
import sys
import tempfile
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from tests.tables.questions import ask, mean, per_person
from tightrope.errors import EngineError
from tightrope.tables import Measure, open_source, sum_over_batches, write_columns

EXECUTORS, PARTS, ROWS = 3, 4, 2_000
MEASURES = (Measure("rows", None, None), *mean("x", lower=-2, upper=10, step="0.25", center=3))
REQUESTS = [ask("city", bounds=per_person(3, 1, 2), measures=MEASURES), ask(bounds=per_person(2), measures=MEASURES)]
PRIVATE = "Anna Schmidt"
FAST_START = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"


def table() -> pa.Table:
    draw = np.random.default_rng(15)
    cities = np.array(["Oslo", "Riga", PRIVATE, "ﬁ", None], dtype=object)
    values = np.array([np.nan, np.inf, -np.inf, 0.5, -0.0, 1e308, 0.125])
    people = pa.array(draw.integers(0, 200, ROWS), pa.int64())
    return pa.table({"person": people, "city": pa.array(draw.choice(cities, ROWS)), "x": draw.choice(values, ROWS)})


@contextmanager
def cluster() -> Iterator[Any]:
    """A master, workers and executors of Spark's own, on this machine."""
    import pyspark
    from pyspark import sql

    os.environ.setdefault("SPARK_HOME", str(Path(pyspark.__file__).parent))
    os.environ["PYSPARK_PYTHON"] = sys.executable
    settings = {
        "spark.ui.enabled": "false",
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.executor.memory": "512m",
        "spark.executor.extraJavaOptions": FAST_START,
        "spark.driver.extraJavaOptions": FAST_START,
        "spark.sql.codegen.wholeStage": "false",  # tables are small: compiling a query takes longer than running it
        "spark.sql.adaptive.enabled": "false",
        "spark.sql.shuffle.partitions": "2",
        "spark.task.maxFailures": "1",
        "spark.log.level": "OFF",
        "spark.executorEnv.PYTHONPATH": os.pathsep.join(sys.path),
    }
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        builder = sql.SparkSession.builder.master(f"local-cluster[{EXECUTORS},1,512]").appName("tightrope executors")
        session = builder.config(map=settings).getOrCreate()
    try:
        yield session
    finally:
        session.stop()


def processes(session: Any) -> list[int]:
    """The executors of this application."""
    wanted = ("CoarseGrainedExecutorBackend", session.sparkContext.applicationId)
    commands = [(int(path.parent.name), _text(path)) for path in Path("/proc").glob("[0-9]*/cmdline")]
    return [number for number, command in commands if all(word in command for word in wanted)]


def _text(path: Path) -> str:
    try:
        return path.read_bytes().decode(errors="replace")
    except OSError:  # it ended meanwhile
        return ""


def report(batch: Any) -> Any:
    """Which process worked on each row."""
    return pa.record_batch([pa.array([os.getppid()] * len(batch), pa.int64())], schema=REPORT)


def ones(batch: Any) -> Any:
    return np.bincount(batch.column(0).to_numpy() % 8, minlength=8).astype(np.int64)


REPORT = pa.schema([("worker", pa.int64())])


def when_executors_are_lost(session: Any, there: Any) -> str:
    """What is said when all executors die while the rows are held; an answer would be a failure."""
    try:
        with there.open_snapshot(REQUESTS) as held:
            for number in processes(session):
                os.kill(number, signal.SIGKILL)
            return f"answered: {held.collect_totals(REQUESTS[0])}"
    except EngineError as error:
        return f"EngineError: {error}"


def main() -> None:
    rows = table()
    with tempfile.TemporaryDirectory() as folder, cluster() as session:
        session.createDataFrame(rows).repartition(PARTS).write.parquet(f"{folder}/rows")
        here, there = open_source(rows), open_source(session.read.parquet(f"{folder}/rows"))
        said: dict[str, Any] = {"executors": len(processes(session))}
        with here.open_snapshot(REQUESTS) as ours, there.open_snapshot(REQUESTS) as theirs:
            said["same"] = [ours.collect_totals(request) == theirs.collect_totals(request) for request in REQUESTS]
        expected = ones(rows.select(["person"]).to_batches()[0])
        said["folded"] = bool(np.array_equal(sum_over_batches(there, ["person"], ones, 8), expected))
        said["written"] = write_columns(there, ["person"], report, REPORT, f"{folder}/reports", keep=["city"])
        workers = open_source(session.read.parquet(f"{folder}/reports"))
        with workers.open_snapshot([ask("worker")]) as found:
            said["workers"] = len(found.collect_totals(ask("worker")).keys)
        said["lost"] = when_executors_are_lost(session, there)
    print(json.dumps(said))


if __name__ == "__main__":
    main()
