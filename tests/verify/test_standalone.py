"""The verifier as one file, in an environment that has flint and nothing of ours."""

from __future__ import annotations

import ast
import importlib.util
import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.verify.test_answers import released
from tests.verify.written import account, coupling, ledger, noise, partial_coupling, release, training
from tightrope.verify.check import check_document, verdict_text
from tightrope.verify.standalone import standalone_text

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
    (folder / "check.py").write_text(standalone_text(), encoding="utf-8")
    (folder / "only").mkdir()
    packages = Path(importlib.util.find_spec("flint").origin).parents[1]
    for found in [packages / "flint", *packages.glob("python_flint*")]:
        (folder / "only" / found.name).symlink_to(found)
    return folder


def run(place, text, check="check.py"):
    (place / "document.json").write_text(text, encoding="utf-8")
    command = [sys.executable, "-I", "-S", "-c", f"import importlib.util{ALONE}"]
    return subprocess.run(
        [*command, place / "only", place / check, place / "document.json"],
        capture_output=True,
        text=True,
        check=False,
    )


def test_it_says_the_same_of_a_release(place):
    found = run(place, release("cells"))
    assert found.stderr == ""
    assert (found.returncode, found.stdout) == (0, verdict_text(check_document(release("cells"))) + "\n")


ALONE_LINES = {
    "release": (lambda: release("cells"), 1940),
    "noise": (lambda: noise("a dual"), 1160),
    "account": (lambda: account("finite"), 1050),
    "coupling": (coupling, 680),
    "partial coupling": (partial_coupling, 715),
    "ledger": (ledger, 590),
    "result": (lambda: released("each row a person"), 2235),
    "joint noise": (lambda: release("a box without delta"), 2010),
    "training": (training, 1000),
}  # fmt: skip


@pytest.mark.parametrize("kind", ALONE_LINES)
def test_for_one_document_it_is_shorter_and_says_the_same(place, kind, monkeypatch):
    document, most = ALONE_LINES[kind]
    text = document()
    source = standalone_text(text)
    assert len(source.split("\n")) <= most
    if kind == "account":  # one grid that confirms it: finer ones take a while
        source = source.replace("ACCOUNT_GRID_EXPONENTS = (6, 8, 10, 12)", "ACCOUNT_GRID_EXPONENTS = (8,)")
        monkeypatch.setattr("tightrope.verify.accounts.ACCOUNT_GRID_EXPONENTS", (8,))
    (place / "short.py").write_text(source, encoding="utf-8")
    found = run(place, text, "short.py")
    assert (found.stderr, found.returncode, found.stdout) == ("", 0, verdict_text(check_document(text)) + "\n")


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"document": "release certificate"}', "[" * 100_000])
def test_there_is_none_for_what_is_no_document(text):
    with pytest.raises(ValueError):
        standalone_text(text)


def test_it_refutes_what_was_altered(place):
    data = json.loads(release("cells"))
    data["tables"][0]["center"] = f"{int(data['tables'][0]['center'], 16) + 1:x}"
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
    names = [name for node in ast.parse(standalone_text()).body for name in _defined(node)]
    assert sorted(names) == sorted(set(names))


def _defined(node):
    if isinstance(node, ast.FunctionDef | ast.ClassDef):
        return [node.name]
    targets = node.targets if isinstance(node, ast.Assign) else [node.target] if isinstance(node, ast.AnnAssign) else []
    return [found.id for target in targets for found in ast.walk(target) if isinstance(found, ast.Name)]


def test_a_verifier_for_plain_couplings_does_not_confirm_a_partial_one(place):
    (place / "plain.py").write_text(standalone_text(coupling()), encoding="utf-8")
    found = run(place, partial_coupling(), "plain.py")
    assert found.returncode != 0
    assert "CONFIRMED" not in found.stdout
