"""The notebooks in docs/notebooks run as they stand, and show what is stored in them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from scripts import notebooks

PATHS = sorted(notebooks.NOTEBOOKS.glob("*.ipynb"))
pytestmark = [pytest.mark.notebook, pytest.mark.slow]


def forms(outputs: list[dict[str, Any]]) -> list[list[str]]:
    """The kinds of output of a cell; their numbers are drawn anew each time."""
    return [sorted(output.get("data", {output["output_type"]: None})) for output in outputs]


def test_there_is_one_for_each_room_in_which_people_work() -> None:
    assert [path.stem for path in PATHS] == ["local", "release", "training"]


@pytest.mark.parametrize("path", PATHS, ids=lambda path: path.stem)
def test_a_notebook_runs_and_shows_the_same_kinds_of_output(path: Path) -> None:
    cells = [cell for cell in json.loads(path.read_text(encoding="utf-8"))["cells"] if cell["cell_type"] == "code"]
    stored = [forms(cell["outputs"]) for cell in cells]
    assert [forms(outputs) for outputs in notebooks.run_notebook(path)] == stored
    shown = [form for outputs in stored for kinds in outputs for form in kinds]
    assert shown.count("text/html") >= 3
    assert [cell["execution_count"] for cell in cells] == list(range(1, len(cells) + 1))


def test_a_cell_that_fails_is_an_error(tmp_path: Path) -> None:
    cell = {"cell_type": "code", "source": ["1 / 0"]}
    (tmp_path / "broken.ipynb").write_text(json.dumps({"cells": [cell]}))
    with pytest.raises(RuntimeError, match="ZeroDivisionError"):
        notebooks.run_notebook(tmp_path / "broken.ipynb")


def test_a_cell_shows_what_it_prints_and_its_last_value() -> None:
    names: dict[str, Any] = {}
    outputs = notebooks.execute_cell("x = 3\nprint('a')\nx + 1", names, 1)
    assert [output["output_type"] for output in outputs] == ["stream", "execute_result"]
    assert outputs[1]["data"] == {"text/plain": ["4"]}
    assert notebooks.execute_cell("y = x", names, 2) == []
    assert names["y"] == 3
