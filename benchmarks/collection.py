"""Reports and couplings of a Parquet file with 10⁸ rows on one machine: rows per CPU second, and memory.

    python benchmarks/collection.py --rows 100000000 --folder /tmp

The file, with 1024 categories and 4 groups, is made first. Each step runs in its own process and is compared with the
same scan and the same output without randomness. CPU seconds are summed over all threads, including reading, writing
and numba's compilation; memory is the peak of the process.
"""

from __future__ import annotations

import argparse
import json
import resource
import sys
import tempfile
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from lines import Line, add_json_option, exit_status, write_results
from workers import WorkerResult, run_worker

if TYPE_CHECKING:
    from tightrope.local.mechanisms.oracle import FrequencyOracle
    from tightrope.transport import CouplingMechanism

K, GROUPS, EPSILON = 1024, 4, 1.0
MAX_GIGABYTES = 1.5
"""The goal for the memory of a step, for any number of rows."""
RunStep = Callable[[], int]
"""Runs a step and returns the number of rows."""


def make_table(path: Path, rows: int) -> None:
    """Write the table of people."""
    import duckdb

    columns = f"(hash(range) % {K})::USMALLINT AS value, (range % {GROUPS})::UTINYINT AS team"
    duckdb.sql(f"COPY (SELECT {columns} FROM range({rows})) TO '{path}'")


# ------------------------------------------------------------------ the steps, each in its own process


def local_mechanism() -> FrequencyOracle:
    """Return the mechanism of the reports."""
    from tightrope import local

    return local.k_randomized_response(EPSILON, K)


def coupling_mechanism() -> CouplingMechanism:
    """Return a coupling of four groups to their mean."""
    from tightrope.transport import CouplingMechanism

    points = np.arange(K)
    bumps = [np.exp(-(((points - K * (1 + group) / (1 + GROUPS)) / 200.0) ** 2)) for group in range(GROUPS)]
    distributions = {group: bump / bump.sum() for group, bump in enumerate(bumps)}
    target = np.mean(list(distributions.values()), axis=0)
    return CouplingMechanism.fit(distributions, np.abs(points[:, None] - points[None, :]).astype(float), target=target)


def copy_step(source: Path, folder: Path) -> RunStep:
    """Read and write as perturbing does, without perturbing."""
    import pyarrow

    from tightrope.tables import open_source, write_columns

    schema = pyarrow.schema([("report", pyarrow.uint16())])
    return lambda: write_columns(
        open_source(source), ["value"], lambda batch: batch.rename_columns(["report"]), schema, folder / "copy.parquet"
    )


def copy_both_step(source: Path, folder: Path) -> RunStep:
    """Read two columns and write 64-bit numbers as coupling does, without coupling."""
    import pyarrow

    from tightrope.tables import open_source, write_columns

    schema = pyarrow.schema([("value", pyarrow.int64())])

    def widen(batch: Any) -> Any:
        return pyarrow.record_batch([batch.column(0).cast(pyarrow.int64())], schema=schema)

    return lambda: write_columns(open_source(source), ["value", "team"], widen, schema, folder / "both.parquet")


def count_step(source: Path, folder: Path) -> RunStep:
    """Count values without a mechanism."""
    from tightrope.tables import open_source, sum_over_batches

    def count_values(batch: Any) -> Any:
        return np.bincount(batch.column(0).to_numpy(), minlength=K).astype(np.int64)

    return lambda: int(sum_over_batches(open_source(folder / "copy.parquet"), ["report"], count_values, K).sum())


def perturb_step(source: Path, folder: Path) -> RunStep:
    """Write one report for each row."""
    from tightrope.local.collection import perturb_table

    mechanism = local_mechanism()
    return lambda: perturb_table(mechanism, source, "value", folder / "reports.parquet")


def tally_step(source: Path, folder: Path) -> RunStep:
    """Count the reports."""
    from tightrope.local.collection import tally_table

    mechanism = local_mechanism()
    return lambda: tally_table(mechanism, folder / "reports.parquet").people


def couple_step(source: Path, folder: Path) -> RunStep:
    """Write one coupled value for each row."""
    from tightrope.transport.on_tables.collection import apply_table

    mechanism = coupling_mechanism()
    return lambda: apply_table(mechanism, source, "value", "team", folder / "coupled.parquet", points=range(K))


STEPS: dict[str, Callable[[Path, Path], RunStep]] = {
    "copy": copy_step,
    "perturb": perturb_step,
    "count": count_step,
    "tally": tally_step,
    "copy_both": copy_both_step,
    "couple": couple_step,
}
BASELINES = {"perturb": "copy", "tally": "count", "couple": "copy_both"}


def measure_step(name: str, source: Path, folder: Path) -> dict[str, float]:
    """Run a step in this process and return its rows, times and memory."""
    run_step = STEPS[name](source, folder)
    cpu, wall = time.process_time(), time.perf_counter()
    rows = run_step()
    times = {"cpu": time.process_time() - cpu, "wall": time.perf_counter() - wall}
    return {"rows": rows, **times, "peak": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20}


# ------------------------------------------------------------------ the table


def run_step_process(name: str, source: Path, folder: Path, rows: int) -> WorkerResult:
    """Run a step in its own process; a wrong number of rows is a failure."""
    result = run_worker([sys.executable, __file__, "--step", name, "--source", str(source), "--folder", str(folder)])
    if not result.failure and result.number("rows") != rows:
        return WorkerResult(failure=f"{result.number('rows'):.0f} rows instead of {rows}")
    return result


def measure_steps(rows: int, folder: Path) -> dict[str, WorkerResult]:
    """Run all steps, print a row for each, and return the results by name."""
    source, results = folder / "people.parquet", {}
    make_table(source, rows)
    print(f"{rows:,} rows, {K} categories, {GROUPS} groups, {source.stat().st_size / 2**20:.0f} MB of Parquet")
    print(f"{'step':10} {'CPU s':>8} {'wall s':>8} {'rows/CPU s':>12} {'peak GB':>8} {'times the scan':>15}")
    for name in STEPS:
        step = results[name] = run_step_process(name, source, folder, rows)
        cpu, wall, peak = (step.number(key) for key in ("cpu", "wall", "peak"))
        factor = f"{cpu / results[BASELINES[name]].number('cpu'):15.2f}" if name in BASELINES else ""
        numbers = f"{cpu:8.2f} {wall:8.2f} {rows / cpu:12.3g} {peak:8.2f} {factor}"
        print(f"{name:10} {step.failure or numbers}", flush=True)
    heaviest = max(step.number("peak") for step in results.values())
    print(f"memory: at most {heaviest:.2f} GB, goal {MAX_GIGABYTES:g} GB")
    return results


def step_lines(rows: int, results: Mapping[str, WorkerResult]) -> list[Line]:
    """Return the lines of Tightrope's steps; the scan without randomness is a lower limit, not a peer."""
    lines = []
    for name, baseline in BASELINES.items():
        step, job = results[name], f"{name} {rows:.0e} rows"
        cpu, peak = step.number("cpu"), step.number("peak")
        factor = cpu / results[baseline].number("cpu")
        note = f"CPU {factor:.2g} × that of the same scan and output without randomness"
        rate, failure = rows / cpu / 1e6, step.failure or results[baseline].failure
        memory = Line("collection", job, "peak GiB", peak, note=step.failure)
        lines += [
            Line("collection", job, "M rows a CPU s", rate, larger_is_better=True, note=failure or note),
            memory.with_goal(f"{MAX_GIGABYTES:g}", met=peak <= MAX_GIGABYTES),
        ]
    return lines


def main() -> int:
    """Run as a script or as a worker."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=lambda text: int(float(text)), default=100_000_000)
    parser.add_argument("--folder", type=Path, help="a folder with 1 GB free; by default the system's temporary folder")
    add_json_option(parser)
    parser.add_argument("--step", choices=STEPS, help=argparse.SUPPRESS)
    parser.add_argument("--source", type=Path, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.step:
        print(json.dumps(measure_step(options.step, options.source, options.folder)))
        return 0
    with tempfile.TemporaryDirectory(dir=options.folder) as folder:
        lines = step_lines(options.rows, measure_steps(options.rows, Path(folder)))
    write_results(options.json, lines)
    return exit_status(lines)


if __name__ == "__main__":
    sys.exit(main())
