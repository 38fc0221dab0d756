"""Run all benchmarks, one area after the other, and write the results to docs/benchmarks.md.

    python benchmarks/all.py                 # 30 to 45 minutes on two idle cores
    python benchmarks/all.py --small         # a check that everything runs, in a few minutes; its numbers mean little
    python benchmarks/all.py --full          # the largest sizes: hours
    python benchmarks/all.py --only noise local    # some areas; a page is written only with --page FILE

The peers' environments are made first, in ``.peers``, from ``benchmarks/peers/*.txt``. Peers that cannot be installed
are listed and skipped. If an area fails or takes too long, this is reported, the others run, and the exit code is 1.
The output of each script is in ``.benchmarks/AREA.log``, its lines in ``.benchmarks/AREA.json``.
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
from lines import AreaResults, notes_of_lines, read_results, text_table
from page import AreaRun, RunConditions, describe_machine, results_page
from workers import last_line

BENCHMARKS = Path(__file__).resolve().parent
ROOT = BENCHMARKS.parent
RESULTS, PAGE = ROOT / ".benchmarks", ROOT / "docs" / "benchmarks.md"
SIZES = ("small", "usual", "full")
TOTAL_MINUTES = {"small": 20.0, "usual": 44.0, "full": 24 * 60.0}
"""After this time the last area is stopped; it includes making environments."""
INSTALL_MINUTES = 10.0
"""Peers that are not installed after this time count as missing."""
SIZE_NOTES = {
    "small": "**A check that everything runs, with small sizes: most jobs are left out, and the numbers mean little.**",
    "usual": "",
    "full": "The largest sizes.",
}
SHOWN_VERSIONS = {
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
    """A script and its settings for each size ("~" is a space).

    ``peer_option`` is the option that passes a peer's interpreter; ``sizes`` lists the runs that include this area.
    """

    name: str
    small: str = ""
    usual: str = ""
    full: str = ""
    peer_option: str = ""
    peers: tuple[str, ...] = ()
    sizes: tuple[str, ...] = SIZES

    @property
    def title(self) -> str:
        """The heading of the area."""
        return self.name.replace("_", " ").capitalize()

    def command(self, size: str, available_peers: set[str]) -> list[str]:
        """Return the command that runs the script."""
        script = str(BENCHMARKS / f"{self.name}.py")
        options = [*self.settings(size), *self.peer_arguments(available_peers)]
        return [sys.executable, script, *options, "--json", str(self.results_file)]

    def peer_arguments(self, available_peers: set[str]) -> list[str]:
        """Return the options for the available peers.

        A script with one environment for all peers gets this interpreter if that is missing: otherwise it would use a
        default one.
        """
        pythons = {name: str(environments.peer_python(name)) for name in self.peers if name in available_peers}
        if self.peer_option == PEERS_OPTION and not pythons:
            pythons = {"": sys.executable}
        words = self.peer_option.split()
        return [word.format(name=name, python=python) for name, python in pythons.items() for word in words]

    def settings(self, size: str) -> list[str]:
        """Return the options of this size."""
        settings: str = {"small": self.small, "usual": self.usual, "full": self.full}[size]
        return [word.replace("~", " ") for word in settings.split()]

    @property
    def results_file(self) -> Path:
        """The file of the area's lines."""
        return RESULTS / f"{self.name}.json"

    @property
    def log_file(self) -> Path:
        """The file of the script's output."""
        return RESULTS / f"{self.name}.log"


PEERS_OPTION, OPENDP_OPTION, NAMED_OPTION = "--peers {python}", "--opendp {python}", "--peer {name}={python}"
AREAS = (
    Area("accounting", "--job laplace~x10 --job gaussian~x100 --repeat 2", "--repeat 5 --timeout 60",
         "--repeat 9 --timeout 600", PEERS_OPTION, ("accounting",)),
    Area("small_rates", "--only 0 7 12 --repeat 1", "--repeat 5", "--repeat 9"),
    Area("noise", "--job table~of~50 --job discrete~Gaussian~10 --size 1000000 --repeat 2", "--repeat 5",
         "--repeat 5 --size 200000000", PEERS_OPTION, ("opendp",)),
    Area("composed_noise", "--budget 1 1e-4 --releases 2 10"),
    Area("local", "--job k-RR --job Hadamard --repeat 1 --runs 20", "--repeat 5 --runs 200",
         "--repeat 9 --runs 1000", PEERS_OPTION, ("local",)),
    Area("collection", "--rows 1e6", "--rows 1e7", "--rows 1e8"),
    Area("transport", "--job grid~50x50 --job metric~map~4x4 --repeat 1", "--repeat 3", "--repeat 5",
         PEERS_OPTION, ("qif",)),
    Area("release", "--rows 100000 --repeat 1", "--rows 1000000 --repeat 3", "--rows 10000000 --repeat 5",
         OPENDP_OPTION, ("opendp",)),
    Area("jobs", "--releases 4 --patience 2 --only ages median_income", "--releases 60 --patience 4",
         "--releases 200 --patience 600", NAMED_OPTION, ("opendp", "diffprivlib", "smartnoise")),
    Area("ledger", "1000", "100000", "1000000"),
    Area("studio"),
    Area("audits", "--runs 500", "--runs 20000", "--runs 100000",
         NAMED_OPTION, ("diffprivlib", "opendp", "smartnoise", "tumult")),
    Area("larger", "--share 0.0001", sizes=("small", "full")),
    Area("executors", sizes=("full",)),
)  # fmt: skip


# ------------------------------------------------------------------ running


def prepare_peers(names: list[str]) -> tuple[dict[str, str], set[str]]:
    """Make the environments; return the text about each, and the names of those that are available."""
    texts, available, deadline = {}, set(), time.monotonic() + 60 * INSTALL_MINUTES
    for name in names:
        failure = environments.make_environment(name, deadline)
        pinned = environments.pinned_versions(name)
        versions = ", ".join(f"{package} {pinned[package]}" for package in SHOWN_VERSIONS[name])
        texts[name] = f"not installed here, {failure} ({versions})" if failure else versions
        available |= set() if failure else {name}
        print_progress(f"peer {name}: {texts[name]}")
    return texts, available


def run_area(area: Area, size: str, available_peers: set[str], timeout: float) -> AreaRun:
    """Run the area's script, and stop it with its child processes after ``timeout`` seconds."""
    area.results_file.unlink(missing_ok=True)
    start, command = time.perf_counter(), area.command(size, available_peers)
    with area.log_file.open("w", encoding="utf-8") as log:
        script = subprocess.Popen(command, stdout=log, stderr=subprocess.STDOUT, cwd=ROOT, start_new_session=True)
        try:
            code = script.wait(max(timeout, 1))
            failure = f"ended with code {code}: {last_log_line(area.log_file)}" if code else ""
        except subprocess.TimeoutExpired:
            failure = f"stopped after {timeout / 60:.0f} minutes"
        finally:
            stop_script(script)
    try:
        results = read_results(area.results_file)
    except (OSError, ValueError, TypeError, KeyError) as error:
        results, failure = AreaResults(()), failure or f"wrote no results ({type(error).__name__})"
    shown = shlex.join(["python", f"benchmarks/{area.name}.py", *area.settings(size)])
    return AreaRun(area.title, shown, results, time.perf_counter() - start, failure)


def stop_script(script: subprocess.Popen[bytes]) -> None:
    """Kill the script and the processes that it started, unless it has ended."""
    if script.poll() is None:
        os.killpg(script.pid, signal.SIGKILL)
        script.wait()


def last_log_line(log: Path) -> str:
    """Return the last line of a script's output."""
    return last_line(log.read_text(encoding="utf-8", errors="replace")) or "no output"


def print_progress(text: str) -> None:
    """Print a text with the time since the start."""
    seconds = int(time.perf_counter() - START)
    print(f"[{seconds // 60:3d}:{seconds % 60:02d}] {text}", flush=True)


def area_text(run: AreaRun) -> str:
    """Return an area's results for a terminal."""
    notes = [f"  - {text}" for text in (*run.results.notes, *notes_of_lines(run.results.lines))]
    failure = [f"INCOMPLETE: {run.failure}"] if run.failure else []
    return "\n".join(["", f"== {run.title} ({run.command})", *failure, text_table(run.results.lines), *notes, ""])


START = time.perf_counter()


def main() -> int:
    """Run the areas and write the page; return 1 if one failed."""
    options = parse_arguments()
    size = "small" if options.small else "full" if options.full else "usual"
    load, date = os.getloadavg()[0], datetime.now(UTC).strftime("%Y-%m-%d")
    RESULTS.mkdir(exist_ok=True)
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    areas = [area for area in AREAS if (area.name in options.only if options.only else size in area.sizes)]
    peer_texts, available = prepare_peers(sorted({name for area in areas for name in area.peers}))
    peer_texts["POT (an optional dependency of Tightrope)"] = importlib.metadata.version("pot")
    runs = []
    for number, area in enumerate(areas, 1):
        print_progress(f"area {number} of {len(areas)}: {area.title} ...")
        runs.append(run_area(area, size, available, 60 * TOTAL_MINUTES[size] - (time.perf_counter() - START)))
        print(area_text(runs[-1]), flush=True)
        print_progress(f"{area.title}: {runs[-1].failure or 'done'}, {runs[-1].seconds:.0f} s")
    minutes = (time.perf_counter() - START) / 60
    conditions = RunConditions(date, describe_machine(), load, minutes, SIZE_NOTES[size])
    target = options.page or (None if options.only else PAGE)
    if target:
        target.write_text(results_page(conditions, runs, peer_texts), encoding="utf-8")
        print_progress(f"wrote {target}")
    failed = [run.title for run in runs if run.failure]
    print_progress(f"incomplete: {', '.join(failed)}" if failed else "all areas done")
    return int(bool(failed))


def parse_arguments() -> argparse.Namespace:
    """Return the options of the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    sizes = parser.add_mutually_exclusive_group()
    sizes.add_argument("--small", action="store_true", help="a check that everything runs, in a few minutes")
    sizes.add_argument("--full", action="store_true", help="the largest sizes")
    parser.add_argument("--only", nargs="+", choices=[area.name for area in AREAS], metavar="AREA")
    parser.add_argument("--page", type=Path, help="the file to write; by default docs/benchmarks.md")
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
