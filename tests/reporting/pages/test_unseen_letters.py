"""Letters that a terminal obeys, and such as nobody sees, from the data and from the plan: none reaches a page."""

from __future__ import annotations

import re

import pandas as pd
import pytest

import tightrope as tr
from tightrope import reporting

OBEYED = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u200b-\u200f\u202a-\u202e\u2066-\u2069]")
EVIL = "a\x1b[31mred\x07\x9b\x7f\u202e"


@pytest.mark.parametrize("keys", [None, [EVIL, "b"]])
def test_a_page_holds_none_of_them(keys: list[str] | None) -> None:
    frame = pd.DataFrame({f"g{EVIL}": [EVIL, "b"] * 600, "x": [1.0, 2.0] * 600})
    session = tr.Session(frame, privacy_unit=None, budget=tr.Budget(epsilon=8, delta="1e-8"))
    questions = [
        tr.count(by=f"g{EVIL}", keys=keys, name=f"n{EVIL}", title=f"t{EVIL}", unit=f"u{EVIL}", description=EVIL),
        tr.mean("x", bounds=(0, 5), by=f"g{EVIL}", keys=keys, name="m"),
    ]
    page = reporting.html(session.plan(questions).release().result(f"title {EVIL}"))
    assert "red" in page
    assert OBEYED.search(page) is None
