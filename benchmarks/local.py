"""Local privacy beside pure-ldp and multi-freq-ldpy: people a CPU second, errors against theory, coverage of intervals.

    python benchmarks/local.py --peers /tmp/peers/bin/python

Each tool and mechanism runs in a process of its own, one thread. A person is one report made and counted; the estimate
of all 1024 shares is in the time. Tightrope's rate is the median of several batches after one that compiles; it is
measured twice: with numba (the extra ``fast``) and with numpy alone. The peers get as many people as they do in some
seconds. Their local hashing crashes with current xxhash: here it is given bytes and seeds of 32 bits.
Then, for Tightrope: the mean squared error over the theory of the realized chances, and how often 95 % intervals cover,
over all cells of 200 runs.
"""

from __future__ import annotations

import argparse
import json
import math
import statistics
import subprocess
import sys
import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from lines import Line, number, option, write

K, EPSILON = 1024, 1.0
WORTH = 20.0
"""Times the people of the fastest peer that are wanted."""
HELP = "python3 -m venv /tmp/peers && /tmp/peers/bin/pip install pure-ldp multi-freq-ldpy scikit-learn statsmodels"
Collect = Callable[[Any], Any]


@dataclass(frozen=True)
class Job:
    """``goal``: people a CPU second; ``people``: a batch of ours, of a peer's; ``run``: those in a run for coverage."""

    goal: float
    people: int
    peer_users: int
    run: int


JOBS = {
    "k-RR": Job(2e8, 20_000_000, 100_000, 1_000_000),
    "OUE": Job(1.5e6, 500_000, 5_000, 10_000),
    "hashing": Job(3e6, 10_000_000, 500, 20_000),
    "Hadamard": Job(0.0, 20_000_000, 20_000, 20_000),
    "subsets": Job(0.0, 200_000, 5_000, 5_000),
}


# ------------------------------------------------------------------ the tools: a job gives a function that collects


def oracle(name: str) -> Any:
    from tightrope import local

    makers = {
        "k-RR": local.k_randomized_response,
        "OUE": local.unary_encoding,
        "hashing": local.hashing,
        "Hadamard": local.hadamard,
        "subsets": local.subset_selection,
    }
    return makers[name](EPSILON, K)


def tightrope(name: str) -> Collect:
    mechanism = oracle(name)
    return lambda values: mechanism.estimate(mechanism.perturb(values)).value


def numpy_alone(name: str) -> Collect:
    sys.modules["numba"] = None  # type: ignore[assignment]  # as if it were not installed
    return tightrope(name)


def mend_hashes() -> None:
    import xxhash

    true = xxhash.xxh32
    xxhash.xxh32 = lambda text, seed: true(text.encode(), seed=int(seed))


def pure_ldp(name: str) -> Collect:
    import pure_ldp.frequency_oracles as fo
    from pure_ldp.frequency_oracles.hadamard_response import HadamardResponseClient, HadamardResponseServer
    from pure_ldp.frequency_oracles.local_hashing import lh_client

    mend_hashes()
    lh_client.maxsize = 2**32 - 1
    same = {"index_mapper": lambda value: value}

    def hadamard() -> tuple[Any, Any]:
        server = HadamardResponseServer(EPSILON, K, **same)
        return HadamardResponseClient(EPSILON, K, server.get_hash_funcs(), **same), server

    makers: dict[str, Callable[[], tuple[Any, Any]]] = {
        "k-RR": lambda: (fo.DEClient(EPSILON, K, **same), fo.DEServer(EPSILON, K, **same)),
        "OUE": lambda: (fo.UEClient(EPSILON, K, use_oue=True, **same), fo.UEServer(EPSILON, K, use_oue=True, **same)),
        "hashing": lambda: (
            fo.LHClient(EPSILON, K, use_olh=True, **same),
            fo.LHServer(EPSILON, K, use_olh=True, **same),
        ),
        "Hadamard": hadamard,
    }
    if name not in makers:
        raise NotImplementedError("no such mechanism")

    def collect(values: Any) -> Any:
        client, server = makers[name]()
        for value in values.tolist():
            server.aggregate(client.privatize(value))
        return server.estimate_all(range(K), suppress_warnings=True)

    return collect


def multi_freq(name: str) -> Collect:
    from multi_freq_ldpy.pure_frequency_oracles import GRR, LH, SS, UE

    mend_hashes()
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


TOOLS = {"tightrope": tightrope, "numpy alone": numpy_alone, "pure-ldp": pure_ldp, "multi-freq-ldpy": multi_freq}
PEERS = {"pure-ldp": "pure_ldp", "multi-freq-ldpy": "multi_freq_ldpy"}


# ------------------------------------------------------------------ one process a tool and a job


def measure(tool: str, name: str, options: argparse.Namespace) -> dict[str, float]:
    """People a CPU second, all 1024 estimates included."""
    warnings.simplefilter("ignore")
    peer = tool in PEERS
    values = np.random.default_rng(1).integers(0, K, JOBS[name].peer_users if peer else JOBS[name].people)
    collect = TOOLS[tool](name)
    collect(values[:50] if peer else values)
    rates = []
    for _ in range(1 if peer else options.repeat):
        started = time.process_time()
        collect(values)
        rates.append(len(values) / (time.process_time() - started))
    return {"rate": statistics.median(rates)}


def accuracy(name: str, options: argparse.Namespace) -> dict[str, float]:
    """Mean squared error over theory, and the share of intervals that hold the truth, over all cells and runs."""
    mechanism, size = oracle(name), JOBS[name].run
    values = np.minimum(np.random.default_rng(2).geometric(0.01, size) - 1, K - 1)
    truth = np.bincount(values, minlength=K) / size
    other, own = (float(v) for v in mechanism.variances)
    theory = float(np.mean(other * (1 - truth) + own * truth)) / size
    errors, covered = [], []
    for _ in range(options.runs):
        shares = mechanism.estimate(mechanism.perturb(values))
        errors.append(np.mean((shares.value - truth) ** 2))
        covered.append(np.mean((shares.lower <= truth) & (truth <= shares.upper)))
    return {"error": float(np.mean(errors)) / theory, "covered": float(np.mean(covered))}


def run(python: str, tool: str, name: str, options: argparse.Namespace) -> dict[str, Any]:
    command = [python, str(Path(__file__).resolve()), "--worker", tool, "--job", name]
    command += ["--repeat", str(options.repeat), "--runs", str(options.runs)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        return {"failed": (done.stderr.strip().splitlines() or ["died"])[-1][:90]}
    return json.loads(done.stdout.splitlines()[-1])


def pythons(options: argparse.Namespace) -> dict[str, str]:
    """The interpreter of each tool that is there."""
    usual = Path("/tmp/peers/bin/python")
    peers = options.peers or (str(usual) if usual.exists() else sys.executable)
    found = {"tightrope": sys.executable, "numpy alone": sys.executable}
    for tool, module in PEERS.items():
        check = f"import importlib.util, sys; sys.exit(importlib.util.find_spec({module!r}) is None)"
        if subprocess.run([peers, "-c", check], check=False).returncode == 0:
            found[tool] = peers
        else:
            print(f"{tool} is not installed and skipped: {HELP}")
    return found


# ------------------------------------------------------------------ the report


def shown(name: str, tool: str, result: dict[str, Any], own: dict[str, Any]) -> str:
    head = f"{name:10} {tool:16}"
    if "failed" in result:
        return f"{head} {'':>12}  {result['failed']}"
    ratio = "" if result is own or "failed" in own else f"{own['rate'] / result['rate']:12.1f} x"
    return f"{head} {result['rate'] / 1e6:12.4f} {ratio}"


def misses(name: str, found: dict[str, dict[str, Any]], exact: dict[str, Any]) -> list[str]:
    rate = found["tightrope"].get("rate", 0.0)
    peers = [found[tool]["rate"] for tool in PEERS if "rate" in found.get(tool, {})]
    wanted = max([JOBS[name].goal, *(WORTH * peer for peer in peers)])
    out = [] if rate >= wanted else [f"{name}: {rate:.3g} of {wanted:.3g} people a CPU second"]
    if not abs(exact.get("error", 0.0) - 1) <= 0.05:
        out.append(f"{name}: error {exact.get('error')} of theory")
    if not 0.94 <= exact.get("covered", 0.0) <= 0.965:
        out.append(f"{name}: intervals cover {exact.get('covered')}")
    return out


def report(options: argparse.Namespace) -> None:
    interpreters = pythons(options)
    print(f"k = {K}, epsilon = {EPSILON:g}")
    print(f"{'mechanism':10} {'tool':16} {'M people/CPU s':>12} {'tightrope is':>13}")
    missed: list[str] = []
    lines: list[Line] = []
    for name in options.job or JOBS:
        found = {tool: run(python, tool, name, options) for tool, python in interpreters.items()}
        for tool, result in found.items():
            if "NotImplementedError" not in result.get("failed", ""):
                print(shown(name, tool, result, found["tightrope"]), flush=True)
        exact = run(sys.executable, "accuracy", name, options)
        print(f"{name:10} squared error {exact.get('error', 0):.4f} of theory, 95 % intervals cover", end=" ")
        print(f"{100 * exact.get('covered', 0):.2f} %", exact.get("failed", ""), flush=True)
        missed += misses(name, found, exact)
        lines += lines_of(name, found, exact)
    print("every goal met" if not missed else "MISSED:", *missed, sep="\n    ")
    write(options.json, lines, [f"{tool} is not installed" for tool in PEERS if tool not in interpreters])


def lines_of(name: str, found: dict[str, dict[str, Any]], exact: dict[str, Any]) -> list[Line]:
    """People a CPU second beside the fastest peer, and how right estimates and intervals are."""
    peers = {tool: said["rate"] / 1e6 for tool, said in found.items() if tool in PEERS and "rate" in said}
    peer = max(peers, key=lambda tool: peers[tool], default="")
    rate, alone = (found[tool].get("rate", math.nan) / 1e6 for tool in ("tightrope", "numpy alone"))
    wanted = max(JOBS[name].goal / 1e6, WORTH * peers.get(peer, 0.0))
    note = "; ".join(f"{tool}: {said['failed']}" for tool, said in found.items() if _broke(said))
    beside = {"peer": peer, "theirs": peers.get(peer, math.nan), "larger": True}
    error, covered = exact.get("error", math.nan), exact.get("covered", math.nan)
    fast = Line("local", name, "M people a CPU s", rate, **beside, goal=number(wanted), met=rate >= wanted, note=note)
    return [
        fast,
        Line("local", name, "M people a CPU s, numpy alone", alone, **beside),
        Line("local", name, "squared error, times theory", error, goal="1 ± 0.05", met=abs(error - 1) <= 0.05),
        Line("local", name, "95 % intervals hold", covered, goal="0.94 – 0.965", met=0.94 <= covered <= 0.965),
    ]


def _broke(said: dict[str, Any]) -> bool:
    return "failed" in said and "NotImplementedError" not in said["failed"]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--peers", help="the python of the environment that has pure-ldp and multi-freq-ldpy")
    parser.add_argument("--job", action="append", choices=JOBS)
    parser.add_argument("--repeat", type=int, default=5)
    parser.add_argument("--runs", type=int, default=200)
    parser.add_argument("--worker", choices=[*TOOLS, "accuracy"], help=argparse.SUPPRESS)
    option(parser)
    options = parser.parse_args()
    if options.worker == "accuracy":
        print(json.dumps(accuracy(options.job[0], options)))
    elif options.worker:
        print(json.dumps(measure(options.worker, options.job[0], options)))
    else:
        report(options)


if __name__ == "__main__":
    main()
