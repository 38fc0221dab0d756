"""Optimal transport compared with POT, and the optimal metric map compared with qif.

    python benchmarks/transport.py [--job NAME ...] [--repeat 3] [--size 10000000] [--peers PYTHON]

Each tool runs each job in its own process. Printed are CPU seconds, the median of ``--repeat`` calls after a small one
that loads libraries, and the peak memory of the first call, without coordinates and distributions. Tightrope's times
include the plan and the proof of optimality for every pair; POT's include its table of costs, which it requires, and
its plan. The ratio is Tightrope / peer.

The metric map is the one of smallest expected distance under epsilon * distance privacy. Tightrope samples it from
integers and certifies it for epsilon; its gap is the resulting loss. ``PYTHON`` is an interpreter with qif:

    python3 -m venv /tmp/peers && /tmp/peers/bin/pip install qif
"""

from __future__ import annotations

import argparse
import json
import math
import resource
import statistics
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from lines import Line, add_json_option, exit_status, write_results
from numpy.typing import NDArray
from workers import WorkerResult, is_installed, peers_python, run_worker

Floats = NDArray[np.float64]
Answer = tuple[float, float]
"""The distance, and the gap to the proven bound."""
Solve = Callable[[], Answer]
ENOUGH_SECONDS, TIMEOUT = 20, 180
"""CPU seconds after which a job is not repeated; seconds after which a tool is stopped."""
EPSILON = 1.0
"""Of the metric map, per cell."""


@dataclass(frozen=True)
class Problem:
    """Two distributions on points."""

    x: Floats
    y: Floats
    source: Floats
    target: Floats


def small_square() -> Problem:
    """Return the problem of the first call, which loads libraries."""
    return square_problem(5)


@dataclass(frozen=True)
class Job:
    """``ours`` and ``theirs`` return solvers of a problem. Goals: CPU seconds, and the ratios of time and of memory."""

    problem: Callable[[], Problem]
    ours: Callable[[Problem], Solve]
    theirs: Callable[[Problem], Solve] | None = None
    goal: float = math.inf
    ratio_goals: tuple[float, float] = (math.inf, math.inf)
    small_problem: Callable[[], Problem] = small_square
    peer: str = "pot"


def plane_problem(count: int) -> Problem:
    """Return random points in the unit square."""
    rng = np.random.default_rng(1)
    x, y = rng.random((2, count, 2))
    return Problem(x, y, rng.dirichlet(np.ones(count)), rng.dirichlet(np.ones(count)))


def square_problem(side: int) -> Problem:
    """Return the cells of a square grid."""
    rng = np.random.default_rng(2)
    points = np.moveaxis(np.indices((side, side)), 0, -1).reshape(-1, 2).astype(float)
    return Problem(points, points, rng.dirichlet(np.ones(side**2)), rng.dirichlet(np.ones(side**2)))


def line_problem(count: int) -> Problem:
    """Return random points on a line."""
    rng = np.random.default_rng(3)
    x, y = rng.normal(size=(2, count))
    weights = rng.random((2, count))
    return Problem(x, y, weights[0] / weights[0].sum(), weights[1] / weights[1].sum())


# ------------------------------------------------------------------ the tools: each returns a function that solves


def tightrope_points(problem: Problem, p: float = 1) -> Solve:
    """Return Tightrope's solver for points in the plane."""
    from tightrope import transport

    def solve() -> Answer:
        coupling = transport.coupling(problem.source, problem.target, transport.points(problem.x, problem.y), p=p)
        return coupling.wasserstein_distance, coupling.gap

    return solve


def tightrope_grid(problem: Problem) -> Solve:
    """Return Tightrope's solver for cells of a grid."""
    from tightrope import transport

    side = math.isqrt(len(problem.x))

    def solve() -> Answer:
        cost = transport.grid((side, side), metric="cityblock")
        coupling = transport.coupling(problem.source, problem.target, cost)
        return coupling.cost, coupling.gap

    return solve


def tightrope_line(problem: Problem) -> Solve:
    """Return Tightrope's solver on the line, with the plan."""
    from tightrope import transport

    def solve() -> Answer:
        coupling = transport.coupling(problem.source, problem.target, transport.line(problem.x, problem.y))
        return coupling.cost, coupling.gap

    return solve


def tightrope_line_distance(problem: Problem) -> Solve:
    """Return Tightrope's solver on the line, without the plan."""
    from tightrope import transport

    def solve() -> Answer:
        return transport.wasserstein(problem.source, problem.target, transport.line(problem.x, problem.y)), math.nan

    return solve


def tightrope_metric_map(problem: Problem) -> Solve:
    """Return Tightrope's solver of the metric map."""
    from tightrope import transport

    side = math.isqrt(len(problem.x))

    def solve() -> Answer:
        optimum = transport.optimal_metric(problem.source, transport.grid_distances((side, side)), EPSILON)
        assert optimum.mechanism.epsilon <= EPSILON
        return optimum.loss, optimum.loss - optimum.optimum

    return solve


def pot_table(metric: str) -> Callable[[Problem], Solve]:
    """Return POT's solver with a table of costs."""

    def make_solver(problem: Problem) -> Solve:
        import ot

        def solve() -> Answer:
            costs = ot.dist(problem.x, problem.y, metric=metric)
            plan = ot.emd(problem.source, problem.target, costs, numItermax=10**8)
            return float((plan * costs).sum()), math.nan

        return solve

    return make_solver


def pot_line(problem: Problem) -> Solve:
    """Return POT's solver on the line."""
    import ot

    def solve() -> Answer:
        return float(ot.wasserstein_1d(problem.x, problem.y, problem.source, problem.target, p=1)), math.nan

    return solve


def qif_metric_map(problem: Problem) -> Solve:
    """Return qif's solver of the metric map."""
    from qif import mechanism

    count, side = len(problem.x), math.isqrt(len(problem.x))

    def distance(a: int, b: int) -> float:
        return math.hypot(a // side - b // side, a % side - b % side)

    def solve() -> Answer:
        privacy = lambda a, b: EPSILON * distance(a, b)  # noqa: E731
        channel = mechanism.d_privacy.min_loss_given_d(problem.source, count, privacy, distance)
        costs = np.array([[distance(a, b) for b in range(count)] for a in range(count)])
        return float((problem.source[:, None] * channel * costs).sum()), math.nan

    return solve


def make_jobs(size: int) -> dict[str, Job]:
    """Return the jobs, with ``size`` points on the line."""
    return {
        "grid 50x50": Job(lambda: square_problem(50), tightrope_grid, pot_table("cityblock")),
        "grid 100x100": Job(lambda: square_problem(100), tightrope_grid, goal=5),
        "plane 1000": Job(lambda: plane_problem(1000), tightrope_points, pot_table("euclidean")),
        "plane 5000": Job(
            lambda: plane_problem(5000), tightrope_points, pot_table("euclidean"), ratio_goals=(0.5, 0.1)
        ),
        "W_inf 2000": Job(lambda: plane_problem(2000), lambda problem: tightrope_points(problem, math.inf), goal=1),
        f"line {size} plan": Job(lambda: line_problem(size), tightrope_line, small_problem=lambda: line_problem(50)),
        f"line {size}": Job(
            lambda: line_problem(size), tightrope_line_distance, pot_line, small_problem=lambda: line_problem(50)
        ),
        **{f"metric map {side}x{side}": metric_map_job(side) for side in (4, 6, 8)},
    }


def metric_map_job(side: int) -> Job:
    """Return the job of a metric map."""
    small = lambda: square_problem(2)  # noqa: E731
    return Job(lambda: square_problem(side), tightrope_metric_map, qif_metric_map, small_problem=small, peer="qif")


# ------------------------------------------------------------------ one process for each tool and job


def peak_megabytes() -> float:
    """Return the peak memory of this process."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def measure_solver(job: Job, tool: str, repeat: int) -> dict[str, float]:
    """Return time, memory, distance and gap of one tool."""
    make_solver = job.ours if tool == "ours" else job.theirs
    assert make_solver is not None
    make_solver(job.small_problem())()
    problem = job.problem()
    before, memory = peak_megabytes(), 0.0
    times: list[float] = []
    solve = make_solver(problem)
    while len(times) < repeat and sum(times) <= ENOUGH_SECONDS:
        start = time.process_time()
        distance, gap = solve()
        times.append(time.process_time() - start)
        memory = peak_megabytes() - before if len(times) == 1 else memory
    return {"time": statistics.median(times), "memory": memory, "distance": distance, "gap": gap}


def run_tool(name: str, tool: str, options: argparse.Namespace) -> WorkerResult:
    """Run the worker for a tool and a job."""
    command = [options.peers if tool == "qif" else sys.executable, __file__, "--job", name, "--tool", tool]
    command += ["--repeat", str(options.repeat), "--size", str(options.size)]
    return run_worker(command, timeout=TIMEOUT)


def run_peer(name: str, job: Job, options: argparse.Namespace) -> WorkerResult | None:
    """Return the peer's result, or None if the job has no peer."""
    if job.theirs is None:
        return None
    python, module = (options.peers, "qif") if job.peer == "qif" else (sys.executable, "ot")
    if not is_installed(python, module):
        return WorkerResult(failure=f"{job.peer} is not installed and is skipped")
    result = run_tool(name, job.peer, options)
    return WorkerResult(failure=f"{job.peer}: {result.failure}") if result.failure else result


# ------------------------------------------------------------------ the report


def memory_of(result: WorkerResult) -> float:
    """Return the megabytes of a tool, at least 0.1, so that ratios are finite."""
    return max(result.number("memory"), 0.1) if result.values else math.nan


def job_lines(name: str, job: Job, own: WorkerResult, peer: WorkerResult | None) -> list[Line]:
    """Return time, memory and, for the metric map, its loss."""
    if own.failure:
        return [Line("transport", name, "CPU s", math.nan, note=own.failure).with_goal("an answer", met=False)]
    peer = peer or WorkerResult(failure="")
    answered = bool(peer.values)
    tool, peer_time, peer_memory = (job.peer, peer.number("time"), memory_of(peer)) if answered else ("", 0.0, 0.0)
    time_line = Line("transport", name, "CPU s", own.number("time"), note=peer.failure).with_peer(tool, peer_time)
    memory = Line("transport", name, "peak MB", own.number("memory"), note=peer.failure).with_peer(tool, peer_memory)
    time_ratio, memory_ratio = job.ratio_goals
    if job.goal < math.inf:
        time_line = time_line.with_goal(f"{job.goal:g}", met=time_line.ours <= job.goal)
    elif answered and time_ratio < math.inf:
        time_line = time_line.with_goal(f"{1 / time_ratio:g} ×", met=time_line.ours <= time_ratio * peer_time)
        memory = memory.with_goal(f"{1 / memory_ratio:g} ×", met=memory.ours <= memory_ratio * peer_memory)
    lines = [time_line, memory]
    if job.peer == "qif":
        note = f"at most {own.number('gap'):.0e} above the optimum"
        distance = Line("transport", name, "expected distance", own.number("distance"), note=note)
        lines.append(distance.with_peer(tool, peer.number("distance") if answered else 0.0))
    return lines


def row_text(name: str, job: Job, own: WorkerResult, peer: WorkerResult | None) -> str:
    """Return the printed row of a job."""
    if own.failure:
        return f"{name:<22} {own.failure}"
    own_time, own_memory = own.number("time"), own.number("memory")
    gap = own.number("gap")
    text = f"{name:<22}{own_time:>9.3f}{own_memory:>9.0f}{'–' if math.isnan(gap) else f'{gap:.1e}':>10}"
    met = own_time <= job.goal
    if peer is None:
        return text + f"{'':>36}  {verdict_text(job, met=met)}"
    if peer.failure:
        return f"{text}  {peer.failure}"
    peer_time, peer_memory = peer.number("time"), peer.number("memory")
    ratios = own_time / peer_time, own_memory / memory_of(peer)
    met = met and all(ratio <= goal for ratio, goal in zip(ratios, job.ratio_goals, strict=True))
    difference = abs(own.number("distance") / peer.number("distance") - 1)
    text += f"{peer_time:>9.3f}{peer_memory:>9.0f}{ratios[0]:>9.3f}{ratios[1]:>9.3f}"
    return text + f"  {verdict_text(job, met=met)}  distances agree to {difference:.0e}"


def verdict_text(job: Job, *, met: bool) -> str:
    """Return whether the job's goal is met; an empty text without a goal."""
    if job.goal == math.inf and job.ratio_goals[0] == math.inf:
        return ""
    time_goal, memory_goal = job.ratio_goals
    goal = f"<= {job.goal:g} s" if job.goal < math.inf else f"<= {time_goal:g} time, {memory_goal:g} memory"
    return f"{'met' if met else 'MISSED'}: {goal}"


def main() -> int:
    """Run as a script or as a worker."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--job", action="append", help="only these jobs")
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument("--size", type=int, default=10_000_000, help="points on the line")
    parser.add_argument("--tool", choices=["ours", "pot", "qif"], help=argparse.SUPPRESS)
    parser.add_argument("--peers", default=peers_python(None), help="the interpreter of the environment with qif")
    add_json_option(parser)
    options = parser.parse_args()
    jobs = make_jobs(options.size)
    unknown = sorted(set(options.job or ()) - set(jobs))
    if unknown:
        parser.error(f"no job {unknown[0]!r}; choose from {', '.join(jobs)}")
    if options.tool:
        print(json.dumps(measure_solver(jobs[options.job[0]], options.tool, options.repeat)))
        return 0
    print(f"{'':<22}{'Tightrope':>28}{'POT or qif':>18}{'ratio':>18}")
    print(f"{'job':<22}{'CPU s':>9}{'MB':>9}{'gap':>10}{'CPU s':>9}{'MB':>9}{'CPU':>9}{'MB':>9}")
    lines: list[Line] = []
    for name in options.job or jobs:
        own, peer = run_tool(name, "ours", options), run_peer(name, jobs[name], options)
        lines += job_lines(name, jobs[name], own, peer)
        print(row_text(name, jobs[name], own, peer), flush=True)
        write_results(options.json, lines)
    return exit_status(lines)


if __name__ == "__main__":
    sys.exit(main())
