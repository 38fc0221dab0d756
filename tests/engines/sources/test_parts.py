"""Folders of parts, partitions and patterns: which files are read, and what the names of folders are taken for."""

from __future__ import annotations

import datetime as dt
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import tightrope as tr
from tests.engines.questions import COUNT, ask, mean, per_person
from tightrope.engines import Grouped, open_source
from tightrope.errors import InputError, SchemaError


def write(path: Path, **columns: object) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    pq.write_table(pa.table(columns), path)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    write(tmp_path / "d" / "year=2023" / "city=Oslo" / "a.parquet", person=[1, 2], x=[1.0, 2.0])
    write(tmp_path / "d" / "year=2024" / "city=S%C3%A3o%20Paulo" / "a.parquet", person=[1], x=[3.0])
    write(tmp_path / "d" / "year=1_3" / "city=__HIVE_DEFAULT_PARTITION__" / "b.parquet", person=[3], x=[4.0])
    write(tmp_path / "d" / "_hidden" / "a.parquet", other=["not read"])
    write(tmp_path / "d" / "year=2023" / ".hidden.parquet", other=["not read"])
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
    assert table.collect(ask("year")) == Grouped((("1_3",), ("2023",), ("2024",)), {"rows": (1, 2, 1)})
    answer = table.collect(ask("city", bounds=per_person(1), measures=(COUNT, *mean("x"))))
    assert sum(answer.values["rows"]) == 3
    assert open_source(str(place)).collect(ask("city")).keys == ((None,), ("Oslo",), ("São Paulo",))
    typed = open_source(place, types={"year": "integer"})
    assert typed.collect(ask("year")) == Grouped(((None,), (2023,), (2024,)), {"rows": (1, 2, 1)})
    assert typed.collect(ask(measures=mean("year", upper=3000))).values == {"usable": (3,), "sum": (6070,)}


def test_a_session_asks_partitions(folder):
    session = tr.Session(folder, person="person", rows_per_person=2, budget=tr.Budget(epsilon=8, delta=1e-3),
                         types={"year": "integer"})  # fmt: skip
    answers = session.plan([tr.count(by="year", keys=[2023, 2024])]).release()
    assert list(answers[0].frame["year"]) == [2023, 2024]


def test_a_pattern_reads_what_fits_and_nothing_else(tmp_path):
    for name in ("a1", "a2", "b1", "_a3", ".a4"):
        write(tmp_path / f"{name}.parquet", k=[name])
    (tmp_path / "a5.parquet").mkdir()
    assert open_source(tmp_path / "a*.parquet").collect(ask("k")).keys == (("a1",), ("a2",))
    assert open_source(tmp_path / "?1.parquet").collect(ask("k")).keys == (("a1",), ("b1",))
    write(tmp_path / "a[1].parquet", k=["brackets"])
    assert open_source(tmp_path / "a[1].parquet").collect(ask("k")).keys == (("brackets",),)


def test_a_pattern_is_read_as_it_was_when_it_was_opened(tmp_path):
    write(tmp_path / "a.parquet", k=["a"])
    table = open_source(tmp_path / "*.parquet")
    write(tmp_path / "b.parquet", k=["b"])
    assert table.collect(ask("k")).keys == (("a",),)
    write(tmp_path / "a.parquet", k=["another"])
    with pytest.raises(InputError, match="has changed"):
        table.collect(ask("k"))


REFUSED = {
    "another type": {"a/k=1/x.parquet": {"x": [1]}, "a/k=2/x.parquet": {"x": [1.0]}},
    "another column": {"a/k=1/x.parquet": {"x": [1]}, "a/k=2/x.parquet": {"x": [1], "y": [1]}},
    "another partition": {"a/k=1/x.parquet": {"x": [1]}, "a/j=2/x.parquet": {"x": [1]}},
    "another depth": {"a/k=1/x.parquet": {"x": [1]}, "a/x.parquet": {"x": [1]}},
    "another order": {"a/k=1/j=1/x.parquet": {"x": [1]}, "a/j=1/k=1/x.parquet": {"x": [1]}},
    "no column": {"a/2024/x.parquet": {"x": [1]}},
    "a name twice": {"a/X=1/x.parquet": {"x": [1]}},
    "nothing": {"a/_x.parquet": {"x": [1]}},
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
    found = open_source(tmp_path, types={"k": kind}).collect(ask("k"))
    assert {key for (key,) in found.keys} == expected
    assert sum(found.values["rows"]) == len(values)
