"""How many people are there by state and education?"""

from pathlib import Path

import tightrope as tr

session = tr.Session(
    Path(__file__).with_name("census.parquet"),
    privacy_unit=None,
    budget=tr.Budget(epsilon=1, delta=1e-8),
)
plan = session.plan([tr.count(by=["state", "educ"])])
print(plan)
answers = plan.release()
print(answers[0].to_pandas())
