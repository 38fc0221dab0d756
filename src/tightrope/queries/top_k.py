"""The largest groups: an order of noisy counts, and what can be concluded from it."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from typing import final

from tightrope.errors import PlanError
from tightrope.noise.worst_split import Spend, eighths
from tightrope.numerics.checks import whole
from tightrope.queries.count import NOT_CLIPPED, ROW_COUNT
from tightrope.queries.intervals import OUTSIDE
from tightrope.queries.query import Integers, Noises, Question, Record
from tightrope.queries.statistics import Vector, row_count
from tightrope.tables.request import Measure

DISCOVERED = 1_000
"""So many groups are planned for where nobody knows how many there will be."""


@final
@dataclass(frozen=True, slots=True)
class top(Question):
    """The ``k`` largest groups of ``by``, by their number of rows, largest first.

    Nothing but the noisy counts of all groups is used, which are charged as those of ``count``. Each row has the
    ``value``, an interval that holds for all groups at once, and ``best_rank`` and ``worst_rank``, the places that the
    group can have. Groups with as many rows as each other come in any order. The other keywords are those of
    ``count``. Raises ``PlanError`` naming what is wrong.

    >>> str(top(10, by="city"))
    'the 10 largest groups by city'
    """

    k: int
    """How many groups are shown."""

    kind = "top"
    meaning = "How many records the largest groups have"
    additive = True
    uniform = True
    counts = True
    notes = (
        "the order is that of the noisy counts; the intervals hold for all groups at once 95 % of the time, and so for "
        "those that came out on top: they are wider than those of a count",
        "best_rank and worst_rank, in result.json and in .frame, are the places that a group can have, given these "
        "intervals: where worst_rank is k or less, the group is among the k largest; nothing there means that withheld "
        "groups may be larger",
    )
    entries = ("k",)

    def __str__(self) -> str:
        return f"the {self.k:,} largest groups{self.asked.groups}"

    def __post_init__(self) -> None:
        found = self.check_options(self.kind)
        if not found.by:
            raise PlanError("by", found.by, "a column", "say which groups are compared: by='city'")
        self._set(k=whole("k", self.k))

    def vectors(self) -> tuple[Vector, ...]:
        """One count, which is that of the keys where they are discovered."""
        return (row_count(ROW_COUNT, self.asked.size),)

    def record(self, integers: Integers, noises: Noises) -> Record:
        """The noisy integer with the interval of a group that is not chosen for its size."""
        lower, upper = noises[ROW_COUNT].interval(integers[ROW_COUNT])
        return {"value": integers[ROW_COUNT], "lower": lower, "upper": upper}

    def shown(self, records: Sequence[Record], noises: Noises) -> list[tuple[int, Record]]:
        """The largest, with intervals that hold for all groups at once, and the places that each can have.

        Noises are independent, and those of the groups that are seen are so given which are seen.
        """
        values = [int(record["value"] or 0) for record in records]
        ends = {value: noises[ROW_COUNT].interval(value, OUTSIDE / len(values)) for value in set(values)}
        lowers, uppers = (sorted(ends[value][side] for value in values) for side in (0, 1))
        hidden = 2 * (noises[ROW_COUNT].threshold or 0)
        chosen = sorted(range(len(values)), key=lambda place: -values[place])[: self.k]
        return [(place, _placed(values[place], ends[values[place]], lowers, uppers, hidden)) for place in chosen]

    def errors(self, noises: Noises, people: int) -> tuple[float, float]:
        """Those of the noise, within which all groups stay at once."""
        del people
        groups = DISCOVERED if self.asked.keys is None else len(self.asked.keys)
        return noises[ROW_COUNT].mean_absolute, noises[ROW_COUNT].half_width(1 - OUTSIDE / groups)

    def worst(self, noises: Noises) -> float:
        """That of the noise."""
        return noises[ROW_COUNT].worst


def _placed(value: int, ends: tuple[int, int], lowers: list[int], uppers: list[int], hidden: int) -> Record:
    """The places that are left by the other intervals. A withheld group has at most ``hidden`` rows."""
    lower, upper = ends
    best = 1 + len(lowers) - bisect_right(lowers, upper)
    worst = len(uppers) - bisect_left(uppers, lower)
    return {
        "value": value,
        "lower": lower,
        "upper": upper,
        "best_rank": best,
        "worst_rank": None if hidden > max(lower, 0) else worst,
    }


# What is left over: rows in groups that are not shown, as one number.

LEFT_OVER = "left over"


@final
@dataclass(frozen=True, slots=True)
class other(Question):
    """How many rows there are in the groups of ``by`` that are withheld because they are small, all together.

    Ask it beside a question with the same groups, conditions and bounds, of which some groups are shown: with them it
    holds every row that counts. Groups are discovered: a plan refuses ``keys``. Everybody's rows count in it up to the
    bound for all groups, so its noise is as large as that of a total: which groups are withheld is decided by noise
    that is drawn before, and however it decides, a person adds at most their rows to the sum (adaptive composition).
    The other keywords are those of ``count``. Raises ``PlanError`` naming what is wrong.

    >>> str(other(by="city"))
    'number of rows in groups that are not shown by city'
    """

    kind = "other"
    meaning = "How many records there are in all groups that are not shown"
    additive = True
    uniform = True
    counts = True
    notes = (NOT_CLIPPED, "which groups are not shown was decided by noise, before and apart from the noise of this")

    @property
    def columns(self) -> tuple[str, ...]:
        """None: its answer is one number."""
        return ()

    @property
    def left_over(self) -> bool:
        """It counts what other questions do not show."""
        return True

    def __str__(self) -> str:
        return f"number of rows in groups that are not shown{self.asked.groups}"

    def __post_init__(self) -> None:
        found = self.check_options(self.kind)
        if not found.by:
            raise PlanError("by", found.by, "a column", "say which groups: by='city', as in the question beside it")

    def vectors(self) -> tuple[Vector, ...]:
        """One integer over all groups that are withheld."""
        spend = Spend("rows in groups that are not shown", eighths(self.asked.size), True)
        return (Vector(Measure(LEFT_OVER, None, None), spend, 1, exclusive=LEFT_OVER, whole=True),)

    def record(self, integers: Integers, noises: Noises) -> Record:
        """The noisy integer; its noise knows nothing of which groups are shown."""
        lower, upper = noises[LEFT_OVER].interval(integers[LEFT_OVER])
        return {"value": integers[LEFT_OVER], "lower": lower, "upper": upper}

    def errors(self, noises: Noises, people: int) -> tuple[float, float]:
        """Those of the noise."""
        del people
        return noises[LEFT_OVER].mean_absolute, noises[LEFT_OVER].half_width()

    def worst(self, noises: Noises) -> float:
        """That of the noise."""
        return noises[LEFT_OVER].worst
