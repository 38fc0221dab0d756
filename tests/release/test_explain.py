"""A plan and its certificate say the same promise, in words, with the numbers of their documents."""

from __future__ import annotations

import math
import re

import pandas as pd
import pytest

import tightrope as tr
from tightrope.documents.document import to_json_text
from tightrope.documents.release import read_certificate
from tightrope.documents.wording import added_probability_text

TABLE = pd.DataFrame({"tail": [1, 1, 2, 3] * 50, "city": ["a", "b", "a", "a"] * 50})


def plan(person: object, delta: str = "1e-8", **bounds: int) -> tr.release.Plan:
    budget = tr.Budget(epsilon=1, delta=delta)
    return tr.Session(TABLE, privacy_unit=person, budget=budget, **bounds).plan([tr.count(by="city", keys=["a", "b"])])  # type: ignore[arg-type]


@pytest.mark.parametrize("delta", ["0", "1e-8"])
def test_the_numbers_are_those_of_the_certificate(delta: str) -> None:
    drafted = plan("tail", delta, max_rows=3)
    certificate = drafted.release().certificate_data
    said = certificate.explain()
    percent, guesses = re.search(r"at most ([\d.]+) % of .* at most (\d+) are right on average", said).groups()  # type: ignore[union-attr]
    # an attacker from an even chance is right (1 + δ(0))/2 of the time: from the composed loss, not from the document
    success = 50 * (1 + drafted.loss.total_variation())
    assert success <= float(percent) <= success + 0.1 + 1e-9
    assert int(guesses) == math.ceil(success)
    assert (added_probability_text(1e-8) in said) == (delta != "0")
    assert "at most 2.72 times as likely with your data as without" in said
    assert read_certificate(to_json_text(certificate)).explain() == said


def test_a_plan_says_what_its_certificate_will() -> None:
    drafted = plan("tail", max_rows=3)
    before = drafted.explain()
    assert drafted.document().explain() == before
    after = drafted.release().certificate_data.explain()
    assert before.replace("everything that this plan would release", "everything that this release publishes") == after


def test_what_a_person_is_there() -> None:
    human = plan("tail", max_rows=3).explain()
    assert "guesses whether you are in the data is right" in human
    assert "“You” means all rows with the same “tail”, of which at most 3 are used in any one answer" in human
    assert "a person with several values of “tail” has less protection" in human
    machine = plan(("tail", "an aircraft"), max_rows=3).explain()
    assert "whether an aircraft is in the data" in machine
    assert "An aircraft means all rows with the same “tail”" in machine
    assert not re.search(r"\b(you|your|people)\b", machine, re.IGNORECASE)
    assert "“You” means one row of the table; a person with several rows has less protection." in plan(None).explain()
