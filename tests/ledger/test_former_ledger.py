"""A ledger that version 0.1.0 wrote goes on: equal plans are known by their digests, series continue."""

from __future__ import annotations

import json
import math
import shutil
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import tightrope as tr
from tightrope.errors import InputError
from tightrope.ledger import Ledger
from tightrope.ledger.chain import canonical_json, combined_digest
from tightrope.release.execution import claim_of

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


@pytest.mark.parametrize(("part", "same"), [("alternatives", True), ("spare", True), ("units", False)])
def test_figures_for_other_noise_may_differ_in_rounding_under_a_key(tmp_path: Path, part: str, same: bool) -> None:
    """These figures depend on the machine and on library versions; the noise itself must be equal."""
    session = opened(tmp_path / "new.ledger")
    session.plan(QUESTIONS, budget_fraction="0.25", key="march").release()
    account = Ledger(tmp_path / "new.ledger").open_account("people")
    claim = claim_of(session.plan(QUESTIONS, budget_fraction="0.25")._draft, "march", None)
    assert account.find_charge(claim) is not None
    recipe = json.loads(claim.noise_record)
    if part == "alternatives":
        recipe[part] = {name: math.nextafter(error, 2) for name, error in recipe[part].items()}
    elif part == "spare":
        recipe[part] = 0.001
    else:
        recipe[part][0]["noise"][0]["table"]["centre"] += "0"
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
