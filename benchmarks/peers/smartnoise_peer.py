"""SmartNoise SQL on pandas: Laplace noise at ε split over the columns of a query, and keys hidden by a threshold."""

from __future__ import annotations

import warnings
from typing import Any

import pandas as pd
import snsql
from common import CannotError, Draw, Job, run, slope
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


def ways(job: Job, table: pd.DataFrame) -> list[Draw]:
    """One, with each noisy column at its part of ε."""
    if job["kind"] == "quantile":
        raise CannotError("has no quantiles")
    frame = table.rename(columns={"group": "group_"})
    (low, high), (first, last) = job["bounds"] or (0, 1), job["of"] or (0, 1)
    ends = {"x": (low, high), "y": (first, last), "xx": (0, high**2), "yy": (first**2, last**2)}
    ends["xy"] = (low * first, high * last)
    for name in set(frame.columns) & {"x", "y"}:
        frame[name] = frame[name].clip(*ends[name]).astype(float)
    if "x" in frame:
        frame["xx"] = frame["x"] ** 2
    if "y" in frame:
        frame["xy"], frame["yy"] = frame["x"] * frame["y"], frame["y"] ** 2
    columns: Any = {
        name: {"type": "float", "lower": ends[name][0], "upper": ends[name][1]} for name in ends if name in frame
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
    return [lambda: _asked(job, reader, query + (" GROUP BY group_" if grouped else ""))]


def _asked(job: Job, reader: Any, query: str) -> dict[str, float]:
    names, *rows = reader.execute(query)
    found = [dict(zip(names, row, strict=True)) for row in rows]
    return {str(row.get("group_", "")): value(job["kind"], row) for row in found}


def value(kind: str, row: dict[str, Any]) -> float:
    """One group's answer from its noisy numbers."""
    if kind in COUNTS:
        return float(row["n"])
    if kind in ("mean", "share"):
        return float(row["sx"]) / max(row["n"], 1)
    if kind == "ratio":
        return float(row["sx"] / row["sy"])
    if kind == "regression":
        return slope(row["n"], row["sx"], row["sy"], row["sxy"], row["syy"])
    return float(max(row["sxx"] / row["n"] - (row["sx"] / row["n"]) ** 2, 0) ** 0.5)


if __name__ == "__main__":
    run(ways)
