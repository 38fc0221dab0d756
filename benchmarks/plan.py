"""Time of planning one grouped count for persons with many rows, and its noise relative to enumerating every split.

Run: ``python benchmarks/plan.py`` (a minute). Neighbors: add or remove one person; ε = 1, δ = 10⁻⁶. CPU seconds of one
core. The noise is E|X| in rows; every split is enumerated up to 2,500 compositions, which takes up to half a minute.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import partial

from tightrope.documents.budget import Budget
from tightrope.noise.allocation import NoiseAllocation, _allocate_groups, allocate_noise
from tightrope.noise.worst_split import CompositionGroup, NoiseSpec, SplitBounds

BUDGET = Budget(epsilon=1, delta=1e-6)
MAX_ROWS = (1, 8, 60, 300, 1000, 10_000)
MAX_ENUMERATED_ROWS = 60
COUNT, KEYS = NoiseSpec("count", 8, True), NoiseSpec("count", 8, True, needs_bound=True)
MEAN = (COUNT, NoiseSpec("sum", 16, False))
PLANS = {
    "count, given keys": (COUNT,),
    "count, discovered keys": (KEYS,),
    "count and mean, given keys": (COUNT, *MEAN),
}


def timed_allocation(allocate: Callable[[], NoiseAllocation]) -> tuple[float, float]:
    """Return CPU seconds and E|X| of the first vector in rows."""
    start = time.process_time()
    allocation = allocate()
    selected = allocation.selections[0][0]
    return time.process_time() - start, selected.table.mean_absolute / selected.steps_per_row


def main() -> None:
    """Print a table."""
    print(f"{'plan':28} {'max_rows':>8} {'CPU s':>7} {'E|X|, rows':>11} {'relative to every split':>24}")
    for name, specs in PLANS.items():
        for rows in MAX_ROWS:
            group = CompositionGroup(specs, SplitBounds(rows, rows, rows))
            if len(specs) > 1 and rows == MAX_ROWS[-1]:
                continue  # refused: noise of more than 20,000 rows
            seconds, noise = timed_allocation(partial(allocate_noise, [group], BUDGET))
            relative = "not feasible"
            if rows <= MAX_ENUMERATED_ROWS:
                bounded = SplitBounds(min(rows, 50), min(rows, 50), min(rows, 50))
                exact_group = CompositionGroup(specs, bounded)
                _, enumerated = timed_allocation(
                    partial(_allocate_groups, (exact_group,), BUDGET, compare=False, like=None)
                )
                _, same = timed_allocation(partial(allocate_noise, [exact_group], BUDGET))
                relative = f"{same / enumerated:.5f}" + (" (at 50 rows)" if rows > 50 else "")
            print(f"{name:28} {rows:8} {seconds:7.2f} {noise:11.4g} {relative:>24}", flush=True)


if __name__ == "__main__":
    main()
