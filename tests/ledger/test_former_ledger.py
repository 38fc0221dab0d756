"""A ledger that version 0.1.0 wrote goes on: equal plans are known by their digests, series continue."""

from __future__ import annotations

import json
import math
import shutil
import sqlite3
from contextlib import closing
from dataclasses import replace
from fractions import Fraction
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import tightrope as tr
from tightrope.errors import InputError, LedgerError
from tightrope.ledger import Claim, Ledger
from tightrope.ledger.chain import canonical_json, combined_digest
from tightrope.ledger.noise_record import NoiseRecord, has_same_noise
from tightrope.release.execution import noise_record_of, release_claim

FORMER = Path(__file__).parent / "written_by_0_1"
TABLE = pd.DataFrame({"who": np.arange(400) // 2, "city": ["a", "b"] * 200, "age": np.arange(400.0) % 50})
QUESTIONS = [tr.count(by="city", keys=["a", "b"]), tr.mean("age", bounds=(0, 50))]


def opened(place: Path) -> tr.Session:
    return tr.Session.open(
        TABLE,
        ledger=place,
        dataset="people",
        privacy_unit="who",
        max_rows=3,
        budget=tr.Budget(epsilon=4, delta="1e-5"),
        limits=[tr.ledger.Limit("yearly", tr.Budget(epsilon=2, delta="1e-5"), every="year")],
    )


def test_a_released_plan_gives_its_answers_again_at_no_cost(tmp_path: Path) -> None:
    for file in FORMER.iterdir():
        shutil.copy(file, tmp_path)
    session = opened(tmp_path / "old.ledger")
    spent = session.spent["budget_fraction"]
    first, again = (
        session.plan(QUESTIONS, budget_fraction="0.25", key="march").release()["count_by_city"].to_pandas()
        for _ in range(2)
    )
    assert first.equals(again)
    assert session.spent["budget_fraction"] == spent == "0.5"
    texts = "".join(Ledger(tmp_path / "old.ledger").open_account("people").stored_answers("march") or "")
    assert all(str(int(value)) in texts for value in first["value"])


def test_a_series_goes_on(tmp_path: Path) -> None:
    for file in FORMER.iterdir():
        shutil.copy(file, tmp_path)
    session = opened(tmp_path / "old.ledger")
    series = session.series(session.plan(QUESTIONS, budget_fraction="0.25"), times=3, key="monthly")
    assert series.released == 1
    series.next().release()
    assert series.released == 2
    with pytest.raises(InputError, match="'monthly' already names a series with other questions"):
        session.series(session.plan(QUESTIONS[:1], budget_fraction="0.25"), times=3, key="monthly")
    assert session.spent["budget_fraction"] == "0.5"


@pytest.mark.parametrize(
    ("part", "same"), [("alternatives", True), ("spare", True), ("units", False), ("tables", False)]
)
def test_figures_for_other_noise_may_differ_in_rounding_under_a_key(tmp_path: Path, part: str, same: bool) -> None:
    """These figures depend on the machine and on library versions; the noise itself must be equal."""
    session = opened(tmp_path / "new.ledger")
    session.plan(QUESTIONS, budget_fraction="0.25", key="march").release()
    account = Ledger(tmp_path / "new.ledger").open_account("people")
    claim = release_claim(session.plan(QUESTIONS, budget_fraction="0.25")._draft, "march", None)
    assert account.find_charge(claim) is not None
    recipe = json.loads(claim.noise_record)
    if part == "alternatives":
        recipe[part] = {name: math.nextafter(error, 2) for name, error in recipe[part].items()}
    elif part == "spare":
        recipe[part] = 0.001
    elif part == "units":
        recipe[part][0]["noise"][0]["shift"] += 1
    else:
        table = recipe[part][0]
        first, *others = table["half"].split(" ")
        table["center"] = f"{int(table['center'], 16) - 2:x}"
        table["half"] = " ".join([f"{int(first, 16) + 1:x}", *others])
    text = canonical_json(recipe)
    other = replace(claim, noise_record=text, plan=combined_digest(claim.questions, text))
    assert other.plan != claim.plan
    if same:
        assert account.find_charge(other) is not None
    else:
        with pytest.raises(InputError) as refused:
            account.find_charge(other)
        assert refused.value.name == "key"
    with pytest.raises(InputError):
        account.find_charge(replace(other, questions="0" * 64, plan=combined_digest("0" * 64, text)))


def ledger_version(place: Path) -> int:
    with closing(sqlite3.connect(place)) as connection:
        ((version,),) = connection.execute("SELECT version FROM tightrope_ledger").fetchall()
    return int(version)


def test_former_software_refuses_a_new_ledger_and_goes_on_with_its_own(tmp_path: Path) -> None:
    """Versions 0.1 and 0.2 accept version 1 alone; they would refuse new declarations without a reason."""
    shutil.copy(FORMER / "old.ledger", tmp_path)
    opened(tmp_path / "old.ledger")
    opened(tmp_path / "new.ledger")
    assert [ledger_version(tmp_path / name) for name in ("old.ledger", "new.ledger")] == [1, 2]


@pytest.mark.parametrize("version", [0, 3, "2.5", None])
def test_a_ledger_of_an_unknown_version_is_refused(tmp_path: Path, version: object) -> None:
    place = tmp_path / "new.ledger"
    opened(place)
    with closing(sqlite3.connect(place)) as connection:
        connection.execute("DROP TRIGGER tightrope_ledger_update")
        connection.execute("PRAGMA ignore_check_constraints = ON")
        connection.execute("UPDATE tightrope_ledger SET version = coalesce(?, 99)", [version])
        connection.commit()
    with pytest.raises(LedgerError, match=r"this Tightrope reads versions 1 and 2; install a newer Tightrope"):
        opened(place)


def test_a_charge_that_is_no_decimal_leaves_the_right_sums_for_former_software(tmp_path: Path) -> None:
    """Former software reads the state after the last entry, not the fields of its body."""
    shutil.copy(FORMER / "old.ledger", tmp_path)
    place = tmp_path / "old.ledger"
    account = Ledger(place, clock=lambda: "2099-01-01T00:00:00.000+00:00").open_account("people")
    budget = tr.Budget(epsilon=4, delta="1e-5")
    account.charge_release(Claim("seventh", "plan", budget.scale_by("1/7"), fraction=Fraction(1, 7)))
    before, last = Ledger(place).list_entries()[-2:]
    spent, reserved = map(Fraction, before.state_data["balances"]["total"])
    assert last.state_data["balances"]["total"] == [str(spent + Fraction(1, 7)), str(reserved)]
    assert set(last.state_data) == {"balances", "series", "releases"}


def test_equal_tables_are_recorded_once_and_older_records_hold_the_same_noise(tmp_path: Path) -> None:
    """Up to version 0.2 each vector had its own table, with one decimal text for each weight."""
    counts = [tr.count(by="city", keys=["a", "b"], where=f"age > {age}", name=f"over {age}") for age in (3, 5, 9)]
    plan = opened(tmp_path / "new.ledger").plan(counts, budget_fraction="0.25")
    record = noise_record_of(plan._draft)
    data = json.loads(record.to_text)
    used = [one["table"] for unit in data["units"] for one in unit["noise"]]
    assert sorted(set(used)) == [*range(1, len(data["tables"]) + 1)]
    assert len(used) > len(data["tables"])
    tables = [choice.table.to_data() for choices in record.choices for choice in choices]
    former = {name: value for name, value in data.items() if name != "tables"}
    for one, table in zip((one for unit in former["units"] for one in unit["noise"]), tables, strict=True):
        one["table"] = table
    text = canonical_json(former)
    assert NoiseRecord.from_text(text).choices == NoiseRecord.from_text(record.to_text).choices == record.choices
    assert has_same_noise(text, record.to_text)
    assert len(record.to_text) < 0.7 * len(text)
