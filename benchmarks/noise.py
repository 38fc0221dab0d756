"""The speed of exact noise, compared with OpenDP.

    python benchmarks/noise.py [--peers /tmp/peers/bin/python] [--job NAME ...] [--size 10000000] [--repeat 5]

OpenDP is installed in its own environment (it is not a dependency of Tightrope):

    python3 -m venv /tmp/peers && /tmp/peers/bin/pip install opendp

Without ``--peers``, /tmp/peers is tried, then this environment; OpenDP is skipped if it is not installed. Each tool
runs each job in its own process and uses its default source of randomness, the cryptographic one. Printed are samples
per CPU second: the median of several draws, after one that loads, builds tables and compiles; the time of that one is
in the column "first". Tightrope is measured with numba (the extra ``fast``) and with numpy alone. OpenDP draws vectors
of 20 000, because it is some thousand times slower.
"""

from __future__ import annotations

import argparse
import json
import math
import statistics
import sys
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from lines import Line, add_json_option, exit_status, write_results
from workers import WorkerResult, failure_notes, installed_peers, peers_python, run_worker

PEER_SIZE = 20_000
WARM_UP_SIZE = 1 << 24
INSTALL = "python3 -m venv /tmp/peers && /tmp/peers/bin/pip install opendp"
Draw = Callable[[int], Any]


@dataclass(frozen=True)
class Job:
    """A distribution. The goal is in samples per CPU second; ``peer`` is OpenDP's measurement, if it has one."""

    distribution: str
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


# ------------------------------------------------------------------ the tools: each returns a function that draws


def tightrope_sampler(job: Job) -> Draw:
    """Return Tightrope's sampler."""
    import tightrope as tr
    from tightrope.mechanisms.discrete.gaussian_sampling import LargeGaussian
    from tightrope.mechanisms.discrete.noise_table import NoiseTable
    from tightrope.mechanisms.discrete.scaled_noise import widened_gaussian

    scale = job.parameter
    makers: dict[str, Callable[[], Draw]] = {
        "table": lambda: NoiseTable.from_probabilities([1 / (1 + x / scale) ** 2 for x in range(int(scale))]).sample,
        "gaussian": lambda: tr.discrete_gaussian(scale=scale).sample,
        "exact": lambda: LargeGaussian.from_scale(scale).sample,
        "widened": lambda: widened_gaussian(scale=scale).sample,
        "laplace": lambda: tr.discrete_laplace(scale=scale).sample,
    }
    return makers[job.distribution]()


def numpy_sampler(job: Job) -> Draw:
    """Return Tightrope's sampler without numba."""
    sys.modules["numba"] = None  # type: ignore[assignment]  # as if it were not installed
    return tightrope_sampler(job)


def opendp_sampler(job: Job) -> Draw:
    """Return OpenDP's sampler."""
    import opendp.prelude as dp

    if not job.peer:
        raise NotImplementedError("no such distribution")
    dp.enable_features("contrib")
    metric = dp.l2_distance(T=float) if job.peer == "make_gaussian" else dp.l1_distance(T=int)
    measure = getattr(dp.m, job.peer)(dp.vector_domain(dp.atom_domain(T=int)), metric, scale=float(job.parameter))
    return lambda size: measure([0] * size)


TOOLS: dict[str, Callable[[Job], Draw]] = {
    "tightrope": tightrope_sampler,
    "numpy alone": numpy_sampler,
    "opendp": opendp_sampler,
}


# ------------------------------------------------------------------ one process for each tool and job


def measure_rate(tool: str, job: Job, options: argparse.Namespace) -> dict[str, float]:
    """Return samples per CPU second, and the CPU seconds of the first draw."""
    size = PEER_SIZE if tool == "opendp" else options.size
    start = time.process_time()
    draw = TOOLS[tool](job)
    draw(size if tool == "opendp" else max(size, options.warm_up))
    first = time.process_time() - start
    rates = []
    for _ in range(options.repeat):
        start = time.process_time()
        draw(size)
        rates.append(size / (time.process_time() - start))
    return {"rate": statistics.median(rates), "first": first}


def run_tool(python: str, tool: str, name: str, options: argparse.Namespace) -> WorkerResult:
    """Run the worker for a tool and a job."""
    command = [python, str(Path(__file__).resolve()), "--worker", tool, "--job", name]
    command += ["--repeat", str(options.repeat), "--size", str(options.size), "--warm-up", str(options.warm_up)]
    return run_worker(command)


# ------------------------------------------------------------------ the report


def rate_text(name: str, tool: str, result: WorkerResult, own: WorkerResult) -> str:
    """Return the printed row of one tool."""
    head = f"{name:24} {tool:12}"
    if result.failure:
        return f"{head} {'':>12} {'':>8}  {result.failure}"
    rate, first = result.number("rate"), result.number("first")
    ratio = "" if result is own else f"{own.number('rate') / rate:9.1f} x"
    return f"{head} {rate / 1e6:12.3f} {first:8.2f} {ratio}"


def job_lines(name: str, results: Mapping[str, WorkerResult]) -> list[Line]:
    """Return samples per CPU second, with numba and with numpy alone, and the time of the first draw of 2²⁴."""
    goal, own, numpy_alone = JOBS[name].goal, results["tightrope"], results["numpy alone"]
    rate, numpy_rate = own.number("rate"), numpy_alone.number("rate")
    opendp = results.get("opendp", WorkerResult(failure="not installed"))
    peer, peer_rate = "" if opendp.failure else "opendp", opendp.number("rate") / 1e6
    measured = "M draws a CPU s"
    fast = Line("noise", name, measured, rate / 1e6, larger_is_better=True, note=failure_notes(results))
    slow = Line("noise", name, f"{measured}, numpy alone", numpy_rate / 1e6, larger_is_better=True)
    return [
        fast.with_peer(peer, peer_rate).with_goal("" if math.isnan(goal) else f"{goal / 1e6:g}", met=rate >= goal),
        slow.with_peer(peer, peer_rate),
        Line("noise", name, "CPU s of the first 2²⁴", own.number("first")),
    ]


def report(options: argparse.Namespace) -> int:
    """Run all jobs and print the results; return the exit code."""
    peers = installed_peers(peers_python(options.peers), {"opendp": "opendp"}, INSTALL)
    pythons = {"tightrope": sys.executable, "numpy alone": sys.executable, **peers}
    print(f"{'job':24} {'tool':12} {'M/CPU s':>12} {'first s':>8} {'tightrope is':>10}")
    lines: list[Line] = []
    for name in options.job or JOBS:
        results = {tool: run_tool(python, tool, name, options) for tool, python in pythons.items()}
        for tool, result in results.items():
            if not result.is_unsupported:
                print(rate_text(name, tool, result, results["tightrope"]), flush=True)
        lines += job_lines(name, results)
    missed = [f"{line.job}: {line.ours:.3g} of {line.goal} {line.measured}" for line in lines if line.goal_met is False]
    print("all goals met" if not missed else "MISSED:", *missed, sep="\n    ")
    write_results(options.json, lines, [] if "opendp" in peers else ["opendp is not installed"])
    return exit_status(lines)


def main() -> int:
    """Run as a script or as a worker."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--peers", help="the interpreter of the environment with OpenDP")
    parser.add_argument("--job", action="append", choices=JOBS)
    parser.add_argument("--size", type=int, default=10_000_000)
    parser.add_argument("--warm-up", type=int, default=WARM_UP_SIZE, help="the size of the first draw, at least")
    parser.add_argument("--repeat", type=int, default=5)
    parser.add_argument("--worker", choices=TOOLS, help=argparse.SUPPRESS)
    add_json_option(parser)
    options = parser.parse_args()
    if options.worker:
        print(json.dumps(measure_rate(options.worker, JOBS[options.job[0]], options)))
        return 0
    return report(options)


if __name__ == "__main__":
    sys.exit(main())
