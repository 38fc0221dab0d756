"""Spark: rows are held once, in a session of ours; collations, functions and dice of the user's change nothing."""

from __future__ import annotations

import pyarrow as pa
import pytest

from tests.tables.every_engine import spark
from tests.tables.questions import COUNT, ask, mean, per_person
from tightrope.errors import EngineError, InputError
from tightrope.tables import open_source
from tightrope.tables.backends import spark as facts

pytestmark = pytest.mark.slow
ROWS = [(number // 4, key, float(number)) for number, key in enumerate(["a", "A", "b", "á"] * 25)]


def frame():
    return spark().createDataFrame(ROWS, "person int, k string, x double")


def honest():
    return open_source(pa.table(dict(zip(("person", "k", "x"), zip(*ROWS, strict=True), strict=True))))


def test_a_frame_that_rolls_dice_is_held_once():
    functions = pytest.importorskip("pyspark.sql.functions")
    dice = frame().withColumn("person", (functions.rand() * 5).cast("int"))
    table = open_source(dice)
    with table.open_snapshot([ask(bounds=per_person(1)), ask("k", bounds=per_person(1))]) as rows:
        first, second = (rows.collect_totals(ask("k", bounds=per_person(1))) for _ in range(2))
    assert first == second
    assert sum(first.values["rows"]) <= 5


def test_collations_and_functions_of_the_user_are_not_in_the_room():
    session = spark()
    session.udf.register("floor", lambda x: 7, "int")
    try:
        request = ask("k", bounds=per_person(3, 1, 2), measures=(COUNT, *mean("x")))
        answer = open_source(frame()).collect_totals(request)
        assert sum(answer.values["rows"]) == sum(honest().collect_totals(request).values["rows"])
        assert open_source(frame()).collect_totals(ask(measures=mean("x"))) == honest().collect_totals(
            ask(measures=mean("x"))
        )
        loose = session.sql("SELECT 1 AS person, collate(k, 'UTF8_LCASE') AS k FROM VALUES ('a'), ('A') AS t(k)")
        assert open_source(loose).collect_totals(ask("k")).keys == (("A",), ("a",))
    finally:
        session.sql("DROP TEMPORARY FUNCTION IF EXISTS floor")


def test_two_looks_that_disagree_are_an_error(monkeypatch):
    looks = iter([(100, 1), (101, 2)])
    monkeypatch.setattr(facts, "_row_fingerprint", lambda _: next(looks))
    with pytest.raises(EngineError, match="second look"):
        open_source(frame()).collect_totals(ask("k"))


def test_names_in_capitals_are_refused():
    session = spark()
    session.conf.set("spark.sql.caseSensitive", "true")
    try:
        with pytest.raises(InputError, match="upper and lower case"):
            open_source(session.createDataFrame([(1, 2)], "k int, K int"))
    finally:
        session.conf.unset("spark.sql.caseSensitive")
