"""Statements on intervals name what an answer has: clamped values, limited rows, missing values, suppressed groups."""

from __future__ import annotations

from typing import Any

import pandas as pd
import pytest

import tightrope as tr
from tests.reporting import released
from tightrope.reporting import html
from tightrope.reporting.charts.page_charts import privacy_profile_chart
from tightrope.reporting.wording.partial_release import PartialCertificate, PartialProfile
from tightrope.reporting.wording.promise import profile_points

BUDGET = tr.Budget(epsilon=8, delta="1e-8")
NOISE_ONLY = "It covers the noise only, not the sampling error of a study"
TOTAL = "Values above 50 count as 50, so the true total can be higher; those below 0 count as 0, so it can be lower."


def visits(**unit: Any) -> tr.Session:
    table = pd.DataFrame({
        "who": [f"p{i // 4}" for i in range(4_000)],
        "bill": [float(i % 80) for i in range(4_000)],
        "old": [i % 2 == 0 for i in range(4_000)],
        "city": [("a", "b")[i % 2] for i in range(4_000)],
    })  # fmt: skip
    return tr.Session(table, **{"privacy_unit": None, **unit}, budget=BUDGET)


def answers_of(session: tr.Session, *questions: Any, **named: Any) -> dict[str, Any]:
    data = session.plan(list(questions), **named).to_data()
    return {answer["name"]: answer for answer in data["answers"]}


def test_titles_say_clamped_and_texts_in_ledgers_stay_the_same() -> None:
    asked = tr.sum("bill", bounds=(0, 50))
    assert str(asked) == "sum of bill between 0 and 50"
    assert asked.default_title == "sum of bill (clamped to [0, 50])"
    pair = tr.correlation("bill", "who", bounds=(0, 50), other_bounds=(-1, 1.5))
    assert str(pair) == "correlation of bill between 0 and 50 and who between -1 and 1.5"
    assert pair.default_title == "correlation of bill (clamped to [0, 50]) and who (clamped to [-1, 1.5])"
    dated = tr.median("day", bounds=("2024-01-01", "2024-12-31"))
    assert str(dated) == "median of day between 2024-01-01 and 2024-12-31"
    assert dated.default_title == "median of day (clamped to [2024-01-01, 2024-12-31])"


def test_clamping_is_explained_with_its_direction_and_whether_it_is_estimated() -> None:
    asked = tr.sum("bill", bounds=(0, 50), name="bills")
    (said,) = (answers_of(visits(), asked)["bills"]["clamping"],)
    assert said == f"{TOTAL} By how much is unknown: no bias check covers this answer. ± covers the noise only."
    checked = answers_of(visits(), asked, bias_check="0.02")["bills"]["clamping"]
    assert checked == f"{TOTAL} The bias check estimates how many values that concerns. ± covers the noise only."
    assert TOTAL in html(visits().plan([asked]).release().result())


def test_values_that_cannot_be_outside_of_their_range_are_not_said_to_be_clamped() -> None:
    found = answers_of(
        visits(),
        tr.mean("clip(bill, 10, 20)", name="clipped"),
        tr.mean("old", bounds=(0, 1), name="part"),
        tr.count(name="rows"),
    )
    assert [found[name]["clamping"] for name in ("clipped", "part", "rows")] == ["", "", ""]
    assert "clamping" not in found["clipped"]["error"]["statement"]


@pytest.mark.parametrize(
    ("question", "unit", "bias"),
    [
        (tr.count(name="n"), {}, "."),
        (tr.mean("bill", bounds=(0, 50), name="n"), {}, ", nor the bias from clamping and missing values."),
        (tr.count(by="city", name="n"), {}, ", nor the bias from suppressed groups."),
        (tr.count(name="n"), {"privacy_unit": "who", "max_rows": 2}, ", nor the bias from limiting rows."),
    ],
)
def test_a_statement_names_the_sources_of_bias_of_its_answer(question: Any, unit: Any, bias: str) -> None:
    statement = answers_of(visits(**unit), question)["n"]["error"]["statement"]
    assert statement.endswith(NOISE_ONLY + bias)


def test_a_text_is_not_said_to_be_a_float() -> None:
    notes = answers_of(visits(privacy_unit="who", max_rows=4), tr.count(name="n"))["n"]["notes"]
    assert "Rows whose who is missing are left out." in notes


def test_a_comparison_states_its_own_method_and_bias() -> None:
    keys = ["a", "b"]
    plan = visits().plan([
        tr.sum("bill", bounds=(0, 50), by="city", keys=keys, name="bills"),
        tr.mean("bill", bounds=(0, 50), by="city", keys=keys, name="bill"),
    ])  # fmt: skip
    answers = plan.release()
    totals, means = (answers.difference(name, between={"city": ("a", "b")}).document for name in ("bills", "bill"))
    for document in (totals, means):
        assert document.error.statement.endswith(f"{NOISE_ONLY}, nor the bias from clamping and missing values.")
        assert not any("consistent" in note for note in document.notes)
    assert "intersected with the one that follows from wider intervals" in means.notes[0]


def test_sentences_about_several_rows_of_a_person_are_left_out_without_them() -> None:
    (page, rows) = (
        html(visits(**unit).plan([tr.count(by="city", keys=["a", "b"])]).release().result())
        for unit in ({}, {"privacy_unit": ("who", "a guest"), "max_rows": 4})
    )
    for said in (
        "rows are divided among",
        "with all rows of this",
        "over all ways to divide",
        "over groups in several",
    ):
        assert said not in page and said in rows
    assert "except for discovered groups" not in page
    assert "except for discovered groups" in html(released.typical())


def test_the_profile_reaches_to_the_promised_point() -> None:
    stated = PartialProfile(epsilon=(0.0, 0.5, 0.9, 1.1), delta=(0.3, 0.1, 0.004, 0.0))
    certificate = PartialCertificate(epsilon=1.0, delta=1e-8, profile=stated)
    assert profile_points(certificate)[-1] == (1.0, 1e-8)
    chart = privacy_profile_chart(certificate)
    assert chart is not None and chart.marks == [(100.0, 100.0)] and chart.line.endswith("100.00,100.00")
    assert not chart.is_mark_below
    pure = privacy_profile_chart(PartialCertificate(epsilon=1.0, delta=0.0, profile=stated))
    assert pure is not None and pure.marks == [(100.0, 100.0)] and pure.is_mark_below


def test_a_promise_above_the_curve_is_marked_beside_it() -> None:
    stated = PartialProfile(epsilon=(0.0, 0.5, 0.9), delta=(0.3, 1e-6, 1e-9))
    certificate = PartialCertificate(epsilon=0.6, delta=1e-3, profile=stated)
    assert (0.6, 1e-3) not in profile_points(certificate)
    chart = privacy_profile_chart(certificate)
    assert chart is not None and len(chart.marks) == 1
