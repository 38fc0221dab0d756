"""Databases that bring their own rules along: functions, operators, casts, collations, settings, policies, dice."""

from __future__ import annotations

import datetime as dt
import math
import re
import threading
import traceback
import uuid
from decimal import Decimal

import pyarrow as pa
import pytest

import tightrope as tr
from tests.postgres_server import LOCKED, PASSWORD, server
from tests.tables.questions import COUNT, ask, mean, per_person
from tightrope.errors import EngineError, InputError, SchemaError
from tightrope.tables import FixedPoint, Measure, Table, open_source
from tightrope.tables.backends import postgres as facts
from tightrope.tables.engine_calls import engine_call

PEOPLE = 40
ROWS = [(number // 5, key, x) for number, (key, x) in enumerate(
    [("a", 1e9), ("A", -1e9), ("á", math.nan), ("b", 3.0), ("b", 7.0)] * PEOPLE
)]  # fmt: skip
SUM = Measure("sum", "x", FixedPoint(0, 10, Decimal(1), 0))
REQUEST = ask("k", bounds=per_person(3, 1, 2), measures=(COUNT, SUM))
WORD = "Anna Schmidt"
UTC = dt.UTC


@pytest.fixture(scope="module")
def shared() -> str:
    """One database for tests that leave nothing behind that others could stumble over."""
    return server().database()


@pytest.fixture
def fresh() -> str:
    return server().database()


def filled(url: str, *statements: str, columns: str = "person int8, k text, x float8") -> None:
    with server().connect(url) as connection:
        connection.execute(f"CREATE TABLE people ({columns})")
        with connection.cursor() as cursor, cursor.copy("COPY people (person, k, x) FROM STDIN") as copy:
            for row in ROWS:
                copy.write_row(row)
        for statement in statements:
            connection.execute(statement)


def honest() -> Table:
    return open_source(pa.table(dict(zip(("person", "k", "x"), zip(*ROWS, strict=True), strict=True))))


def column(url: str, kind: str, *values: str, name: str = "k") -> Table:
    """A table with one such column, each value as SQL spells it."""
    table = f"t{uuid.uuid4().hex}"
    rows = ", ".join(f"({value}, {place})" for place, value in enumerate(values))
    server().run(url, f"CREATE TABLE {table} ({name} {kind}, place int)", f"INSERT INTO {table} VALUES {rows}")
    return open_source(url, table=table)


def keys(table: Table) -> list[object]:
    return [key for (key,) in table.collect_totals(ask("k")).keys]


def refuse_leak(error: BaseException, secret: str = WORD) -> None:
    assert error.__context__ is None
    assert error.__cause__ is None
    assert secret not in "".join(traceback.format_exception(error))


HOSTILE = {
    "functions": [
        "CREATE FUNCTION set_config(text, text, boolean) RETURNS text LANGUAGE sql AS 'SELECT ''UTC'''",
        "CREATE FUNCTION row_security_active(oid) RETURNS boolean LANGUAGE sql AS 'SELECT true'",
        "CREATE FUNCTION has_column_privilege(oid, int2, text) RETURNS boolean LANGUAGE sql AS 'SELECT false'",
    ],
    "operators": [
        "CREATE FUNCTION never(text, text) RETURNS boolean LANGUAGE sql AS 'SELECT false'",
        "CREATE OPERATOR = (LEFTARG = text, RIGHTARG = text, FUNCTION = never)",
        "CREATE FUNCTION never(name, text) RETURNS boolean LANGUAGE sql AS 'SELECT false'",
        "CREATE OPERATOR = (LEFTARG = name, RIGHTARG = text, FUNCTION = never)",
    ],
    "casts": [
        "CREATE TYPE fake AS (x int)",
        "CREATE FUNCTION to_fake(text) RETURNS fake LANGUAGE sql AS 'SELECT ROW(1)::fake'",
        "CREATE CAST (text AS fake) WITH FUNCTION to_fake(text) AS IMPLICIT",
    ],
    "catalog": [
        "CREATE TABLE pg_class (oid oid, relname name, relnamespace oid, relkind char)",
        "CREATE TABLE pg_attribute (attname name)",
        "CREATE TABLE pg_type (oid oid)",
    ],
}


@pytest.mark.parametrize("kind", HOSTILE)
def test_what_a_schema_brings_along_stands_in_for_nothing_of_ours(fresh, kind):
    filled(fresh, *HOSTILE[kind])
    name = re.search(r"/(d\w+)\?", fresh)[1]  # type: ignore[index]
    server().run(fresh, f"ALTER DATABASE {name} SET search_path = public, pg_catalog")
    assert open_source(fresh, table="people").collect_totals(REQUEST) == honest().collect_totals(REQUEST)


def test_settings_of_database_role_and_url_change_nothing(fresh):
    columns = "person int8, k text, x float8, t timestamptz DEFAULT '2024-07-01 12:00+00', d date DEFAULT '2024-02-03'"
    filled(fresh, "ALTER TABLE people ADD f float8 DEFAULT 0.1::float8 + 0.2::float8", columns=columns)
    name = re.search(r"/(d\w+)\?", fresh)[1]  # type: ignore[index]
    for setting in (
        "\"TimeZone\" = 'America/New_York'",
        "\"DateStyle\" = 'German, DMY'",
        "extra_float_digits = -15",
        "client_encoding = 'LATIN1'",
        "statement_timeout = '1ms'",
        "default_transaction_isolation = 'read committed'",
        "default_transaction_read_only = off",
        "standard_conforming_strings = off",
        "search_path = nowhere",
    ):
        server().run(server().url(), f"ALTER DATABASE {name} SET {setting}")
    table = open_source(fresh + "&options=-c%20extra_float_digits%3D-10", table="people")
    assert table.collect_totals(REQUEST) == honest().collect_totals(REQUEST)
    found = table.collect_totals(ask("t", "d", "f"))
    assert found.keys == ((dt.datetime(2024, 7, 1, 12, tzinfo=UTC), dt.date(2024, 2, 3), 0.1 + 0.2),)


@pytest.mark.parametrize("late", [1, 2, 3, 4])
def test_a_limit_of_time_that_cancels_our_first_words_is_taken_away(fresh, monkeypatch, late):
    """On a busy machine a role's limit of a millisecond ends even BEGIN, or what takes the limit away."""
    filled(fresh)
    given, psycopg, left = facts._change_setting, pytest.importorskip("psycopg"), late

    def canceled(connection: object, name: str, value: str) -> None:
        nonlocal left
        left -= 1
        given(connection, name, value)
        if left >= 0:
            raise psycopg.errors.QueryCanceled("canceling statement due to statement timeout")

    monkeypatch.setattr(facts, "_change_setting", canceled)
    assert open_source(fresh, table="people").collect_totals(REQUEST) == honest().collect_totals(REQUEST)
    assert left < 0


@pytest.mark.parametrize("place", ["database", "column", "domain"])
def test_a_collation_makes_no_two_keys_one(fresh, place):
    server().run(
        fresh,
        "CREATE COLLATION loose (provider = icu, locale = 'und-u-ks-level1', deterministic = false)",
        "CREATE DOMAIN words AS text COLLATE loose",
    )
    kinds = {"database": 'text COLLATE "C"', "column": "text COLLATE loose", "domain": "words"}
    filled(fresh, columns=f"person int8, k {kinds[place]}, x float8")
    table = open_source(fresh, table="people")
    assert table.collect_totals(ask("k")) == honest().collect_totals(ask("k"))
    spellings = [("b",), ("B",), ("a",), ("A",)]
    assert table.collect_totals(ask("k", keys=spellings)) == honest().collect_totals(ask("k", keys=spellings))


VALUES = {
    "float8": (
        ["'NaN'", "'Infinity'", "'-Infinity'", "'-0'", "5e-324", "1.7976931348623157e308", "0.1", "NULL"],
        [None, -math.inf, 0.0, 5e-324, 0.1, 1.7976931348623157e308, math.inf],
    ),
    "float4": (["'NaN'", "'Infinity'", "0.1", "NULL"], [None, 0.10000000149011612, math.inf]),
    "numeric": (
        ["'NaN'", "'Infinity'", "'-Infinity'", "1e400", "-1e131000", "1e-400", "0.1", "NULL"],
        [None, -math.inf, 5e-324, 0.1, math.inf],
    ),
    "numeric(5, 2)": (["'NaN'", "1.5", "-999.99", "NULL"], [None, Decimal("-999.99"), Decimal("1.50")]),
    "numeric(38, 0)": (["'NaN'", "9" * 38, "NULL"], [None, 10**38 - 1]),
    "numeric(50, 0)": (["'NaN'", "9" * 50, "7"], [None, 7.0, 1e50]),
    "numeric(3, -2)": (["12300", "NULL"], [None, 12300.0]),
    "int8": (["-9223372036854775808", "9223372036854775807", "NULL"], [None, -(2**63), 2**63 - 1]),
    "int2": (["-32768", "32767"], [-32768, 32767]),
    "boolean": (["true", "false", "NULL"], [None, False, True]),
    "date": (
        ["'infinity'", "'-infinity'", "'0044-03-15 BC'", "'10000-01-01'", "'0001-01-01'", "'9999-12-31'", "NULL"],
        [None, dt.date(1, 1, 1), dt.date(9999, 12, 31)],
    ),
    "timestamp": (
        ["'infinity'", "'-infinity'", "'0044-03-15 12:00 BC'", "'294276-01-01'", "'2024-02-29 23:59:59.000001'"],
        [None, dt.datetime(2024, 2, 29, 23, 59, 59, 1)],
    ),
    "timestamptz": (
        ["'infinity'", "'4713-01-01 BC'", "'2024-10-27 02:30+02'", "'2024-10-27 02:30+01'", "'0001-01-01 00:00+00'"],
        [
            None,
            dt.datetime(1, 1, 1, tzinfo=UTC),
            dt.datetime(2024, 10, 27, 0, 30, tzinfo=UTC),
            dt.datetime(2024, 10, 27, 1, 30, tzinfo=UTC),
        ],
    ),
    "text": (
        ["''", "NULL", "E'\\n'", "E'a\\r\\nb'", "'\\.'", "'\"'", "'a,b'", "' a'", "E'e\\u0301'", "E'\\u00e9'", "'\\N'"],
        [None, "", "\n", " a", '"', "\\.", "\\N", "a\r\nb", "a,b", "e\u0301", "é"],
    ),
    "char(3)": (["'a'", "'a  '", "' a'", "''", "NULL"], [None, "", " a", "a"]),
    "varchar(3)": (["'a'", "'a  '", "NULL"], [None, "a", "a  "]),
    "uuid": (["'A0EEBC99-9C0B-4EF8-BB6D-6BB9BD380A11'", "NULL"], [None, "a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11"]),
}


@pytest.mark.parametrize("kind", VALUES)
def test_each_value_is_itself_or_missing_and_stops_nobody(shared, kind):
    values, expected = VALUES[kind]
    table = column(shared, kind, *values)
    assert keys(table) == expected
    assert sum(table.collect_totals(ask("k")).values["rows"]) == len(values)
    if table.schema.find_column("k").kind in ("number", "integer", "boolean"):
        usable = [key for key in expected if key is not None]
        measured = table.collect_totals(ask(measures=mean("k", lower=-2, upper=10))).values
        assert measured["usable"][0] >= len(usable)


@pytest.mark.parametrize(
    "kind",
    ["bytea", "int[]", "json", "jsonb", "time", "timetz", "interval", "int4range", "inet", "money", "oid", "xml"],
)
def test_other_types_are_no_keys_and_open_all_the_same(shared, kind):
    table = column(shared, kind, "NULL")
    assert table.schema.find_column("k").kind == "other"
    assert table.collect_totals(ask()).values["rows"] == (1,)
    with pytest.raises(SchemaError):
        table.collect_totals(ask("k"))


@pytest.mark.parametrize(
    ("kind", "values", "people"),
    [
        ("int8", ["9223372036854775807", "9223372036854775806", "9007199254740993", "9007199254740992"], 4),
        ("numeric", ["3", "2.99999999999999999999999999", "3.00000000000000000000000001"], 1),
        ("numeric", ["0", "1e-400", "-1e-400"], 1),
        ("numeric", ["9007199254740993", "9007199254740992"], 0),
        ("numeric(20, 0)", ["9007199254740993", "9007199254740992"], 2),
    ],
)
def test_people_whose_numbers_are_near_are_never_one(shared, kind, values, people):
    table = column(shared, kind, *values, name="person")
    assert table.collect_totals(ask(bounds=per_person(1))).values["rows"] == (people,)


def test_enums_domains_citext_and_generated_columns_are_what_they_say(fresh):
    server().run(
        fresh,
        "CREATE EXTENSION citext",
        "CREATE TYPE mood AS ENUM ('sad', 'Ok')",
        "CREATE DOMAIN small AS numeric(5, 1) CHECK (value > 0)",
        "CREATE DOMAIN smaller AS small",
        "CREATE TABLE people (m mood, c citext, s smaller, g float8 GENERATED ALWAYS AS (2 * s) STORED)",
        "INSERT INTO people VALUES ('sad', 'A', 1.5), ('Ok', 'a', 2.5), (NULL, NULL, NULL)",
    )
    table = open_source(fresh, table="people")
    assert [column.kind for column in table.schema.columns] == ["text", "text", "number", "number"]
    assert table.collect_totals(ask("m")).keys == ((None,), ("Ok",), ("sad",))
    assert table.collect_totals(ask("c")).keys == ((None,), ("A",), ("a",))
    assert table.collect_totals(ask("s")).keys == ((None,), (Decimal("1.5"),), (Decimal("2.5"),))
    assert table.collect_totals(ask("g")).keys == ((None,), (3.0,), (5.0,))


@pytest.mark.parametrize(
    ("encoding", "raw", "expected"),
    [
        ("SQL_ASCII", [b"ok", b"\xff\xfe", "é".encode()], [None, "ok", "é"]),
        ("LATIN1", [b"ok", b"\xe9"], ["ok", "é"]),
        ("WIN1252", [b"ok", b"\x80", b"\x81"], [None, "ok", "€"]),
        ("EUC_JP", [b"ok", "日本".encode("euc_jp")], ["ok", "日本"]),
    ],
)
def test_text_in_any_encoding_is_itself_or_missing(encoding, raw, expected):
    url = server().database(encoding=encoding)
    server().run(url, "CREATE TABLE words (k text)")
    with server().connect(url) as connection:
        connection.execute(f"SET client_encoding = '{encoding}'")
        with connection.cursor() as cursor, cursor.copy("COPY words FROM STDIN") as copy:
            copy.write(b"".join(word + b"\n" for word in raw))
    assert keys(open_source(url, table="words")) == expected


DICE = {
    "half": "SELECT * FROM people WHERE random() < 0.5",
    "sample": "SELECT * FROM people TABLESAMPLE BERNOULLI (50)",
    "person": "SELECT floor(random() * 20)::int AS person, k, x FROM people",
}


@pytest.mark.parametrize("view", DICE)
def test_a_view_that_rolls_dice_is_read_once(fresh, view):
    filled(fresh, f"CREATE VIEW dice AS {DICE[view]}")
    table = open_source(fresh, table="dice")
    requests = [ask(*by, bounds=per_person(2, 1, 2)) for by in ([], ["k"], [], ["k"])]
    with table.open_snapshot(requests) as rows:
        answers = [rows.collect_totals(request) for request in requests]
    assert answers[0] == answers[2]
    assert answers[1] == answers[3]
    assert 0 < answers[0].values["rows"][0] <= PEOPLE


def test_rows_that_come_meanwhile_are_not_read(fresh):
    server().run(
        fresh, "CREATE TABLE people AS SELECT i AS person, repeat('x', 90) AS k FROM generate_series(1, 90000) i"
    )
    table = open_source(fresh, table="people")
    assert table._open_stream is not None
    batches = iter(table._open_stream(["person", "k"]).read_batches())
    read = len(next(batches))
    server().run(
        fresh, "DELETE FROM people WHERE person % 2 = 0", "INSERT INTO people SELECT -i FROM generate_series(1, 7) i"
    )
    rest = list(batches)
    assert rest
    assert read + sum(map(len, rest)) == 90_000
    assert table.collect_totals(ask()).values["rows"] == (45_007,)


def test_a_reader_who_stops_leaves_no_query_behind(fresh):
    server().run(fresh, "CREATE TABLE people AS SELECT repeat('x', 999) AS k FROM generate_series(1, 90000)")
    table = open_source(fresh, table="people")
    assert table._open_stream is not None
    batches = iter(table._open_stream(["k"]).read_batches())
    next(batches)
    batches.close()  # type: ignore[attr-defined]
    with server().connect(fresh) as connection:
        query = "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()"
        for _ in range(50):
            ((left,),) = connection.execute(query).fetchall()
            if left == 0:
                break
            connection.execute("SELECT pg_sleep(0.05)")
    assert left == 0


def test_a_view_that_writes_or_speaks_is_refused_when_its_rows_are_read(fresh):
    """Whether it speaks can depend on a row, so the failure is charged."""
    filled(
        fresh,
        "CREATE TABLE trace (word text)",
        "CREATE FUNCTION noted(word text) RETURNS text LANGUAGE plpgsql AS "
        "$$ BEGIN INSERT INTO trace VALUES (word); RETURN word; END $$",
        "CREATE FUNCTION told(word text) RETURNS text LANGUAGE plpgsql AS "
        f"$$ BEGIN RAISE EXCEPTION 'the word of {WORD} is %', word; END $$",
        "CREATE VIEW noting AS SELECT person, noted(k) AS k FROM people",
        "CREATE VIEW telling AS SELECT person, told(k) AS k FROM people",
    )
    for view in ("noting", "telling"):
        session = tr.Session(
            fresh, table=view, privacy_unit="person", max_rows=1, budget=tr.Budget(epsilon=1, delta=1e-8)
        )
        plan = session.plan([tr.count(by="k")])
        plan.dry_run()
        with pytest.raises(EngineError, match="charged before it reads") as failure:
            plan.release()
        assert WORD not in str(failure.value)
        assert session.spent["budget_fraction"] == "1"
    with server().connect(fresh) as connection:
        assert connection.execute("SELECT * FROM trace").fetchall() == []


def test_a_role_that_may_only_read_some_columns_is_enough(fresh):
    filled(
        fresh,
        "DROP ROLE IF EXISTS reader",
        "CREATE ROLE reader LOGIN",
        "REVOKE ALL ON SCHEMA public FROM public",
        "GRANT USAGE ON SCHEMA public TO reader",
        "GRANT SELECT (person, k) ON people TO reader",
        "CREATE TABLE hidden (k text)",
    )
    url = fresh.replace("tester@", "reader@")
    table = open_source(url, table="people")
    assert table.schema.column_names == ("person", "k")
    assert table.collect_totals(ask("k", bounds=per_person(2))) == honest().collect_totals(
        ask("k", bounds=per_person(2))
    )
    with pytest.raises(SchemaError, match=r"'public\.people'") as refusal:
        open_source(url, table="hidden")
    assert "'public.hidden'," not in str(refusal.value)
    server().run(fresh, "DROP OWNED BY reader", "DROP ROLE reader")


def test_rows_that_a_policy_hides_are_no_table(fresh):
    filled(
        fresh,
        "DROP ROLE IF EXISTS walled",
        "CREATE ROLE walled LOGIN",
        "GRANT SELECT ON people TO walled",
        "CREATE VIEW seen AS SELECT * FROM people",
        "ALTER VIEW seen SET (security_invoker = true)",
        "GRANT SELECT ON seen TO walled",
    )
    url = fresh.replace("tester@", "walled@")
    opened = [open_source(url, table=name) for name in ("people", "seen")]
    server().run(
        fresh,
        "ALTER TABLE people ENABLE ROW LEVEL SECURITY",
        "CREATE POLICY few ON people USING (person < 3)",
    )
    with pytest.raises(InputError, match="BYPASSRLS"):
        open_source(url, table="people")
    for table in opened:
        with pytest.raises((InputError, EngineError)):
            table.collect_totals(ask("k"))
    assert open_source(fresh, table="people").collect_totals(ask("k")) == honest().collect_totals(ask("k"))
    server().run(fresh, "DROP OWNED BY walled", "DROP ROLE walled")


def test_partitions_foreign_tables_and_materialized_views_are_tables(fresh):
    address = re.search(r"/(d\w+)\?host=(.*)", fresh)
    assert address is not None
    filled(
        fresh,
        "CREATE TABLE parted (LIKE people) PARTITION BY LIST (k)",
        "CREATE TABLE parted_b PARTITION OF parted FOR VALUES IN ('b')",
        "CREATE TABLE parted_rest PARTITION OF parted DEFAULT",
        "INSERT INTO parted SELECT * FROM people",
        "CREATE MATERIALIZED VIEW kept AS SELECT * FROM people",
        "CREATE EXTENSION postgres_fdw",
        f"CREATE SERVER other FOREIGN DATA WRAPPER postgres_fdw OPTIONS (host '{address[2]}', dbname '{address[1]}')",
        "CREATE USER MAPPING FOR tester SERVER other OPTIONS (user 'tester')",
        "CREATE FOREIGN TABLE far (person int8, k text, x float8) SERVER other OPTIONS (table_name 'people')",
    )
    for name in ("parted", "kept", "far"):
        assert open_source(fresh, table=name).collect_totals(REQUEST) == honest().collect_totals(REQUEST)


@pytest.mark.parametrize("change", ["ALTER COLUMN k TYPE varchar(1)", "ALTER COLUMN person TYPE text", "DROP COLUMN k"])
def test_a_table_that_became_another_is_refused(fresh, change):
    filled(fresh)
    table = open_source(fresh, table="people")
    server().run(fresh, f"ALTER TABLE people {change}")
    if "varchar" in change:  # text is text
        assert table.collect_totals(ask("k")).values["rows"]
        return
    with pytest.raises((InputError, EngineError)):
        table.collect_totals(REQUEST)


def test_names_are_names(fresh):
    quoted = 'peo"ple"; DROP TABLE people; --'.replace('"', '""')
    filled(
        fresh,
        'CREATE SCHEMA "my.own"',
        f'CREATE TABLE "my.own"."{quoted}" AS SELECT * FROM people',
        'ALTER TABLE people RENAME COLUMN k TO "k""; %s"',
    )
    assert open_source(fresh, table=f'"my.own"."{quoted}"').collect_totals(REQUEST) == honest().collect_totals(REQUEST)
    table = open_source(fresh, table="public.people")
    assert sum(table.collect_totals(ask('k"; %s')).values["rows"]) == len(ROWS)
    with pytest.raises(SchemaError, match=r"did you mean 'public\.people'"):
        open_source(fresh, table="peeple")
    for name in ("a.b.c", "", "a.", '"a', "pg_catalog.pg_sequence_missing"):
        with pytest.raises(InputError):
            open_source(fresh, table=name)


@pytest.mark.parametrize(
    "url",
    [
        "postgresql://anna:hush-hush@localhost/db",
        "postgresql://anna@localhost/db?password=hush-hush",
        "postgres://anna@localhost/db?sslpassword=hush-hush",
        "postgresql://anna:hush-hush@localhost:port/db?nonsense=1",
        "postgresql://anna:hush-hush@[",
        "postgresql://anna:hu@hush@localhost/db",
        "postgresql://anna:hu/hush@localhost/db",
    ],
)
def test_a_password_in_a_url_is_refused_and_not_repeated(url):
    with pytest.raises(InputError) as refusal:
        open_source(url, table="people")
    refuse_leak(refusal.value, "hush")


def test_the_password_comes_from_the_environment_or_a_file_and_is_in_no_error(fresh, monkeypatch, tmp_path):
    filled(fresh, f"GRANT SELECT ON people TO {LOCKED}")
    url = fresh.replace("tester@", f"{LOCKED}@")
    monkeypatch.setenv("PGPASSFILE", str(tmp_path / "none"))
    monkeypatch.setenv("PGPASSWORD", "a wrong guess")
    with pytest.raises(EngineError, match="PGPASSWORD") as failure:
        open_source(url, table="people")
    refuse_leak(failure.value, "a wrong guess")
    monkeypatch.setenv("PGPASSWORD", PASSWORD)
    table = open_source(url, table="people")
    assert PASSWORD not in repr(table)
    assert table.collect_totals(REQUEST) == honest().collect_totals(REQUEST)
    monkeypatch.delenv("PGPASSWORD")
    (tmp_path / "pass").write_text(f"*:*:*:{LOCKED}:{PASSWORD}\n")
    (tmp_path / "pass").chmod(0o600)
    monkeypatch.setenv("PGPASSFILE", str(tmp_path / "pass"))
    assert open_source(url, table="people").collect_totals(REQUEST) == honest().collect_totals(REQUEST)


def test_an_ibis_table_of_the_database_is_sent_to_its_url(fresh):
    import ibis

    filled(fresh)
    place = re.search(r"/(d\w+)\?host=(.*)", fresh)
    assert place is not None
    backend = engine_call("connect", lambda: ibis.postgres.connect(host=place[2], user="tester", database=place[1]))
    table = engine_call("find", lambda: backend.table("people"))
    with pytest.raises(InputError, match="postgresql://"):
        open_source(table)
    backend.disconnect()


@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # of ibis; which are silenced is not known by thread
def test_releases_in_threads_do_not_disturb_each_other(fresh):
    filled(fresh)
    table, answers = open_source(fresh, table="people"), []
    threads = [threading.Thread(target=lambda: answers.append(table.collect_totals(REQUEST))) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(answers) == 4
    assert len(set(map(str, answers))) == 1


def test_rows_that_were_not_all_read_are_an_error(fresh, monkeypatch):
    filled(fresh)
    psycopg, lost = pytest.importorskip("psycopg"), []
    read = psycopg.Copy.read

    def read_without_first(copy):
        if not lost:
            lost.append(read(copy))
        return read(copy)

    monkeypatch.setattr(psycopg.Copy, "read", read_without_first)
    with pytest.raises(EngineError, match="another number of rows"):
        open_source(fresh, table="people").collect_totals(REQUEST)
