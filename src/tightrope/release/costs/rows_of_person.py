"""How many rows a person has: persons by that number, and a bound that follows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Self, final

from tightrope.errors import PlanError
from tightrope.release.answers import Answers
from tightrope.release.costs.suggested import SHARE_TOO_SMALL, TAIL_SHARE
from tightrope.release.questions.asked import Asked, Given
from tightrope.release.questions.asking.keys import Keys
from tightrope.release.questions.count import NOT_CLIPPED, RowCounting
from tightrope.release.questions.tasks import Person
from tightrope.release.questions.vector import Noise

BOUNDS = (1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64, 96, 128, 192, 256, 384, 512, 768, 1024)
STEPS_OF_BOUNDS = (1, *(bound + 1 for bound in BOUNDS))
"""Persons of one step have at most the bound before the next one."""
ENOUGH = 0.9
"""About so much of all persons have all their rows used under a suggested bound."""
WARNING = (
    "all rows of about {share:.0%} of them are used then. Read from the data, at a price: it was charged. Noise grows "
    "with the bound, about in proportion: half of it may be the better choice, and with 1 the noise is least. Write it "
    "down and keep it"
)


@final
@dataclass(frozen=True, slots=True)
class RowsOfPerson(RowCounting):
    """The number of persons by how many rows they have; a person is in one of its groups."""

    kind = "rows_of_person"
    meaning = "How many persons have so many rows, or more, up to the next number"
    additive = True
    notes = (NOT_CLIPPED,)

    def __str__(self) -> str:
        return f"number of persons by how many rows they have{self.asked.groups}"

    @property
    def by(self) -> tuple[str, ...]:
        """The number of rows."""
        return ("rows",)

    @property
    def keys(self) -> Keys | None:
        """The steps."""
        return tuple((step,) for step in STEPS_OF_BOUNDS)

    @property
    def steps(self) -> tuple[int, ...]:
        """A rough scale."""
        return STEPS_OF_BOUNDS

    @classmethod
    def from_entry(cls, entry: Mapping[str, Any]) -> Self:
        """It is no question of a plan file: what it suggests is written down there."""
        raise PlanError("kind", entry.get("kind"), "another kind", "say session.suggest_rows_per_person(share=0.05)")


@dataclass(frozen=True, slots=True)
class SuggestedRows:
    """A bound on the rows of a person; None where noise hides it, or where more than the largest step is needed."""

    rows_per_person: int | None
    warning: str
    answers: Answers

    def __str__(self) -> str:
        said = self.warning
        return said if self.rows_per_person is None else f"rows_per_person = {self.rows_per_person}: {said}"


def rows_question(where: Given | None) -> RowsOfPerson:
    """One vector, of which a person is in one place."""
    return RowsOfPerson(Asked.of("rows of a person", where=where))


def refuse_each_row(person: Person) -> None:
    """Raises ``PlanError`` where each row is a person."""
    if person.column is None:
        raise PlanError("person", None, "a column", "where each row is a person, everybody has one")


def suggested_rows(answers: Answers, noise: Noise) -> SuggestedRows:
    """The least bound under which ``ENOUGH`` of the persons have all their rows used."""
    (answer,) = answers
    counts = [int(row["value"]) for row in answer.rows]
    reach = noise.half_width(1 - TAIL_SHARE / len(counts))
    found = enough([count if count > reach else 0 for count in counts])
    if found is None:
        return SuggestedRows(None, f"{SHARE_TOO_SMALL}, or persons have more than {BOUNDS[-1]:,} rows", answers)
    return SuggestedRows(found[0], WARNING.format(share=found[1]), answers)


def enough(counts: Sequence[int]) -> tuple[int, float] | None:
    """The bound and the share of persons that have no more; counts are by step.

    >>> enough([50, 45, 5, *[0] * 18]), enough([0] * 21), enough([*[0] * 20, 9])
    ((2, 0.95), None, None)
    """
    total, within = sum(counts), 0
    for bound, count in zip(BOUNDS, counts, strict=False):
        within += count
        if total and within >= ENOUGH * total:
            return bound, within / total
    return None
