"""The papers, at the coarse setting: verdicts stay what they are, and follow from the numbers."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from tightrope.cli.main import app
from tightrope.errors import InputError
from tightrope.papers import instances
from tightrope.papers.item import (
    COARSE,
    ITEM_LISTS,
    TITLES,
    VERDICT_WORDS,
    Item,
    ItemResult,
    page_in_markdown,
    printed_number,
    run_items,
    select_items,
    verdict_words,
)
from tightrope.reporting.charts.panels import Diagram, Line, Panel, Plane, render_svg
from tightrope.reporting.pages.document_page import papers_html

ROOT = Path(__file__).parents[2]
VERDICTS = json.loads((Path(__file__).parent / "verdicts.json").read_text(encoding="utf-8"))


@pytest.fixture(scope="module")
def results() -> list[ItemResult]:
    return run_items(select_items(), COARSE)


def test_every_statement_has_the_verdict_that_is_written_down(results: list[ItemResult]) -> None:
    changed = {
        f"{result.item.paper} {result.item.item}": result.finding.verdict
        for result in results
        if VERDICTS.get(result.item.paper, {}).get(result.item.item) != result.finding.verdict_word
    }
    assert not changed
    assert verdict_words(results) == VERDICTS


def test_nothing_is_left_out(results: list[ItemResult]) -> None:
    assert len(results) >= 139
    assert {result.finding.verdict_word for result in results} <= set(VERDICT_WORDS)
    assert not [result.item.item for result in results if result.finding.verdict_word == "not"]
    assert len({(one.paper, one.item) for one in select_items()}) == len(select_items())


def test_each_verdict_hangs_on_both_numbers(results: list[ItemResult]) -> None:
    """A wrong number planted on either side changes the word: no verdict is written down beforehand."""
    for result in results:
        ours, printed, judge = result.finding.ours, result.finding.printed, result.item.judge
        word = result.finding.verdict_word
        planted = [(ours, tuple(map(other, ours))) for other in (same, half, twice)]
        planted += [(tuple(map(other, printed)), printed) for other in (same, half, twice)]
        found = {judge(*pair).replace(":", " ").split()[0] for pair in planted if len(pair[0]) == len(ours)}
        assert found - {word}, (result.item.paper, result.item.item)


def same(value: float) -> float:
    return value


def half(value: float) -> float:
    return value * 0.5 - 0.1


def twice(value: float) -> float:
    return value * 2 + 0.1


def test_the_page_of_the_papers_is_up_to_date() -> None:
    assert (ROOT / "docs" / "papers.md").read_text(encoding="utf-8") == page_in_markdown(select_items(), VERDICTS)


def test_an_item_with_a_wrong_number_is_not_reproduced() -> None:
    right = next(one for one in select_items(["KM"]) if one.item == "Example 2")
    assert right.compute_finding(COARSE).verdict_word == "agrees"
    assert (
        replace(right, printed=printed_number(0.2, 0.41, 0.3, 0.2, 0.5)).compute_finding(COARSE).verdict_word == "not"
    )


def test_unknown_papers_are_refused() -> None:
    with pytest.raises(InputError, match="GDGK"):
        select_items(["Shannon"])


def test_the_command_prints_one_object_and_writes_a_page(tmp_path: Path) -> None:
    done = CliRunner().invoke(
        app, ["reproduce", "--only", "KM", "--coarse", "--json", "--out", str(tmp_path / "km.html")]
    )
    assert done.exit_code == 0, done.stderr
    found: dict[str, Any] = json.loads(done.stdout)
    assert [one["item"] for one in found["items"]] == [one.item for one in select_items(["KM"])]
    assert {"paper", "item", "statement", "verdict", "ours", "printed"} <= set(found["items"][0])
    text = (tmp_path / "km.html").read_text(encoding="utf-8")
    assert text.startswith("<!doctype html>")
    assert text.count("<svg") == sum(len(one.draw(COARSE)) for one in select_items(["KM"]) if one.draw)
    assert "http" not in text.replace("http://www.w3.org", "")


def test_the_command_lists_what_it_found() -> None:
    done = CliRunner().invoke(app, ["reproduce", "--only", "GI-v1", "--coarse"])
    assert done.exit_code == 0, done.stderr
    assert f"of {len(select_items(['GI-v1']))} statements" in done.stdout


def test_texts_of_the_page_are_escaped() -> None:
    one = {"paper": "KM", "item": "<b>", "statement": "a < b", "verdict": "agrees", "ours": 1.0, "printed": [1.0] * 9}
    text = papers_html([{**one, "call": "f(<x>)"}], [[]], TITLES)
    assert "<b>" not in text
    assert "a &lt; b" in text
    assert "(9 values)" in text


@pytest.mark.parametrize(
    "drawing",
    [
        Panel("$x$ & <y>", "x", "y", [Line("one", [1, 2], [3, 4]), Line("two", [1, 2], [3, 5], "steps")], log_x=True),
        Panel("points", "x", "y", [Line("one", [1, 2], [3, 4], "points")], log_y=True),
        Plane("plane", "x", "y", [1, 2], [3, 4], [[0.5, float("nan")], [1.0, 2.0]]),
        Diagram("boxes", [("a", 0.2, 0.5), ("b", 0.8, 0.5)], [("a", "b", "to")]),
    ],
)
def test_pictures_are_elements_that_repeat(drawing: Any) -> None:
    text = render_svg(drawing)
    assert text == render_svg(drawing)
    assert text.startswith('<svg role="img" aria-label="')
    assert "<script" not in text


def test_only_drawings_are_drawn() -> None:
    with pytest.raises(InputError, match="drawing"):
        render_svg("a picture")  # type: ignore[arg-type]


def test_random_private_channels_are_private() -> None:
    for _ in range(200):
        triple = instances.random_guarantee(pure=True)
        channel = instances.random_private_channel(triple, 3, 4)
        assert channel.epsilon <= triple.epsilon * (1 + 1e-9) + 1e-9
        assert channel.total_variation <= triple.total_variation * (1 + 1e-9) + 1e-12


def test_items_of_a_paper_say_so() -> None:
    assert all(isinstance(one, Item) and one.paper == paper for paper in ITEM_LISTS for one in select_items([paper]))
