"""The verifier as one file, in an environment that has flint and nothing of ours."""

from __future__ import annotations

import ast
import importlib.util
import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.verify.written import release
from tightrope.verify.check import checked, told
from tightrope.verify.standalone import standalone

ALONE = """
import runpy, sys
sys.path.append(sys.argv.pop(1))
sys.argv.pop(0)
assert importlib.util.find_spec("tightrope") is None and importlib.util.find_spec("numpy") is None
runpy.run_path(sys.argv[0], run_name="__main__")
"""


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    """A folder with check.py, and one with flint alone."""
    folder = tmp_path_factory.mktemp("alone")
    (folder / "check.py").write_text(standalone(), encoding="utf-8")
    (folder / "only").mkdir()
    packages = Path(importlib.util.find_spec("flint").origin).parents[1]
    for found in [packages / "flint", *packages.glob("python_flint*")]:
        (folder / "only" / found.name).symlink_to(found)
    return folder


def run(place, text):
    (place / "document.json").write_text(text, encoding="utf-8")
    command = [sys.executable, "-I", "-S", "-c", f"import importlib.util{ALONE}"]
    return subprocess.run(
        [*command, place / "only", place / "check.py", place / "document.json"],
        capture_output=True,
        text=True,
        check=False,
    )


def test_it_says_the_same_of_a_release(place):
    found = run(place, release("cells"))
    assert found.stderr == ""
    assert (found.returncode, found.stdout) == (0, told(checked(release("cells"))) + "\n")


def test_it_refutes_what_was_altered(place):
    data = json.loads(release("cells"))
    data["mechanisms"][0]["table"]["centre"] = str(int(data["mechanisms"][0]["table"]["centre"]) + 1)
    found = run(place, json.dumps(data))
    assert found.returncode == 1
    assert "add up" in found.stdout


@pytest.mark.parametrize(
    "text", ["", "[]", "{}", '{"document": "release certificate"}', '{"document": 1, "document": 2}']
)
def test_what_is_no_document_is_bad_input(place, text):
    found = run(place, text)
    assert found.returncode == 2
    assert found.stderr.startswith("check: ")
    assert "Traceback" not in found.stderr


def test_no_name_stands_twice_in_the_one_file():
    names = [name for node in ast.parse(standalone()).body for name in _defined(node)]
    assert sorted(names) == sorted(set(names))


def _defined(node):
    if isinstance(node, ast.FunctionDef | ast.ClassDef):
        return [node.name]
    targets = node.targets if isinstance(node, ast.Assign) else [node.target] if isinstance(node, ast.AnnAssign) else []
    return [found.id for target in targets for found in ast.walk(target) if isinstance(found, ast.Name)]
