"""The Python of every page runs, in the page's order; a number in a comment beside an expression is what comes out."""

from __future__ import annotations

import ast
import os
import re
import runpy
import subprocess
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import tightrope as tr

DOCS = Path(__file__).parents[1] / "docs"
OWN_TESTS = {"local.md", "couple.md"}
"""Tutorials that other tests run, commands and all."""
BLOCK = re.compile(r"^```python\n(.*?)^```$", re.DOTALL | re.MULTILINE)
PAGES = [page for page in sorted(DOCS.glob("*.md")) if page.name not in OWN_TESTS and BLOCK.search(page.read_text())]
PEER = re.compile(r'^```python title="(.*?)"\n(.*?)^```$', re.DOTALL | re.MULTILINE)
SHOWN = re.compile(r"# *(?:Bounds\()?((?:[a-z]+=)?-?\d[\d.]*(?:e-?\d+)?…?(?:, (?:[a-z]+=)?-?\d[\d.]*(?:e-?\d+)?…?)*)")


@pytest.fixture
def tables(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The files that pages speak of, in the working directory."""
    monkeypatch.chdir(tmp_path)
    draw, rows = np.random.default_rng(1), 5_000
    visits = {"user_id": draw.integers(0, 2_000, rows), "city": draw.choice(["Ulm", "Bern", "Graz"], rows)}
    pd.DataFrame(visits | {"minutes": draw.uniform(0, 90, rows)}).to_parquet("visits.parquet")
    flights = {
        "tail": draw.integers(0, 400, rows).astype(str),
        "dest": draw.choice(["ORD", "ATL", "LAX", "BOS"], rows),
        "carrier": draw.choice(["UA", "AA"], rows),
        "delay": draw.normal(10, 30, rows),
        "distance": draw.uniform(100, 2_500, rows),
    }
    frame = pd.DataFrame(flights)
    frame.assign(delayed=frame.delay > 15).to_parquet("flights.parquet")


@pytest.mark.usefixtures("tables")
@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_the_python_of_a_page_runs(page: Path) -> None:
    names: dict[str, Any] = {"tr": tr, "np": np}
    for block in BLOCK.findall(page.read_text(encoding="utf-8")):
        lines = block.splitlines()
        for statement in ast.parse(block).body:
            code = ast.get_source_segment(block, statement) or ""
            if not isinstance(statement, ast.Expr):
                exec(compile(code, page.name, "exec"), names)  # noqa: S102 - our own page
                continue
            value = eval(compile(code, page.name, "eval"), names)  # noqa: S307 - our own page
            shown = SHOWN.search(lines[(statement.end_lineno or 1) - 1].removeprefix(code))
            if shown:
                agrees(shown.group(1), value)


def agrees(shown: str, value: object) -> None:
    """Digits before "…" begin the number; a number without is the whole of it."""
    values = value if isinstance(value, tuple) else (value,)
    for text, number in zip(shown.split(", "), values, strict=False):
        digits = text.split("=")[-1]
        if digits.endswith("…"):
            assert str(float(number)).startswith(digits[:-1]), (shown, value)
        else:
            assert float(number) == pytest.approx(float(digits.rstrip(".")), rel=0.02), (shown, value)


def test_digits_that_are_wrong_are_seen() -> None:
    agrees("0.123…, 4", (0.1234, 4))
    with pytest.raises(AssertionError):
        agrees("0.124…", 0.1234)
    with pytest.raises(AssertionError):
        agrees("4, 5", (4, 6))


def test_examples_in_docstrings_are_fenced() -> None:
    fenced = runpy.run_path(str(DOCS.parent / "scripts/site_docstrings.py"))["fenced"]
    text = "Adds.\n\n>>> 1 + 1\n2\n\nThat is all."
    assert fenced(text) == "Adds.\n\n```pycon\n>>> 1 + 1\n2\n```\n\nThat is all."
    assert fenced("No example: 1 > 0.") == "No example: 1 > 0."


@pytest.mark.parametrize("name, body", PEER.findall((DOCS / "moving.md").read_text(encoding="utf-8")))
@pytest.mark.usefixtures("tables")
def test_the_other_side_of_moving_runs(name: str, body: str) -> None:
    """TIGHTROPE_PEER_OPENDP=/path/to/python: an environment that has it."""
    variable = "TIGHTROPE_PEER_" + name.upper().replace("-", "_")
    if variable not in os.environ:
        pytest.skip(f"{variable} names no Python that has {name}")
    subprocess.run([os.environ[variable], "-c", body], check=True)
