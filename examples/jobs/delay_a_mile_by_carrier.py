"""How many minutes of delay are there per mile, by carrier?"""

from pathlib import Path

import tightrope as tr

CARRIERS = ["9E", "AA", "B6", "DL", "EV", "MQ", "UA", "US", "WN"]
session = tr.Session(
    Path(__file__).with_name("flights.parquet"),
    privacy_unit=("tail", "an aircraft"),
    max_rows=12,
    budget=tr.Budget(epsilon=1, delta=1e-8),
)
plan = session.plan(
    [tr.ratio("delay", "distance", bounds=(-60, 180), denominator_bounds=(0, 3000), by="carrier", keys=CARRIERS)]
)
print(plan)
answers = plan.release()
print(answers[0].to_pandas())
