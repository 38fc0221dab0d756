"""What an answer costs and how far off it is: Tightrope beside dp-accounting, prv-accountant and riskcal, in one run.

    python benchmarks/accounting.py [--peers /tmp/peers/bin/python] [--job NAME ...] [--timeout 60] [--repeat 5]

Peers live in an environment of their own (they are no dependency of ours):

    python3 -m venv /tmp/peers && /tmp/peers/bin/pip install dp-accounting prv-accountant riskcal

Without ``--peers``, /tmp/peers is tried, then this environment; a peer that is not there is skipped. Each tool does
each job in a process of its own that is stopped after ``--timeout`` CPU seconds. The time of an answer is CPU seconds
from the parameters to the number, the median of several; each repetition changes a parameter by 1e-7 so that nothing
kept from the last one helps. Errors are against 16 digits by mpmath (``tests/oracle``) or, where none are given,
against Tightrope's own bracket when that is narrower than 1e-9.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import statistics
import subprocess
import sys
import threading
import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from lines import Line, option, write

GRID = 1e-4
"""The lattice that dp-accounting and riskcal are run with: their default."""
GOAL_RATIO, GOAL_ERROR = 20.0, 1e-9
ROUNDING = 1e-13
"""An upper bound this little below the truth is rounding of the reference."""
TOO_LONG = 99
"""The exit code of a worker that was stopped."""
HELP = "python3 -m venv /tmp/peers && /tmp/peers/bin/pip install dp-accounting prv-accountant riskcal"
Step = tuple[int, str, dict[str, float]]


@dataclass(frozen=True)
class Job:
    """``ask``: epsilon at ``at`` = delta, delta at epsilon, or the noise for (epsilon, delta) or for an advantage."""

    ask: str
    steps: tuple[Step, ...]
    at: tuple[float, ...]
    truth: float | None = None


def sampled(count: int, sigma: float, rate: float) -> Step:
    return count, "sampled", {"sigma": sigma, "rate": rate}


MIX = tuple((1, "laplace", {"epsilon": 0.02 + 0.002 * i}) for i in range(50)) + tuple(
    (1, "gaussian", {"sigma": 20.0 + i}) for i in range(50)
)
SAMPLED_MIX = tuple(sampled(10, 1.0 + 0.01 * i, 0.01) for i in range(100))
JOBS: dict[str, Job] = {
    "gaussian x100": Job("epsilon", ((100, "gaussian", {"sigma": 10.0}),), (1e-6,), 4.886554117462212),
    "gaussian x100, delta 1e-30": Job("epsilon", ((100, "gaussian", {"sigma": 10.0}),), (1e-30,), 11.743883025231736),
    "laplace x10": Job("epsilon", ((10, "laplace", {"epsilon": 0.5}),), (1e-3,), 4.521308127047462),
    "laplace x100": Job("epsilon", ((100, "laplace", {"epsilon": 0.2}),), (1e-6,), 10.276481098581481),
    "laplace x1000": Job("epsilon", ((1000, "laplace", {"epsilon": 0.1}),), (1e-5,), 17.423651987537448),
    "laplace x10^4": Job("epsilon", ((10**4, "laplace", {"epsilon": 0.02}),), (1e-6,), 10.949913490760348),
    "response x10^4": Job("epsilon", ((10**4, "response", {"epsilon": 0.05}),), (1e-6,), 35.54450427280747),
    "response x10^6": Job("epsilon", ((10**6, "response", {"epsilon": 1e-6}),), (1e-6,), 0.0027182170558518142),
    "dp-sgd x1000": Job("epsilon", (sampled(1000, 1.0, 0.01),), (1e-6,), 2.1245151711201213),
    "dp-sgd x10^4": Job("epsilon", (sampled(10**4, 1.0, 0.01),), (1e-6,), 6.9073844950450815),
    "dp-sgd x10^5": Job("epsilon", (sampled(10**5, 1.0, 1e-3),), (1e-6,)),
    "dp-sgd x10^6": Job("epsilon", (sampled(10**6, 2.0, 1e-3),), (1e-6,), 2.4208583477297973),
    "dp-sgd x1000, delta at 8": Job("delta", (sampled(1000, 1.0, 0.01),), (8.0,)),
    "100 different steps": Job("epsilon", MIX, (1e-6,), 2.4234428590411904),
    "100 sampled sizes": Job("epsilon", SAMPLED_MIX, (1e-6,)),
    "noisy max x10": Job("epsilon", ((10, "range", {"epsilon": 0.1}),), (1e-6,)),
    "noisy max x10, delta at 0.3": Job("delta", ((10, "range", {"epsilon": 0.1}),), (0.3,)),
    "noise for (1, 1e-6)": Job("noise", (sampled(1000, 1.0, 0.01),), (1.0, 1e-6)),
    "noise for advantage 0.1": Job("advantage", (sampled(1000, 1.0, 0.01),), (0.1,)),
}


def moved(job: Job, repetition: int) -> Job:
    """The first parameter of each step, changed a little."""
    factor = 1 + 1e-7 * repetition
    steps = tuple((n, law, {k: v * (factor if k != "rate" else 1) for k, v in p.items()}) for n, law, p in job.steps)
    return Job(job.ask, steps, job.at)


# ------------------------------------------------------------------ the tools: a job gives [lower, upper]


def tightrope(job: Job, *, both: bool = True) -> list[float]:
    """The bracket; only its upper end, which is the answer, where the time is taken."""
    import tightrope as tr

    makers: dict[str, Callable[[dict[str, float]], Any]] = {
        "gaussian": lambda p: tr.gaussian(scale=p["sigma"]).loss,
        "laplace": lambda p: tr.laplace(scale=1, sensitivity=p["epsilon"]).loss,
        "response": lambda p: tr.approx_dp(p["epsilon"]).loss,
        "range": lambda p: tr.bounded_range(epsilon=p["epsilon"]).loss,
        "sampled": lambda p: tr.gaussian(scale=p["sigma"]).loss.poisson_sample(p["rate"]),
    }
    if job.ask in {"noise", "advantage"}:
        return _tightrope_noise(job, makers["sampled"])
    loss = sum(count * makers[law](parameters) for count, law, parameters in job.steps)
    if not both:
        return [-math.inf, loss.epsilon(job.at[0]) if job.ask == "epsilon" else loss.delta(job.at[0])]
    bounds = loss.epsilon_bounds(job.at[0]) if job.ask == "epsilon" else loss.delta_bounds(job.at[0])
    return [bounds.lower, bounds.upper]


def _tightrope_noise(job: Job, sampled_loss: Callable[[dict[str, float]], Any]) -> list[float]:
    """The least noise, which is private, and the 1e-9 below it that is not."""
    import tightrope as tr
    from tightrope.noise.calibrate import calibrate

    ((count, _, parameters),) = job.steps
    budget = (
        tr.Budget(epsilon=job.at[0], delta=job.at[1])
        if job.ask == "noise"
        else tr.Budget(total_variation=job.at[0], delta=1e-9)
    )
    found = calibrate(
        lambda sigma: count * sampled_loss({**parameters, "sigma": sigma}), budget, smallest=0.3, largest=50.0
    )
    return [found.parameter * (1 - 1e-9), found.parameter]


def dp_accounting(job: Job) -> list[float]:
    """Pessimistic loss distributions on its default lattice."""
    from dp_accounting.pld import common
    from dp_accounting.pld import privacy_loss_distribution as pld

    makers: dict[str, Callable[[dict[str, float]], Any]] = {
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

    def composed(steps: tuple[Step, ...]) -> Any:
        whole = None
        for count, law, parameters in steps:
            part = makers[law](parameters)
            part = part.self_compose(count) if count > 1 else part
            whole = part if whole is None else whole.compose(part)
        return whole

    if job.ask == "noise":
        return [-math.inf, _dp_accounting_noise(job, composed)]
    if job.ask == "advantage":
        raise NotImplementedError("no calibration to an advantage")
    whole = composed(job.steps)
    asked = whole.get_epsilon_for_delta if job.ask == "epsilon" else whole.get_delta_for_epsilon
    return [-math.inf, float(asked(job.at[0]))]


def _dp_accounting_noise(job: Job, composed: Callable[[tuple[Step, ...]], Any]) -> float:
    import dp_accounting
    from dp_accounting.pld.pld_privacy_accountant import PLDAccountant

    del composed
    ((count, _, parameters),) = job.steps

    def event(sigma: float) -> Any:
        step = dp_accounting.PoissonSampledDpEvent(parameters["rate"], dp_accounting.GaussianDpEvent(sigma))
        return dp_accounting.SelfComposedDpEvent(step, count)

    accountant = lambda: PLDAccountant(value_discretization_interval=GRID)  # noqa: E731
    bracket = dp_accounting.ExplicitBracketInterval(0.3, 50.0)
    found = dp_accounting.calibrate_dp_mechanism(accountant, event, job.at[0], job.at[1], bracket, tol=1e-6)
    return float(found)


def prv_accountant(job: Job) -> list[float]:
    """ε within 0.01 each side, as its authors advise."""
    from prv_accountant import GaussianMechanism, LaplaceMechanism, PoissonSubsampledGaussianMechanism, PRVAccountant

    makers: dict[str, Callable[[dict[str, float]], Any]] = {
        "gaussian": lambda p: GaussianMechanism(p["sigma"]),
        "laplace": lambda p: LaplaceMechanism(p["epsilon"]),
        "sampled": lambda p: PoissonSubsampledGaussianMechanism(p["rate"], p["sigma"]),
    }
    if job.ask != "epsilon" or any(law not in makers for _, law, _ in job.steps):
        raise NotImplementedError(f"no {job.ask} for {job.steps[0][1]}")
    counts = [count for count, _, _ in job.steps]
    prvs = [makers[law](parameters) for _, law, parameters in job.steps]
    accountant = PRVAccountant(prvs, eps_error=0.01, delta_error=job.at[0] / 1000, max_self_compositions=counts)
    low, _, high = accountant.compute_epsilon(job.at[0], counts)
    return [float(low), float(high)]


def riskcal(job: Job) -> list[float]:
    """Calibration to an advantage; its tolerance is on the advantage."""
    from riskcal.calibration import dpsgd

    if job.ask != "advantage":
        raise NotImplementedError("calibrates risks only")
    ((count, _, parameters),) = job.steps
    found = dpsgd.find_noise_multiplier_for_advantage(
        job.at[0], parameters["rate"], count, grid_step=GRID, advantage_tol=1e-6
    )
    return [-math.inf, float(getattr(found, "parameter_value", found))]


ONE_THREAD = {**os.environ, "OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"}
"""For every tool: threads that wait for each other would count as CPU seconds."""
TOOLS: dict[str, Callable[[Job], list[float]]] = {
    "tightrope": tightrope,
    "dp_accounting": dp_accounting,
    "prv_accountant": prv_accountant,
    "riskcal": riskcal,
}


# ------------------------------------------------------------------ one process a tool and a job


def measure(tool: str, job: Job, repeat: int) -> dict[str, Any]:
    """Answer and CPU seconds; fewer repetitions where one takes long. The first answer loads the libraries."""
    warnings.simplefilter("ignore")
    answer = TOOLS[tool](job)
    timed = partial(tightrope, both=False) if tool == "tightrope" else TOOLS[tool]
    seconds: list[float] = []
    while len(seconds) < repeat and sum(seconds) < 10:
        question = moved(job, len(seconds) + 1)
        started = time.process_time()
        timed(question)
        seconds.append(time.process_time() - started)
    return {"answer": answer, "seconds": statistics.median(seconds)}


def watch(timeout: float) -> None:
    """Ends this process when it has used its CPU seconds."""
    while time.process_time() < timeout:
        time.sleep(0.2)
    os._exit(TOO_LONG)


def run(python: str, tool: str, name: str, options: argparse.Namespace) -> dict[str, Any]:
    command = [python, str(Path(__file__).resolve()), "--worker", tool, "--job", name]
    command += ["--repeat", str(options.repeat), "--timeout", str(options.timeout)]
    try:
        limit = 4 * options.timeout
        done = subprocess.run(command, capture_output=True, text=True, timeout=limit, check=False, env=ONE_THREAD)
    except subprocess.TimeoutExpired:
        return {"failed": f"more than {4 * options.timeout:g} s"}
    if done.returncode == TOO_LONG:
        return {"failed": f"more than {options.timeout:g} CPU seconds"}
    if done.returncode:
        return {"failed": (done.stderr.strip().splitlines() or ["died"])[-1][:90]}
    return json.loads(done.stdout.splitlines()[-1])


def installed(python: str, tool: str) -> bool:
    check = f"import importlib.util, sys; sys.exit(importlib.util.find_spec({tool!r}) is None)"
    return subprocess.run([python, "-c", check], check=False).returncode == 0


def pythons(options: argparse.Namespace) -> dict[str, str]:
    """The interpreter of each tool that is there."""
    usual = Path("/tmp/peers/bin/python")
    peers = options.peers or (str(usual) if usual.exists() else sys.executable)
    found = {tool: peers for tool in list(TOOLS)[1:] if installed(peers, tool)}
    for tool in list(TOOLS)[1:]:
        if tool not in found:
            print(f"{tool} is not installed and skipped: {HELP}")
    return {"tightrope": sys.executable, **found}


# ------------------------------------------------------------------ the report


@dataclass(frozen=True)
class Row:
    tool: str
    job: str
    seconds: float = math.nan
    upper: float = math.nan
    error: float = math.nan
    safe: bool = False
    failed: str = ""


def rows(name: str, found: dict[str, dict[str, Any]]) -> list[Row]:
    truth = JOBS[name].truth
    own = found["tightrope"].get("answer")
    if truth is None and own is not None and own[1] - own[0] <= 2 * GOAL_ERROR * own[1]:
        truth = own[0] if JOBS[name].ask in {"noise", "advantage"} else (own[0] + own[1]) / 2
    return [_row(tool, name, result, truth) for tool, result in found.items()]


def _row(tool: str, name: str, result: dict[str, Any], truth: float | None) -> Row:
    if "failed" in result:
        return Row(tool, name, failed=result["failed"])
    upper = float(result["answer"][1])
    if truth is None:
        return Row(tool, name, result["seconds"], upper)
    return Row(tool, name, result["seconds"], upper, upper / truth - 1, upper >= truth * (1 - ROUNDING))


def shown(row: Row, own: Row) -> str:
    head = f"{row.job:26} {row.tool:15}"
    if row.failed:
        return f"{head} {'':>9} {'':>18} {'':>10}  {row.failed}"
    ratio = "" if row is own else f"{row.seconds / own.seconds:8.1f} x"
    safe = "" if row.safe else "UNSAFE" if not math.isnan(row.error) else "no truth"
    return f"{head} {row.seconds * 1e3:9.2f} {row.upper:18.12g} {row.error:10.1e} {ratio:>10} {safe}"


def verdict(name: str, found: list[Row]) -> list[str]:
    """Which goals this job misses."""
    own = found[0]
    if own.failed:
        return [f"{name}: no answer: {own.failed}"]
    missed = [] if abs(own.error) <= GOAL_ERROR else [f"{name}: error {own.error:.1e} is not within {GOAL_ERROR:g}"]
    missed += [] if own.safe else [f"{name}: the upper bound is not shown to be above the truth"]
    fastest, kind = rival(found)
    if fastest and fastest.seconds < GOAL_RATIO * own.seconds:
        kind = kind or "as tight"
        missed.append(f"{name}: {fastest.seconds / own.seconds:.1f} x faster than {fastest.tool} ({kind})")
    return missed


def rival(found: list[Row]) -> tuple[Row | None, str]:
    """The fastest that is as tight, else the fastest that is safe and by how much it is off."""
    own = found[0]
    safe = [row for row in found[1:] if not row.failed and row.safe]
    tight = [row for row in safe if row.error <= max(own.error, GOAL_ERROR)]
    fastest = min(tight or safe, key=lambda row: row.seconds, default=None)
    return fastest, "" if tight or fastest is None else f"is off by {fastest.error:.0e}"


def lines_of(name: str, found: list[Row]) -> list[Line]:
    """CPU seconds beside ``rival``, and the error beside the smallest of a safe one."""
    own, note = found[0], "; ".join(f"{row.tool}: {row.failed}" for row in found if row.failed)
    if own.failed:
        return [Line("accounting", name, "CPU ms", math.nan, note=note, met=False, goal="an answer")]
    fastest, less = rival(found)
    ratio = fastest.seconds / own.seconds if fastest else math.inf
    goal = {"goal": f"{GOAL_RATIO:g} ×", "met": ratio >= GOAL_RATIO} if fastest else {}
    beside = {"peer": fastest.tool, "theirs": 1e3 * fastest.seconds} if fastest else {}
    time_line = Line("accounting", name, "CPU ms", 1e3 * own.seconds, **beside, less=less, **goal, note=note)
    closest = min((row for row in found[1:] if row.safe), key=lambda row: row.error, default=None)
    beside = {"peer": closest.tool, "theirs": abs(closest.error)} if closest else {}
    met = own.safe and abs(own.error) <= GOAL_ERROR
    error = Line("accounting", name, "relative error", abs(own.error), **beside, goal=f"{GOAL_ERROR:g}", met=met)
    return [time_line, error]


def report(options: argparse.Namespace) -> None:
    interpreters = pythons(options)
    print(f"{'job':26} {'tool':15} {'CPU ms':>9} {'upper bound':>18} {'error':>10} {'ours is':>10}")
    table: dict[str, list[Row]] = {}
    for name in options.job or JOBS:
        found = {tool: run(python, tool, name, options) for tool, python in interpreters.items()}
        table[name] = [row for row in rows(name, found) if not row.failed.startswith("NotImplementedError")]
        for row in table[name]:
            print(shown(row, table[name][0]), flush=True)
        lines = [line for one, found in table.items() for line in lines_of(one, found)]
        write(options.json, lines, [f"not true, and not counted: {text}" for text in untrue(table)])
    summary(table)


def untrue(table: dict[str, list[Row]]) -> list[str]:
    """Upper bounds that are below the truth."""
    every = [row for found in table.values() for row in found]
    return [f"{row.tool} on {row.job} ({row.error:.1e})" for row in every if row.error < 0 and not row.safe]


def summary(table: dict[str, list[Row]]) -> None:
    """A line for each goal; a job without a rival as tight is held against the fastest safe one."""
    missed = [line for name, found in table.items() for line in verdict(name, found)]
    goals = {
        f">= {GOAL_RATIO:g} x faster than the fastest peer that is as tight (else: that is safe)": "x faster than",
        f"every error <= {GOAL_ERROR:g}": "is not within",
        "every upper bound safe": "not shown",
        "every job answered": "no answer",
    }
    for goal, mark in goals.items():
        failing = [line for line in missed if mark in line]
        print(f"goal {goal}: {'met' if not failing else 'MISSED'}", *failing, sep="\n    ")
    print("unsafe answers:", *(untrue(table) or ["none"]), sep="\n    ")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--peers", help="the python of the environment that has the peers")
    parser.add_argument("--job", action="append", choices=JOBS)
    parser.add_argument("--timeout", type=float, default=60.0)
    parser.add_argument("--repeat", type=int, default=5)
    parser.add_argument("--worker", choices=TOOLS, help=argparse.SUPPRESS)
    option(parser)
    options = parser.parse_args()
    if options.worker:
        threading.Thread(target=watch, args=(options.timeout,), daemon=True).start()
        print(json.dumps(measure(options.worker, JOBS[options.job[0]], options.repeat)))
        return
    report(options)


if __name__ == "__main__":
    main()
