"""Records of noise that were altered are refused, and a check of the ledger reports each of them."""

from __future__ import annotations

import json
from collections.abc import Callable
from copy import deepcopy
from functools import cache
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

import tightrope as tr
from tests.ledger.conftest import claim
from tightrope.errors import LedgerError
from tightrope.ledger import Account, Ledger
from tightrope.ledger.check import check_ledger
from tightrope.ledger.noise_record import NoiseRecord
from tightrope.release.execution import noise_record_of

Data = dict[str, Any]


@cache
def recorded_text() -> str:
    """The record of a plan with four tables in five places."""
    table = pd.DataFrame({"id": [1, 2, 3], "city": ["a", "b", "c"], "x": [1.0, 2.0, 3.0]})
    session = tr.Session(table, privacy_unit="id", max_rows=2, budget=tr.Budget(epsilon=1, delta=1e-6))
    questions = [tr.count(), tr.mean("x", bounds=(0, 10)), tr.count(by="city", name="groups"), tr.count_distinct()]
    return noise_record_of(session.plan(questions).draft).to_text


def places(data: Data) -> list[Data]:
    return [one for unit in data["units"] for one in unit["noise"]]


def numbered(number: object) -> Callable[[Data], None]:
    return lambda data: places(data)[0].update(table=number)


def with_tables(change: Callable[[list[Data]], list[Data]]) -> Callable[[Data], None]:
    return lambda data: data.update(tables=change(data["tables"]))


def in_each_place(data: Data) -> None:
    for one in places(data):
        one["table"] = data["tables"][one["table"] - 1]


ALTERED: dict[str, Callable[[Data], object]] = {
    **{f"table {number!r}": numbered(number) for number in (0, -1, 99, True, 1.0, "1", None, {}, [1])},
    "a table twice": with_tables(lambda tables: [*tables, tables[0]]),
    "an equal table in place of another": with_tables(lambda tables: [tables[0], tables[0], *tables[2:]]),
    "a table that nobody uses": lambda data: [one.update(table=1) for one in places(data)],
    "no tables": with_tables(lambda _: []),
    "without tables": lambda data: data.pop("tables"),
    "tables in each place, too": in_each_place,
    "tables that are no list": lambda data: data.update(tables=5),
    "no groups": lambda data: data.update(units=[]),
    "a group without noise": lambda data: data["units"][0].update(noise=[]),
    "no rows": lambda data: data["units"][0].update(rows=[0, 1, 1]),
    **{f"shift {shift}": lambda data, shift=shift: places(data)[0].update(shift=shift) for shift in (0, -1, 1.5)},
    **{
        f"lattice {step} {reach}": lambda data, window=(step, reach): data.update(window=list(window))
        for step, reach in (("nan", 9), ("inf", 9), ("0", 9), ("-1", 9), ("1", -1), ("1", 1e400), ("1", "9"))
    },
    "a lattice of three numbers": lambda data: data["window"].append(1),
    "weights that do not add up": lambda data: data["tables"][0].update(half="1"),
    "too many weights": lambda data: data["tables"][0].update(half="1*9999999999"),
    "a rule that is no number": lambda data: data.update(planning_rule="2"),
}


@pytest.mark.parametrize("name", ALTERED)
def test_an_altered_record_is_refused(name: str) -> None:
    data = deepcopy(json.loads(recorded_text()))
    ALTERED[name](data)
    with pytest.raises(LedgerError, match="changed after it was written"):
        NoiseRecord.from_text(json.dumps(data))


@pytest.mark.parametrize("text", ["", "[]", "5", "null", "{}", "[" * 100_000])
def test_a_text_that_is_no_record_is_refused(text: str) -> None:
    with pytest.raises(LedgerError, match="changed after it was written"):
        NoiseRecord.from_text(text)


def test_a_check_reports_every_altered_record_and_reads_the_others(account: Account, tmp_path: Path) -> None:
    texts = [recorded_text()]
    for name in ("table 99", "table 0", "a table twice", "without tables", "shift 0", "no groups"):
        data = deepcopy(json.loads(recorded_text()))
        ALTERED[name](data)
        texts.append(json.dumps(data))
    texts.append("[]")
    for number, text in enumerate(texts):
        account.charge_release(claim(f"release {number}", "0.1", noise_record=text))
    report = check_ledger(Ledger(tmp_path / "visits.ledger"))
    assert report.guarantees == 1
    problems = [problem for problem in report.problems if "cannot be read" in problem]
    assert len(problems) == len(texts) - 1


def test_records_of_both_forms_are_read() -> None:
    record = NoiseRecord.from_text(recorded_text())
    data = json.loads(recorded_text())
    assert len(data["tables"]) < len(places(data)) == 5
    tables = [choice.table.to_data() for choices in record.choices for choice in choices]
    former = {name: value for name, value in data.items() if name != "tables"}
    for one, table in zip(places(former), tables, strict=True):
        one["table"] = table
    read = NoiseRecord.from_text(json.dumps(former))
    assert (read.units, read.choices, read.window) == (record.units, record.choices, record.window)
