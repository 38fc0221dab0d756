"""Nobody decides by being there whether a release runs out of memory: the answer or the refusal is the same.

``TIGHTROPE_MEMORY_ATTACKS=10`` makes that many repetitions, each in a process of its own, with known persons of 4,000
rows who fill the memory.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections import defaultdict
from pathlib import Path

import pytest

from tests.redteam.memory_attacks import ATTACKS

REPETITIONS = int(os.environ.get("TIGHTROPE_MEMORY_ATTACKS", "1"))
KNOWN = 4_000 if REPETITIONS > 1 else 60


def tried(engine: str, names: list[str]) -> dict[str, dict[bool, list[str]]]:
    """What became of each attack, without and with the target."""
    outcomes: dict[str, dict[bool, list[str]]] = defaultdict(lambda: defaultdict(list))
    command = [sys.executable, "-m", "tests.redteam.memory_attacks", engine, str(KNOWN), *names]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    for _ in range(REPETITIONS):
        here = Path(__file__).parents[2]
        run = subprocess.run(command, cwd=here, env=environment, capture_output=True, text=True, check=False)
        assert run.returncode == 0, run.stderr
        for line in filter(lambda line: line.startswith("["), run.stdout.splitlines()):
            name, there, became = json.loads(line)
            outcomes[name][there].append(became)
    return outcomes


@pytest.mark.parametrize("engine", ["parquet", "postgres", "spark"])
def test_what_becomes_of_an_attack_does_not_tell_whether_the_target_is_there(engine: str) -> None:
    if engine == "postgres":
        pytest.importorskip("psycopg")
    if engine == "spark":
        pytest.importorskip("pyspark")
        if REPETITIONS == 1:
            pytest.skip("minutes on Spark: TIGHTROPE_MEMORY_ATTACKS=10")
    names = list(ATTACKS)
    outcomes = tried(engine, names)
    assert list(outcomes) == names
    for name, became in outcomes.items():
        assert became[False] == became[True], name
        assert len(became[True]) == REPETITIONS
        expected = "answered" if "16" in name else "refused when planned"
        assert all(text.startswith(expected) for text in became[True]), name
