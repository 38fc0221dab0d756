"""Optimal noise under composition compared with the standard families: the tables of docs/composed-noise.md.

    python benchmarks/composed_noise.py [--releases 1 10 100] [--budget 1 1e-6]

Variance of one of k equal releases (sensitivity 1) that together satisfy (epsilon, delta); CPU seconds of the whole
computation: every family, the optimized table, and its certificate. "Best standard family" is the best of discrete
Laplace, truncated Laplace and Gaussian noise; "exponential-power" is e^(-(|x|/s)^q), with both parameters tuned.
"""

from __future__ import annotations

import argparse
import time

from lines import Line, option, write

from tightrope.documents import Budget
from tightrope.noise.composed.candidates import CompositionProblem
from tightrope.noise.composed.composed_noise import ComposedNoise, best_shape, composed_noise
from tightrope.noise.families import ExponentialPowerFamily
from tightrope.noise.program.request import ErrorCost

RELEASES = (1, 2, 5, 10, 12, 15, 20, 50, 100, 1000)
BUDGETS = ((1.0, 1e-6), (4.0, 1e-6), (0.5, 1e-9), (1.0, 1e-4))
CLASSIC = ("discrete Laplace", "discrete truncated Laplace", "discrete Gaussian")
SHORT = {"discrete Laplace": "Laplace", "discrete truncated Laplace": "truncated", "discrete Gaussian": "Gaussian"}
MOST_TUNED = 300


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--releases", type=int, nargs="+", default=RELEASES)
    parser.add_argument("--budget", type=float, nargs=2, action="append", metavar=("EPSILON", "DELTA"))
    option(parser)
    given = parser.parse_args()
    found: list[Line] = []
    composed_noise(Budget(epsilon=1, delta=1e-4), releases=3)  # imports, and the plans of transforms
    for epsilon, delta in given.budget or BUDGETS:
        print(f"\n### ε = {epsilon:g}, δ = {delta:g}\n")
        print("| releases | best standard family | exponential-power (q) | Tightrope | selected | reduction | CPU s |")
        print("|---|---|---|---|---|---|---|")
        for releases in given.releases:
            text, one = row(epsilon, delta, releases)
            found += one
            print(text, flush=True)
    write(given.json, found)


def row(epsilon: float, delta: float, releases: int) -> tuple[str, list[Line]]:
    """One row of the table, certified here once more."""
    started = time.process_time()
    found = composed_noise(Budget(epsilon=epsilon, delta=delta), releases=releases)
    spent = time.process_time() - started
    if not (releases * found.table.loss()).delta(epsilon) <= delta:
        raise SystemExit(f"not certified: {epsilon} {delta} {releases}")
    costs = classic(epsilon, delta, releases, found)
    name = min(costs, key=lambda key: costs[key])
    gain = 1 - found.cost / costs[name]
    law = between(epsilon, delta, releases) if 1 < releases <= MOST_TUNED else "–"
    cells = (releases, f"{costs[name]:.7g} ({SHORT[name]})", law, f"{found.cost:.7g}", found.family, f"{gain:.3%}")
    job = f"{releases} answers at ({epsilon:g}, {delta:g})"
    lines = [
        Line("composed noise", job, "variance", found.cost, f"{SHORT[name]} noise", costs[name]),
        Line("composed noise", job, "CPU s", spent),
    ]
    return "| " + " | ".join(str(cell) for cell in (*cells, f"{spent:.2f}")) + " |", lines


def classic(epsilon: float, delta: float, releases: int, found: ComposedNoise) -> dict[str, float]:
    """Variances of the classic families; for one release from the comparison of single answers."""
    if releases > 1:
        return {name: value for name in CLASSIC if isinstance(value := found.candidates.get(name), float)}
    from tightrope.noise.compare import calibrate_families

    rows = calibrate_families(Budget(epsilon=epsilon, delta=delta))
    return {
        row.family_name: row.mechanism.mean_squared_error
        for row in rows
        if row.family_name in CLASSIC and row.mechanism
    }


def between(epsilon: float, delta: float, releases: int) -> str:
    power, law = best_shape(
        CompositionProblem(((epsilon, delta),), releases, 1, ErrorCost.from_argument("squared")),
        ExponentialPowerFamily(),
    )
    return f"{law.cost:.7g} ({power:.2f})"


if __name__ == "__main__":
    main()
