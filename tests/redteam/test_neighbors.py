"""Random tables in every kind of source: one person more, or a hostile one, moves no integer beyond what is declared.

Many tables lie in one source, told apart by a column that is part of every key, so that the share of CI (1 080 tables)
takes a minute; ``TIGHTROPE_TABLES=50000`` runs more. Every batch is read three times: with everybody, without the
newcomers, and the newcomers alone. What the newcomers' own bounded rows add is all that may change.
"""

from __future__ import annotations

import datetime as dt
import math
import os
import uuid
from collections import Counter
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import tightrope as tr
from tests.postgres_server import server
from tests.tables.every_engine import postgres_database, spark_frame
from tightrope.documents.privacy_unit import PrivacyUnit
from tightrope.queries.query_group import group_queries
from tightrope.release.bias_check import add_diagnostic_counts
from tightrope.tables import (
    Column,
    ContributionBounds,
    DistinctCount,
    Request,
    Schema,
    Table,
    attach_public_tables,
    bounding,
    open_source,
    public_table,
)
from tightrope.tables import bounding as rows
from tightrope.tables.bounding import ProjectedRows

TABLES = int(os.environ.get("TIGHTROPE_TABLES", "600"))
A_BATCH = 60
RANGES = {"bounds": (-2, 10)}
SECOND = (0, 3)
QUESTIONS = (
    tr.count(),
    tr.sum("x", bounds=(-2, 10)),
    tr.mean("x", bounds=(-2, 10)),
    tr.proportion("x"),
    tr.ratio("x", "y", **RANGES, denominator_bounds=SECOND),
    tr.standard_deviation("x", bounds=(-2, 10)),
    tr.correlation("x", "y", **RANGES, other_bounds=SECOND),
)
"""Kinds that have no vector of their own here: theirs are among these."""
PLAIN = tuple(v.with_name(f"{q.kind} {v.statistic_name}") for q in QUESTIONS for v in q.noisy_statistics())
NAMES = ("table", "person", "key", "x", "y", "day")
KINDS = {"table": "integer", "person": "text", "key": "text", "x": "number", "y": "number", "day": "date"}
ARROW = pa.schema(
    [
        (name, {"integer": "int64", "text": "string", "number": "float64", "date": "date32"}[KINDS[name]])
        for name in NAMES
    ]
)
SCHEMA = Schema(tuple(Column(name, KINDS[name]) for name in NAMES))
ONE_ROW = group_queries([tr.mean("x", bounds=(-2, 10))], PrivacyUnit("person", 1, 1, 1), SCHEMA)
VECTORS = (*PLAIN, *add_diagnostic_counts(ONE_ROW, Decimal("0.1"), SCHEMA)[0].diagnostic_counts)
"""Those of the kinds, and the counts of rows and of values beyond each end."""
MEASURES = tuple(vector.measure for vector in VECTORS)
HOSTILE_KEYS = ("a", "A", "á", "a\u0301", " a", "", None, "a\x00", 'a"b', "a,b", "ﬁ", "null", "NaN", "1", "a" * 300)
REGIONS = pa.table({
    "named": [key for key in HOSTILE_KEYS if key != "a"] + [None],
    "region": [f"r{place % 3}" if place % 4 else None for place in range(len(HOSTILE_KEYS))],
})  # fmt: skip
"""A public table with keys that are nearly alike, and some that are missing; nobody finds ``a``."""
HOSTILE_VALUES = (None, math.nan, -math.nan, math.inf, -math.inf, 1e308, -1e308, 5e-324, -0.0, 0.25, -2.0, 10.0, 1e6)
HOSTILE_DAYS = (None, dt.date(1, 1, 1), dt.date(9999, 12, 31), dt.date(2024, 2, 29))

Row = tuple[Any, ...]
Integers = dict[object, tuple[int, ...]]


def of_person(draw: np.random.Generator, table: int, person: str | None, hostile: bool) -> list[Row]:
    keys = HOSTILE_KEYS if hostile else ("a", "b", None)
    many = int(draw.integers(1, 40 if hostile else 5))
    return [
        (
            table,
            person,
            keys[draw.integers(len(keys))],
            *(
                HOSTILE_VALUES[draw.integers(len(HOSTILE_VALUES))] if hostile else float(draw.normal(4, 4))
                for _ in "xy"
            ),
            HOSTILE_DAYS[draw.integers(len(HOSTILE_DAYS))],
        )
        for _ in range(many)
    ]


def batch(draw: np.random.Generator) -> tuple[list[Row], list[Row]]:
    """The rows of the people who are there, and those of the newcomers, one a table."""
    there, new = [], []
    for table in range(A_BATCH):
        for person in range(draw.integers(0, 4)):
            there += of_person(draw, table, f"p{table} {person}", hostile=draw.random() < 0.3)
        there += of_person(draw, table, None, hostile=True) if draw.random() < 0.2 else []
        new += of_person(draw, table, f"new{table}", hostile=draw.random() < 0.7)
    return there, new


def arrow(chosen: list[Row]) -> pa.Table:
    columns = list(zip(*chosen, strict=True)) or [()] * len(NAMES)
    return pa.table([pa.array(column, field.type) for column, field in zip(columns, ARROW, strict=True)], NAMES)


def parquet(chosen: list[Row], folder: Path) -> Table:
    pq.write_table(arrow(chosen), folder / "p.parquet", row_group_size=50)
    return open_source(folder / "p.parquet")


def in_parts(chosen: list[Row], folder: Path) -> Table:
    for number in range(3):
        pq.write_table(arrow(chosen[number::3]), folder / f"part-{number}.parquet")
    return open_source(folder)


def as_csv(chosen: list[Row], folder: Path) -> Table:
    with (folder / "p.csv").open("w", newline="", encoding="utf-8") as file:
        file.write(",".join(NAMES) + "\n")
        for row in chosen:
            file.write(",".join("" if value is None else field(value) for value in row) + "\n")
    return open_source(folder / "p.csv", types=KINDS)


def field(value: object) -> str:
    if not isinstance(value, str):
        return str(value)
    return '"' + value.replace('"', '""') + '"'


def as_database(chosen: list[Row], folder: Path) -> Table:
    with duckdb.connect(folder / "p.duckdb") as connection:
        connection.register("frame", arrow(chosen))
        connection.execute(
            'CREATE TABLE base ("table" BIGINT, person VARCHAR COLLATE NOCASE, key VARCHAR COLLATE NOCASE.NOACCENT, '
            "x DOUBLE, y DOUBLE, day DATE)"
        )
        connection.execute("INSERT INTO base SELECT * FROM frame")
        for macro in ("least(a, b) AS a", "floor(a) AS a * 1e6", "isnan(a) AS false", "md5(a) AS ''", "sum(a) AS 9"):
            connection.execute(f"CREATE MACRO {macro}")
        connection.execute("CREATE VIEW people AS SELECT * FROM base ORDER BY random()")
    return open_source(folder / "p.duckdb", table="people")


def objects(chosen: list[Row], _: Path) -> Table:
    frame = pd.DataFrame({
        name: pd.Series(list(column), dtype=object)
        for name, column in zip(NAMES, list(zip(*chosen, strict=True)) or [()] * len(NAMES), strict=True)
    })  # fmt: skip
    return open_source(frame, types=KINDS)


def as_postgres(chosen: list[Row], _: Path) -> Table:
    """Text there holds no NUL: another letter stands for it, one that no other key has."""
    psycopg = pytest.importorskip("psycopg")
    name, url = f"hostile{uuid.uuid4().hex}", postgres_database()
    sql = psycopg.sql.SQL
    with server().connect(url) as connection:
        for statement in (
            "CREATE SCHEMA {}",
            "CREATE COLLATION {}.loose (provider = icu, locale = 'und-u-ks-level1', deterministic = false)",
            "CREATE FUNCTION {}.isnan(float8) RETURNS boolean LANGUAGE sql AS 'SELECT false'",
            'CREATE TABLE {0}.base ("table" int8, person text COLLATE {0}.loose, key text COLLATE {0}.loose, '
            "x float8, y float8, day date)",
            "CREATE VIEW {0}.people AS SELECT * FROM {0}.base ORDER BY random()",
        ):
            connection.execute(sql(statement).format(psycopg.sql.Identifier(name)))
        copy = sql("COPY {} FROM STDIN").format(psycopg.sql.Identifier(name, "base"))
        with connection.cursor() as cursor, cursor.copy(copy) as copied:
            for row in chosen:
                copied.write_row([x.replace("\0", "\N{SYMBOL FOR NULL}") if isinstance(x, str) else x for x in row])
    return open_source(url, table=f"{name}.people")


SOURCES: dict[str, Callable[[list[Row], Path], Table]] = {
    "arrow": lambda chosen, _: open_source(arrow(chosen)),
    "parquet": parquet,
    "parts": in_parts,
    "csv": as_csv,
    "duckdb": as_database,
    "polars": lambda chosen, _: open_source(pl.from_arrow(arrow(chosen)).lazy()),
    "pandas objects": objects,
    "postgres": as_postgres,
    "spark": lambda chosen, folder: spark_frame(arrow(chosen), folder),
}


def collected(draw: np.random.Generator, source: str, chosen: list[Row], request: Request, folder: Path) -> Integers:
    place = folder / f"{source}-{draw.integers(2**60)}"
    place.mkdir()
    shuffled = [chosen[i] for i in draw.permutation(len(chosen))]
    table = attach_public_tables(SOURCES[source](shuffled, place), public_table(REGIONS, on={"key": "named"}))
    answer = table.collect_totals(request)
    return dict(zip(answer.keys, zip(*answer.values.values(), strict=True), strict=True))


def check(draw: np.random.Generator, source: str, folder: Path, seen: Counter[str]) -> None:
    there, new = batch(draw)
    bounds = ContributionBounds("person", *(int(draw.integers(1, most)) for most in (7, 4, 4)))
    by = ("table", *(("key",), ("key", "day"), ("day",), ("region",), ("region", "day"))[draw.integers(5)])
    keys = None
    if draw.random() < 0.4 and "key" in by and "day" not in by:
        keys = tuple((table, key) for table in range(A_BATCH) for key in ("a", "A", None, "á"))
    different = DistinctCount("different", ("x", "day", "key")[draw.integers(3)], None)
    request = Request(by, keys, bounds, (*MEASURES, different))
    everybody, rest, alone = (collected(draw, source, part, request, folder) for part in (there + new, there, new))
    nothing = (0,) * (len(MEASURES) + 1)
    used: Counter[object] = Counter()
    groups: Counter[object] = Counter()
    for key in {**everybody, **rest, **alone}:
        own = alone.get(key, nothing)
        change = tuple(a - b for a, b in zip(everybody.get(key, nothing), rest.get(key, nothing), strict=True))
        assert change[:-1] == own[:-1], "one person changed what others add"
        assert 0 <= change[-1] <= own[-1] <= own[0], "a person may bring values that others have"
        assert 0 <= own[0] <= bounds.max_rows_per_group
        assert all(abs(one) <= vector.sensitivity * own[0] for one, vector in zip(own[:-1], VECTORS, strict=True))
        exclusive = [
            abs(one)
            for one, vector in zip(own[:-1], VECTORS, strict=True)
            if vector.disjoint_set and not vector.over_all_groups
        ]
        assert len(exclusive) == 2 and sum(exclusive) <= own[0]
        used[key[0]] += own[0]  # type: ignore[index]
        groups[key[0]] += own[0] > 0  # type: ignore[index]
    assert max(used.values()) <= bounds.max_rows
    assert max(groups.values()) <= bounds.max_groups
    seen[source] += A_BATCH
    seen["bounded"] += sum(size > used[table] for table, size in Counter(row[0] for row in new).items())


def run(tables: int, folder: Path, source: str) -> Counter[str]:
    seen: Counter[str] = Counter()
    draw = np.random.default_rng(list(SOURCES).index(source))
    for _ in range(math.ceil(tables / A_BATCH)):
        check(draw, source, folder, seen)
    return seen


@pytest.mark.slow
@pytest.mark.parametrize("source", SOURCES)
def test_one_person_moves_no_integer_beyond_what_is_declared(tmp_path, source):
    tables = TABLES // len(SOURCES) // (2 if source == "spark" else 1)  # each look takes Spark seconds
    seen = run(tables, tmp_path, source)
    assert seen[source] >= tables
    assert seen["bounded"] >= tables / 4


def all_different(own: ProjectedRows, name: str) -> ProjectedRows:
    """As if nothing had been dropped, where values are counted."""
    known = own.table.filter(own.table[name].notnull())
    return ProjectedRows(known.filter(False) if "rank" in own.table.columns else known, (*own.keys, name), ())


BUGS = {
    "scan order": (bounding, "row_order", lambda table, _: [table["person"]]),
    "no bounding": (bounding, "persons_over_bound", lambda narrow, _: narrow.table.filter(False).select("person")),
    "different values of all rows": (rows, "with_value_key", all_different),
    "no clamp": (rows, "clamp_column", lambda x, _: x.clip(-1e3, 1e3)),
}


@pytest.mark.parametrize("bug", BUGS)
def test_a_planted_bug_is_caught(tmp_path, monkeypatch, bug):
    monkeypatch.setattr(*BUGS[bug])
    with pytest.raises(AssertionError):
        run(6 * A_BATCH, tmp_path, "arrow")
