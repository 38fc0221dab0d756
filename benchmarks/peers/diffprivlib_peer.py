"""diffprivlib: pure ε, replacing one row; with m rows per person each row gets ε/m. It does not discover keys.

Its means, deviations and quantiles treat the number of rows in a group as public: a weaker promise; this is reported.
Replacing a row changes two bins of a histogram, but the noise is that for one, so half of ε is used.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import pandas as pd
from common import CannotError, Draw, Job, answer_jobs
from diffprivlib import models, tools

warnings.filterwarnings("ignore")

PUBLIC = ("mean", "share", "standard_deviation", "quantile")


def make_methods(job: Job, table: pd.DataFrame) -> list[Draw]:
    """Return one method: groups are disjoint, so that each may use all of ε."""
    if job["keys"] is None:
        raise CannotError("needs a list of keys")
    epsilon = job["epsilon"] / job["rows"] / job["times"]
    if job["kind"] in ("count", "histogram"):
        return [lambda: noisy_histogram(job, table, epsilon)]
    groups = {key: table[table["group"] == key] for key in job["keys"]}
    statistic = STATISTICS[job["kind"]]
    return [lambda: {key: statistic(job, rows, epsilon) for key, rows in groups.items()}]


def noisy_histogram(job: Job, table: pd.DataFrame, epsilon: float) -> dict[str, float]:
    """Return noisy counts by key, with half of ε because two counts change."""
    keys = job["keys"]
    indices = table["group"].map({key: index for index, key in enumerate(keys)}).to_numpy()
    noisy, _ = tools.histogram(indices, epsilon=epsilon / 2, bins=len(keys), range=(-0.5, len(keys) - 0.5))
    return dict(zip(keys, noisy.tolist(), strict=True))


def noisy_mean(job: Job, rows: pd.DataFrame, epsilon: float) -> float:
    """Return the noisy mean of a group."""
    return float(tools.mean(rows["x"].to_numpy(), epsilon=epsilon, bounds=tuple(job["bounds"])))


def noisy_deviation(job: Job, rows: pd.DataFrame, epsilon: float) -> float:
    """Return the noisy standard deviation of a group."""
    return float(tools.std(rows["x"].to_numpy(), epsilon=epsilon, bounds=tuple(job["bounds"])))


def noisy_quantile(job: Job, rows: pd.DataFrame, epsilon: float) -> float:
    """Return the noisy quantile of a group."""
    return float(tools.quantile(rows["x"].to_numpy(), job["q"], epsilon=epsilon, bounds=tuple(job["bounds"])))


def noisy_ratio(job: Job, rows: pd.DataFrame, epsilon: float) -> float:
    """Return the noisy ratio of two sums of a group."""
    numerator = tools.sum(rows["x"].to_numpy(), epsilon=epsilon / 2, bounds=tuple(job["bounds"]))
    return float(numerator / tools.sum(rows["y"].to_numpy(), epsilon=epsilon / 2, bounds=tuple(job["of"])))


def noisy_slope(job: Job, rows: pd.DataFrame, epsilon: float) -> float:
    """Return the noisy slope of the regression line of a group."""
    line = models.LinearRegression(epsilon=epsilon, bounds_X=tuple(job["of"]), bounds_y=tuple(job["bounds"]))
    return float(line.fit(rows[["y"]].to_numpy(), rows["x"].to_numpy()).coef_.ravel()[0])


STATISTICS: dict[str, Callable[[Job, pd.DataFrame, float], Any]] = {
    "mean": noisy_mean,
    "share": noisy_mean,
    "standard_deviation": noisy_deviation,
    "quantile": noisy_quantile,
    "ratio": noisy_ratio,
    "regression": noisy_slope,
}

if __name__ == "__main__":
    answer_jobs(make_methods, lambda job: "takes the number of rows for public" if job["kind"] in PUBLIC else None)
