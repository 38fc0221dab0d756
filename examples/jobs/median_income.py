"""What is the median yearly income?"""

from pathlib import Path

import tightrope as tr

session = tr.Session(
    Path(__file__).with_name("census.parquet"),
    privacy_unit=None,
    budget=tr.Budget(epsilon=1, delta=1e-8),
)
plan = session.plan([tr.median("income", bounds=(0, 200_000))])
print(plan)
answers = plan.release()
print(answers[0].to_pandas())
