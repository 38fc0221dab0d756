"""Optimal transport beside POT, and the optimal metric map beside qif, in one run.

    python benchmarks/transport.py [--job NAME ...] [--repeat 3] [--size 10000000] [--peers PYTHON]

Each tool does each job in a process of its own. Printed are CPU seconds, the median of ``--repeat`` calls after a small
one that loads libraries, and how much memory the first call took at its peak, coordinates and laws not counted.
Tightrope's times contain the plan and the proof of optimality for every pair; POT's contain its table of costs, since
that is what it starts from, and its plan. The ratio is Tightrope / peer; goals are those of docs and issue tracker.

The metric map is the one of least expected distance under epsilon * distance privacy. Tightrope's is drawn from whole
numbers and certified for epsilon; its gap is the loss that this costs. ``PYTHON`` is an interpreter that has qif:

    python3 -m venv /tmp/peers && /tmp/peers/bin/pip install qif
"""

from __future__ import annotations

import argparse
import json
import math
import resource
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from lines import Line, option, write

Answer = tuple[float, float]
"""The distance, and the gap to the proven bound."""
Solve = Callable[[], Answer]
ENOUGH, PATIENCE = 20, 180
"""CPU seconds after which a job is not repeated; seconds after which a tool is stopped."""
EPSILON = 1.0
"""Of the metric map, per cell."""


@dataclass(frozen=True)
class Problem:
    """Two laws on places."""

    x: np.ndarray
    y: np.ndarray
    source: np.ndarray
    target: np.ndarray


@dataclass(frozen=True)
class Job:
    """``ours`` and ``theirs`` make a solver of a problem; ``goal``: CPU seconds, ``ratios``: of time and of memory."""

    problem: Callable[[], Problem]
    ours: Callable[[Problem], Solve]
    theirs: Callable[[Problem], Solve] | None = None
    goal: float = math.inf
    ratios: tuple[float, float] = (math.inf, math.inf)
    small: Callable[[], Problem] = lambda: square(5)
    peer: str = "pot"

    def warm(self, make: Callable[[Problem], Solve]) -> None:
        make(self.small())()


def plane(count: int) -> Problem:
    rng = np.random.default_rng(1)
    x, y = rng.random((2, count, 2))
    return Problem(x, y, rng.dirichlet(np.ones(count)), rng.dirichlet(np.ones(count)))


def square(side: int) -> Problem:
    rng = np.random.default_rng(2)
    places = np.stack(np.indices((side, side)), axis=-1).reshape(-1, 2).astype(float)
    return Problem(places, places, rng.dirichlet(np.ones(side**2)), rng.dirichlet(np.ones(side**2)))


def scores(count: int) -> Problem:
    rng = np.random.default_rng(3)
    x, y = rng.normal(size=(2, count))
    weights = rng.random((2, count))
    return Problem(x, y, weights[0] / weights[0].sum(), weights[1] / weights[1].sum())


# ------------------------------------------------------------------ the tools: a problem gives a function that solves


def our_points(problem: Problem, p: float = 1) -> Solve:
    from tightrope import transport

    def solve() -> Answer:
        found = transport.coupling(problem.source, problem.target, transport.points(problem.x, problem.y), p=p)
        return found.wasserstein_distance, found.gap

    return solve


def our_grid(problem: Problem) -> Solve:
    from tightrope import transport

    side = math.isqrt(len(problem.x))

    def solve() -> Answer:
        found = transport.coupling(problem.source, problem.target, transport.grid((side, side), metric="cityblock"))
        return found.cost, found.gap

    return solve


def our_line(problem: Problem) -> Solve:
    from tightrope import transport

    def solve() -> Answer:
        found = transport.coupling(problem.source, problem.target, transport.line(problem.x, problem.y))
        return found.cost, found.gap

    return solve


def our_line_value(problem: Problem) -> Solve:
    from tightrope import transport

    def solve() -> Answer:
        cost = transport.line(problem.x, problem.y)
        return transport.wasserstein(problem.source, problem.target, cost), math.nan

    return solve


def pot_table(metric: str) -> Callable[[Problem], Solve]:
    def make(problem: Problem) -> Solve:
        import ot

        def solve() -> Answer:
            costs = ot.dist(problem.x, problem.y, metric=metric)
            plan = ot.emd(problem.source, problem.target, costs, numItermax=10**8)
            return float((plan * costs).sum()), math.nan

        return solve

    return make


def pot_line(problem: Problem) -> Solve:
    import ot

    def solve() -> Answer:
        return float(ot.wasserstein_1d(problem.x, problem.y, problem.source, problem.target, p=1)), math.nan

    return solve


def our_map(problem: Problem) -> Solve:
    from tightrope import transport

    side = math.isqrt(len(problem.x))

    def solve() -> Answer:
        cost = transport.grid_distances((side, side))
        found = transport.optimal_metric(problem.source, cost, EPSILON)
        assert found.mechanism.epsilon <= EPSILON
        return found.loss, found.loss - found.optimum

    return solve


def qif_map(problem: Problem) -> Solve:
    from qif import mechanism

    count, side = len(problem.x), math.isqrt(len(problem.x))

    def apart(a: int, b: int) -> float:
        return math.hypot(a // side - b // side, a % side - b % side)

    def solve() -> Answer:
        channel = mechanism.d_privacy.min_loss_given_d(problem.source, count, lambda a, b: EPSILON * apart(a, b), apart)
        costs = np.array([[apart(a, b) for b in range(count)] for a in range(count)])
        return float((problem.source[:, None] * channel * costs).sum()), math.nan

    return solve


def jobs(size: int) -> dict[str, Job]:
    return {
        "grid 50x50": Job(lambda: square(50), our_grid, pot_table("cityblock")),
        "grid 100x100": Job(lambda: square(100), our_grid, goal=5),
        "plane 1000": Job(lambda: plane(1000), our_points, pot_table("euclidean")),
        "plane 5000": Job(lambda: plane(5000), our_points, pot_table("euclidean"), ratios=(0.5, 0.1)),
        "W_inf 2000": Job(lambda: plane(2000), lambda problem: our_points(problem, math.inf), goal=1),
        f"line {size} plan": Job(lambda: scores(size), our_line, small=lambda: scores(50)),
        f"line {size}": Job(lambda: scores(size), our_line_value, pot_line, small=lambda: scores(50)),
        **{f"metric map {side}x{side}": metric_map(side) for side in (4, 6, 8)},
    }


def metric_map(side: int) -> Job:
    return Job(lambda: square(side), our_map, qif_map, small=lambda: square(2), peer="qif")


# ------------------------------------------------------------------ measuring, one tool and one job a process


def peak() -> float:
    """MB, the most that this process ever held."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def measure(job: Job, tool: str, repeat: int) -> None:
    make = job.ours if tool == "ours" else job.theirs
    assert make is not None
    job.warm(make)
    problem = job.problem()
    before, memory, times = peak(), 0.0, []
    solve = make(problem)
    for k in range(repeat):
        if sum(times) > ENOUGH:
            break
        start = time.process_time()
        distance, gap = solve()
        times.append(time.process_time() - start)
        memory = peak() - before if k == 0 else memory
    print(json.dumps({"time": statistics.median(times), "memory": memory, "distance": distance, "gap": gap}))


def asked(name: str, tool: str, options: argparse.Namespace) -> dict[str, float]:
    python = options.peers if tool == "qif" else sys.executable
    command = [python, __file__, "--job", name, "--tool", tool]
    command += ["--repeat", str(options.repeat), "--size", str(options.size)]
    done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=PATIENCE)
    found: dict[str, float] = json.loads(done.stdout.splitlines()[-1])
    return found


def row(name: str, job: Job, options: argparse.Namespace) -> tuple[str, list[Line]]:
    try:
        ours = asked(name, "ours", options)
    except subprocess.TimeoutExpired:
        note = f"no answer within {PATIENCE} s"
        return f"{name:<22} {note}", [
            Line("transport", name, "CPU s", math.nan, goal="an answer", met=False, note=note)
        ]
    peer = theirs(name, job, options)
    return shown(name, job, ours, peer), lines_of(name, job, ours, peer)


def theirs(name: str, job: Job, options: argparse.Namespace) -> dict[str, float] | str | None:
    """What the peer took, why there is nothing, or None where no peer is asked."""
    if job.theirs is None:
        return None
    if not installed(job.peer, options):
        return f"{job.peer} is not installed and skipped"
    try:
        return asked(name, job.peer, options)
    except subprocess.TimeoutExpired:
        return f"{job.peer}: no answer within {PATIENCE} s"
    except subprocess.CalledProcessError as error:
        return f"{job.peer} failed: {(error.stderr.strip().splitlines() or ['died'])[-1][:90]}"


def lines_of(name: str, job: Job, ours: dict[str, float], peer: dict[str, float] | str | None) -> list[Line]:
    """CPU, memory and, of the metric map, what it loses."""
    there = peer if isinstance(peer, dict) else {}
    tool, goals = job.peer if there else "", {"CPU s": "", "peak MB": ""}
    values = {"CPU s": (ours["time"], there.get("time", math.nan)), "peak MB": (ours["memory"], _memory(there))}
    if job.goal < math.inf:
        goals["CPU s"] = f"{job.goal:g}"
    elif there and job.ratios[0] < math.inf:
        goals = {"CPU s": f"{1 / job.ratios[0]:g} ×", "peak MB": f"{1 / job.ratios[1]:g} ×"}
    wanted = {"CPU s": min(job.goal, job.ratios[0] * there.get("time", math.inf))}
    wanted["peak MB"] = job.ratios[1] * _memory(there) if there else math.inf
    note = peer if isinstance(peer, str) else ""
    out = []
    for kind, (own, other) in values.items():
        goal = {"goal": goals[kind], "met": own <= wanted[kind]} if goals[kind] else {}
        out.append(Line("transport", name, kind, own, tool, other, **goal, note=note))
    if job.peer == "qif":
        loss = ours["distance"], tool, there.get("distance", math.nan)
        out.append(
            Line("transport", name, "expected distance", *loss, note=f"at most {ours['gap']:.0e} above the optimum")
        )
    return out


def _memory(found: dict[str, float]) -> float:
    return max(found["memory"], 0.1) if found else math.nan


def shown(name: str, job: Job, ours: dict[str, float], peer: dict[str, float] | str | None) -> str:
    text = f"{name:<22}{ours['time']:>9.3f}{ours['memory']:>9.0f}{ours['gap']:>10.1e}"
    met = ours["time"] <= job.goal
    if peer is None:
        return text + f"{'':>36}  {verdict(job, met)}"
    if isinstance(peer, str):
        return f"{text}  {peer}"
    ratios = ours["time"] / peer["time"], ours["memory"] / _memory(peer)
    met = met and all(ratio <= goal for ratio, goal in zip(ratios, job.ratios, strict=True))
    off = abs(ours["distance"] / peer["distance"] - 1)
    text += f"{peer['time']:>9.3f}{peer['memory']:>9.0f}{ratios[0]:>9.3f}{ratios[1]:>9.3f}"
    return text + f"  {verdict(job, met)}  distances agree to {off:.0e}"


def installed(tool: str, options: argparse.Namespace) -> bool:
    python, module = (options.peers, "qif") if tool == "qif" else (sys.executable, "ot")
    check = f"import importlib.util, sys; sys.exit(importlib.util.find_spec({module!r}) is None)"
    return subprocess.run([python, "-c", check], check=False).returncode == 0


def verdict(job: Job, met: bool) -> str:
    if job.goal == math.inf and job.ratios[0] == math.inf:
        return ""
    wanted = f"<= {job.goal:g} s" if job.goal < math.inf else f"<= {job.ratios[0]:g} time, {job.ratios[1]:g} memory"
    return f"{'met' if met else 'MISSED'}: {wanted}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--job", action="append", help="only these jobs")
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument("--size", type=int, default=10_000_000, help="places on the line")
    parser.add_argument("--tool", choices=["ours", "pot", "qif"], help=argparse.SUPPRESS)
    usual = Path("/tmp/peers/bin/python")
    peers = str(usual) if usual.exists() else sys.executable
    parser.add_argument("--peers", default=peers, help="the python of the environment that has qif")
    option(parser)
    options = parser.parse_args()
    every = jobs(options.size)
    if options.tool:
        return measure(every[options.job[0]], options.tool, options.repeat)
    print(f"{'':<22}{'Tightrope':>28}{'POT or qif':>18}{'ratio':>18}")
    print(f"{'job':<22}{'CPU s':>9}{'MB':>9}{'gap':>10}{'CPU s':>9}{'MB':>9}{'CPU':>9}{'MB':>9}")
    lines: list[Line] = []
    for name in options.job or every:
        text, found = row(name, every[name], options)
        lines += found
        print(text, flush=True)
        write(options.json, lines)
    return None


if __name__ == "__main__":
    main()
