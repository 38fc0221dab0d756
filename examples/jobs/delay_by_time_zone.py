"""How late do flights arrive, by the time zone of their destination? A public table of airports has the zones."""

from pathlib import Path

import tightrope as tr

ZONES = ["America/Chicago", "America/Denver", "America/Los_Angeles", "America/New_York"]
session = tr.Session(
    Path(__file__).with_name("flights.parquet"),
    privacy_unit=("tail", "an aircraft"),
    max_rows=12,
    budget=tr.Budget(epsilon=1, delta=1e-8),
    public_tables=tr.public_table(Path(__file__).with_name("airports.parquet"), on={"dest": "faa"}, columns=["tzone"]),
)
plan = session.plan([tr.mean("delay", bounds=(-60, 180), by="tzone", keys=ZONES)])
print(plan)
answers = plan.release()
print(answers[0].to_pandas())
