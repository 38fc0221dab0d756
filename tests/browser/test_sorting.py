"""Tables sorted by their heads in headless Chromium; without the script they stand as ever, and no other one runs."""

from __future__ import annotations

import re
from typing import Any

import pytest

from tests.browser.conftest import Opened
from tests.reporting import released
from tightrope import reporting

pytestmark = pytest.mark.browser
TABLE = "table.sorts"
VALUES = (
    ("Bergen", 9, 2),
    ("Åre", 10_500, 30),
    ("Oslo", None, 4),
    ("Alta", -3, 2),
    ("Bodø 10", 9, 5),
    ("Bodø 9", 1, 1),
)
PUBLISHED = sorted(city for city, _, _ in VALUES)
EVIL = "<script>document.title = 'owned'</script>"


def page() -> str:
    """Values of several lengths, one below zero, one withheld, two that are equal."""
    rows = [released.row(value or 0, half, city=city) | {"value": value} for city, value, half in VALUES]
    rows[4]["upper"] += 4
    return reporting.html({"title": "Cities", "answers": [released.rows_by("city", rows)], "certificate": {}})


def column(tab: Any, at: int = 0) -> list[str]:
    return [str(row.locator("th, td").nth(at).inner_text()) for row in tab.locator(f"{TABLE} tbody tr").all()]


def test_numbers_sort_as_numbers_and_what_is_missing_comes_last(opened: Opened) -> None:
    tab = opened(page())
    published = column(tab)
    assert published == PUBLISHED
    value, city = (tab.locator(f"{TABLE} thead").get_by_role("button", name=name) for name in ("Value", "city"))
    head = value.locator("..")

    value.click()
    assert column(tab) == ["Alta", "Bodø 9", "Bergen", "Bodø 10", "Åre", "Oslo"]
    assert head.get_attribute("aria-sort") == "ascending"
    value.press("Enter")
    assert column(tab) == ["Åre", "Bergen", "Bodø 10", "Bodø 9", "Alta", "Oslo"], "equal ones stay in their order"
    assert head.get_attribute("aria-sort") == "descending"
    value.click()
    assert column(tab) == published
    assert head.get_attribute("aria-sort") is None

    tab.get_by_role("button", name="±").click()
    assert column(tab) == ["Bodø 9", "Alta", "Bergen", "Bodø 10", "Åre", "Oslo"], "of +9 −5 the longer side"

    city.click()
    assert column(tab) == ["Alta", "Åre", "Bergen", "Bodø 9", "Bodø 10", "Oslo"]
    assert tab.locator("[aria-sort]").count() == 1


def test_what_was_hidden_as_repeated_is_shown_once_lines_have_moved(opened: Opened) -> None:
    tab = opened(reporting.html(released.everything() | {"answers": [released.answer("sectors")]}))
    hidden = "() => [...document.querySelectorAll('.again')].filter(e => getComputedStyle(e).opacity === '0').length"
    assert tab.evaluate(hidden) == 12
    tab.get_by_role("button", name="Value").click()
    assert tab.evaluate(hidden) == 0


def test_without_a_script_the_table_reads_as_before(opened: Opened) -> None:
    tab = opened(page(), java_script_enabled=False)
    assert column(tab) == PUBLISHED
    assert tab.locator("button").count() == 0


def test_paper_shows_heads_as_words(opened: Opened) -> None:
    tab = opened(page())
    tab.get_by_role("button", name="Value").click()
    tab.emulate_media(media="print")
    arrow = "() => getComputedStyle(document.querySelector('[aria-sort] button'), '::after').content"
    colors = "() => ['[aria-sort]', '[aria-sort] button'].map(e => getComputedStyle(document.querySelector(e)).color)"
    assert tab.evaluate(arrow) == "none"
    assert len(set(tab.evaluate(colors))) == 1


@pytest.mark.parametrize(
    "smuggled", [EVIL, EVIL.replace("<script>", "<script nonce='x'>"), "<style>*{color:red}</style>"]
)
def test_nothing_else_runs(opened: Opened, smuggled: str) -> None:
    refused: list[str] = []
    tab = opened(
        page().replace("</main>", f"{smuggled}<img src=x onerror=\"document.title = 'owned'\"></main>"), said=refused
    )
    assert tab.title() == "Cities – differentially private statistics"
    assert tab.evaluate("() => getComputedStyle(document.querySelector('h1')).color") == "rgb(27, 36, 48)"
    assert sum("Content Security Policy" in line for line in refused) >= 2
    assert tab.locator(f"{TABLE} button").count() == 5, "its own script runs beside them"


def test_a_script_that_was_changed_does_not_run(opened: Opened) -> None:
    refused: list[str] = []
    tab = opened(page().replace('"use strict";', "'use strict';"), said=refused)
    assert tab.locator("button").count() == 0
    assert len(refused) == 1 and "script-src" in refused[0]


def test_the_files_inside_can_still_be_saved(opened: Opened) -> None:
    tab = opened(reporting.html(released.typical()))
    with tab.expect_download() as saved:
        tab.get_by_role("link", name="certificate.json").click()
    assert re.match(r'\{"document":"release certificate"', saved.value.path().read_text(encoding="utf-8"))
