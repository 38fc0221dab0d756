"""Shares and bands as bars, the margins of a table and its text, raw numbers, and the size of a page."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pandas as pd
import pytest
from msgspec import structs

import tightrope as tr
from tests.reporting import released
from tightrope.documents.document import to_json_text
from tightrope.release.answers import Answers
from tightrope.reporting import html
from tightrope.reporting.charts.page_charts import list_chart
from tightrope.reporting.pages.release_page import answer_view
from tightrope.reporting.wording.answers import printed_answer_row, shown_answer, shown_answers
from tightrope.reporting.wording.partial_release import PartialAnswer, PartialErrors
from tightrope.reporting.wording.sentences import missing_groups_text, question_sentence, typical_error

MOST_BYTES = 1_000_000
GROUPS = range(4_000)


@pytest.fixture(scope="module")
def answers() -> Answers:
    draw, rows = np.random.default_rng(3), 40_000
    table = pd.DataFrame({
        "age": draw.integers(15, 50, rows), "late": draw.random(rows) < 0.25, "area": draw.integers(0, 4_000, rows),
        "x": draw.normal(50, 10, rows), "city": draw.choice(["a", "b"], rows),
    })  # fmt: skip
    session = tr.Session(table, privacy_unit=None, budget=tr.Budget(epsilon=4, delta="1e-8"))
    return session.plan([
        tr.count(by={"band": "cut(age, [20, 30, 40])", "city": "city"}, keys=[[None, "a"], [20, "a"], [40, "b"]]),
        tr.proportion("late", by="city", keys=["a", "b"], name="late"),
        tr.histogram("age", edges=[15, 30, 45], name="ages"),
        tr.top_k(3, by="city", keys=["a", "b"], name="largest"),
        tr.count(by="area", keys=GROUPS, name="areas"),
        tr.mean("x", bounds=(0, 100), by="area", keys=GROUPS, name="means"),
    ]).release()  # fmt: skip


def shown(answers: Answers, name: str) -> Any:
    return next(one for one in shown_answers(answers.result()) if one.name == name)


def test_bands_of_a_cut_are_labeled_by_both_ends(answers: Answers) -> None:
    (banded, *_) = shown_answers(answers.result())
    labels = {row.key_labels for row in banded.rows}
    assert labels == {("20 to 30", "a"), ("40 and above", "b"), ("missing or below 20", "a")}
    assert {row["band"] for row in answers[0].rows} == {None, 20, 40}, "the released keys stay numbers"
    assert "<td>20 to 30</td>" in answers[0]._repr_html_()


def test_shares_are_percentages_with_bars(answers: Answers) -> None:
    late = shown(answers, "late")
    for row, record in zip(late.rows, answers["late"].rows, strict=True):
        texts = printed_answer_row(late, row)
        assert re.fullmatch(r"[0-9.]+ %", texts.value)
        assert float(texts.value[:-2]) == pytest.approx(100 * record["value"], abs=0.5)
        assert float(texts.lower[:-2]) <= 100 * record["lower"] + 1e-9
        assert float(texts.upper[:-2]) >= 100 * record["upper"] - 1e-9
    assert "in percent" in question_sentence(late)
    chart = list_chart(late, "n")
    assert chart is not None
    assert (chart.bars, chart.zero) == (True, 0.0)


def test_a_histogram_is_a_table_of_bars(answers: Answers) -> None:
    view = answer_view(shown(answers, "ages"), "ages")
    assert view.axis is None
    assert view.inline_chart is not None
    assert view.inline_chart.bars
    assert html(answers.result()).count('<rect class="fill share"') == 9  # 3 bands, 2 shares, and 4 bins


def test_the_margin_in_the_text_is_that_of_the_table() -> None:
    rows = tuple({"g": g, "value": 3000 + g, "lower": 1438 + g, "upper": 4562 + g} for g in range(3))
    error = {"expected_absolute_error": 521.0, "half_width_95": 1562.0, "worst_error": None}
    answer = shown_answer(PartialAnswer(by=("g",), rows=rows, error=PartialErrors(**error)))
    assert {printed_answer_row(answer, row).plus_minus for row in answer.rows} == {"1,562"}
    assert "95 % margin of error ± 1,562." in typical_error(answer)


def test_fewer_largest_groups_than_asked_for_are_explained(answers: Answers) -> None:
    assert missing_groups_text(shown(answers, "largest")) == "2 of 3 groups are shown: the plan lists no more."
    few = shown_answer(PartialAnswer(by=("g",), keys="discovered", k=5.0, rows=({"g": "a", "value": 9.0},)))
    said = "1 of 5 groups are shown: all others have too few rows and are suppressed."
    assert missing_groups_text(few) == said
    assert html(answers.result()).count("the plan lists no more.") == 1


def test_the_raw_number_stands_next_to_the_adjusted_one() -> None:
    row: dict[str, Any] = {"g": "a", "value": 10.5, "lower": 8.5, "upper": 12.5, "noisy": 12}
    page = html({"answers": [{"name": "n", "by": ["g"], "rows": [row, {**row, "g": "b"}]}]})
    assert ">before adjustment<" in page
    assert page.count('<td class="number quiet">12</td>') == 2


def test_every_section_is_in_the_contents() -> None:
    document = released.typical()
    document["bias"] = [{
        "answers": ["people"], "kind": "left out", "column": None, "share": 0.5, "lower": 0.45, "upper": 0.55,
        "statement": "about half of the rows were not used",
    }]  # fmt: skip
    page = html(document)
    contents = page[page.index('<ol class="contents">') : page.index("</ol></nav>")]
    headings = re.findall(r'<section[^>]* aria-labelledby="([^"]*)"', page)
    assert "left-out" in headings
    assert re.findall('href="#([^"]*)"', contents) == headings


def test_a_report_of_thousands_of_groups_can_be_mailed(answers: Answers) -> None:
    """It was 7.4 MB for four questions with thousands of groups: the lines of each group, and the certificate."""
    assert sum(len(answer.rows) for answer in answers) > 8_000
    page = html(answers.result())
    assert len(page.encode()) < MOST_BYTES
    assert "The first 400 of 4000 groups" in page
    certificate = answers.certificate_data
    large = structs.replace(certificate, mechanisms=certificate.mechanisms * 500)
    assert len(to_json_text(large)) > MOST_BYTES
    page = html(structs.replace(answers.result(), answers=answers.result().answers[:1], certificate=large))
    assert len(page.encode()) < MOST_BYTES
    assert "data:application/json" not in page
    assert "embedded in it" not in page
