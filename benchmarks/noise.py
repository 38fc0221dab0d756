"""How fast exact noise is: Tightrope beside OpenDP, in one run.

    python benchmarks/noise.py [--peers /tmp/peers/bin/python] [--job NAME ...] [--size 10000000] [--repeat 5]

OpenDP lives in an environment of its own (it is no dependency of ours):

    python3 -m venv /tmp/peers && /tmp/peers/bin/pip install opendp

Without ``--peers``, /tmp/peers is tried, then this environment; where it is not installed it is skipped. Each tool does
each job in a process of its own and draws from its own default source, the cryptographic one. Printed are samples per
CPU second: the median of several draws, after one that loads, builds tables and compiles; the time of that one is
"first". Tightrope is measured twice: with numba (the extra ``fast``) and with numpy alone. OpenDP draws vectors of
20 000, since it is some thousand times slower.
"""

from __future__ import annotations

import argparse
import json
import math
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from lines import Line, option, write

PEER_SIZE = 20_000
HELP = "python3 -m venv /tmp/peers && /tmp/peers/bin/pip install opendp"
Draw = Callable[[int], Any]


@dataclass(frozen=True)
class Job:
    """``goal``: samples a CPU second. ``peer``: OpenDP's measurement and its scale, where it has that law."""

    law: str
    parameter: float
    goal: float = math.nan
    peer: str = ""


JOBS: dict[str, Job] = {
    "table of 50": Job("table", 25, 1.5e8),
    "table of 500": Job("table", 250, 1.5e8),
    "table of 50k": Job("table", 25_000, 1.5e8),
    "discrete Gaussian 10": Job("gaussian", 10, peer="make_gaussian"),
    "discrete Gaussian 1000": Job("gaussian", 1000, 3e7, "make_gaussian"),
    "exact Gaussian 1000": Job("exact", 1000, 3e7, "make_gaussian"),
    "exact Gaussian 1e9": Job("exact", 1e9, 3e7, "make_gaussian"),
    "widened Gaussian 1e9": Job("widened", 1e9, 1.5e8, "make_gaussian"),
    "discrete Laplace 10": Job("laplace", 10, peer="make_laplace"),
    "discrete Laplace 1000": Job("laplace", 1000, peer="make_laplace"),
}


# ------------------------------------------------------------------ the tools: a job gives a function that draws


def tightrope(job: Job) -> Draw:
    import tightrope as tr
    from tightrope.mechanisms.discrete.gaussian_sampling import LargeGaussian
    from tightrope.mechanisms.discrete.noise_table import NoiseTable
    from tightrope.mechanisms.discrete.scaled_noise import widened_gaussian

    makers: dict[str, Callable[[float], Any]] = {
        "table": lambda n: NoiseTable.from_probabilities([1 / (1 + x / n) ** 2 for x in range(int(n))]),
        "gaussian": lambda scale: tr.discrete_gaussian(scale=scale),
        "exact": LargeGaussian.from_scale,
        "widened": lambda scale: widened_gaussian(scale=scale),
        "laplace": lambda scale: tr.discrete_laplace(scale=scale),
    }
    return makers[job.law](job.parameter).sample


def numpy_alone(job: Job) -> Draw:
    sys.modules["numba"] = None  # type: ignore[assignment]  # as if it were not installed
    return tightrope(job)


def opendp(job: Job) -> Draw:
    import opendp.prelude as dp

    if not job.peer:
        raise NotImplementedError("no such law")
    dp.enable_features("contrib")
    metric = dp.l2_distance(T=float) if job.peer == "make_gaussian" else dp.l1_distance(T=int)
    measure = getattr(dp.m, job.peer)(dp.vector_domain(dp.atom_domain(T=int)), metric, scale=float(job.parameter))
    return lambda size: measure([0] * size)


TOOLS: dict[str, Callable[[Job], Draw]] = {"tightrope": tightrope, "numpy alone": numpy_alone, "opendp": opendp}


# ------------------------------------------------------------------ one process a tool and a job


def measure(tool: str, job: Job, options: argparse.Namespace) -> dict[str, float]:
    """Samples per CPU second, and the CPU seconds of the first draw."""
    size = PEER_SIZE if tool == "opendp" else options.size
    started = time.process_time()
    draw = TOOLS[tool](job)
    draw(size if tool == "opendp" else max(size, 1 << 24))
    first = time.process_time() - started
    rates = []
    for _ in range(options.repeat):
        started = time.process_time()
        draw(size)
        rates.append(size / (time.process_time() - started))
    return {"rate": statistics.median(rates), "first": first}


def run(python: str, tool: str, name: str, options: argparse.Namespace) -> dict[str, Any]:
    command = [python, str(Path(__file__).resolve()), "--worker", tool, "--job", name]
    command += ["--repeat", str(options.repeat), "--size", str(options.size)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        return {"failed": (done.stderr.strip().splitlines() or ["died"])[-1][:90]}
    return json.loads(done.stdout.splitlines()[-1])


def pythons(options: argparse.Namespace) -> dict[str, str]:
    """The interpreter of each tool that is there."""
    usual = Path("/tmp/peers/bin/python")
    peers = options.peers or (str(usual) if usual.exists() else sys.executable)
    found = {"tightrope": sys.executable, "numpy alone": sys.executable}
    check = "import importlib.util, sys; sys.exit(importlib.util.find_spec('opendp') is None)"
    if subprocess.run([peers, "-c", check], check=False).returncode == 0:
        return {**found, "opendp": peers}
    print(f"opendp is not installed and skipped: {HELP}")
    return found


# ------------------------------------------------------------------ the report


def shown(name: str, tool: str, result: dict[str, Any], own: dict[str, Any]) -> str:
    head = f"{name:24} {tool:12}"
    if "failed" in result:
        return f"{head} {'':>12} {'':>8}  {result['failed']}"
    ratio = "" if result is own or "failed" in own else f"{own['rate'] / result['rate']:9.1f} x"
    return f"{head} {result['rate'] / 1e6:12.3f} {result['first']:8.2f} {ratio}"


def report(options: argparse.Namespace) -> None:
    interpreters = pythons(options)
    print(f"{'job':24} {'tool':12} {'M/CPU s':>12} {'first s':>8} {'tightrope is':>10}")
    missed: list[str] = []
    lines: list[Line] = []
    for name in options.job or JOBS:
        found = {tool: run(python, tool, name, options) for tool, python in interpreters.items()}
        for tool, result in found.items():
            if "NotImplementedError" not in result.get("failed", ""):
                print(shown(name, tool, result, found["tightrope"]), flush=True)
        rate = found["tightrope"].get("rate", 0.0)
        if rate < JOBS[name].goal:
            missed.append(f"{name}: {rate:.3g} of {JOBS[name].goal:.3g} samples a CPU second")
        lines += lines_of(name, found)
    print("every goal met" if not missed else "MISSED:", *missed, sep="\n    ")
    write(options.json, lines, [] if "opendp" in interpreters else ["opendp is not installed"])


def lines_of(name: str, found: dict[str, dict[str, Any]]) -> list[Line]:
    """Draws a CPU second, with numba and with numpy alone; the first draw of 2²⁴ with all that it loads."""
    peer = found.get("opendp", {}).get("rate")
    beside = {"peer": "opendp", "theirs": peer / 1e6} if peer else {}
    goal, rate = JOBS[name].goal, found["tightrope"].get("rate", math.nan)
    wanted = {} if math.isnan(goal) else {"goal": f"{goal / 1e6:g}", "met": rate >= goal}
    note = "; ".join(f"{tool}: {said['failed']}" for tool, said in found.items() if _broke(said))
    measured, alone = "M draws a CPU s", found["numpy alone"].get("rate", math.nan)
    return [
        Line("noise", name, measured, rate / 1e6, **beside, larger=True, **wanted, note=note),
        Line("noise", name, f"{measured}, numpy alone", alone / 1e6, **beside, larger=True),
        Line("noise", name, "CPU s of the first 2²⁴", found["tightrope"].get("first", math.nan)),
    ]


def _broke(said: dict[str, Any]) -> bool:
    return "failed" in said and "NotImplementedError" not in said["failed"]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--peers", help="the python of the environment that has OpenDP")
    parser.add_argument("--job", action="append", choices=JOBS)
    parser.add_argument("--size", type=int, default=10_000_000)
    parser.add_argument("--repeat", type=int, default=5)
    parser.add_argument("--worker", choices=TOOLS, help=argparse.SUPPRESS)
    option(parser)
    options = parser.parse_args()
    if options.worker:
        print(json.dumps(measure(options.worker, JOBS[options.job[0]], options)))
        return
    report(options)


if __name__ == "__main__":
    main()
