"""OpenDP through Polars: Laplace noise at ε, and Gaussian noise at the ρ that (ε, δ) allows; the better one counts."""

from __future__ import annotations

import math
import warnings
from functools import partial
from typing import Any

import opendp.prelude as dp
import pandas as pd
import polars as pl
from common import CannotError, Draw, Job, answer_jobs, regression_slope

warnings.filterwarnings("ignore")
dp.enable_features("contrib")
CELLS = 4000
COUNTS = ("count", "histogram", "top", "count_distinct")


def largest_rho(epsilon: float, delta: float) -> float:
    """Return the largest ρ of Gaussian noise that OpenDP's own conversion certifies for ε and δ."""

    def is_private(value: float) -> bool:
        noise = dp.m.make_gaussian(
            dp.atom_domain(T=int), dp.absolute_distance(T=int), scale=float((0.5 / value) ** 0.5)
        )
        return bool(dp.c.make_zCDP_to_approxDP(noise).map(1).epsilon(delta) <= epsilon)

    return float(dp.binary_search(is_private, bounds=(1e-9, 10.0)))


def noisy_columns(job: Job) -> list[Any]:
    """Return the noisy sums and counts, clipped to the same bounds as in the other tools."""
    x, y = pl.col("x"), pl.col("y")
    if job["kind"] in COUNTS:
        return [dp.len(signed=True)]
    (low, high), of = job["bounds"], job["of"]
    total = x.dp.sum((low, high)).alias("sx")
    if job["kind"] in ("mean", "share"):
        return [dp.len(signed=True), total]
    if job["kind"] == "ratio":
        return [total, y.dp.sum(tuple(of)).alias("sy")]
    if job["kind"] == "standard_deviation":
        return [dp.len(signed=True), total, pl.col("xx").dp.sum((0, high * high)).alias("sxx")]
    if job["kind"] == "regression":
        products = pl.col("xy").dp.sum((low * of[0], high * of[1])).alias("sxy")
        squares = pl.col("yy").dp.sum((of[0] ** 2, of[1] ** 2)).alias("syy")
        return [dp.len(signed=True), total, y.dp.sum(tuple(of)).alias("sy"), products, squares]
    width = (high - low) / CELLS
    return [x.dp.quantile(job["q"], candidates=[low + width * i for i in range(CELLS + 1)]).alias("value")]


def group_answer(kind: str, row: dict[str, Any]) -> float:
    """Return one group's answer from its noisy numbers."""
    if kind in COUNTS:
        return float(row["len"])
    if kind in ("mean", "share"):
        return float(row["sx"]) / max(float(row["len"]), 1)
    if kind == "ratio":
        return float(row["sx"]) / float(row["sy"])
    if kind == "standard_deviation":
        return math.sqrt(max(row["sxx"] / row["len"] - (row["sx"] / row["len"]) ** 2, 0))
    if kind == "regression":
        return regression_slope(row["len"], row["sx"], row["sy"], row["sxy"], row["syy"])
    return float(row["value"])


def make_methods(job: Job, table: pd.DataFrame) -> list[Draw]:
    """Return Laplace and Gaussian noise; for discovered keys, Laplace noise with δ for the threshold."""
    epsilon, delta, times = job["epsilon"], job["delta"], job["times"]
    losses = [dp.loss_of(epsilon=epsilon, delta=delta) if job["keys"] is None else dp.loss_of(epsilon=epsilon)]
    if job["kind"] != "quantile" and job["keys"] is not None:
        losses.append(dp.loss_of(rho=largest_rho(epsilon, delta)))
    frame = clip_columns(job, table)
    return [partial(draw_answer, job, noisy_query(job, frame, loss, times), frame) for loss in losses]


def clip_columns(job: Job, table: pd.DataFrame) -> Any:
    """Return clipped columns, as integers if possible: OpenDP needs more noise for sums of floats."""
    frame = table.copy()
    for name, ends in (("x", job["bounds"]), ("y", job["of"])):
        if name in frame and ends is not None:
            is_integer = (frame[name] % 1 == 0).all() and job["kind"] != "quantile"
            frame[name] = frame[name].clip(*ends).astype("int64" if is_integer else "float64")
    if job["kind"] == "standard_deviation":
        frame["xx"] = frame["x"] ** 2
    if job["kind"] == "regression":
        frame["xy"], frame["yy"] = frame["x"] * frame["y"], frame["y"] ** 2
    return (
        pl.DataFrame({name: frame[name].to_numpy() for name in frame.columns if name != "group"})
        .with_columns(group=pl.Series(frame["group"].astype(str).tolist()))
        .lazy()
    )


def noisy_query(job: Job, frame: Any, loss: Any, times: int) -> Any:
    """Return the query with the noise that OpenDP chooses."""
    bound: Any = job["rows"]
    if job["kind"] == "count_distinct":
        bound = [dp.polars.Bound(by=["group"], per_group=1, num_groups=job["rows"])]
    grouped = job["keys"] != [""]
    size = 1_000_000
    margin = dp.polars.Margin(
        by=["group"] if grouped else [], max_length=size, **({"max_groups": 1000} if grouped else {})
    )
    context = dp.Context.compositor(
        data=frame, privacy_unit=dp.unit_of(contributions=bound), privacy_loss=loss, split_evenly_over=times,
        margins=[margin],
    )  # fmt: skip
    if not grouped:
        return context.query().select(*noisy_columns(job)).resolve()
    query = context.query().group_by("group").agg(*noisy_columns(job))
    if job["keys"] is not None:
        query = query.with_keys(pl.LazyFrame({"group": list(job["keys"])}))
    return query.resolve()


def draw_answer(job: Job, query: Any, frame: Any) -> dict[str, float]:
    """Return the answers of one release."""
    rows = query(frame).collect().to_dicts()
    if not rows:
        raise CannotError("all groups are suppressed")
    return {row.get("group", ""): group_answer(job["kind"], row) for row in rows}


if __name__ == "__main__":
    answer_jobs(make_methods)
