"""The jobs of examples/jobs: how often our intervals hold the truth, and our errors beside those of other tools.

    PYTHONPATH=src python benchmarks/jobs.py [--releases 200] [--folder DIR] [--only NAME ...]
        [--peer opendp=/path/to/python] [--peer diffprivlib=...] [--peer tumult=...] [--peer smartnoise=...]

Each peer runs in an environment of its own (``peers/NAME_peer.py``), on the same rows, bounded beforehand, with the
same ε, δ, clamps and rows of a person. The error of a release is the mean of |error| over the groups that there are – a
count that is withheld is taken for 0 – and the table has the median over all releases; of a peer with several ways, the
best. Rows where we are not first come first.
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
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd
from lines import Line, option, write
from peers.tasks import TASKS, Task, errors, truths

import tightrope as tr  # noqa: F401 - the rooms below load by it
from tightrope.release.build_answers import AnswerBuilder, certificate_of
from tightrope.release.plan_file import load_plan_file
from tightrope.tables import attach_public_tables, open_source

EXAMPLES = Path(__file__).parents[1] / "examples"
EPSILON, DELTA, INFINITE = 1.0, 1e-8, float("inf")


@dataclass
class Beside:
    """A peer's error; why there is none, or in which way it promises less."""

    error: float
    releases: int = 0
    why: str | None = None
    less: str | None = None
    wobble: float = 0.0

    def __str__(self) -> str:
        return "–" if self.why else f"{self.error:.3g}{'†' if self.less else ''}"


@dataclass
class Found:
    """One job: our coverage and error, and the error of each peer or why there is none."""

    held: int
    asked: int
    ours: float
    peers: dict[str, Beside]
    wobble: float = 0.0

    @property
    def best(self) -> float:
        """The smallest error of a peer that promises as much."""
        return min((one.error for one in self.peers.values() if one.less is None), default=INFINITE)

    def line(self, name: str) -> Line:
        """The same beside the best peer that promises as much; where there is none, the best of those that do not."""
        whole = {peer: one for peer, one in self.peers.items() if one.why is None}
        much = {peer: one for peer, one in whole.items() if one.less is None} or whole
        peer = min(much, key=lambda one: much[one].error, default="")
        beside = {"peer": peer, "theirs": much[peer].error, "less": much[peer].less or ""} if peer else {}
        rest = [f"{other} {one}" for other, one in whole.items() if other != peer]
        rest += [f"{other}: {one.why}" for other, one in self.peers.items() if one.why]
        held = f"{self.held / self.asked:.1%} of intervals held the truth"
        chance = 2 * math.hypot(self.wobble, much[peer].wobble if peer else 0.0)
        said = [held, f"chance moves the ratio by ± {chance:.0%}", *rest]
        return Line("jobs", name, "error, median", self.ours, **beside, note="; ".join(said))


def tables(folder: Path) -> None:
    """The tables of the jobs, made once."""
    made = runpy.run_path(str(EXAMPLES / "make_data.py"))["TABLES"]
    for name in {task.table for task in TASKS.values()} | {"airports"}:
        if not (folder / f"{name}.parquet").exists():
            made[f"jobs/{name}"]().to_parquet(folder / f"{name}.parquet", index=False)


def mean_error(task: Task, truth: dict[str, float], answer: dict[str, float]) -> float:
    """Of one release, over its groups."""
    return statistics.fmean(list(errors(task, truth, answer)) or [INFINITE])


def ours(name: str, folder: Path, releases: int) -> Found:
    """Drawn anew from the integers that the plan file's request counts, without a charge: a measurement of noise."""
    task = TASKS[name]
    bounded = task.bounded(pd.read_parquet(folder / f"{task.table}.parquet"))
    truth = truths(task, task.neutral(bounded))
    work = folder / f"{name}.plan"
    shutil.rmtree(work, ignore_errors=True)
    work.mkdir()
    bounded.to_parquet(work / f"{task.table}.parquet", index=False)
    shutil.copy(EXAMPLES / "jobs" / f"{name}.toml", work / "plan.toml")
    shutil.copy(folder / "airports.parquet", work)
    file = load_plan_file(work / "plan.toml")
    draft = file.release_plan().draft
    table = attach_public_tables(open_source(work / f"{task.table}.parquet"), file.public_tables())
    exact = [table.collect_totals(asked.table_request) for asked in draft.tasks]
    draw = AnswerBuilder(draft, certificate_of(draft)).build_answers
    answers = [draw(exact)[0] for _ in range(releases)]
    held, asked, measured = 0, 0, []
    for answer in answers:
        rows = {" ".join(str(row[by]) for by in answer.question.key_columns): row for row in answer.rows}
        known = [inside(row, truth[key]) for key, row in rows.items() if key in truth]
        held, asked = held + sum(known), asked + len(known)
        values = {key: row["value"] for key, row in rows.items()}
        measured.append(mean_error(task, truth, values))
    return Found(held, asked, statistics.median(measured), {}, wobble(measured))


def inside(row: dict[str, Any], truth: float) -> bool:
    """Whether the interval holds it; an end that is missing has no limit."""
    lower, upper = row["lower"], row["upper"]
    return (lower is None or lower <= truth) and (upper is None or truth <= upper)


def write_jobs(folder: Path, names: list[str], releases: int) -> None:
    """What the peers read."""
    jobs = []
    for name in names:
        task = TASKS[name]
        bounded = task.bounded(pd.read_parquet(folder / f"{task.table}.parquet"))
        task.neutral(bounded).to_parquet(folder / f"{name}.parquet", index=False)
        said = {key: getattr(task, key) for key in ("kind", "keys", "rows", "bounds", "of", "q", "k", "times")}
        jobs.append({"name": name, "releases": releases, "epsilon": EPSILON, "delta": DELTA, **said})
    (folder / "jobs.json").write_text(json.dumps(jobs))


def peer_error(folder: Path, name: str, peer: str) -> Beside:
    """The best of the peer's ways, or why there is none."""
    place = folder / f"{name}.{peer}_peer.json"
    if not place.exists():
        return Beside(INFINITE, why="did not finish")
    said = json.loads(place.read_text())
    if "answers" not in said:
        return Beside(INFINITE, why=str(said.get("cannot") or said["failed"]))
    task = TASKS[name]
    bounded = task.bounded(pd.read_parquet(folder / f"{task.table}.parquet"))
    truth = truths(task, task.neutral(bounded))
    ways = [[mean_error(task, truth, one) for one in way] for way in said["answers"]]
    best = min(ways, key=statistics.median)
    return Beside(statistics.median(best), min(map(len, ways)), less=said.get("less"), wobble=wobble(best))


def table(found: dict[str, Found], peers: list[str]) -> str:
    """Markdown; rows where we are not first come first."""
    lines = [f"| job | held the truth | Tightrope | {' | '.join(peers)} | best other / ours |"]
    lines.append("|---" * (len(peers) + 4) + "|")
    for name, one in sorted(found.items(), key=lambda item: item[1].best / max(item[1].ours, 1e-12)):
        shown = [str(one.peers[peer]) for peer in peers]
        times = f"{one.best / one.ours:.2f}" if one.ours and one.best < INFINITE else "–"
        held = f"{100 * one.held / one.asked:.1f} %"
        lines.append(f"| {name} | {held} | {one.ours:.3g} | {' | '.join(shown)} | {times} |")
    return "\n".join(lines)


def notes(found: dict[str, Found], releases: int) -> list[str]:
    """How many releases stand behind the medians."""
    made = {f"{name} {peer}": one.releases for name, job in found.items() for peer, one in job.peers.items()}
    few = [f"{name} {many}" for name, many in made.items() if 0 < many < releases]
    said = [f"{releases} releases of ours; where those of a peer did not fit into its time: {', '.join(few)}"]
    return said if few else [f"{releases} releases of each"]


def wobble(measured: list[float]) -> float:
    """The standard error of a median of so many, as a share of it; what quartiles tell, as if they were normal."""
    middle = statistics.median(measured)
    if len(measured) < 2 or not middle:
        return 0.0
    low, _, high = statistics.quantiles(measured, n=4)
    return 1.2533 * (high - low) / 1.349 / len(measured) ** 0.5 / middle


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--releases", type=int, default=200)
    parser.add_argument("--folder", type=Path)
    parser.add_argument("--patience", type=float, default=60, help="seconds of a peer for one way of a job")
    parser.add_argument("--again", action="store_true", help="take what peers have left in the folder")
    parser.add_argument("--only", nargs="*", choices=TASKS, default=list(TASKS))
    parser.add_argument("--peer", action="append", default=[], help="NAME=PYTHON")
    option(parser)
    options = parser.parse_args()
    peers = dict(peer.split("=", 1) for peer in options.peer)
    with tempfile.TemporaryDirectory() as temporary:
        folder = options.folder or Path(temporary)
        folder.mkdir(parents=True, exist_ok=True)
        tables(folder)
        write_jobs(folder, options.only, options.releases)
        for peer, python in () if options.again else peers.items():
            began = time.perf_counter()
            script = str(Path(__file__).parent / f"peers/{peer}_peer.py")
            environment = {**os.environ, "PATIENCE": f"{options.patience:g}"}
            subprocess.run([python, script, str(folder)], check=False, stdout=sys.stderr, env=environment)
            print(f"{peer}: {time.perf_counter() - began:.0f} s", file=sys.stderr)
        found = {name: ours(name, folder, options.releases) for name in options.only}
        for name, one in found.items():
            one.peers = {peer: peer_error(folder, name, peer) for peer in peers}
        print(table(found, list(peers)))
        write(options.json, [one.line(name) for name, one in found.items()], notes(found, options.releases))
        for name, one in found.items():
            for peer, beside in one.peers.items():
                print(f"{name}: {peer}: {beside.why or beside.less or f'{beside.releases} releases'}")


if __name__ == "__main__":
    main()
