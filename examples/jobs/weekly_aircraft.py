"""How many aircraft are active in each of 53 weeks?"""

import datetime as dt
from pathlib import Path

import tightrope as tr

WEEKS = [dt.date(2012, 12, 31) + dt.timedelta(weeks=number) for number in range(53)]  # named by their Mondays
session = tr.Session(
    Path(__file__).with_name("flights.parquet"),
    privacy_unit=("tail", "an aircraft"),
    max_rows=53,
    budget=tr.Budget(epsilon=1, delta=1e-8),
)
plan = session.plan([tr.count_distinct(by={"week": "week(departed)"}, keys=WEEKS)])
print(plan)
answers = plan.release()
print(answers[0].to_pandas())
