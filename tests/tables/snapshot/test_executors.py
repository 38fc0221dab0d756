"""Several executors, each a process of its own: the same integers as here, and no row lost in silence."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.tables.several_executors import EXECUTORS, PRIVATE, REQUESTS, ROWS

HOME = Path(__file__).parents[3]


@pytest.mark.slow
def test_three_executors_count_what_one_process_counts_and_lose_no_row_in_silence():
    if shutil.which("java") is None:
        pytest.skip("Spark needs Java")
    pytest.importorskip("pyspark.sql", reason="Spark is an extra")
    command = [sys.executable, "-m", "tests.tables.several_executors"]
    done = subprocess.run(command, cwd=HOME, capture_output=True, text=True, timeout=600, check=False)
    assert done.returncode == 0, done.stderr[-2000:]
    said = json.loads(done.stdout.splitlines()[-1])
    assert said["executors"] == EXECUTORS
    assert said["same"] == [True] * len(REQUESTS)
    assert said["folded"]
    assert said["written"] == ROWS
    assert said["workers"] > 1, "one process did all the work"
    assert said["lost"].startswith("EngineError: the engine failed to")
    assert PRIVATE not in said["lost"]
