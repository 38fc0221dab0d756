"""The largest groups: an order of noisy counts, and what can be concluded from it."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Self, Unpack, final

from tightrope.errors import PlanError
from tightrope.numerics.checks import whole
from tightrope.release.questions.asked import Asked, Asking, asking, spelled_out
from tightrope.release.questions.count import ROW_COUNT
from tightrope.release.questions.node import Integers, Noises, Question, Record
from tightrope.release.questions.vector import Vector, row_count
from tightrope.release.questions.widths.intervals import OUTSIDE

DISCOVERED = 1_000
"""So many groups are planned for where nobody knows how many there will be."""


@final
@dataclass(frozen=True, slots=True)
class Top(Question):
    """The ``k`` groups with the largest noisy counts, largest first."""

    k: int

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

    @classmethod
    def of(cls, k: object, asked: Asking) -> Self:
        """The question, checked; raises ``PlanError`` naming what is wrong."""
        found = Asked.of(cls.kind, **asked)
        if not found.by:
            raise PlanError("by", found.by, "a column", "say which groups are compared: by='city'")
        return cls(found, whole("k", k))

    @classmethod
    def from_entry(cls, entry: Mapping[str, Any]) -> Self:
        """How many groups, besides what every question has."""
        return cls.of(entry.get("k"), asking(entry))

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
        groups = DISCOVERED if self.keys is None else len(self.keys)
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


@spelled_out
def top(k: int, **asked: Unpack[Asking]) -> Top:
    """The ``k`` largest groups of ``by``, by their number of rows, largest first.

    Nothing but the noisy counts of all groups is used, which are charged as those of ``count``. Each row has the
    ``value``, an interval that holds for all groups at once, and ``best_rank`` and ``worst_rank``, the places that the
    group can have. Groups with as many rows as each other come in any order. The other keywords are those of
    ``count``. Raises ``PlanError`` naming what is wrong.

    >>> str(top(10, by="city"))
    'the 10 largest groups by city'
    """
    return Top.of(k, asked)
