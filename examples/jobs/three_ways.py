"""How many people are there by marriage, age and income?"""

from pathlib import Path

import tightrope as tr

GROUPS = {"married": "married == 1", "age": "cut(age, [25, 35, 45, 55])", "income": "cut(income, [10, 20, 40, 80])"}
session = tr.Session(
    Path(__file__).with_name("savers.parquet"),
    privacy_unit=None,
    budget=tr.Budget(epsilon=1, delta=1e-8),
)
plan = session.plan([tr.count(by=GROUPS)])
print(plan)
answers = plan.release()
print(answers[0].to_pandas())
