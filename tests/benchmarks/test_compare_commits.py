"""Two checkouts compared: rounds alternate, the worst ratios come first, and a script that fails is reported."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"
SCRIPT = """
import json, pathlib, sys
log = pathlib.Path({log!r})
log.write_text((log.read_text() if log.exists() else "") + {name!r} + " ")
names = ("ours", "job", "measured", "larger_is_better")
lines = [dict(zip(names, line)) for line in {lines!r}]
pathlib.Path(sys.argv[-1]).write_text(json.dumps(dict(lines=lines, notes=[])))
if {code}:
    sys.exit("the worker failed")
"""


@pytest.fixture
def run_comparison(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> object:
    """Run the script on two folders with the lines (number, job, measured, larger is better)."""
    monkeypatch.syspath_prepend(str(BENCHMARKS))
    import compare_commits

    def run(old: list[object], new: list[object], *options: str, code: int = 0) -> tuple[int, str, str]:
        log = tmp_path / "log"
        for name, lines in (("old", old), ("new", new)):
            (tmp_path / name / "benchmarks").mkdir(parents=True, exist_ok=True)
            text = SCRIPT.format(log=str(log), name=name, lines=lines, code=code if name == "new" else 0)
            (tmp_path / name / "benchmarks" / "ledger.py").write_text(text)
        arguments = [str(tmp_path / "old"), str(tmp_path / "new"), "ledger", *options]
        monkeypatch.setattr(sys, "argv", ["compare_commits.py", *arguments])
        status = compare_commits.main()
        return status, capsys.readouterr().out, log.read_text()

    return run


def test_the_worst_ratios_come_first(run_comparison: object) -> None:
    old = [(2.0, "a", "CPU s", False), (4.0, "b", "rows a s", True), (1.0, "c", "CPU s", False), (1.0, "d", "s", False)]
    new = [(3.0, "a", "CPU s", False), (1.0, "b", "rows a s", True), (0.5, "c", "CPU s", False), (1.0, "e", "s", False)]
    status, output, order = run_comparison(old, new, "--rounds", "3")
    rows = [line.split() for line in output.splitlines() if ": " in line]
    assert status == 0
    assert [row[2:4] for row in rows[:3]] == [["0.250", "b:"], ["1.500", "a:"], ["0.500", "c:"]]
    assert output.endswith("only in old: d: s\nonly in new: e: s\n")
    assert order == "old new new old old new "


def test_a_script_that_fails_is_an_error(run_comparison: object) -> None:
    line = (1.0, "a", "CPU s", False)
    status, output, _ = run_comparison([line], [line], "--rounds", "1", code=1)
    assert status == 1
    assert "FAILED" in output and "the worker failed" in output
