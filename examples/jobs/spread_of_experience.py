"""What is the standard deviation of years of experience?"""

from pathlib import Path

import tightrope as tr

session = tr.Session(
    Path(__file__).with_name("census.parquet"),
    privacy_unit=None,
    budget=tr.Budget(epsilon=1, delta=1e-8),
)
plan = session.plan([tr.standard_deviation("exper", bounds=(0, 50), by="educ", keys=[12, 16])])
print(plan)
answers = plan.release()
print(answers[0].to_pandas())
