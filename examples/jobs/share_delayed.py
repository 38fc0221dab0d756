"""What proportion of flights is more than a quarter of an hour late?"""

from pathlib import Path

import tightrope as tr

session = tr.Session(
    Path(__file__).with_name("flights.parquet"),
    privacy_unit=("tail", "an aircraft"),
    max_rows=12,
    budget=tr.Budget(epsilon=1, delta=1e-8),
)
plan = session.plan(
    [tr.proportion("delay > 15", by="carrier", keys=["9E", "AA", "B6", "DL", "EV", "MQ", "UA", "US", "WN"])]
)
print(plan)
answers = plan.release()
print(answers[0].to_pandas())
