"""By how much does income rise with a year of education?"""

from pathlib import Path

import tightrope as tr

session = tr.Session(
    Path(__file__).with_name("census.parquet"),
    privacy_unit=None,
    budget=tr.Budget(epsilon=1, delta=1e-8),
)
plan = session.plan([tr.regression("log_income", on="educ", bounds=(4, 9), on_bounds=(9, 16))])
print(plan)
answers = plan.release()
print(answers[0].to_pandas())
