"""Dates and instants as days since 1970-01-01, the unit strings of such numbers, and the conversion back.

Answers about dates are numbers in documents, like all others, with a unit string of the CF conventions (netCDF):
pages, terminals and data frames show them as dates.
"""

from __future__ import annotations

import datetime
import math
from collections.abc import Callable
from typing import Literal

EPOCH = datetime.datetime(1970, 1, 1)
DATE_UNIT = "days since 1970-01-01"
INSTANT_UNIT = "days since 1970-01-01 00:00 UTC"
TIME_UNITS = (DATE_UNIT, INSTANT_UNIT)
"""The units of numbers that are shown as dates or as instants."""
SECONDS_OF_DAY = 86_400
FIRST_DAY, LAST_DAY = ((day - EPOCH.date()).days for day in (datetime.date.min, datetime.date.max))

Rounding = Literal["nearest", "down", "up"]
"""Values are rounded to the nearest; the ends of intervals outwards, "down" and "up"."""
ROUND_BY_DIRECTION: dict[Rounding, Callable[[float], int]] = {"nearest": round, "down": math.floor, "up": math.ceil}


def days_since_epoch(time: datetime.date) -> float:
    """Return the days from 1970-01-01 to a date or an instant; an instant without a time zone is taken as UTC.

    >>> days_since_epoch(datetime.date(2024, 1, 1)), days_since_epoch(datetime.datetime(1970, 1, 2, 12))
    (19723.0, 1.5)
    """
    if not isinstance(time, datetime.datetime):
        return float((time - EPOCH.date()).days)
    offset = time.utcoffset() or datetime.timedelta()
    microseconds = (time.replace(tzinfo=None) - offset - EPOCH) // datetime.timedelta(microseconds=1)
    return microseconds / (SECONDS_OF_DAY * 1_000_000)


def time_from_days(days: float, unit: str, rounding: Rounding = "nearest") -> datetime.date:
    """Return the date of a number of days, or with ``INSTANT_UNIT`` the instant to the second, in UTC.

    >>> time_from_days(19723.4, DATE_UNIT, "up").isoformat(), time_from_days(1.5, INSTANT_UNIT).isoformat()
    ('2024-01-02', '1970-01-02T12:00:00')
    """
    round_number = ROUND_BY_DIRECTION[rounding]
    bounded = min(max(days, FIRST_DAY), LAST_DAY)
    if unit == DATE_UNIT:
        return EPOCH.date() + datetime.timedelta(days=round_number(bounded))
    return EPOCH + datetime.timedelta(seconds=round_number(bounded * SECONDS_OF_DAY))


def time_text(days: float, unit: str, rounding: Rounding = "nearest") -> str:
    """Return the date, or the instant to the second, of a number of days as text.

    >>> time_text(19723.75, INSTANT_UNIT)
    '2024-01-01 18:00:00'
    """
    return time_from_days(days, unit, rounding).isoformat().replace("T", " ")
