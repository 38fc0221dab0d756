"""What share of flights is more than a quarter of an hour late?"""

from pathlib import Path

import tightrope as tr

session = tr.Session(
    Path(__file__).with_name("flights.parquet"),
    person=("tail", "an aircraft"),
    rows_per_person=12,
    budget=tr.Budget(epsilon=1, delta=1e-8),
)
plan = session.plan([tr.share("delay > 15", by="carrier", keys=["9E", "AA", "B6", "DL", "EV", "MQ", "UA", "US", "WN"])])
print(plan)
answers = plan.release()
print(answers[0].frame)
