"""What is larger than memory, or than patience: each job once, in a process of its own, with a bound on memory.

    python benchmarks/larger.py [--job NAME ...] [--share 0.001] [--folder DIR] [--patience 3600]

- An exact coupling of points in the plane, 10 000 to 50 000 a side: its gap to the proof, which prices every pair.
- 10⁹ draws from a table of 500 weights, and 10⁸ reports made and counted (of 1024 categories, ε = 1), in batches.
- ``tightrope release`` as a command, of 10⁸ rows in Parquet (benchmarks/release.py makes them): count and mean by key.

Memory is the most that the process ever held, libraries included. ``--share`` makes every job as much smaller, as a
trial; the folder needs 5 GB for 10⁸ rows, and as much again for what DuckDB puts aside.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from lines import Line, number, option, write

BATCH = 10_000_000
K, EPSILON = 1024, 1.0
Work = Callable[[int, Path], dict[str, float]]
"""From how many and a folder: numbers beside seconds and memory."""


@dataclass(frozen=True)
class Job:
    """``size``: how many of ``what``; ``gibibytes``: the memory that is allowed, libraries included."""

    work: Work
    size: int
    what: str
    gibibytes: float


# ------------------------------------------------------------------ the jobs


def plane(size: int, folder: Path) -> dict[str, float]:
    from transport import plane as problem

    from tightrope import transport

    given = problem(size)
    found = transport.coupling(given.source, given.target, transport.points(given.x, given.y))
    return {"gap": found.gap / found.cost}


def draws(size: int, folder: Path) -> dict[str, float]:
    from tightrope.mechanisms.discrete.noise_table import NoiseTable

    table = NoiseTable.from_probabilities([1 / (1 + x / 250) ** 2 for x in range(250)])
    assert sum(len(table.sample(many)) for many in batches(size)) == size
    return {}


def reports(name: str) -> Work:
    def work(size: int, folder: Path) -> dict[str, float]:
        from tightrope import local

        mechanism = getattr(local, name)(EPSILON, K)
        values = np.random.default_rng(1).integers(0, K, min(size, BATCH))
        tallies = [mechanism.tally(mechanism.perturb(values[:many])) for many in batches(size)]
        tally = sum(tallies[1:], tallies[0])
        assert tally.people == size
        off = mechanism.estimate_tally(tally).value - 1 / K
        return {"mean squared error": float(np.mean(off**2))}

    return work


def batches(size: int) -> Iterator[int]:
    """Ten million at a time: what is kept of them is counts."""
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


def rows(size: int, folder: Path) -> dict[str, float]:
    """The command; the file is made by another process, whose memory is not counted."""
    path, plan = folder / f"people_{size}.parquet", folder / "plan.toml"
    plan.write_text(PLAN.format(path=json.dumps(str(path))), encoding="utf-8")
    if not path.exists():
        code = f"from pathlib import Path; from release import generate; generate(Path({str(path)!r}), {size})"
        subprocess.run([sys.executable, "-c", code], check=True, cwd=Path(__file__).parent)
    before, started = spent(), time.perf_counter()
    command = [sys.executable, "-m", "tightrope", "release", str(plan), "--out", str(folder / "out")]
    child = subprocess.Popen(command, stdout=subprocess.DEVNULL)
    _, status, used = os.wait4(child.pid, 0)
    assert status == 0, status
    return {"CPU s": spent() - before, "wall s": time.perf_counter() - started, "GiB": used.ru_maxrss / 2**20}


JOBS: dict[str, Job] = {
    **{f"plane {size}": Job(plane, size, "points a side", 2.0) for size in (10_000, 20_000, 50_000)},
    "table draws": Job(draws, 1_000_000_000, "draws", 1.0),
    "k-RR": Job(reports("k_randomized_response"), 100_000_000, "reports", 1.0),
    "Hadamard": Job(reports("hadamard"), 100_000_000, "reports", 1.0),
    "release": Job(rows, 100_000_000, "rows", 1.5),
}


# ------------------------------------------------------------------ one process a job


def spent() -> float:
    """CPU seconds of this process and of those that it waited for."""
    both = (resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    return sum(used.ru_utime + used.ru_stime for used in both)


def measure(name: str, size: int, folder: Path) -> dict[str, float]:
    """Once, loading and compiling included."""
    before, started = spent(), time.perf_counter()
    said = JOBS[name].work(size, folder)
    usual = {"CPU s": spent() - before, "wall s": time.perf_counter() - started}
    usual["GiB"] = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    return usual | said


def asked(name: str, size: int, folder: Path, patience: float) -> dict[str, Any]:
    """What the job says of itself, or ``failed``: why there is nothing."""
    command = [sys.executable, __file__, "--worker", name, str(size), "--folder", str(folder)]
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=patience)
    except subprocess.TimeoutExpired:
        return {"failed": f"no answer within {patience:.0f} s"}
    if done.returncode:
        return {"failed": (done.stderr.strip().splitlines() or [f"died ({done.returncode})"])[-1][:150]}
    return dict(json.loads(done.stdout.splitlines()[-1]))


def lines_of(name: str, size: int, said: dict[str, Any]) -> list[Line]:
    job, title = JOBS[name], f"{name}, {size:.0e} {JOBS[name].what}"
    note = said.get("failed") or "; ".join(f"{key} {number(said[key])}" for key in said if key not in USUAL)
    memory = said.get("GiB", math.nan)
    return [
        Line("larger", title, "CPU s", said.get("CPU s", math.nan), note=note),
        Line("larger", title, "wall s", said.get("wall s", math.nan)),
        Line("larger", title, "peak GiB", memory, goal=f"{job.gibibytes:g}", met=memory <= job.gibibytes),
    ]


USUAL = ("CPU s", "wall s", "GiB", "failed")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--job", action="append", choices=JOBS)
    parser.add_argument("--share", type=float, default=1.0, help="of every size: a trial")
    parser.add_argument("--folder", type=Path, help="where 10 GB fit; by default the system's temporary folder")
    parser.add_argument("--patience", type=float, default=3600.0, help="seconds after which a job is stopped")
    parser.add_argument("--worker", nargs=2, help=argparse.SUPPRESS)
    option(parser)
    options = parser.parse_args()
    if options.worker:
        name, size = options.worker
        print(json.dumps(measure(name, int(size), options.folder)))
        return
    found: list[Line] = []
    with tempfile.TemporaryDirectory(dir=options.folder) as folder:
        for name in options.job or JOBS:
            size = max(1, round(JOBS[name].size * options.share))
            found += lines_of(name, size, said := asked(name, size, Path(folder), options.patience))
            shown = said.get("failed") or "  ".join(f"{key} {value:.4g}" for key, value in said.items())
            print(f"{name:14} {size:>13,} {JOBS[name].what:14} {shown}", flush=True)
            write(options.json, found)


if __name__ == "__main__":
    main()
