"""Tumult Analytics on a local Spark: pure ε, and the ρ that (ε, δ) allows; the better one counts."""

from __future__ import annotations

import math
import os
import sys
from collections.abc import Callable
from typing import Any

import pandas as pd
from common import Draw, Job, answer_jobs, regression_slope
from pyspark.sql import SparkSession
from tmlt.analytics import (
    AddOneRow,
    AddRowsWithID,
    ApproxDPBudget,
    KeySet,
    MaxGroupsPerID,
    MaxRowsPerGroupPerID,
    MaxRowsPerID,
    PureDPBudget,
    QueryBuilder,
    RhoZCDPBudget,
    Session,
)

os.environ["PYSPARK_PYTHON"] = os.environ["PYSPARK_DRIVER_PYTHON"] = sys.executable
SPARK = (
    SparkSession.builder.master("local[1]")
    .config("spark.ui.enabled", "false")
    .config("spark.sql.shuffle.partitions", "1")
    .config("spark.driver.memory", "2g")
    .getOrCreate()
)
SPARK.sparkContext.setLogLevel("ERROR")
COUNTS = ("count", "histogram", "top", "count_distinct")
SINGLE: dict[str, Callable[..., Any]] = {
    "mean": lambda query, _, low, high: query.average("x", low, high),
    "share": lambda query, _, low, high: query.average("x", low, high),
    "standard_deviation": lambda query, _, low, high: query.stdev("x", low, high),
    "quantile": lambda query, job, low, high: query.quantile("x", job["q"], low, high),
}
Budget = Callable[[float], Any]


def largest_rho(epsilon: float, delta: float) -> float:
    """Return ρ from ε = ρ + 2 √(ρ ln 1/δ), the usual conversion."""
    return (math.sqrt(math.log(1 / delta) + epsilon) - math.sqrt(math.log(1 / delta))) ** 2


def make_methods(job: Job, table: pd.DataFrame) -> list[Draw]:
    """Return both budgets; for discovered keys (ε, δ), with one tenth of ε and all of δ to find them."""
    frame = table.copy()
    for name, ends in (("x", job["bounds"]), ("y", job["of"])):
        if name in frame and ends is not None:
            frame[name] = frame[name].clip(*ends).astype(float)
    if job["kind"] == "regression":
        frame["xy"], frame["yy"] = frame["x"] * frame["y"], frame["y"] ** 2
    frame["group"] = frame["group"].astype(object)
    times = job["times"]
    if job["keys"] is None:
        return [NoisySession(job, frame, ApproxDPBudget(math.inf, 1), approximate_budget(job))]
    pure = NoisySession(job, frame, PureDPBudget(math.inf), lambda part: PureDPBudget(part * job["epsilon"] / times))
    rho = largest_rho(job["epsilon"], job["delta"])
    return [pure, NoisySession(job, frame, RhoZCDPBudget(math.inf), lambda part: RhoZCDPBudget(part * rho / times))]


def approximate_budget(job: Job) -> Budget:
    """Return the (ε, δ) budget of a part; δ is used for the keys."""
    return lambda part: ApproxDPBudget(part * job["epsilon"], job["delta"] if part < 0.5 else 0)


class NoisySession:
    """A session without a limit; each call is one release with the job's budget."""

    def __init__(self, job: Job, frame: pd.DataFrame, unlimited: Any, budget: Budget) -> None:
        self.job, self.budget = job, budget
        spark = SPARK.createDataFrame(frame.astype({"person": "int64"}).to_dict("records")).cache()
        change = AddRowsWithID(id_column="person") if job["rows"] > 1 else AddOneRow()
        rows = spark if job["rows"] > 1 else spark.drop("person")
        self.session = Session.from_dataframe(unlimited, "t", rows, protected_change=change)

    def bounded_query(self, keys: Any = None) -> Any:
        """Return the query of bounded rows, grouped if there are keys."""
        query: Any = QueryBuilder("t")
        if self.job["kind"] == "count_distinct":
            query = query.enforce(MaxGroupsPerID("group", self.job["rows"])).enforce(MaxRowsPerGroupPerID("group", 1))
        elif self.job["rows"] > 1:
            query = query.enforce(MaxRowsPerID(self.job["rows"]))
        return query if keys is None else query.groupby(keys)

    def noisy_values(self, query: Any, part: float) -> dict[str, float]:
        """Return one noisy number per group."""
        rows = self.session.evaluate(query, self.budget(part)).toPandas()
        groups = rows["group"] if "group" in rows else [""] * len(rows)
        number = next(name for name in rows.columns if name != "group")
        return dict(zip(groups, rows[number], strict=True))

    def __call__(self) -> dict[str, float]:
        job, listed = self.job, self.job["keys"]
        if listed is None:
            rows = self.bounded_query()
            keys = self.session.evaluate(rows.get_groups(["group"]), self.budget(0.1)).toPandas()["group"].tolist()
            return self.noisy_values(self.bounded_query(KeySet.from_dict({"group": keys})).count(), 0.9)
        query = self.bounded_query(None if listed == [""] else KeySet.from_dict({"group": listed}))
        (low, high), (first, last) = job["bounds"] or (0, 1), job["of"] or (0, 1)
        if job["kind"] in COUNTS:
            return self.noisy_values(query.count(), 1)
        if job["kind"] in SINGLE:
            return self.noisy_values(SINGLE[job["kind"]](query, job, low, high), 1)
        if job["kind"] == "ratio":
            numerator = self.noisy_values(query.sum("x", low, high), 0.5)
            denominator = self.noisy_values(query.sum("y", first, last), 0.5)
            return {key: numerator[key] / denominator[key] for key in numerator}
        bounds = {"x": (low, high), "y": (first, last), "xy": (low * first, high * last), "yy": (first**2, last**2)}
        sums = {name: self.noisy_values(query.sum(name, *limits), 0.2)[""] for name, limits in bounds.items()}
        return {"": regression_slope(self.noisy_values(query.count(), 0.2)[""], *(sums[name] for name in bounds))}


if __name__ == "__main__":
    answer_jobs(make_methods)
