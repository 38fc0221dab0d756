"""Jobs larger than memory or that run long: each runs once, in its own process, with a limit on memory.

    python benchmarks/larger.py [--job NAME ...] [--share 0.001] [--folder DIR] [--patience 3600]

- An exact coupling of points in the plane, 10 000 to 50 000 on each side, with a proof of optimality over all pairs.
- 10⁹ draws from a table of 500 weights, and 10⁸ reports made and counted (1024 categories, ε = 1), in batches.
- ``tightrope release`` as a command, of 10⁸ rows in Parquet (made by benchmarks/release.py): count and mean by key.

Memory is the peak of the process, including libraries. ``--share`` multiplies all sizes, for a trial; the folder needs
5 GB for 10⁸ rows, and as much again for DuckDB's temporary files.
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
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from lines import Line, add_json_option, exit_status, number_text, write_results
from workers import WorkerResult, run_worker

if TYPE_CHECKING:
    from tightrope.local.mechanisms.oracle import FrequencyOracle

BATCH = 10_000_000
K, EPSILON = 1024, 1.0
RunJob = Callable[[int, Path], dict[str, float]]
"""Runs a job of a size with a folder for its files; returns numbers in addition to seconds and memory."""


@dataclass(frozen=True)
class Job:
    """A job with its size in ``unit``, and the memory that it may use, including libraries."""

    run: RunJob
    size: int
    unit: str
    max_gibibytes: float


# ------------------------------------------------------------------ the jobs


def couple_plane(size: int, folder: Path) -> dict[str, float]:
    """Couple points in the plane; the gap is relative to the cost."""
    from transport import plane_problem

    from tightrope import transport

    problem = plane_problem(size)
    coupling = transport.coupling(problem.source, problem.target, transport.points(problem.x, problem.y))
    return {"gap": coupling.gap / coupling.cost}


def draw_from_table(size: int, folder: Path) -> dict[str, float]:
    """Draw from a table of 500 weights."""
    from tightrope.mechanisms.discrete.noise_table import NoiseTable

    table = NoiseTable.from_probabilities([1 / (1 + x / 250) ** 2 for x in range(250)])
    assert sum(len(table.sample(batch)) for batch in batch_sizes(size)) == size
    return {}


def randomized_response_reports(size: int, folder: Path) -> dict[str, float]:
    """Make and count reports by randomized response."""
    from tightrope import local

    return count_reports(local.k_randomized_response(EPSILON, K), size)


def hadamard_reports(size: int, folder: Path) -> dict[str, float]:
    """Make and count reports by Hadamard response."""
    from tightrope import local

    return count_reports(local.hadamard(EPSILON, K), size)


def count_reports(mechanism: FrequencyOracle, size: int) -> dict[str, float]:
    """Make and count reports in batches; return the error of the estimates, with uniform true shares."""
    values = np.random.default_rng(1).integers(0, K, min(size, BATCH))
    tallies = [mechanism.tally_reports(mechanism.perturb(values[:batch])) for batch in batch_sizes(size)]
    tally = sum(tallies[1:], tallies[0])
    assert tally.people == size
    errors = mechanism.estimate_tally(tally).value - 1 / K
    return {"mean squared error": float(np.mean(errors**2))}


def batch_sizes(size: int) -> Iterator[int]:
    """Yield the sizes of batches of at most ten million; only counts are stored."""
    for start in range(0, size, BATCH):
        yield min(BATCH, size - start)


PLAN = """[source]
path = {path}
[privacy_unit]
column = "user_id"
max_rows = 3
[budget]
epsilon = 1
delta = 1e-8
[[question]]
kind = "count"
by = "city"
[[question]]
kind = "mean"
column = "income"
bounds = [0, 200_000]
by = "city"
"""


def release_table(size: int, folder: Path) -> dict[str, float]:
    """Run the command; another process makes the file, so that its memory is not counted."""
    path, plan = folder / f"people_{size}.parquet", folder / "plan.toml"
    plan.write_text(PLAN.format(path=json.dumps(str(path))), encoding="utf-8")
    if not path.exists():
        code = f"from pathlib import Path; from release import write_people; write_people(Path({str(path)!r}), {size})"
        subprocess.run([sys.executable, "-c", code], check=True, cwd=Path(__file__).parent)
    cpu, start = cpu_seconds(), time.perf_counter()
    command = [sys.executable, "-m", "tightrope", "release", str(plan), "--out", str(folder / "out")]
    child = subprocess.Popen(command, stdout=subprocess.DEVNULL)
    _, status, used = os.wait4(child.pid, 0)
    assert status == 0, f"tightrope release ended with status {status}"
    return {"CPU s": cpu_seconds() - cpu, "wall s": time.perf_counter() - start, "GiB": used.ru_maxrss / 2**20}


JOBS: dict[str, Job] = {
    **{f"plane {size}": Job(couple_plane, size, "points a side", 2.0) for size in (10_000, 20_000, 50_000)},
    "table draws": Job(draw_from_table, 1_000_000_000, "draws", 1.0),
    "k-RR": Job(randomized_response_reports, 100_000_000, "reports", 1.0),
    "Hadamard": Job(hadamard_reports, 100_000_000, "reports", 1.0),
    "release": Job(release_table, 100_000_000, "rows", 1.5),
}


# ------------------------------------------------------------------ one process for each job


def cpu_seconds() -> float:
    """Return the CPU seconds of this process and of its finished child processes."""
    both = (resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    return sum(used.ru_utime + used.ru_stime for used in both)


def measure_job(name: str, size: int, folder: Path) -> dict[str, float]:
    """Run a job once, including loading and compiling."""
    cpu, start = cpu_seconds(), time.perf_counter()
    numbers = JOBS[name].run(size, folder)
    usage = {"CPU s": cpu_seconds() - cpu, "wall s": time.perf_counter() - start}
    usage["GiB"] = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    return usage | numbers


def job_lines(name: str, size: int, result: WorkerResult) -> list[Line]:
    """Return seconds and memory of a job; its other numbers are in the note."""
    job, title = JOBS[name], f"{name}, {size:.0e} {JOBS[name].unit}"
    others = {key: value for key, value in result.values.items() if key not in {"CPU s", "wall s", "GiB"}}
    note = result.failure or "; ".join(f"{key} {number_text(value)}" for key, value in others.items())
    memory = result.number("GiB")
    memory_line = Line("larger", title, "peak GiB", memory)
    return [
        Line("larger", title, "CPU s", result.number("CPU s"), note=note),
        Line("larger", title, "wall s", result.number("wall s")),
        memory_line.with_goal(f"{job.max_gibibytes:g}", met=memory <= job.max_gibibytes),
    ]


def main() -> int:
    """Run as a script or as a worker."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--job", action="append", choices=JOBS)
    parser.add_argument("--share", type=float, default=1.0, help="multiplies all sizes, for a trial")
    parser.add_argument(
        "--folder", type=Path, help="a folder with 10 GB free; by default the system's temporary folder"
    )
    parser.add_argument("--patience", type=float, default=3600.0, help="seconds after which a job is stopped")
    parser.add_argument("--worker", nargs=2, help=argparse.SUPPRESS)
    add_json_option(parser)
    options = parser.parse_args()
    if options.worker:
        name, size_text = options.worker
        print(json.dumps(measure_job(name, int(size_text), options.folder)))
        return 0
    lines: list[Line] = []
    with tempfile.TemporaryDirectory(dir=options.folder) as folder:
        for name in options.job or JOBS:
            size = max(1, round(JOBS[name].size * options.share))
            command = [sys.executable, __file__, "--worker", name, str(size), "--folder", folder]
            result = run_worker(command, timeout=options.patience)
            lines += job_lines(name, size, result)
            numbers = "  ".join(f"{key} {value:.4g}" for key, value in result.values.items())
            print(f"{name:14} {size:>13,} {JOBS[name].unit:14} {result.failure or numbers}", flush=True)
            write_results(options.json, lines)
    return exit_status(lines)


if __name__ == "__main__":
    sys.exit(main())
