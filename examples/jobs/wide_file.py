"""What do approved applicants borrow? Means of some columns of a file with 67 columns"""

from pathlib import Path

import tightrope as tr

TYPES = {"loanamt": "number", "price": "number", "obrat": "number", "approve": "integer", "married": "integer"}
QUESTIONS = [
    tr.mean("loanamt", bounds=(0, 500), where="approve == 1", name="loan"),
    tr.mean("price", bounds=(0, 800), where="approve == 1 and married == 1", name="price"),
    tr.mean("obrat", bounds=(0, 100), where="approve == 0", name="obligations"),
]
session = tr.Session(
    Path(__file__).with_name("loans.csv"),
    privacy_unit=None,
    budget=tr.Budget(epsilon=1, delta=1e-8),
    types=TYPES,
)
plan = session.plan(QUESTIONS)
print(plan)
answers = plan.release()
for answer in answers:
    print(answer.title, answer.value, answer.lower, answer.upper)
