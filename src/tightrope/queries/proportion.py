"""The share of rows for which something is true: two noisy counts, of which each row enters one."""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from decimal import Decimal
from functools import lru_cache
from typing import Self, final

from tightrope.documents.escaping import printable
from tightrope.noise.worst_split import Spend, eighths
from tightrope.queries.column_query import column_term
from tightrope.queries.intervals import Independent
from tightrope.queries.options import Given
from tightrope.queries.query import Integers, Noises, Question, Record
from tightrope.queries.ratio import Odds
from tightrope.queries.statistics import Noise, Vector
from tightrope.tables.expressions.expression import Term, term_of
from tightrope.tables.request import FixedPoint, Measure
from tightrope.tables.schema import Schema

TRUE, FALSE = "true", "false"
ONES = FixedPoint(0.0, 1.0, Decimal(1), 0)


@final
@dataclass(frozen=True, slots=True)
class share(Question):
    """The share of rows whose ``column``, or condition (``"delay > 15"``), is true (or 1), of those where it is known.

    Ones and zeros are counted apart and a row enters one of the counts, so that both cost what one costs: for small
    and large shares the error is about half that of a mean between 0 and 1. The other keywords are those of ``count``.
    Raises ``PlanError`` naming what is wrong.

    >>> share("delayed", by="carrier").name
    'share_delayed_by_carrier'
    """

    column: Given = field(compare=False)
    """The column's name, or a condition."""
    term: Term = field(init=False, repr=False)
    """The column, checked."""

    kind = "share"
    meaning = "The share"
    additive = False
    uniform = False
    notes = (
        "values that are true and values that are not are counted apart, and a row enters one of both counts: it costs "
        "no more than one count",
        "numbers are taken for 1 from 0.5 on, and for 0 below; missing values are left out",
        "where the noisy counts add up to less than 1 the share is withheld and the interval is everything",
    )
    entries = ("column",)

    def __str__(self) -> str:
        return f"share of {printable(str(self.term))}{self.asked.groups}"

    def __post_init__(self) -> None:
        term = column_term("column", self.column)
        self.check_options(self.kind, str(term))
        self._set(term=term)

    @property
    def ranges(self) -> tuple[tuple[Term, tuple[float, float] | None], ...]:
        """The column: what is not 1 is taken for 0."""
        return ((self.term, None),)

    def settled(self, schema: Schema, where: Term | None = None) -> Self:
        """With the column, or the condition, read."""
        return self.changed(asked=self.asked.settled(schema, where), term=term_of(self.term, schema))

    def vectors(self) -> tuple[Vector, ...]:
        """How many ones there are, and how many zeros (as a negative number)."""
        spend = Spend("ones or zeros", eighths(self.asked.size), True)
        ones = Vector(Measure(TRUE, self.term, ONES), spend, 1, exclusive=str(self.term))
        return ones, replace(ones, measure=Measure(FALSE, self.term, replace(ONES, centre=1)))

    def record(self, integers: Integers, noises: Noises) -> Record:
        """Ones over both counts, inside [0, 1]; ``usable`` is how many values there are, with the noise of both."""
        ones, zeros = integers[TRUE], -integers[FALSE]
        usable = ones + zeros
        if usable < 1:
            return {"value": None, "lower": 0.0, "upper": 1.0, "usable": usable}
        value = min(max(ones / usable, 0.0), 1.0)
        least, most = _odds(noises[TRUE], noises[FALSE]).interval(ones, zeros, 0.0, math.inf)
        lower, upper = _share(least, below=True), _share(most, below=False)
        return {"value": value, "lower": min(lower, value), "upper": max(upper, value), "usable": usable}

    def errors(self, noises: Noises, people: int) -> tuple[float, float]:
        """For a share near 0 or 1, where they are largest."""
        noise = noises[TRUE]
        return min(noise.mean_absolute / people, 0.5), min(noise.half_width() / people, 0.5)

    def withheld(self, noises: Noises, people: int) -> float:
        """P(the counts add up to less than 1): then one noise or the other is at most −people/2."""
        return min(1.0, 2 * noises[TRUE].at_most(-math.ceil(people / 2)))


def _share(odds: float, *, below: bool) -> float:
    """P = r/(1 + r), rounded outwards.

    >>> _share(math.inf, below=False), round(_share(1.0, below=True), 9)
    (1.0, 0.5)
    """
    exact = 1.0 if math.isinf(odds) else odds / (1 + odds)
    return max(0.0, exact * (1 - 1e-14)) if below else min(1.0, exact * (1 + 1e-14))


@lru_cache(maxsize=64)
def _odds(ones: Noise, zeros: Noise) -> Odds:
    """Computed once for all groups."""
    return Odds.of(Independent(ones.tails, zeros.tails))
