"""What real writers write, of every kind of question: results of releases, each made once in a run of the tests."""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import cache
from typing import Any

import tightrope as tr
from tests.verify.written import table

Asked = tuple[Callable[[], list[Any]], dict[str, Any]]
PURE = tr.Budget(epsilon=2, delta=0)
TWO = ["Ulm", "Bern"]
RELEASES: dict[str, Asked] = {
    "share": (lambda: [tr.share("age > 30")], {"rows_per_person": 2}),
    "share, without delta": (lambda: [tr.share("age > 30")], {"rows_per_person": 2, "budget": PURE}),
    "shares by keys": (
        lambda: [tr.share("age > 30", by="city", keys=TWO), tr.share("income > 9", by="city", name="rich")],
        {"groups_per_person": 2, "rows_per_group": 1},
    ),
    "costs of one row": (
        lambda: [tr.sum("age", between=(0, 50)), tr.share("age > 9"), tr.mean("income", between=(0, 100_000))],
        {"rows_per_person": 1, "costs": 0.05},
    ),
    "costs of four rows": (
        lambda: [tr.sum("age", between=(0, 50)), tr.mean("income", between=(0, 100_000), by="city", keys=TWO)],
        {"costs": 0.05},
    ),
    "what is left over": (lambda: [tr.count(by="city"), tr.other(by="city"), tr.top(2, by="city")], {}),
    "different": (
        lambda: [tr.count_distinct(), tr.count_distinct("city"), tr.count_distinct(by="city", keys=TWO)],
        {},
    ),
    "moments": (
        lambda: [
            tr.variance("age", between=(0, 100)),
            tr.standard_deviation("income", between=(0, 100_000)),
            tr.covariance("income", "age", between=(0, 100_000), of=(0, 100)),
        ],
        {},
    ),
    "pairs": (
        lambda: [
            tr.ratio("income", "age", between=(0, 100_000), of=(0, 100)),
            tr.correlation("income", "age", between=(0, 100_000), of=(0, 100), name="together"),
        ],
        {},
    ),
    "a box": (lambda: [tr.sum("age", between=(0, 50)), tr.sum("income", between=(0, 100_000))], {"person": None}),
    "cells": (
        lambda: [tr.histogram("age", edges=[0, 30, 60, 100]), *tr.quantiles("age", [0.25, 0.75], between=(0, 100))],
        {},
    ),
    "chosen": (
        lambda: [
            tr.median("age", between=(0, 100)),
            tr.quantile("income", 0.9, between=(0, 100_000), by="city", keys=TWO),
        ],
        {},
    ),
    "own bounds": (
        lambda: [
            tr.count(by="city", keys=TWO, rows_per_group=1),
            tr.count(rows_per_group=2),
            tr.mean("age", between=(0, 100), by="city", keys=["Ulm"], rows_per_group=2, groups_per_person=1),
        ],
        {"rows_per_group": 9},
    ),
    "conditions": (
        lambda: [tr.count(where="age > 50"), tr.sum("age", between=(0, 100), where="income > 9"), tr.count(name="all")],
        {"budget": PURE},
    ),
    "whole and parts": (
        lambda: [tr.count(), tr.count(by="city", keys=["Ulm", "Bern", "Graz"])],
        {"person": None, "budget": tr.Budget(epsilon=1, delta=1e-6)},
    ),
    "a truth value": (lambda: [tr.sum("old", between=(0, 1))], {"rows_per_person": 1, "costs": 0.1}),
}  # fmt: skip


@cache
def result(name: str) -> str:
    """The result of a release, with its certificate and answers, as text."""
    questions, changes = RELEASES[name]
    asked = {"person": "person", "rows_per_person": 4, "budget": tr.Budget(epsilon=2, delta=1e-6), **changes}
    costs = asked.pop("costs", 0)
    if asked["person"] is None:
        del asked["rows_per_person"]
    rows = table().assign(old=lambda all_rows: all_rows["age"] > 50)
    return tr.Session(rows, **asked).plan(questions(), costs=costs).release().to_json()


def certificate(name: str) -> dict[str, Any]:
    """The certificate in it."""
    found: dict[str, Any] = json.loads(result(name))["certificate"]
    return found
