"""Headless Chromium for tests, one a process; nothing may go wrong in the console of its pages.

Playwright refuses a second driver in the same process, so there is one for all rooms (``tests/conftest.py``).
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from typing import Any

import pytest

NAMES = "chromium", "chromium-browser", "google-chrome", "chrome"
FLAGS = ["--no-sandbox", "--disable-gpu", "--disable-quic", "--disable-background-networking", "--disable-sync"]
LONG = 60_000
"""Milliseconds: how long a page may take on a busy machine."""
Window = Callable[..., Any]


@pytest.fixture(scope="session")
def chromium() -> Iterator[Any]:
    place = next(filter(None, map(shutil.which, NAMES)), None) or pytest.skip("no Chromium on this machine")
    playwright = pytest.importorskip("playwright.sync_api")
    with playwright.sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=place, args=FLAGS)
        yield browser
        browser.close()


@pytest.fixture
def window(chromium: Any) -> Iterator[Window]:
    """Opens an address in a fresh window; ``said`` collects what its console says, else that is an error."""
    contexts, wrong = [], []

    def open_window(address: str, width: int = 1280, said: list[str] | None = None, **how: Any) -> Any:
        context = chromium.new_context(viewport={"width": width, "height": 900}, **how)
        context.set_default_timeout(LONG)
        contexts.append(context)
        tab, heard = context.new_page(), wrong if said is None else said
        tab.on("pageerror", lambda error: heard.append(str(error)))
        tab.on("console", lambda message: heard.append(message.text) if message.type == "error" else None)
        tab.goto(address)
        return tab

    yield open_window
    for context in contexts:
        context.close()
    assert wrong == []
