"""Audits of the mechanisms of other libraries and of Tightrope, on the answers 0 and 1: by value and by low-order bits.

    PYTHONPATH=src python benchmarks/audits.py [--runs 20000] [--peer diffprivlib=/path/to/python] [--peer opendp=...]

Each peer runs in an environment of its own (``peers/audited.py``). Nobody tells the audit what to look for: the first
score is the value, the second is what boosted trees learn from a half of the runs, of the value, its exponent and the
place of its lowest bit (``audit.float_columns``). All bounds hold with probability 99 %, each audit by itself.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
from lines import Line, option, write

import tightrope as tr

AUDITED = Path(__file__).parent / "peers" / "audited.py"
UNIT = 2.0**-16
"""Our noise for an answer in fixed point, whose whole numbers count these."""
Drawn = tuple[Any, Any, tuple[float, float]]


def ours(runs: int) -> dict[str, Drawn]:
    """The same answers by the mechanisms of this library: whole numbers, and fixed point as releases have it."""
    fine, whole = tr.discrete_laplace(scale=1 / UNIT, sensitivity=round(1 / UNIT)), tr.discrete_laplace(scale=1)
    return {
        "discrete_laplace, fixed point": (fine.sample(runs) * UNIT, 1 + fine.sample(runs) * UNIT, (1, 0)),
        "discrete_laplace": (whole.sample(runs).astype(float), 1.0 + whole.sample(runs), (1, 0)),
    }


def of_peer(name: str, python: str, runs: int) -> dict[str, Drawn]:
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder)
        subprocess.run([python, "-I", str(AUDITED), name, str(runs), folder], check=True)
        claims = json.loads((place / "claims.json").read_text())
        drawn = {one: [np.fromfile(place / f"{one}.{answer}.f64") for answer in (0, 1)] for one in claims}
        return {one: (*drawn[one], tuple(claims[one])) for one in claims}


def row(library: str, name: str, drawn: Drawn) -> tuple[str, Line]:
    began = time.process_time()
    zero, one, claim = drawn
    delta = max(claim[1], 0.01)
    by_value = tr.audit.scores(one, zero, claim=[claim])
    by_bits = tr.audit.samples(*map(tr.audit.float_columns, (one, zero)), claim=[claim])
    verdicts = [found.against([claim]) for found in (by_value, by_bits)]
    said = "refuted" if any(verdict.refuted for verdict in verdicts) else "not refuted"
    seen = [verdict.least_detectable.get("randomized response", 0.0) for verdict in verdicts]
    least = "–" if said == "refuted" else f"{min(seen):.2f}"
    bounds = [f"{found.epsilon(delta):.2f}, {found.total_variation():.3f}" for found in (by_value, by_bits)]
    cells = [library, name, f"{claim[0]:.3g}, {claim[1]:g}", *bounds, said, least]
    return f"| {' | '.join(cells)} |", line(
        library, name, claim, (by_value, by_bits), said, time.process_time() - began
    )


def line(library: str, name: str, claim: tuple[float, float], found: Any, said: str, seconds: float) -> Line:
    """The largest ε that is proven, and what it says of the claim; that ours is not refuted is a goal."""
    job, proven = (
        f"{library} {name}, claimed ({claim[0]:.3g}, {claim[1]:g})",
        max(one.epsilon(max(claim[1], 0.01)) for one in found),
    )
    goal = {"goal": "not refuted", "met": said != "refuted"} if library == "tightrope" else {}
    note = f"{said} by our audit, {seconds:.1f} CPU s"
    return Line("audits", job, "ε at δ = 0.01 that the audit proves", proven, **goal, note=note)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--runs", type=int, default=20_000)
    parser.add_argument("--peer", action="append", default=[], metavar="NAME=PYTHON")
    option(parser)
    asked = parser.parse_args()
    lines: list[Line] = []
    notes = ["The number is what our audit proves of a mechanism, whoever made it; each holds with probability 99 %."]
    bounds = "by value: ε at δ = 0.01, η | by low-order bits: ε at δ = 0.01, η"
    print(f"| library | mechanism | claimed ε, δ | {bounds} | claim | detectable ε |")
    print("|---|---|---|---|---|---|---|")
    for library, python in [("tightrope", ""), *(peer.split("=", 1) for peer in asked.peer)]:
        start = time.perf_counter()
        try:
            found = of_peer(library, python, asked.runs) if python else ours(asked.runs)
        except subprocess.CalledProcessError as error:
            notes.append(f"{library} failed (code {error.returncode})")
            continue
        for name, drawn in found.items():
            text, one = row(library, name, drawn)
            lines.append(one)
            print(text, flush=True)
        print(f"{library}: {time.perf_counter() - start:.0f} s", file=sys.stderr)
    write(asked.json, lines, notes)


if __name__ == "__main__":
    main()
