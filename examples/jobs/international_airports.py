"""What proportion of flights goes to an airport whose name contains Intl?"""

from pathlib import Path

import tightrope as tr

session = tr.Session(
    Path(__file__).with_name("flights.parquet"),
    privacy_unit=("tail", "an aircraft"),
    max_rows=12,
    budget=tr.Budget(epsilon=1, delta=1e-8),
    public_tables=tr.public_table(Path(__file__).with_name("airports.parquet"), on={"dest": "faa"}, columns=["name"]),
)
plan = session.plan([tr.proportion("contains(name, 'Intl')", by="origin", keys=["EWR", "JFK", "LGA"])])
print(plan)
answers = plan.release()
print(answers[0].to_pandas())
