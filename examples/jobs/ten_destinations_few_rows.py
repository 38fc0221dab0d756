"""Which ten airports are the most frequent destinations, of two flights of each aircraft?"""

from pathlib import Path

import tightrope as tr

session = tr.Session(
    Path(__file__).with_name("flights.parquet"),
    privacy_unit=("tail", "an aircraft"),
    max_rows=2,
    budget=tr.Budget(epsilon=1, delta=1e-8),
)
plan = session.plan([tr.top_k(10, by="dest")])
print(plan)
answers = plan.release()
print(answers[0].to_pandas())
