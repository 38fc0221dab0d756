"""Jobs on all rows: each row exactly once on every engine, whole or not at all, in little memory, without a leak."""

from __future__ import annotations

import subprocess
import sys
import traceback
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.tables.every_engine import spark
from tightrope.errors import EngineError, InputError, SchemaError, TightropeError
from tightrope.tables import Table, open_source, sum_over_batches, write_columns
from tightrope.tables.files import _publish_file, atomic_parquet_file

Opened = Callable[[pa.Table], Table]
PRIVATE = "Anna Schmidt"
ROWS = 30_000
PEOPLE = pa.table(
    {
        "id": pa.array(range(ROWS), pa.int64()),
        "small": pa.array([i % 5 for i in range(ROWS)], pa.uint8()),
        "name": [None if i % 11 == 0 else f"n{i % 7}" for i in range(ROWS)],
    }
)
DOUBLED = pa.schema([("twice", pa.uint32())])


def double(batch: Any) -> Any:
    return pa.record_batch([pa.array(2 * batch.column(0).to_numpy(), pa.uint32())], schema=DOUBLED)


def ones(batch: Any) -> Any:
    return np.bincount(batch.column(0).to_numpy(), minlength=8).astype(np.int64)


def fail(_: Any) -> Any:
    raise ValueError(PRIVATE)


@dataclass(frozen=True, slots=True)
class Recorded:
    """Work that remembers what it was given."""

    sizes: list[int]
    columns: set[str]

    def __call__(self, batch: Any) -> Any:
        self.sizes.append(len(batch))
        self.columns.update(batch.schema.names)
        return double(batch)


def test_each_row_is_written_once_with_what_is_kept_beside_it(opened: Opened, tmp_path: Path) -> None:
    assert (
        write_columns(opened(PEOPLE), ["id"], double, DOUBLED, tmp_path / "out.parquet", keep=["name", "small"]) == ROWS
    )
    back = pq.read_table(tmp_path / "out.parquet").sort_by("twice")
    assert back.column_names == ["twice", "name", "small"]
    assert back["twice"].to_pylist() == list(range(0, 2 * ROWS, 2))
    assert back["name"].to_pylist() == PEOPLE["name"].to_pylist()
    assert back["small"].to_pylist() == PEOPLE["small"].to_pylist()
    assert open_source(tmp_path / "out.parquet").schema.column_names == ("twice", "name", "small")


def test_totals_are_exact(opened: Opened) -> None:
    assert sum_over_batches(opened(PEOPLE), ["small"], ones, 8).tolist() == [ROWS // 5] * 5 + [0] * 3
    empty = PEOPLE.slice(0, 0)
    assert sum_over_batches(opened(empty), ["small"], ones, 8).tolist() == [0] * 8


def test_no_rows_are_a_table_too(opened: Opened, tmp_path: Path) -> None:
    assert write_columns(opened(PEOPLE.slice(0, 0)), ["id"], double, DOUBLED, tmp_path / "out.parquet") == 0
    assert open_source(tmp_path / "out.parquet").schema.column_names == ("twice",)


def test_a_failure_leaves_nothing_and_says_nothing(opened: Opened, tmp_path: Path) -> None:
    table = opened(PEOPLE)
    before = set(tmp_path.iterdir())
    for attempt in (
        lambda: write_columns(table, ["id"], fail, DOUBLED, tmp_path / "out.parquet"),
        lambda: sum_over_batches(table, ["id"], fail, 3),
    ):
        with pytest.raises(EngineError) as failure:
            attempt()
        assert PRIVATE not in "".join(traceback.format_exception(failure.value))
        assert failure.value.__context__ is None
    assert set(tmp_path.iterdir()) == before


@pytest.mark.parametrize(
    "broken",
    [
        lambda batch: batch,
        lambda batch: double(batch).slice(1),
        lambda batch: double(batch).rename_columns(["other"]),
    ],
)
def test_work_that_breaks_its_promise_is_refused(broken: Any, tmp_path: Path) -> None:
    with pytest.raises(EngineError, match="promised"):
        write_columns(open_source(PEOPLE), ["id"], broken, DOUBLED, tmp_path / "out.parquet")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("broken", [lambda _: np.zeros(3), lambda _: np.zeros(4, np.int64), lambda _: np.int64(1)])
def test_totals_that_break_their_promise_are_refused(broken: Any) -> None:
    with pytest.raises(TightropeError):
        sum_over_batches(open_source(PEOPLE), ["id"], broken, 3)


def test_work_sees_its_columns_and_no_more_rows_than_it_can_bear(tmp_path: Path) -> None:
    work, told = Recorded([], set()), []
    table = open_source(PEOPLE)
    write_columns(
        table, ["id"], work, DOUBLED, tmp_path / "out.parquet", keep=["name"], rows=1000, progress=told.append
    )
    assert work.columns == {"id"}
    assert max(work.sizes) <= 1000
    assert sum(work.sizes) == ROWS
    assert told == np.cumsum(work.sizes).tolist()


def test_a_task_sends_spark_its_progress_once(tmp_path: Path) -> None:
    told: list[int] = []
    frame = spark().createDataFrame(PEOPLE.select(["id"]))
    write_columns(open_source(frame), ["id"], double, DOUBLED, tmp_path / "out", progress=told.append)
    assert told == [ROWS]


def test_what_exists_is_never_overwritten(opened: Opened, tmp_path: Path) -> None:
    path = tmp_path / "out.parquet"
    path.write_text("precious")
    with pytest.raises(InputError, match="does not exist yet"):
        write_columns(opened(PEOPLE), ["id"], double, DOUBLED, path)
    assert path.read_text() == "precious"


def test_what_appears_meanwhile_is_not_overwritten(tmp_path: Path) -> None:
    path = tmp_path / "out.parquet"

    def late(batch: Any) -> Any:
        path.write_text("precious")
        return double(batch)

    with pytest.raises(InputError, match="does not exist yet"):
        write_columns(open_source(PEOPLE), ["id"], late, DOUBLED, path)
    assert path.read_text() == "precious"
    assert list(tmp_path.iterdir()) == [path]


def test_a_file_system_without_links(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def link(*_: Any) -> None:
        raise PermissionError

    monkeypatch.setattr("tightrope.tables.files.os.link", link)
    path = tmp_path / "out.parquet"
    assert write_columns(open_source(PEOPLE), ["id"], double, DOUBLED, path) == ROWS == pq.read_metadata(path).num_rows
    with pytest.raises(InputError, match="does not exist yet"):
        _publish_file(path, path)
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.parametrize("sizes", [[10, 10], [7, 1, 12], [20], [1] * 20, []])
def test_row_groups_say_nothing_of_batches(sizes: list[int], tmp_path: Path) -> None:
    schema = pa.schema([("id", pa.int64())])
    with atomic_parquet_file(tmp_path / "out.parquet", schema, 8) as groups:
        for start, size in zip(np.cumsum([0, *sizes]), sizes, strict=False):
            groups.add_batch(pa.record_batch([pa.array(range(start, start + size), pa.int64())], schema=schema))
    found = pq.ParquetFile(tmp_path / "out.parquet")
    assert [found.metadata.row_group(i).num_rows for i in range(found.num_row_groups)] == [8, 8, 4][: 3 * bool(sizes)]
    assert found.read()["id"].to_pylist() == list(range(sum(sizes)))


def test_names_that_differ_in_capitals() -> None:
    """Engines take them for one."""
    with pytest.raises(SchemaError, match="upper and lower case"):
        open_source(pa.table({"id": pa.array([1, 2]), "ID": pa.array([30, 40])}))


@pytest.mark.parametrize(
    ("columns", "keep", "place", "says"),
    [
        (["idd"], [], "o.parquet", "did you mean 'id'"),
        (["id"], ["nme"], "o.parquet", "did you mean 'name'"),
        ([], [], "o.parquet", "at least one column"),
        (["id"], ["name", "name"], "o.parquet", "unlike each other"),
        (["id"], [], "o.csv", "something.parquet"),
        (["id"], [], "nowhere/o.parquet", "make the folder first"),
    ],
)
def test_requests_that_are_refused(columns: list[str], keep: list[str], place: str, says: str, tmp_path: Path) -> None:
    with pytest.raises(InputError, match=says):
        write_columns(open_source(PEOPLE), columns, double, DOUBLED, tmp_path / place, keep=keep)
    assert list(tmp_path.iterdir()) == []


def test_a_kept_column_may_not_hide_the_result(tmp_path: Path) -> None:
    clash = PEOPLE.rename_columns(["id", "Twice", "name"])
    with pytest.raises(InputError, match="unlike each other"):
        write_columns(open_source(clash), ["id"], double, DOUBLED, tmp_path / "out.parquet", keep=["Twice"])


def test_interrupting_leaves_nothing(tmp_path: Path) -> None:
    def interrupt(_: int) -> None:
        raise KeyboardInterrupt

    table = open_source(PEOPLE)
    with pytest.raises(KeyboardInterrupt):
        write_columns(table, ["id"], double, DOUBLED, tmp_path / "out.parquet", rows=1000, progress=interrupt)
    assert list(tmp_path.iterdir()) == []
    assert write_columns(table, ["id"], double, DOUBLED, tmp_path / "out.parquet") == ROWS  # the table still works


def test_csv_and_filtered_expressions_are_streamed(tmp_path: Path) -> None:
    (tmp_path / "people.csv").write_text("age,name\n1,a\noops,b\n3,c\n")
    table = open_source(tmp_path / "people.csv", types={"age": "integer"})
    seen = Counter[Any]()

    def count(batch: Any) -> Any:
        seen.update(batch.column(0).to_pylist())
        return np.array([len(batch)], dtype=np.int64)

    assert sum_over_batches(table, ["age"], count, 1).tolist() == [3]
    assert seen == {1: 1, None: 1, 3: 1}


def test_spark_must_not_speculate(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    session = spark()
    table = open_source(session.createDataFrame(PEOPLE.select(["id"])))
    monkeypatch.setattr(type(session.conf), "get", lambda _, key, default=None: {"spark.speculation": "true"}[key])
    with pytest.raises(InputError, match=r"spark\.speculation to be false"):
        write_columns(table, ["id"], double, DOUBLED, tmp_path / "out")
    assert list(tmp_path.iterdir()) == []


def test_folders_that_are_no_table(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"folder of \.parquet parts"):
        open_source(tmp_path)
    pq.write_table(PEOPLE, tmp_path / "part-0.parquet")
    pq.write_table(PEOPLE, tmp_path / "part-1.parquet")
    assert sum_over_batches(open_source(tmp_path), ["small"], ones, 8).sum() == 2 * ROWS
    (tmp_path / "_temporary").mkdir()
    with pytest.raises(InputError, match="all written"):
        open_source(tmp_path)


def test_a_missing_spark_names_its_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    from tightrope.tables.engine_calls import load_library

    monkeypatch.setitem(sys.modules, "pyspark", None)
    with pytest.raises(ImportError, match=r"tightrope\[spark\]"):
        load_library("pyspark", "spark")


def test_schema_error_for_a_column_that_is_not_there(opened: Opened) -> None:
    with pytest.raises(SchemaError, match="did you mean"):
        sum_over_batches(opened(PEOPLE), ["smal"], ones, 8)


MEASURED = """
import sys
from pathlib import Path
import numpy as np, pyarrow as pa
from tightrope.tables import sum_over_batches, open_source, write_columns

schema = pa.schema([("twice", pa.int64())])
table = open_source(sys.argv[1])
peak = lambda: int(Path("/proc/self/status").read_text().split("VmHWM:")[1].split()[0]) >> 10  # not the parent's
work = lambda batch: pa.record_batch([pa.array(2 * batch.column(0).to_numpy())], schema=schema)
sum_over_batches(table, ["id"], lambda batch: np.array([len(batch)]), 1, rows=1 << 12)
rows = write_columns(table, ["id"], work, schema, sys.argv[2], rows=1 << 17)
print(rows, sum_over_batches(open_source(sys.argv[2]), ["twice"], lambda batch: np.array([len(batch)]), 1)[0], peak())
"""


@pytest.mark.slow
@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="peak memory is read as Linux tells it")
def test_memory_does_not_grow_with_the_table(tmp_path: Path) -> None:
    """Half a gigabyte of numbers passes through a process that needs 290 MB, however many they are."""
    import duckdb

    rows, path = 60_000_000, tmp_path / "many.parquet"
    duckdb.sql(f"COPY (SELECT range AS id FROM range({rows})) TO '{path}'")
    arguments = [sys.executable, "-c", MEASURED, str(path), str(tmp_path / "out.parquet")]
    ran = subprocess.run(arguments, capture_output=True, text=True, check=True)
    wrote, read, peak = map(int, ran.stdout.split())
    assert wrote == read == rows
    assert peak < 400


def test_pandas_on_spark_is_told_how_to_be_a_spark_frame() -> None:
    class Frame:
        pass

    Frame.__module__, Frame.__qualname__, Frame.__name__ = "pyspark.pandas.to_pandas()", "DataFrame", "DataFrame"
    with pytest.raises(InputError, match=r"to_spark\(\)"):
        open_source(Frame())
