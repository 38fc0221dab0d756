"""A release from the page: agreed to in words, charged in the ledger as the command charges, and once."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.studio.conftest import WISHES, Page, table
from tightrope.ledger import Ledger
from tightrope.ledger.chain import CHARGED

HALF = {**WISHES, "budget_fraction": "0.5"}


def releases(folder: Path) -> int:
    """How many were charged."""
    return sum(entry.kind == CHARGED for entry in Ledger(str(folder / "tightrope.ledger")).list_entries())


def test_what_it_spends_is_said_before(page: Page, tmp_path: Path) -> None:
    price = page.ask("price", HALF).json()
    assert "epsilon 0.5" in price["spends"]
    assert "a fraction of 0.5 of the budget of 'visits.parquet'" in price["spends"]
    assert "cannot be undone" in price["spends"]
    assert not (tmp_path / "tightrope.ledger").exists(), "asking spends nothing and makes no ledger"
    assert (tmp_path / "plan.toml").exists()


def test_a_release_is_that_of_the_command(page: Page, tmp_path: Path) -> None:
    ticket = page.ask("price", HALF).json()["ticket"]
    done = page.ask("release", {"ticket": ticket, "agreed": True}).json()
    folder = Path(done["folder"])
    assert {path.name for path in folder.iterdir()} == {
        "result.json", "certificate.json", "results.csv", "results.parquet", "report.html",
    }  # fmt: skip
    certificate = json.loads((folder / "certificate.json").read_text())
    assert certificate["budget_fraction"] == "0.5"
    assert certificate["entry"]["left"] == "1/2"
    report = page.get(done["report"])
    assert report.text == (folder / "report.html").read_text()
    assert "sandbox" in report.headers["content-security-policy"]


def test_two_clicks_release_once(page: Page, tmp_path: Path) -> None:
    said = {"ticket": page.ask("price", HALF).json()["ticket"], "agreed": True}
    found: list[object] = []
    clicks = [threading.Thread(target=lambda: found.append(page.ask("release", said).json())) for _ in range(4)]
    for click in clicks:
        click.start()
    for click in clicks:
        click.join()
    found.append(page.ask("release", said).json())
    assert len(found) == 5
    assert all(one == found[0] for one in found)
    assert len(list(tmp_path.glob("*-release-*"))) == 1
    assert releases(tmp_path) == 1


@pytest.mark.parametrize(
    "said", [{"ticket": "guess", "agreed": True}, {"ticket": "x"}, {"ticket": "x", "agreed": False}]
)
def test_without_agreement_nothing_is_spent(page: Page, tmp_path: Path, said: dict[str, object]) -> None:
    page.ask("price", HALF)
    assert page.ask("release", said).status == 400
    assert not (tmp_path / "tightrope.ledger").exists()


def test_what_was_agreed_to_is_released_whatever_the_page_says_since(page: Page) -> None:
    ticket = page.ask("price", HALF).json()["ticket"]
    page.ask("save", {**WISHES, "title": "Something else"})
    folder = Path(page.ask("release", {"ticket": ticket, "agreed": True}).json()["folder"])
    assert json.loads((folder / "result.json").read_text())["title"] == "Visits"


def test_a_budget_that_is_gone_is_refused_and_says_so(page: Page, tmp_path: Path) -> None:
    first = page.ask("price", WISHES).json()
    assert page.ask("release", {"ticket": first["ticket"], "agreed": True}).status == 200
    second = page.ask("price", WISHES).json()
    assert any("would be refused" in line for line in second["standing"])
    answer = page.ask("release", {"ticket": second["ticket"], "agreed": True})
    assert answer.status == 400
    assert "nothing was spent" in answer.json()["problem"] or "left" in answer.json()["problem"]
    assert releases(tmp_path) == 1


def test_somebody_elses_file_is_never_replaced(page: Page, tmp_path: Path) -> None:
    (tmp_path / "plan.toml").write_text("mine", encoding="utf-8")
    for what in ("save", "price"):
        assert page.ask(what, WISHES).status == 400
    assert (tmp_path / "plan.toml").read_text(encoding="utf-8") == "mine"


def test_an_opened_plan_is_kept_beside_what_is_saved(pages: Callable[..., Page], tmp_path: Path) -> None:
    given = (
        'where = "age > 18"\n[source]\npath = "visits.parquet"\n[privacy_unit]\ncolumn = "user"\nmax_rows = 2\n'
        '[budget]\nepsilon = 1\ndelta = 1e-6\n[[question]]\nkind = "count"\nby = "age > 30"\nname = "older"\n'
    )
    table(tmp_path, ["Oslo"])
    (tmp_path / "given.toml").write_text(given, encoding="utf-8")
    page = pages(tmp_path / "given.toml")
    start = page.ask("start").json()
    assert start["asked"] == ["number of rows by age > 30"]
    assert start["wishes"]["promise"] == {"said": "epsilon", "value": "1", "delta": "0.000001"}
    saved = Path(page.ask("save", start["wishes"]).json()["saved"])
    assert saved.name == "given-studio.toml"
    assert 'where = "age > 18"' in saved.read_text(encoding="utf-8")
    assert (tmp_path / "given.toml").read_text(encoding="utf-8") == given


def test_two_plans_at_once_are_two_releases(page: Page, tmp_path: Path) -> None:
    """Each of what it said, in a folder of its own, though both are saved under one name."""
    quarters = [{**WISHES, "budget_fraction": "0.25", "title": title} for title in ("One", "Two")]
    said = [{"ticket": page.ask("price", wishes).json()["ticket"], "agreed": True} for wishes in quarters]
    done: list[dict[str, str]] = []
    clicks = [threading.Thread(target=lambda one=one: done.append(page.ask("release", one).json())) for one in said]
    for click in clicks:
        click.start()
    for click in clicks:
        click.join()
    titles = [json.loads((Path(one["folder"]) / "result.json").read_text())["title"] for one in done]
    assert sorted(titles) == ["One", "Two"]
    assert releases(tmp_path) == 2
