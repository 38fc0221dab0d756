"""Names of folders and files below a given path hold values of the data: no error repeats one."""

from __future__ import annotations

import shutil
import traceback
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import tightrope as tr
from tests.engines.questions import ask
from tightrope.engines import is_there, open_source
from tightrope.errors import TightropeError

PRIVATE = "Anna Schmidt (HIV)"


def write(path: Path, **columns: list[object]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    pq.write_table(pa.table(columns), path)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for name in (PRIVATE, "b", "c"):
        write(tmp_path / "d" / f"patient={name}" / f"{name}.parquet", v=[1, 2])
    return tmp_path / "d"


def private(folder: Path) -> Path:
    return folder / f"patient={PRIVATE}" / f"{PRIVATE}.parquet"


def another_column(folder: Path) -> None:
    write(private(folder), v=[1], w=[2])


def no_parquet(folder: Path) -> None:
    private(folder).write_text(PRIVATE)


def broken(folder: Path) -> None:
    private(folder).write_text("PAR1" + PRIVATE)


def stray_folder(folder: Path) -> None:
    write(folder / PRIVATE / "a.parquet", v=[1])


def deeper_folder(folder: Path) -> None:
    write(folder / "patient=b" / f"{PRIVATE}=1" / "a.parquet", v=[1])


def twice(folder: Path) -> None:
    for part in folder.glob("*/*.parquet"):
        write(part.parent / "PATIENT=1" / f"{PRIVATE}.parquet", v=[1])
        part.unlink()


def gone(folder: Path) -> None:
    shutil.rmtree(private(folder).parent)


def nothing(_: Path) -> None:
    pass


def unreadable(path: Path) -> bool:
    raise PermissionError(13, "Permission denied", str(path) + PRIVATE)


def refusal(asked: Callable[[], object]) -> TightropeError:
    with pytest.raises(TightropeError) as failure:
        asked()
    said = "".join(traceback.format_exception(failure.value)) + repr(vars(failure.value)) + repr(failure.value)
    assert "Anna" not in said
    return failure.value


@pytest.mark.parametrize("pattern", ["", "*/*.parquet", "**/*.parquet"])
@pytest.mark.parametrize("wrong", [another_column, no_parquet, broken, stray_folder, deeper_folder, twice])
def test_no_error_of_opening_names_a_part(folder, pattern, wrong):
    wrong(folder)
    if pattern and wrong in (deeper_folder, twice):
        pattern = "**/*.parquet"
    refusal(lambda: open_source(folder / pattern if pattern else folder))


@pytest.mark.parametrize("changed", [another_column, no_parquet, gone])
def test_no_error_of_reading_names_a_part(folder, changed):
    session = tr.Session(folder, person="patient", rows_per_person=2, budget=tr.Budget(epsilon=1, delta=1e-8))
    plan = session.plan([tr.count()])
    changed(folder)
    error = refusal(plan.release)
    assert "part 1 of 3 has changed since" in str(error)
    assert str(folder) in str(error)


@pytest.mark.parametrize("call", ["is_file", "exists", "glob", "rglob"])
def test_what_may_not_be_read_is_not_named(folder, call, monkeypatch):
    table, opened = open_source(folder), (lambda: open_source(folder), lambda: open_source(folder / "*" / "*.parquet"))
    pattern = folder / "*" / "*.parquet"
    real = getattr(Path, call)

    def refused(path: Path, *given: object) -> object:
        return unreadable(path) if path == folder or folder in path.parents else real(path, *given)

    monkeypatch.setattr(Path, call, refused)
    for asked in (*opened, lambda: table.collect(ask()), lambda: is_there(pattern)):
        try:
            asked()
        except TightropeError as error:
            assert "Anna" not in "".join(traceback.format_exception(error))
            assert error.__context__ is None


def test_which_part_it_is_is_said(folder):
    no_parquet(folder)
    assert "part 1 of 3" in str(refusal(lambda: open_source(folder)))
    another_column(folder)
    assert "parts 1 and 2 of 3" in str(refusal(lambda: open_source(folder)))
