"""Pages in headless Chromium: opened from a file, as wide as a test says."""

from __future__ import annotations

from collections.abc import Callable
from itertools import count
from pathlib import Path
from typing import Any

import pytest

from tests.chromium import Window

Opened = Callable[..., Any]


@pytest.fixture
def opened(window: Window, tmp_path: Path) -> Opened:
    """Opens the text of a page, as :func:`tests.chromium.window` opens an address."""
    number = count()

    def open_page(text: str, *how: Any, **named: Any) -> Any:
        file = tmp_path / f"page{next(number)}.html"
        file.write_text(text, encoding="utf-8")
        return window(file.as_uri(), *how, **named)

    return open_page
