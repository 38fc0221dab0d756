"""Spark: what a user's session prefers – ANSI or not, which timestamps – moves no integer."""

from __future__ import annotations

import datetime as dt
import math
from decimal import Decimal
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.tables.every_engine import spark
from tests.tables.questions import COUNT, ask, mean, per_person
from tightrope.errors import EngineError, InputError, SchemaError
from tightrope.tables import FixedPoint, Measure, open_on_spark, open_source

pytestmark = pytest.mark.slow
ROWS = pa.table({
    "person": pa.array([n // 6 for n in range(60)], pa.int64()),
    "k": ["a", "A", None, "", "b", "b"] * 10,
    "x": [1e308, -1e308, math.nan, math.inf, None, 7.5] * 10,
    "i": pa.array([2**63 - 1, -(2**63), 0, None, 1, 2] * 10, pa.int64()),
    "d": pa.array([*map(Decimal, ("9" * 38, 1, -1, 0, 5)), None] * 10, pa.decimal128(38, 0)),
    "z": pa.array([dt.datetime(2024, 7, 1, 12, tzinfo=dt.UTC), None] * 30, pa.timestamp("us", tz="UTC")),
    "t": pa.array([dt.datetime(2024, 7, 1, 12), None] * 30, pa.timestamp("us")),
})  # fmt: skip
LARGEST = Measure("most", "i", FixedPoint(-1, 1, Decimal(2) ** -61, 0))
REQUESTS = [
    ask("k", bounds=per_person(4, 1, 3), measures=(COUNT, *mean("x"))),
    ask("d", keys=[(10**38 - 1,), (None,), (7,)], measures=(COUNT, LARGEST)),
    ask("i", bounds=per_person(3)),
    ask("z", keys=[(dt.datetime(2024, 7, 1, 12, tzinfo=dt.UTC),)]),
    ask("t", bounds=per_person(2)),
]
SETTINGS = {
    "ANSI": {"spark.sql.ansi.enabled": "true"},
    "not ANSI": {"spark.sql.ansi.enabled": "false"},
    "otherwise": {
        "spark.sql.ansi.enabled": "false",
        "spark.sql.caseSensitive": "true",
        "spark.sql.legacy.timeParserPolicy": "LEGACY",
        "spark.sql.storeAssignmentPolicy": "LEGACY",
        "spark.sql.timestampType": "TIMESTAMP_NTZ",
        "spark.sql.mapKeyDedupPolicy": "LAST_WIN",
    },
}


@pytest.mark.parametrize("settings", SETTINGS)
def test_a_sessions_settings_move_no_integer(tmp_path: Path, settings: str):
    pq.write_table(ROWS, tmp_path / "p.parquet")
    session = spark().newSession()
    for name, value in SETTINGS[settings].items():
        session.conf.set(name, value)
    honest, table = open_source(ROWS), open_source(session.read.parquet(str(tmp_path / "p.parquet")))
    with honest.open_snapshot(REQUESTS) as here, table.open_snapshot(REQUESTS) as there:
        for request in REQUESTS:
            assert there.collect_totals(request) == here.collect_totals(request), request.by
    for name, value in SETTINGS[settings].items():
        assert session.conf.get(name) == value


def test_partitions_on_spark_are_text_and_parts_are_alike(tmp_path: Path):
    spark()
    for year, place in (("2023", "a"), ("007", "b"), ("1e3", "c")):
        (tmp_path / "d" / f"year={year}").mkdir(parents=True)
        pq.write_table(pa.table({"x": [1, 2]}), tmp_path / "d" / f"year={year}" / f"{place}.parquet")
    table = open_on_spark(str(tmp_path / "d"))
    assert table.schema == open_source(tmp_path / "d").schema
    assert table.collect_totals(ask("year")) == open_source(tmp_path / "d").collect_totals(ask("year"))
    pq.write_table(pa.table({"x": [1.5]}), tmp_path / "d" / "year=007" / "z.parquet")
    with pytest.raises((EngineError, SchemaError)):
        open_on_spark(str(tmp_path / "d"))
    with pytest.raises(EngineError, match="are they there"):
        open_on_spark(str(tmp_path / "nowhere"))


@pytest.mark.parametrize("url", ["postgresql://anna:hunter2@localhost/x", "s3a://KEY:hunter2@bucket/visits"])
def test_a_password_never_comes_to_spark_that_logs_it(monkeypatch: pytest.MonkeyPatch, url: str):
    monkeypatch.setattr("tightrope.tables.sources.frames.load_library", lambda *_: pytest.fail("Spark was asked"))
    with pytest.raises(InputError, match="without what may be a password") as refusal:
        open_on_spark(url)
    assert "hunter2" not in str(refusal.value)
