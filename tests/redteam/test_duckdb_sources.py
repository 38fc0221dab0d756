"""DuckDB files and connections that bring their own rules along: none of them reaches the rows that are counted."""

from __future__ import annotations

import threading
from decimal import Decimal
from pathlib import Path

import duckdb
import ibis
import pyarrow as pa
import pytest

from tests.tables.questions import COUNT, ask, mean, per_person
from tightrope.errors import EngineError, InputError
from tightrope.tables import FixedPoint, GroupTotals, Measure, Table, open_source
from tightrope.tables.backends.duckdb import MISLEADING, without_misleading_rules
from tightrope.tables.engine_calls import engine_call

PEOPLE = 40
FRAME = pa.table({
    "person": [number // 5 for number in range(5 * PEOPLE)],
    "k": ["a", "A", "á", "b", "b"] * PEOPLE,
    "x": [1e9, -1e9, float("nan"), 3.0, 7.0] * PEOPLE,
})  # fmt: skip
SUM = Measure("sum", "x", FixedPoint(0, 10, Decimal(1), 0))


def database(folder: Path, *statements: str) -> Path:
    path = folder / "hostile.duckdb"
    with duckdb.connect(path) as connection:
        connection.register("frame", FRAME)
        connection.execute("CREATE TABLE people AS SELECT * FROM frame")
        for statement in statements:
            connection.execute(statement)
    return path


def honest() -> Table:
    return open_source(FRAME)


@pytest.mark.parametrize(
    "macro",
    [
        "least(a, b) AS a",
        "greatest(a, b) AS a",
        "floor(a) AS a * 1000",
        "isnan(a) AS false",
        "sum(a) AS 7 * count(a)",
        "count(a) AS 0",
        "md5(a) AS 'same'",
        "length(a) AS 0",
        "row_number() AS 1",
    ],
)
def test_a_macro_of_the_file_stands_in_for_no_function_of_ours(tmp_path, macro):
    path = database(tmp_path, f"CREATE MACRO {macro}")
    request = ask("k", bounds=per_person(3, 1, 2), measures=(COUNT, SUM))
    assert open_source(path, table="people").collect_totals(request) == honest().collect_totals(request)


@pytest.mark.parametrize("collation", ["NOCASE", "NOACCENT", "NOCASE.NOACCENT"])
def test_a_collation_of_a_column_makes_no_two_keys_one(tmp_path, collation):
    path = database(tmp_path, f"CREATE TABLE loose (person BIGINT, k VARCHAR COLLATE {collation}, x DOUBLE)",
                    "INSERT INTO loose SELECT * FROM people")  # fmt: skip
    table = open_source(path, table="loose")
    assert table.collect_totals(ask("k")) == honest().collect_totals(ask("k"))
    spellings = [("b",), ("B",), ("a",), ("A",)]
    assert table.collect_totals(ask("k", keys=spellings)) == honest().collect_totals(ask("k", keys=spellings))


def test_a_collation_of_a_users_connection_makes_no_two_keys_one():
    backend = ibis.duckdb.connect()
    engine_call("create", lambda: backend.create_table("people", FRAME))
    backend.raw_sql("SET default_collation = 'NOCASE'").fetchall()
    backend.raw_sql("CREATE MACRO least(a, b) AS a").fetchall()
    request = ask("k", bounds=per_person(3, 1, 2), measures=(COUNT, SUM))
    assert open_source(engine_call("find", lambda: backend.table("people"))).collect_totals(
        request
    ) == honest().collect_totals(request)


@pytest.mark.parametrize(
    "view",
    [
        "SELECT * FROM people WHERE random() < 0.5",
        "SELECT * FROM people USING SAMPLE 50% (bernoulli)",
        "SELECT (random() * 20)::INTEGER AS person, k, x FROM people",
    ],
)
@pytest.mark.parametrize("bounds", [(1, 1, 1), (2, 1, 2)])
def test_a_view_that_rolls_dice_is_read_once(tmp_path, view, bounds):
    """Every scan of such a view has other rows: bounding that scans twice lets through more than it allows."""
    table = open_source(database(tmp_path, f"CREATE VIEW dice AS {view}"), table="dice")
    people = 21 if "random() *" in view else PEOPLE
    for _ in range(5):
        with table.open_snapshot([ask(bounds=per_person(*bounds)), ask("k", bounds=per_person(*bounds))]) as rows:
            answers = [rows.collect_totals(ask(*by, bounds=per_person(*bounds))) for by in ([], ["k"], [], ["k"])]
        assert answers[0] == answers[2]
        assert answers[1] == answers[3]
        assert 0 < answers[0].values["rows"][0] <= people * min(bounds)
        assert sum(answers[1].values["rows"]) <= people * bounds[0]


def test_one_person_of_a_view_that_rolls_dice_keeps_to_the_bound(tmp_path):
    path = database(tmp_path, "CREATE VIEW one AS SELECT 1 AS person, x FROM people WHERE random() < 0.5")
    table = open_source(path, table="one")
    assert {table.collect_totals(ask(bounds=per_person(1))).values["rows"] for _ in range(20)} == {(1,)}


@pytest.mark.parametrize("function", ["read_text('{}')", "read_csv('{}')", "read_blob('{}')"])
def test_a_view_reads_no_other_file(tmp_path, function):
    secret = tmp_path / "secret.txt"
    secret.write_text("a\nb\n")
    path = database(tmp_path, f"CREATE VIEW spy AS SELECT * FROM {function.format(secret)}")
    with pytest.raises(EngineError):
        open_source(path, table="spy").collect_totals(ask())


def test_releases_at_once_leave_a_users_connection_as_it_was():
    backend = ibis.duckdb.connect()
    backend.raw_sql("SET disabled_optimizers = 'top_n'").fetchall()
    inside = without_misleading_rules(backend)
    with without_misleading_rules(backend):
        with inside:
            pass
        rules = backend.raw_sql("SELECT current_setting('disabled_optimizers')").fetchall()[0][0]
        assert set(MISLEADING) <= set(rules.split(","))  # the second to leave does not switch them on for the first
    assert backend.raw_sql("SELECT current_setting('disabled_optimizers')").fetchall() == [("top_n",)]


def test_the_room_is_shut():
    table = honest()
    with table.open_snapshot([ask("k")]) as rows:
        connection = rows._over_bound_rows.backend.con
        for query in ("SET threads = 1", "SELECT * FROM read_text('/etc/hostname')", "ATTACH 'a.db'", "INSTALL httpfs"):
            with pytest.raises(duckdb.Error):
                connection.execute(query)
        settings = dict(connection.execute("SELECT name, value FROM duckdb_settings()").fetchall())
        assert settings["default_collation"] == ""
        assert settings["enable_external_access"] == "false"


def test_expressions_that_know_place_time_or_chance_are_refused():
    backend = ibis.duckdb.connect()
    people = engine_call("create", lambda: backend.create_table("people", FRAME))

    @ibis.udf.scalar.builtin
    def nextval(name: str) -> int: ...

    strays = [
        people.mutate(person=people.rowid()),
        people.mutate(person=ibis.row_number()),
        people.mutate(person=people["x"].rank()),
        people.mutate(person=people["x"].lag()),
        people.filter(ibis.random() < 0.5),
        people.mutate(t=ibis.now()),
        people.mutate(t=ibis.today()),
        people.mutate(u=ibis.uuid()),
        people.mutate(n=nextval("numbers")),
        people.sample(0.5),
    ]
    for stray in strays:
        with pytest.raises(InputError, match="one by one"):
            open_source(stray)
    plain = people.mutate(y=ibis.greatest(people["x"], 0).round(1), k=people["k"].upper().substr(0, 3))
    assert open_source(plain.filter(people["x"] > 0)).collect_totals(ask("k")).values["rows"]


def test_names_that_differ_in_capitals_only_are_refused():
    for names in (["k", "K"], ["straße", "STRASSE"]):
        with pytest.raises(InputError, match="upper and lower case"):
            open_source(pa.table([pa.array([1])] * 2, names))


def test_releases_in_threads_do_not_disturb_each_other():
    table, answers = honest(), []
    request = ask("k", bounds=per_person(2, 1, 2), measures=(COUNT, *mean("x")))
    threads = [threading.Thread(target=lambda: answers.append(table.collect_totals(request))) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(answers) == 4
    assert len(set(map(str, answers))) == 1
    assert isinstance(answers[0], GroupTotals)
