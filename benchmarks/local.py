"""Local privacy compared with pure-ldp and multi-freq-ldpy: people per CPU second, errors, coverage of intervals.

    python benchmarks/local.py --peers /tmp/peers/bin/python

Each tool measures each mechanism in its own process with one thread. For each person one report is made and counted;
the estimate of all 1024 shares is included in the time. Tightrope's rate is the median of several batches after one
that compiles; it is measured with numba (the extra ``fast``) and with numpy alone. Peers get as few people as they can
process in some seconds. Their local hashing fails with current versions of xxhash: here it gets bytes and 32-bit seeds.
For Tightrope two more numbers are measured, over all cells of 200 runs: the mean squared error divided by its exact
expectation, and how often 95 % intervals contain the true share.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
import time
import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from lines import Line, add_json_option, exit_status, number_text, write_results
from workers import WorkerResult, failure_notes, installed_peers, peers_python, run_worker

if TYPE_CHECKING:
    from tightrope.local.mechanisms.oracle import FrequencyOracle

K, EPSILON = 1024, 1.0
PEER_FACTOR = 20.0
"""The goal is this many times the people of the fastest peer."""
INSTALL = "python3 -m venv /tmp/peers && /tmp/peers/bin/pip install pure-ldp multi-freq-ldpy scikit-learn statsmodels"
EstimateShares = Callable[[Any], Any]


@dataclass(frozen=True)
class Job:
    """The goal in people per CPU second, and the people in a batch of Tightrope, of a peer, and in an accuracy run."""

    goal: float
    people: int
    peer_people: int
    run_people: int


JOBS = {
    "k-RR": Job(2e8, 20_000_000, 100_000, 1_000_000),
    "OUE": Job(1.5e6, 500_000, 5_000, 10_000),
    "hashing": Job(3e6, 10_000_000, 500, 20_000),
    "Hadamard": Job(0.0, 20_000_000, 20_000, 20_000),
    "subsets": Job(0.0, 200_000, 5_000, 5_000),
}


# ------------------------------------------------------------------ the tools: each returns a function that estimates


def local_mechanism(name: str) -> FrequencyOracle:
    """Return Tightrope's mechanism of this name."""
    from tightrope import local

    makers: dict[str, Callable[[float, int], FrequencyOracle]] = {
        "k-RR": local.k_randomized_response,
        "OUE": local.unary_encoding,
        "hashing": local.hashing,
        "Hadamard": local.hadamard,
        "subsets": local.subset_selection,
    }
    return makers[name](EPSILON, K)


def tightrope_estimator(name: str) -> EstimateShares:
    """Return Tightrope's function."""
    mechanism = local_mechanism(name)
    return lambda values: mechanism.estimate(mechanism.perturb(values)).value


def numpy_estimator(name: str) -> EstimateShares:
    """Return Tightrope's function without numba."""
    sys.modules["numba"] = None  # type: ignore[assignment]  # as if it were not installed
    return tightrope_estimator(name)


def repair_hashes() -> None:
    """Pass bytes to xxhash, as its current versions require."""
    import xxhash

    original = xxhash.xxh32
    xxhash.xxh32 = lambda text, seed: original(text.encode(), seed=int(seed))


def pure_ldp_estimator(name: str) -> EstimateShares:
    """Return the function of pure-ldp."""
    import pure_ldp.frequency_oracles as fo
    from pure_ldp.frequency_oracles.hadamard_response import HadamardResponseClient, HadamardResponseServer
    from pure_ldp.frequency_oracles.local_hashing import lh_client

    repair_hashes()
    lh_client.maxsize = 2**32 - 1
    same = {"index_mapper": lambda value: value}

    def hadamard_pair() -> tuple[Any, Any]:
        server = HadamardResponseServer(EPSILON, K, **same)
        return HadamardResponseClient(EPSILON, K, server.get_hash_funcs(), **same), server

    makers: dict[str, Callable[[], tuple[Any, Any]]] = {
        "k-RR": lambda: (fo.DEClient(EPSILON, K, **same), fo.DEServer(EPSILON, K, **same)),
        "OUE": lambda: (fo.UEClient(EPSILON, K, use_oue=True, **same), fo.UEServer(EPSILON, K, use_oue=True, **same)),
        "hashing": lambda: (
            fo.LHClient(EPSILON, K, use_olh=True, **same),
            fo.LHServer(EPSILON, K, use_olh=True, **same),
        ),
        "Hadamard": hadamard_pair,
    }
    if name not in makers:
        raise NotImplementedError("no such mechanism")

    def estimate_shares(values: Any) -> Any:
        client, server = makers[name]()
        for value in values.tolist():
            server.aggregate(client.privatize(value))
        return server.estimate_all(range(K), suppress_warnings=True)

    return estimate_shares


def multi_freq_estimator(name: str) -> EstimateShares:
    """Return the function of multi-freq-ldpy."""
    from multi_freq_ldpy.pure_frequency_oracles import GRR, LH, SS, UE

    repair_hashes()
    LH.maxsize = 2**32 - 1
    makers: dict[str, tuple[Callable[[int], Any], Callable[[Any], Any]]] = {
        "k-RR": (lambda value: GRR.GRR_Client(value, K, EPSILON), lambda r: GRR.GRR_Aggregator_MI(r, K, EPSILON)),
        "OUE": (lambda value: UE.UE_Client(value, K, EPSILON, True), lambda r: UE.UE_Aggregator_MI(r, EPSILON, True)),
        "hashing": (lambda value: LH.LH_Client(value, K, EPSILON), lambda r: LH.LH_Aggregator_MI(r, K, EPSILON)),
        "subsets": (lambda value: SS.SS_Client(value, K, EPSILON), lambda r: SS.SS_Aggregator_MI(r, K, EPSILON)),
    }
    if name not in makers:
        raise NotImplementedError("no such mechanism")
    client, server = makers[name]
    return lambda values: server([client(value) for value in values.tolist()])


TOOLS = {
    "tightrope": tightrope_estimator,
    "numpy alone": numpy_estimator,
    "pure-ldp": pure_ldp_estimator,
    "multi-freq-ldpy": multi_freq_estimator,
}
PEERS = {"pure-ldp": "pure_ldp", "multi-freq-ldpy": "multi_freq_ldpy"}


# ------------------------------------------------------------------ one process for each tool and job


def measure_rate(tool: str, name: str, options: argparse.Namespace) -> dict[str, float]:
    """Return people per CPU second, including all 1024 estimates."""
    warnings.simplefilter("ignore")
    is_peer = tool in PEERS
    people = JOBS[name].peer_people if is_peer else options.people or JOBS[name].people
    values = np.random.default_rng(1).integers(0, K, people)
    estimate_shares = TOOLS[tool](name)
    estimate_shares(values[:50] if is_peer else values)
    rates = []
    for _ in range(1 if is_peer else options.repeat):
        start = time.process_time()
        estimate_shares(values)
        rates.append(len(values) / (time.process_time() - start))
    return {"rate": statistics.median(rates)}


def measure_accuracy(name: str, options: argparse.Namespace) -> dict[str, float]:
    """Return the mean squared error over its expectation, and the coverage of intervals, over all cells and runs."""
    mechanism, people = local_mechanism(name), options.people or JOBS[name].run_people
    values = np.minimum(np.random.default_rng(2).geometric(0.01, people) - 1, K - 1)
    true_shares = np.bincount(values, minlength=K) / people
    expected = float(np.mean([mechanism.estimate_variance(share, people) for share in true_shares.tolist()]))
    errors, coverages = [], []
    for _ in range(options.runs):
        shares = mechanism.estimate(mechanism.perturb(values))
        errors.append(np.mean((shares.value - true_shares) ** 2))
        coverages.append(np.mean((shares.lower <= true_shares) & (true_shares <= shares.upper)))
    return {"error": float(np.mean(errors)) / expected, "coverage": float(np.mean(coverages))}


def run_tool(python: str, tool: str, name: str, options: argparse.Namespace) -> WorkerResult:
    """Run the worker for a tool and a job."""
    command = [python, str(Path(__file__).resolve()), "--worker", tool, "--job", name]
    command += ["--repeat", str(options.repeat), "--runs", str(options.runs), "--people", str(options.people)]
    return run_worker(command)


# ------------------------------------------------------------------ the report


def rate_text(name: str, tool: str, result: WorkerResult, own: WorkerResult) -> str:
    """Return the printed row of one tool."""
    if result.failure:
        return f"{name:10} {tool:16} {'':>12}  {result.failure}"
    ratio = "" if result is own else f"{own.number('rate') / result.number('rate'):12.1f} x"
    return f"{name:10} {tool:16} {result.number('rate') / 1e6:12.4f} {ratio}"


def accuracy_text(name: str, accuracy: WorkerResult) -> str:
    """Return the printed row of errors and coverage."""
    if accuracy.failure:
        return f"{name:10} error and coverage: {accuracy.failure}"
    error, coverage = accuracy.number("error"), 100 * accuracy.number("coverage")
    return f"{name:10} squared error {error:.4f} of theory, 95 % intervals cover {coverage:.2f} %"


def job_lines(name: str, results: Mapping[str, WorkerResult], accuracy: WorkerResult) -> list[Line]:
    """Return people per CPU second compared with the fastest peer, and the accuracy of estimates and intervals."""
    peers = {tool: result.number("rate") / 1e6 for tool, result in results.items() if tool in PEERS and result.values}
    peer = max(peers, key=lambda tool: peers[tool], default="")
    peer_rate = peers.get(peer, 0.0)
    rate, numpy_rate = (results[tool].number("rate") / 1e6 for tool in ("tightrope", "numpy alone"))
    goal = max(JOBS[name].goal / 1e6, PEER_FACTOR * peer_rate)
    error, coverage = accuracy.number("error"), accuracy.number("coverage")
    fast = Line("local", name, "M people a CPU s", rate, larger_is_better=True, note=failure_notes(results))
    slow = Line("local", name, "M people a CPU s, numpy alone", numpy_rate, larger_is_better=True)
    error_line = Line("local", name, "squared error, times theory", error, note=accuracy.failure)
    coverage_line = Line("local", name, "95 % intervals hold", coverage)
    return [
        fast.with_peer(peer, peer_rate).with_goal(number_text(goal), met=rate >= goal),
        slow.with_peer(peer, peer_rate),
        error_line.with_goal("1 ± 0.05", met=abs(error - 1) <= 0.05),
        coverage_line.with_goal("0.94 – 0.965", met=0.94 <= coverage <= 0.965),
    ]


def report(options: argparse.Namespace) -> int:
    """Run all jobs and print the results; return the exit code."""
    peers = installed_peers(peers_python(options.peers), PEERS, INSTALL)
    pythons = {"tightrope": sys.executable, "numpy alone": sys.executable, **peers}
    print(f"k = {K}, epsilon = {EPSILON:g}")
    print(f"{'mechanism':10} {'tool':16} {'M people/CPU s':>12} {'tightrope is':>13}")
    lines: list[Line] = []
    for name in options.job or JOBS:
        results = {tool: run_tool(python, tool, name, options) for tool, python in pythons.items()}
        for tool, result in results.items():
            if not result.is_unsupported:
                print(rate_text(name, tool, result, results["tightrope"]), flush=True)
        accuracy = run_tool(sys.executable, "accuracy", name, options)
        print(accuracy_text(name, accuracy), flush=True)
        lines += job_lines(name, results, accuracy)
    missed = [
        f"{line.job}: {line.measured}: {line.ours:.3g}, goal {line.goal}" for line in lines if line.goal_met is False
    ]
    print("all goals met" if not missed else "MISSED:", *missed, sep="\n    ")
    write_results(options.json, lines, [f"{tool} is not installed" for tool in PEERS if tool not in peers])
    return exit_status(lines)


def main() -> int:
    """Run as a script or as a worker."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--peers", help="the interpreter of the environment with pure-ldp and multi-freq-ldpy")
    parser.add_argument("--job", action="append", choices=JOBS)
    parser.add_argument("--repeat", type=int, default=5)
    parser.add_argument("--runs", type=int, default=200)
    parser.add_argument("--people", type=int, default=0, help="people in every batch of Tightrope; 0: as the job says")
    parser.add_argument("--worker", choices=[*TOOLS, "accuracy"], help=argparse.SUPPRESS)
    add_json_option(parser)
    options = parser.parse_args()
    if options.worker == "accuracy":
        print(json.dumps(measure_accuracy(options.job[0], options)))
    elif options.worker:
        print(json.dumps(measure_rate(options.worker, options.job[0], options)))
    else:
        return report(options)
    return 0


if __name__ == "__main__":
    sys.exit(main())
