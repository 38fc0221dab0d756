"""``--report`` of every command: an .html file, written last, that replaces nothing without ``--force``."""

from __future__ import annotations

import json
import stat
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.reporting.documents import LAWS, STEPS
from tests.reporting.documents import SIZES as SIZES_OF_A_RUN

SIZES = ["--epsilon", "1", "--delta", "1e-6"]
TRAINING = [*SIZES_OF_A_RUN.split(), "--no-compare"]
COMMANDS = {
    "account": ["account", "{}/steps.toml"],
    "dpsgd": ["dpsgd", *TRAINING],
    "noise": ["noise", *SIZES],
    "several": ["noise", *SIZES, "--releases", "2", "--cost", "squared"],
    "plan": ["local", "plan", "mean", "--bounds", "0,50", "--epsilon", "1", "--people", "5000"],
    "fit": ["couple", "fit", "--laws", "{}/laws.csv", "--value", "v", "--group", "g", "--out", "{}/m.json"],
}
Run = Callable[..., object]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "steps.toml").write_text(STEPS, encoding="utf-8")
    (tmp_path / "laws.csv").write_text(LAWS, encoding="utf-8")
    return tmp_path


def words(kind: str, folder: Path) -> list[str]:
    return [word.format(folder) for word in COMMANDS[kind]]


@pytest.mark.parametrize("kind", COMMANDS)
def test_a_page_is_written_and_replaces_nothing(kind: str, folder: Path, run) -> None:
    page = folder / "deep" / "page.html"
    shown = run(*words(kind, folder), "--report", page)
    assert shown.code == 0, shown.err
    assert f"Written: {page}" in shown.out.replace("\n", "")
    first = page.read_text(encoding="utf-8")
    assert first.startswith("<!doctype html>") and first.endswith("</html>\n")
    page.write_text("mine", encoding="utf-8")
    (folder / "m.json").unlink(missing_ok=True)
    run(*words(kind, folder), "--report", page).refused_with("--report", "the file exists already", "--force")
    assert page.read_text(encoding="utf-8") == "mine" and not (folder / "m.json").exists()


def test_force_replaces_a_page_and_gives_the_same_one(folder: Path, run) -> None:
    page = folder / "page.html"
    texts = set()
    for _ in range(2):
        assert run(*words("noise", folder), "--report", page, "--force").code == 0
        texts.add(page.read_text(encoding="utf-8"))
    assert len(texts) == 1


@pytest.mark.parametrize("kind", COMMANDS)
def test_another_ending_is_refused_before_any_work(kind: str, folder: Path, run) -> None:
    run(*words(kind, folder), "--report", folder / "page.pdf").refused_with("report", ".html")


def test_json_stays_one_object(folder: Path, run) -> None:
    page = folder / "page.html"
    shown = run(*words("account", folder), "--report", page, "--json")
    assert json.loads(shown.out)["document"] == "account" and page.exists()


def test_a_study_without_answers_has_no_page(folder: Path, run) -> None:
    asked = ("local", "plan", "distribution", "--k", "4", "--epsilon", "1", "--people", "5000")
    run(*asked, "--report", folder / "page.html").refused_with("--report", "needs the possible answers", "--categories")


def test_the_page_of_a_table_is_its_owners_alone(folder: Path, run) -> None:
    table = folder / "people.csv"
    table.write_text("v,g\n" + "a,n\nb,s\n" * 20, encoding="utf-8")
    page = folder / "page.html"
    shown = run("couple", "fit", table, "--value", "v", "--group", "g", "--out", folder / "m.json", "--report", page)
    assert shown.code == 0, shown.err
    assert stat.S_IMODE(page.stat().st_mode) & 0o077 == 0
    assert "as secret as the table" in page.read_text(encoding="utf-8")


def test_page_and_mechanism_are_two_files(folder: Path, run) -> None:
    asked = [*words("fit", folder)[:-1], folder / "page.html", "--report", folder / "page.html"]
    run(*asked).refused_with("--out, --report: name a different file for each")
