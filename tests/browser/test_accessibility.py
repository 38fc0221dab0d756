"""The pages under axe-core in headless Chromium: no violation, light and dark, wide and on a phone; few tab stops."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from typing import Any

import pytest

from tests.browser.conftest import Opened
from tests.browser.test_report_page import measured
from tests.reporting import documents, released, study_sample
from tightrope import reporting

pytestmark = pytest.mark.browser
RUN = """async () => {
const found = await axe.run(document, {resultTypes: ["violations"]});
const said = found.violations.flatMap(rule => rule.nodes.map(node => `${rule.id}: ${node.html.slice(0, 200)}`));
return {said, passed: found.passes.length};
}"""
STOPS = """() => {
const stops = [...document.querySelectorAll("[tabindex]")];
const still = stops.filter(e => e.scrollHeight <= e.clientHeight + 1 && e.scrollWidth <= e.clientWidth + 1);
return {still: still.length, stops: stops.length};
}"""

ON_PAPER = """() => ({
links: [...document.querySelectorAll(".files")].filter(e => e.offsetHeight).length,
cut: [...document.querySelectorAll(".tall")].filter(e => e.scrollHeight > e.clientHeight + 1).length,
})"""


def axe() -> str:
    found = importlib.util.find_spec("axe_playwright_python")
    if found is None or not found.submodule_search_locations:
        pytest.skip("axe-core is not installed")
    return (Path(found.submodule_search_locations[0]) / "axe.min.js").read_text(encoding="utf-8")


def release() -> str:
    """A list, an axis with withheld groups, two keys, a total: everything but the longest table."""
    names = ("people", "income", "states", "sectors")
    return reporting.html(released.everything() | {"answers": [released.answer(name) for name in names]})


def study() -> str:
    return reporting.study_html(study_sample.states())


def judged(tab: Any) -> dict[str, Any]:
    """What axe-core says of a window."""
    tab.evaluate(axe())
    return dict(tab.evaluate(RUN))


@pytest.mark.parametrize(
    ("page", "width", "scheme"), [(release, 1280, "light"), (release, 390, "dark"), (study, 390, "light")]
)
def test_no_rule_is_violated(opened: Opened, page: Any, width: int, scheme: str) -> None:
    found = judged(opened(page(), width, color_scheme=scheme))
    assert found["said"] == []
    assert found["passed"] > 20


@pytest.mark.parametrize("kind", documents.KINDS)
def test_pages_of_documents_light_dark_on_a_phone_and_on_paper(opened: Opened, kind: str) -> None:
    tab = opened(documents.page(kind), 390)
    assert judged(tab)["said"] == []
    found = measured(tab)
    assert (found["wide"], found["small"], tab.evaluate(STOPS)["still"]) == ([], 0, 0)
    assert found["scroll"] <= 390
    tab.emulate_media(color_scheme="dark")
    assert judged(tab)["said"] == []
    tab.set_viewport_size({"width": 800, "height": 1100})
    tab.emulate_media(media="print")
    assert measured(tab)["cut"] == 0
    assert tab.evaluate(ON_PAPER) == {"links": 0, "cut": 0}


def test_the_rules_would_see_a_violation(opened: Opened) -> None:
    tab = opened(study())
    tab.evaluate("() => document.documentElement.removeAttribute('lang')")
    tab.evaluate("() => document.documentElement.style.setProperty('--quiet', '#9aa2ab')")
    said = " ".join(judged(tab)["said"])
    assert "html-has-lang" in said
    assert "color-contrast" in said


def test_no_tab_stop_on_what_does_not_scroll(opened: Opened) -> None:
    found = opened(release()).evaluate(STOPS)
    assert found["still"] == 0
    assert found["stops"] == 1  # the table beside a chart, longer than its chart is high
