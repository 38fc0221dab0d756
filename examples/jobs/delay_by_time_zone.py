"""How late do flights arrive, by the time zone they go to? Looked up in a public table of airports."""

from pathlib import Path

import tightrope as tr

ZONES = ["America/Chicago", "America/Denver", "America/Los_Angeles", "America/New_York"]
session = tr.Session(
    Path(__file__).with_name("flights.parquet"),
    person=("tail", "an aircraft"),
    rows_per_person=12,
    budget=tr.Budget(epsilon=1, delta=1e-8),
    lookup=tr.lookup(Path(__file__).with_name("airports.parquet"), on={"dest": "faa"}, columns=["tzone"]),
)
plan = session.plan([tr.mean("delay", between=(-60, 180), by="tzone", keys=ZONES)])
print(plan)
answers = plan.release()
print(answers[0].frame)
