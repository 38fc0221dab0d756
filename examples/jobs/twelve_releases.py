"""How many flights leave each airport, released every month for a year?"""

from pathlib import Path

import tightrope as tr

HERE = Path(__file__).parent
session = tr.Session.open(
    HERE / "flights.parquet",  # a newer table every month
    ledger=str(HERE / "tightrope.ledger"),
    dataset="flights.parquet",
    privacy_unit=("tail", "an aircraft"),
    max_rows=12,
    budget=tr.Budget(epsilon=1, delta=1e-8),
)
once = session.plan([tr.count(by="origin", keys=["EWR", "JFK", "LGA"])])
months = session.series(once, times=12, key="series")
plan = months.next()  # run this again when the next month is there
print(plan)
answers = plan.release()
print(f"release {months.released} of {months.times}", answers[0].to_pandas(), sep="\n")
