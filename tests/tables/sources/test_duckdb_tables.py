"""DuckDB's own: schemas of a file, relations of a connection, and files that are attached to it."""

from __future__ import annotations

import os
import subprocess
import sys
import uuid
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from decimal import Decimal
from pathlib import Path

import duckdb
import numpy as np
import pyarrow as pa
import pytest

from tests.tables.questions import COUNT, ask, mean, per_person
from tightrope.errors import EngineError, InputError, SchemaError
from tightrope.tables import GroupTotals, open_source, sum_over_batches


@pytest.fixture
def path(tmp_path):
    with duckdb.connect(tmp_path / "a.duckdb") as connection:
        connection.execute("CREATE SCHEMA clinic")
        connection.execute('CREATE SCHEMA "odd.one"')
        connection.execute("CREATE TABLE people AS SELECT 'main' AS k")
        connection.execute("CREATE TABLE clinic.people AS SELECT 'clinic' AS k")
        connection.execute("CREATE VIEW clinic.seen AS SELECT 'view' AS k")
        connection.execute('CREATE TABLE "odd.one"."a""b" AS SELECT \'odd\' AS k')
        connection.execute("CREATE TABLE \"clinic.people2\" AS SELECT 'dotted' AS k")
    return tmp_path / "a.duckdb"


@pytest.mark.parametrize(
    ("name", "key"),
    [
        ("people", "main"),
        ("main.people", "main"),
        ("clinic.people", "clinic"),
        ('"clinic"."people"', "clinic"),
        ("clinic.seen", "view"),
        ('"odd.one"."a""b"', "odd"),
        ("clinic.people2", "dotted"),
    ],
)
def test_a_table_in_any_schema(path, name, key):
    assert open_source(path, table=name).collect_totals(ask("k")).keys == ((key,),)


def test_a_table_that_is_not_there_is_named_with_the_closest(path):
    with pytest.raises(SchemaError, match=r"one of 'clinic\.people', .*did you mean 'clinic\.people'"):
        open_source(path, table="clinic.peple")


def test_a_relation_of_an_attached_file_is_a_table(path):
    connection = duckdb.connect()
    connection.execute(f"ATTACH '{path}' AS other (READ_ONLY)")
    table = open_source(connection.table("other.clinic.people"))
    assert table.source_kind == "duckdb"
    assert table.collect_totals(ask("k")) == GroupTotals((("clinic",),), {"rows": (1,)})


def test_a_relation_rolls_its_dice_once():
    connection = duckdb.connect()
    dice = connection.sql("SELECT (random() * 20)::INT AS person, 'a' AS k FROM range(500)")
    table = open_source(dice)
    with table.open_snapshot([ask("k", bounds=per_person(1)), ask("k")]) as rows:
        first, second = (rows.collect_totals(ask("k", bounds=per_person(1))) for _ in range(2))
        assert rows.collect_totals(ask("k")).values["rows"] == (500,)
    assert first == second
    assert first.values["rows"][0] <= 21


def test_the_types_of_a_relation_are_its_own_whatever_the_connection_says():
    connection = duckdb.connect()
    someone = uuid.UUID("a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11")
    query = (
        "SELECT * FROM (VALUES (1::HUGEINT, ?::UUID, 'b'::ENUM('a', 'b'), 1.50::DECIMAL(5, 2), [1], 1::UTINYINT, "
        "0.5::DOUBLE), "
        "(170141183460469231731687303715884105727, NULL, NULL, NULL, NULL, NULL, 'nan')) "
        't("wi""de.one", id, mood, price, list, small, x)'
    )
    relation = connection.sql(query, params=[someone])
    for lossless in ("false", "true"):
        table = open_source(relation)
        connection.execute(f"SET arrow_lossless_conversion = {lossless}")
        kinds = [column.kind for column in table.schema.columns]
        assert kinds == ["integer", "text", "text", "number", "other", "integer", "number"]
        assert table.collect_totals(ask('wi"de.one')).keys == ((1,), (2**127 - 1,))
        assert table.collect_totals(ask("id")).keys == ((None,), (str(someone),))
        assert table.collect_totals(ask("mood")).keys == ((None,), ("b",))
        assert table.collect_totals(ask("price")).keys == ((None,), (Decimal("1.50"),))
        assert table.collect_totals(ask(measures=(COUNT, *mean("x")))).values == {
            "rows": (2,),
            "usable": (1,),
            "sum": (1,),
        }
        assert table.collect_totals(ask()).values["rows"] == (2,)


def test_a_relation_that_fails_says_no_value():
    table = open_source(duckdb.connect().sql("SELECT 'Anna Schmidt'::INT AS k FROM range(3) WHERE range > 0"))
    with pytest.raises(EngineError) as failure:
        table.collect_totals(ask("k"))
    assert "Anna" not in str(failure.value)
    assert failure.value.__context__ is None


def test_options_of_other_sources_are_refused():
    with pytest.raises(InputError, match="table"):
        open_source(duckdb.connect().sql("SELECT 1 AS k"), table="k")


HOLD_FILE = """
import sys, duckdb
connection = duckdb.connect(sys.argv[1], read_only=sys.argv[2] == "read")
print("open", flush=True)
if sys.argv[2] == "write":
    connection.sql("INSERT INTO people VALUES (4)")
sys.stdin.read()
"""


@contextmanager
def another_process(path: Path, mode: str) -> Iterator[int]:
    """A second process that has the file open to read or to write."""
    command = [sys.executable, "-c", HOLD_FILE, str(path), mode]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        assert process.stdout.readline() == "open\n"
        try:
            yield process.pid
        finally:
            process.stdin.close()
            assert process.wait() == 0


def people_file(folder: Path) -> Path:
    with duckdb.connect(folder / "people.duckdb") as connection:
        connection.sql("CREATE TABLE people AS SELECT range AS k FROM range(3)")
    return folder / "people.duckdb"


def test_readers_share_a_file_and_a_writer_is_named(tmp_path):
    path = people_file(tmp_path)
    with another_process(path, "read"):
        assert open_source(path, table="people").collect_totals(ask()).values == {"rows": (3,)}
    table = open_source(path, table="people")
    with another_process(path, "write") as writer:
        for attempt in (lambda: open_source(path, table="people"), lambda: table.check_readable([ask()])):
            with pytest.raises(InputError, match=rf"process {writer} \(.*\) has the file open for writing"):
                attempt()


def test_an_open_table_leaves_its_file_to_the_owner(tmp_path):
    """The owner writes and reads while a session waits; the session then refuses the changed file before a charge."""
    path = people_file(tmp_path)
    table = open_source(path, table="people")
    table.collect_totals(ask())
    for mode in ("read", "write"):
        with another_process(path, mode):
            pass
    with duckdb.connect(path) as connection:
        assert connection.sql("SELECT count(*) FROM people").fetchall() == [(4,)]
    with pytest.raises(InputError, match="has changed since; open it again"):
        table.check_readable([ask()])
    assert open_source(path, table="people").collect_totals(ask()).values == {"rows": (4,)}


@pytest.mark.parametrize("written", ["people.duckdb", "link.duckdb"])
@pytest.mark.parametrize("opened", ["people.duckdb", "link.duckdb"])
def test_rows_in_a_log_that_a_writer_left_are_a_change(tmp_path, opened, written):
    """A writer that was killed leaves committed rows in the write-ahead log, next to an unchanged file."""
    path = people_file(tmp_path)
    (tmp_path / "link.duckdb").symlink_to(path)
    table = open_source(tmp_path / opened, table="people")
    before = path.read_bytes()
    killed = f"import os\n{HOLD_FILE.replace('sys.stdin.read()', 'os._exit(0)')}"
    command = [sys.executable, "-c", killed, str(tmp_path / written), "write"]
    subprocess.run(command, check=True, capture_output=True)
    assert path.read_bytes() == before
    with duckdb.connect(tmp_path / opened, read_only=True) as connection:
        is_seen = connection.sql("SELECT count(*) FROM people").fetchall() == [(4,)]
    if is_seen:
        with pytest.raises(InputError, match="has changed since; open it again"):
            table.check_readable([ask()])
    count = 4 if is_seen else 3
    assert open_source(tmp_path / opened, table="people").collect_totals(ask()).values == {"rows": (count,)}
    assert is_seen or opened != written


@pytest.mark.parametrize("is_link", [False, True])
def test_a_replaced_file_is_refused(tmp_path, is_link):
    for name in ("old", "new"):
        (tmp_path / name).mkdir()
    path = people_file(tmp_path / "old")
    other = people_file(tmp_path / "new")
    os.utime(other, ns=(path.stat().st_atime_ns, path.stat().st_mtime_ns))
    if is_link:
        (tmp_path / "link.duckdb").symlink_to(path)
        (tmp_path / "link 2.duckdb").symlink_to(other)
        path, other = tmp_path / "link.duckdb", tmp_path / "link 2.duckdb"
    table = open_source(path, table="people")
    other.replace(path)
    with pytest.raises(InputError, match="has changed since; open it again"):
        table.check_readable([ask()])
    assert open_source(path, table="people").collect_totals(ask()).values == {"rows": (3,)}


def test_a_file_that_changes_with_an_old_time_is_refused(tmp_path):
    path = people_file(tmp_path)
    table = open_source(path, table="people")
    status = path.stat()
    content = path.read_bytes()
    path.write_bytes(content)
    os.utime(path, ns=(status.st_atime_ns, status.st_mtime_ns))
    with pytest.raises(InputError, match="has changed since; open it again"):
        table.check_readable([ask()])


def test_a_second_table_of_a_file_keeps_its_lock(tmp_path):
    """Opening a file again while it is read must not release the lock: closing any descriptor of it would."""
    path = people_file(tmp_path)
    table = open_source(path, table="people")
    with table.select_columns(["k"]):
        other = open_source(path, table="people")
        assert other.collect_totals(ask()).values == {"rows": (3,)}
        command = [sys.executable, "-c", HOLD_FILE, str(path), "write"]
        refused = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)
        assert refused.returncode == 1
        assert "Conflicting lock is held" in refused.stderr


@pytest.mark.parametrize("fails", [False, True])
def test_a_job_closes_the_file(tmp_path, fails):
    path = people_file(tmp_path)
    table = open_source(path, table="people")

    def work(batch: pa.RecordBatch) -> np.ndarray:
        if fails:
            raise ValueError("broken")
        return np.array([len(batch)])

    with pytest.raises(EngineError) if fails else nullcontext():
        assert sum_over_batches(table, ["k"], work, 1).tolist() == [3]
    assert not table.backend_adapter.writes_parts
    with another_process(path, "write"):
        pass


def test_the_owner_keeps_the_lock_of_a_connection_in_this_process(tmp_path):
    """Closing any descriptor of a file releases the locks of a process on it: a refused session closes none."""
    path = people_file(tmp_path)
    with duckdb.connect(path) as connection:
        with pytest.raises(InputError, match=r"this process has the file open.*con\.table"):
            open_source(path, table="people")
        command = [sys.executable, "-c", HOLD_FILE, str(path), "write"]
        refused = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)
        assert refused.returncode == 1
        assert "Conflicting lock is held" in refused.stderr
        assert open_source(connection.table("people")).collect_totals(ask()).values == {"rows": (3,)}
