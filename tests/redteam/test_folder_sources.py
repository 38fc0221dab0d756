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
from tests.tables.questions import ask
from tightrope.errors import TightropeError
from tightrope.tables import open_source, path_exists

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
    session = tr.Session(folder, privacy_unit="patient", max_rows=2, budget=tr.Budget(epsilon=1, delta=1e-8))
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
    for asked in (*opened, lambda: table.collect_totals(ask()), lambda: path_exists(pattern)):
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


def answered(folder: Path, **said: object) -> str:
    """Whether a release comes, or why not."""
    try:
        budget = tr.Budget(epsilon=1, delta=1e-8)
        session = tr.Session(folder, privacy_unit="patient", max_rows=2, budget=budget, **said)  # type: ignore[arg-type]
        session.plan([tr.count(), tr.sum("v", bounds=(0, 3)), tr.count(by="w")]).release()
    except TightropeError as error:
        return str(error).replace(str(folder), "folder")
    return "answered"


@pytest.mark.parametrize("new", ["0", "new"])
@pytest.mark.parametrize("missing", ["v", "w", "vw"])
def test_a_person_alone_in_a_file_with_nothing_in_a_column_stops_nobody(tmp_path: Path, new: str, missing: str):
    """Their file has no type for it, where the writer looks at the values: first or last, it takes that of the rest.

    A release that was refused said, for nothing, that somebody's values are all missing.
    """
    for name in "12":
        write(tmp_path / f"patient={name}" / "a.parquet", v=[1.5, 2.0], w=["a", "b"])
    assert answered(tmp_path) == "answered"
    own = {"v": [1.5, 2.0], "w": ["a", "b"]}
    write(tmp_path / f"patient={new}" / "a.parquet", **{n: [None] * 2 if n in missing else v for n, v in own.items()})
    table = open_source(tmp_path)
    assert [(column.name, column.kind) for column in table.schema.columns][:2] == [("v", "number"), ("w", "text")]
    assert answered(tmp_path) == "answered"


@pytest.mark.parametrize("kind", ["integer", "number", "date", "timestamp", "boolean", "text"])
def test_no_name_of_a_folder_stops_a_release(tmp_path: Path, kind: str):
    """A name of the wrong kind is a missing person, whatever one brings."""
    for name in ("1", "2"):
        write(tmp_path / f"patient={name}" / "a.parquet", v=[1.5, 2.0], w=["a", "b"])
    before = answered(tmp_path, types={"patient": kind})
    for name in ("x", "1.5", "9" * 20, "", "%20 1", "1e999", "nan", "0000-01-01", "2024-02-30", "9999-12-31T23:59:59.9",
                 "TRUE", "%FF%FE", "a%00b", "_x", ".x", "=", "%2F"):  # fmt: skip
        write(tmp_path / f"patient={name}" / "a.parquet", v=[1.5, 2.0], w=["a", "b"])
    assert before == answered(tmp_path, types={"patient": kind}) == "answered"
