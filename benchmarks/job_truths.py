"""Further jobs of ``examples/jobs``: how each table is bounded, and every answer without noise, computed by pandas.

    PYTHONPATH=src python benchmarks/job_truths.py [--releases 200] [--only NAME ...]

prints for each job how many 95 % intervals contain the truth, over all groups and answers, and the titles. A table is
bounded beforehand, at random: then the release uses all of its rows, and the truth is the statistic in the title.
"""

from __future__ import annotations

import argparse
import runpy
import shutil
import sys
import tempfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

import tightrope as tr  # noqa: F401 - loads the modules below in the right order
from tightrope.release.answers import Answers
from tightrope.release.build_answers import AnswerBuilder, certificate_of
from tightrope.release.draft import NoisePlan
from tightrope.release.plan_file import load_plan_file
from tightrope.tables import attach_public_tables

SEED = 20_130_101
EXAMPLES = Path(__file__).parents[1] / "examples"
Frame = pd.DataFrame
Truth = dict[str, dict[tuple[object, ...], float]]
"""The exact value of each group of each answer, by the answer's name and the group's keys."""


@dataclass(frozen=True)
class JobTruth:
    """A job on one table, which is bounded to ``rows`` rows of each ``unit``, and the exact answers."""

    table: str
    true_answers: Callable[[Frame], Truth]
    unit: str | None = "tail"
    rows: int | None = 12
    public: Mapping[str, Callable[[], Frame]] = field(default_factory=dict)

    @property
    def file_name(self) -> str:
        """The name of the table's file."""
        return self.table if self.table.endswith(".csv") else f"{self.table}.parquet"

    def bound_rows(self, table: Frame) -> Frame:
        """Return a random choice of at most ``rows`` rows per unit."""
        if self.unit is None or self.rows is None:
            return table
        mixed = table.sample(frac=1, random_state=SEED)
        return mixed[mixed.groupby(self.unit).cumcount() < self.rows].sort_index()


def airport_names() -> Frame:
    """The public table of airports."""
    airports: Frame = runpy.run_path(str(EXAMPLES / "make_data.py"))["airports"]()
    return airports


def keyed(series: Any) -> dict[tuple[object, ...], float]:
    """Return the values of a grouped series by the tuple of their keys."""
    return {key if isinstance(key, tuple) else (key,): float(value) for key, value in series.items()}


def of_carriers(rows: Frame, compute: Callable[[Frame], float]) -> dict[tuple[object, ...], float]:
    """Return a statistic of clamped delays and distances, by carrier, over the rows that have both."""
    complete = rows.dropna(subset=["delay", "distance"])
    clamped = complete.assign(delay=complete["delay"].clip(-60, 180), distance=complete["distance"].clip(0, 3000))
    groups = clamped.groupby("carrier")
    return {(carrier,): compute(group) for carrier, group in groups if group["distance"].nunique() > 1}


def slope(rows: Frame) -> float:
    """Return the slope of the delay on the distance."""
    return float(np.cov(rows["delay"], rows["distance"], ddof=0)[0, 1] / np.var(rows["distance"]))


def weekly_aircraft(rows: Frame) -> Truth:
    """Return the number of aircraft in each week, by its Monday."""
    days = rows["departed"].dt.normalize()
    mondays = (days - pd.to_timedelta(days.dt.weekday, unit="D")).dt.date
    return {"count_distinct_by_week": keyed(rows.groupby(mondays)["tail"].nunique())}


def international_airports(rows: Frame) -> Truth:
    """Return the proportion of flights to airports with Intl in their name; unknown airports are left out."""
    name = rows["dest"].map(airport_names().set_index("faa")["name"])
    known = rows[name.notna()].assign(intl=name.dropna().str.contains("Intl"))
    return {"proportion_contains(name, 'Intl')_by_origin": keyed(known.groupby("origin")["intl"].mean())}


def late_weekends(rows: Frame) -> Truth:
    """Return the proportion of flights that are more than an hour late, by weekend."""
    known = rows.dropna(subset=["delay"])
    late, weekend = known["delay"] > 60, known["departed"].dt.weekday >= 5
    return {"proportion_delay > 60_by_weekend": keyed(late.groupby(weekend).mean())}


def effect_of_benefits(rows: Frame) -> Truth:
    """Return the mean log weeks of four groups, and the difference in differences."""
    means = rows["ldurat"].clip(-1.5, 5.5).groupby([rows["highearn"], rows["afchnge"]]).mean()
    effect = means[1, 1] - means[1, 0] - means[0, 1] + means[0, 0]
    return {"log_weeks": keyed(means), "effect": {(): float(effect)}}


def three_ways(rows: Frame) -> Truth:
    """Return the number of people by marriage, band of age and band of income."""

    def lower_edges(column: str, edges: list[int]) -> pd.Series[Any]:
        bands = pd.cut(rows[column], [*edges, np.inf], right=False, labels=edges)
        return bands.astype(object).where(bands.notna(), None)

    keys = zip(
        rows["married"] == 1, lower_edges("age", [25, 35, 45, 55]), lower_edges("income", [10, 20, 40, 80]), strict=True
    )
    counts = pd.Series(list(keys)).value_counts()
    return {"count_by_married_age_income": keyed(counts)}


def dashboard(rows: Frame) -> Truth:
    """Return twenty statistics of the people of the census."""
    income, educ, exper = rows["income"].clip(0, 200_000), rows["educ"].clip(0, 20), rows["exper"].clip(0, 50)
    log_income = rows["log_income"].clip(4, 9)
    median = float(np.quantile(income, 0.5, method="inverted_cdf"))
    conditions = {
        "college": rows["educ"] >= 16,
        "no_diploma": rows["educ"] < 12,
        "above_50": rows["income"] > 50_000,
        "above_100": rows["income"] > 100_000,
        "old_hands": rows["exper"] > 20,
        "new_hands": rows["exper"] < 5,
    }
    counts = {
        "people": rows["educ"].notna(),
        "high_school": rows["educ"] == 12,
        "bachelors": rows["educ"] == 16,
        "low_income": rows["income"] < 10_000,
        "first_year": rows["exper"] == 0,
        "low_paid_graduates": (rows["educ"] >= 16) & (rows["income"] < 30_000),
    }
    values = {
        "mean_income": income.mean(),
        "mean_educ": educ.mean(),
        "mean_exper": exper.mean(),
        "median_income": median,
        "standard_deviation_exper": exper.std(ddof=0),
        "standard_deviation_educ": educ.std(ddof=0),
        "income_and_school": np.corrcoef(log_income, educ)[0, 1],
        "return_to_school": np.cov(log_income, educ, ddof=0)[0, 1] / np.var(educ),
        **{name: condition.mean() for name, condition in conditions.items()},
        **{name: condition.sum() for name, condition in counts.items()},
    }
    return {name: {(): float(value)} for name, value in values.items()}


def wide_file(rows: Frame) -> Truth:
    """Return three means of some applicants for a loan."""
    approved = rows[rows["approve"] == 1]
    values = {
        "loan": approved["loanamt"].clip(0, 500).mean(),
        "price": approved.loc[approved["married"] == 1, "price"].clip(0, 800).mean(),
        "obligations": rows.loc[rows["approve"] == 0, "obrat"].clip(0, 100).mean(),
    }
    return {name: {(): float(value)} for name, value in values.items()}


def hours_late(rows: Frame) -> Truth:
    """Return the mean number of hours between the scheduled and the actual departure, by carrier."""
    hours = ((rows["left"] - rows["scheduled"]).dt.total_seconds() / 3600).clip(-1, 4)
    means = hours.groupby(rows["carrier"]).mean()
    return {"mean_hours_between(scheduled, left)_by_carrier": keyed(means)}


def delays_in_tenths(rows: Frame) -> Truth:
    """Return the nine tenths of the delay."""
    delays, tenths = rows["delay"].dropna().clip(-60, 180), [number / 10 for number in range(1, 10)]
    names = {q: "median_delay" if q == 0.5 else f"quantile_{q}_delay" for q in tenths}
    return {name: {(): float(np.quantile(delays, q, method="inverted_cdf"))} for q, name in names.items()}


JOBS: dict[str, JobTruth] = {
    "weekly_aircraft": JobTruth("flights", weekly_aircraft, rows=None),
    "firms_by_year": JobTruth(
        "firms",
        lambda t: {"count_distinct_by_year": keyed(t[t["tothrs"] > 0].groupby("year")["fcode"].nunique())},
        None,
    ),
    "international_airports": JobTruth("flights", international_airports),
    "late_weekends": JobTruth("flights", late_weekends),
    "ten_destinations_few_rows": JobTruth(
        "flights", lambda t: {"top_k_by_dest": keyed(t.groupby("dest").size())}, rows=2
    ),
    "miles_by_month": JobTruth(
        "flights",
        lambda t: {"sum_distance_by_month": keyed(t["distance"].clip(0, 3000).groupby(t["departed"].dt.month).sum())},
    ),
    "delay_a_mile_by_carrier": JobTruth(
        "flights",
        lambda t: {"ratio_delay_distance_by_carrier": of_carriers(t, lambda g: g["delay"].sum() / g["distance"].sum())},
    ),
    "delay_on_distance_by_carrier": JobTruth(
        "flights", lambda t: {"regression_delay_distance_by_carrier": of_carriers(t, slope)}
    ),
    "delay_and_distance_by_carrier": JobTruth(
        "flights",
        lambda t: {
            "correlation_delay_distance_by_carrier": of_carriers(
                t, lambda g: np.corrcoef(g["delay"], g["distance"])[0, 1]
            )
        },
    ),
    "delays_in_tenths": JobTruth("flights", delays_in_tenths),
    "effect_of_benefits": JobTruth("injuries", effect_of_benefits, None),
    "three_ways": JobTruth("savers", three_ways, None),
    "dashboard": JobTruth("census", dashboard, None),
    "revenue_by_year": JobTruth(
        "fares",
        lambda t: {
            "sum_fare * passen_by_year": keyed((t["fare"] * t["passen"]).clip(0, 1_000_000).groupby(t["year"]).sum())
        },
        None,
    ),
    "months_of_a_year": JobTruth(
        "flights",
        lambda t: {"count_by_origin": keyed(t[t["departed"].dt.month == 1].groupby("origin").size())},
    ),
    "wide_file": JobTruth("loans.csv", wide_file, None),
    "hours_late": JobTruth("departures", hours_late),
}


def make_table(job: JobTruth, makers: Mapping[str, Callable[[], Frame]]) -> Frame:
    """Return the rows of the job's table after bounding contributions."""
    return job.bound_rows(makers[f"jobs/{job.table}"]())


def write_job(name: str, folder: Path, bounded: Frame) -> Path:
    """Write the bounded table, the public table and the plan; return the path of the plan."""
    file_name = JOBS[name].file_name
    if file_name.endswith(".csv"):
        bounded.to_csv(folder / file_name, index=False)
    else:
        bounded.to_parquet(folder / file_name, index=False)
    airport_names().to_parquet(folder / "airports.parquet", index=False)
    return Path(shutil.copy(EXAMPLES / "jobs" / f"{name}.toml", folder))


@dataclass(frozen=True)
class Coverage:
    """How many intervals contained the truth, and the titles of the answers."""

    covered: int
    intervals: int
    titles: tuple[str, ...]


def measure_coverage(name: str, plan_path: Path, draft: NoisePlan, truth: Truth, releases: int) -> Coverage:
    """Draw the noise repeatedly for the exact integers of the plan, without charging a budget."""
    file = load_plan_file(plan_path)
    table = attach_public_tables(file.open_table(), file.public_tables())
    totals = [table.collect_totals(task.table_request) for task in draft.query_groups]
    builder = AnswerBuilder(draft, certificate_of(draft))
    covered = intervals = 0
    titles: tuple[str, ...] = ()
    for _ in range(releases):
        answers = builder.build_answers(totals)
        hits, total = count_covered(answers, truth)
        covered, intervals = covered + hits, intervals + total
        titles = tuple(part.title for part in (*answers, *answers.comparisons))
    if not intervals:
        raise ValueError(f"{name} has no interval whose truth is known")
    return Coverage(covered, intervals, titles)


def count_covered(answers: Answers, truth: Truth) -> tuple[int, int]:
    """Return how many intervals of one release contain the truth, and how many have a known truth."""
    covered = intervals = 0
    for answer in (*answers, *answers.comparisons):
        exact = truth[answer.name]
        for row in answer.rows:
            key = tuple(row[column] for column in answer.key_columns)
            value = exact.get(key, 0.0 if getattr(answer, "question", None) and answer.question.counts else None)
            if value is None:
                continue
            lower, upper = row["lower"], row["upper"]
            covered += (lower is None or lower <= value) and (upper is None or value <= upper)
            intervals += 1
    return covered, intervals


def main() -> int:
    """Print the coverage of each job."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--releases", type=int, default=200)
    parser.add_argument("--only", nargs="*", choices=JOBS, default=list(JOBS))
    options = parser.parse_args()
    makers = runpy.run_path(str(EXAMPLES / "make_data.py"))["TABLES"]
    print("| job | intervals | coverage | first title |\n|---|---|---|---|")
    for name in options.only:
        with tempfile.TemporaryDirectory() as temporary:
            bounded = make_table(JOBS[name], makers)
            path = write_job(name, Path(temporary), bounded)
            draft = load_plan_file(path).release_plan().draft
            result = measure_coverage(name, path, draft, JOBS[name].true_answers(bounded), options.releases)
        share = result.covered / result.intervals
        print(f"| {name} | {result.intervals} | {share:.1%} | {result.titles[-1]} |", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
