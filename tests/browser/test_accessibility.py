"""The pages under axe-core in headless Chromium: no violation, light and dark, wide and on a phone; few tab stops."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from typing import Any

import pytest
from test_report_page import measured_page

from tests.report import released, study_sample
from tightrope import report

DARK = "--blink-settings=preferredColorScheme=0"
RUN = """<script>
axe.run(document, {resultTypes: ["violations"]}).then(found => {
  const said = found.violations.flatMap(rule => rule.nodes.map(node => `${rule.id}: ${node.html.slice(0, 200)}`));
  parent.document.getElementById("found").textContent = JSON.stringify({said, passed: found.passes.length});
});
</script>"""
STOPS = """<script>
const still = [...document.querySelectorAll("[tabindex]")].filter(
  e => e.scrollHeight <= e.clientHeight + 1 && e.scrollWidth <= e.clientWidth + 1);
const stops = document.querySelectorAll("[tabindex]").length;
parent.document.getElementById("found").textContent = JSON.stringify({still: still.length, stops});
</script>"""


def axe() -> str:
    found = importlib.util.find_spec("axe_playwright_python")
    if found is None or not found.submodule_search_locations:
        pytest.skip("axe-core is not installed")
    return (Path(found.submodule_search_locations[0]) / "axe.min.js").read_text(encoding="utf-8")


def release() -> str:
    """A list, an axis with withheld groups, two keys, a total: everything but the longest table."""
    names = ("people", "income", "states", "sectors")
    return report.html(released.everything() | {"answers": [released.answer(name) for name in names]})


def study() -> str:
    return report.study_html(study_sample.states())


def judged(page: str, folder: Path, width: int, *flags: str) -> dict[str, Any]:
    return measured_page(page, folder, width, *flags, script=f"<script>{axe()}</script>{RUN}")


@pytest.mark.browser
@pytest.mark.parametrize(("page", "width", "flags"), [(release, 1280, ()), (release, 390, (DARK,)), (study, 390, ())])
def test_no_rule_is_violated(tmp_path: Path, page: Any, width: int, flags: tuple[str, ...]) -> None:
    found = judged(page(), tmp_path, width, *flags)
    assert found["said"] == []
    assert found["passed"] > 20


@pytest.mark.browser
def test_the_rules_would_see_a_violation(tmp_path: Path) -> None:
    spoiled = study().replace("--quiet: #576270", "--quiet: #9aa2ab").replace('<html lang="en">', "<html>")
    said = " ".join(judged(spoiled, tmp_path, 1280)["said"])
    assert "html-has-lang" in said
    assert "color-contrast" in said


@pytest.mark.browser
def test_no_tab_stop_on_what_does_not_scroll(tmp_path: Path) -> None:
    found = measured_page(release(), tmp_path, 1280, script=STOPS)
    assert found["still"] == 0
    assert found["stops"] == 1  # the table beside a chart, longer than its chart is high
