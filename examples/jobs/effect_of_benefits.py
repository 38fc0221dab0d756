"""Did higher benefits lengthen the absence of injured workers? A difference in differences."""

from pathlib import Path

import tightrope as tr

groups = {"highearn": [0, 1], "afchnge": [0, 1]}  # high earners, for whom benefits rose; before and after the change
weeks = tr.mean("ldurat", bounds=(-1.5, 5.5), by=["highearn", "afchnge"], keys=groups, name="log_weeks")
effect = tr.comparison("difference", "log_weeks", between={"highearn": (1, 0), "afchnge": (1, 0)}, name="effect")
session = tr.Session(
    Path(__file__).with_name("injuries.parquet"),
    privacy_unit=None,
    budget=tr.Budget(epsilon=1, delta=1e-8),
)
plan = session.plan([weeks], comparisons=[effect])
print(plan)
answers = plan.release()
print(answers[0].to_pandas(), answers.comparisons[0].to_pandas(), sep="\n")
