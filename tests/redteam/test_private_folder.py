"""What lies on disk: in a folder of ours, locked while we live, gone when we leave or when the next one comes."""

from __future__ import annotations

import os
import stat
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pyarrow as pa

from tests.tables.questions import ask, per_person
from tightrope.tables import files, open_source
from tightrope.tables.backends import duckdb as facts

HOLD = "from tightrope.tables.files import spill_folder; print(spill_folder().parent, flush=True); "


WAIT = "import time; time.sleep(60)"
FORK = "import os, sys; child = os.fork(); sys.exit() if child == 0 else os.waitpid(child, 0); print(1, flush=True); "


@contextmanager
def started(folder: Path, code: str) -> Iterator[tuple[subprocess.Popen[str], Path]]:
    """A process that has a folder of ours and then runs the code."""
    command = [sys.executable, "-c", HOLD + code]
    env = {**os.environ, "TMPDIR": str(folder), "PYTHONPATH": os.pathsep.join(sys.path)}
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.DEVNULL}
    with subprocess.Popen(command, env=env, text=True, **pipes) as process:
        assert process.stdout is not None
        yield process, Path(process.stdout.readline().strip())
        process.kill()


def test_the_folder_is_ours_alone_and_goes_with_the_process(tmp_path):
    with started(tmp_path, WAIT) as (_, ours):
        assert ours.parent == tmp_path
        assert stat.S_IMODE(ours.stat().st_mode) == 0o700
        assert stat.S_IMODE((ours / "lock").stat().st_mode) == 0o600
    interrupted = "import os, signal; signal.signal(signal.SIGINT, signal.default_int_handler); os.kill(os.getpid(), 2)"
    for code in ("pass", "raise SystemExit(3)", "1 / 0", interrupted):
        with started(tmp_path, code) as (process, ours):
            process.wait()
            assert not ours.exists()


def test_the_next_run_removes_what_a_killed_one_left_and_nothing_else(tmp_path):
    strange, linked = tmp_path / "tightrope-of-somebody", tmp_path / "tightrope-link"
    strange.mkdir()
    linked.symlink_to(strange)
    with started(tmp_path, WAIT) as (_, left):
        (left / "rows.tmp").write_text("private")
    assert left.exists()  # it was killed
    with started(tmp_path, WAIT) as (_, held), started(tmp_path, "pass") as (process, _):
        process.wait()
        assert not left.exists()
        assert held.exists()
    assert strange.exists()
    assert linked.is_symlink()


def test_a_forked_child_leaves_its_parents_folder_alone(tmp_path):
    with started(tmp_path, FORK + WAIT) as (process, ours):
        assert process.stdout is not None
        assert process.stdout.readline() == "1\n"
        assert ours.exists()


def test_what_spills_is_ours_alone_and_gone_when_the_answer_is_there(monkeypatch):
    monkeypatch.setattr(facts, "MEMORY_LIMIT", "60MB")
    ours, many = files.spill_folder().parent, 3_000_000
    texts = pa.array(["Anna Schmidt lives here", "another place that is long"]).take(pa.array(np.arange(many) % 2))
    request = ask("k", bounds=per_person(1))
    with open_source(pa.table({"person": np.arange(many) // 2, "k": texts})).open_snapshot([request]) as rows:
        assert spilled(ours)
        assert stat.S_IMODE(ours.stat().st_mode) == 0o700
        assert sum(rows.collect_totals(ask("k")).values["rows"]) == many
    assert not spilled(ours)


def spilled(folder: Path) -> list[Path]:
    return [path for path in folder.rglob("*") if path.is_file() and path.name != "lock"]


def test_no_file_is_written_beside_the_users(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert open_source(pa.table({"k": ["a"]})).collect_totals(ask("k")).values["rows"] == (1,)
    assert list(tmp_path.iterdir()) == []
    assert Path(tempfile.gettempdir()) in files.spill_folder().parents
