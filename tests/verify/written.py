"""What real writers write, small: one document of each sort, made once in a run of the tests."""

from __future__ import annotations

import json
from functools import cache
from typing import Any

import numpy as np
import pandas as pd

import tightrope as tr
from tightrope.certificates.document import written


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
    "one count": ({"person": None}, lambda: [tr.count()]),
    "pure": (
        {"person": None, "budget": tr.Budget(epsilon=1, delta=0)},
        lambda: [tr.count(), tr.sum("age", between=(0, 9))],
    ),
    "rows of a person": (
        {},
        lambda: [
            tr.count(by="city"),
            tr.mean("income", between=(0, 100_000), by="city", keys=["Ulm", "Bern"]),
            tr.count(by="city", keys=["Ulm"], name="again"),
        ],
    ),
    "cells": ({}, lambda: [tr.histogram("age", edges=[0, 30, 60, 100]), tr.median("age", between=(0, 100))]),
    "many rows": ({"rows_per_person": 36}, lambda: [tr.mean("age", between=(0, 100), by="city", keys=["Ulm", "Bern"])]),
}  # fmt: skip


@cache
def release(name: str) -> str:
    """The certificate of a release, as text."""
    changes, questions = QUESTIONS[name]
    arguments: dict[str, Any] = {
        "person": "person", "rows_per_person": 4, "budget": tr.Budget(epsilon=2, delta=1e-6), **changes
    }  # fmt: skip
    if arguments["person"] is None:
        del arguments["rows_per_person"]
    answers = tr.Session(table(), **arguments).plan(questions()).release()
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
    return written(tr.least_noise(asked.pop("budget"), **asked).certificate.document())
