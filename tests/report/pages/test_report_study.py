"""The page of a study: complete, escaped, self-contained, and patient with what is missing."""

from __future__ import annotations

import re
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from test_report_html import JSON, _poisoned, checked, words

from tests.report import study_sample as sample
from tightrope import report
from tightrope.errors import InputError
from tightrope.report.words.study import lines

DOCUMENTS = {"states": sample.states, "mean": sample.mean}


@pytest.mark.parametrize("name", DOCUMENTS)
def test_well_formed_self_contained_and_always_the_same(name: str) -> None:
    page = report.study_html(DOCUMENTS[name]())
    assert page.startswith("<!doctype html>")
    assert {"header", "main", "footer", "table", "caption", "svg"} <= set(checked(page).seen)
    assert not {"script", "link", "img", "iframe"} & set(checked(page).seen)
    assert not re.search(r"https?:|url\(|@import|NaN|nan%|inf%|None", page)
    assert len(page.encode()) < 120_000
    assert report.study_html(DOCUMENTS[name]()) == page


def test_the_promise_and_the_effort_in_plain_words() -> None:
    said = words(report.study_html(sample.states()))
    assert "is right at most 61.9 % of the time" in said  # 0.6188, rounded up
    assert "No report is more than 2.72 times as likely" in said
    assert "29,501 reports, 9,501 of them silent" in said
    assert "off by 1.1 percentage points or less" in said
    assert "with fewer than 144 people" in said
    assert "The best known: subset_selection 25,000" in said
    assert "10 9.98 1 × 10⁻⁶ 86 %" in said
    assert "4676566815193813727/9223372036854775808" in said
    assert "6 bits a report" in said


def test_shares_with_their_intervals() -> None:
    said = words(report.study_html(sample.states()))
    first = lines(sample.states())[0]
    assert f"Alabama {first.value} {first.lower} {first.upper} {first.people} {first.shaped[0]}" in said
    assert "All intervals together hold the true share" in said
    assert "They are biased, rare categories upwards" in said
    assert "50 categories, each with its 95 % interval" in said


def test_a_mean_is_one_large_number() -> None:
    said = words(report.study_html(sample.mean()))
    assert "23.63 ± 0.62 95 % interval: 23.01 to 24.26" in said
    assert "the mean is off by 0.32 or less" in said
    assert "1 bit a report" in said
    assert "The best known" not in said
    assert "percentage points" not in said


def test_ends_are_rounded_outwards() -> None:
    source = {"category": "a", "value": 0.12345, "lower": 0.101_51, "upper": 0.145_41, "people": 12.5}
    [line] = lines({"question": "distribution", "estimates": [source]})
    assert (line.value, line.lower, line.upper, line.half_width) == ("12.3 %", "10.1 %", "14.6 %", "2.2 %")


def test_untrusted_text_is_escaped_everywhere() -> None:
    evil = "<script>alert(1)</script>\"'>"
    page = report.study_html({**_poisoned(sample.states(), evil), "question": "distribution"})
    assert "<script" not in page and page.count("&lt;script&gt;") > 50
    checked(page)


@pytest.mark.parametrize("name", DOCUMENTS)
@pytest.mark.parametrize("key", list(sample.states()))
@pytest.mark.parametrize("worth", ["missing", None, [], {}, "?", float("nan"), [None], [{}], [[1]]])
def test_any_field_may_fail(name: str, key: str, worth: Any) -> None:
    document = DOCUMENTS[name]()
    document.pop(key) if worth == "missing" else document.update({key: worth})
    page = report.study_html(document)
    checked(page)
    assert not re.search(r"\bnan\b|\binf\b", words(page))


@pytest.mark.parametrize("part", ["effort", "privacy", "mechanism"])
@pytest.mark.parametrize("worth", ["missing", None, [], {}, "?", float("nan"), 1e308, -1])
def test_any_field_of_a_part_may_fail(part: str, worth: Any) -> None:
    for key in sample.states()[part]:
        document = sample.states()
        document[part].pop(key) if worth == "missing" else document[part].update({key: worth})
        checked(report.study_html(document))


@settings(max_examples=30, deadline=None)
@given(st.lists(st.fixed_dictionaries({"category": JSON, "value": JSON, "lower": st.floats(), "consistent": JSON})))
def test_any_estimates_give_a_page_without_nan(rows: list[dict[str, Any]]) -> None:
    for question in ("distribution", "mean"):
        page = report.study_html({"question": question, "estimates": rows})
        assert not re.search(r'"(-?nan|-?inf)', page)
        checked(page)


def test_the_longest_tables_are_cut_and_say_so() -> None:
    rows = [sample.estimate(place, f"c{place}") for place in range(2100)]
    assert "100 more are left out here" in words(report.study_html({**sample.states(), "estimates": rows}))


def test_only_a_mapping_is_a_document() -> None:
    with pytest.raises(InputError, match="local estimate --json"):
        report.study_html([])  # type: ignore[arg-type]
