"""The time and the error of privacy accounting, compared with dp-accounting, prv-accountant and riskcal.

    python benchmarks/accounting.py [--peers /tmp/peers/bin/python] [--job NAME ...] [--timeout 60] [--repeat 5]

Peers are installed in their own environment (they are not dependencies of Tightrope):

    python3 -m venv /tmp/peers && /tmp/peers/bin/pip install dp-accounting prv-accountant riskcal

Without ``--peers``, /tmp/peers is tried, then this environment; peers that are not installed are skipped. Each tool
runs each job in its own process and is stopped after ``--timeout`` CPU seconds. The time of an answer is CPU
seconds from the parameters to the number, the median of several; each repetition changes a parameter by 1e-7 so that
cached results cannot help. Errors are relative to 16 digits by mpmath (``tests/oracle``) or, for jobs without them, to
Tightrope's own bracket if it is narrower than 1e-9.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import statistics
import sys
import threading
import time
import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lines import Line, add_json_option, exit_status, write_results
from workers import WorkerResult, installed_peers, peers_python, run_worker

if TYPE_CHECKING:
    from tightrope.accounting.privacy_loss import PrivacyLoss

GRID = 1e-4
"""The lattice of dp-accounting and riskcal: their default."""
GOAL_RATIO, GOAL_ERROR = 20.0, 1e-9
ROUNDING = 1e-13
"""An upper bound may be this much below the truth, because the reference is rounded."""
TIMEOUT_CODE = 99
"""The exit code of a worker that was stopped."""
INSTALL = "python3 -m venv /tmp/peers && /tmp/peers/bin/pip install dp-accounting prv-accountant riskcal"
Step = tuple[int, str, dict[str, float]]
"""The number of repetitions, the mechanism, and its parameters."""
Parameters = dict[str, float]


@dataclass(frozen=True)
class Job:
    """A number to compute for composed steps.

    ``quantity`` is "epsilon" at ``point`` = delta, "delta" at epsilon, or the "noise" for (epsilon, delta), or for an
    "advantage".
    """

    quantity: str
    steps: tuple[Step, ...]
    point: tuple[float, ...]
    truth: float | None = None


def sampled_step(count: int, sigma: float, rate: float) -> Step:
    return count, "sampled", {"sigma": sigma, "rate": rate}


MIX = tuple((1, "laplace", {"epsilon": 0.02 + 0.002 * i}) for i in range(50)) + tuple(
    (1, "gaussian", {"sigma": 20.0 + i}) for i in range(50)
)
SAMPLED_MIX = tuple(sampled_step(10, 1.0 + 0.01 * i, 0.01) for i in range(100))
JOBS: dict[str, Job] = {
    "gaussian x100": Job("epsilon", ((100, "gaussian", {"sigma": 10.0}),), (1e-6,), 4.886554117462212),
    "gaussian x100, delta 1e-30": Job("epsilon", ((100, "gaussian", {"sigma": 10.0}),), (1e-30,), 11.743883025231736),
    "laplace x10": Job("epsilon", ((10, "laplace", {"epsilon": 0.5}),), (1e-3,), 4.521308127047462),
    "laplace x100": Job("epsilon", ((100, "laplace", {"epsilon": 0.2}),), (1e-6,), 10.276481098581481),
    "laplace x1000": Job("epsilon", ((1000, "laplace", {"epsilon": 0.1}),), (1e-5,), 17.423651987537448),
    "laplace x10^4": Job("epsilon", ((10**4, "laplace", {"epsilon": 0.02}),), (1e-6,), 10.949913490760348),
    "response x10^4": Job("epsilon", ((10**4, "response", {"epsilon": 0.05}),), (1e-6,), 35.54450427280747),
    "response x10^6": Job("epsilon", ((10**6, "response", {"epsilon": 1e-6}),), (1e-6,), 0.0027182170558518142),
    "dp-sgd x1000": Job("epsilon", (sampled_step(1000, 1.0, 0.01),), (1e-6,), 2.1245151711201213),
    "dp-sgd x10^4": Job("epsilon", (sampled_step(10**4, 1.0, 0.01),), (1e-6,), 6.9073844950450815),
    "dp-sgd x10^5": Job("epsilon", (sampled_step(10**5, 1.0, 1e-3),), (1e-6,)),
    "dp-sgd x10^6": Job("epsilon", (sampled_step(10**6, 2.0, 1e-3),), (1e-6,), 2.4208583477297973),
    "dp-sgd x1000, delta at 8": Job("delta", (sampled_step(1000, 1.0, 0.01),), (8.0,)),
    "100 different steps": Job("epsilon", MIX, (1e-6,), 2.4234428590411904),
    "100 sampled sizes": Job("epsilon", SAMPLED_MIX, (1e-6,)),
    "noisy max x10": Job("epsilon", ((10, "range", {"epsilon": 0.1}),), (1e-6,)),
    "noisy max x10, delta at 0.3": Job("delta", ((10, "range", {"epsilon": 0.1}),), (0.3,)),
    "noise for (1, 1e-6)": Job("noise", (sampled_step(1000, 1.0, 0.01),), (1.0, 1e-6)),
    "noise for advantage 0.1": Job("advantage", (sampled_step(1000, 1.0, 0.01),), (0.1,)),
}


def perturb_job(job: Job, repetition: int) -> Job:
    """Return the job with the first parameter of each step changed a little."""
    factor = 1 + 1e-7 * repetition
    steps = tuple(
        (count, mechanism, {name: value * (factor if name != "rate" else 1) for name, value in parameters.items()})
        for count, mechanism, parameters in job.steps
    )
    return Job(job.quantity, steps, job.point)


# ------------------------------------------------------------------ the tools: each returns [lower, upper] for a job


def tightrope_bounds(job: Job, *, both: bool = True) -> list[float]:
    """Return Tightrope's bracket; with ``both=False``, as for measuring times, only the upper bound."""
    if job.quantity in {"noise", "advantage"}:
        return tightrope_noise(job)
    first, *others = (count * step_loss(mechanism, parameters) for count, mechanism, parameters in job.steps)
    loss = sum(others, first)
    if not both:
        return [-math.inf, loss.epsilon(job.point[0]) if job.quantity == "epsilon" else loss.delta(job.point[0])]
    bounds = loss.epsilon_bounds(job.point[0]) if job.quantity == "epsilon" else loss.delta_bounds(job.point[0])
    return [float(bounds.lower), float(bounds.upper)]


def step_loss(mechanism: str, parameters: Parameters) -> PrivacyLoss:
    """Return the privacy loss of one step."""
    import tightrope as tr

    makers: dict[str, Callable[[Parameters], PrivacyLoss]] = {
        "gaussian": lambda p: tr.gaussian(scale=p["sigma"]).loss,
        "laplace": lambda p: tr.laplace(scale=1, sensitivity=p["epsilon"]).loss,
        "response": lambda p: tr.approx_dp(p["epsilon"]).loss,
        "range": lambda p: tr.bounded_range(epsilon=p["epsilon"]).loss,
        "sampled": lambda p: tr.gaussian(scale=p["sigma"]).loss.poisson_sample(p["rate"]),
    }
    return makers[mechanism](parameters)


def tightrope_noise(job: Job) -> list[float]:
    """Return the smallest noise that meets the target, and the value 1e-9 below it, which does not."""
    import tightrope as tr
    from tightrope.noise.calibrate import calibrate

    ((count, _, parameters),) = job.steps
    budget = (
        tr.Budget(epsilon=job.point[0], delta=job.point[1])
        if job.quantity == "noise"
        else tr.Budget(total_variation=job.point[0], delta=1e-9)
    )
    calibrated = calibrate(
        lambda sigma: count * step_loss("sampled", {**parameters, "sigma": sigma}), budget, smallest=0.3, largest=50.0
    )
    return [calibrated.parameter * (1 - 1e-9), calibrated.parameter]


def dp_accounting_bounds(job: Job) -> list[float]:
    """Return the upper bound by pessimistic loss distributions on the default lattice."""
    from dp_accounting.pld import common
    from dp_accounting.pld import privacy_loss_distribution as pld

    makers: dict[str, Callable[[Parameters], Any]] = {
        "gaussian": lambda p: pld.from_gaussian_mechanism(p["sigma"], value_discretization_interval=GRID),
        "laplace": lambda p: pld.from_laplace_mechanism(1 / p["epsilon"], value_discretization_interval=GRID),
        "response": lambda p: pld.from_randomized_response(
            2 / (1 + math.exp(p["epsilon"])), 2, value_discretization_interval=GRID
        ),
        "range": lambda p: pld.from_privacy_parameters(  # it has no bounded range: the guarantee (epsilon, 0)
            common.DifferentialPrivacyParameters(p["epsilon"], 0.0), value_discretization_interval=GRID
        ),
        "sampled": lambda p: pld.from_gaussian_mechanism(
            p["sigma"], value_discretization_interval=GRID, sampling_prob=p["rate"]
        ),
    }
    if job.quantity == "noise":
        return [-math.inf, dp_accounting_noise(job)]
    if job.quantity == "advantage":
        raise NotImplementedError("no calibration to an advantage")
    composed = None
    for count, mechanism, parameters in job.steps:
        step = makers[mechanism](parameters)
        step = step.self_compose(count) if count > 1 else step
        composed = step if composed is None else composed.compose(step)
    assert composed is not None
    method = composed.get_epsilon_for_delta if job.quantity == "epsilon" else composed.get_delta_for_epsilon
    return [-math.inf, float(method(job.point[0]))]


def dp_accounting_noise(job: Job) -> float:
    """Return the noise that dp-accounting calibrates."""
    import dp_accounting
    from dp_accounting.pld.pld_privacy_accountant import PLDAccountant

    ((count, _, parameters),) = job.steps

    def training(sigma: float) -> Any:
        step = dp_accounting.PoissonSampledDpEvent(parameters["rate"], dp_accounting.GaussianDpEvent(sigma))
        return dp_accounting.SelfComposedDpEvent(step, count)

    accountant = partial(PLDAccountant, value_discretization_interval=GRID)
    bracket = dp_accounting.ExplicitBracketInterval(0.3, 50.0)
    return float(
        dp_accounting.calibrate_dp_mechanism(accountant, training, job.point[0], job.point[1], bracket, tol=1e-6)
    )


def prv_accountant_bounds(job: Job) -> list[float]:
    """Return ε within 0.01 on each side, as the authors of prv-accountant advise."""
    from prv_accountant import GaussianMechanism, LaplaceMechanism, PoissonSubsampledGaussianMechanism, PRVAccountant

    makers: dict[str, Callable[[Parameters], Any]] = {
        "gaussian": lambda p: GaussianMechanism(p["sigma"]),
        "laplace": lambda p: LaplaceMechanism(p["epsilon"]),
        "sampled": lambda p: PoissonSubsampledGaussianMechanism(p["rate"], p["sigma"]),
    }
    if job.quantity != "epsilon" or any(mechanism not in makers for _, mechanism, _ in job.steps):
        raise NotImplementedError(f"no {job.quantity} for {job.steps[0][1]}")
    counts = [count for count, _, _ in job.steps]
    prvs = [makers[mechanism](parameters) for _, mechanism, parameters in job.steps]
    accountant = PRVAccountant(prvs, eps_error=0.01, delta_error=job.point[0] / 1000, max_self_compositions=counts)
    low, _, high = accountant.compute_epsilon(job.point[0], counts)
    return [float(low), float(high)]


def riskcal_bounds(job: Job) -> list[float]:
    """Return the noise for an advantage; riskcal's tolerance is on the advantage."""
    from riskcal.calibration import dpsgd

    if job.quantity != "advantage":
        raise NotImplementedError("calibrates risks only")
    ((count, _, parameters),) = job.steps
    calibrated = dpsgd.find_noise_multiplier_for_advantage(
        job.point[0], parameters["rate"], count, grid_step=GRID, advantage_tol=1e-6
    )
    return [-math.inf, float(getattr(calibrated, "parameter_value", calibrated))]


TOOLS: dict[str, Callable[[Job], list[float]]] = {
    "tightrope": tightrope_bounds,
    "dp_accounting": dp_accounting_bounds,
    "prv_accountant": prv_accountant_bounds,
    "riskcal": riskcal_bounds,
}
PEERS = {tool: tool for tool in TOOLS if tool != "tightrope"}
"""The module of each peer."""


# ------------------------------------------------------------------ one process for each tool and job


def measure_tool(tool: str, job: Job, repeat: int) -> dict[str, Any]:
    """Return the answer and CPU seconds, with fewer repetitions if one takes long. The first answer loads libraries."""
    warnings.simplefilter("ignore")
    answer = TOOLS[tool](job)
    timed = partial(tightrope_bounds, both=False) if tool == "tightrope" else TOOLS[tool]
    seconds: list[float] = []
    while len(seconds) < repeat and sum(seconds) < 10:
        changed_job = perturb_job(job, len(seconds) + 1)
        start = time.process_time()
        timed(changed_job)
        seconds.append(time.process_time() - start)
    return {"answer": answer, "seconds": statistics.median(seconds)}


def stop_at_timeout(timeout: float) -> None:
    """End this process when it has used its CPU seconds."""
    while time.process_time() < timeout:
        time.sleep(0.2)
    print(f"no answer within {timeout:g} CPU seconds", file=sys.stderr, flush=True)
    os._exit(TIMEOUT_CODE)


def run_tool(python: str, tool: str, name: str, options: argparse.Namespace) -> WorkerResult:
    """Run the worker for a tool and a job."""
    command = [python, str(Path(__file__).resolve()), "--worker", tool, "--job", name]
    command += ["--repeat", str(options.repeat), "--timeout", str(options.timeout)]
    return run_worker(command, timeout=4 * options.timeout)


# ------------------------------------------------------------------ the report


@dataclass(frozen=True)
class Row:
    """The result of a tool. ``is_safe``: whether the upper bound is shown to be above the truth."""

    tool: str
    job: str
    seconds: float = math.nan
    upper: float = math.nan
    error: float = math.nan
    is_safe: bool = False
    failure: str = ""


def job_rows(name: str, results: Mapping[str, WorkerResult]) -> list[Row]:
    """Return the rows of all tools that have this function, Tightrope's first."""
    truth, own = JOBS[name].truth, results["tightrope"]
    if truth is None and not own.failure:
        lower, upper = own.values["answer"]
        if upper - lower <= 2 * GOAL_ERROR * upper:
            truth = lower if JOBS[name].quantity in {"noise", "advantage"} else (lower + upper) / 2
    return [tool_row(tool, name, result, truth) for tool, result in results.items() if not result.is_unsupported]


def tool_row(tool: str, name: str, result: WorkerResult, truth: float | None) -> Row:
    """Return the row of one tool, with its relative error if the truth is known."""
    if result.failure:
        return Row(tool, name, failure=result.failure)
    upper = float(result.values["answer"][1])
    if truth is None:
        return Row(tool, name, result.number("seconds"), upper)
    is_safe = upper >= truth * (1 - ROUNDING)
    return Row(tool, name, result.number("seconds"), upper, upper / truth - 1, is_safe)


def row_text(row: Row, own: Row) -> str:
    """Return the printed row."""
    head = f"{row.job:26} {row.tool:15}"
    if row.failure:
        return f"{head} {'':>9} {'':>18} {'':>10}  {row.failure}"
    ratio = "" if row is own else f"{row.seconds / own.seconds:8.1f} x"
    safety = "" if row.is_safe else "UNSAFE" if not math.isnan(row.error) else "no truth"
    return f"{head} {row.seconds * 1e3:9.2f} {row.upper:18.12g} {row.error:10.1e} {ratio:>10} {safety}"


def missed_goals(name: str, rows: list[Row]) -> list[str]:
    """Return the goals that this job misses."""
    own = rows[0]
    if own.failure:
        return [f"{name}: no answer: {own.failure}"]
    missed = [] if abs(own.error) <= GOAL_ERROR else [f"{name}: error {own.error:.1e} is not within {GOAL_ERROR:g}"]
    missed += [] if own.is_safe else [f"{name}: the upper bound is not shown to be above the truth"]
    fastest, caveat = fastest_peer(rows)
    if fastest and fastest.seconds < GOAL_RATIO * own.seconds:
        tightness = caveat or "as tight"
        missed.append(f"{name}: {fastest.seconds / own.seconds:.1f} x faster than {fastest.tool} ({tightness})")
    return missed


def fastest_peer(rows: list[Row]) -> tuple[Row | None, str]:
    """Return the fastest peer that is as tight, else the fastest safe one with the text on its error."""
    own = rows[0]
    safe = [row for row in rows[1:] if not row.failure and row.is_safe]
    tight = [row for row in safe if row.error <= max(own.error, GOAL_ERROR)]
    fastest = min(tight or safe, key=lambda row: row.seconds, default=None)
    return fastest, "" if tight or fastest is None else f"is off by {fastest.error:.0e}"


def job_lines(name: str, rows: list[Row]) -> list[Line]:
    """Return CPU time, compared with ``fastest_peer``, and the error, compared with the smallest of a safe peer."""
    own, note = rows[0], "; ".join(f"{row.tool}: {row.failure}" for row in rows if row.failure)
    if own.failure:
        return [Line("accounting", name, "CPU ms", math.nan, note=note).with_goal("an answer", met=False)]
    time_line = Line("accounting", name, "CPU ms", 1e3 * own.seconds, note=note)
    fastest, caveat = fastest_peer(rows)
    if fastest:
        time_line = time_line.with_peer(fastest.tool, 1e3 * fastest.seconds, caveat)
        time_line = time_line.with_goal(f"{GOAL_RATIO:g} ×", met=fastest.seconds >= GOAL_RATIO * own.seconds)
    error_line = Line("accounting", name, "relative error", abs(own.error))
    closest = min((row for row in rows[1:] if row.is_safe), key=lambda row: row.error, default=None)
    if closest:
        error_line = error_line.with_peer(closest.tool, abs(closest.error))
    met = own.is_safe and abs(own.error) <= GOAL_ERROR
    return [time_line, error_line.with_goal(f"{GOAL_ERROR:g}", met=met)]


def report(options: argparse.Namespace) -> int:
    """Run all jobs and print the results; return the exit code."""
    peers = installed_peers(peers_python(options.peers), PEERS, INSTALL)
    pythons = {"tightrope": sys.executable, **peers}
    print(f"{'job':26} {'tool':15} {'CPU ms':>9} {'upper bound':>18} {'error':>10} {'ours is':>10}")
    table: dict[str, list[Row]] = {}
    lines: list[Line] = []
    for name in options.job or JOBS:
        results = {tool: run_tool(python, tool, name, options) for tool, python in pythons.items()}
        table[name] = job_rows(name, results)
        for row in table[name]:
            print(row_text(row, table[name][0]), flush=True)
        lines += job_lines(name, table[name])
        write_results(options.json, lines, [f"wrong, and not counted: {text}" for text in unsafe_answers(table)])
    print_summary(table)
    return exit_status(lines)


def unsafe_answers(table: dict[str, list[Row]]) -> list[str]:
    """Return the upper bounds that are below the truth."""
    rows = [row for job in table.values() for row in job]
    return [f"{row.tool} on {row.job} ({row.error:.1e})" for row in rows if row.error < 0 and not row.is_safe]


def print_summary(table: dict[str, list[Row]]) -> None:
    """Print each goal and the jobs that miss it; without a peer as tight, the fastest safe one is compared."""
    missed = [line for name, rows in table.items() for line in missed_goals(name, rows)]
    goals = {
        f">= {GOAL_RATIO:g} x faster than the fastest peer that is as tight (else: that is safe)": "x faster than",
        f"every error <= {GOAL_ERROR:g}": "is not within",
        "every upper bound safe": "not shown",
        "every job answered": "no answer",
    }
    for goal, mark in goals.items():
        failing = [line for line in missed if mark in line]
        print(f"goal {goal}: {'met' if not failing else 'MISSED'}", *failing, sep="\n    ")
    print("unsafe answers:", *(unsafe_answers(table) or ["none"]), sep="\n    ")


def main() -> int:
    """Run as a script or as a worker."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--peers", help="the interpreter of the environment with the peers")
    parser.add_argument("--job", action="append", choices=JOBS)
    parser.add_argument("--timeout", type=float, default=60.0)
    parser.add_argument("--repeat", type=int, default=5)
    parser.add_argument("--worker", choices=TOOLS, help=argparse.SUPPRESS)
    add_json_option(parser)
    options = parser.parse_args()
    if options.worker:
        threading.Thread(target=stop_at_timeout, args=(options.timeout,), daemon=True).start()
        print(json.dumps(measure_tool(options.worker, JOBS[options.job[0]], options.repeat)))
        return 0
    return report(options)


if __name__ == "__main__":
    sys.exit(main())
