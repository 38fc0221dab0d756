"""A range for a column, read from noisy counts that were paid for."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Self, final

import numpy as np

from tightrope.documents.escaping import printable
from tightrope.errors import PlanError, SchemaError
from tightrope.numerics.arrays import Floats
from tightrope.queries.column_query import column_term
from tightrope.queries.count import NOT_CLIPPED, RowCounting
from tightrope.queries.histogram import histogram
from tightrope.queries.intervals import sum_widths
from tightrope.queries.options import Given
from tightrope.queries.query_group import Person
from tightrope.queries.statistics import Noise
from tightrope.release.answers import Answers
from tightrope.tables.expressions.expression import facts_of, term_of
from tightrope.tables.expressions.tree import NUMBERS
from tightrope.tables.schema import Schema

DECADES = range(-3, 10)
TAIL_SHARE = 0.01
"""About so much of what is seen may lie beyond each end of a suggested range; how much may lie there unseen is said."""
MOST_NOISE_STEPS = 50_000
WRONG = 0.05
"""How often the shares that are said may be wrong."""
WARNING = (
    "read from the data, at a price: it was charged, and is as private as any answer. It is rough: its ends are 1, 2 "
    "or 5 times a power of ten; at most {low:.1%} of the values lie below it, and at most {high:.1%} above it (19 "
    "times in 20{more}){beyond}. Write it down and keep it: a range that is suggested anew for each release costs "
    "anew. What is publicly known is better and costs nothing"
)
MORE = "; a larger share of the budget narrows that down"
BELOW = "; besides, at most {share:.1%} of the rows have a value below {end:g} or none"
NOTHING_ELSE = "nothing but values below {end:g}, or missing ones, could be told from an empty part of the axis"
ABOVE = (
    "at least {share:.1%} of the values (19 times in 20) are {end:g} or more, and where they end is not looked for: "
    "use a larger unit"
)
SHARE_TOO_SMALL = "the share was too small for so few rows: no part of the axis could be told from an empty one"


@dataclass(frozen=True, slots=True)
class SuggestedBounds:
    """A range for ``between``; None where noise hides where the values are. ``answers`` is what was released."""

    column: str
    between: tuple[float, float] | None
    warning: str
    answers: Answers
    beyond: tuple[float, float] | None = None
    """At most these shares of the values lie below the range, and at its upper end or above; rightly 19 times in 20."""

    def __str__(self) -> str:
        name = printable(self.column)
        return f"{name}: {self.warning}" if self.between is None else f"{name} between {self.between}: {self.warning}"


def edges() -> tuple[float, ...]:
    """1, 2 and 5 times the powers of ten, on both sides of zero."""
    positive = [digit * 10.0**power for power in DECADES for digit in (1, 2, 5)]
    return (*(-edge for edge in reversed(positive)), 0.0, *positive)


def bounds_question(column: Given, where: Given | None, schema: Schema) -> histogram:
    """How the values lie along the whole axis: one vector, at the cost of one count; ``SchemaError`` for a text."""
    term = term_of(column_term("column", column), schema)
    if (kind := facts_of(term, schema).kind) not in NUMBERS:
        raise SchemaError("column", str(term), f"a column of numbers, not of {kind}", "cast it, or declare its type")
    return histogram(column, edges=edges(), where=where, name="where the values lie")


def suggested_bounds(question: histogram, answers: Answers, noise: Noise) -> SuggestedBounds:
    """The parts that are certainly not empty, less the outermost ``TAIL_SHARE`` of what lies in them on each side."""
    (answer,) = answers
    counts = [int(row["value"]) for row in answer.rows]
    reach = noise.half_width(1 - TAIL_SHARE / len(counts))
    between, said, beyond = _read(counts, reach, NoiseSums.of(noise))
    return SuggestedBounds(str(question.term), between, said, answers, beyond)


@dataclass(frozen=True, slots=True)
class NoiseSums:
    """How far sums of independent noise of one law reach: Chernoff's bound, from its log moments.

    ``slopes``: θ > 0. ``logs``: log E exp(θX).
    """

    slopes: Floats
    logs: Floats

    @classmethod
    def of(cls, noise: Noise) -> Self:
        """Those of the integers that run; the law is symmetric. Long laws are looked at in steps, from above."""
        tails, deviation = noise.tails, math.sqrt(noise.mechanism.mean_squared_error)
        slopes = np.geomspace(1e-3, 10.0, 60) / max(deviation, 1e-3)
        last = math.ceil(tails.factor * (len(tails.table) + 1))
        step = max(1, math.ceil(last / MOST_NOISE_STEPS))
        x = np.arange(0, last, step, dtype=np.float64)
        beyond = 2 * tails.beyond(x)
        with np.errstate(over="ignore", invalid="ignore"):
            moments = [1 + float(np.sum(beyond * (np.cosh(s * (x + step)) - np.cosh(s * x)))) for s in slopes]
        known = np.isfinite(moments)
        return cls(slopes[known], np.log(np.array(moments)[known]))

    def exceeded(self, terms: int, chance: float) -> float:
        """Return what a sum of so many exceeds with at most this chance; it falls below the opposite as rarely."""
        return float(np.min((terms * self.logs - math.log(chance)) / self.slopes)) if terms else 0.0

    def shares(self, part: Sequence[int], rest: Sequence[int]) -> tuple[float, float]:
        """The least and the largest share of a part in all that is counted, from noisy counts of both.

        It holds for every way to divide an axis in two at once, so for one that was chosen by these counts.
        """
        chance = WRONG / (8 * (len(part) + len(rest)))
        ends = [
            (max(0.0, sum(own) - reach), max(0.0, sum(own) + reach))
            for own in (part, rest)
            for reach in [self.exceeded(len(own), chance)]
        ]
        (least, most), (others_least, others_most) = ends
        return (
            least / (least + others_most) if least > 0 else 0.0,
            most / (most + others_least) if most > 0 else 0.0,
        )


Pair = tuple[float, float]


def _read(counts: Sequence[int], reach: float, noise: NoiseSums) -> tuple[Pair | None, str, Pair | None]:
    """The range, what is said of it, and what lies beyond its ends at most. The first part and the last have no end.

    What is missing is counted with the first part.

    A part counts towards the range where noise alone would not reach so far; what is said of shares counts all parts.
    """
    ends, (below, *inside) = edges(), counts
    seen = [count if count > reach else 0 for count in inside]
    total = sum(seen)
    if not total:
        return None, NOTHING_ELSE.format(end=ends[0]) if below > reach else SHARE_TOO_SMALL, None
    if seen[-1] > TAIL_SHARE * total:
        return None, ABOVE.format(share=noise.shares(inside[-1:], inside[:-1])[0], end=ends[-1]), None
    low, high = _places(seen)
    outside = [noise.shares(part, rest)[1] for part, rest in _divided(inside, (low, high))]
    share = noise.shares([below], inside)[1] if below > reach else 0.0
    beyond = BELOW.format(share=share, end=ends[0]) if share > TAIL_SHARE else ""
    more = MORE if max(outside) > 2 * TAIL_SHARE else ""
    most = _upwards(outside[0]), _upwards(outside[1])
    said = WARNING.format(low=most[0], high=most[1], more=more, beyond=beyond)
    return (ends[low], ends[high]), said, most


def _divided(counts: Sequence[int], places: tuple[int, int]) -> tuple[tuple[Sequence[int], Sequence[int]], ...]:
    """What lies below and above a range, each beside all the rest."""
    low, high = places
    return (counts[:low], counts[low:]), (counts[high:], counts[:high])


def _upwards(share: float) -> float:
    """A share as it is shown: a tenth of a percent, upwards."""
    return min(1.0, math.ceil(share * 1000) / 1000)


def covering(ends: Sequence[float], counts: Sequence[int]) -> tuple[float, float] | None:
    """The narrowest range of edges with at most ``TAIL_SHARE`` of the counts on each side; each is of [edge, next).

    >>> covering([0, 1, 2, 5], [0, 1, 989, 10]), covering([0, 1], [0, 0])
    ((2, 5), None)
    """
    if not sum(counts):
        return None
    low, high = _places(counts)
    return ends[low], ends[min(high, len(ends) - 1)]


def _places(counts: Sequence[int]) -> tuple[int, int]:
    """Where that range begins and ends."""
    allowed = TAIL_SHARE * sum(counts)
    return _first(counts, allowed), len(counts) - _first(counts[::-1], allowed)


def _first(counts: Sequence[int], allowed: float) -> int:
    """How many parts may be left out, from the beginning."""
    gone = 0
    for place, count in enumerate(counts):
        gone += count
        if gone > allowed:
            return place
    return len(counts)


# How many rows a person has: persons by that number, and a bound that follows.

BOUNDS = (1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64, 96, 128, 192, 256, 384, 512, 768, 1024)
STEPS_OF_BOUNDS = (1, *(bound + 1 for bound in BOUNDS))
"""Persons of one step have at most the bound before the next one."""
ENOUGH = 0.9
"""At least so much of all persons have all their rows used under a suggested bound, with probability ``SURE``."""
SURE = 0.95
ROWS_OF_PERSON_WARNING = (
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

    def __post_init__(self) -> None:
        found = self.check_options("rows of a person")
        self._set(asked=replace(found, by=("rows",), keys=tuple((step,) for step in STEPS_OF_BOUNDS)))

    def __str__(self) -> str:
        return f"number of persons by how many rows they have{self.asked.rows_that_count}"

    @property
    def steps(self) -> tuple[int, ...]:
        """A rough scale."""
        return STEPS_OF_BOUNDS


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
    return RowsOfPerson(where=where)


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
            return SuggestedRows(bound, ROWS_OF_PERSON_WARNING.format(percent=percent), answers, percent / 100)
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
