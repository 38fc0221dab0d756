"""How many rows a person has: persons by that number, and a bound that follows."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Self, final

import numpy as np

from tightrope.errors import PlanError
from tightrope.numerics.arrays import Floats
from tightrope.release.answers import Answers
from tightrope.release.questions.asked import Asked, Given
from tightrope.release.questions.asking.keys import Keys
from tightrope.release.questions.count import NOT_CLIPPED, RowCounting
from tightrope.release.questions.tasks import Person
from tightrope.release.questions.vector import Noise
from tightrope.release.questions.widths.two_noises import sum_widths

BOUNDS = (1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64, 96, 128, 192, 256, 384, 512, 768, 1024)
STEPS_OF_BOUNDS = (1, *(bound + 1 for bound in BOUNDS))
"""Persons of one step have at most the bound before the next one."""
ENOUGH = 0.9
"""At least so much of all persons have all their rows used under a suggested bound, with probability ``SURE``."""
SURE = 0.95
WARNING = (
    "all rows of at least {percent} % of them are used then, with probability 95 % over the noise. Read from the data, "
    "at a price: it was charged. Noise grows with the bound, about in proportion: half of it may be the better choice, "
    "and with 1 the noise is least. Write it down and keep it"
)
UNKNOWN = (
    f"of no bound up to {BOUNDS[-1]:,} it is known that all rows of {ENOUGH:.0%} of the persons are used under it: the "
    "share was too small for so few persons, or persons have more rows"
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
    at_least: float | None = None
    """The share of persons that have no more rows is at least this, with probability 95 % over the noise."""

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
    """The least bound under which ``ENOUGH`` of the persons certainly have all their rows used.

    With probability ``SURE`` over the noise the lower ends of all bounds hold at once, so that of the chosen one does.
    """
    (answer,) = answers
    counts = [int(row["value"]) for row in answer.rows]
    widths = sum_widths(noise.tails, len(counts), (1 - SURE) / (2 * len(BOUNDS)))
    for bound, share in zip(BOUNDS, least_shares(counts, widths), strict=True):
        if share >= ENOUGH:
            percent = math.floor(100 * share)
            return SuggestedRows(bound, WARNING.format(percent=percent), answers, percent / 100)
    return SuggestedRows(None, UNKNOWN, answers)


def least_shares(counts: Sequence[int], widths: Floats) -> Floats:
    """For each step but the last, the least share of all persons that are at it or before it; shape [n − 1].

    ``widths``: by how many noises are added up, how far their sum may be off. All counts enter, also those that hardly
    stand out from their noise: left out, many small steps together would be a large part of all persons.

    >>> least_shares([50, 45, 5], np.zeros(4)).tolist(), least_shares([9, 3], np.array([0, 3.0, 3.0])).tolist()
    ([0.5, 0.95], [0.5])
    """
    sums, numbers = np.cumsum(counts, dtype=float), np.arange(1, len(counts))
    within = np.maximum.accumulate(np.maximum(sums[:-1] - widths[numbers], 0.0))
    beyond = np.minimum.accumulate(np.maximum(sums[-1] - sums[:-1] + widths[len(counts) - numbers], 0.0))
    return np.where(within > 0, within / np.maximum(within + beyond, 1.0), 0.0)
