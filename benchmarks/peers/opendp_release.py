"""OpenDP (Polars) on the table of ``benchmarks/release.py``: FILE REPEAT, one line of JSON.

Counts and mean income by city, with discovered keys, and the median age; at most three rows per person, ε = 1,
δ = 1e-8, of which two thirds are for the first query. Each repetition opens the file again, as Tightrope's does.
"""

from __future__ import annotations

import json
import resource
import sys
import time
import warnings
from typing import Any

import opendp.prelude as dp
import polars as pl

warnings.filterwarnings("ignore")
dp.enable_features("contrib")
ROWS = 3


def build_queries(path: str) -> tuple[Any, Any, Any]:
    """Return the table and the two queries: by city, and over all rows."""
    frame = pl.scan_parquet(path)
    size = frame.select(pl.len()).collect().item()
    context = dp.Context.compositor(
        data=frame,
        privacy_unit=dp.unit_of(contributions=1, identifier=pl.col("user_id")),
        privacy_loss=dp.loss_of(epsilon=1.0, delta=1e-8),
        split_by_weights=[2, 1],
        margins=[
            dp.polars.Margin(by=["city"], max_length=size, max_groups=1000),
            dp.polars.Margin(by=[], max_length=size, max_groups=1),
        ],
    )
    income = pl.col("income").fill_nan(0.0).fill_null(0.0).dp.sum((0.0, 200_000.0))
    usable = pl.col("income").is_nan().fill_null(True).not_().cast(pl.Int64).fill_null(0).dp.sum((0, 1)).alias("usable")
    by_city = context.query().truncate_per_group(ROWS).group_by("city").agg(dp.len(signed=True), income, usable)
    age = pl.col("age").fill_null(0).dp.quantile(0.5, candidates=list(range(101)))
    overall = context.query().truncate_per_group(ROWS).select(age)
    return frame, by_city, overall


def release_both(path: str) -> dict[str, Any]:
    """Return the answers of one release of both queries."""
    frame, by_city, overall = build_queries(path)
    rows = {row["city"]: row for row in by_city.resolve()(frame).collect().to_dicts()}
    return {
        "mean": {city: row["income"] / max(row["usable"], 1) for city, row in rows.items()},
        "median": overall.resolve()(frame).collect().item(),
    }


def cpu_seconds() -> float:
    """Return the CPU seconds of this process."""
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime


def main() -> None:
    """Print times, memory and answers of all repetitions."""
    wall, cpu, answers = [], [], []
    start, used = time.perf_counter(), cpu_seconds()
    for _ in range(int(sys.argv[2])):
        answers.append(release_both(sys.argv[1]))
        wall.append(time.perf_counter() - start)
        cpu.append(cpu_seconds() - used)
        start, used = time.perf_counter(), cpu_seconds()
    mebibytes = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    scale = build_queries(sys.argv[1])[1].summarize()["scale"][0]  # of Laplace noise: its expected absolute error
    answers = [{**answer, "count_error": scale} for answer in answers]
    print(json.dumps({"wall": wall, "cpu": cpu, "mebibytes": mebibytes, "answers": answers}))


if __name__ == "__main__":
    main()
