"""The report in headless Chromium: a phone needs no sideways scrolling, and everything is there."""

from __future__ import annotations

from typing import Any

import pytest

from tests.browser.conftest import Opened
from tests.reporting import released
from tightrope import reporting

pytestmark = pytest.mark.browser
MEASURE = """() => {
const root = document.documentElement, wide = [];
for (const e of document.querySelectorAll("body *")) {
  const box = e.getBoundingClientRect();
  if (box.right > innerWidth + 1 && !e.closest(".scroll")) wide.push(e.tagName + ": " + e.textContent);
}
const heads = [...document.querySelectorAll("h1,h2")].filter(e => e.offsetHeight > 0).map(e => e.textContent);
const cut = [...document.querySelectorAll(".scroll")].filter(e => e.scrollWidth > e.clientWidth + 1).length;
const size = e => parseFloat(getComputedStyle(e).fontSize);
const small = [...document.querySelectorAll("svg text")].filter(e => size(e) < 11).length;
const ink = getComputedStyle(document.body).color;
return {scroll: root.scrollWidth, width: innerWidth, wide, heads, small, cut, ink};
}"""


def measured(tab: Any) -> dict[str, Any]:
    """What a script finds in a window."""
    return dict(tab.evaluate(MEASURE))


@pytest.mark.parametrize("width", [320, 375, 1280])
def test_no_sideways_scrolling(opened: Opened, width: int) -> None:
    found = measured(opened(reporting.html(released.everything()), width))
    assert found["width"] == width
    assert found["wide"] == []
    assert found["scroll"] <= width
    assert found["small"] == 0


def test_every_heading_is_visible(opened: Opened) -> None:
    heads = measured(opened(reporting.html(released.everything()), 375))["heads"]
    titles = {answer["label"] for answer in released.everything()["answers"]}
    assert heads[0] == "Census and wages"
    assert titles <= set(heads)
    assert {"How the privacy was computed", "Limitations"} <= set(heads)


def test_dark_mode_turns_the_ink_light(opened: Opened) -> None:
    page = reporting.html(released.typical())
    inks = [measured(opened(page, 375, color_scheme=scheme))["ink"] for scheme in ("light", "dark")]
    assert inks == ["rgb(27, 36, 48)", "rgb(231, 234, 238)"]


def test_a_list_of_five_digits_stands_whole_on_a_phone(opened: Opened) -> None:
    counts = (("EWR", 15_409), ("JFK", 12_070), ("LGA", 15_862))
    listed = released.rows_by("origin", [released.row(count, 198, origin=name) for name, count in counts])
    page = reporting.html({"title": "Flights", "answers": [listed | {"noise": []}], "certificate": {}})
    assert measured(opened(page, 390))["cut"] == 0


def test_the_last_column_is_visible_beside_long_keys_and_large_numbers(opened: Opened) -> None:
    keys = {"region": "north-western region", "group": "occupation group number", "sector": "industry sector name"}
    large = {"value": 123_456_789, "lower": 1_234_567, "upper": 223_456_789}
    listed = [{**{name: f"{text} {i}" for name, text in keys.items()}, **large} for i in range(30)]
    by_year = [{"year": 2000 + i, **large} for i in range(20)]
    answers = [{"name": "a", "by": list(keys), "rows": listed}, {"name": "b", "by": ["year"], "rows": by_year}]
    page = opened(reporting.html({"answers": answers}), 1280)
    widths = page.evaluate("[...document.querySelectorAll('.scroll')].map(s => [s.scrollWidth, s.clientWidth])")
    assert len(widths) == 2
    assert all(content <= visible for content, visible in widths)
