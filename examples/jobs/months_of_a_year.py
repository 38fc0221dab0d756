"""How many flights leave each airport in each month of one table, released month by month?"""

from pathlib import Path

import tightrope as tr

HERE = Path(__file__).parent
session = tr.Session.open(
    HERE / "flights.parquet",
    ledger=str(HERE / "tightrope.ledger"),
    dataset="flights.parquet",
    privacy_unit=("tail", "an aircraft"),
    max_rows=12,
    budget=tr.Budget(epsilon=1, delta=1e-8),
)
once = session.plan([tr.count(by="origin", keys=["EWR", "JFK", "LGA"])])
months = session.series(once, key="series", date="month(departed)", dates=list(range(1, 13)))
plan = months.next()  # run this again for the next month
print(plan)
answers = plan.release()
print(f"month {months.released} of {months.times}", answers[0].to_pandas(), sep="\n")
