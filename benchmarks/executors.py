"""One release by Spark on several executors, each a process of its own: what a row costs, and so 10⁹ persons.

    python benchmarks/executors.py [--rows 1000000 4000000 16000000] [--executors 3] [--memory 1g] [--folder DIR]

Count and mean income by city, three rows a person, of the table that benchmarks/release.py makes (two rows a person,
in files of 250 000 rows), on Spark's own ``local-cluster``: a master, workers and executors, which send each other
their shuffles over sockets as on machines of their own. Each size runs in a process of its own. Counted from Spark's
event log: CPU of all tasks, bytes and records shuffled, bytes of the checkpoint, bytes that come to the driver, and the
busiest executor's share of the CPU. The last lines are the slope between the two largest sizes, and 2·10⁹ rows by it:
an extrapolation, for what a network and disks of many machines add is not in it.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
import warnings
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from lines import Line, number, option, write

ROW_GROUP = 250_000
PEOPLE_AND_ROWS = 2_000_000_000
"""Rows of 10⁹ persons."""
COUNTED = ("CPU s", "shuffled bytes", "shuffled records", "checkpoint bytes", "spilled bytes", "bytes to the driver")
"""What grows with rows; the rest of what is said does not."""
Found = dict[str, float]


def generate(folder: Path, rows: int) -> Path:
    """As many Parquet files as there are row groups, so that Spark can share them out."""
    import pyarrow.parquet as pq
    import release

    place = folder / f"rows_{rows}"
    if not place.exists():
        whole = folder / f"whole_{rows}.parquet"
        release.generate(whole, rows)
        place.mkdir()
        for part, batch in enumerate(pq.ParquetFile(whole).iter_batches(ROW_GROUP)):
            pq.write_table(pa_table(batch), place / f"part_{part:05d}.parquet")
        whole.unlink()
    return place


def pa_table(batch: Any) -> Any:
    import pyarrow as pa

    return pa.Table.from_batches([batch])


def session(events: Path, executors: int, memory: str) -> Any:
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
        "spark.eventLog.dir": events.as_uri(),
        "spark.eventLog.rolling.enabled": "false",
        "spark.eventLog.compress": "false",
        "spark.eventLog.logBlockUpdates.enabled": "true",
    }
    builder = sql.SparkSession.builder.master(f"local-cluster[{executors},1,{mebibytes}]").appName("tightrope")
    return builder.config(map=settings).getOrCreate()


def one_release(place: Path, executors: int, memory: str) -> Found:
    """Of these rows; what Spark's event log and this process say of it, without starting the cluster."""
    import tightrope as tr

    with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        spark = session(Path(folder), executors, memory)
        frame = spark.read.parquet(str(place))
        before, started = used(), time.perf_counter()
        opened = tr.Session(frame, privacy_unit="user_id", max_rows=3, budget=tr.Budget(epsilon=1, delta=1e-8))
        questions = [tr.count(by="city"), tr.mean("income", bounds=(0, 200_000), by="city")]
        counts, _ = opened.plan(questions).release()
        spent = {"wall s": time.perf_counter() - started, "CPU s of the driver's Python": used() - before}
        spark.stop()
        (log,) = Path(folder).iterdir()
        return {**spent, **counted(events(log)), "groups": len(counts.rows)}


def used() -> float:
    spent = resource.getrusage(resource.RUSAGE_SELF)
    return spent.ru_utime + spent.ru_stime


def events(log: Path) -> Iterator[dict[str, Any]]:
    with log.open(encoding="utf-8") as lines:
        yield from map(json.loads, lines)


def counted(said: Iterator[dict[str, Any]]) -> Found:
    """The sums over all tasks, and the checkpoint: the largest set of blocks that one result kept."""
    sums: Counter[str] = Counter()
    executors: Counter[str] = Counter()
    blocks: dict[str, dict[str, int]] = {}
    for event in said:
        if event["Event"] == "SparkListenerTaskEnd" and "Task Metrics" in event:
            task = of_task(event["Task Metrics"])
            sums.update(task)
            executors[event["Task Info"]["Executor ID"]] += task["CPU s"]
        elif event["Event"] == "SparkListenerBlockUpdated":
            block = event["Block Updated Info"]
            kind, _, rest = block["Block ID"].partition("_")
            held = blocks.setdefault(rest.partition("_")[0], {}) if kind == "rdd" else {}
            held[rest] = max(held.get(rest, 0), block["Memory Size"] + block["Disk Size"])
    largest = max((sum(held.values()) for held in blocks.values()), default=0)
    share = max(executors.values()) / sum(executors.values())
    return {**sums, "checkpoint bytes": largest, "busiest executor": share, "executors": len(executors)}


def of_task(metrics: dict[str, Any]) -> Found:
    shuffle = metrics["Shuffle Write Metrics"]
    return {
        "CPU s": metrics["Executor CPU Time"] / 1e9,
        "shuffled bytes": shuffle["Shuffle Bytes Written"],
        "shuffled records": shuffle["Shuffle Records Written"],
        "spilled bytes": metrics["Disk Bytes Spilled"],
        "bytes to the driver": metrics["Result Size"],
    }


def in_process(place: Path, options: argparse.Namespace) -> Found:
    """One size by a process of its own. Raises where it fails."""
    command = [sys.executable, __file__, "--place", str(place), "--executors", str(options.executors)]
    command += ["--memory", options.memory]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    found: Found = json.loads(done.stdout.splitlines()[-1])
    return found


def slope(sizes: Sequence[int], found: Sequence[Found]) -> Found:
    """What one row more costs, between the two largest sizes."""
    (few, less), (many, more) = list(zip(sizes, found, strict=True))[-2:]
    return {name: (more[name] - less[name]) / (many - few) for name in COUNTED}


def table(sizes: Sequence[int], found: Sequence[Found]) -> None:
    print(f"{'':28}" + "".join(f"{size:>14_}" for size in sizes) + f"{'a row more':>14}{'10⁹ persons':>14}")
    grows = slope(sizes, found) if len(sizes) > 1 else {}
    for name in found[0]:
        row = "".join(f"{number(one[name]):>14}" for one in found)
        row += f"{number(grows[name]):>14}{number(grows[name] * PEOPLE_AND_ROWS):>14}" if name in grows else ""
        print(f"{name:28}{row}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, nargs="+", default=[1_000_000, 4_000_000, 16_000_000])
    parser.add_argument("--executors", type=int, default=3)
    parser.add_argument("--memory", default="1g", help="of an executor, as 512m or 2g")
    parser.add_argument("--folder", type=Path)
    parser.add_argument("--place", type=Path, help=argparse.SUPPRESS)
    option(parser)
    options = parser.parse_args()
    if options.place:
        print(json.dumps(one_release(options.place, options.executors, options.memory)))
        return
    with tempfile.TemporaryDirectory() as temporary:
        folder = options.folder or Path(temporary)
        folder.mkdir(parents=True, exist_ok=True)
        sizes = sorted(options.rows)
        found = [in_process(generate(folder, size), options) for size in sizes]
    table(sizes, found)
    job = f"{options.executors} executors of Spark, {sizes[-1]:_} rows"
    write(options.json, [Line("executors", job, name, value) for name, value in found[-1].items()])


if __name__ == "__main__":
    main()
