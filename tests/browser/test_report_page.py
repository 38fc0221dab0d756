"""The report in headless Chromium: a phone needs no sideways scrolling, and everything is there."""

from __future__ import annotations

import html
import json
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

from tests.report import released
from tightrope import report

FLAGS = [
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--virtual-time-budget=3000",
]
# headless windows are at least 500 wide: a phone is a frame; the script reports what it measures to the outer page
MEASURE = """<script>
const root = document.documentElement, wide = [];
for (const e of document.querySelectorAll("body *")) {
  const box = e.getBoundingClientRect();
  if (box.right > innerWidth + 1 && !e.closest(".scroll")) wide.push(e.tagName + ": " + e.textContent);
}
const heads = [...document.querySelectorAll("h1,h2")].filter(e => e.offsetHeight > 0).map(e => e.textContent);
const cut = [...document.querySelectorAll(".scroll")].filter(e => e.scrollWidth > e.clientWidth + 1).length;
const size = e => parseFloat(getComputedStyle(e).fontSize);
const small = [...document.querySelectorAll("svg text")].filter(e => size(e) < 11).length;
parent.document.getElementById("found").textContent = JSON.stringify(
  {scroll: root.scrollWidth, width: innerWidth, wide, heads, small, cut, ink: getComputedStyle(document.body).color});
</script>"""


def chromium() -> str:
    found = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome", "chrome"))), None)
    return found or pytest.skip("no Chromium on this machine")


def measured(folder: Path, width: int, *flags: str) -> dict[str, Any]:
    """What a script inside the report of a release finds when the page is that wide."""
    return measured_page(report.html(released.everything()), folder, width, *flags)


def measured_page(text: str, folder: Path, width: int, *flags: str, script: str = MEASURE) -> dict[str, Any]:
    """The same for any page, and for any script that writes JSON to the outer page."""
    page = text.replace("</body>", script + "</body>")
    frame = f'<iframe style="border:0;width:{width}px;height:900px" srcdoc="{html.escape(page)}"></iframe>'
    outer = folder / "frame.html"
    outer.write_text(f'<!doctype html><meta charset="utf-8"><pre id="found"></pre>{frame}', encoding="utf-8")
    command = [chromium(), *FLAGS, *flags, f"--user-data-dir={folder / 'profile'}", "--dump-dom", outer.as_uri()]
    dom = subprocess.run(command, capture_output=True, text=True, timeout=120, check=True).stdout
    found = re.search(r'<pre id="found">(.*?)</pre>', dom, re.DOTALL)
    assert found and found.group(1), "the page did not report"
    return dict(json.loads(html.unescape(found.group(1))))


@pytest.mark.browser
@pytest.mark.parametrize("width", [320, 375, 1280])
def test_no_sideways_scrolling(tmp_path: Path, width: int) -> None:
    found = measured(tmp_path, width)
    assert found["width"] == width
    assert found["wide"] == []
    assert found["scroll"] <= width
    assert found["small"] == 0


@pytest.mark.browser
def test_every_heading_is_visible(tmp_path: Path) -> None:
    heads = measured(tmp_path, 375)["heads"]
    questions = [answer["question"] for answer in released.everything()["answers"]]
    assert heads[0] == "Census and wages"
    assert {question[0].upper() + question[1:] for question in questions} <= set(heads)
    assert {"How the privacy was computed", "What this does not promise"} <= set(heads)


@pytest.mark.browser
def test_dark_mode_turns_the_ink_light(tmp_path: Path) -> None:
    light = measured(tmp_path, 375, "--blink-settings=preferredColorScheme=1")
    dark = measured(tmp_path, 375, "--blink-settings=preferredColorScheme=0")
    assert (light["ink"], dark["ink"]) == ("rgb(27, 36, 48)", "rgb(231, 234, 238)")


def test_a_list_of_five_digits_stands_whole_on_a_phone(tmp_path: Path) -> None:
    counts = (("EWR", 15_409), ("JFK", 12_070), ("LGA", 15_862))
    listed = released.rows_by("origin", [released.row(count, 198, origin=name) for name, count in counts])
    page = report.html({"title": "Flights", "answers": [listed | {"noise": []}], "certificate": {}})
    assert measured_page(page, tmp_path, 390)["cut"] == 0
