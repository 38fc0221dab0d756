"""Audits of mechanisms of other libraries and of Tightrope, on the answers 0 and 1: by value and by low-order bits.

    PYTHONPATH=src python benchmarks/audits.py [--runs 20000] [--peer diffprivlib=/path/to/python] [--peer opendp=...]

Each peer runs in its own environment (``peers/audited.py``). The audit gets no hint about the mechanism: the first
score is the value, the second is learned by boosted trees from half of the runs, from the value, its exponent and the
position of its lowest bit (``audit.float_columns``). Each audit's bounds hold with probability 99 %.
"""

from __future__ import annotations

import argparse
import json
import math
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from lines import Line, add_json_option, exit_status, write_results
from numpy.typing import NDArray

import tightrope as tr

PEER_SCRIPT = Path(__file__).parent / "peers" / "audited.py"
UNIT = 2.0**-16
"""The unit of Tightrope's noise for answers in fixed point: the noise is an integer multiple of it."""
Floats = NDArray[np.floating[Any]]
DELTA = 0.01
"""The smallest δ at which ε is reported."""


@dataclass(frozen=True)
class Sampled:
    """Outputs of a mechanism for the answers 0 and 1, and the ε and δ that it claims."""

    for_zero: Floats
    for_one: Floats
    claim: tuple[float, float]


def sample_tightrope(runs: int) -> dict[str, Sampled]:
    """Return outputs of this library's mechanisms: integers, and fixed point as in releases."""
    fine, integer = tr.discrete_laplace(scale=1 / UNIT, sensitivity=round(1 / UNIT)), tr.discrete_laplace(scale=1)
    return {
        "discrete_laplace, fixed point": Sampled(fine.sample(runs) * UNIT, 1 + fine.sample(runs) * UNIT, (1, 0)),
        "discrete_laplace": Sampled(integer.sample(runs).astype(float), 1.0 + integer.sample(runs), (1, 0)),
    }


def sample_peer(name: str, python: str, runs: int) -> dict[str, Sampled]:
    """Return outputs of a peer's mechanisms. Raises ``CalledProcessError`` if the peer fails."""
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        subprocess.run([python, "-I", str(PEER_SCRIPT), name, str(runs), temporary], check=True)
        claims: dict[str, tuple[float, float]] = json.loads((folder / "claims.json").read_text())
        return {
            mechanism: Sampled(
                np.fromfile(folder / f"{mechanism}.0.f64"), np.fromfile(folder / f"{mechanism}.1.f64"), (epsilon, delta)
            )
            for mechanism, (epsilon, delta) in claims.items()
        }


def audit_mechanism(library: str, name: str, sampled: Sampled) -> tuple[str, Line]:
    """Return the row of the table and the line of one mechanism."""
    start = time.process_time()
    claim, delta = sampled.claim, max(sampled.claim[1], DELTA)
    by_value = tr.audit.scores(sampled.for_one, sampled.for_zero, claim=[claim])
    one, zero = tr.audit.float_columns(sampled.for_one), tr.audit.float_columns(sampled.for_zero)
    by_bits = tr.audit.samples(one, zero, claim=[claim])
    verdicts = [findings.against([claim]) for findings in (by_value, by_bits)]
    refuted = any(verdict.refuted for verdict in verdicts)
    result = "refuted" if refuted else "not refuted"
    detectable = min(verdict.least_detectable.get("randomized response", math.inf) for verdict in verdicts)
    epsilons = [findings.epsilon(delta) for findings in (by_value, by_bits)]
    variations = [findings.total_variation() for findings in (by_value, by_bits)]
    bounds = [f"{epsilon:.2f}, {variation:.3f}" for epsilon, variation in zip(epsilons, variations, strict=True)]
    least = "–" if refuted else f"{detectable:.2f}"
    cells = [library, name, f"{claim[0]:.3g}, {claim[1]:g}", *bounds, result, least]
    job = f"{library} {name}, claimed ({claim[0]:.3g}, {claim[1]:g})"
    note = f"{result} by our audit, {time.process_time() - start:.1f} CPU s"
    line = Line("audits", job, "ε at δ = 0.01 that the audit proves", max(epsilons), note=note)
    return f"| {' | '.join(cells)} |", line.with_goal("not refuted" if library == "tightrope" else "", met=not refuted)


def main() -> int:
    """Audit Tightrope and the peers; return the exit code."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=20_000)
    parser.add_argument("--peer", action="append", default=[], metavar="NAME=PYTHON")
    add_json_option(parser)
    options = parser.parse_args()
    lines: list[Line] = []
    notes = ["The number is the ε that our audit proves for any library's mechanism; each holds with probability 99 %."]
    bounds = "by value: ε at δ = 0.01, η | by low-order bits: ε at δ = 0.01, η"
    print(f"| library | mechanism | claimed ε, δ | {bounds} | claim | detectable ε |")
    print("|---|---|---|---|---|---|---|")
    for library, _, python in [("tightrope", "", ""), *(peer.partition("=") for peer in options.peer)]:
        start = time.perf_counter()
        try:
            mechanisms = sample_peer(library, python, options.runs) if python else sample_tightrope(options.runs)
        except subprocess.CalledProcessError as error:
            notes.append(f"{library} failed (code {error.returncode})")
            continue
        for name, sampled in mechanisms.items():
            text, line = audit_mechanism(library, name, sampled)
            lines.append(line)
            print(text, flush=True)
        print(f"{library}: {time.perf_counter() - start:.0f} s", file=sys.stderr)
    write_results(options.json, lines, notes)
    return exit_status(lines)


if __name__ == "__main__":
    sys.exit(main())
