"""Whatever stops ``tightrope release``, wherever: nothing that was charged is lost, and no file is half-written."""

from __future__ import annotations

import errno
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tightrope.cli.output_files import FILE_ROOM, reserve_files
from tightrope.ledger import Ledger
from tightrope.ledger.check import check_ledger

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not sys.platform.startswith("linux"), reason="a full disk is made by a limit of Linux"),
]
FILES = ("result.json", "certificate.json", "results.csv", "results.parquet", "report.html")
BEFORE, AFTER = (8, 22) if os.environ.get("TIGHTROPE_FAULTS") else (3, 8)
FAULTS = ("kill", "term", "int", "full", "kill", "pipe")


class Faulty:
    """A program that forks one release after another; what each left behind."""

    def __init__(self, plan: Path, folder: Path) -> None:
        driver = Path(__file__).with_name("faulty_release.py")
        command = [sys.executable, "-W", "ignore", str(driver), str(plan)]
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.folder = folder

    def run(self, fault: str, point: int) -> dict[str, Any]:
        out = self.folder / f"{fault}-{point}"
        assert self.process.stdin and self.process.stdout
        self.process.stdin.write(f"{fault} {point} {out}\n")
        self.process.stdin.flush()
        found: dict[str, Any] = json.loads(self.process.stdout.readline())
        left = sorted(path.name for path in out.iterdir()) if out.exists() else []
        return {**found, "folder": out, "left": left, "charged": "charged" in found["marks"]}


@pytest.fixture
def faulty(folder: Path, tmp_path: Path) -> Iterator[Faulty]:
    """Fifty releases are in the budget: each fault meets one that it has."""
    text = (folder / "plan.toml").read_text(encoding="utf-8")
    text = text.replace("epsilon = 1", "epsilon = 50").replace("delta = 1e-6", "delta = 5e-5\nbudget_fraction = 0.02")
    (folder / "plan.toml").write_text(text, encoding="utf-8")
    started = Faulty(folder / "plan.toml", tmp_path)
    yield started
    started.process.communicate(timeout=30)


def points(faulty: Faulty) -> list[tuple[str, int]]:
    """Some points before the charge, most after it, the last ones while it prints; the faults in turn."""
    counted = faulty.run("none", 0)
    assert (counted["code"], counted["left"]) == (0, sorted(FILES))
    _, seen, charged = counted["marks"][-2].split()
    end, charge = int(seen) * 95 // 100, int(charged)  # how often it prints depends on the noise
    chosen = [1 + charge * i // BEFORE for i in range(BEFORE)]
    chosen += [charge + 1 + (end - charge - 1) * i // (AFTER - 1) for i in range(AFTER)]
    return [(FAULTS[i % len(FAULTS)], point) for i, point in enumerate(chosen)]


def complete(found: dict[str, Any]) -> bool:
    """Whether all four files are there, whole and of one release."""
    folder = found["folder"]
    if not set(FILES) <= set(found["left"]):
        return False
    result = json.loads((folder / FILES[0]).read_text(encoding="utf-8"))
    assert json.loads((folder / FILES[1]).read_text(encoding="utf-8")) == result["certificate"]
    assert len((folder / FILES[2]).read_text(encoding="utf-8").splitlines()) > len(result["answers"])
    assert (folder / FILES[3]).read_bytes().endswith(b"PAR1")
    assert (folder / FILES[-1]).read_text(encoding="utf-8").endswith("</html>\n")
    return True


def test_thirty_points(faulty: Faulty, folder: Path) -> None:
    """Thirty of them with TIGHTROPE_FAULTS set, eleven without."""
    for fault, point in points(faulty):
        found = faulty.run(fault, point)
        assert "struck" in found["marks"], (fault, point)
        assert "Traceback" not in found["err"], found["err"]
        CHECKS[fault](found)
    one_charge_for_each_answer(folder / "tightrope.ledger")


def one_charge_for_each_answer(place: Path) -> None:
    """The ledger holds, and a charge without an answer is the last one: every next release took it up."""
    ledger = Ledger(place)
    assert check_ledger(ledger).problems == ()
    keys = {
        kind: [entry.key for entry in ledger.list_entries() if entry.kind == kind] for kind in ("charged", "answered")
    }
    assert set(keys["answered"]) <= set(keys["charged"])
    assert len(keys["charged"]) - len(keys["answered"]) <= 1
    ledger.close()


def killed(found: dict[str, Any]) -> None:
    """Files are whole and appear in their order; nothing is printed before all of them are there."""
    shown = [name for name in FILES if name in found["left"]]
    assert shown == list(FILES[: len(shown)])
    if shown:
        json.loads((found["folder"] / FILES[0]).read_text(encoding="utf-8"))
    assert complete(found) or found["out"] == ""
    assert found["code"] == -9


def stopped(found: dict[str, Any]) -> None:
    """Before the charge there is nothing; after it everything, or the release ran to its end.

    Python drops a Ctrl-C that falls into the clearing up of an object: such a release ends as if nobody had asked.
    """
    if found["code"] == 0:
        assert complete(found)
        return
    assert found["code"] in (130, 143, -15)
    if found["charged"]:
        assert complete(found) and found["left"] == sorted(FILES)
        assert found["code"] == -15 or "complete in" in found["err"] or found["out"]
    else:
        assert found["left"] == [] and found["out"] == ""
        assert found["code"] != 143 or "nothing was spent" in found["err"]


def filled(found: dict[str, Any]) -> None:
    """Before the charge nothing is spent; after it the answers are somewhere, or the failure is paid and says so."""
    if not found["charged"] or "nothing was spent" in found["err"]:
        assert found["left"] == [] and found["code"] in (1, 2) and "nothing was spent" in found["err"]
        return
    if found["code"] == 0:
        assert complete(found)
        return
    assert found["code"] == 1 and "the budget was spent" in found["err"]
    if "nothing was published" in found["err"]:
        assert found["left"] == [] and found["out"] == ""
        return
    if "on standard output" in found["err"]:
        assert json.loads(found["out"])["document"] == "release result"
    else:
        assert "the answers are complete in" in found["err"]
        json.loads((found["folder"] / FILES[0]).read_text(encoding="utf-8"))
    assert not [name for name in found["left"] if name.endswith(".part")]


def unread(found: dict[str, Any]) -> None:
    """Nobody reads: everything is on disk, and the message says where."""
    assert complete(found) and found["left"] == sorted(FILES)
    assert found["code"] == 1 and "the answers are complete in" in found["err"]


CHECKS = {"kill": killed, "term": stopped, "int": stopped, "full": filled, "pipe": unread}


def test_a_killed_release_leaves_nothing_behind_where_files_need_no_name(
    faulty: Faulty, run: Any, folder: Path
) -> None:
    counted = faulty.run("none", 0)
    charge = int(counted["marks"][-2].split()[2])
    found = faulty.run("kill", charge + 5)
    assert found["left"] == []
    assert run("release", folder / "plan.toml", "--out", found["folder"]).code == 0
    assert sorted(path.name for path in found["folder"].iterdir()) == sorted(FILES)


def test_named_parts_that_were_left_behind_are_swept_by_the_next(tmp_path: Path, monkeypatch: Any) -> None:
    """Where the system has no files without a name, parts have a hidden one."""
    monkeypatch.setattr("tightrope.cli.output_files.OPEN_FILES", tmp_path / "nowhere")
    (tmp_path / ".result.json.xyz.part").write_text("left behind")
    with reserve_files(tmp_path, ["result.json"], replace=False) as files:
        (part,) = tmp_path.iterdir()
        assert part.name.endswith(".part") and part.stat().st_size == FILE_ROOM
        files.store_files({"result.json": "{}"})
    assert [path.name for path in tmp_path.iterdir()] == ["result.json"]


def test_a_file_that_cannot_get_its_name_is_written_anew(tmp_path: Path, monkeypatch: Any) -> None:
    def refused(*_: object, **__: object) -> None:
        raise OSError(errno.EPERM, "not permitted")

    monkeypatch.setattr("os.link", refused)
    with reserve_files(tmp_path, ["a", "b"], replace=False) as files:
        assert list(tmp_path.iterdir()) == []
        files.store_files({"a": "first", "b": "second"})
    assert {path.name: path.read_text() for path in tmp_path.iterdir()} == {"a": "first", "b": "second"}
