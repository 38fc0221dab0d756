"""The results and the certificate inside the page: whole, as they are written elsewhere, and no more than text."""

from __future__ import annotations

import re
from urllib.parse import unquote

import pandas as pd
import pytest

import tightrope as tr
from tests.reporting import released
from tightrope import reporting
from tightrope.documents.release import read_certificate
from tightrope.reporting.pages.blocks import embedded_files, size_words

EVIL = "<script>alert(1)</script>\"' &amp;#%22"


def files(page: str) -> dict[str, str]:
    """What the links that save a file hold, by the names of the files."""
    found = re.findall(r'<a href="data:([^,"]*),([^"]*)" download="([^"]*)">', page)
    assert [kind for kind, _, _ in found] == ["text/csv;charset=utf-8", "application/json;charset=utf-8"]
    return {name: unquote(held) for _, held, name in found}


@pytest.fixture(scope="module")
def answers() -> tr.release.Answers:
    frame = pd.DataFrame({EVIL: ["Zürich", EVIL, None, "a,b\nc"] * 300})
    budget = tr.Budget(epsilon=8, delta="1e-8")
    session = tr.Session(frame, privacy_unit=None, budget=budget)
    return session.plan([tr.count(by=EVIL, keys=["Zürich", EVIL, "a,b\nc"], name="c")]).release()


def test_they_are_the_files_of_the_release(answers: tr.release.Answers) -> None:
    found = files(reporting.html(answers.result()))
    assert found["results.csv"] == answers.to_csv()
    assert read_certificate(found["certificate.json"]) == answers.certificate_data
    assert EVIL.replace('"', '""') in found["results.csv"]


def test_names_end_no_address(answers: tr.release.Answers) -> None:
    page = reporting.html(answers.result())
    assert page.count("<script") == 1, "its own"
    for held in re.findall(r'href="data:[^,"]*,([^"]*)"', page):
        assert not re.search("[<>\"'&\\s#]|[^\x20-\x7e]", held)


def test_what_is_not_whole_is_not_offered() -> None:
    document = released.typical()
    document["answers"][0].pop("rows")
    assert "results.csv" not in reporting.html(document)
    assert "data:application/json" in reporting.html(document)
    document["certificate"].pop("profile")
    assert "data:" not in reporting.html(document)


def test_the_size_is_that_of_what_is_inside(answers: tr.release.Answers) -> None:
    """The file beside the page is longer, for it has lines and spaces: what is smaller is called so."""
    held = embedded_files(answers.result())
    inside = files(reporting.html(answers.result()))
    assert [one.size for one in held] == [size_words(len(inside[one.name].encode())) for one in held]
    assert [one.description for one in held] == ["all results, with all digits", "the certificate, on one line"]
    assert "\n" not in inside["certificate.json"]
