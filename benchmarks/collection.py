"""Reports and couplings of a Parquet file of 10⁸ rows on one machine: rows a CPU second, and memory.

    python benchmarks/collection.py --rows 100000000 --folder /tmp

The file is made first: 1024 categories and 4 groups. Each step runs in a process of its own and is compared with the
same scan and the same output without randomness. CPU seconds are those of all threads, reading, writing and numba's
compilation included; memory is the peak of the process.
"""

from __future__ import annotations

import argparse
import json
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from lines import Line, option, write

K, GROUPS, EPSILON = 1024, 4, 1.0
GIGABYTE = 1.5
"""Memory that a step may need, whatever the number of rows."""


def make(path: Path, rows: int) -> None:
    import duckdb

    columns = f"(hash(range) % {K})::USMALLINT AS value, (range % {GROUPS})::UTINYINT AS team"
    duckdb.sql(f"COPY (SELECT {columns} FROM range({rows})) TO '{path}'")


# ------------------------------------------------------------------ the steps, each in a process of its own


def oracle() -> Any:
    from tightrope import local

    return local.k_randomized_response(EPSILON, K)


def coupling() -> Any:
    from tightrope.transport import CouplingMechanism

    points = np.arange(K)
    bumps = [np.exp(-(((points - K * (1 + group) / (1 + GROUPS)) / 200.0) ** 2)) for group in range(GROUPS)]
    laws = {group: bump / bump.sum() for group, bump in enumerate(bumps)}
    target = np.mean(list(laws.values()), axis=0)
    return CouplingMechanism.fit(laws, np.abs(points[:, None] - points[None, :]).astype(float), target=target)


def copy(source: Path, folder: Path) -> Callable[[], int]:
    """What perturbing costs without perturbing."""
    import pyarrow

    from tightrope.tables import open_source, write_columns

    schema = pyarrow.schema([("report", pyarrow.uint16())])
    return lambda: write_columns(
        open_source(source), ["value"], lambda batch: batch.rename_columns(["report"]), schema, folder / "copy.parquet"
    )


def copy_both(source: Path, folder: Path) -> Callable[[], int]:
    """What coupling costs without coupling: two columns are read, 64-bit numbers are written."""
    import pyarrow

    from tightrope.tables import open_source, write_columns

    schema = pyarrow.schema([("value", pyarrow.int64())])

    def widened(batch: Any) -> Any:
        return pyarrow.record_batch([batch.column(0).cast(pyarrow.int64())], schema=schema)

    return lambda: write_columns(open_source(source), ["value", "team"], widened, schema, folder / "both.parquet")


def count(source: Path, folder: Path) -> Callable[[], int]:
    """What a tally costs without a mechanism."""
    from tightrope.tables import open_source, sum_over_batches

    def counted(batch: Any) -> Any:
        return np.bincount(batch.column(0).to_numpy(), minlength=K).astype(np.int64)

    return lambda: int(sum_over_batches(open_source(folder / "copy.parquet"), ["report"], counted, K).sum())


def perturb(source: Path, folder: Path) -> Callable[[], int]:
    from tightrope.local.collection import perturb_table

    mechanism = oracle()
    return lambda: perturb_table(mechanism, source, "value", folder / "reports.parquet")


def tally(source: Path, folder: Path) -> Callable[[], int]:
    from tightrope.local.collection import tally_table

    mechanism = oracle()
    return lambda: tally_table(mechanism, folder / "reports.parquet").people


def couple(source: Path, folder: Path) -> Callable[[], int]:
    from tightrope.transport.on_tables.collection import apply_table

    mechanism = coupling()
    return lambda: apply_table(mechanism, source, "value", "team", folder / "coupled.parquet", points=range(K))


STEPS = {step.__name__: step for step in (copy, perturb, count, tally, copy_both, couple)}
BESIDE = {"perturb": "copy", "tally": "count", "couple": "copy_both"}


def child(name: str, source: Path, folder: Path) -> None:
    run = STEPS[name](source, folder)
    cpu, wall = time.process_time(), time.perf_counter()
    rows = run()
    found = {"rows": rows, "cpu": time.process_time() - cpu, "wall": time.perf_counter() - wall}
    found["peak"] = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    print(json.dumps(found))


# ------------------------------------------------------------------ the table


def measured(name: str, source: Path, folder: Path) -> dict[str, float]:
    command = [sys.executable, __file__, "--step", name, "--source", str(source), "--folder", str(folder)]
    ran = subprocess.run(command, capture_output=True, text=True, check=True)
    return dict(json.loads(ran.stdout.splitlines()[-1]))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=lambda text: int(float(text)), default=100_000_000)
    parser.add_argument("--folder", type=Path, help="where 1 GB fits; by default the system's temporary folder")
    option(parser)
    parser.add_argument("--step", choices=STEPS, help=argparse.SUPPRESS)
    parser.add_argument("--source", type=Path, help=argparse.SUPPRESS)
    asked = parser.parse_args()
    if asked.step:
        child(asked.step, asked.source, asked.folder)
        return
    with tempfile.TemporaryDirectory(dir=asked.folder) as folder:
        write(asked.json, lines(asked.rows, table(asked.rows, Path(folder))))


def table(rows: int, folder: Path) -> dict[str, dict[str, float]]:
    """What each step took, by its name."""
    source, found = folder / "people.parquet", {}
    make(source, rows)
    print(f"{rows:,} rows, {K} categories, {GROUPS} groups, {source.stat().st_size / 2**20:.0f} MB of Parquet")
    print(f"{'step':10} {'CPU s':>8} {'wall s':>8} {'rows/CPU s':>12} {'peak GB':>8} {'times the scan':>15}")
    for name in STEPS:
        step = found[name] = measured(name, source, folder)
        assert step["rows"] == rows, f"{name}: {step['rows']:.0f} rows"
        beside = f"{step['cpu'] / found[BESIDE[name]]['cpu']:15.2f}" if name in BESIDE else ""
        speed = f"{rows / step['cpu']:12.3g}"
        print(f"{name:10} {step['cpu']:8.2f} {step['wall']:8.2f} {speed} {step['peak']:8.2f} {beside}", flush=True)
    heaviest = max(step["peak"] for step in found.values())
    print(f"memory: {heaviest:.2f} GB at most, {'as' if heaviest <= GIGABYTE else 'NOT as'} wanted ({GIGABYTE:g} GB)")
    return found


def lines(rows: int, found: dict[str, dict[str, float]]) -> list[Line]:
    """Steps of ours; the bare scan with the same output is no peer, but a floor."""
    out = []
    for name, floor in BESIDE.items():
        step, job = found[name], f"{name} {rows:.0e} rows"
        note = f"CPU {step['cpu'] / found[floor]['cpu']:.2g} × that of the same scan and output without randomness"
        out.append(Line("collection", job, "M rows a CPU s", rows / step["cpu"] / 1e6, larger=True, note=note))
        goal = {"goal": f"{GIGABYTE:g}", "met": step["peak"] <= GIGABYTE}
        out.append(Line("collection", job, "peak GiB", step["peak"], **goal))
    return out


if __name__ == "__main__":
    main()
