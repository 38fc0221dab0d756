"""How many miles are flown in each month?"""

from pathlib import Path

import tightrope as tr

session = tr.Session(
    Path(__file__).with_name("flights.parquet"),
    privacy_unit=("tail", "an aircraft"),
    max_rows=12,
    budget=tr.Budget(epsilon=1, delta=1e-8),
)
plan = session.plan([tr.sum("distance", bounds=(0, 3000), by={"month": "month(departed)"}, keys=list(range(1, 13)))])
print(plan)
answers = plan.release()
print(answers[0].to_pandas())
