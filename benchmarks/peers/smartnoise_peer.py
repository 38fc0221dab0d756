"""SmartNoise SQL on pandas: Laplace noise with ε split over the columns of a query; a threshold suppresses keys."""

from __future__ import annotations

import math
import warnings
from typing import Any

import pandas as pd
import snsql
from common import CannotError, Draw, Job, answer_jobs, regression_slope
from snsql import Privacy

warnings.filterwarnings("ignore")
COUNTS = ("count", "histogram", "top", "count_distinct")
COLUMNS = {
    **dict.fromkeys(COUNTS, "COUNT(*) AS n"),
    "mean": "SUM(x) AS sx, COUNT(x) AS n",
    "share": "SUM(x) AS sx, COUNT(x) AS n",
    "ratio": "SUM(x) AS sx, SUM(y) AS sy",
    "standard_deviation": "SUM(x) AS sx, SUM(xx) AS sxx, COUNT(x) AS n",
    "regression": "COUNT(*) AS n, SUM(x) AS sx, SUM(y) AS sy, SUM(xy) AS sxy, SUM(yy) AS syy",
}


def make_methods(job: Job, table: pd.DataFrame) -> list[Draw]:
    """Return one method; each noisy column gets its part of ε."""
    if job["kind"] == "quantile":
        raise CannotError("has no quantiles")
    frame = table.rename(columns={"group": "group_"})
    (low, high), (first, last) = job["bounds"] or (0, 1), job["of"] or (0, 1)
    bounds = {"x": (low, high), "y": (first, last), "xx": (0, high**2), "yy": (first**2, last**2)}
    bounds["xy"] = (low * first, high * last)
    for name in set(frame.columns) & {"x", "y"}:
        frame[name] = frame[name].clip(*bounds[name]).astype(float)
    if "x" in frame:
        frame["xx"] = frame["x"] ** 2
    if "y" in frame:
        frame["xy"], frame["yy"] = frame["x"] * frame["y"], frame["y"] ** 2
    columns: Any = {
        name: {"type": "float", "lower": bounds[name][0], "upper": bounds[name][1]} for name in bounds if name in frame
    }
    columns |= {"person": {"type": "int", "private_id": job["rows"] > 1}, "group_": {"type": "string"}}
    settings = {
        "max_ids": job["rows"],
        "censor_dims": job["keys"] is None,
        "sample_max_ids": False,
        "clamp_counts": False,
    }
    settings |= {"row_privacy": job["rows"] == 1, "rows": len(frame), **columns}
    parts = COLUMNS[job["kind"]].count("AS") * job["times"]
    privacy = Privacy(epsilon=job["epsilon"] / parts, delta=job["delta"])
    reader = snsql.from_df(frame, privacy=privacy, metadata={"": {"d": {"t": settings}}})
    grouped = job["keys"] != [""]
    query = f"SELECT {'group_, ' if grouped else ''}{COLUMNS[job['kind']]} FROM d.t"
    return [lambda: run_query(job, reader, query + (" GROUP BY group_" if grouped else ""))]


def run_query(job: Job, reader: Any, query: str) -> dict[str, float]:
    """Return the answers of one release."""
    names, *rows = reader.execute(query)
    records = [dict(zip(names, row, strict=True)) for row in rows]
    return {str(row.get("group_", "")): group_answer(job["kind"], row) for row in records}


def group_answer(kind: str, row: dict[str, Any]) -> float:
    """Return one group's answer from its noisy numbers."""
    if kind in COUNTS:
        return float(row["n"])
    if kind in ("mean", "share"):
        return float(row["sx"]) / max(float(row["n"]), 1)
    if kind == "ratio":
        return float(row["sx"]) / float(row["sy"])
    if kind == "regression":
        return regression_slope(row["n"], row["sx"], row["sy"], row["sxy"], row["syy"])
    return math.sqrt(max(row["sxx"] / row["n"] - (row["sx"] / row["n"]) ** 2, 0))


if __name__ == "__main__":
    answer_jobs(make_methods)
