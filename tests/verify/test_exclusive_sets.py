"""Mechanisms that are charged as parts of one set: what a forged document says of them is refuted."""

from __future__ import annotations

import copy
import json
from collections.abc import Iterator
from typing import Any

import pandas as pd
import pytest

import tightrope as tr
from tests.verify.altered import of_version_3
from tightrope.mechanisms.discrete.integer_tables import staircase_table
from tightrope.verify.check import check_document
from tightrope.verify.claims import worst_verdict

TABLE = pd.DataFrame({
    "p": [i // 3 for i in range(300)],
    "v": [i % 50 for i in range(300)],
    "w": [i % 7 for i in range(300)],
    "g": ["ab"[i % 2] for i in range(300)],
})  # fmt: skip


def released(questions: list[Any], *, costs: float = 0, **bounds: int) -> dict[str, Any]:
    session = tr.Session(
        TABLE, privacy_unit="p", budget=tr.Budget(epsilon="0.6931471805599453", delta="1e-8"), **bounds
    )
    return of_version_3(json.loads(session.plan(questions, bias_check=costs).release().to_json())["certificate"])


BOUNDED = {"max_rows": 3, "max_rows_per_group": 2, "max_groups": 2}
REAL = {
    "two rows": ([tr.proportion("v > 20")], 0, {"max_rows": 2}),
    "three rows by group": ([tr.proportion("v > 20", by="g")], 0, {"max_rows": 3}),
    "two groups": (
        [tr.proportion("v > 20", by="g")],
        0,
        {"max_rows": 3, "max_rows_per_group": 2, "max_groups": 2},
    ),
    "what bounds cost, one row": ([tr.sum("v", bounds=(0, 50))], 0.05, {"max_rows": 1}),
    "what bounds cost, two rows": ([tr.sum("v", bounds=(0, 50))], 0.05, {"max_rows": 2}),
}


@pytest.fixture(scope="module", params=REAL)
def real(request: pytest.FixtureRequest) -> dict[str, Any]:
    questions, costs, bounds = REAL[request.param]
    return released(questions, costs=costs, **bounds)


def labeled(certificate: dict[str, Any]) -> list[dict[str, Any]]:
    return [one for one in certificate["mechanisms"] if one["exclusive"] is not None]


def test_what_is_written_is_confirmed(real: dict[str, Any]) -> None:
    claims = check_document(json.dumps(real))
    assert worst_verdict(claims) == "confirmed", [
        one for one in claims if one.verdict not in ("confirmed", "not checked")
    ]
    assert any(one.name.startswith("exclusive set") for one in claims)


def test_half_the_groups_and_stairs_two_steps_wide_are_refuted() -> None:
    """One row in each part: epsilon is twice what the forged certificate says. It was confirmed before."""
    forged = released([tr.proportion("v > 20")], max_rows=2)
    table = staircase_table(float(forged["epsilon"]), 2)
    for one in forged["mechanisms"]:
        one |= {"groups": 1, "table": json.loads(json.dumps(table.to_data())), "family": "discrete staircase"}
    assert worst_verdict(check_document(json.dumps(forged))) == "refuted"


def forgeries(certificate: dict[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    """One alteration of a set each: fewer groups, a label that joins what overlaps, parts that are not alike."""
    for place, one in enumerate(certificate["mechanisms"]):
        if one["exclusive"] is None:
            continue
        for groups in range(1, one["groups"]):
            changed = copy.deepcopy(certificate)
            for other in changed["mechanisms"]:
                if other["together"] == one["together"]:
                    other["groups"] = groups
            yield f"{place}: {groups} groups", changed
        for name, value in {"by": ["w"], "where": "w > 3", "unit": "2", "statistic": "sum", "column": "w > 3"}.items():
            changed = copy.deepcopy(certificate)
            if len([m for m in changed["mechanisms"] if m["together"] == one["together"]]) > 1:
                changed["mechanisms"][place][name] = value
                yield f"{place}: {name}", changed


@pytest.mark.slow
def test_no_altered_set_is_confirmed(real: dict[str, Any]) -> None:
    found = {name: worst_verdict(check_document(json.dumps(forged))) for name, forged in forgeries(real)}
    assert "confirmed" not in found.values(), found


def test_sums_of_two_columns_under_one_label_are_refuted() -> None:
    """They would be charged as one: a person's row adds to both."""
    forged = released([tr.sum("v", bounds=(0, 50)), tr.sum("w", bounds=(0, 50))], max_rows=1)
    first = forged["mechanisms"][0]
    for one in forged["mechanisms"]:
        one |= {"exclusive": "one of two", "together": first["together"], "groups": len(forged["mechanisms"])}
    assert worst_verdict(check_document(json.dumps(forged))) == "refuted"
