"""How many firms trained their workers in each year?"""

from pathlib import Path

import tightrope as tr

session = tr.Session(
    Path(__file__).with_name("firms.parquet"),
    privacy_unit=("fcode", "a firm"),
    max_rows=3,
    budget=tr.Budget(epsilon=1, delta=1e-8),
)
plan = session.plan([tr.count_distinct(by="year", keys=[1987, 1988, 1989], where="tothrs > 0")])
print(plan)
answers = plan.release()
print(answers[0].to_pandas())
