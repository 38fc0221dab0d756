"""Twenty numbers for a dashboard on people at work"""

from pathlib import Path

import tightrope as tr

QUESTIONS = [
    tr.count(name="people"),
    tr.mean("income", bounds=(0, 200_000)),
    tr.mean("educ", bounds=(0, 20)),
    tr.mean("exper", bounds=(0, 50)),
    tr.median("income", bounds=(0, 200_000)),
    tr.standard_deviation("exper", bounds=(0, 50)),
    tr.standard_deviation("educ", bounds=(0, 20)),
    tr.correlation("log_income", other="educ", bounds=(4, 9), other_bounds=(0, 20), name="income_and_school"),
    tr.regression("log_income", on="educ", bounds=(4, 9), on_bounds=(0, 20), name="return_to_school"),
    tr.proportion("educ >= 16", name="college"),
    tr.proportion("educ < 12", name="no_diploma"),
    tr.proportion("income > 50_000", name="above_50"),
    tr.proportion("income > 100_000", name="above_100"),
    tr.proportion("exper > 20", name="old_hands"),
    tr.proportion("exper < 5", name="new_hands"),
    tr.count(where="educ == 12", name="high_school"),
    tr.count(where="educ == 16", name="bachelors"),
    tr.count(where="income < 10_000", name="low_income"),
    tr.count(where="exper == 0", name="first_year"),
    tr.count(where="educ >= 16 and income < 30_000", name="low_paid_graduates"),
]
session = tr.Session(
    Path(__file__).with_name("census.parquet"),
    privacy_unit=None,
    budget=tr.Budget(epsilon=1, delta=1e-8),
)
plan = session.plan(QUESTIONS)
print(plan)
answers = plan.release()
for answer in answers:
    print(answer.title, answer.value, answer.lower, answer.upper)
