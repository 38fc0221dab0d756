"""The page of a study in headless Chromium: a phone needs no sideways scrolling, and everything is there."""

from __future__ import annotations

import pytest

from tests.browser.conftest import Opened
from tests.browser.test_report_page import measured
from tests.reporting import study_sample as sample
from tightrope import reporting


@pytest.mark.browser
@pytest.mark.parametrize("width", [320, 390, 1280])
@pytest.mark.parametrize("document", [sample.states, sample.mean])
def test_no_sideways_scrolling_and_every_heading(opened: Opened, width: int, document) -> None:
    found = measured(opened(reporting.study_html(document()), width))
    assert found["width"] == width
    assert found["wide"] == []
    assert found["scroll"] <= width
    assert found["small"] == 0
    assert found["heads"][0] == document().title
    assert {"Accuracy", "What reports reveal about a person", "Limitations"} <= set(found["heads"])
