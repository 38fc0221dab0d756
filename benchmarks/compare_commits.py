"""Compare the benchmarks of two checkouts, for example of two commits in two worktrees.

    python benchmarks/compare_commits.py OLD_CHECKOUT NEW_CHECKOUT --rounds 5 accounting noise
    python benchmarks/compare_commits.py OLD_CHECKOUT NEW_CHECKOUT --size usual local

Each round runs the script of each area once in both checkouts, with the package of that checkout; rounds alternate
between old first and new first, so that a change of the machine's load affects both. Printed are the medians of each
line and the ratio new / old, the lines that became slower or less exact first; lines of only one checkout are listed
below. Settings come from benchmarks/all.py next to this script. The exit code is 1 if a
script fails.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from all import AREAS, SIZES
from lines import number_text
from workers import last_line

Key = tuple[str, str]
"""The job and what was measured."""


@dataclass
class Measurements:
    """The numbers of all rounds by line, and the lines in which larger numbers are better."""

    values: dict[Key, list[float]] = field(default_factory=dict)
    larger_is_better: set[Key] = field(default_factory=set)

    def add_results(self, document: Mapping[str, Any]) -> None:
        """Add the lines that a script wrote; earlier commits call one field ``larger``."""
        for line in document["lines"]:
            key = line["job"], line["measured"]
            self.values.setdefault(key, []).append(float(line["ours"]))
            if line.get("larger_is_better", line.get("larger", False)):
                self.larger_is_better.add(key)


@dataclass(frozen=True)
class Comparison:
    """The medians of one line."""

    job: str
    measured: str
    old: float
    new: float
    larger_is_better: bool

    @property
    def ratio(self) -> float:
        """New / old; 1 if both are 0, NaN if a number is missing."""
        if self.old == self.new:
            return 1.0
        return self.new / self.old if self.old else math.copysign(math.inf, self.new)

    @property
    def worsening(self) -> float:
        """How many times worse the new number is, for sorting; missing numbers count as worst."""
        if math.isnan(self.ratio):
            return math.inf
        return (1 / self.ratio if self.ratio else math.inf) if self.larger_is_better else self.ratio

    def __str__(self) -> str:
        numbers = f"{number_text(self.old):>10} {number_text(self.new):>10} {self.ratio:9.3f}"
        return f"{numbers}  {self.job}: {self.measured}{' (larger is better)' if self.larger_is_better else ''}"


def compare_lines(old: Measurements, new: Measurements) -> list[Comparison]:
    """Return the lines of both checkouts, the worst ratios first."""
    comparisons = [
        Comparison(*key, statistics.median(old.values[key]), statistics.median(new.values[key]), key in larger)
        for larger in [old.larger_is_better | new.larger_is_better]
        for key in old.values
        if key in new.values
    ]
    return sorted(comparisons, key=lambda comparison: -comparison.worsening)


def run_script(checkout: Path, area: str, options: Sequence[str], measurements: Measurements) -> str:
    """Run an area's script in a checkout and add its results; return why it failed, or an empty text."""
    environment = {
        **os.environ,
        "PYTHONPATH": str(checkout / "src"),
        "OPENBLAS_NUM_THREADS": "1",
        "OMP_NUM_THREADS": "1",
    }
    with tempfile.TemporaryDirectory() as folder:
        results = Path(folder) / "results.json"
        script = str(checkout / "benchmarks" / f"{area}.py")
        command = [sys.executable, script, *options, "--json", str(results)]
        process = subprocess.run(command, cwd=checkout, env=environment, capture_output=True, text=True, check=False)
        if process.returncode:
            return last_line(process.stderr) or f"ended with code {process.returncode}"
        measurements.add_results(json.loads(results.read_text(encoding="utf-8")))
    return ""


def compare_area(area: str, old: Path, new: Path, options: Sequence[str], rounds: int) -> bool:
    """Run and print one area; return whether all scripts succeeded."""
    measurements = {old: Measurements(), new: Measurements()}
    failures = []
    for number in range(rounds):
        for checkout in (old, new) if number % 2 == 0 else (new, old):
            failure = run_script(checkout, area, options, measurements[checkout])
            failures += [f"{checkout}, round {number + 1}: {failure}"] if failure else []
            print(
                f"{area}, round {number + 1} of {rounds}: {checkout} {failure or 'done'}", file=sys.stderr, flush=True
            )
    print(f"\n== {area}\n{'old':>10} {'new':>10} {'new / old':>9}")
    print(*compare_lines(measurements[old], measurements[new]), sep="\n")
    for name, this, other in (("old", old, new), ("new", new, old)):
        only = [": ".join(key) for key in measurements[this].values if key not in measurements[other].values]
        print(*(f"only in {name}: {text}" for text in only), sep="\n", end="\n" if only else "")
    print(*(f"FAILED {failure}" for failure in failures), sep="\n", end="\n" if failures else "", flush=True)
    return not failures


def main() -> int:
    """Compare all areas; return the exit code."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    names = [area.name for area in AREAS]
    parser.add_argument("old", type=Path, metavar="OLD_CHECKOUT")
    parser.add_argument("new", type=Path, metavar="NEW_CHECKOUT")
    parser.add_argument("areas", nargs="+", choices=names, metavar="AREA", help=", ".join(names))
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--size", choices=SIZES, default="small")
    options = parser.parse_args()
    if options.rounds < 1:
        parser.error(f"--rounds: expected at least 1, got {options.rounds}")
    old, new = options.old.resolve(), options.new.resolve()
    for checkout in (old, new):
        if not (checkout / "benchmarks").is_dir():
            parser.error(f"no benchmarks in {str(checkout)!r}: pass the root of a checkout")
    if old == new:
        parser.error(f"both checkouts are {str(old)!r}: pass two different folders")
    settings = {area.name: area.command(options.size, set())[2:-2] for area in AREAS}
    succeeded = [compare_area(area, old, new, settings[area], options.rounds) for area in options.areas]
    return int(not all(succeeded))


if __name__ == "__main__":
    sys.exit(main())
