"""What proportion of flights is more than an hour late, on weekends and on other days?"""

from pathlib import Path

import tightrope as tr

session = tr.Session(
    Path(__file__).with_name("flights.parquet"),
    privacy_unit=("tail", "an aircraft"),
    max_rows=12,
    budget=tr.Budget(epsilon=1, delta=1e-8),
)
plan = session.plan([tr.proportion("delay > 60", by={"weekend": "weekday(departed) >= 6"}, keys=[False, True])])
print(plan)
answers = plan.release()
print(answers[0].to_pandas())
