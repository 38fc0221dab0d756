"""A release is written and read back the same; what is wrong in a document is named with its place."""

from __future__ import annotations

import json
from typing import Any

import pandas as pd
import pytest
from msgspec import structs

import tightrope as tr
from tightrope.documents.document import plain_data, to_json_text
from tightrope.documents.release import RELEASES, ReleaseResult, read_certificate, read_result, results_columns
from tightrope.errors import InputError


@pytest.fixture(scope="module")
def result() -> ReleaseResult:
    rows = [(i // 2, pd.Timestamp(2020, 1 + i % 2, 1), 20 + i % 50) for i in range(2_000)]
    table = pd.DataFrame(rows, columns=["who", "day", "age"])
    session = tr.Session(table, privacy_unit="who", max_rows=2, budget=tr.Budget(epsilon=1, delta="1e-7"))
    asked = [tr.count(by="day"), tr.mean("age", bounds=(0, 100)), tr.sum("age", bounds=(0, 100))]
    return session.plan(asked, budget_fraction="0.5").release().result("Ages")


def test_written_and_read_back_equal(result: ReleaseResult) -> None:
    assert read_result(to_json_text(result)) == result
    assert read_certificate(to_json_text(result.certificate)) == result.certificate
    assert result.certificate.budget.to_budget() == tr.Budget(epsilon=1, delta="1e-7").scale_by("0.5")


def test_columns_of_keys_differ_from_other_columns(result: ReleaseResult) -> None:
    names = ("question", "by question", "missing")
    row = dict.fromkeys(names) | {"value": 1, "lower": 0, "upper": 2}
    answer = structs.replace(result.answers[0], by=names, keys="given", rows=(row,))
    found = results_columns(structs.replace(result, answers=(answer,)))
    assert list(found) == [
        "question", "statistic", "by question", "by by question", "by missing", "value", "lower", "upper", "missing",
    ]  # fmt: skip


def test_each_row_is_a_person() -> None:
    session = tr.Session(pd.DataFrame({"a": [1] * 50}), privacy_unit=None, budget=tr.Budget(epsilon=1, delta="1e-7"))
    found = session.plan([tr.count()]).release().result()
    assert read_result(to_json_text(found)) == found
    assert found.certificate.neighbors.privacy_unit is None


def at(data: Any, *place: str | int) -> Any:
    for step in place:
        data = data[step]
    return data


@pytest.mark.parametrize(
    ("place", "key", "value", "said"),
    [
        (("answers", 0), "knid", "count", r"release answers 1: unknown key 'knid'; did you mean 'kind'"),
        (("certificate",), "epsilon", "1", r"release certificate epsilon to be a number, got .*='1'"),
        (("certificate",), "epsilon", float("nan"), "NaN is no number"),
        (("certificate",), "epsilon", True, "release certificate epsilon"),
        (("certificate",), "total_variation", 1.5, "total_variation to be a number <= 1"),
        (("certificate", "budget"), "points", [], "release certificate budget points"),
        (("certificate", "budget", "points", 0), 0, "NaN", "release certificate budget points to be a finite number"),
        (("certificate",), "epsilon_exact", "NaN", "certificate epsilon_exact to be a finite number, got .*='NaN'"),
        (("certificate",), "delta_exact", "Infinity", "certificate delta_exact to be a finite number"),
        (("certificate",), "total_variation_exact", "-inf", "total_variation_exact to be a finite number"),
        (("certificate",), "budget_fraction", "sNaN", "certificate budget_fraction to be a finite number"),
        (("certificate", "mechanisms", 0), "unit", "Infinity", "mechanisms 1 unit to be a finite number"),
        (("certificate", "mechanisms", 0), "table", "1", "mechanisms 1 table to be an integer"),
        (("certificate", "mechanisms", 0), "table", 9, "mechanisms table to be the id of a table"),
        (("certificate", "tables", 0), "id", 2, "tables to be the ids 1 to 3 in order"),
        (("certificate", "tables", 1), "id", 1, "tables to be the ids 1 to 3 in order"),
        (("certificate", "tables", 0), "center", 5, "tables 1 center to be text"),
        (("certificate", "tables", 0), "center", "1" * 34, "tables 1 center to be text matching"),
        (("certificate", "tables", 0), "half", "a5*1", "tables 1 half to be hexadecimal weights"),
        (("certificate", "tables", 0), "half", "a5 a5", "tables 1 half to be hexadecimal weights"),
        (("certificate", "tables", 0), "half", "a5*3000000", "tables 1 half to be at most 2097152"),
        (("certificate", "profile"), "delta", [0.5], "release certificate profile delta to be a list of 25"),
        (("certificate",), "version", 5, "release certificate version to be .*1.*2.*3.*4.*, got .*=5"),
        (("certificate",), "version", 1, "mechanisms 1 together to be a number, from version 2 on"),
        (("answers", 0), "keys", "discoverd", "did you mean 'discovered'"),
        (("answers", 0, "rows", 0), "value", "many", "release answers 1 rows 1 value to be a number"),
        (("answers", 0, "rows", 0), "other", 1, "release answers 1 rows 1 to be a record of"),
    ],
)
def test_what_is_wrong_is_named(result: ReleaseResult, place: Any, key: Any, value: Any, said: str) -> None:
    data = json.loads(to_json_text(result))
    at(data, *place)[key] = value
    with pytest.raises(InputError, match=said):
        read_result(json.dumps(data))


@pytest.mark.parametrize("key", ["document", "answers", "certificate"])
def test_nothing_may_be_missing(result: ReleaseResult, key: str) -> None:
    data = {name: value for name, value in plain_data(result).items() if name != key}
    with pytest.raises(InputError, match=f"release {key}: missing"):
        RELEASES.convert_data(data, ReleaseResult)


@pytest.mark.parametrize("text", ["", "{", "[]", "3", '{"a": 1, "a": 2}', "[" * 100_000])
def test_other_texts_are_refused(text: str) -> None:
    with pytest.raises(InputError, match="release"):
        read_result(text)
