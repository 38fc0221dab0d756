"""Certificates that charge questions of disjoint conditions as one: true ones are confirmed, forged ones refuted."""

from __future__ import annotations

import copy
import importlib.util
import itertools
import json
import subprocess
import sys
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import pytest

import tightrope as tr
from tests.tables.expressions.test_disjoint import DISJOINT, OVERLAPPING, SCHEMA
from tests.verify.written import table
from tightrope.tables.expressions import disjoint
from tightrope.tables.expressions.expression import resolve_term
from tightrope.verify.check import check_document
from tightrope.verify.claims import CONFIRMED, NOT_CONFIRMED, REFUTED, worst_verdict
from tightrope.verify.contributions import condition_alternatives, has_contradiction
from tightrope.verify.standalone import standalone_text

Data = dict[str, Any]
PURE = tr.Budget(epsilon=1, delta=0)
ASKED: dict[str, tuple[tr.Budget, Callable[[], list[Any]]]] = {
    "two counts": (
        tr.Budget(epsilon=1, delta=1e-6),
        lambda: [tr.count(where="city == 'Ulm'", name="a"), tr.count(where="city == 'Bern'", name="b")],
    ),
    "without delta": (
        PURE,
        lambda: [
            tr.sum("age", bounds=(0, 9), where="age < 9", name="a"),
            tr.count(where="age >= 9", name="b"),
            tr.count(),
        ],
    ),
    "different losses": (
        tr.Budget(epsilon=1, delta=1e-6),
        lambda: [
            tr.mean("income", bounds=(0, 100_000), where="city == 'Ulm'", name="a"),
            tr.count(where="city == 'Ulm'", by="age > 30", name="a too"),
            tr.median("age", bounds=(0, 100), where="city == 'Bern'", name="b"),
            tr.proportion("age > 30", where="not (city == 'Ulm' or city == 'Bern')", name="c"),
            tr.count(),
        ],
    ),
}


@cache
def released(name: str, costs: str = "0") -> str:
    budget, questions = ASKED[name]
    session = tr.Session(table(), privacy_unit=None, budget=budget)
    return session.plan(questions(), bias_check=costs).release().to_json()


def certificate(name: str) -> Data:
    data: Data = json.loads(released(name))["certificate"]
    return data


def refuted(data: Data) -> list[str]:
    return [claim.name for claim in check_document(json.dumps(data)) if claim.verdict == REFUTED]


@pytest.mark.parametrize("name", ASKED)
@pytest.mark.parametrize("costs", ["0", "0.1"])
def test_what_is_written_is_confirmed(name: str, costs: str) -> None:
    claims = check_document(released(name, costs))
    assert worst_verdict(claims) == CONFIRMED, [one for one in claims if one.verdict in (NOT_CONFIRMED, REFUTED)]
    assert any(claim.name == "disjoint 1: no row meets two of its conditions" for claim in claims)


def test_one_file_says_the_same(tmp_path: Path) -> None:
    text = released("different losses")
    (tmp_path / "check.py").write_text(standalone_text(text), encoding="utf-8")
    (tmp_path / "document.json").write_text(text, encoding="utf-8")
    found = subprocess.run(
        [sys.executable, tmp_path / "check.py", tmp_path / "document.json"], capture_output=True, text=True, check=False
    )
    assert (found.stderr, found.returncode) == ("", 0)
    assert "disjoint 1: no row meets two of its conditions" in found.stdout


def test_a_file_for_other_documents_does_not_pass_over_the_claim(tmp_path: Path) -> None:
    """The file for a document without disjoint conditions ends with an error at one that has them."""
    assert importlib.util.find_spec("flint") is not None
    plain = certificate("two counts")
    for one in plain["mechanisms"]:
        one["disjoint"] = None
    (tmp_path / "check.py").write_text(standalone_text(json.dumps(plain)), encoding="utf-8")
    (tmp_path / "document.json").write_text(json.dumps(certificate("two counts")), encoding="utf-8")
    found = subprocess.run(
        [sys.executable, tmp_path / "check.py", tmp_path / "document.json"], capture_output=True, text=True, check=False
    )
    assert found.returncode not in (0, 4)
    assert "CLAIMS_BY_FIELD" in found.stderr or "disjoint" in found.stderr


def overlapping(data: Data) -> None:
    data["mechanisms"][0]["where"] = "city in ['Ulm', 'Bern']"


def one_condition(data: Data) -> None:
    """Two conditions that are spelled in two ways are one."""
    data["mechanisms"][1]["where"] = "city in ['Ulm']"


def no_condition(data: Data) -> None:
    data["mechanisms"][0]["where"] = None


def members_of_one_list(data: Data) -> None:
    """Both are true of every row."""
    data["mechanisms"][0]["where"], data["mechanisms"][1]["where"] = "5 in [5, 6]", "6 in [5, 6]"


def identity(data: Data) -> None:
    data["mechanisms"][0]["where"], data["mechanisms"][1]["where"] = "city is 'Ulm'", "city == 'Ulm'"


def another_column(data: Data) -> None:
    data["mechanisms"][0]["where"] = "region == 'Ulm'"


def one_instant(data: Data) -> None:
    data["mechanisms"][0]["where"] = "day == '2024-01-01'"
    data["mechanisms"][1]["where"] = "day == '20240101'"


def many_rows(data: Data) -> None:
    """A person with four rows may meet both conditions."""
    data["neighbors"] |= {"privacy_unit": "person", "max_rows": 4, "max_rows_per_group": 4, "max_groups": 4}


def a_person_of_one_row(data: Data) -> None:
    """One row of a person counts in each question: they are two rows of the table."""
    data["neighbors"]["privacy_unit"] = "person"


FORGED = (
    members_of_one_list,
    identity,
    overlapping,
    one_condition,
    no_condition,
    another_column,
    one_instant,
    many_rows,
    a_person_of_one_row,
)


@pytest.mark.parametrize("forged", FORGED)
def test_what_is_forged_is_refuted(forged: Callable[[Data], None]) -> None:
    data = copy.deepcopy(certificate("two counts"))
    forged(data)
    assert any(name.startswith("disjoint 1: ") for name in refuted(data))


def test_without_the_statement_the_guarantee_is_refuted() -> None:
    """The noise of two questions that are charged as one does not keep the promise for a row that meets both."""
    data = copy.deepcopy(certificate("two counts"))
    for one in data["mechanisms"]:
        one["disjoint"] = None
    assert any(name.startswith("epsilon") for name in refuted(data))


def test_a_set_with_a_question_about_all_rows_is_refuted() -> None:
    data = copy.deepcopy(certificate("different losses"))
    for one in data["mechanisms"]:
        one["disjoint"] = 1
    assert "disjoint 1: no row meets two of its conditions" in refuted(data)


def test_conditions_of_one_unit_differ_from_no_other() -> None:
    data = copy.deepcopy(certificate("different losses"))
    data["mechanisms"][0]["disjoint"] = 7
    assert refuted(data)


@pytest.mark.parametrize("text", ["city == ", "(" * 50_000, "a\x00", "'" * 3, "x == 1 " * 20_000])
def test_a_condition_that_cannot_be_read_confirms_nothing(text: str) -> None:
    data = copy.deepcopy(certificate("two counts"))
    data["mechanisms"][0]["where"] = text
    claims = {claim.name: claim.verdict for claim in check_document(json.dumps(data))}
    assert claims["disjoint 1: no row meets two of its conditions"] == NOT_CONFIRMED


@pytest.mark.parametrize("texts", [(None, "True"), ("", "True"), (None, ""), (None, "city == 'Ulm'")])
def test_a_set_with_a_condition_that_is_missing_is_refuted(texts: tuple[str | None, str]) -> None:
    """Mechanisms without a condition count all rows, however that is written."""
    data = copy.deepcopy(certificate("two counts"))
    for mechanism, text in zip(data["mechanisms"], texts, strict=True):
        mechanism["where"] = text
    assert "disjoint 1: no row meets two of its conditions" in refuted(data)


@pytest.mark.parametrize("pair", [("x not in []", "x is None"), ("x < [1, 5]", "x >= 3"), ("x == [1, 2]", "x == 3")])
def test_what_is_no_expression_excludes_nothing(pair: tuple[str, str]) -> None:
    assert not excludes(*pair)


def excludes(one: str, other: str) -> bool:
    first, second = condition_alternatives(one), condition_alternatives(other)
    assert first is not None and second is not None
    return all(has_contradiction([*tests, *others]) for tests in first for others in second)


@pytest.mark.parametrize("pair", DISJOINT, ids=" | ".join)
def test_what_the_writer_proves_is_derived_again(pair: tuple[str, str]) -> None:
    assert excludes(*(str(resolve_term(text, SCHEMA)) for text in pair))


UNSTATED = (("x + 1 == 2", "x + 1 == 3"),)
"""Disjoint by their text; the writer leaves such conditions alone because of engines' arithmetic."""


@pytest.mark.parametrize("pair", sorted(set(OVERLAPPING) - set(UNSTATED)), ids=" | ".join)
def test_what_may_hold_together_is_not_derived(pair: tuple[str, str]) -> None:
    assert not excludes(*(str(resolve_term(text, SCHEMA)) for text in pair))


def test_the_verifier_derives_all_that_the_writer_proves_of_random_conditions() -> None:
    """Every pair of combinations of comparisons: whatever is proven on one side is on the other."""
    parts = [
        "n < 2",
        "n >= 2",
        "n == 5",
        "n in [0, 1]",
        "n is None",
        "flag",
        "not flag",
        "g == 'a'",
        "not (g in ['a', 'b'])",
    ]
    texts = [
        *parts,
        *(f"({one}) {word} ({other})" for one, other in itertools.combinations(parts, 2) for word in ("and", "or")),
    ]
    conditions = [resolve_term(text, SCHEMA) for text in texts]
    proven = [disjoint.condition_alternatives(condition, SCHEMA) for condition in conditions]
    derived = [condition_alternatives(str(condition)) for condition in conditions]
    counts = [0, 0]
    for first, second in itertools.combinations(range(len(texts)), 2):
        is_proven = disjoint.exclude_each_other(proven[first], proven[second])
        is_derived = all(
            has_contradiction([*tests, *others]) for tests in derived[first] or () for others in derived[second] or ()
        )
        assert is_proven == is_derived, (texts[first], texts[second])
        counts[is_proven] += 1
    assert min(counts) > 300
