"""Answers that least squares made consistent, checked from the noisy numbers beside them."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from functools import cache
from typing import Any

import pytest

import tightrope as tr
from tests.verify.written import table
from tightrope.verify.check import check_document
from tightrope.verify.claims import CONFIRMED, REFUTED, Claim, worst_verdict

EDGES = [0, 30, 60, 100]
ASKED = {
    "each row a person": (
        {"privacy_unit": None},
        lambda: [
            tr.count(),
            tr.histogram("age", edges=EDGES),
            tr.count(by={"old": "age >= 60"}),
            tr.histogram("age", edges=EDGES, by={"old": "age >= 60"}, name="both"),
        ],
    ),
    "many divisions": (
        {"privacy_unit": None},
        lambda: [
            tr.count(),
            tr.histogram("age", edges=EDGES),
            *(tr.histogram("age", edges=list(range(first, 100, 7)), name=f"from {first}") for first in range(1, 8)),
        ],
    ),
    "sums": (
        {"privacy_unit": None},
        lambda: [tr.sum("income", bounds=(0, 1e5)), tr.sum("income", bounds=(0, 1e5), by="age > 18", name="parts")],
    ),
    "rows of a person": (
        {"privacy_unit": "person", "max_rows": 2},
        lambda: [tr.count(), tr.histogram("age", edges=EDGES, by={"old": "age >= 60"})],
    ),
}


@cache
def released(name: str) -> str:
    settings, questions = ASKED[name]
    return (
        tr.Session(table(), budget=tr.Budget(epsilon=1, delta=1e-6), **settings).plan(questions()).release().to_json()
    )


def of_answers(data: dict[str, Any]) -> list[Claim]:
    return [claim for claim in check_document(json.dumps(data)) if claim.name.startswith("answers ")]


def moved(row: dict[str, Any], by: float, fields: Sequence[str] = ("value", "lower", "upper")) -> None:
    for field in fields:
        row[field] += by


def rename(answer: dict[str, Any], name: str) -> None:
    (old,) = answer["by"]
    answer["by"] = [name]
    for row in answer["rows"]:
        row[name] = row.pop(old)


def spoilt(change: Callable[[dict[str, Any]], object]) -> str:
    data = json.loads(released("each row a person"))
    change(data)
    return worst_verdict(check_document(json.dumps(data)))


@pytest.mark.parametrize("name", ASKED)
def test_what_was_released_is_confirmed(name):
    claims = check_document(released(name))
    assert worst_verdict(claims) == CONFIRMED
    assert len([claim for claim in claims if claim.name.startswith("answers ")]) == 2
    assert any(claim.name == "consistent[0].variances[1]" and claim.verdict == CONFIRMED for claim in claims)


@pytest.mark.parametrize("name", ASKED)
@pytest.mark.parametrize("fields", [["value", "lower", "upper"], ["noisy"]])
def test_a_number_that_was_altered_is_refuted(name, fields):
    data = json.loads(released(name))
    row = data["answers"][1]["rows"][2]
    moved(row, (row["upper"] - row["lower"]) / 1000, fields)
    assert worst_verdict(of_answers(data)) == REFUTED


def test_all_of_them_moved_together_still_add_up_and_are_not_the_nearest():
    data = json.loads(released("rows of a person"))
    total, parts = (answer["rows"] for answer in data["answers"])
    moved(total[0], 1)
    moved(parts[0], 1)
    assert [claim.verdict for claim in of_answers(data)] == [CONFIRMED, REFUTED]


def test_weights_that_are_not_those_of_the_noise_are_refuted():
    data = json.loads(released("sums"))
    stated = float(data["certificate"]["consistent"][0]["variances"][0])
    data["certificate"]["consistent"][0]["variances"][0] = repr(stated * 1.001)
    assert worst_verdict(check_document(json.dumps(data))) == REFUTED


@pytest.mark.parametrize(
    "spoil",
    [
        lambda data: data["answers"][1]["rows"].pop(),
        lambda data: data["answers"][1]["rows"][0].update(lower=data["answers"][1]["rows"][0]["value"] + 1),
        lambda data: data["answers"][1]["rows"].append(data["answers"][1]["rows"][0]),
    ],
    ids=["a group is missing", "a value outside its interval", "a group that stands twice"],
)
def test_groups_that_are_not_a_full_table_are_refuted(spoil):
    assert spoilt(spoil) == REFUTED


@pytest.mark.parametrize(
    "spoil",
    [
        lambda data: data["answers"][0]["rows"][0].update(lower=data["answers"][0]["rows"][0]["value"]),
        lambda data: data["answers"][0]["rows"][0].update(upper=1e308),
        lambda data: data["answers"][0]["error"].update(half_width_95=1.0),
        lambda data: data["certificate"].update(consistent=[]),
        lambda data: data["certificate"].pop("consistent"),
        lambda data: data["answers"].insert(0, {**data["answers"][0], "rows": []}),
        lambda data: rename(data["answers"][1], "other"),
    ],
    ids=["shrunk", "wide", "another width", "none is moved", "no word of it", "twice", "another column"],
)
def test_answers_that_contradict_themselves_are_refuted(spoil):
    assert spoilt(spoil) == REFUTED


def test_answers_that_nobody_gave_are_no_document():
    data = json.loads(released("sums"))
    del data["answers"][1]["rows"][0]["noisy"]
    with pytest.raises(ValueError, match="release result"):
        check_document(json.dumps(data))
