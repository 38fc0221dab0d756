"""One plan, three engines: a word in ``[source]`` says who reads the table, and nothing else changes."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from typer.testing import CliRunner

from tests.postgres_server import server
from tests.tables.every_engine import spark
from tightrope.cli.main import app
from tightrope.errors import PlanError
from tightrope.release.plan_file import load_plan_file, read_plan_document

ROWS = pa.table({"id": [n // 2 for n in range(400)], "x": [n / 40 for n in range(400)], "k": list("ab") * 200})
REST = """
[privacy_unit]
column = "id"
max_rows = 2
[budget]
epsilon = 1
delta = 1e-6
[[question]]
kind = "mean"
column = "x"
bounds = [0, 10]
by = "k"
"""


def plan(folder: Path, *source: str) -> Path:
    path = folder / "plan.toml"
    path.write_text("[source]\n" + "\n".join(source) + REST)
    return path


def source_of(engine: str, folder: Path) -> tuple[str, ...]:
    if engine == "postgres":
        url = server().database()
        with server().connect(url) as connection:
            connection.execute("CREATE SCHEMA clinic")
            connection.execute("CREATE TABLE clinic.visits (id int8, x float8, k text)")
            with connection.cursor() as cursor, cursor.copy("COPY clinic.visits FROM STDIN") as copy:
                for row in ROWS.to_pylist():
                    copy.write_row(list(row.values()))
        return f'postgres = "{url}"', 'table = "clinic.visits"'
    if engine == "spark":
        spark()
    pq.write_table(ROWS, folder / "visits.parquet")
    return (f'{engine} = "visits.parquet"',)


@pytest.mark.parametrize("engine", ["path", "spark", "postgres"])
def test_one_word_moves_a_plan(tmp_path, engine):
    made = load_plan_file(plan(tmp_path, *source_of(engine, tmp_path))).make_plan()
    released = made.release()
    (answer,) = released
    assert list(answer.to_pandas()["k"]) == ["a", "b"]
    assert all(4 < value < 6 for value in answer.to_pandas()["value"])
    assert "visits" not in f"{released.to_json()} {released.certificate}"  # neither says where the table is


@pytest.mark.parametrize(
    ("source", "says"),
    [
        (("",), r"\[source\] path: missing; set exactly one of 'path', 'spark', 'postgres'"),
        (('path = "a"', 'spark = "a"'), "set exactly one of"),
        (('spark = "a"', 'table = "t"'), "not allowed with spark"),
        (('spark = "a"', '[source.types]\nx = "number"'), "not allowed with spark"),
        (('sprak = "a"',), "did you mean 'spark'"),
        (("postgres = 5432",), r"\[source\] postgres"),
    ],
)
def test_a_source_says_once_where_it_is(tmp_path, source, says):
    with pytest.raises(PlanError, match=says):
        read_plan_document(plan(tmp_path, *source))


@pytest.mark.parametrize(
    ("source", "says"),
    [
        (
            ('postgres = "postgresql://anna:hush@localhost/db"', 'table = "t"'),
            r"\[source\] postgres.*what may be a password",
        ),
        (('postgres = "postgresql://anna@localhost/db"',), r"\[source\] table"),
        (('postgres = "anna:hush@somewhere"', 'table = "t"'), r"\[source\] postgres"),
        (('spark = "nowhere.parquet"',), r"\[source\] spark.*does not exist"),
        (('path = "no*.parquet"',), r"\[source\] path.*does not exist"),
    ],
)
def test_a_source_that_cannot_be_read_is_said_under_its_key(tmp_path, source, says):
    with pytest.raises(PlanError, match=says) as refusal:
        load_plan_file(plan(tmp_path, *source)).make_plan()
    assert "hush" not in str(refusal.value)


HUSH = "postgresql://anna:hunter2@localhost:1/x"
MOVE = 'say postgres = "postgresql://role@host/database" instead'


@pytest.mark.parametrize(
    ("source", "says"),
    [
        ((f'path = "{HUSH}"',), rf"\[source\] path .* got \[source\] path='postgresql://...'; {MOVE} of path"),
        ((f'spark = "{HUSH}"',), rf"\[source\] spark .*{MOVE} of spark"),
        ((f'path = "{HUSH}"', 'spark = "a"'), r"\[source\] path"),
        ((f'path = ["{HUSH}"]',), r"\[source\] path=\['postgresql://...'\]"),
        ((f'postgres = "{HUSH}"',), r"\[source\] postgres.*what may be a password"),
        (('postgres = "postgresql://anna@h/x?password=hunter2"',), r"\[source\] postgres.*what may be a password"),
        (('path = "mysql://anna:hunter2@h/x"',), r"path='mysql://...'; .* say spark"),
        (('path = "anna:hunter2@h/x"',), r"does not exist"),
        (('path = "host=h password=hunter2"',), r"does not exist"),
        (('spark = "s3a://KEY:hunter2@bucket/x"',), r"\[source\] spark .*what may be a password, got .*'s3a://...'"),
        (('spark = "https://h/x?sig=hunter2"',), r"\[source\] spark .*what may be a password"),
        (('path = "a"', "[ledger]", f'path = "{HUSH}"'), r"\[ledger\] path .*what may be a password"),
        (('path = "a"', "[ledger]", 'path = "mysql://anna:hunter2@h/x"'), r"\[ledger\] path='mysql://...'"),
        (
            ('path = "a"', "[[public_table]]", f'path = "{HUSH}"', 'on = "k"'),
            r"public_table 1 path .*what may be a password",
        ),
        (
            ('path = "a"', "[[public_table]]", 'path = "s3://a:hunter2@h"', 'on = "k"'),
            r"public_table 1 path: s3://... is not a file",
        ),
    ],
)
def test_no_key_takes_a_password_and_no_error_repeats_one(tmp_path, source, says):
    """Found before anything is opened: the libraries behind a key may write what they are given into their logs."""
    with pytest.raises(PlanError, match=says) as refusal:
        load_plan_file(plan(tmp_path, *source))
    assert "hunter2" not in f"{refusal.value} {refusal.value.value}"


def test_urls_without_a_password_are_places(tmp_path):
    for source in (
        "spark = 's3://clinic/visits'",
        "spark = 'abfss://visits@clinic.net/a'",
        "postgres = 'postgres://a@h/x'",
    ):
        ledger = "[ledger]\npath = 'postgresql+psycopg://anna@/x?host=/tmp'"
        assert read_plan_document(plan(tmp_path, source, ledger)).ledger.path.startswith("postgresql+psycopg://anna@")


def test_parts_and_patterns_in_a_plan(tmp_path):
    for number in range(2):
        (tmp_path / "d" / f"year={number}").mkdir(parents=True)
        pq.write_table(ROWS, tmp_path / "d" / f"year={number}" / "a.parquet")
    for place in ("d", "d/*/a.parquet"):
        made = load_plan_file(plan(tmp_path, f'path = "{place}"', '[source.types]\nyear = "integer"')).open_session()
        assert made.schema.find_column("year").kind == "integer"


def test_init_writes_a_plan_for_a_database(tmp_path):
    place, table = source_of("postgres", tmp_path)
    url = place.partition('"')[2].rstrip('"')
    out = tmp_path / "out.toml"
    command = ["init", url, "--table", "clinic.visits", "--privacy-unit", "id", "--out", str(out)]
    assert CliRunner().invoke(app, command).exit_code == 0
    assert place in out.read_text()
    assert table in out.read_text()
    assert load_plan_file(out).make_plan()
