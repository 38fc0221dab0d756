"""How much more does a year of education earn?"""

from pathlib import Path

import tightrope as tr

session = tr.Session(
    Path(__file__).with_name("census.parquet"),
    person=None,
    budget=tr.Budget(epsilon=1, delta=1e-8),
)
plan = session.plan([tr.regression("log_income", on="educ", between=(4, 9), of=(9, 16))])
print(plan)
answers = plan.release()
print(answers[0].frame)
