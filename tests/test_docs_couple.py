"""docs/couple.md and docs/accounting.md: their commands run, and print what the page says they print."""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
BLOCK = re.compile(r"^```console( about)?\n(.*?)^```$", re.MULTILINE | re.DOTALL)
SNIPPET = re.compile(r"^```python\n(.*?)^```$", re.MULTILINE | re.DOTALL)
NUMBER = re.compile(r"\d[\d,]*\.?\d*(?:e[-+]\d+)?")
ABOUT = 0.3
"""Relative: how far numbers of commands that draw noise may be from those on the page."""


def commands(page: str) -> list[tuple[str, list[str], float]]:
    """Each command of the page, the lines that it should print, and how exactly."""
    found = []
    for about, block in BLOCK.findall(page):
        for part in re.split(r"^\$ ", block, flags=re.MULTILINE)[1:]:
            command, _, expected = part.partition("\n")
            lines = [" ".join(line.split()) for line in expected.splitlines() if line.strip() not in ("", "...")]
            found.append((command, lines, ABOUT if about else 0.0))
    return found


def agree(expected: str, printed: str, tolerance: float) -> bool:
    """The same words, and the same numbers up to the tolerance."""
    if NUMBER.sub("#", expected) != NUMBER.sub("#", printed):
        return False
    pairs = zip(NUMBER.findall(expected), NUMBER.findall(printed), strict=True)
    return all(a == b or abs(_value(a) - _value(b)) <= tolerance * abs(_value(a)) for a, b in pairs)


def _value(text: str) -> float:
    return float(text.replace(",", "").rstrip("."))


@pytest.fixture
def place(tmp_path: Path) -> Path:
    """A folder with the examples, as somebody has them who stands in the repository."""
    shutil.copytree(ROOT / "examples", tmp_path / "examples", ignore=shutil.ignore_patterns("*.parquet", "*.html"))
    return tmp_path


@pytest.mark.slow
def test_the_page_says_what_its_commands_print(place: Path) -> None:
    assert _check_commands("couple.md", place) >= 9
    (snippet,) = SNIPPET.findall((ROOT / "docs" / "couple.md").read_text(encoding="utf-8"))
    (place / "snippet.py").write_text(snippet, encoding="utf-8")
    _run("python snippet.py", place)


def test_the_accounting_page_says_what_its_command_prints(tmp_path: Path) -> None:
    assert _check_commands("accounting.md", tmp_path) == 1


def _check_commands(page: str, place: Path) -> int:
    """Run the commands of a page and compare what they print; return their number."""
    found = commands((ROOT / "docs" / page).read_text(encoding="utf-8"))
    for command, expected, tolerance in found:
        printed = iter(_run(command, place))
        for line in expected:
            assert any(agree(line, one, tolerance) for one in printed), (command, line)
    return len(found)


def test_numbers_are_compared() -> None:
    assert agree("a 1.25, b 3", "a 1.25, b 3", 0.0)
    assert not agree("a 1.25, b 3", "a 1.26, b 3", 0.0)
    assert agree("a 1.25, b 3", "a 1.26, b 3", 0.1)
    assert not agree("a 1.25, b 3", "c 1.25, b 3", 0.1)


def _run(command: str, place: Path) -> list[str]:
    """The lines that a command prints, long ones joined again where the terminal wrapped them."""
    program, *words = shlex.split(command)
    start = [sys.executable, "-m", "tightrope"] if program == "tightrope" else [sys.executable]
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "src")}
    done = subprocess.run(
        [*start, *words], cwd=place, env=environment, capture_output=True, text=True, check=False, encoding="utf-8"
    )
    assert done.returncode == 0, (command, done.stderr)
    return [" ".join(line.split()) for line in re.sub(r" \n(?! )", " ", done.stdout).splitlines()]
