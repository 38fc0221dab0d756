"""What do the airlines earn a day in each year (each route up to a million dollars, ± 12.5 million of noise)?"""

from pathlib import Path

import tightrope as tr

YEARS = [1997, 1998, 1999, 2000]
session = tr.Session(
    Path(__file__).with_name("fares.parquet"),
    privacy_unit=("id", "a route"),
    max_rows=4,
    max_rows_per_group=1,
    budget=tr.Budget(epsilon=1, delta=1e-8),
)
plan = session.plan(
    [
        tr.sum(
            "fare * passen",
            bounds=(0, 1_000_000),  # noise and clamping together err least: 3 to 6 routes a year are above it
            by="year",
            keys=YEARS,
            unit="dollars a day",
            margin_of_error=12_500_000,
        )
    ]
)
print(plan)
answers = plan.release()
print(answers[0].to_pandas())
