"""What is left over: rows in groups that are not shown, as one number."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Self, Unpack, final

from tightrope.design.allocation.units import Spend, eighths
from tightrope.engines.request import Measure
from tightrope.errors import PlanError
from tightrope.release.questions.asked import Asked, Asking, asking, spelled_out
from tightrope.release.questions.count import NOT_CLIPPED
from tightrope.release.questions.node import Integers, Noises, Question, Record
from tightrope.release.questions.vector import Vector

LEFT_OVER = "left over"


@final
@dataclass(frozen=True, slots=True)
class Other(Question):
    """The number of rows in all groups together that are withheld: with those that are shown, every row that counts.

    Which groups these are is decided by noise that is drawn before. Whatever it decides, a person adds at most their
    rows to the sum, so it is one more noisy number after the others (adaptive composition).
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

    @classmethod
    def of(cls, asked: Asking) -> Self:
        """The question, checked; raises ``PlanError`` naming what is wrong."""
        found = Asked.of(cls.kind, **asked)
        if not found.by:
            raise PlanError("by", found.by, "a column", "say which groups: by='city', as in the question beside it")
        return cls(found)

    @classmethod
    def from_entry(cls, entry: Mapping[str, Any]) -> Self:
        """Nothing but what every question has."""
        return cls.of(asking(entry))

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


@spelled_out
def other(**asked: Unpack[Asking]) -> Other:
    """How many rows there are in the groups of ``by`` that are withheld because they are small, all together.

    Ask it beside a question with the same groups, conditions and bounds, of which some groups are shown: with them it
    holds every row that counts. Groups are discovered: a plan refuses ``keys``. Everybody's rows count in it up to the
    bound for all groups, so its noise is as large as that of a total. The other keywords are those of ``count``.
    Raises ``PlanError`` naming what is wrong.

    >>> str(other(by="city"))
    'number of rows in groups that are not shown by city'
    """
    return Other.of(asked)
