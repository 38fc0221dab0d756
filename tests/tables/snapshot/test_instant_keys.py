"""Instants and days as keys: the hour that autumn repeats, and days that Python has no name for."""

from __future__ import annotations

import datetime as dt

import duckdb
import pandas as pd
import pyarrow as pa
import pytest

from tightrope.tables import ContributionBounds, Measure, Request, open_source

ROWS = (Measure("rows", None, None),)


@pytest.mark.parametrize("bounds", [ContributionBounds(None, 1, 1, 1), ContributionBounds("person", 1, 1, 1)])
def test_the_repeated_hour_is_two_keys(bounds):
    first = pd.Timestamp("2024-10-27 00:30", tz="UTC").tz_convert("Europe/Berlin")
    times = [first] * 5 + [first + pd.Timedelta(hours=1)]
    table = open_source(pd.DataFrame({"t": times, "person": range(6)}))
    found = table.collect_totals(Request(("t",), None, bounds, ROWS))
    assert found.values["rows"] == (5, 1)
    assert [key[0].hour for key in found.keys] == [0, 1]


def test_days_outside_the_calendar_are_a_missing_key(tmp_path):
    path = tmp_path / "days.duckdb"
    with duckdb.connect(str(path)) as connection:
        connection.execute(
            "CREATE TABLE t AS SELECT unnest([DATE '2020-01-01', DATE '12000-01-01', 'infinity'::DATE, NULL]) AS d"
        )
    table = open_source(path, table="t")
    found = table.collect_totals(Request(("d",), None, ContributionBounds(None, 1, 1, 1), ROWS))
    assert found.keys == ((None,), (dt.date(2020, 1, 1),))
    assert found.values["rows"] == (3, 1)


@pytest.mark.parametrize("unit", ["s", "ms"])
def test_instants_beyond_what_microseconds_reach_are_a_missing_key(unit):
    counted = pa.array([0, 2**62], pa.int64()).cast(pa.timestamp(unit))
    found = open_source(pa.table({"t": counted})).collect_totals(
        Request(("t",), None, ContributionBounds(None, 1, 1, 1), ROWS)
    )
    assert found.keys == ((None,), (dt.datetime(1970, 1, 1),))
    assert found.values["rows"] == (1, 1)
