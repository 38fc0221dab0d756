"""The jobs of examples/jobs: coverage of Tightrope's intervals, and errors compared with other tools.

    PYTHONPATH=src python benchmarks/jobs.py [--releases 200] [--folder DIR] [--only NAME ...]
        [--peer opendp=/path/to/python] [--peer diffprivlib=...] [--peer tumult=...] [--peer smartnoise=...]

Each peer runs in its own environment (``peers/NAME_peer.py``), on the same rows, bounded beforehand, with the same ε,
δ, clamping bounds and rows per person. The error of a release is the mean absolute error over its groups; a suppressed
count is taken as 0. The table has the median over all releases; of a peer with several methods, the best one. Rows in
which Tightrope is not first come first.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import runpy
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd
from job_tasks import TASKS, Task, group_errors, true_answers
from lines import Line, add_json_option, exit_status, write_results

import tightrope as tr  # noqa: F401 - loads the modules below in the right order
from tightrope.release.build_answers import AnswerBuilder, certificate_of
from tightrope.release.plan_file import load_plan_file
from tightrope.tables import attach_public_tables, open_source

EXAMPLES = Path(__file__).parents[1] / "examples"
EPSILON, DELTA, INFINITE = 1.0, 1e-8, float("inf")


@dataclass(frozen=True)
class PeerResult:
    """The median error of a peer. ``missing``: why the peer has no answer; ``caveat``: how its promise is weaker."""

    error: float
    releases: int = 0
    missing: str = ""
    caveat: str = ""
    standard_error: float = 0.0

    def __str__(self) -> str:
        return "–" if self.missing else f"{self.error:.3g}{'†' if self.caveat else ''}"


@dataclass(frozen=True)
class JobResult:
    """Coverage and median error of Tightrope on one job; ``standard_error`` is relative to the error."""

    covered: int
    intervals: int
    error: float
    standard_error: float
    peers: Mapping[str, PeerResult]

    @property
    def coverage(self) -> float:
        """The fraction of intervals that contain the true value."""
        return self.covered / self.intervals

    @property
    def best_peer_error(self) -> float:
        """The smallest error of a peer with the same promise."""
        return min((peer.error for peer in self.peers.values() if not peer.caveat), default=INFINITE)

    def to_line(self, name: str) -> Line:
        """Return the error compared with the best peer with the same promise; without one, with the best peer."""
        answered = {peer: result for peer, result in self.peers.items() if not result.missing}
        comparable = {peer: result for peer, result in answered.items() if not result.caveat} or answered
        best = min(comparable, key=lambda peer: comparable[peer].error, default="")
        result = comparable.get(best, PeerResult(INFINITE))
        others = [f"{peer} {other}" for peer, other in answered.items() if peer != best]
        others += [f"{peer}: {other.missing}" for peer, other in self.peers.items() if other.missing]
        chance = 2 * math.hypot(self.standard_error, result.standard_error)
        notes = [f"{self.coverage:.1%} of intervals cover the truth", f"chance moves the ratio by ± {chance:.0%}"]
        line = Line("jobs", name, "error, median", self.error, note="; ".join([*notes, *others]))
        return line.with_peer(best, result.error, result.caveat)


def make_tables(folder: Path) -> None:
    """Write the tables of the jobs, unless they exist."""
    makers = runpy.run_path(str(EXAMPLES / "make_data.py"))["TABLES"]
    for name in {task.table for task in TASKS.values()} | {"airports"}:
        if not (folder / f"{name}.parquet").exists():
            makers[f"jobs/{name}"]().to_parquet(folder / f"{name}.parquet", index=False)


def bounded_table(task: Task, folder: Path) -> pd.DataFrame:
    """Return the rows of the task's table after bounding contributions."""
    return task.bound_rows(pd.read_parquet(folder / f"{task.table}.parquet"))


def mean_error(task: Task, truth: dict[str, float], answer: dict[str, float]) -> float:
    """Return the mean absolute error of one release over its groups."""
    return statistics.fmean(list(group_errors(task, truth, answer)) or [INFINITE])


def measure_job(name: str, folder: Path, releases: int, peers: Sequence[str]) -> JobResult:
    """Measure Tightrope's noise: draw it repeatedly for the exact integers of the plan, without charging a budget."""
    task = TASKS[name]
    bounded = bounded_table(task, folder)
    truth = true_answers(task, task.neutral_rows(bounded))
    plan_folder = folder / f"{name}.plan"
    shutil.rmtree(plan_folder, ignore_errors=True)
    plan_folder.mkdir()
    bounded.to_parquet(plan_folder / f"{task.table}.parquet", index=False)
    shutil.copy(EXAMPLES / "jobs" / f"{name}.toml", plan_folder / "plan.toml")
    shutil.copy(folder / "airports.parquet", plan_folder)
    file = load_plan_file(plan_folder / "plan.toml")
    draft = file.release_plan().draft
    table = attach_public_tables(open_source(plan_folder / f"{task.table}.parquet"), file.public_tables())
    totals = [table.collect_totals(group.table_request) for group in draft.query_groups]
    draw_answers = AnswerBuilder(draft, certificate_of(draft)).build_answers
    covered, intervals, errors = 0, 0, []
    for _ in range(releases):
        answer = draw_answers(totals)[0]
        rows = {" ".join(str(row[by]) for by in answer.question.key_columns): row for row in answer.rows}
        checks = [interval_covers(row, truth[key]) for key, row in rows.items() if key in truth]
        covered, intervals = covered + sum(checks), intervals + len(checks)
        errors.append(mean_error(task, truth, {key: row["value"] for key, row in rows.items()}))
    results = {peer: peer_result(folder, name, peer) for peer in peers}
    return JobResult(covered, intervals, statistics.median(errors), median_standard_error(errors), results)


def interval_covers(row: dict[str, Any], truth: float) -> bool:
    """Return whether the interval contains the true value; a missing end is unlimited."""
    lower, upper = row["lower"], row["upper"]
    return (lower is None or lower <= truth) and (upper is None or truth <= upper)


def write_jobs(folder: Path, names: Sequence[str], releases: int) -> None:
    """Write the files that the peers read."""
    jobs = []
    for name in names:
        task = TASKS[name]
        task.neutral_rows(bounded_table(task, folder)).to_parquet(folder / f"{name}.parquet", index=False)
        settings = {key: getattr(task, key) for key in ("kind", "keys", "rows", "bounds", "of", "q", "k", "times")}
        jobs.append({"name": name, "releases": releases, "epsilon": EPSILON, "delta": DELTA, **settings})
    (folder / "jobs.json").write_text(json.dumps(jobs))


def run_peer(folder: Path, peer: str, python: str, patience: float) -> None:
    """Run a peer on all jobs; results that it leaves out count as missing."""
    start = time.perf_counter()
    script = str(Path(__file__).parent / f"peers/{peer}_peer.py")
    environment = {**os.environ, "PATIENCE": f"{patience:g}"}
    subprocess.run([python, script, str(folder)], check=False, stdout=sys.stderr, env=environment)
    print(f"{peer}: {time.perf_counter() - start:.0f} s", file=sys.stderr)


def peer_result(folder: Path, name: str, peer: str) -> PeerResult:
    """Return the result of the peer's best method, or why the peer has no answer."""
    path = folder / f"{name}.{peer}_peer.json"
    if not path.exists():
        return PeerResult(INFINITE, missing="did not finish")
    document = json.loads(path.read_text())
    if "answers" not in document:
        return PeerResult(INFINITE, missing=str(document.get("cannot") or document["failed"]))
    task = TASKS[name]
    truth = true_answers(task, task.neutral_rows(bounded_table(task, folder)))
    methods = [[mean_error(task, truth, answer) for answer in answers] for answers in document["answers"]]
    best = min(methods, key=statistics.median)
    releases, caveat = min(map(len, methods)), str(document.get("less") or "")
    return PeerResult(statistics.median(best), releases, "", caveat, median_standard_error(best))


def results_table(results: Mapping[str, JobResult], peers: Sequence[str]) -> str:
    """Return a table in Markdown; rows in which Tightrope is not first come first."""
    titles = ["job", "coverage", "Tightrope", *peers, "best other / ours"]
    rows = [f"| {' | '.join(titles)} |", "|---" * len(titles) + "|"]
    for name, job in sorted(results.items(), key=lambda item: item[1].best_peer_error / max(item[1].error, 1e-12)):
        ratio = f"{job.best_peer_error / job.error:.2f}" if job.error and job.best_peer_error < INFINITE else "–"
        cells = [name, f"{job.coverage:.1%}", f"{job.error:.3g}", *(str(job.peers[peer]) for peer in peers), ratio]
        rows.append(f"| {' | '.join(cells)} |")
    return "\n".join(rows)


def release_notes(results: Mapping[str, JobResult], releases: int) -> list[str]:
    """Return the numbers of releases behind the medians."""
    made = {f"{name} {peer}": result.releases for name, job in results.items() for peer, result in job.peers.items()}
    fewer = [f"{name} {number}" for name, number in made.items() if 0 < number < releases]
    if fewer:
        return [f"{releases} releases of ours; fewer of a peer that had no time for all: {', '.join(fewer)}"]
    return [f"{releases} releases of each"]


def median_standard_error(errors: Sequence[float]) -> float:
    """Return the relative standard error of the median, from the quartiles, as if the errors were normal."""
    median = statistics.median(errors)
    if len(errors) < 2 or not median:
        return 0.0
    low, _, high = statistics.quantiles(errors, n=4)
    return float(1.2533 * (high - low) / 1.349 / math.sqrt(len(errors)) / median)


def main() -> int:
    """Run the peers and Tightrope on the jobs; return the exit code."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--releases", type=int, default=200)
    parser.add_argument("--folder", type=Path)
    parser.add_argument("--patience", type=float, default=60, help="seconds for one method of a peer on one job")
    parser.add_argument("--again", action="store_true", help="use the peers' results in the folder")
    parser.add_argument("--only", nargs="*", choices=TASKS, default=list(TASKS))
    parser.add_argument("--peer", action="append", default=[], help="NAME=PYTHON")
    add_json_option(parser)
    options = parser.parse_args()
    peers = dict(peer.split("=", 1) for peer in options.peer)
    with tempfile.TemporaryDirectory() as temporary:
        folder = options.folder or Path(temporary)
        folder.mkdir(parents=True, exist_ok=True)
        make_tables(folder)
        write_jobs(folder, options.only, options.releases)
        for peer, python in () if options.again else peers.items():
            run_peer(folder, peer, python, options.patience)
        results = {name: measure_job(name, folder, options.releases, list(peers)) for name in options.only}
    print(results_table(results, list(peers)))
    lines = [job.to_line(name) for name, job in results.items()]
    write_results(options.json, lines, release_notes(results, options.releases))
    for name, job in results.items():
        for peer, result in job.peers.items():
            print(f"{name}: {peer}: {result.missing or result.caveat or f'{result.releases} releases'}")
    return exit_status(lines)


if __name__ == "__main__":
    sys.exit(main())
