"""What a publisher says stands on the page, as text; and sections are found by the names of their questions."""

from __future__ import annotations

import re
from pathlib import Path

import pandas as pd
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

import tightrope as tr
from tightrope.documents.document import to_json_text
from tightrope.documents.release import PublisherPart, read_result
from tightrope.errors import PlanError
from tightrope.release.plan_file import load_plan_file
from tightrope.reporting import html
from tightrope.reporting.pages.release_page import anchor_from_name, answer_anchors

PLAN = """
title = "Visits"
description = "How many came."
origin = "<b>The register</b>"
publisher = "The clinic"
date = "2026-11-23"
contact = "clinic@example.org"
[source]
path = "visits.csv"
[privacy_unit]
each_row = true
[budget]
epsilon = 1
delta = 1e-8
[[question]]
kind = "count"
by = "day"
keys = ["Mon"]
title = "Visitors"
description = "All who came in."
unit = "visits"
means = "The number of visits"
"""


def test_a_plan_says_it_and_the_page_shows_it(tmp_path: Path):
    (tmp_path / "visits.csv").write_text("day\nMon\nMon\n")
    (tmp_path / "plan.toml").write_text(PLAN)
    file = load_plan_file(tmp_path / "plan.toml")
    assert file.reader_information == PublisherPart(
        description="How many came.",
        origin="<b>The register</b>",
        publisher="The clinic",
        date="2026-11-23",
        contact="clinic@example.org",
    )
    result = file.make_plan().release().result(file.document.title, file.reader_information)
    assert read_result(to_json_text(result)) == result
    (answer,) = result.answers
    assert (answer.title, answer.unit, answer.meaning) == ("Visitors", "visits", "The number of visits")
    page = html(result)
    shown = ("How many came.", "Published by: The clinic", "Date: 2026-11-23",
             "Contact: clinic@example.org", "All who came in.",
             "Visitors", "The number of visits, in visits, for each", 'id="answer-count-by-day"')  # fmt: skip
    for words in shown:
        assert words in page, words
    assert "<b>The register" not in page
    assert "&lt;b&gt;The register" in page


def test_plain_names_are_their_places_in_every_script():
    assert list(map(anchor_from_name, ("count_by_city", "mean_x2", "région", "北", "हिन्दी"))) == [
        "count-by-city", "mean-x2", "région", "北", "हिन्दी",
    ]  # fmt: skip


@given(st.lists(st.text(st.characters() | st.sampled_from("aAß_- !北")), unique=True, max_size=8))
@example(["a_b", "a-b", "a b", "a__b", "A_b", "_a_b", "a.b"])
@example(["北", "南", "", "!", "answer", "\ud800", "région", "re\u0301gion", "Straße", "strasse"])
def test_places_follow_from_the_name_alone_and_differ(names: list[str]):
    found = answer_anchors(names)
    assert len(set(found)) == len(names)
    assert found == list(map(anchor_from_name, names)) == answer_anchors(names[::-1])[::-1]
    assert not any(re.search(r"[\s\"#%&<>]", place) for place in found)


def test_a_name_that_was_changed_has_a_digest_behind_it():
    assert re.fullmatch("mean-of-x--[0-9a-f]{8}", anchor_from_name("Mean of x!"))
    assert re.fullmatch("answer--[0-9a-f]{8}", anchor_from_name("!"))


def test_a_document_that_repeats_a_name_has_different_places():
    assert answer_anchors(["n", "m", "n", "n"]) == ["n", "m", "n--2", "n--3"]


@pytest.mark.parametrize("name", ["title", "description", "unit", "means"])
def test_words_are_text(name: str):
    for wrong in (3, " ", "x" * 3_000):
        with pytest.raises(PlanError, match=name):
            tr.count(**{name: wrong})  # type: ignore[arg-type]


def test_words_do_not_make_two_questions_of_one():
    frame = pd.DataFrame({"x": [1.0, 2.0]})
    opened = tr.Session(frame, privacy_unit=None, budget=tr.Budget(epsilon=1, delta="1e-8"))
    plan = opened.plan([tr.count(title="One"), tr.count(title="Other", name="again")])
    assert len(plan.noises()[0]) == 2
    assert tr.count(title="One") == tr.count()
