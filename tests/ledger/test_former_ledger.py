"""A ledger that version 0.1.0 wrote goes on: equal plans are known by their digests, series continue."""

from __future__ import annotations

import shutil
from pathlib import Path

import numpy as np
import pandas as pd

import tightrope as tr
from tightrope.ledger import Ledger

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
    assert session.spent["budget_fraction"] == "0.5"
