"""The page in headless Chromium: a stranger's way from a table to a release, and what it looks like."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow
import pyarrow.parquet
import pytest

from tests.chromium import Window
from tests.studio.conftest import Page, table
from tightrope.ledger import Ledger
from tightrope.ledger.chain import CHARGED

pytestmark = pytest.mark.browser
EXACT = "body[data-state=exact]"
HOSTILE = "<img src=x onerror=alert(1)>"


def within(tab: Any) -> float:
    return float(tab.locator(".within").first.inner_text().removeprefix("± "))


def test_from_a_table_to_a_release(page: Page, window: Window, tmp_path: Path) -> None:
    tab = window(page.link)
    tab.get_by_role("alert").get_by_text("each row is a person").wait_for()
    assert "#" not in tab.url, "the token is nowhere to be seen"
    assert tab.locator("input[name=who]:checked").count() == 0, "nobody is a person before it is said"
    assert not tab.locator("#shown").is_visible()

    tab.get_by_label("epsilon", exact=True).check()
    tab.get_by_label("A column identifies the person").check()
    tab.get_by_label("Column", exact=True).select_option("user")
    tab.get_by_label("Maximum rows per person", exact=True).fill("2")
    tab.get_by_role("button", name="Add a question").click()
    second = tab.locator(".question").nth(1)
    second.get_by_label("What", exact=True).select_option("mean")
    second.get_by_label("of the column").select_option("age")
    second.get_by_label("lowest value").fill("0")
    second.get_by_label("highest value").fill("100")
    tab.locator("[data-question=mean_age]").wait_for()
    tab.wait_for_selector(EXACT)
    before, needed = within(tab), tab.locator(".needed").all_inner_texts()
    tab.get_by_role("button", name="Keep these figures").click()

    tab.locator("input[type=range]").first.press("ArrowLeft")
    tab.locator("#text", has_text="epsilon = 0.7").wait_for(state="attached")
    tab.wait_for_selector(EXACT)
    assert within(tab) > before
    assert tab.locator(".needed").all_inner_texts() != needed
    tab.get_by_role("button", name="Keep these figures").click()
    assert tab.locator("#kept thead td").all_inner_texts() == [
        "epsilon 1, delta 1 in 100,000,000", "epsilon 0.7, delta 1 in 100,000,000",
    ]  # fmt: skip

    tab.get_by_role("button", name="Save the plan").click()
    tab.get_by_text("Saved:").wait_for()
    assert "epsilon = 0.7" in (tmp_path / "plan.toml").read_text(encoding="utf-8")
    assert not (tmp_path / "tightrope.ledger").exists()

    tab.get_by_role("button", name="Release …").click()
    tab.get_by_role("button", name="Cancel").click()
    tab.get_by_role("button", name="Release …").click()
    tab.get_by_text("the whole budget of 'visits.parquet'").wait_for()
    tab.get_by_role("button", name="Charge the budget and release").dblclick()
    link = tab.get_by_role("link", name="Open the report")
    link.wait_for()
    charged = [entry for entry in Ledger(str(tmp_path / "tightrope.ledger")).list_entries() if entry.kind == CHARGED]
    assert len(charged) == 1
    with tab.context.expect_page() as report:
        link.click()
    assert report.value.locator("h1").inner_text() == "visits"


def test_it_fits_and_every_field_has_a_name(page: Page, window: Window) -> None:
    tab = window(page.link, 390)
    tab.get_by_label("A column identifies the person").check()
    tab.get_by_label("for each").select_option("city")
    tab.wait_for_selector(EXACT)
    for _ in range(3):
        tab.get_by_role("button", name="Keep these figures").click()
    for width in (390, 320, 1280):
        tab.set_viewport_size({"width": width, "height": 900})
        assert tab.evaluate("document.documentElement.scrollWidth") <= width
    nameless = "[...document.querySelectorAll('input, select')].filter(e => !e.labels.length).length"
    assert tab.evaluate(nameless) == 0


def test_dark_mode_turns_the_ink_light(page: Page, window: Window) -> None:
    inks = []
    for scheme in ("light", "dark"):
        tab = window(page.link, color_scheme=scheme)
        inks.append(tab.evaluate("getComputedStyle(document.body).color"))
    assert inks == ["rgb(27, 36, 48)", "rgb(231, 234, 238)"]


def test_without_the_token_there_is_nothing(page: Page, chromium: Any) -> None:
    tab = chromium.new_page()
    tab.goto(page.origin)
    tab.get_by_text("Open the link that the studio printed.").wait_for()
    assert not tab.locator("main").is_visible()
    tab.close()


def test_a_column_called_like_a_script_is_a_name(pages: Callable[..., Page], window: Window, tmp_path: Path) -> None:
    pyarrow.parquet.write_table(pyarrow.table({HOSTILE: ["a"]}), tmp_path / "odd.parquet")
    tab = window(pages(tmp_path / "odd.parquet", tmp_path / "plan.toml").link)
    tab.get_by_label("Each row is a person").check()
    tab.wait_for_selector(EXACT)
    tab.get_by_label("for each").select_option(HOSTILE)
    tab.locator("article h3", has_text="img").wait_for()
    assert tab.locator("img").count() == 0


def test_what_is_incomplete_says_what_is_missing(pages: Callable[..., Page], window: Window, tmp_path: Path) -> None:
    tab = window(pages(table(tmp_path, ["Oslo"]), tmp_path / "plan.toml").link)
    tab.get_by_label("Each row is a person").check()
    tab.wait_for_selector(EXACT)
    tab.get_by_role("button", name="Remove question 1").click()
    tab.get_by_role("alert").get_by_text("add a question").wait_for()
    assert tab.get_by_role("button", name="Release …").is_disabled()
