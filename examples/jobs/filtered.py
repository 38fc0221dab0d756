"""What do married people below forty earn?"""

from pathlib import Path

import tightrope as tr

session = tr.Session(
    Path(__file__).with_name("savers.parquet"),
    privacy_unit=None,
    budget=tr.Budget(epsilon=1, delta=1e-8),
)
plan = session.plan([tr.mean("income", bounds=(0, 200), where="married == 1 and age < 40")])
print(plan)
answers = plan.release()
print(answers[0].to_pandas())
