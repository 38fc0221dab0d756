"""diffprivlib: pure ε, one row is replaced by another; a person with m rows takes ε/m a row. It discovers no keys.

How many rows a group has is public to its means, deviations and quantiles: that promises less, and is said so. A row
that is replaced leaves one part of a histogram and enters another; the noise is that of one.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import pandas as pd
from common import CannotError, Draw, Job, run
from diffprivlib import models, tools

warnings.filterwarnings("ignore")

PUBLIC = ("mean", "share", "standard_deviation", "quantile")


def ways(job: Job, table: pd.DataFrame) -> list[Draw]:
    """One: groups are apart, so that each may take the whole of ε."""
    if job["keys"] is None:
        raise CannotError("needs a list of keys")
    epsilon = job["epsilon"] / job["rows"] / job["times"]
    if job["kind"] in ("count", "histogram"):
        return [lambda: _histogram(job, table, epsilon)]
    groups = {key: table[table["group"] == key] for key in job["keys"]}
    ask = ASKED[job["kind"]]
    return [lambda: {key: ask(job, rows, epsilon) for key, rows in groups.items()}]


def _histogram(job: Job, table: pd.DataFrame, epsilon: float) -> dict[str, float]:
    """Of the places of the keys; half of ε, for two counts change."""
    keys = job["keys"]
    places = table["group"].map({key: place for place, key in enumerate(keys)}).to_numpy()
    noisy, _ = tools.histogram(places, epsilon=epsilon / 2, bins=len(keys), range=(-0.5, len(keys) - 0.5))
    return dict(zip(keys, noisy.tolist(), strict=True))


def _mean(job: Job, rows: pd.DataFrame, epsilon: float) -> float:
    return float(tools.mean(rows["x"].to_numpy(), epsilon=epsilon, bounds=tuple(job["bounds"])))


def _spread(job: Job, rows: pd.DataFrame, epsilon: float) -> float:
    return float(tools.std(rows["x"].to_numpy(), epsilon=epsilon, bounds=tuple(job["bounds"])))


def _quantile(job: Job, rows: pd.DataFrame, epsilon: float) -> float:
    return float(tools.quantile(rows["x"].to_numpy(), job["q"], epsilon=epsilon, bounds=tuple(job["bounds"])))


def _ratio(job: Job, rows: pd.DataFrame, epsilon: float) -> float:
    over = tools.sum(rows["x"].to_numpy(), epsilon=epsilon / 2, bounds=tuple(job["bounds"]))
    return float(over / tools.sum(rows["y"].to_numpy(), epsilon=epsilon / 2, bounds=tuple(job["of"])))


def _slope(job: Job, rows: pd.DataFrame, epsilon: float) -> float:
    line = models.LinearRegression(epsilon=epsilon, bounds_X=tuple(job["of"]), bounds_y=tuple(job["bounds"]))
    return float(line.fit(rows[["y"]].to_numpy(), rows["x"].to_numpy()).coef_.ravel()[0])


ASKED: dict[str, Callable[[Job, pd.DataFrame, float], Any]] = {
    "mean": _mean,
    "share": _mean,
    "standard_deviation": _spread,
    "quantile": _quantile,
    "ratio": _ratio,
    "regression": _slope,
}

if __name__ == "__main__":
    run(ways, less=lambda job: "takes the number of rows for public" if job["kind"] in PUBLIC else None)
