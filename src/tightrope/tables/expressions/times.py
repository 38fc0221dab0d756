"""Functions of days and instants: their parts, the beginning of a week or month, lengths of stays, local time.

Instants are in UTC, without a zone, as ``ColumnRef`` gives them. Weeks are those of ISO 8601: they begin on Mondays,
and week 1 of a year has its first Thursday.
"""

from __future__ import annotations

import datetime
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, final
from zoneinfo import ZoneInfo

from tightrope.errors import InputError
from tightrope.tables.engine_calls import load_library
from tightrope.tables.expressions.leaves import (
    ENGINE_TYPES,
    TIME_KINDS,
    Value,
    column_in_kind,
    common_kind,
    double_literal,
)
from tightrope.tables.expressions.tree import ExpressionTree, SourceRows, ValueFacts
from tightrope.tables.schema import Kind, Schema

if TYPE_CHECKING:
    import ibis.expr.types as ir

EPOCH_DAY_RANGE = tuple((day - datetime.date(1970, 1, 1)).days for day in (datetime.date.min, datetime.date.max))
UNITS = {
    "year": (1, 9999),
    "quarter": (1, 4),
    "month": (1, 12),
    "week_of_year": (1, 53),
    "day": (1, 31),
    "weekday": (1, 7),
    "hour": (0, 23),
    "minute": (0, 59),
    "days": (EPOCH_DAY_RANGE[0], EPOCH_DAY_RANGE[1]),
}
"""The units of ``Calendar``, each with its least and largest value."""
CLOCK_UNITS = ("hour", "minute")
"""The units that a day does not have."""
TRUNCATIONS = {"year": "Y", "quarter": "Q", "month": "M", "week": "W", "day": "D", "hour": "h", "minute": "m"}
"""The units of ``Truncate``, and their names in ibis."""
ELAPSED_MICROSECONDS = {
    "days_between": 86_400_000_000,
    "hours_between": 3_600_000_000,
    "minutes_between": 60_000_000,
    "seconds_between": 1_000_000,
}
"""The functions of ``Elapsed``, and the microseconds of their unit."""
MICROSECONDS_OF_DAY = 86_400_000_000
EPOCH_TEXT = Value("1970-01-01", "text")

CLOCK_TABLE_START, CLOCK_TABLE_END = datetime.datetime(1970, 1, 1), datetime.datetime(2050, 1, 1)
"""Clock changes between these are followed; before and after, offsets from UTC stay as they are at these instants."""
_DAY = datetime.timedelta(days=1)
_SECOND = datetime.timedelta(seconds=1)
_SHIFTABLE_RANGE = datetime.datetime(1, 1, 2), datetime.datetime(9999, 12, 30)
"""Instants outside are missing in local time, because an offset might leave the calendar."""
ClockChange = tuple[datetime.datetime, int]
"""An instant (UTC), and the number of seconds by which clocks are ahead of UTC from then on."""


@final
@dataclass(frozen=True)
class Calendar(ExpressionTree):
    """A part of a day or an instant, in UTC if the instant has a zone.

    The units are the keys of ``UNITS``. ``weekday`` is 1 on Monday and 7 on Sunday; ``week_of_year`` is the ISO week;
    ``days`` counts the days since 1970-01-01, so that two of them can be subtracted.
    """

    unit: str
    part: ExpressionTree
    is_exact = True

    @property
    def child_nodes(self) -> tuple[ExpressionTree, ...]:
        """The day or instant."""
        return (self.part,)

    def __str__(self) -> str:
        return f"{self.unit}({self.part})"

    def infer_column_facts(self, schema: Schema) -> ValueFacts:
        """Return the range of the unit."""
        check_time(self.part, self.unit, schema)
        low, high = UNITS[self.unit]
        return ValueFacts("integer", low, high, None if self.unit in ("year", "days") else tuple(range(low, high + 1)))

    def to_engine_column(self, rows: SourceRows) -> ir.Column:
        """Compute it in the engine."""
        time = self.part.to_engine_column(rows)
        if self.unit == "days":
            number = (time.date() if time.type().is_timestamp() else time).epoch_days()
        else:
            number = time.day_of_week.index() + 1 if self.unit == "weekday" else getattr(time, self.unit)()
        return number.cast(ENGINE_TYPES["integer"])


@final
@dataclass(frozen=True)
class Truncate(ExpressionTree):
    """The first day of the year, quarter, month or week of a day or instant; or the hour or minute of an instant.

    It is a day for a unit of a day or longer, so that the same week of two years is two days; else an instant.
    """

    unit: str
    part: ExpressionTree
    is_exact = True

    def __post_init__(self) -> None:
        if self.unit not in TRUNCATIONS:
            expected = f"date_trunc(unit, x) with a unit of {', '.join(TRUNCATIONS)}"
            raise InputError("date_trunc", self.unit, expected, "such as date_trunc('month', departed)")
        super().__post_init__()

    @property
    def child_nodes(self) -> tuple[ExpressionTree, ...]:
        """The day or instant."""
        return (self.part,)

    def __str__(self) -> str:
        return f"week({self.part})" if self.unit == "week" else f"date_trunc({self.unit!r}, {self.part})"

    def infer_column_facts(self, schema: Schema) -> ValueFacts:
        """Return the facts of a day, or of an instant for hours and minutes."""
        facts = check_time(self.part, self.unit, schema)
        kind: Kind = "timestamp" if self.unit in CLOCK_UNITS else "date"
        return ValueFacts(kind, never_missing=facts.never_missing)

    def to_engine_column(self, rows: SourceRows) -> ir.Column:
        """Truncate an instant in the engine, whose types of truncated days differ."""
        instant = self.part.to_engine_column(rows).cast("timestamp(6)")
        truncated = instant.truncate(TRUNCATIONS[self.unit])
        return truncated if self.unit in CLOCK_UNITS else truncated.date()


@final
@dataclass(frozen=True)
class Elapsed(ExpressionTree):
    """The time from one day or instant to another, in days, hours, minutes or seconds; below 0 if it is earlier.

    Of two days it is an integer; of two instants it is a number, the exact microseconds divided by those of the unit.
    """

    function: str
    start: ExpressionTree
    end: ExpressionTree

    @property
    def child_nodes(self) -> tuple[ExpressionTree, ...]:
        """Both days or instants."""
        return self.start, self.end

    def __str__(self) -> str:
        return f"{self.function}({self.start}, {self.end})"

    def infer_column_facts(self, schema: Schema) -> ValueFacts:
        """Return the facts of an integer for days, of a number for instants."""
        for part in self.child_nodes:
            if not isinstance(part, Value):
                check_time(part, self.function, schema)
        kind = common_kind(self.child_nodes, schema)
        if kind not in TIME_KINDS:
            expected = f"a date or timestamp for {self.function}"
            raise InputError("expression", f"{self.start} ({kind})", expected, "such as hours_between(admitted, left)")
        return ValueFacts("integer" if kind == "date" else "number")

    def to_engine_column(self, rows: SourceRows) -> ir.Column:
        """Subtract in the engine, in days or microseconds of 64 bits, which are exact."""
        kind = common_kind(self.child_nodes, rows.schema)
        start, end = (column_in_kind(part, kind, rows) for part in self.child_nodes)
        microseconds = ELAPSED_MICROSECONDS[self.function]
        if kind == "date":
            return end.delta(start, unit="day").cast("int64") * (MICROSECONDS_OF_DAY // microseconds)
        return end.delta(start, unit="microsecond").cast("float64") / double_literal(float(microseconds))


def days_from_epoch(part: ExpressionTree) -> Elapsed:
    """Return the expression for the days from 1970-01-01 to a day or instant: a number that is monotone in it."""
    return Elapsed("days_between", EPOCH_TEXT, part)


def time_of_days(tree: object) -> ExpressionTree | None:
    """Return the day or instant of which the expression is ``days_from_epoch``; None for other expressions."""
    is_days = isinstance(tree, Elapsed) and (tree.function, tree.start) == ("days_between", EPOCH_TEXT)
    return tree.end if isinstance(tree, Elapsed) and is_days else None


def check_time(part: ExpressionTree, function: str, schema: Schema) -> ValueFacts:
    """Return the facts of a day or instant; raises ``InputError`` if it is neither, or a day without the unit."""
    facts = part.infer_column_facts(schema)
    kinds = TIME_KINDS[1:] if function in CLOCK_UNITS else TIME_KINDS
    if facts.kind not in kinds:
        remedy = "cast the column, or declare its type if it comes from a CSV file" if facts.kind == "text" else ""
        expected = f"a {' or '.join(kinds)} for {function}"
        raise InputError("expression", f"{part} ({facts.kind})", expected, remedy)
    return facts


@final
@dataclass(frozen=True)
class Local(ExpressionTree):
    """The local time in a time zone at an instant; an instant without a zone is taken as UTC.

    Offsets come from ``clock_changes``, Python's zones between 1970 and 2050, so that every engine gives the same time.
    """

    part: ExpressionTree
    zone: Value
    is_exact = True

    def __post_init__(self) -> None:
        clock_changes(str(self.zone.value) if self.zone.kind == "text" else "")
        super().__post_init__()

    @property
    def child_nodes(self) -> tuple[ExpressionTree, ...]:
        """The instant and the zone."""
        return self.part, self.zone

    @property
    def query_length(self) -> int:
        """The length of the query, in which each clock change is compared with the instant."""
        return (1 + len(clock_changes(str(self.zone.value)))) * (2 + self.part.query_length)

    def __str__(self) -> str:
        return f"local({self.part}, {self.zone})"

    def infer_column_facts(self, schema: Schema) -> ValueFacts:
        """Return the facts of an instant without a zone."""
        kind = self.part.infer_column_facts(schema).kind
        if kind != "timestamp":
            remedy = "a day has no time of day" if kind == "date" else "declare its type if it comes from a CSV file"
            raise InputError("expression", f"{self.part} ({kind})", "a timestamp for local", remedy)
        return ValueFacts("timestamp")

    def to_engine_column(self, rows: SourceRows) -> ir.Column:
        """Add the offset, found by binary search in log₂(number of changes) comparisons a row."""
        ibis, instant = load_library("ibis"), self.part.to_engine_column(rows)
        local_time = instant + _clock_offset(instant, clock_changes(str(self.zone.value)))
        shiftable = (instant >= ibis.literal(_SHIFTABLE_RANGE[0])) & (instant < ibis.literal(_SHIFTABLE_RANGE[1]))
        return ibis.ifelse(shiftable, local_time, ibis.null(local_time.type()))


def _clock_offset(instant: ir.Column, changes: Sequence[ClockChange]) -> ir.Column:
    """Return the interval by which clocks are ahead of UTC at an instant; before all changes, that of the first."""
    ibis = load_library("ibis")
    if len(changes) == 1:
        return ibis.interval(seconds=changes[0][1])
    half = len(changes) // 2
    is_later = instant >= ibis.literal(changes[half][0])
    return ibis.ifelse(is_later, _clock_offset(instant, changes[half:]), _clock_offset(instant, changes[:half]))


@lru_cache(maxsize=64)
def clock_changes(zone: str) -> tuple[ClockChange, ...]:
    """Return the clock changes of a zone; the first entry is the offset at ``CLOCK_TABLE_START``.

    Raises ``InputError`` for a zone that Python does not have.

    >>> [(at.date().isoformat(), ahead // 3600) for at, ahead in clock_changes("Europe/Berlin")[:3]]
    [('1970-01-01', 1), ('1980-04-06', 2), ('1980-09-28', 1)]
    """
    try:
        clock = ZoneInfo(zone)
    except (ValueError, OSError, KeyError):  # no such file, no such zone, or a folder
        raise InputError("zone", zone, "a time zone such as 'Europe/Berlin' or 'America/New_York'") from None
    changes, day = [(CLOCK_TABLE_START, _offset_seconds(clock, CLOCK_TABLE_START))], CLOCK_TABLE_START
    while day < CLOCK_TABLE_END:
        if _offset_seconds(clock, day + _DAY) != changes[-1][1]:
            # Find the second of this day at which the offset changes.
            before = changes[-1][1]
            low, high = day, day + _DAY
            while high - low > _SECOND:
                middle = low + _SECOND * ((high - low) // _SECOND // 2)
                low, high = (middle, high) if _offset_seconds(clock, middle) == before else (low, middle)
            changes.append((high, _offset_seconds(clock, high)))
        day += _DAY
    return tuple(changes)


def _offset_seconds(clock: ZoneInfo, instant: datetime.datetime) -> int:
    ahead = instant.replace(tzinfo=datetime.UTC).astimezone(clock).utcoffset() or datetime.timedelta()
    return ahead // _SECOND
