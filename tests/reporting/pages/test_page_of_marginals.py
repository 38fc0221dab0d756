"""The page of a release of ``marginals``: heat maps, the margin of error of each table, and many tables collapsed."""

from __future__ import annotations

import re
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

import tightrope as tr
from tightrope.documents.release import ReleaseResult, read_result
from tightrope.reporting.charts.page_charts import HEAT_SHADES, heat_map
from tightrope.reporting.pages.release_page import html, page_view
from tightrope.reporting.wording.answers import Answer, shown_answers

SIZES = {"sex": 2, "band": 3, "region": 14, "month": 12}


def released(columns: list[str]) -> ReleaseResult:
    draw = np.random.default_rng(5)
    rows = pd.DataFrame({name: np.minimum(draw.geometric(0.4, 4000) - 1, SIZES[name] - 1) for name in columns})
    session = tr.Session(rows, privacy_unit=None, budget=tr.Budget(epsilon=5, delta=1e-8))
    bounds = {name: (0, SIZES[name] - 1) for name in columns}
    answers = session.plan([tr.marginals(columns, bounds=bounds)]).release()
    return read_result(answers.to_json())


@pytest.fixture(scope="module")
def document() -> ReleaseResult:
    return released(list(SIZES))


def answer_of(document: ReleaseResult, name: str) -> Answer:
    return next(answer for answer in shown_answers(document) if answer.name == name)


def test_a_heat_map_has_every_cell_and_the_largest_is_darkest(document: ReleaseResult):
    answer = answer_of(document, "marginals_by_sex_region")
    chart = heat_map(answer)
    assert chart is not None
    assert (chart.row_name, chart.column_name, chart.column_labels) == ("region", "sex", ("0", "1"))
    assert [label for label, _ in chart.lines] == [str(region) for region in range(14)]
    values = {row.key_labels: row.value for row in answer.rows}
    largest = max(values.values())
    for region, cells in chart.lines:
        for sex, cell in zip(chart.column_labels, cells, strict=True):
            value = values[sex, region]
            assert abs(cell.shade / HEAT_SHADES - max(value, 0) / largest) <= 0.5 / HEAT_SHADES + 1e-9
            assert float(cell.value.replace(",", "").replace("\N{MINUS SIGN}", "-")) == pytest.approx(value, abs=1)
            assert cell.title.startswith(f"{sex}, {region}: {cell.value} ±")
    assert max(cell.shade for _, cells in chart.lines for cell in cells) == HEAT_SHADES


@pytest.mark.parametrize("name", ["marginals", "marginals_by_sex"])
def test_other_tables_have_no_heat_map(document: ReleaseResult, name: str):
    assert heat_map(answer_of(document, name)) is None


def test_an_incomplete_table_and_another_question_have_no_heat_map(document: ReleaseResult):
    answer = answer_of(document, "marginals_by_sex_band")
    assert heat_map(answer) is not None
    assert heat_map(replace(answer, rows=answer.rows[1:])) is None
    assert heat_map(replace(answer, kind="count")) is None
    assert heat_map(replace(answer, rows=(replace(answer.rows[0], value=None), *answer.rows[1:]))) is None


def test_noise_alone_is_drawn_without_shades(document: ReleaseResult):
    answer = answer_of(document, "marginals_by_sex_band")
    chart = heat_map(replace(answer, rows=tuple(replace(row, value=-1.0) for row in answer.rows)))
    assert chart is not None
    assert {cell.shade for _, cells in chart.lines for cell in cells} == {0}


def test_margins_of_all_tables_are_next_to_each_other(document: ReleaseResult):
    page = page_view(document)
    margins = {answer.name: answer.margin for answer in page.answers}
    widths = {answer.name: answer.error.half_width_95 for answer in shown_answers(document)}
    for name, margin in margins.items():
        assert margin is not None
        assert margin.length == pytest.approx(100 * widths[name] / max(widths.values()))
    assert margins["marginals"].name == "total"
    assert margins["marginals_by_sex_band"].cells == 6
    assert html(document).count('class="strip"') >= len(margins)


def test_many_tables_are_collapsed_and_few_are_not(document: ReleaseResult):
    text = html(document)
    assert [answer.is_collapsed for answer in page_view(document).answers] == [False] + [True] * 10
    assert len(re.findall('<section class="answer brief"', text)) == 10
    contents = text[text.index('class="contents"') : text.index('<div id="answers">')]
    assert contents.count("<li>") < 10
    assert 'href="#margins"' in contents
    for answer in page_view(document).answers:  # the list of margins links to every table
        assert f'<a href="#{answer.anchor}">' in text
        assert f'<h2 id="{answer.anchor}">' in text
    assert text.count("<details>") == text.count("</details>")
    few = released(["sex", "band", "region"])
    assert not any(answer.is_collapsed for answer in page_view(few).answers)
    assert "brief" not in re.findall('<section class="([^"]*)"', html(few))


def test_cells_of_wide_tables_show_colors_alone(document: ReleaseResult):
    wide = heat_map(answer_of(document, "marginals_by_region_month"))
    assert wide is not None
    assert wide.prints_values  # twelve columns
    rows = {"a": 13, "b": 14}
    frame = pd.DataFrame({name: np.arange(1000) % size for name, size in rows.items()})
    session = tr.Session(frame, privacy_unit=None, budget=tr.Budget(epsilon=5, delta=1e-8))
    asked = tr.marginals(["a", "b"], bounds={name: (0, size - 1) for name, size in rows.items()})
    text = html(read_result(session.plan([asked]).release().to_json()))
    assert 'class="heat small-cells"' in text
