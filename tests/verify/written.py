"""What real writers write, small: one document of each sort, made once in a run of the tests."""

from __future__ import annotations

import json
import tempfile
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from typer.testing import CliRunner

import tightrope as tr
from tightrope.cli.main import app
from tightrope.documents.document import to_json_text


@cache
def table() -> pd.DataFrame:
    """Three hundred people with up to four rows each."""
    draw = np.random.default_rng(11)
    people = np.repeat(np.arange(300), draw.integers(1, 5, 300))
    return pd.DataFrame({
        "person": people,
        "city": draw.choice(["Ulm", "Bern", "Graz"], len(people)),
        "income": draw.gamma(3, 12_000, len(people)),
        "age": draw.integers(0, 100, len(people)),
    })  # fmt: skip


QUESTIONS = {
    "one count": ({"privacy_unit": None}, lambda: [tr.count()]),
    "pure": (
        {"privacy_unit": None, "budget": tr.Budget(epsilon=1, delta=0)},
        lambda: [tr.count(), tr.sum("age", bounds=(0, 9))],
    ),
    "rows of a person": (
        {},
        lambda: [
            tr.count(by="city"),
            tr.mean("income", bounds=(0, 100_000), by="city", keys=["Ulm", "Bern"]),
            tr.count(by="city", keys=["Ulm"], name="again"),
        ],
    ),
    "a box without delta": (
        {"privacy_unit": None, "budget": tr.Budget(epsilon=1, delta=0)},
        lambda: [tr.sum("age", bounds=(0, 100)), tr.sum("income", bounds=(0, 100_000))],
    ),
    "cells": (
        {},
        lambda: [
            tr.histogram("age", edges=[0, 30, 60, 100]),
            *tr.quantiles("age", [0.25, 0.75], bounds=(0, 100)),
        ],
    ),
    "costs beside a total": (
        {"budget": tr.Budget(epsilon=2, delta=1e-7)},
        lambda: [tr.count(), tr.histogram("age", edges=[0, 50])],
    ),
    "chosen": (
        {},
        lambda: [
            tr.median("age", bounds=(0, 100)),
            tr.quantile("income", 0.9, bounds=(0, 100_000), by="city", keys=["Ulm", "Bern"]),
        ],
    ),
    "costs beside a choice": ({}, lambda: [tr.median("age", bounds=(0, 100))]),
    "fewer rows of their own": (
        {"max_rows_per_group": 9},
        lambda: [
            tr.count(by="city", keys=["Ulm", "Bern"], max_rows_per_group=1),
            tr.count(max_rows_per_group=2),
            tr.mean("age", bounds=(0, 100), by="city", keys=["Ulm"], max_rows_per_group=2, max_groups=1),
        ],
    ),
    "many rows": ({"max_rows": 36}, lambda: [tr.mean("age", bounds=(0, 100), by="city", keys=["Ulm", "Bern"])]),
}  # fmt: skip


@cache
def release(name: str) -> str:
    """The certificate of a release, as text."""
    changes, questions = QUESTIONS[name]
    arguments: dict[str, Any] = {
        "privacy_unit": "person", "max_rows": 4, "budget": tr.Budget(epsilon=2, delta=1e-6), **changes
    }  # fmt: skip
    if arguments["privacy_unit"] is None:
        del arguments["max_rows"]
    costs = "0.05" if "costs" in name else 0
    answers = tr.Session(table(), **arguments).plan(questions(), bias_check=costs).release()
    return json.dumps(answers.certificate)


NOISES: dict[str, dict[str, Any]] = {
    "a theorem": {},
    "a dual": {"sensitivity": 3},
    "any shape": {"sensitivity": 2, "shape": "any", "cost": "squared"},
    "several": {"releases": 4, "sensitivity": 2},
    "endless": {"budget": tr.Budget(epsilon=1, delta=0), "sensitivity": 2},
    "two points": {"budget": tr.Budget(epsilon=1, delta="1e-6", total_variation="0.3"), "sensitivity": 2},
}


@cache
def noise(name: str) -> str:
    """A noise certificate, as text."""
    asked = {"budget": tr.Budget(epsilon=1, delta="1e-6"), **NOISES[name]}
    return to_json_text(tr.least_noise(asked.pop("budget"), **asked).certificate.to_document())


STEPS = {
    "noise": '[[step]]\nmechanism = "gaussian"\nscale = 2\ncount = 3\n[[step]]\nmechanism = "laplace"\nscale = 4\n',
    "sampled": '[[step]]\nmechanism = "gaussian"\nscale = 1\npoisson_rate = 0.1\ncount = 8\n',
    "finite": (
        '[[step]]\nmechanism = "approx_dp"\nepsilon = 0.5\ndelta = 1e-7\n'
        '[[step]]\nmechanism = "discrete_laplace"\nscale = 4\nsensitivity = 2\nerase = 0.25\n'
        '[[step]]\nmechanism = "gaussian"\nscale = 4\n'
        '[[step]]\nmechanism = "from_pair"\np = [0.7, 0.2, 0.1]\nq = [0.5, 0.25, 0.25]\n'
    ),
    "subset": '[[step]]\nmechanism = "gaussian"\nscale = 1\nsubset = [10, 100]\n',
}
SMOOTH = '[[step]]\nmechanism = "gaussian"\nscale = 4\n'
"""Beside what loses in jumps: where δ jumps, no grid can tell which side of it is meant."""
LISTED = {
    "staircase": '[[step]]\nmechanism = "staircase"\nepsilon = 0.5\n',
    "staircase of another shape": '[[step]]\nmechanism = "staircase"\nepsilon = 0.5\ngamma = 0.7\n',
    "truncated Laplace": '[[step]]\nmechanism = "truncated_laplace"\nepsilon = 0.5\ndelta = 1e-7\n',
    "discrete staircase": '[[step]]\nmechanism = "discrete_staircase"\nepsilon = 0.5\nsensitivity = 5\n',
    "discrete Gaussian": '[[step]]\nmechanism = "discrete_gaussian"\nscale = 5\nsensitivity = 2\ncount = 2\n',
    "discrete truncated Laplace": (
        '[[step]]\nmechanism = "discrete_truncated_laplace"\nepsilon = 0.5\ndelta = 1e-7\nsensitivity = 3\n'
    ),
    "points": '[[step]]\nmechanism = "from_points"\npoints = [[1, 1e-7], [0.5, 1e-3], [0.2, 0.05]]\n',
}


@cache
def account(name: str) -> str:
    """What ``tightrope account --json`` prints of steps."""
    steps = STEPS[name] if name in STEPS else LISTED[name] + SMOOTH * (name != "discrete Gaussian")
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "steps.toml"
        path.write_text(steps, encoding="utf-8")
        asked = ["account", str(path), "--delta", "1e-6", "--epsilon", "0.5", "--json"]
        return CliRunner().invoke(app, asked).stdout


@cache
def training() -> str:
    """What ``tightrope dpsgd --json`` prints of a short training run."""
    asked = "dpsgd --examples 1000 --batch 100 --delta 1e-5 --noise 1.5 --steps 10 --no-compare --json"
    return CliRunner().invoke(app, asked.split()).stdout


PLAN = """
[source]
path = "visits.parquet"
[privacy_unit]
column = "person"
max_rows = 4
[budget]
epsilon = 1
delta = 1e-6
budget_fraction = 0.25
[[question]]
kind = "count"
by = "city"
keys = ["Ulm", "Bern"]
"""


@cache
def ledger() -> str:
    """An exported ledger with two releases."""
    with tempfile.TemporaryDirectory() as folder:
        table().to_parquet(Path(folder) / "visits.parquet")
        plan = Path(folder) / "plan.toml"
        plan.write_text(PLAN, encoding="utf-8")
        for number in range(2):
            done = CliRunner().invoke(app, ["release", str(plan), "--out", f"{folder}/{number}"])
            assert done.exit_code == 0, done.stderr
        return CliRunner().invoke(app, ["ledger", "export", str(plan)]).stdout


def coupling() -> str:
    """A coupling of ages by city."""
    return fitted_coupling()


def partial_coupling() -> str:
    """A coupling of ages by city that leaves a twentieth of each group as it is."""
    return fitted_coupling("--delta", "0.05")


@cache
def fitted_coupling(*words: str) -> str:
    """The file of ``couple fit`` with these options."""
    with tempfile.TemporaryDirectory() as folder:
        path, out = Path(folder) / "visits.parquet", Path(folder) / "mechanism.json"
        table().to_parquet(path)
        asked = ["couple", "fit", str(path), "--value", "age", "--group", "city", "--bins", "6", "--bounds", "0,100"]
        done = CliRunner().invoke(app, [*asked, *words, "--out", str(out)])
        assert done.exit_code == 0, done.stderr
        return out.read_text(encoding="utf-8")
