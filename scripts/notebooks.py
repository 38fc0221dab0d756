"""Executes the notebooks in docs/notebooks: ``python scripts/notebooks.py`` writes their outputs into them.

Each one runs in an interpreter of its own, cell by cell, as in Jupyter: a cell shows what it prints, and the value of
its last line as text, HTML and a picture. No Jupyter is needed.
"""

from __future__ import annotations

import ast
import base64
import contextlib
import io
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

NOTEBOOKS = Path(__file__).parents[1] / "docs/notebooks"
Output = dict[str, Any]


def run_notebook(path: Path) -> list[list[Output]]:
    """Return the outputs of each code cell, executed in a new interpreter in the notebook's folder."""
    command = [sys.executable, "-W", "error", str(Path(__file__).resolve()), str(path.resolve())]
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=path.parent)
    if done.returncode:
        raise RuntimeError(f"{path.name} failed:\n{done.stderr}")
    outputs: list[list[Output]] = json.loads(done.stdout)
    return outputs


def execute_cells(path: Path) -> list[list[Output]]:
    """Execute the code cells here, one after the other; return the outputs of each."""
    cells = json.loads(path.read_text(encoding="utf-8"))["cells"]
    names: dict[str, Any] = {"__name__": "__main__"}
    codes = ["".join(cell["source"]) for cell in cells if cell["cell_type"] == "code"]
    return [execute_cell(code, names, count) for count, code in enumerate(codes, start=1)]


def execute_cell(code: str, names: dict[str, Any], count: int) -> list[Output]:
    """Execute a cell; return what it prints and the value of its last line, as a notebook stores them."""
    body = ast.parse(code).body
    last = body.pop() if body and isinstance(body[-1], ast.Expr) else None
    printed, value = io.StringIO(), None
    with contextlib.redirect_stdout(printed):
        exec(compile(ast.Module(body, []), f"cell {count}", "exec"), names)  # noqa: S102 - our own notebooks
        if isinstance(last, ast.Expr):
            value = eval(compile(ast.Expression(last.value), f"cell {count}", "eval"), names)  # noqa: S307
    text = printed.getvalue().splitlines(keepends=True)
    outputs: list[Output] = [{"output_type": "stream", "name": "stdout", "text": text}] if text else []
    if value is not None:
        data = displayed_forms(value)
        outputs.append({"output_type": "execute_result", "execution_count": count, "metadata": {}, "data": data})
    return outputs


def displayed_forms(value: object) -> dict[str, Any]:
    """Return the forms in which a notebook can show the value."""
    forms: dict[str, Any] = {"text/plain": repr(value).splitlines(keepends=True)}
    if page := getattr(value, "_repr_html_", lambda: None)():
        forms["text/html"] = page.splitlines(keepends=True)
    if picture := getattr(value, "_repr_png_", lambda: None)():
        forms["image/png"] = base64.b64encode(picture).decode()
    return forms


def write_outputs(path: Path) -> None:
    """Execute the notebook and store its outputs in it."""
    notebook = json.loads(path.read_text(encoding="utf-8"))
    outputs = iter(enumerate(run_notebook(path), start=1))
    for cell in notebook["cells"]:
        if cell["cell_type"] == "code":
            cell["execution_count"], cell["outputs"] = next(outputs)
    path.write_text(json.dumps(notebook, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


if __name__ == "__main__":
    if len(sys.argv) > 1:
        print(json.dumps(execute_cells(Path(sys.argv[1]))))
    else:
        for notebook_path in sorted(NOTEBOOKS.glob("*.ipynb")):
            write_outputs(notebook_path)
