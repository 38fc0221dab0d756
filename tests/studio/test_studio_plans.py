"""What the page shows is what ``tightrope plan`` computes from the very file that it saves; at once, or a bound."""

from __future__ import annotations

import datetime
import json
import threading
import tomllib
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from typer.testing import CliRunner

from tests.studio.conftest import WISHES, Page, table
from tightrope.cli.main import app
from tightrope.documents.numbers import Guesses, times_text
from tightrope.studio.plan_editor import (
    LADDERS,
    BackgroundWorker,
    FailedResult,
    PlanKey,
    nearby_stops,
    slider_stops,
    stricter_promises,
)
from tightrope.studio.plan_form import SAID, PlanForm, PromiseForm, toml_text

plain = (
    st.booleans()
    | st.integers(-(2**62), 2**62)
    | st.decimals(allow_nan=False, allow_infinity=False, places=3)
    | st.text(st.characters(exclude_categories=["Cs"]))
    | st.dates()
    | st.datetimes().map(lambda t: t.replace(microsecond=0))
)
values = plain | st.lists(plain, max_size=3) | st.dictionaries(st.text(min_size=1, max_size=3), plain, max_size=2)
sections = st.dictionaries(st.text("ab é\"\\'.", min_size=1), values, max_size=4)


@given(st.dictionaries(st.text('xyz -\n"', min_size=1), plain | sections | st.lists(sections, min_size=1, max_size=2)))
def test_what_is_written_is_read_back(tables: dict[str, Any]) -> None:
    assert tomllib.loads(toml_text(tables), parse_float=Decimal) == tables


def test_a_day_stays_a_day() -> None:
    assert tomllib.loads(toml_text({"keys": [datetime.date(2024, 2, 29)]}))["keys"] == [datetime.date(2024, 2, 29)]


def test_the_numbers_are_those_of_the_command(page: Page, tmp_path: Path) -> None:
    shown = page.exact(WISHES)["figures"]
    page.ask("save", WISHES)
    ran = CliRunner().invoke(app, ["plan", str(tmp_path / "plan.toml"), "--json"])
    planned = json.loads(ran.stdout)
    assert [answer["name"] for answer in shown["answers"]] == ["count_by_city", "mean_age"]
    assert [a["half_width"] for a in shown["answers"]] == [a["error"]["half_width_95"] for a in planned["answers"]]
    assert shown["attack_success"] == planned["attack_success"]
    assert shown["attacker"] == planned["attacker"]


def test_the_page_shows_the_file_that_it_saves(page: Page, tmp_path: Path) -> None:
    text = page.exact(WISHES)["plan"]
    page.ask("save", WISHES)
    assert (tmp_path / "plan.toml").read_text(encoding="utf-8").endswith(text)
    assert tomllib.loads(text)["question"][1] == {
        "kind": "mean",
        "column": "age",
        "bounds": [0.0, 100.0],
        "weight": 2.0,
    }


def test_total_variation_is_said_as_the_success_of_a_guess(page: Page) -> None:
    promise = {"said": "total_variation", "value": "0.1", "delta": "1e-6"}
    found = page.exact({**WISHES, "promise": promise})
    assert "attack_success = 0.55" in found["plan"]
    assert found["figures"]["attack_success"] <= 0.55


def test_until_the_numbers_are_there_a_stricter_promise_speaks(page: Page) -> None:
    """The next stop waits in the worker: meanwhile the page has the noise of a stricter promise, which would do."""
    strict = {**WISHES, "promise": {"said": "epsilon", "value": "0.5", "delta": "1e-6"}}
    page.exact(strict)
    gate = threading.Event()
    compute = page.desk._plans._compute

    def slow(place: PlanKey) -> dict[str, Any]:
        gate.wait(60)
        return compute(place)

    page.desk._plans._compute = slow  # type: ignore[method-assign]
    odd = {**WISHES, "promise": {"said": "epsilon", "value": "0.93", "delta": "1e-5"}}
    found = page.ask("look", odd).json()
    gate.set()
    assert found["state"] == "bound"
    assert Decimal(found["at"]["value"]) <= Decimal("0.93")
    assert Decimal(found["at"]["delta"]) <= Decimal("1e-5")
    exact = page.exact(odd)["figures"]
    assert exact["attack_success"] >= found["figures"]["attack_success"]
    assert found["figures"]["answers"][0]["half_width"] >= exact["answers"][0]["half_width"]


def test_a_plan_that_cannot_be_says_why(page: Page) -> None:
    found = page.exact({**WISHES, "questions": [{"kind": "mean", "column": "age"}]})
    assert found["state"] == "problem"
    assert "bounds" in found["problem"]


@pytest.mark.parametrize("who", [{}, {"max_rows": 2}, {"column": "user", "each_row": True}])
def test_nobody_is_a_person_before_it_is_said(page: Page, who: dict[str, Any]) -> None:
    """A table that was just opened: to call each row a person would promise less to those who have several."""
    assert page.ask("start").json()["wishes"]["who"] == {"each_row": False} | dict.fromkeys(
        ("column", "max_rows", "max_rows_per_group", "max_groups", "noun")
    )
    found = page.ask("look", {**WISHES, "who": who}).json()
    assert found["state"] == "problem"
    assert "each row is a person" in found["problem"]
    assert page.ask("save", {**WISHES, "who": who}).status == 400


def test_columns_without_types_are_declared(pages: Callable[..., Page], tmp_path: Path) -> None:
    (tmp_path / "people.csv").write_text("age,city\n1,a\n", encoding="utf-8")
    page = pages(tmp_path / "people.csv", tmp_path / "plan.toml")
    assert page.ask("start").json()["typeless"]
    question = {"kind": "mean", "column": "age", "bounds": [0, 100]}
    wishes = {
        "who": {"each_row": True},
        "promise": WISHES["promise"],
        "questions": [question],
        "types": {"age": "integer"},
    }
    found = page.exact(wishes)
    assert tomllib.loads(found["plan"])["source"] == {"path": "people.csv", "types": {"age": "integer"}}
    assert found["figures"]["answers"][0]["needed"] != "–"
    assert "types" in page.ask("look", {**wishes, "types": {"age": "money"}}).json()["problem"]


def test_more_people_mean_a_smaller_error(page: Page) -> None:
    """The rows that are said to be needed do, and half as many (at least) do not."""
    count, mean = page.exact(WISHES)["figures"]["answers"]
    needed = int(count["needed"].replace(",", ""))
    assert count["half_width"] <= 0.05 * needed
    assert count["half_width"] > 0.05 * needed / 2.5
    assert mean["close"].startswith("± 5,")


@pytest.mark.parametrize("said", SAID)
def test_every_stop_is_reached_and_the_stricter_ones_are_stricter(said: Any) -> None:
    own = PromiseForm(said=said, value=Decimal("0.615"), delta=Decimal("1e-8"))
    stops = nearby_stops(own)
    assert stops[0] == own
    assert {stop.value for stop in stops} == {own.value, *map(Decimal, LADDERS[said])}
    assert all(stop.value <= own.value and stop.delta <= own.delta for stop in stricter_promises(own))
    assert stricter_promises(own)[0] == own
    assert [str(Decimal("0.615"))] == [stop for stop in slider_stops(own)[said] if stop not in LADDERS[said]]


def test_what_was_asked_last_is_computed_first() -> None:
    order: list[int] = []
    begun, gate = threading.Event(), threading.Event()

    def compute(key: int) -> int:
        begun.set()
        gate.wait(60)
        order.append(key)
        return key

    worker = BackgroundWorker(compute, str)
    worker.request_keys([1, 2, 3])
    assert begun.wait(60)
    worker.request_keys([9, 2])
    gate.set()
    assert worker.wait_for_result(2, 60) == 2
    assert order == [1, 9, 2]
    assert worker.finished_result(3) is None


def test_stops_nearby_are_there_before_the_slider(pages: Callable[..., Page], tmp_path: Path) -> None:
    page = pages(table(tmp_path, ["Oslo"]), tmp_path / "plan.toml", 2)
    count = {**WISHES, "questions": [{"kind": "count"}]}
    page.exact(count)
    for value in ("0.7", "1.4"):
        place = page.desk._plan_key(
            msgspec.convert({**count, "promise": {**WISHES["promise"], "value": value}}, PlanForm)
        )
        assert isinstance(page.desk._plans.wait_for_result(place, 120), dict)


def test_an_error_is_kept_as_words() -> None:
    def compute(key: int) -> int:
        raise ValueError(key)

    worker = BackgroundWorker(compute, lambda error: type(error).__name__)
    worker.request_keys([1])
    assert worker.wait_for_result(1, 60) == FailedResult("ValueError")


def test_every_number_of_the_promise_is_rounded_where_certificates_are(page: Page) -> None:
    """The page rounds nothing itself: it would have rounded a 66th guess away."""
    shown = page.exact(WISHES)["figures"]
    assert shown["guesses"] == Guesses.from_success(shown["attack_success"]).right_count
    assert any(f"at most {times_text(epsilon)} times" in shown["limit"] for epsilon in (1.0, 0.999))
    assert "Math." not in page.get("/show.js").text


@pytest.mark.parametrize("said", ["NaN", "sNaN", "Infinity", "-1", "1e999999", "1e-999999", "1e999999999"])
@pytest.mark.parametrize("place", ["value", "delta"])
def test_a_number_that_is_none_is_a_problem_in_words(page: Page, place: str, said: str) -> None:
    promise = {"said": "epsilon", "value": "1", "delta": "1e-6", place: said}
    answer = page.ask("look", {**WISHES, "promise": promise})
    assert answer.status == 400 or answer.json()["state"] in ("problem", "working", "bound")
    assert page.ask("price", {**WISHES, "promise": promise}).status == 400


def test_a_plan_whose_unit_and_questions_are_expressions_is_shown_and_saved(
    pages: Callable[..., Page], tmp_path: Path
) -> None:
    """The texts are those of the plan, and only its own expression can be a unit."""
    table(tmp_path, ["Oslo", "Rome"])
    (tmp_path / "plan.toml").write_text(
        'document = "plan"\nversion = 2\n[source]\npath = "visits.parquet"\n'
        "[privacy_unit]\ncolumn = \"concat(city, '/', user)\"\nmax_rows = 2\n[budget]\nepsilon = 1\ndelta = 1e-6\n"
        '[[question]]\nkind = "count"\nwhere = "starts_with(city, \'O\')"\nby = "round(clip(age, 0, 40), 10)"\n',
        encoding="utf-8",
    )
    page = pages(tmp_path / "plan.toml")
    start = page.ask("start").json()
    wishes = start["wishes"]
    assert wishes["who"]["column"] == "concat(city, '/', user)"
    assert "round(clip(age, 0, 40), 10) where starts_with(city, 'O')" in json.dumps(start)
    assert page.exact(wishes)["state"] == "exact"
    assert page.ask("save", wishes).status == 200
    saved = tomllib.loads((tmp_path / "plan-studio.toml").read_text(encoding="utf-8"))
    assert saved["privacy_unit"]["column"] == "concat(city, '/', user)"
    changed = {**wishes, "who": {**wishes["who"], "column": "lower(city)"}}
    assert page.exact(changed)["state"] == "problem"
