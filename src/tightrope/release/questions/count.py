"""How many rows there are."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Self, Unpack, final

from tightrope.release.questions.asked import Asked, Asking, asking, spelled_out
from tightrope.release.questions.node import Integers, Noises, Question, Record
from tightrope.release.questions.vector import Vector, row_count

ROW_COUNT = "rows"


NOT_CLIPPED = "counts are not clipped: a small group may come out negative"


@dataclass(frozen=True, slots=True)
class RowCounting(Question):
    """A kind whose answer is a noisy number of rows, and nothing else."""

    uniform = True
    adds_up = True
    notes: ClassVar[tuple[str, ...]] = (NOT_CLIPPED,)

    def vectors(self) -> tuple[Vector, ...]:
        """One."""
        return (row_count(ROW_COUNT, self.asked.size),)

    def record(self, integers: Integers, noises: Noises) -> Record:
        """The noisy integer; where it shows its group, the interval holds given that."""
        lower, upper = noises[ROW_COUNT].interval(integers[ROW_COUNT])
        return {"value": integers[ROW_COUNT], "lower": lower, "upper": upper}

    def errors(self, noises: Noises, people: int) -> tuple[float, float]:
        """Those of the noise."""
        del people
        return noises[ROW_COUNT].mean_absolute, noises[ROW_COUNT].half_width()

    def worst(self, noises: Noises) -> float:
        """That of the noise."""
        return noises[ROW_COUNT].worst


@final
@dataclass(frozen=True, slots=True)
class Count(RowCounting):
    """The number of rows of each group."""

    kind = "count"
    meaning = "How many records there are"
    additive = True
    counts = True

    def __str__(self) -> str:
        return f"number of rows{self.asked.groups}"

    @classmethod
    def from_entry(cls, entry: Mapping[str, Any]) -> Self:
        """Nothing but what every question has."""
        return cls(Asked.of(cls.kind, **asking(entry)))


@spelled_out
def count(**asked: Unpack[Asking]) -> Count:
    """How many rows there are, by the groups of ``by``.

    ``keys`` lists the groups (values of one column, tuples of several, or column → values for every combination);
    left out, they are discovered. ``weight=4`` asks for half the noise of weight 1, to the nearest size that is used.
    ``rows_per_group`` and ``groups_per_person`` override the session's bounds. Raises ``PlanError`` naming what is
    wrong.

    >>> count(by="city").name
    'count_by_city'
    """
    return Count(Asked.of(Count.kind, **asked))
