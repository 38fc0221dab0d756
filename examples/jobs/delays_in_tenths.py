"""Which delays are exceeded by nine tenths of the flights, by eight tenths, down to one?"""

from pathlib import Path

import tightrope as tr

session = tr.Session(
    Path(__file__).with_name("flights.parquet"),
    privacy_unit=("tail", "an aircraft"),
    max_rows=12,
    budget=tr.Budget(epsilon=1, delta=1e-8),
)
plan = session.plan(tr.quantiles("delay", [0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9], bounds=(-60, 180)))
print(plan)
answers = plan.release()
print([(answer.name, answer.value, answer.lower, answer.upper) for answer in answers])
