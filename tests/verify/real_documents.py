"""What real writers write, of every kind of question: results of releases, each made once in a run of the tests."""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import cache
from typing import Any

import tightrope as tr
from tests.verify.altered import of_version_3
from tests.verify.written import table

Asked = tuple[Callable[[], list[Any]], dict[str, Any]]
PURE = tr.Budget(epsilon=2, delta=0)
TWO = ["Ulm", "Bern"]
RELEASES: dict[str, Asked] = {
    "share": (lambda: [tr.proportion("age > 30")], {"max_rows": 2}),
    "share, without delta": (lambda: [tr.proportion("age > 30")], {"max_rows": 2, "budget": PURE}),
    "shares by keys": (
        lambda: [tr.proportion("age > 30", by="city", keys=TWO), tr.proportion("income > 9", by="city", name="rich")],
        {"max_groups": 2, "max_rows_per_group": 1},
    ),
    "costs of one row": (
        lambda: [tr.sum("age", bounds=(0, 50)), tr.proportion("age > 9"), tr.mean("income", bounds=(0, 100_000))],
        {"max_rows": 1, "bias_check": 0.05},
    ),
    "costs of four rows": (
        lambda: [tr.sum("age", bounds=(0, 50)), tr.mean("income", bounds=(0, 100_000), by="city", keys=TWO)],
        {"bias_check": 0.05},
    ),
    "what is left over": (lambda: [tr.count(by="city"), tr.suppressed_count(by="city"), tr.top_k(2, by="city")], {}),
    "different": (
        lambda: [tr.count_distinct(), tr.count_distinct("city"), tr.count_distinct(by="city", keys=TWO)],
        {},
    ),
    "moments": (
        lambda: [
            tr.variance("age", bounds=(0, 100)),
            tr.standard_deviation("income", bounds=(0, 100_000)),
            tr.covariance("income", "age", bounds=(0, 100_000), other_bounds=(0, 100)),
        ],
        {},
    ),
    "pairs": (
        lambda: [
            tr.ratio("income", "age", bounds=(0, 100_000), denominator_bounds=(0, 100)),
            tr.correlation("income", "age", bounds=(0, 100_000), other_bounds=(0, 100), name="together"),
        ],
        {},
    ),
    "a box": (lambda: [tr.sum("age", bounds=(0, 50)), tr.sum("income", bounds=(0, 100_000))], {"privacy_unit": None}),
    "cells": (
        lambda: [tr.histogram("age", edges=[0, 30, 60, 100]), *tr.quantiles("age", [0.25, 0.75], bounds=(0, 100))],
        {},
    ),
    "chosen": (
        lambda: [
            tr.median("age", bounds=(0, 100)),
            tr.quantile("income", 0.9, bounds=(0, 100_000), by="city", keys=TWO),
        ],
        {},
    ),
    "own bounds": (
        lambda: [
            tr.count(by="city", keys=TWO, max_rows_per_group=1),
            tr.count(max_rows_per_group=2),
            tr.mean("age", bounds=(0, 100), by="city", keys=["Ulm"], max_rows_per_group=2, max_groups=1),
        ],
        {"max_rows_per_group": 9},
    ),
    "conditions": (
        lambda: [tr.count(where="age > 50"), tr.sum("age", bounds=(0, 100), where="income > 9"), tr.count(name="all")],
        {"budget": PURE},
    ),
    "whole and parts": (
        lambda: [tr.count(), tr.count(by="city", keys=["Ulm", "Bern", "Graz"])],
        {"privacy_unit": None, "budget": tr.Budget(epsilon=1, delta=1e-6)},
    ),
    "a truth value": (lambda: [tr.sum("old", bounds=(0, 1))], {"max_rows": 1, "bias_check": 0.1}),
}  # fmt: skip


@cache
def result(name: str) -> str:
    """The result of a release, with its certificate and answers, as text."""
    questions, changes = RELEASES[name]
    asked = {"privacy_unit": "person", "max_rows": 4, "budget": tr.Budget(epsilon=2, delta=1e-6), **changes}
    costs = asked.pop("bias_check", 0)
    if asked["privacy_unit"] is None:
        del asked["max_rows"]
    rows = table().assign(old=lambda all_rows: all_rows["age"] > 50)
    return tr.Session(rows, **asked).plan(questions(), bias_check=costs).release().to_json()


def certificate(name: str) -> dict[str, Any]:
    """The certificate in it, each mechanism with its own table."""
    return of_version_3(json.loads(result(name))["certificate"])
