"""Instants as the clock of a place shows them."""

from __future__ import annotations

import datetime
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, final
from zoneinfo import ZoneInfo

from tightrope.engines.expressions.facts import Facts, Rows
from tightrope.engines.expressions.leaves import Value
from tightrope.engines.expressions.tree import Tree
from tightrope.engines.guard import load
from tightrope.engines.schema import Schema
from tightrope.errors import InputError

if TYPE_CHECKING:
    import ibis.expr.types as ir

FIRST, LAST = datetime.datetime(1970, 1, 1), datetime.datetime(2050, 1, 1)
"""Clocks that are changed between these are followed; before and after, they stay as they are there."""
_DAY = datetime.timedelta(days=1)
_SECOND = datetime.timedelta(seconds=1)
_NEAR = datetime.datetime(1, 1, 2), datetime.datetime(9999, 12, 30)
"""Beyond, an hour more or less may leave the calendar: such instants are missing."""
Change = tuple[datetime.datetime, int]
"""From this instant (UTC) on, clocks are so many seconds ahead."""


@final
@dataclass(frozen=True)
class Local(Tree):
    """What clocks in a time zone show at an instant, which is taken for UTC where it has no zone.

    The rule is a table of ours, from the zones of Python, so that every engine has the same one: clocks between 1970
    and 2050.
    """

    part: Tree
    zone: Value

    def __post_init__(self) -> None:
        changes(str(self.zone.value) if self.zone.kind == "text" else "")
        super().__post_init__()

    @property
    def parts(self) -> tuple[Tree, ...]:
        """The instant and the zone."""
        return self.part, self.zone

    @property
    def weight(self) -> int:
        """Each change of the clock is compared with the instant."""
        return (1 + len(changes(str(self.zone.value)))) * (2 + self.part.weight)

    def __str__(self) -> str:
        return f"local({self.part}, {self.zone})"

    def facts(self, schema: Schema) -> Facts:
        """An instant."""
        kind = self.part.facts(schema).kind
        if kind != "timestamp":
            remedy = "a day has no time of day" if kind == "date" else "of a CSV file, declare its type"
            raise InputError("expression", f"{self.part} ({kind})", "a timestamp for local", remedy)
        return Facts("timestamp")

    def compiled(self, rows: Rows) -> ir.Column:
        """By halves, as few comparisons a row as there are digits in the number of changes."""
        ibis, own = load("ibis"), self.part.compiled(rows)
        found = own + _ahead(own, changes(str(self.zone.value)))
        near = (own >= ibis.literal(_NEAR[0])) & (own < ibis.literal(_NEAR[1]))
        return ibis.ifelse(near, found, ibis.null(found.type()))


def _ahead(own: ir.Column, known: Sequence[Change]) -> ir.Column:
    """The interval by which clocks are ahead at an instant, at or after the first of these changes."""
    ibis = load("ibis")
    if len(known) == 1:
        return ibis.interval(seconds=known[0][1])
    half = len(known) // 2
    later = own >= ibis.literal(known[half][0])
    return ibis.ifelse(later, _ahead(own, known[half:]), _ahead(own, known[:half]))


@lru_cache(maxsize=64)
def changes(zone: str) -> tuple[Change, ...]:
    """When clocks of a zone are changed, and to what, the first at ``FIRST``; ``InputError`` for no zone of Python's.

    >>> [(at.date().isoformat(), ahead // 3600) for at, ahead in changes("Europe/Berlin")[:3]]
    [('1970-01-01', 1), ('1980-04-06', 2), ('1980-09-28', 1)]
    """
    try:
        clock = ZoneInfo(zone)
    except (ValueError, OSError, KeyError):  # no file, no key, a folder
        raise InputError("zone", zone, "a time zone such as 'Europe/Berlin' or 'America/New_York'") from None
    found, day = [(FIRST, _seconds(clock, FIRST))], FIRST
    while day < LAST:
        if _seconds(clock, day + _DAY) != found[-1][1]:
            found.append(_change(clock, day, found[-1][1]))
        day += _DAY
    return tuple(found)


def _change(clock: ZoneInfo, day: datetime.datetime, before: int) -> Change:
    """The second of this day from which on clocks are no longer ``before`` ahead."""
    low, high = day, day + _DAY
    while high - low > _SECOND:
        middle = low + _SECOND * ((high - low) // _SECOND // 2)
        low, high = (middle, high) if _seconds(clock, middle) == before else (low, middle)
    return high, _seconds(clock, high)


def _seconds(clock: ZoneInfo, at: datetime.datetime) -> int:
    ahead = at.replace(tzinfo=datetime.UTC).astimezone(clock).utcoffset() or datetime.timedelta()
    return ahead // _SECOND
