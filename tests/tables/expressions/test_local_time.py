"""Clocks of places: Python's own, at every change of the clock, on every engine."""

from __future__ import annotations

import datetime as dt
from zoneinfo import ZoneInfo

import pyarrow as pa
import pytest

from tests.tables.questions import COUNT, ROW_IS_PERSON
from tightrope.errors import InputError
from tightrope.tables import Request
from tightrope.tables.expressions.parsing import parse_expression
from tightrope.tables.expressions.times import CLOCK_TABLE_END, CLOCK_TABLE_START, clock_changes

ZONES = ("Europe/Berlin", "America/New_York", "Australia/Lord_Howe", "Africa/Monrovia")
"""Half an hour in summer; three quarters of an hour and half a minute until 1972."""
TICK = dt.timedelta(microseconds=1)


def shown(at: dt.datetime, zone: str) -> dt.datetime:
    return at.replace(tzinfo=dt.UTC).astimezone(ZoneInfo(zone)).replace(tzinfo=None)


@pytest.mark.parametrize("zone", ZONES[-2:])
def test_clocks_at_and_just_before_every_change_are_pythons(opened, zone):
    known = [at for at, _ in clock_changes(zone)]
    instants = sorted(
        {CLOCK_TABLE_START, CLOCK_TABLE_END, dt.datetime(2024, 7, 1, 12), *known, *(at - TICK for at in known[1:])}
    )
    table = opened(pa.table({"row": range(len(instants)), "at": pa.array(instants, pa.timestamp("us"))}))
    request = Request(("row", parse_expression(f"local(at, {zone!r})")), None, ROW_IS_PERSON, (COUNT,))
    assert [key[1] for key in table.collect_totals(request).keys] == [shown(at, zone) for at in instants]


@pytest.mark.parametrize("zone", ZONES)
def test_between_changes_every_hour_is_pythons(zone):
    known, at = clock_changes(zone), CLOCK_TABLE_START
    while at < CLOCK_TABLE_END:
        ahead = next(seconds for change, seconds in reversed(known) if change <= at)
        assert at + dt.timedelta(seconds=ahead) == shown(at, zone)
        at += dt.timedelta(hours=61)


@pytest.mark.parametrize("zone", ["", "Berlin", "Europe", "../etc/passwd", "/etc/localtime", "UTC\n", "CEST?"])
def test_what_is_no_time_zone_is_refused(zone):
    with pytest.raises(InputError, match="a time zone such as"):
        parse_expression(f"local(at, {zone!r})")


def test_the_zone_is_a_text():
    with pytest.raises(InputError, match="time zone"):
        parse_expression("local(at, 3)")
    with pytest.raises(InputError, match="local"):
        parse_expression("local(at, zone)")
    with pytest.raises(InputError, match="local"):
        parse_expression("local(at)")
