"""Writes cases/small_rates.json: dp-accounting's ε for the sixty trainings, on the finest grid that it can hold.

    PYTHONPATH=. /tmp/peers/bin/python tests/peers/small_rates_by_dp_accounting.py     (an hour; one process a try)

From 1e-5 each grid is ten times finer than the last, down to 1e-7, until one takes more than SECONDS of processor time
or BYTES (or threatens to); where 1e-5 is too fine, ten times coarser ones are tried.
"""

from __future__ import annotations

import json
import math
import resource
import subprocess
import sys
import time
from pathlib import Path

from tests.oracle.small_rate_settings import settings

FILE = Path(__file__).parent / "cases" / "small_rates.json"
FINER, COARSER = (1e-5, 1e-6, 1e-7), (1e-4, 1e-3)
SECONDS, BYTES = 60, 4 << 30


def answered(index: int, grid: float) -> tuple[float, float]:
    """The upper bound and the processor time that it took, in a process with its limits set."""
    from dp_accounting.pld import privacy_loss_distribution as pld

    resource.setrlimit(resource.RLIMIT_CPU, (SECONDS, SECONDS))
    resource.setrlimit(resource.RLIMIT_AS, (BYTES, BYTES))
    setting, start = settings()[index], time.process_time()
    step = pld.from_gaussian_mechanism(
        setting.sigma, value_discretization_interval=grid, sampling_prob=setting.rate, use_connect_dots=True
    )
    upper = float(step.self_compose(setting.steps).get_epsilon_for_delta(setting.delta))
    return upper, time.process_time() - start


def best(index: int) -> dict[str, object]:
    kept: dict[str, object] = {"index": index, "upper": None, "grid": None}
    for grid in FINER:
        upper, spent = tried(index, grid)
        if not 0 < upper < math.inf:
            break
        kept |= {"upper": upper, "grid": grid}
        if 3 * spent > SECONDS:
            break
    for grid in COARSER if kept["upper"] is None else ():
        upper, _ = tried(index, grid)
        if 0 < upper < math.inf:
            return kept | {"upper": upper, "grid": grid}
    return kept


def tried(index: int, grid: float) -> tuple[float, float]:
    """(ε, seconds) in a process of its own; ε is infinite where it was stopped."""
    command = [sys.executable, __file__, str(index), str(grid)]
    said = subprocess.run(command, capture_output=True, text=True, check=False).stdout.split()
    return (float(said[0]), float(said[1])) if said else (math.inf, math.inf)


def main() -> None:
    kept = {c["index"]: c for c in json.loads(FILE.read_text(encoding="utf-8"))} if FILE.exists() else {}
    for index in range(len(settings())):
        if index in kept:
            continue
        kept[index] = best(index)
        print(kept[index], flush=True)
        lines = ",\n".join(" " + json.dumps(kept[i]) for i in sorted(kept))
        FILE.write_text(f"[\n{lines}\n]\n", encoding="utf-8")


if __name__ == "__main__":
    if len(sys.argv) > 2:
        print(*answered(int(sys.argv[1]), float(sys.argv[2])))
    else:
        main()
