"""A small table with its plans, and the command line as a function."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pyarrow
import pyarrow.parquet
import pytest
from typer.testing import CliRunner

from tightrope.cli.main import app

PLAN = """
title = "Visits"
[source]
path = "visits.parquet"
[privacy_unit]
column = "user"
max_rows = 3
[budget]
epsilon = 1
delta = 1e-6
[[question]]
kind = "count"
by = "city"
[[question]]
kind = "mean"
column = "age"
bounds = [0, 100]
by = "member"
keys = [false, true]
name = "age"
"""
CITIES = ["Oslo", "Rome", "\x1b[2JEvil", "Łódź"] + [f"City {i:02d}" for i in range(26)]


class Outcome:
    """What a run of the command line left behind."""

    def __init__(self, code: int, out: str, err: str) -> None:
        self.code, self.out, self.err = code, out, err

    def refused_with(self, *words: str, code: int = 2) -> None:
        """Exactly one line on standard error that holds the words, nothing on standard output."""
        assert (self.code, self.out) == (code, ""), (self.code, self.out, self.err)
        assert self.err.startswith("tightrope: ")
        assert self.err.count("\n") == 1
        assert self.err.endswith("\n")
        assert "Traceback" not in self.err
        for word in words:
            assert word in self.err, self.err


@pytest.fixture
def run(planned_once: None) -> Callable[..., Outcome]:
    def _run(*words: object) -> Outcome:
        result = CliRunner().invoke(app, [str(word) for word in words])
        return Outcome(result.exit_code, result.stdout, result.stderr)

    return _run


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder with visits.parquet and plan.toml."""
    rows = [(i // 2, CITIES[i % len(CITIES)], 20 + i % 50, i % 3 == 0) for i in range(9_000)]
    users, cities, ages, members = map(list, zip(*rows, strict=True))
    table = pyarrow.table({"user": users, "city": cities, "age": ages, "member": members})
    pyarrow.parquet.write_table(table, tmp_path / "visits.parquet")
    (tmp_path / "plan.toml").write_text(PLAN, encoding="utf-8")
    return tmp_path
