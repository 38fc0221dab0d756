"""One release by Spark on several executors, each in its own process: the cost of a row, and so of 10⁹ persons.

    python benchmarks/executors.py [--rows 1000000 4000000 16000000] [--executors 3] [--memory 1g] [--folder DIR]

Count and mean income by city, with three rows per person, of the table that benchmarks/release.py makes (two rows per
person, in files of 250 000 rows), on Spark's own ``local-cluster``: a master, workers and executors that exchange
shuffles over sockets as on separate machines. Each size runs in its own process. Spark's event log gives the CPU time
of all tasks, bytes and records shuffled, bytes of the checkpoint, bytes sent to the driver, and the busiest executor's
share of the CPU time. The last columns are the slope between the two largest sizes, and 2·10⁹ rows extrapolated by it,
without the network and disks of many machines.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import sys
import tempfile
import time
import warnings
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from lines import Line, add_json_option, exit_status, number_text, write_results
from workers import run_worker

ROWS_PER_FILE = 250_000
EXTRAPOLATED_ROWS = 2_000_000_000
"""The rows of 10⁹ persons."""
GROWING = ("CPU s", "shuffled bytes", "shuffled records", "checkpoint bytes", "spilled bytes", "bytes to the driver")
"""The numbers that grow with the rows."""
Numbers = dict[str, float]


def write_files(folder: Path, rows: int) -> Path:
    """Write the table in several Parquet files, so that Spark can distribute them; return their folder."""
    import pyarrow as pa
    import pyarrow.parquet as pq
    import release

    files = folder / f"rows_{rows}"
    if not files.exists():
        table = folder / f"whole_{rows}.parquet"
        release.write_people(table, rows)
        files.mkdir()
        for number, batch in enumerate(pq.ParquetFile(table).iter_batches(ROWS_PER_FILE)):
            pq.write_table(pa.Table.from_batches([batch]), files / f"part_{number:05d}.parquet")
        table.unlink()
    return files


def start_cluster(event_folder: Path, executors: int, memory: str) -> Any:
    """Return a Spark session on a cluster of processes."""
    import pyspark
    from pyspark import sql

    os.environ.setdefault("SPARK_HOME", str(Path(pyspark.__file__).parent))
    os.environ["PYSPARK_PYTHON"] = sys.executable
    mebibytes = int(memory.removesuffix("g")) * 1024 if memory.endswith("g") else int(memory.removesuffix("m"))
    settings = {
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.executor.memory": memory,
        "spark.sql.shuffle.partitions": str(4 * executors),
        "spark.sql.files.maxPartitionBytes": "16m",
        "spark.log.level": "OFF",
        "spark.executorEnv.PYTHONPATH": os.pathsep.join(sys.path),
        "spark.eventLog.enabled": "true",
        "spark.eventLog.dir": event_folder.as_uri(),
        "spark.eventLog.rolling.enabled": "false",
        "spark.eventLog.compress": "false",
        "spark.eventLog.logBlockUpdates.enabled": "true",
    }
    builder = sql.SparkSession.builder.master(f"local-cluster[{executors},1,{mebibytes}]").appName("tightrope")
    return builder.config(map=settings).getOrCreate()


def measure_release(files: Path, executors: int, memory: str) -> Numbers:
    """Release the table and return the numbers of the event log and of this process, without starting the cluster."""
    import tightrope as tr

    with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        spark = start_cluster(Path(folder), executors, memory)
        frame = spark.read.parquet(str(files))
        cpu, start = cpu_seconds(), time.perf_counter()
        session = tr.Session(frame, privacy_unit="user_id", max_rows=3, budget=tr.Budget(epsilon=1, delta=1e-8))
        questions = [tr.count(by="city"), tr.mean("income", bounds=(0, 200_000), by="city")]
        counts, _ = session.plan(questions).release()
        times = {"wall s": time.perf_counter() - start, "CPU s of the driver's Python": cpu_seconds() - cpu}
        spark.stop()
        (log,) = Path(folder).iterdir()
        return {**times, **sum_events(read_events(log)), "groups": len(counts.rows)}


def cpu_seconds() -> float:
    """Return the CPU seconds of this process."""
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime


def read_events(log: Path) -> Iterator[dict[str, Any]]:
    """Yield the events of Spark's log."""
    with log.open(encoding="utf-8") as lines:
        yield from map(json.loads, lines)


def sum_events(events: Iterator[dict[str, Any]]) -> Numbers:
    """Return sums over all tasks, and the checkpoint: the largest set of blocks that one result stored."""
    sums: dict[str, float] = dict.fromkeys(task_numbers(EMPTY_TASK), 0.0)
    executors: dict[str, float] = {}
    blocks: dict[str, Counter[str]] = {}
    for event in events:
        if event["Event"] == "SparkListenerTaskEnd" and "Task Metrics" in event:
            task, executor = task_numbers(event["Task Metrics"]), event["Task Info"]["Executor ID"]
            sums = {name: sums[name] + value for name, value in task.items()}
            executors[executor] = executors.get(executor, 0.0) + task["CPU s"]
        elif event["Event"] == "SparkListenerBlockUpdated":
            block = event["Block Updated Info"]
            kind, _, name = block["Block ID"].partition("_")
            sizes = blocks.setdefault(name.partition("_")[0], Counter()) if kind == "rdd" else Counter[str]()
            sizes[name] = max(sizes[name], block["Memory Size"] + block["Disk Size"])
    checkpoint = max((sizes.total() for sizes in blocks.values()), default=0)
    busiest = max(executors.values()) / sum(executors.values())
    return {**sums, "checkpoint bytes": checkpoint, "busiest executor": busiest, "executors": len(executors)}


EMPTY_TASK: dict[str, Any] = {
    "Shuffle Write Metrics": {"Shuffle Bytes Written": 0, "Shuffle Records Written": 0},
    "Executor CPU Time": 0,
    "Disk Bytes Spilled": 0,
    "Result Size": 0,
}


def task_numbers(metrics: dict[str, Any]) -> Numbers:
    """Return the numbers of one task."""
    shuffle = metrics["Shuffle Write Metrics"]
    return {
        "CPU s": metrics["Executor CPU Time"] / 1e9,
        "shuffled bytes": shuffle["Shuffle Bytes Written"],
        "shuffled records": shuffle["Shuffle Records Written"],
        "spilled bytes": metrics["Disk Bytes Spilled"],
        "bytes to the driver": metrics["Result Size"],
    }


def run_size(files: Path, options: argparse.Namespace) -> Numbers:
    """Measure one size in its own process. Raises ``SystemExit`` if it fails."""
    command = [sys.executable, __file__, "--place", str(files), "--executors", str(options.executors)]
    result = run_worker([*command, "--memory", options.memory])
    if result.failure:
        raise SystemExit(f"{files.name}: {result.failure}")
    return {name: float(value) for name, value in result.values.items()}


def cost_per_row(sizes: Sequence[int], results: Sequence[Numbers]) -> Numbers:
    """Return the cost of one more row, between the two largest sizes."""
    (few_rows, fewer), (many_rows, more) = list(zip(sizes, results, strict=True))[-2:]
    return {name: (more[name] - fewer[name]) / (many_rows - few_rows) for name in GROWING}


def print_table(sizes: Sequence[int], results: Sequence[Numbers]) -> None:
    """Print all numbers by size, the cost per row, and the extrapolation."""
    print(f"{'':28}" + "".join(f"{size:>14_}" for size in sizes) + f"{'per row':>14}{'10⁹ persons':>14}")
    slopes = cost_per_row(sizes, results) if len(sizes) > 1 else {}
    for name in results[0]:
        row = "".join(f"{number_text(numbers[name]):>14}" for numbers in results)
        if name in slopes:
            row += f"{number_text(slopes[name]):>14}{number_text(slopes[name] * EXTRAPOLATED_ROWS):>14}"
        print(f"{name:28}{row}")


def main() -> int:
    """Run as a script or as a worker."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, nargs="+", default=[1_000_000, 4_000_000, 16_000_000])
    parser.add_argument("--executors", type=int, default=3)
    parser.add_argument("--memory", default="1g", help="of an executor, as 512m or 2g")
    parser.add_argument("--folder", type=Path)
    parser.add_argument("--place", type=Path, help=argparse.SUPPRESS)
    add_json_option(parser)
    options = parser.parse_args()
    if options.place:
        print(json.dumps(measure_release(options.place, options.executors, options.memory)))
        return 0
    with tempfile.TemporaryDirectory() as temporary:
        folder = options.folder or Path(temporary)
        folder.mkdir(parents=True, exist_ok=True)
        sizes = sorted(options.rows)
        results = [run_size(write_files(folder, size), options) for size in sizes]
    print_table(sizes, results)
    job = f"{options.executors} executors of Spark, {sizes[-1]:_} rows"
    lines = [Line("executors", job, name, value) for name, value in results[-1].items()]
    write_results(options.json, lines)
    return exit_status(lines)


if __name__ == "__main__":
    sys.exit(main())
