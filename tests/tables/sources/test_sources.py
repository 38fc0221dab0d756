"""Every kind of source: what is read when, what is refused and how, and that nothing of the data leaks."""

from __future__ import annotations

import datetime as dt
import subprocess
import sys
import traceback
import uuid
from pathlib import Path

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import tightrope as tr
from tests.tables.questions import COUNT, ask, mean, per_person
from tightrope.errors import EngineError, InputError, MissingExtraError, SchemaError
from tightrope.tables import Column, GroupTotals, open_source
from tightrope.tables.backends.duckdb import open_connection
from tightrope.tables.engine_calls import engine_call, load_library

FRAME = {"person": [1, 1, 2], "city": ["a", "b", None], "income": [1.0, 2.0, float("nan")]}
QUESTION = ask("city", bounds=per_person(2), measures=(COUNT, *mean("income")))
ANSWER = GroupTotals(((None,), ("a",), ("b",)), {"rows": (1, 1, 1), "usable": (0, 1, 1), "sum": (0, 1, 2)})
PRIVATE = "Anna Schmidt"


@pytest.mark.parametrize(
    ("source", "kind"),
    [
        (pd.DataFrame(FRAME), "pandas"),
        (pd.DataFrame(FRAME).astype({"city": "category"}), "pandas"),
        (pl.DataFrame(FRAME), "polars"),
        (pl.DataFrame(FRAME).with_columns(pl.col("city").cast(pl.Categorical)), "polars"),
        (pl.LazyFrame(FRAME), "polars"),
        (pa.table(FRAME), "arrow"),
    ],
    ids=["pandas", "category", "polars", "polars category", "lazy", "arrow"],
)
def test_frames(source, kind):
    table = open_source(source)
    assert table.source_kind == kind
    assert table.schema.column_names == ("person", "city", "income")
    assert [column.kind for column in table.schema.columns] == ["integer", "text", "number"]
    assert table.collect_totals(QUESTION) == ANSWER
    assert table.collect_totals(ask()).values["rows"] == (3,)


def test_a_lazy_frame_is_not_computed_to_open_it():
    def fail(_: object) -> None:
        raise RuntimeError(PRIVATE)

    lazy = pl.LazyFrame(FRAME).with_columns(income=pl.col("income").map_elements(fail, return_dtype=pl.Float64))
    table = open_source(lazy)
    assert table.schema.find_column("income") == Column("income", "number")
    assert table.collect_totals(ask("city")).values["rows"] == (1, 1, 1)  # does not touch income
    with pytest.raises(EngineError, match="compute the lazy frame"):
        table.collect_totals(QUESTION)


def test_parquet_and_paths_with_brackets_and_no_partitions_from_folders(tmp_path):
    folder = tmp_path / "city=5"
    folder.mkdir()
    pq.write_table(pa.table(FRAME), folder / "data[1]*.PARQUET")
    for path in (folder / "data[1]*.PARQUET", str(folder / "data[1]*.PARQUET")):
        table = open_source(path)
        assert (table.source_kind, table.schema.column_names) == ("parquet", ("person", "city", "income"))
        assert table.collect_totals(QUESTION) == ANSWER


def test_every_parquet_type_opens(tmp_path):
    exotic = pa.table(
        {
            "half": pa.array(np.array([1.5], np.float16)),
            "day": pa.array([dt.date(2024, 1, 1)], pa.date64()),
            "time": pa.array([dt.time(1)]),
            "binary": pa.array([b"x"]),
            "nothing": pa.nulls(1),
            "duration": pa.array([1], pa.duration("us")),
            "runs": pa.RunEndEncodedArray.from_arrays(pa.array([1], pa.int32()), pa.array(["x"])),
            "months": pa.array([pa.MonthDayNano([1, 2, 3])]),
        }
    )
    table = open_source(exotic)
    kinds = {column.name: column.kind for column in table.schema.columns}
    assert kinds["half"] == "number"
    assert kinds["day"] == "date"
    assert kinds["nothing"] == "text"
    assert kinds["runs"] == "text"
    assert {kinds[name] for name in ("time", "binary", "duration", "months")} == {"other"}
    assert table.collect_totals(ask("day", "nothing", "half")).keys == ((dt.date(2024, 1, 1), None, 1.5),)


def test_csv_types_are_declared_and_what_does_not_cast_is_null(tmp_path):
    path = tmp_path / "people.csv"
    path.write_text(
        "\ufeffperson,city,income,born,member,note\n"
        "1,a,10.5,2000-02-29,true,x\n"
        '1,"",oops,2000-02-30,perhaps,"1,5"\n'
        ",b,3,1999-12-31,false,\n"
        '2,007,,"",0,"say ""hi""\nthere"\n'
        "3,a,inf,1999-12-31,1,nan\n"
        "4,a, 7 ,1999-12-31,1,nan\n",
        encoding="utf-8",
    )
    types = {"person": "integer", "income": "number", "born": "date", "member": "boolean"}
    table = open_source(path, types=types, dialect={"newlines": True})
    assert [column.kind for column in table.schema.columns] == ["integer", "text", "number", "date", "boolean", "text"]
    question = ask("city", bounds=per_person(2), measures=(COUNT, *mean("income", upper=20)))
    answer = table.collect_totals(question)
    assert answer.keys == (("",), ("007",), ("a",))
    assert answer.values == {"rows": (1, 1, 3), "usable": (0, 0, 3), "sum": (0, 0, 11 + 20 + 7)}
    assert table.collect_totals(ask("born")).keys == ((None,), (dt.date(1999, 12, 31),), (dt.date(2000, 2, 29),))
    assert table.collect_totals(ask("member")) == GroupTotals(((None,), (False,), (True,)), {"rows": (1, 2, 3)})
    assert (None,) in table.collect_totals(ask("note")).keys
    assert ('say "hi"\nthere',) in table.collect_totals(ask("note")).keys


def test_csv_without_types_is_text(tmp_path):
    path = tmp_path / "p.csv"
    path.write_text("a;b,1\n1,2\n")
    table = open_source(path)
    assert table.schema.columns == (Column("a;b", "text"), Column("1", "text"))
    assert table.collect_totals(ask("1")).keys == (("2",),)


@pytest.mark.parametrize("names", [["a'b", 'c"d'], ["a b", "SELECT"], ["{x}", "a: 1, b"]])
def test_csv_with_odd_names(tmp_path, names):
    path = tmp_path / "p.csv"
    path.write_text(",".join('"' + name.replace('"', '""') + '"' for name in names) + "\n1,2\n")
    table = open_source(path, types={names[0]: "integer"})
    assert table.collect_totals(ask(names[0], names[1])).keys == ((1, "2"),)


@pytest.mark.parametrize("line", [f"{PRIVATE},1,2,3", PRIVATE, f'"{PRIVATE},1', f'a,"{PRIVATE}"x'])
def test_a_malformed_line_does_not_show_its_content(tmp_path, line):
    path = tmp_path / "p.csv"
    path.write_text("name,age\nb,2\n" + line + "\n")
    table = open_source(path, types={"age": "integer"})
    with pytest.raises(InputError, match="mend the line") as failure:
        table.collect_totals(ask("name", measures=mean("age")))
    refuse_leak(failure.value)


def refuse_leak(error: BaseException) -> None:
    """Neither the text, nor a chained exception, nor a printed traceback holds the secret."""
    assert error.__context__ is None
    assert error.__cause__ is None
    assert PRIVATE not in str(error)
    assert PRIVATE not in "".join(traceback.format_exception_only(error))


def test_engine_errors_are_wrapped_without_their_text():
    def work() -> None:
        raise RuntimeError(PRIVATE)

    with pytest.raises(EngineError, match=r"failed to add up \(RuntimeError\)") as failure:
        engine_call("add up", work)
    refuse_leak(failure.value)


def test_a_failing_cast_in_the_users_expression_does_not_leak():
    backend = open_connection()
    people = engine_call("create", lambda: backend.create_table("people", pa.table({"name": [PRIVATE]})))
    table = open_source(people.mutate(x=people["name"].cast("float64")))
    with pytest.raises(EngineError, match="ConversionException") as failure:
        table.collect_totals(ask(measures=mean("x")))
    refuse_leak(failure.value)


def test_a_pandas_column_of_objects_needs_a_declared_kind():
    frame = pd.DataFrame({"x": [1, PRIVATE]})
    assert open_source(frame).schema.find_column("x").kind == "other"
    with pytest.raises(SchemaError, match="types=") as failure:
        open_source(frame).collect_totals(ask("x"))
    refuse_leak(failure.value)
    assert open_source(frame, types={"x": "text"}).collect_totals(ask("x")).keys == ((None,), (PRIVATE,))
    assert open_source(frame, types={"x": "integer"}).collect_totals(ask("x")).keys == ((None,), (1,))


def test_duckdb_files_are_read_only_and_left_as_they_were(tmp_path):
    import duckdb

    path = tmp_path / "people.db"
    with duckdb.connect(path) as connection:
        connection.register("frame", pa.table(FRAME))
        connection.execute("CREATE TABLE people AS SELECT * FROM frame")
        connection.execute("CREATE VIEW grown AS SELECT * FROM people")
    before = path.read_bytes()
    for name in ("people", "grown"):
        table = open_source(path, table=name)
        assert (table.source_kind, table.collect_totals(QUESTION)) == ("duckdb", ANSWER)
        assert table.collect_totals(ask("city", keys=[("a",)], bounds=per_person(1))).keys == (("a",),)
    assert path.read_bytes() == before
    assert [file.name for file in tmp_path.iterdir()] == ["people.db"]
    with pytest.raises(SchemaError, match=r"one of 'grown', 'people', got table='peple'; did you mean 'people'"):
        open_source(path, table="peple")
    with pytest.raises(InputError, match=r"one of 'grown', 'people', got table=None"):
        open_source(path)


def test_no_temporary_table_is_left_behind():
    backend = open_connection()
    people = engine_call("create", lambda: backend.create_table("people", pa.table(FRAME)))
    table = open_source(people)
    assert table.collect_totals(ask("city", bounds=per_person(1))).values
    assert table.collect_totals(ask("city", keys=[("a",)], bounds=per_person(1))).values
    left = backend.raw_sql("SELECT table_name FROM information_schema.tables WHERE table_type != 'VIEW'").fetchall()
    assert left == [("people",)]


def test_a_users_connection_keeps_its_settings():
    backend = open_connection()
    people = engine_call("create", lambda: backend.create_table("people", pa.table(FRAME)))
    backend.raw_sql("SET disabled_optimizers = 'top_n'")
    assert open_source(people).collect_totals(QUESTION) == ANSWER
    assert backend.raw_sql("SELECT current_setting('disabled_optimizers')").fetchall() == [("top_n",)]


def test_an_ibis_expression_must_treat_rows_one_by_one():
    ibis = load_library("ibis")
    people = ibis.memtable(pa.table(FRAME))
    assert open_source(people.filter(people["person"] == 1)).collect_totals(ask()).values["rows"] == (2,)
    across = [
        people.limit(2),
        people.sample(0.5),
        people.distinct(),
        people.union(people),
        people.group_by("person").agg(n=people.count()),
        people.mutate(n=people["person"].count()),
        people.mutate(n=ibis.row_number()),
        people.mutate(n=ibis.random()),
        people.filter(people["person"] == people["person"].max()),
        people.filter(people["person"].isin(people["person"])),
    ]
    for table in across:
        with pytest.raises(InputError, match="one by one"):
            open_source(table)
    with pytest.raises(EngineError, match="back end"):
        open_source(ibis.table({"a": "int64"}, name="nowhere"))


def test_integers_of_128_bits_in_parquet_stop_only_questions_about_them(tmp_path: Path):
    path = tmp_path / "a=b" / "wide.parquet"
    path.parent.mkdir()
    frame = pl.DataFrame({"who": ["a", "b", "b"], "x": [1, 2, 3], "id": pl.Series([2**100, 5, None], dtype=pl.Int128)})
    frame.write_parquet(path)
    budget = tr.Budget(epsilon=1000, delta=0)
    session = tr.Session(path, privacy_unit="who", max_rows=2, budget=budget)
    count, total = session.plan([tr.count(), tr.sum("x", bounds=(0, 3))]).release()
    assert count.value == pytest.approx(3, abs=1) and total.value == pytest.approx(6, abs=1)
    with pytest.raises(SchemaError, match="the column 'id' has the type BLOB"):
        session.plan([tr.sum("id", bounds=(0, 1))])
    with pytest.raises(SchemaError, match="'id' has the type BLOB, which cannot identify people"):
        tr.Session(path, privacy_unit="id", max_rows=1, budget=budget)
    changed = tr.Session(path, privacy_unit="who", max_rows=2, budget=budget).plan([tr.count()])
    pl.concat([frame, frame]).write_parquet(path)
    with pytest.raises(InputError, match="has changed since"):
        changed.release()


@pytest.mark.filterwarnings("ignore:fetch_arrow_table:DeprecationWarning")  # ibis calls it
def test_two_private_tables_are_refused_with_advice_and_read_as_a_relation_or_a_view(tmp_path: Path):
    import duckdb
    import ibis

    ages, visits = (
        pa.table({"who": [1, 2, 3], "age": [20, 30, 70]}),
        pa.table({"who": [1, 1, 3, 4], "cost": [5, 6, 7, 8]}),
    )
    joined = ibis.memtable(visits).join(ibis.memtable(ages), "who")
    for source in (joined, joined.select("who", "cost"), [ages, visits], {"ages": ages}):
        with pytest.raises(InputError, match="on the column of the privacy unit in DuckDB"):
            open_source(source)
    query = "SELECT who, age, cost FROM visits JOIN ages USING (who)"
    with duckdb.connect(tmp_path / "a.duckdb") as file:
        for name, table in {"ages": ages, "visits": visits}.items():
            file.register("given", table)
            file.execute(f"CREATE TABLE {name} AS SELECT * FROM given")
        file.execute(f"CREATE VIEW joined AS {query}")
    memory = duckdb.connect()
    for name, table in {"ages": ages, "visits": visits}.items():
        memory.register(name, table)
    backend = ibis.duckdb.connect()
    backend.raw_sql("CREATE TABLE ages AS FROM (VALUES (1, 20), (2, 30), (3, 70)) AS t(who, age)")
    backend.raw_sql("CREATE TABLE visits AS FROM (VALUES (1, 5), (1, 6), (3, 7), (4, 8)) AS t(who, cost)")
    view = backend.create_view("joined", backend.table("visits").join(backend.table("ages"), "who"))
    budget = tr.Budget(epsilon=1000, delta=0)
    for source, options in ((memory.sql(query), {}), (tmp_path / "a.duckdb", {"table": "joined"}), (view, {})):
        session = tr.Session(source, privacy_unit="who", max_rows=2, budget=budget, **options)
        assert session.plan([tr.sum("age", bounds=(0, 100))]).release()[0].value == pytest.approx(110, abs=2)


@pytest.mark.parametrize(
    ("source", "options", "says"),
    [
        ("nowhere.parquet", {}, "a file that exists"),
        ("nowhere.csv", {}, "a file that exists"),
        ("nowhere.db", {"table": "t"}, "a file that exists"),
        ("people.xlsx", {}, "convert it to Parquet"),
        ("", {}, "a path to a"),
        ([1, 2], {}, "a path to a"),
        (None, {}, "a path to a"),
        (pd.DataFrame(FRAME), {"table": "t"}, "None unless the source is a DuckDB file"),
        (
            pa.table(FRAME),
            {"types": {}},
            "None unless the source is a CSV file, JSON lines, a pandas frame or a folder of partitions",
        ),
        (pd.DataFrame(FRAME), {"types": {"city": "text"}}, "without a type of its own"),
        (pd.DataFrame(FRAME), {"dialect": {}}, "None unless the source is a CSV file"),
        (pa.table({"a": [1], "A": [2]}), {}, "upper and lower case count as equal"),
        ("a.parquet", {"types": {"a": "number"}}, "None unless the source is a CSV file"),
        (pd.DataFrame({1: [2]}), {}, "a non-empty text"),
        (pd.DataFrame([[1, 2]], columns=["a", "a"]), {}, "a name that occurs once"),
        (pd.DataFrame(), {}, "at least one column"),
        (pa.table({"": [1]}), {}, "a non-empty text"),
    ],
)
def test_what_cannot_be_opened_says_why(source, options, says):
    with pytest.raises(InputError, match=says):
        open_source(source, **options)


@pytest.mark.parametrize(
    ("content", "types", "says"),
    [
        (b"", {}, "at least one column"),
        (b"a,a\n1,2\n", {}, "a name that occurs once"),
        (b"a,\n1,2\n", {}, "a non-empty text"),
        (b"\xff\xfe\n", {}, "UTF-8"),
        (b"income\n1\n", {"incme": "number"}, "did you mean 'income'"),
        (b"income\n1\n", {"income": "numbr"}, "did you mean 'number'"),
        (b"income\n1\n", {"income": "other"}, "one of 'integer'"),
    ],
)
def test_csv_files_that_are_refused(tmp_path, content, types, says):
    path = tmp_path / "p.csv"
    path.write_bytes(content)
    with pytest.raises(InputError, match=says):
        open_source(path, types=types)


@pytest.mark.parametrize(("name", "options"), [("broken.parquet", {}), ("broken.db", {"table": "t"})])
def test_broken_files_are_engine_errors(tmp_path, name, options):
    (tmp_path / name).write_text("PAR1" + PRIVATE * 500)
    with pytest.raises(EngineError) as failure:
        open_source(tmp_path / name, **options)
    refuse_leak(failure.value)


def test_importing_the_package_loads_no_engine():
    code = "import sys, tightrope.tables; print(sorted({'ibis', 'duckdb', 'pyarrow', 'pandas'} & set(sys.modules)))"
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert ran.stdout.strip() == "[]"


def test_a_missing_library_names_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "ibis", None)
    with pytest.raises(MissingExtraError, match=r"pip install 'tightrope\[release\]'"):
        open_source(pa.table(FRAME))


def test_nothing_is_written_where_we_are(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    table = open_source(pa.table({"person": list(range(1000)) * 4}))
    assert table.collect_totals(ask(bounds=per_person(1))).values["rows"] == (1000,)
    assert list(Path().iterdir()) == []


def test_collect_wants_a_request():
    with pytest.raises(InputError, match="Request"):
        open_source(pa.table(FRAME)).collect_totals("count")  # type: ignore[arg-type]


def test_an_identifier_of_128_bits_is_a_person():
    backend = open_connection()
    backend.raw_sql("CREATE TABLE t AS SELECT uuid() AS u, 170141183460469231731687303715884105727::HUGEINT AS person")
    backend.raw_sql("CREATE TYPE size AS ENUM ('small', 'large')")
    backend.raw_sql("ALTER TABLE t ADD COLUMN e size")
    backend.raw_sql("INSERT INTO t SELECT u, person, 'small' FROM t")
    table = open_source(engine_call("find the table", lambda: backend.table("t")))
    assert [column.kind for column in table.schema.columns] == ["text", "integer", "text"]
    assert table.collect_totals(ask(bounds=per_person(1))).values["rows"] == (1,)
    assert table.collect_totals(ask("e", keys=[("small",), ("large",)])).values["rows"] == (0, 1)
    assert table.collect_totals(ask("e", bounds=per_person(2))).keys == ((None,), ("small",))
    key = table.collect_totals(ask("person")).keys
    assert key == ((2**127 - 1,),)
    assert table.collect_totals(ask("person", keys=list(key))).values["rows"] == (2,)
    assert uuid.UUID(str(table.collect_totals(ask("u")).keys[0][0]))


@pytest.mark.parametrize("content", [b"", b"PAR", PRIVATE.encode() * 50])
def test_what_is_called_parquet_and_is_none_is_bad_input(tmp_path, content):
    (tmp_path / "p.parquet").write_bytes(content)
    with pytest.raises(InputError, match="a Parquet file") as refused:
        open_source(tmp_path / "p.parquet")
    refuse_leak(refused.value)


@pytest.mark.parametrize("header", [b",index\n", b",INDEX\n", b"a,,b\n", b'""\n'])
def test_other_columns_without_a_name_are_refused(tmp_path, header):
    (tmp_path / "p.csv").write_bytes(header)
    with pytest.raises(InputError, match="non-empty"):
        open_source(tmp_path / "p.csv")


def test_a_database_of_which_no_table_is_named_says_which_there_are(tmp_path):
    with load_library("duckdb").connect(str(tmp_path / "p.db")) as made:
        made.execute('create table visits as select 1 as a; create table "My people" as select 1 as a')
    with pytest.raises(InputError, match=r"one of 'My people', 'visits'.*--table"):
        open_source(tmp_path / "p.db")


def test_another_delimiter_is_named_as_it_is_said_in_python_and_on_a_command_line(tmp_path):
    (tmp_path / "p.csv").write_bytes(b"a;b\n1;2\n")
    with pytest.raises(InputError, match=r"say dialect=\{'delimiter': ';'\}, or --dialect 'delimiter=;'"):
        open_source(tmp_path / "p.csv")
