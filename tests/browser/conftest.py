"""Pages in headless Chromium: opened from a file, as wide as a test says; nothing may go wrong in the console."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from itertools import count
from pathlib import Path
from typing import Any

import pytest

NAMES = "chromium", "chromium-browser", "google-chrome", "chrome"
FLAGS = ["--no-sandbox", "--disable-gpu", "--disable-quic", "--disable-background-networking", "--disable-sync"]
LONG = 30_000
Opened = Callable[..., Any]


@pytest.fixture(scope="session")
def chromium() -> Iterator[Any]:
    place = next(filter(None, map(shutil.which, NAMES)), None) or pytest.skip("no Chromium on this machine")
    playwright = pytest.importorskip("playwright.sync_api")
    with playwright.sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=place, args=FLAGS)
        yield browser
        browser.close()


@pytest.fixture
def opened(chromium: Any, tmp_path: Path) -> Iterator[Opened]:
    """Opens the text of a page in a fresh window; ``said`` collects what its console says, else that is an error."""
    contexts, wrong, number = [], [], count()

    def open_page(text: str, width: int = 1280, said: list[str] | None = None, **how: Any) -> Any:
        context = chromium.new_context(viewport={"width": width, "height": 900}, **how)
        context.set_default_timeout(LONG)
        contexts.append(context)
        tab, heard = context.new_page(), wrong if said is None else said
        tab.on("pageerror", lambda error: heard.append(str(error)))
        tab.on("console", lambda message: heard.append(message.text) if message.type == "error" else None)
        file = tmp_path / f"page{next(number)}.html"
        file.write_text(text, encoding="utf-8")
        tab.goto(file.as_uri())
        return tab

    yield open_page
    for context in contexts:
        context.close()
    assert wrong == []
