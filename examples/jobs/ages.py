"""How old are the people?"""

from pathlib import Path

import tightrope as tr

session = tr.Session(
    Path(__file__).with_name("savers.parquet"),
    privacy_unit=None,
    budget=tr.Budget(epsilon=1, delta=1e-8),
)
plan = session.plan([tr.histogram("age", bounds=(25, 65), width=5)])
print(plan)
answers = plan.release()
print(answers[0].to_pandas())
