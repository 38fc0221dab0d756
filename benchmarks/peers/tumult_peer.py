"""Tumult Analytics on a local Spark: pure ε, and the ρ that (ε, δ) allows; the better one counts."""

from __future__ import annotations

import math
import os
import sys
from collections.abc import Callable
from typing import Any

import pandas as pd
from common import Draw, Job, run, slope
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


def rho(epsilon: float, delta: float) -> float:
    """ε = ρ + 2 √(ρ ln 1/δ), solved for ρ: the conversion that users of ρ are told."""
    return (math.sqrt(math.log(1 / delta) + epsilon) - math.sqrt(math.log(1 / delta))) ** 2


def ways(job: Job, table: pd.DataFrame) -> list[Draw]:
    """Both budgets; where keys are discovered (ε, δ), one tenth of ε and all of δ for finding them."""
    frame = table.copy()
    for name, ends in (("x", job["bounds"]), ("y", job["of"])):
        if name in frame and ends is not None:
            frame[name] = frame[name].clip(*ends).astype(float)
    if job["kind"] == "regression":
        frame["xy"], frame["yy"] = frame["x"] * frame["y"], frame["y"] ** 2
    frame["group"] = frame["group"].astype(object)
    times = job["times"]
    if job["keys"] is None:
        return [Asker(job, frame, ApproxDPBudget(math.inf, 1), _approximate(job))]
    pure = Asker(job, frame, PureDPBudget(math.inf), lambda part: PureDPBudget(part * job["epsilon"] / times))
    most = rho(job["epsilon"], job["delta"])
    return [pure, Asker(job, frame, RhoZCDPBudget(math.inf), lambda part: RhoZCDPBudget(part * most / times))]


def _approximate(job: Job) -> Budget:
    return lambda part: ApproxDPBudget(part * job["epsilon"], job["delta"] if part < 0.5 else 0)


class Asker:
    """A session without a limit: each draw is one release at the job's budget."""

    def __init__(self, job: Job, frame: pd.DataFrame, endless: Any, budget: Budget) -> None:
        self.job, self.budget = job, budget
        spark = SPARK.createDataFrame(frame.astype({"person": "int64"}).to_dict("records")).cache()
        change = AddRowsWithID(id_column="person") if job["rows"] > 1 else AddOneRow()
        dropped = spark if job["rows"] > 1 else spark.drop("person")
        self.session = Session.from_dataframe(endless, "t", dropped, protected_change=change)

    def query(self, keys: Any = None) -> Any:
        """Rows, bounded, by group where there are groups."""
        found: Any = QueryBuilder("t")
        if self.job["kind"] == "count_distinct":
            found = found.enforce(MaxGroupsPerID("group", self.job["rows"])).enforce(MaxRowsPerGroupPerID("group", 1))
        elif self.job["rows"] > 1:
            found = found.enforce(MaxRowsPerID(self.job["rows"]))
        return found if keys is None else found.groupby(keys)

    def ask(self, query: Any, part: float) -> dict[str, float]:
        """One noisy number a group."""
        rows = self.session.evaluate(query, self.budget(part)).toPandas()
        groups = rows["group"] if "group" in rows else [""] * len(rows)
        number = next(name for name in rows.columns if name != "group")
        return dict(zip(groups, rows[number], strict=True))

    def __call__(self) -> dict[str, float]:
        job, listed = self.job, self.job["keys"]
        if listed is None:
            bound = self.query()
            found = self.session.evaluate(bound.get_groups(["group"]), self.budget(0.1)).toPandas()["group"].tolist()
            return self.ask(self.query(KeySet.from_dict({"group": found})).count(), 0.9)
        query = self.query(None if listed == [""] else KeySet.from_dict({"group": listed}))
        (low, high), (first, last) = job["bounds"] or (0, 1), job["of"] or (0, 1)
        if job["kind"] in COUNTS:
            return self.ask(query.count(), 1)
        if job["kind"] in SINGLE:
            return self.ask(SINGLE[job["kind"]](query, job, low, high), 1)
        if job["kind"] == "ratio":
            over, under = self.ask(query.sum("x", low, high), 0.5), self.ask(query.sum("y", first, last), 0.5)
            return {key: over[key] / under[key] for key in over}
        ends = {"x": (low, high), "y": (first, last), "xy": (low * first, high * last), "yy": (first**2, last**2)}
        sums = {name: self.ask(query.sum(name, *limits), 0.2)[""] for name, limits in ends.items()}
        return {"": slope(self.ask(query.count(), 0.2)[""], *(sums[name] for name in ends))}


if __name__ == "__main__":
    run(ways)
