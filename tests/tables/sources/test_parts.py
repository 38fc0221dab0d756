"""Folders of parts, partitions and patterns: which files are read, and what the names of folders are taken for."""

from __future__ import annotations

import datetime as dt
import os
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import tightrope as tr
from tests.tables.every_engine import spark
from tests.tables.questions import COUNT, ask, mean, per_person
from tightrope.errors import InputError, SchemaError
from tightrope.tables import GroupTotals, open_on_spark, open_source


def write(path: Path, **columns: object) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    pq.write_table(pa.table(columns), path)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    write(tmp_path / "d" / "year=2023" / "city=Oslo" / "a.parquet", person=[1, 2], x=[1.0, 2.0])
    write(tmp_path / "d" / "year=2024" / "city=S%C3%A3o%20Paulo" / "a.parquet", person=[1], x=[3.0])
    write(tmp_path / "d" / "year=1_3" / "city=__HIVE_DEFAULT_PARTITION__" / "b.parquet", person=[3], x=[4.0])
    return tmp_path / "d"


@pytest.mark.parametrize("pattern", ["", "*/*/*.parquet", "**/*.parquet", "year=*/city=*/?.parquet"])
def test_partitions_are_columns_of_text_or_of_declared_kinds(folder, pattern):
    place = folder / pattern if pattern else folder
    table = open_source(place)
    assert [(column.name, column.kind) for column in table.schema.columns] == [
        ("person", "integer"),
        ("x", "number"),
        ("year", "text"),
        ("city", "text"),
    ]
    assert table.collect_totals(ask("year")) == GroupTotals((("1_3",), ("2023",), ("2024",)), {"rows": (1, 2, 1)})
    answer = table.collect_totals(ask("city", bounds=per_person(1), measures=(COUNT, *mean("x"))))
    assert sum(answer.values["rows"]) == 3
    assert open_source(str(place)).collect_totals(ask("city")).keys == ((None,), ("Oslo",), ("São Paulo",))
    typed = open_source(place, types={"year": "integer"})
    assert typed.collect_totals(ask("year")) == GroupTotals(((None,), (2023,), (2024,)), {"rows": (1, 2, 1)})
    assert typed.collect_totals(ask(measures=mean("year", upper=3000))).values == {"usable": (3,), "sum": (6070,)}


def test_a_session_asks_partitions(folder):
    session = tr.Session(folder, privacy_unit="person", max_rows=2, budget=tr.Budget(epsilon=8, delta=1e-3),
                         types={"year": "integer"})  # fmt: skip
    answers = session.plan([tr.count(by="year", keys=[2023, 2024])]).release()
    assert list(answers[0].to_pandas()["year"]) == [2023, 2024]


def test_a_pattern_reads_what_fits_and_nothing_else(tmp_path):
    for name in ("a1", "a2", "b1", "_a3", ".a4"):
        write(tmp_path / f"{name}.parquet", k=[name])
    (tmp_path / "a5.parquet").mkdir()
    assert open_source(tmp_path / "a*.parquet").collect_totals(ask("k")).keys == (("a1",), ("a2",))
    assert open_source(tmp_path / "?1.parquet").collect_totals(ask("k")).keys == (("a1",), ("b1",))
    write(tmp_path / "a[1].parquet", k=["brackets"])
    assert open_source(tmp_path / "a[1].parquet").collect_totals(ask("k")).keys == (("brackets",),)


def test_a_pattern_is_read_as_it_was_when_it_was_opened(tmp_path):
    write(tmp_path / "a.parquet", k=["a"])
    table = open_source(tmp_path / "*.parquet")
    write(tmp_path / "b.parquet", k=["b"])
    assert table.collect_totals(ask("k")).keys == (("a",),)
    write(tmp_path / "a.parquet", k=["another"])
    with pytest.raises(InputError, match="has changed"):
        table.collect_totals(ask("k"))


REFUSED = {
    "another type": {"a/k=1/x.parquet": {"x": [1]}, "a/k=2/x.parquet": {"x": [1.0]}},
    "another column": {"a/k=1/x.parquet": {"x": [1]}, "a/k=2/x.parquet": {"x": [1], "y": [1]}},
    "another partition": {"a/k=1/x.parquet": {"x": [1]}, "a/j=2/x.parquet": {"x": [1]}},
    "another depth": {"a/k=1/x.parquet": {"x": [1]}, "a/x.parquet": {"x": [1]}},
    "another order": {"a/k=1/j=1/x.parquet": {"x": [1]}, "a/j=1/k=1/x.parquet": {"x": [1]}},
    "no column": {"a/2024/x.parquet": {"x": [1]}},
    "a name twice": {"a/X=1/x.parquet": {"x": [1]}},
    "a hidden part with another column": {"a/x.parquet": {"x": [1]}, "a/_x.parquet": {"y": [1]}},
    "a hidden folder": {"a/x.parquet": {"x": [1]}, "a/_delta_log/x.parquet": {"x": [1]}},
    "a list where the folder has a value": {"a/x=1/x.parquet": {"x": [[1]]}},
}


@pytest.mark.parametrize("case", REFUSED)
def test_parts_that_are_not_alike_are_refused(tmp_path, case):
    for name, columns in REFUSED[case].items():
        write(tmp_path / name, **columns)
    with pytest.raises(InputError):
        open_source(tmp_path / "a")


@pytest.mark.parametrize("pattern", ["*.parquet", "**/*.parquet", "*.csv", "*"])
def test_a_pattern_that_nothing_fits_is_refused(tmp_path, pattern):
    (tmp_path / "a.csv").write_text("x\n1\n")
    with pytest.raises(InputError, match="source"):
        open_source(tmp_path / pattern)


def test_types_are_for_partitions_alone(folder):
    with pytest.raises(InputError, match="without a type of its own"):
        open_source(folder, types={"x": "integer"})
    with pytest.raises(SchemaError, match="did you mean 'year'"):
        open_source(folder, types={"yeer": "integer"})


KINDS = {
    "number": (["1e3", "-.5", "inf", "nan", "1_000", " 1", "٣"], {1000.0, -0.5, 1.0, float("inf"), None}),
    "boolean": (["true", "1", "False", "0", "yes"], {True, False, None}),
    "date": (["2024-02-29", "2024-02-30", "24-1-1"], {dt.date(2024, 2, 29), None}),
    "timestamp": (["2024-02-29 01:02:03", "2024-02-29T25:00", "x"], {dt.datetime(2024, 2, 29, 1, 2, 3), None}),
    "integer": (["+5", "9223372036854775808", "1.0", "1.7"], {5, 1, None}),
}


@pytest.mark.parametrize("kind", KINDS)
def test_any_name_of_a_folder_has_its_kind_or_is_missing(tmp_path, kind):
    values, expected = KINDS[kind]
    for value in values:
        write(tmp_path / f"k={value}" / "a.parquet", x=[1])
    found = open_source(tmp_path, types={"k": kind}).collect_totals(ask("k"))
    assert {key for (key,) in found.keys} == expected
    assert sum(found.values["rows"]) == len(values)


MARKERS = ("_SUCCESS", "._SUCCESS.crc", ".a.parquet.crc", "_metadata", "_common_metadata", ".DS_Store", "done")


def test_every_file_of_a_folder_is_read_whatever_it_is_called(tmp_path):
    names = ("a.parquet", "b.PARQUET", "c.Parquet", "d.pq", "e", ".f.parquet", "_g.parquet", "h.parquet.tmp", "i.gz")
    for name in names:
        write(tmp_path / name, k=[name])
    assert open_source(tmp_path).collect_totals(ask("k")).keys == tuple(sorted((name,) for name in names))


def test_markers_of_writers_are_counted(tmp_path):
    write(tmp_path / "a.parquet", k=["a"])
    for name in MARKERS:
        (tmp_path / name).write_bytes(b"" if name == "done" else b"not read")
    table = open_source(tmp_path)
    assert table.marker_count == len(MARKERS)
    assert f"marker_count={len(MARKERS)}" in repr(table)
    assert table.collect_totals(ask("k")).keys == (("a",),)


@pytest.mark.parametrize("name", ["a.parquet.gz", "Ann.csv", "Ann.PARQUET.zst", ".Ann", "_Ann.json", "k=1/Ann.orc"])
def test_a_file_that_is_not_read_is_refused_without_its_name(tmp_path, name):
    write(tmp_path / "p.parquet", k=["a"])
    (tmp_path / name).parent.mkdir(exist_ok=True)
    (tmp_path / name).write_bytes(b"anything")
    with pytest.raises(InputError, match="1 of 2 files") as refused:
        open_source(tmp_path)
    assert "Ann" not in str(refused.value)


@pytest.mark.parametrize("name", ["empty.parquet", "empty.PARQUET"])
def test_an_empty_part_is_refused(tmp_path, name):
    write(tmp_path / "a.parquet", k=["a"])
    (tmp_path / name).write_bytes(b"")
    with pytest.raises(InputError, match="does not begin so"):
        open_source(tmp_path)


def test_a_link_to_a_folder_is_refused(tmp_path):
    write(tmp_path / "d" / "a.parquet", k=["a"])
    write(tmp_path / "elsewhere" / "b.parquet", k=["b"])
    (tmp_path / "d" / "k=1").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(InputError, match="1 of 2 files"):
        open_source(tmp_path / "d")


def test_columns_that_stand_in_folders_and_in_files(tmp_path):
    day = dt.date(2024, 2, 29)
    write(tmp_path / "year=2023" / "city=Oslo" / "day=2024-02-29" / "a.parquet",
          year=[2023, 2023, 2024, None], city=["Oslo", "Bergen", "Oslo", "Oslo"], day=[day, day, day, None],
          x=[1, 2, 3, 4])  # fmt: skip
    write(tmp_path / "year=none" / "city=S%C3%A3o" / "day=__HIVE_DEFAULT_PARTITION__" / "a.parquet",
          year=[7], city=["São"], day=[day], x=[5])  # fmt: skip
    table = open_source(tmp_path)
    assert [column.name for column in table.schema.columns] == ["year", "city", "day", "x"]
    assert table.schema.find_column("year").kind == "integer"
    assert table.collect_totals(ask("year")) == GroupTotals(((None,), (2023,)), {"rows": (3, 2)})
    assert table.collect_totals(ask("city")) == GroupTotals(((None,), ("Oslo",), ("São",)), {"rows": (1, 3, 1)})
    assert table.collect_totals(ask("day")) == GroupTotals(((None,), (day,)), {"rows": (2, 3)})
    assert table.collect_totals(ask("x")).values == {"rows": (1, 1, 1, 1, 1)}


def test_columns_that_duckdb_and_polars_write_twice(tmp_path):
    import duckdb
    import polars as pl

    rows = "SELECT * FROM (VALUES (1, 'a', DATE '2024-02-29'), (2, 'b', DATE '2024-03-01'), (3, NULL, NULL)) r(x, k, d)"
    place = tmp_path / "duckdb"
    duckdb.sql(f"COPY ({rows}) TO '{place}' (FORMAT parquet, PARTITION_BY (k, d), WRITE_PARTITION_COLUMNS)")
    frame = pl.DataFrame({"x": [1, 2, 3], "k": ["a", "b", None], "n": [1, 2, 2]})
    other = tmp_path / "polars"
    for (k, n), part in frame.partition_by("k", "n", as_dict=True).items():
        path = other / f"k={'__HIVE_DEFAULT_PARTITION__' if k is None else k}" / f"n={n}" / "0.parquet"
        path.parent.mkdir(parents=True)
        part.write_parquet(path)
    for table in (open_source(place), open_source(other)):
        assert table.collect_totals(ask("k")) == GroupTotals(((None,), ("a",), ("b",)), {"rows": (1, 1, 1)})
    assert open_source(other).collect_totals(ask("n")) == GroupTotals(((1,), (2,)), {"rows": (1, 2)})


@pytest.mark.parametrize("kind", [pa.dictionary(pa.int32(), pa.string()), pa.decimal128(9, 2), pa.float32(), pa.null()])
def test_columns_of_any_type_that_stand_twice(tmp_path, kind):
    values = pa.nulls(2) if pa.types.is_null(kind) else pa.array(["1", "2"]).cast(kind)
    write(tmp_path / "k=1" / "a.parquet", k=values, x=[1, 2])
    assert sum(open_source(tmp_path).collect_totals(ask("x")).values["rows"]) == 2
    table = open_source(tmp_path)
    if table.schema.find_column("k").kind in ("text", "number") and not pa.types.is_null(kind):
        assert table.collect_totals(ask("k")).values["rows"] == (1, 1)


def write_link(path: Path) -> None:
    write(path.parents[2] / "elsewhere" / "c.parquet", x=[3])
    path.symlink_to(path.parents[2] / "elsewhere", target_is_directory=True)


SILENT = {
    "rows behind the name of a mark": ("k=1/_SUCCESS", lambda path: write(path, x=[3]), "", (3,)),
    "rows behind the name of a checksum": ("k=1/c.crc", lambda path: write(path, x=[3]), "", (3,)),
    "rows behind the name of a footer": ("k=1/_metadata", lambda path: write(path, x=[3]), "", (3,)),
    "a checksum whose file is gone": ("k=1/.c.parquet.crc", lambda path: path.write_bytes(b"crc\0"), "", None),
    "a pipe": ("k=1/c.parquet", os.mkfifo, "", None),
    "a link to nothing": ("k=1/c.parquet", lambda path: path.symlink_to("nowhere"), "", None),
    "hidden and fitting": ("k=1/_c.parquet", lambda path: write(path, x=[3]), "**/*.parquet", None),
    "in capitals and fitting": ("k=1/c.PARQUET", lambda path: write(path, x=[3]), "**/*.parquet", (3,)),
    "in a folder that looks hidden": ("_k=1/c.parquet", lambda path: write(path, x=[3]), "_*/*.parquet", (1,)),
    "behind a link": ("k=3", write_link, "**/*.parquet", None),
    "a folder of parts that fits": ("c.parquet/part-of-it", lambda path: write(path, x=[3]), "*.parquet", None),
}


@pytest.mark.parametrize("case", SILENT)
def test_what_was_left_out_in_silence_is_read_or_refused(tmp_path, case):
    name, make, pattern, rows = SILENT[case]
    write(tmp_path / "d" / "k=1" / "a.parquet", x=[1])
    write(tmp_path / "d" / "k=2" / "b.parquet", x=[2])
    if pattern == "*.parquet":
        write(tmp_path / "d" / "e.parquet", x=[4])
    (tmp_path / "d" / name).parent.mkdir(exist_ok=True)
    make(tmp_path / "d" / name)
    if rows is None:
        with pytest.raises(InputError, match="something else") as refused:
            open_source(tmp_path / "d" / pattern)
        assert Path(name).name not in str(refused.value)
    else:
        assert open_source(tmp_path / "d" / pattern).collect_totals(ask()).values["rows"] == rows


def test_a_footer_of_its_own_is_a_mark(tmp_path):
    write(tmp_path / "a.parquet", x=[1])
    for name in ("_metadata", "_common_metadata"):
        pq.write_metadata(pa.schema({"x": pa.int64()}), tmp_path / name)
    assert open_source(tmp_path).marker_count == 2


def test_spark_leaves_nothing_out_in_silence(tmp_path):
    frame = spark().createDataFrame([(1, "a"), (2, None), (3, "b c")], "x long, k string")
    frame.write.partitionBy("k").parquet(str(tmp_path / "d"))
    alone, with_spark = open_source(tmp_path / "d"), open_on_spark(str(tmp_path / "d"))
    assert with_spark.marker_count == 1
    assert alone.collect_totals(ask("k")) == with_spark.collect_totals(ask("k"))
    write(tmp_path / "d" / "k=a" / "_more.parquet", x=[4])
    with pytest.raises(InputError, match="leaves out 1 of") as refused:
        open_on_spark(str(tmp_path / "d"))
    assert "_more" not in str(refused.value)
    write(tmp_path / "both" / "k=a" / "p.parquet", k=["a", "b"], x=[1, 2])
    with pytest.raises(SchemaError, match="name no column that the files hold"):
        open_on_spark(str(tmp_path / "both"))
