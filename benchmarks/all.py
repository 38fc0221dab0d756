"""Every benchmark beside its peers, one area after the other; the results are docs/benchmarks.md.

    python benchmarks/all.py                 # 30 to 45 minutes on two idle cores
    python benchmarks/all.py --small         # a trial of the machinery in a few minutes; its numbers say little
    python benchmarks/all.py --full          # the long sizes: hours
    python benchmarks/all.py --only noise local    # tables alone; a page only where --page FILE asks for one

The peers' environments are made first, in ``.peers``, from ``benchmarks/peers/*.txt``. Who cannot be installed is named
and skipped. An area that fails or takes too long is reported, and the others go on; the exit code is 1 then. What each
script printed is in ``.benchmarks/AREA.log``, its rows in ``.benchmarks/AREA.json``.
"""

from __future__ import annotations

import argparse
import importlib.metadata
import os
import shlex
import signal
import subprocess
import sys
import time
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

import environments
from lines import Findings, in_text, read, remarks
from page import Circumstances, Done, machine, page

BENCHMARKS = Path(__file__).resolve().parent
ROOT = BENCHMARKS.parent
RESULTS, PAGE = ROOT / ".benchmarks", ROOT / "docs" / "benchmarks.md"
SIZES = ("small", "usual", "full")
MINUTES = {"small": 20.0, "usual": 44.0, "full": 24 * 60.0}
"""When the last area is stopped, making environments included."""
FOR_PEERS = 10.0
"""Minutes for making environments; whoever is not there by then is missing."""
SAID = {
    "small": "**A trial of the machinery with small sizes: most jobs are left out, and the numbers say little.**",
    "usual": "",
    "full": "The long sizes.",
}
HEADLINE = {
    "accounting": ("dp-accounting", "prv-accountant", "riskcal"),
    "diffprivlib": ("diffprivlib",),
    "local": ("pure-ldp", "multi-freq-ldpy"),
    "opendp": ("opendp", "polars"),
    "qif": ("qif",),
    "smartnoise": ("smartnoise-sql", "opendp"),
    "tumult": ("tmlt.analytics", "tmlt.core"),
}


@dataclass(frozen=True)
class Area:
    """A script and its settings, by size ("~" is a space); ``option``: how each of its peers is said.

    ``sizes``: the runs that it is part of.
    """

    name: str
    small: str = ""
    usual: str = ""
    full: str = ""
    option: str = ""
    peers: tuple[str, ...] = ()
    sizes: tuple[str, ...] = SIZES

    @property
    def title(self) -> str:
        return self.name.replace("_", " ").capitalize()

    def command(self, size: str, there: set[str]) -> list[str]:
        script = str(BENCHMARKS / f"{self.name}.py")
        return [sys.executable, script, *self.settings(size), *self.beside(there), "--json", str(self.rows)]

    def beside(self, there: set[str]) -> list[str]:
        """Environments that are missing are left out; ours, which has no peers, instead of an only one."""
        found = {name: str(environments.interpreter(name)) for name in self.peers if name in there}
        if self.option == ONLY and not found:
            found = {"": sys.executable}
        return [word.format(name=name, python=python) for name, python in found.items() for word in self.option.split()]

    def settings(self, size: str) -> list[str]:
        said: str = {"small": self.small, "usual": self.usual, "full": self.full}[size]
        return [word.replace("~", " ") for word in said.split()]

    @property
    def rows(self) -> Path:
        return RESULTS / f"{self.name}.json"

    @property
    def log(self) -> Path:
        return RESULTS / f"{self.name}.log"


ONLY, OPENDP, NAMED = "--peers {python}", "--opendp {python}", "--peer {name}={python}"
AREAS = (
    Area("accounting", "--job laplace~x10 --job gaussian~x100 --repeat 2", "--repeat 5 --timeout 60",
         "--repeat 9 --timeout 600", ONLY, ("accounting",)),
    Area("small_rates", "--only 0 7 12 --repeat 1", "--repeat 5", "--repeat 9"),
    Area("noise", "--job table~of~50 --job discrete~Gaussian~10 --size 1000000 --repeat 2", "--repeat 5",
         "--repeat 5 --size 200000000", ONLY, ("opendp",)),
    Area("composed_noise", "--budget 1 1e-4 --releases 2 10"),
    Area("local", "--job k-RR --job Hadamard --repeat 1 --runs 20", "--repeat 5 --runs 200",
         "--repeat 9 --runs 1000", ONLY, ("local",)),
    Area("collection", "--rows 1e6", "--rows 1e7", "--rows 1e8"),
    Area("transport", "--job grid~50x50 --job metric~map~4x4 --repeat 1", "--repeat 3", "--repeat 5", ONLY, ("qif",)),
    Area("release", "--rows 100000 --repeat 1", "--rows 1000000 --repeat 3", "--rows 10000000 --repeat 5",
         OPENDP, ("opendp",)),
    Area("jobs", "--releases 4 --patience 2 --only ages median_income", "--releases 60 --patience 4",
         "--releases 200 --patience 600", NAMED, ("opendp", "diffprivlib", "smartnoise")),
    Area("ledger", "1000", "100000", "1000000"),
    Area("studio"),
    Area("audits", "--runs 500", "--runs 20000", "--runs 100000",
         NAMED, ("diffprivlib", "opendp", "smartnoise", "tumult")),
    Area("larger", "--share 0.0001", sizes=("small", "full")),
    Area("executors", sizes=("full",)),
)  # fmt: skip


# ------------------------------------------------------------------ running


def peers(names: list[str]) -> dict[str, str]:
    """What to say of each environment; it begins with "not" where it is missing."""
    said, deadline = {}, time.monotonic() + 60 * FOR_PEERS
    for name in names:
        why = environments.made(name, deadline)
        pinned = environments.versions(name)
        shown = ", ".join(f"{package} {pinned[package]}" for package in HEADLINE[name])
        said[name] = f"not installed here, {why} ({shown})" if why else shown
        progress(f"peer {name}: {said[name]}")
    return said


def run(area: Area, size: str, there: set[str], patience: float) -> Done:
    """The area in a process of its own, ended with its children when time is up."""
    area.rows.unlink(missing_ok=True)
    began, command = time.perf_counter(), area.command(size, there)
    with area.log.open("w", encoding="utf-8") as log:
        child = subprocess.Popen(command, stdout=log, stderr=subprocess.STDOUT, cwd=ROOT, start_new_session=True)
        try:
            code = child.wait(max(patience, 1))
            failed = f"ended with code {code}: {last(area.log)}" if code else ""
        except subprocess.TimeoutExpired:
            failed = f"stopped after {patience / 60:.0f} minutes"
        finally:
            stop(child)
    try:
        findings = read(area.rows)
    except (OSError, ValueError, TypeError, KeyError) as error:
        findings, failed = Findings(()), failed or f"left no rows ({type(error).__name__})"
    shown = shlex.join(["python", f"benchmarks/{area.name}.py", *area.settings(size)])
    return Done(area.title, shown, findings, time.perf_counter() - began, failed)


def _all_of(size: str) -> list[str]:
    return [area.name for area in AREAS if size in area.sizes]


def stop(child: subprocess.Popen[bytes]) -> None:
    """It and what it started; nothing where it has ended."""
    if child.poll() is None:
        os.killpg(child.pid, signal.SIGKILL)
        child.wait()


def last(log: Path) -> str:
    lines = log.read_text(encoding="utf-8", errors="replace").strip().splitlines() or ["said nothing"]
    return lines[-1][:160]


def progress(text: str) -> None:
    spent = int(time.perf_counter() - BEGAN)
    print(f"[{spent // 60:3d}:{spent % 60:02d}] {text}", flush=True)


def shown(done: Done) -> str:
    """What a terminal sees of an area."""
    said = [f"  - {text}" for text in (*done.findings.notes, *remarks(done.findings.lines))]
    failed = [f"NOT WHOLE: {done.failed}"] if done.failed else []
    return "\n".join(["", f"== {done.title} ({done.command})", *failed, in_text(done.findings.lines), *said, ""])


BEGAN = time.perf_counter()


def main() -> int:
    asked = arguments()
    size = "small" if asked.small else "full" if asked.full else "usual"
    load, date = os.getloadavg()[0], datetime.now(UTC).strftime("%Y-%m-%d")
    RESULTS.mkdir(exist_ok=True)
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    areas = [area for area in AREAS if area.name in (asked.only or _all_of(size))]
    said = peers(sorted({name for area in areas for name in area.peers}))
    there = {name for name, text in said.items() if not text.startswith("not")}
    said["POT (an extra of ours)"] = importlib.metadata.version("pot")
    finished = []
    for number, area in enumerate(areas, 1):
        progress(f"area {number} of {len(areas)}: {area.title} ...")
        finished.append(run(area, size, there, 60 * MINUTES[size] - (time.perf_counter() - BEGAN)))
        print(shown(finished[-1]), flush=True)
        progress(f"{area.title}: {finished[-1].failed or 'done'}, {finished[-1].seconds:.0f} s")
    when = Circumstances(date, machine(), load, (time.perf_counter() - BEGAN) / 60, SAID[size])
    target = asked.page or (None if asked.only else PAGE)
    if target:
        target.write_text(page(when, finished, said), encoding="utf-8")
        progress(f"wrote {target}")
    failed = [done.title for done in finished if done.failed]
    progress(f"not whole: {', '.join(failed)}" if failed else "all areas done")
    return int(bool(failed))


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    sizes = parser.add_mutually_exclusive_group()
    sizes.add_argument("--small", action="store_true", help="a trial in a few minutes")
    sizes.add_argument("--full", action="store_true", help="the long sizes")
    parser.add_argument("--only", nargs="+", choices=[area.name for area in AREAS], metavar="AREA")
    parser.add_argument("--page", type=Path, help="where the page goes; by default docs/benchmarks.md")
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
