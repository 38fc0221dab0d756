"""How many people there are in each group."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Self, Unpack, final

from tightrope.certificates.printable import A_PERSON, noun
from tightrope.errors import PlanError
from tightrope.release.questions.asked import Asked, Asking, asking, spelled_out
from tightrope.release.questions.count import RowCounting


@final
@dataclass(frozen=True, slots=True)
class CountDistinct(RowCounting):
    """The number of people in each group: of everybody, at most one row in a group counts."""

    kind = "count_distinct"
    meaning = "How many persons there are, each counted once in a group"
    additive = False
    counts = True

    def title_for(self, means: str) -> str:
        """Of what is no human, without a plural, which the plan does not say."""
        return str(self) if means == A_PERSON else f"number of persons (each {means}){self.asked.groups}"

    def meaning_for(self, means: str) -> str:
        """Of what is no human, without a plural, which the plan does not say."""
        counted = f"How many there are, each {noun(means)} counted once in a group"
        return self.meaning if means == A_PERSON else counted

    def __str__(self) -> str:
        return f"number of persons{self.asked.groups}"

    @property
    def rows_in_group(self) -> int:
        """One: a second row of a person in a group changes nothing."""
        return 1

    @classmethod
    def of(cls, asked: Asking) -> Self:
        """The question, checked; raises ``PlanError`` naming what is wrong."""
        found = Asked.of(cls.kind, **asked)
        if found.rows_per_group not in (None, 1):
            remedy = "everybody counts once in a group; groups_per_person says in how many groups"
            raise PlanError("rows_per_group", found.rows_per_group, "left out", remedy)
        return cls(found)

    @classmethod
    def from_entry(cls, entry: Mapping[str, Any]) -> Self:
        """Nothing but what every question has."""
        return cls.of(asking(entry))


@spelled_out
def count_distinct(**asked: Unpack[Asking]) -> CountDistinct:
    """How many people there are in each group of ``by``: everybody counts once a group, however many rows they have.

    A person is what the session says. Somebody who is in more groups than ``groups_per_person`` (or
    ``rows_per_person``) counts in so many of them. The other keywords are those of ``count``; ``rows_per_group`` is 1.
    Raises ``PlanError`` naming what is wrong.

    >>> str(count_distinct(by="city"))
    'number of persons by city'
    """
    return CountDistinct.of(asked)
