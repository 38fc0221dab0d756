"""The page of a real release: what the writer writes is what the page shows, with nothing left blank that is known."""

from __future__ import annotations

import re
from html.parser import HTMLParser

import pandas as pd
import pytest

import tightrope as tr
from tightrope import reporting
from tightrope.reporting.wording import sentences


class Cells(HTMLParser):
    """The text of every cell of every table, by its caption."""

    def __init__(self) -> None:
        super().__init__()
        self.tables: dict[str, list[list[str]]] = {}
        self.caption, self.inside = "", ""

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.inside = tag if tag in ("caption", "th", "td") else self.inside
        if tag == "caption":
            self.caption = ""
        elif tag == "tr":
            self.tables.setdefault(self.caption, []).append([])
        elif tag in ("th", "td"):
            self.tables[self.caption][-1].append("")

    def handle_endtag(self, tag: str) -> None:
        self.inside = "" if tag in ("caption", "th", "td") else self.inside

    def handle_data(self, data: str) -> None:
        if self.inside == "caption":
            self.caption += data
        elif self.inside:
            self.tables[self.caption][-1][-1] += data


@pytest.fixture(scope="module")
def page() -> str:
    rows = [(i // 2, f"city {i % 3}", i % 2 == 0, 20 + i % 50) for i in range(3_000)]
    table = pd.DataFrame(rows, columns=["who", "city", "member", "age"])
    budget = tr.Budget(epsilon=1, attack_success="0.7", delta="1e-6")
    session = tr.Session(table, privacy_unit="who", max_rows=3, budget=budget)
    asked = [
        tr.count(by="city"),
        tr.mean("age", bounds=(0, 100), by="city"),
        tr.sum("age", bounds=(0, 100), by="member", keys=[False, True], name="years"),
        tr.count(name="people"),
    ]
    return reporting.html(session.plan(asked).release().result("Cities"))


def test_nothing_that_is_known_is_left_blank(page: str) -> None:
    found = Cells()
    found.feed(page)
    assert {"The noise that was added to each statistic", "The certificate describes each of them exactly"} <= set(
        found.tables
    )
    blank = {
        caption: cells
        for caption, rows in found.tables.items()
        for cells in rows
        if "–" in cells and cells[1:3] != ["–", "–"]
    }
    assert not blank


def test_every_mechanism_says_whom_it_serves(page: str) -> None:
    found = Cells()
    found.feed(page)
    _, *ran = found.tables["The certificate describes each of them exactly"]
    served = [(row[0], row[1], row[-2]) for row in ran]
    assert served == [
        ("count_by_city, mean_age_by_city", "number of rows by city", "1"),
        ("mean_age_by_city", "centered sum of age by city", served[1][-1]),
        ("mean_age_by_city", "number of non-missing values of age by city", "1"),
        ("years", "sum of age by member", served[3][-1]),
        ("people", "number of rows", "1"),
    ]
    assert float(served[1][-1]) == pytest.approx(50, rel=1e-3) and float(served[3][-1]) == pytest.approx(100, rel=1e-3)


def test_the_budget_is_shown(page: str) -> None:
    said = " ".join(re.sub(r"<[^>]+>", " ", page).split())
    assert "Requested guarantee δ ≤ 0.000001 at ε = 1 and δ ≤ 0.4 at ε = 0" in said
    assert "Probability of unbounded loss, at most 0.000001" in said


def test_errors_by_size_are_listed_where_they_depend_on_it(page: str) -> None:
    """As in the plan: where keys are found (a group may be withheld) and for means; not for a total."""
    sections = re.findall(r'<section class="answer".*?</section>', page, re.DOTALL)
    assert ["by the size of the group" in section for section in sections] == [True, True, False, False]


def test_how_often_a_group_is_withheld_is_said_as_in_the_plan() -> None:
    assert [sentences.suppression_text(share) for share in (0, 1e-12, 0.00026, 0.4, 0.999999)] == [
        "0",
        "below 0.0001 %",
        "0.026 %",
        "40 %",
        "above 99.99 %",
    ]


def test_a_page_without_a_group_says_so_in_the_words_of_the_terminal(page: str) -> None:
    table = pd.DataFrame({"city": [f"city {i}" for i in range(50)]})
    plan = tr.Session(table, privacy_unit=None, budget=tr.Budget(epsilon=1, delta=1e-6)).plan([tr.count(by="city")])
    assert sentences.NOTHING_SHOWN in reporting.html(plan.release().result())
    assert sentences.NOTHING_SHOWN not in page
