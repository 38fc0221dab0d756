"""The best noise under composition, compared with the standard families: the tables of docs/composed-noise.md.

    python benchmarks/composed_noise.py [--releases 1 10 100] [--budget 1 1e-6]

Variance of one of k equal releases (sensitivity 1) that together satisfy (epsilon, delta), and CPU seconds of the whole
computation: every family, the optimized table, and its certificate. "Best standard family" is the best of discrete
Laplace, truncated Laplace and Gaussian noise; "exponential-power" is e^(-(|x|/s)^q), with both parameters optimized.
"""

from __future__ import annotations

import argparse
import sys
import time

from lines import Line, add_json_option, exit_status, write_results

from tightrope.documents import Budget
from tightrope.noise.compare import calibrate_families
from tightrope.noise.composed.candidates import CompositionProblem
from tightrope.noise.composed.composed_noise import ComposedNoise, best_composed_shape, composed_noise
from tightrope.noise.families import ExponentialPowerFamily
from tightrope.noise.program.request import ErrorCost

RELEASES = (1, 2, 5, 10, 12, 15, 20, 50, 100, 1000)
BUDGETS = ((1.0, 1e-6), (4.0, 1e-6), (0.5, 1e-9), (1.0, 1e-4))
SHORT_NAMES = {
    "discrete Laplace": "Laplace",
    "discrete truncated Laplace": "truncated",
    "discrete Gaussian": "Gaussian",
}
MAX_SHAPE_RELEASES = 300
"""The shape of exponential-power noise is not optimized for more releases."""


def main() -> int:
    """Print a table for each budget; return the exit code."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--releases", type=int, nargs="+", default=RELEASES)
    parser.add_argument("--budget", type=float, nargs=2, action="append", metavar=("EPSILON", "DELTA"))
    add_json_option(parser)
    options = parser.parse_args()
    lines: list[Line] = []
    composed_noise(Budget(epsilon=1, delta=1e-4), releases=3)  # imports, and the plans of transforms
    for epsilon, delta in options.budget or BUDGETS:
        print(f"\n### ε = {epsilon:g}, δ = {delta:g}\n")
        print("| releases | best standard family | exponential-power (q) | Tightrope | selected | reduction | CPU s |")
        print("|---|---|---|---|---|---|---|")
        for releases in options.releases:
            text, row_lines = table_row(epsilon, delta, releases)
            lines += row_lines
            print(text, flush=True)
    write_results(options.json, lines)
    return exit_status(lines)


def table_row(epsilon: float, delta: float, releases: int) -> tuple[str, list[Line]]:
    """Return one row of the table and its lines, after certifying the noise once more."""
    start = time.process_time()
    noise = composed_noise(Budget(epsilon=epsilon, delta=delta), releases=releases)
    seconds = time.process_time() - start
    if not (releases * noise.table.loss()).delta(epsilon) <= delta:
        raise SystemExit(f"the noise for {releases} releases at ({epsilon:g}, {delta:g}) exceeds the budget")
    variances = standard_variances(epsilon, delta, releases, noise)
    family = min(variances, key=lambda name: variances[name])
    reduction = 1 - noise.cost / variances[family]
    shape = exponential_power_text(epsilon, delta, releases) if 1 < releases <= MAX_SHAPE_RELEASES else "–"
    standard = f"{variances[family]:.7g} ({SHORT_NAMES[family]})"
    cells = (releases, standard, shape, f"{noise.cost:.7g}", noise.family, f"{reduction:.3%}", f"{seconds:.2f}")
    job = f"{releases} answers at ({epsilon:g}, {delta:g})"
    variance = Line("composed noise", job, "variance", noise.cost)
    lines = [
        variance.with_peer(f"{SHORT_NAMES[family]} noise", variances[family]),
        Line("composed noise", job, "CPU s", seconds),
    ]
    return f"| {' | '.join(map(str, cells))} |", lines


def standard_variances(epsilon: float, delta: float, releases: int, noise: ComposedNoise) -> dict[str, float]:
    """Return the variances of the standard families; for one release from the comparison of single answers."""
    if releases > 1:
        costs = {name: noise.candidates.get(name) for name in SHORT_NAMES}
        return {name: cost for name, cost in costs.items() if isinstance(cost, float)}
    rows = calibrate_families(Budget(epsilon=epsilon, delta=delta))
    return {
        row.family_name: row.mechanism.mean_squared_error
        for row in rows
        if row.family_name in SHORT_NAMES and row.mechanism
    }


def exponential_power_text(epsilon: float, delta: float, releases: int) -> str:
    """Return the variance of the best exponential-power noise, with its power."""
    problem = CompositionProblem(((epsilon, delta),), releases, 1, ErrorCost.from_argument("squared"))
    power, candidate = best_composed_shape(problem, ExponentialPowerFamily())
    return f"{candidate.cost:.7g} ({power:.2f})"


if __name__ == "__main__":
    sys.exit(main())
