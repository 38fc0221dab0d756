"""How many rows there are."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar, Self, final

from tightrope.documents.escaping import A_PERSON, noun, printable
from tightrope.errors import PlanError
from tightrope.noise.worst_split import Spend, eighths
from tightrope.queries.column_query import column_term
from tightrope.queries.options import Given
from tightrope.queries.query import Integers, Noises, Question, Record
from tightrope.queries.statistics import Vector, row_count
from tightrope.tables.expressions.expression import Term, term_of
from tightrope.tables.request import Distinct
from tightrope.tables.schema import Schema

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
class count(RowCounting):
    """How many rows there are, by the groups of ``by``.

    ``keys`` lists the groups (values of one column, tuples of several, or column → values for every combination);
    left out, they are discovered. ``weight=4`` asks for half the noise of weight 1, to the nearest size that is used.
    ``rows_per_group`` and ``groups_per_person`` override the session's bounds; ``QueryOptions`` describes all keywords.
    Raises ``PlanError`` naming what is wrong.

    >>> count(by="city").name
    'count_by_city'
    """

    kind = "count"
    meaning = "How many records there are"
    additive = True
    counts = True

    def __post_init__(self) -> None:
        self.check_options(self.kind)

    def __str__(self) -> str:
        return f"number of rows{self.asked.groups}"


# How many people, or how many different values, there are in each group.

USED_ONLY = "a value counts where a row that is used has it: what only rows beyond the bounds have is not counted"


@final
@dataclass(frozen=True, slots=True)
class count_distinct(RowCounting):
    """How many people there are in each group of ``by``, or how many different values of ``column``.

    Without a column everybody counts once a group, however many rows they have; a person is what the session says.
    Somebody who is in more groups than ``groups_per_person`` (or ``rows_per_person``) counts in so many of them;
    ``rows_per_group`` is 1. With one, each value counts once a group, whoever has it; missing values do not count, nor
    do those that only rows beyond the bounds have. The rows of a person change the number of values by at most as many
    as they are, so that it costs what a count of rows does. The column may be an expression, and of any kind. The other
    keywords are those of ``count``. Raises ``PlanError`` naming what is wrong.

    >>> str(count_distinct(by="city")), str(count_distinct("product", by="city"))
    ('number of persons by city', 'number of different values of product by city')
    """

    column: Given | None = field(default=None, compare=False)
    """The column whose different values are counted; None: people are."""
    term: Term | None = field(init=False, repr=False)
    """The column, checked."""

    kind = "count_distinct"
    meaning = "How many persons there are, each counted once in a group"
    additive = False
    entries = ("column",)

    def __post_init__(self) -> None:
        term = None if self.column is None else column_term("column", self.column)
        found = self.check_options(self.kind, *(() if term is None else (str(term),)))
        if term is None and found.rows_per_group not in (None, 1):
            remedy = "everybody counts once in a group; groups_per_person says in how many groups"
            raise PlanError("rows_per_group", found.rows_per_group, "left out", remedy)
        self._set(term=term)

    @property
    def counts(self) -> bool:  # type: ignore[override]
        """Of people: a value may have many rows."""
        return self.term is None

    @property
    def adds_up(self) -> bool:  # type: ignore[override]
        """Of people, row by row: a value may be in several groups."""
        return self.term is None

    @property
    def rules(self) -> tuple[str, ...]:
        """Of values, which of them are counted, too."""
        return self.notes if self.term is None else (USED_ONLY, *self.notes)

    def title_for(self, means: str) -> str:
        """Of what is no human, without a plural, which the plan does not say."""
        if self.term is not None or means == A_PERSON:
            return str(self)
        return f"number of persons (each {means}){self.asked.groups}"

    def meaning_for(self, means: str) -> str:
        """Of what is no human, without a plural, which the plan does not say."""
        if self.term is not None:
            return "How many different values there are, each counted once in a group"
        counted = f"How many there are, each {noun(means)} counted once in a group"
        return self.meaning if means == A_PERSON else counted

    def __str__(self) -> str:
        what = "persons" if self.term is None else f"different values of {printable(str(self.term))}"
        return f"number of {what}{self.asked.groups}"

    @property
    def rows_in_group(self) -> int | None:
        """Of people one: a second row of a person in a group changes nothing."""
        return 1 if self.term is None else self.asked.rows_per_group

    @property
    def ranges(self) -> tuple[tuple[Term, tuple[float, float] | None], ...]:
        """The column, whose values have no range."""
        return () if self.term is None else ((self.term, None),)

    def settled(self, schema: Schema, where: Term | None = None) -> Self:
        """With the column, or the expression, read."""
        term = None if self.term is None else term_of(self.term, schema)
        return self.changed(asked=self.asked.settled(schema, where), term=term)

    def vectors(self) -> tuple[Vector, ...]:
        """One; a value is worth one, however many rows have it."""
        if self.term is None:
            return super(count_distinct, self).vectors()
        spend = Spend("different values", eighths(self.asked.size), whole_rows=True)
        return (Vector(Distinct(ROW_COUNT, self.term, None), spend, 1),)
