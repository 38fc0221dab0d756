"""Arrow streams, datasets, JSON lines, DuckDB connections, tables of other databases through ibis, and URLs."""

from __future__ import annotations

import gzip
import json
import sqlite3
import traceback
from collections.abc import Iterator
from pathlib import Path

import duckdb
import ibis
import polars as pl
import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq
import pytest

import tightrope as tr
from tests.tables.questions import COUNT, ask, mean, per_person
from tightrope.errors import EngineError, InputError, SchemaError
from tightrope.tables import GroupTotals, open_source

FRAME = {"person": [1, 1, 2], "city": ["a", "b", None], "income": [1.0, 2.0, float("nan")]}
QUESTION = ask("city", bounds=per_person(2), measures=(COUNT, *mean("income")))
ANSWER = GroupTotals(((None,), ("a",), ("b",)), {"rows": (1, 1, 1), "usable": (0, 1, 1), "sum": (0, 1, 2)})
KINDS = {"person": "integer", "city": "text", "income": "number"}
PRIVATE = "Anna Schmidt"
SCHEMA = pa.schema([("person", pa.int64()), ("city", pa.string()), ("income", pa.float64())])


class Exported:
    """A class of another library that has only the interface."""

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        return pa.table(FRAME).__arrow_c_stream__(requested_schema)


def reader() -> pa.RecordBatchReader:
    return pa.table(FRAME).to_reader(max_chunksize=2)


def connection() -> duckdb.DuckDBPyConnection:
    con = duckdb.connect()
    con.register("frame", pa.table(FRAME))
    con.execute('CREATE TABLE "some people" AS FROM frame')
    return con


@pytest.mark.parametrize(
    ("make", "kind"),
    [
        (reader, "arrow"),
        (Exported, "arrow"),
        (lambda: pa.record_batch(FRAME), "arrow"),
        (lambda: ds.dataset(pa.table(FRAME)), "arrow"),
        (lambda: ibis.polars.connect({"people": pl.DataFrame(FRAME)}).table("people"), "ibis"),
    ],
    ids=["reader", "interface", "batch", "dataset", "ibis on polars"],
)
def test_a_source_is_read_as_often_as_it_is_asked(make, kind):
    table = open_source(make())
    assert table.source_kind == kind
    assert table.schema.column_names == ("person", "city", "income")
    assert [column.kind for column in table.schema.columns] == ["integer", "text", "number"]
    for _ in range(2):
        assert table.collect_totals(QUESTION) == ANSWER
        assert table.collect_totals(ask()).values["rows"] == (3,)


def test_a_stream_is_not_read_to_open_it_and_a_failure_is_not_read_on():
    """The records after a failure are not the table: from then on, the source is refused before the charge."""
    seen = []

    def batches() -> Iterator[pa.RecordBatch]:
        for number in range(3):
            seen.append(number)
            if number == 1:
                raise ValueError(PRIVATE)
            yield pa.record_batch(FRAME, schema=SCHEMA)

    table = open_source(pa.RecordBatchReader.from_batches(SCHEMA, batches()))
    assert seen == []
    with pytest.raises(EngineError) as failed:
        table.collect_totals(QUESTION)
    assert PRIVATE not in "".join(traceback.format_exception(failed.value))
    with pytest.raises(InputError) as refused:
        table.check_readable((QUESTION,))
    assert refused.value.name == "source"
    session = tr.Session(table, privacy_unit="person", max_rows=2, budget=tr.Budget(epsilon=1, delta=1e-6))
    plan = session.plan([tr.count()])
    with pytest.raises(InputError):
        plan.release()
    assert not plan.charged


def test_a_stream_of_values_or_a_stream_that_was_read_is_refused():
    read = reader()
    read.read_all()
    for source in (pa.chunked_array([[1, 2]]), pl.Series([1, 2])):
        with pytest.raises(InputError) as refused:
            open_source(source)
        assert refused.value.name == "source"
    assert open_source(read).collect_totals(ask()).values["rows"] == (0,)


def test_a_dataset_of_files_reads_the_columns_of_the_question(tmp_path: Path):
    for number in range(3):
        pq.write_table(pa.table({**FRAME, "other": [PRIVATE] * 3}), tmp_path / f"{number}.parquet")
    table = open_source(ds.dataset(tmp_path).filter(ds.field("person") == 1))
    assert table.collect_totals(ask(bounds=per_person(9))).values["rows"] == (6,)


def test_a_table_or_a_view_of_a_duckdb_connection():
    con = connection()
    con.execute('CREATE VIEW two AS FROM "some people" LIMIT 2')
    assert open_source(con, table='"some people"').collect_totals(QUESTION) == ANSWER
    assert open_source(con, table="two").collect_totals(ask(bounds=per_person(9))).values["rows"] == (2,)
    for name in ("missing", "errors"):  # the second is a variable of the function that opens it
        with pytest.raises(SchemaError) as missing:
            open_source(con, table=name)
        assert missing.value.name == "table"
    with pytest.raises(InputError) as unnamed:
        open_source(con)
    assert unnamed.value.name == "table"


def test_a_table_of_sqlite_through_ibis(tmp_path: Path):
    with sqlite3.connect(tmp_path / "people.sqlite") as con:
        con.execute("CREATE TABLE people (person INTEGER, city TEXT, income REAL)")
        rows = [(1, "a", 1.0), (1, "b", 2.0), (2, None, None)]
        con.executemany("INSERT INTO people VALUES (?, ?, ?)", rows)
    assert (
        open_source(ibis.sqlite.connect(tmp_path / "people.sqlite").table("people")).collect_totals(QUESTION) == ANSWER
    )


@pytest.mark.parametrize("name", ["people.jsonl", "people.NDJSON", "people.jsonl.gz"])
def test_json_lines(tmp_path: Path, name: str):
    lines = [json.dumps({key: FRAME[key][i] for key in FRAME if FRAME[key][i] == FRAME[key][i]}) for i in range(3)]
    text = "\n".join(lines).encode()
    (tmp_path / name).write_bytes(gzip.compress(text) if name.endswith(".gz") else text)
    table = open_source(tmp_path / name, types=KINDS)
    assert table.source_kind == "json"
    assert table.collect_totals(QUESTION) == ANSWER


HOSTILE_LINES = [
    b"", b"{", b"[1]", b"null", b'"' + PRIVATE.encode(), b"\xff", b'{"person": "\\ud800"}', b"[" * 100_000,
    b'{"person": 1e999}', b'{"person": 99999999999999999999999}', b'{"person": true}', b'{"person": {"a": 1}}',
    b'{"person": NaN}', b'{"person": 1.5}', b'{"person": "one"}', b'{"other": 1}',
]  # fmt: skip


@pytest.mark.parametrize("line", HOSTILE_LINES, ids=range(len(HOSTILE_LINES)))
def test_a_line_that_does_not_fit_is_missing_and_changes_no_other(tmp_path: Path, line: bytes):
    good = b'{"person": 7, "city": "a"}'
    path = tmp_path / "people.jsonl"
    path.write_bytes(b"\n".join([good, line, b'{"person": "8", "city": "a"}', b'{"person": 9.0, "city": 3}']))
    table = open_source(path, types={"person": "integer", "city": "text"})
    found = table.collect_totals(ask("city", bounds=per_person(1)))
    assert found == GroupTotals(((None,), ("a",)), {"rows": (1, 2)})
    assert table.collect_totals(ask()).values["rows"] == (4,)  # each line is a record


def test_long_files_of_json_lines_are_read_block_by_block(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    from tightrope.tables.sources import source

    monkeypatch.setattr(source, "CSV_BLOCK", 7)
    path = tmp_path / "people.jsonl"
    path.write_text("".join(f'{{"person": {number}}}\n' for number in range(500)))
    assert open_source(path, types={"person": "integer"}).collect_totals(ask()).values["rows"] == (500,)
    monkeypatch.setattr(source, "MAX_RECORD_BYTES", 5)
    with pytest.raises(InputError) as refused:
        open_source(path, types={"person": "integer"}).collect_totals(ask())
    assert refused.value.name == "source"


def test_json_lines_need_the_kinds_of_their_columns(tmp_path: Path):
    (tmp_path / "people.jsonl").write_text(f'{{"name": "{PRIVATE}"}}\n')
    with pytest.raises(InputError) as refused:
        open_source(tmp_path / "people.jsonl")
    assert refused.value.name == "types"
    assert PRIVATE not in str(refused.value)


@pytest.mark.parametrize(
    ("url", "advice"),
    [
        ("s3://bucket/people.csv", "copy other files here"),
        (Path("s3://bucket/people.parquet"), "pass the URL as text"),
        ("snowflake://anna:hush@account/db", "ibis.snowflake.connect"),
        ("bigquery://project", "ibis.bigquery.connect"),
        ("trino://anna:hush@host/db", "ibis.trino.connect"),
        ("postgresql+psycopg://anna:hush@host/db", "postgresql://role@host/database"),
        ("duckdb:///people.duckdb", "path of the file"),
        ("file:///people.parquet", "path of the file"),
        ("ftp://anna:hush@host/people.parquet", "copy the table here"),
    ],
    ids=lambda value: str(value)[:12],
)
def test_a_url_is_not_a_path_and_its_error_says_what_to_do(url, advice):
    with pytest.raises(InputError) as refused:
        open_source(url)
    assert refused.value.name == "source"
    assert advice in str(refused.value)
    assert "hush" not in str(refused.value)
    assert "bucket" not in str(refused.value)


@pytest.mark.parametrize("url", ["https://host/people.parquet?key=hush", "s3://bucket/people.parquet"])
def test_a_remote_file_needs_the_extension_of_duckdb(url, monkeypatch: pytest.MonkeyPatch, tmp_path: Path):
    from tightrope.tables.sources import databases

    monkeypatch.setattr(databases, "REMOTE_READER", "extension_that_is_not_installed")
    with pytest.raises(InputError) as refused:
        open_source(url)
    assert "INSTALL extension_that_is_not_installed" in str(refused.value)
    assert "hush" not in str(refused.value)
