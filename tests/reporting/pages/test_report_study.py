"""The page of a study: complete, escaped and self-contained; findings that lack something are refused."""

from __future__ import annotations

import re
from typing import Any

import pytest
from msgspec.structs import replace

from tests.reporting import study_sample as sample
from tests.reporting.pages.test_report_html import checked, words
from tightrope import reporting
from tightrope.documents.document import plain_data, to_json_text
from tightrope.documents.study import FINDINGS, Chance, Estimate, FindingsDocument, read_findings
from tightrope.errors import InputError
from tightrope.local.studies.study import Findings, Study
from tightrope.reporting.wording.study import estimate_lines

DOCUMENTS = {"states": sample.states, "mean": sample.mean}


@pytest.mark.parametrize("name", DOCUMENTS)
def test_well_formed_self_contained_and_always_the_same(name: str) -> None:
    page = reporting.study_html(DOCUMENTS[name]())
    assert page.startswith("<!doctype html>")
    assert {"header", "main", "footer", "table", "caption", "svg"} <= set(checked(page).seen)
    assert not {"link", "img", "iframe"} & set(checked(page).seen)
    assert not re.search(r"https?:|url\(|@import|NaN|nan%|inf%|None", page)
    assert len(page.encode()) < 120_000
    assert reporting.study_html(DOCUMENTS[name]()) == page


def test_the_promise_and_the_effort_in_plain_words() -> None:
    said = words(reporting.study_html(sample.states()))
    assert "is right at most 61.9 % of the time" in said  # 0.6188, rounded up
    assert "Every report is at most 2.72 times as likely" in said
    assert "29,501 reports, 9,501 of them empty" in said
    assert "the root mean square error of all proportions is at most 1.1 percentage points" in said
    assert "needs at least 144 people" in said
    assert "The best known: subset_selection 25,000" in said
    assert "10 9.98 1 × 10⁻⁶ 86 %" in said
    assert "4676566815193813727/9223372036854775808" in said
    assert "6 bits per report" in said


def test_shares_with_their_intervals() -> None:
    said = words(reporting.study_html(sample.states()))
    first = estimate_lines(sample.states())[0]
    assert f"Alabama {first.value} {first.lower} {first.upper} {first.people} {first.consistent_share[0]}" in said
    assert "Simultaneous 95 % confidence intervals for the true proportions" in said
    assert "They are biased (upward for rare categories)" in said
    assert "50 categories, each with its 95 % interval" in said


def test_a_mean_is_one_large_number() -> None:
    said = words(reporting.study_html(sample.mean()))
    assert "23.63 ± 0.62 95 % interval: 23.01 to 24.26" in said
    assert "the root mean square error of the mean is at most 0.32" in said
    assert "1 bit per report" in said
    assert "The best known" not in said
    assert "percentage points" not in said


def test_ends_are_rounded_outwards() -> None:
    found = Estimate(category="a", value=0.12345, lower=0.101_51, upper=0.145_41, people=12.5, consistent=None)
    line = estimate_lines(replace(sample.states(), estimates=(found, found)))[0]
    assert (line.value, line.lower, line.upper, line.half_width) == ("12.3 %", "10.1 %", "14.6 %", "2.2 %")


def test_untrusted_text_is_escaped_everywhere() -> None:
    evil, document = "<script>alert(1)</script>\"'>", sample.states()
    page = reporting.study_html(
        replace(
            document,
            title=evil,
            estimates=tuple(replace(one, category=f"{evil}{place}") for place, one in enumerate(document.estimates)),
            effort=replace(document.effort, best=evil),
            mechanism=replace(
                document.mechanism, name=evil, probabilities=(Chance(meaning=evil, exact="1/2", value=0.5),)
            ),
        )
    )
    assert page.count("<script") == 1 and page.count("&lt;script&gt;") > 50
    checked(page)


@pytest.mark.parametrize(("question", "answers"), [("distribution", ("a", "b")), ("mean", ())])
def test_the_page_of_a_real_study_lacks_nothing(question: Any, answers: tuple[str, ...]) -> None:
    study = Study(question, 1.0, categories=answers, bounds=None if answers else (0.0, 50.0), title="Real")
    found = Findings.from_counts(study, study.mechanism.tally_reports(study.mechanism.perturb([1] * 900))).to_document()
    page = reporting.study_html(found)
    checked(page)
    assert "–" not in words(page).removeprefix("Real – local differential privacy")
    assert reporting.study_html(read_findings(to_json_text(found))) == page


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"reports": "many"}, "findings reports to be an integer"),
        ({"answered": 29_502}, "findings answered to be at most 29501"),
        ({"estimates": []}, "findings estimates to be one of a mean, several"),
        ({"question": "mean"}, "findings estimates to be one of a mean"),
        ({"question": "men"}, "did you mean 'mean'"),
        ({"titel": "x"}, "did you mean 'title'"),
        ({"effort": {}}, "findings effort people: missing"),
        ({"confidence": 1.5}, "findings confidence"),
    ],
)
def test_what_is_no_finding_is_refused_with_its_place(changes: dict[str, Any], said: str) -> None:
    with pytest.raises(InputError, match=said):
        FINDINGS.convert_data({**plain_data(sample.states()), **changes}, FindingsDocument)


@pytest.mark.parametrize("key", ["category", "people"])
def test_a_share_has_a_category_and_people(key: str) -> None:
    document = sample.states()
    rows = (*document.estimates[:1], replace(document.estimates[1], **{key: None}))
    with pytest.raises(InputError, match="estimates 2"):
        replace(document, estimates=rows)


def test_the_longest_tables_are_cut_and_say_so() -> None:
    rows = tuple(Estimate(**sample.estimate(place, f"c{place}")) for place in range(2100))
    assert "100 more categories are not listed here" in words(
        reporting.study_html(replace(sample.states(), estimates=rows))
    )


def test_only_findings_are_a_document() -> None:
    with pytest.raises(InputError, match="read_findings"):
        reporting.study_html({})  # type: ignore[arg-type]
