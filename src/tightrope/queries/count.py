"""Queries that count rows, people or distinct values."""

from __future__ import annotations

import math
from abc import ABC
from dataclasses import dataclass, field, replace
from typing import ClassVar, Self, final

from tightrope.documents.escaping import A_PERSON, escape_control_chars, unit_noun
from tightrope.documents.privacy_unit import unit_count_text
from tightrope.errors import PlanError
from tightrope.noise.worst_split import NoiseSpec, nearest_eighths
from tightrope.queries.column_query import column_term
from tightrope.queries.comparisons import LinearEstimate, NoiseWeight
from tightrope.queries.intervals import OUTSIDE
from tightrope.queries.options import Given
from tightrope.queries.query import Integers, Noises, Query, Record
from tightrope.queries.statistics import NoisyStatistic, row_count
from tightrope.tables.expressions.expression import Term, resolve_term
from tightrope.tables.request import DistinctCount
from tightrope.tables.schema import Schema

ROW_COUNT = "rows"
NOT_CLAMPED_NOTE = "Noisy counts are not clamped at 0: that of a small group can be negative."


@dataclass(frozen=True, slots=True)
class NoisyCountQuery(Query, ABC):
    """A kind of query whose numbers are noisy row counts."""

    uniform = True

    def noisy_statistics(self) -> tuple[NoisyStatistic, ...]:
        """Return the row count, also used as the key count if keys are discovered."""
        return (row_count(ROW_COUNT, self.asked.relative_noise_size),)

    def estimate(self, integers: Integers, noises: Noises, outside: float = OUTSIDE) -> Record:
        """Return the noisy integer; if the group is shown because of it, the interval is conditional on that."""
        lower, upper = noises[ROW_COUNT].confidence_interval(integers[ROW_COUNT], outside)
        return {"value": integers[ROW_COUNT], "lower": lower, "upper": upper}

    def worst_error(self, noises: Noises) -> float:
        """Return the largest error of the noise."""
        return noises[ROW_COUNT].worst_error


@dataclass(frozen=True, slots=True)
class RowCountQuery(NoisyCountQuery, ABC):
    """A kind of query whose answer is a single noisy count."""

    adds_up = True
    comparable = True
    has_linear_estimate = True
    is_one_noisy_integer = True
    notes: ClassVar[tuple[str, ...]] = (NOT_CLAMPED_NOTE,)

    def linear_estimate(self, integers: Integers, noises: Noises) -> LinearEstimate:
        """Return the noisy integer."""
        return LinearEstimate(integers[ROW_COUNT], (NoiseWeight(noises[ROW_COUNT], 1),), possible=(0, math.inf))

    def expected_error(self, noises: Noises, people: int) -> tuple[float, float]:
        """Return the errors of the noise."""
        del people
        return noises[ROW_COUNT].mean_absolute, noises[ROW_COUNT].half_width()


@final
@dataclass(frozen=True, slots=True)
class count(RowCountQuery):
    """The number of rows in each group of ``by``.

    ``keys`` lists the groups (values of one column, tuples of several, or column → values for every combination);
    if left out, they are discovered. ``weight=4`` asks for half the relative error of weight 1 in the same plan.
    ``max_rows_per_group`` and ``max_groups`` override the session's bounds; ``QueryOptions`` describes all keywords.
    Raises ``PlanError`` for an invalid parameter.

    >>> count(by="city").name
    'count_by_city'
    """

    kind = "count"
    meaning = "The number of rows"
    additive = True
    counts = True

    def __post_init__(self) -> None:
        self.check_options(self.kind)

    def __str__(self) -> str:
        return f"number of rows{self.asked.groups_text}"


USED_ROWS_NOTE = "Only values in the rows used are counted; values that occur only in rows beyond the limits are not."


@final
@dataclass(frozen=True, slots=True)
class count_distinct(RowCountQuery):
    """The number of people in each group of ``by``, or the number of distinct values of ``column``.

    Without a column, each person counts once per group, regardless of their number of rows; the session declares what
    a person is. A person in more than ``max_groups`` (or ``max_rows``) groups counts in only that many of them;
    ``max_rows_per_group`` is 1. With a column, each value counts once per group; missing values are not counted, nor
    are values that occur only in rows beyond the bounds. A person changes the number of values by at most their number
    of rows, so this needs the same noise as a count of rows. The column may be an expression, and of any kind. All
    other keywords are as in ``count``. Raises ``PlanError`` for an invalid parameter.

    >>> str(count_distinct(by="city")), str(count_distinct("product", by="city"))
    ('number of persons by city', 'number of different values of product by city')
    """

    column: Given | None = field(default=None, compare=False)
    """The column whose distinct values are counted; None counts people."""
    term: Term | None = field(init=False, repr=False)
    """The column, checked."""

    kind = "count_distinct"
    meaning = "The number of people, each counted once per group"
    additive = False
    entries = ("column",)

    def __post_init__(self) -> None:
        term = None if self.column is None else column_term("column", self.column)
        options = self.check_options(self.kind, *(() if term is None else (str(term),)))
        if term is None and options.max_rows_per_group not in (None, 1):
            remedy = "each person counts once per group; max_groups limits the number of groups"
            raise PlanError("max_rows_per_group", options.max_rows_per_group, "left out", remedy)
        if term is None:  # further rows of a person in a group make no difference
            options = replace(options, max_rows_per_group=1)
        self._set_fields(term=term, asked=options)

    @property
    def counts(self) -> bool:  # type: ignore[override]
        """Return whether people are counted: a value may have many rows."""
        return self.term is None

    @property
    def adds_up(self) -> bool:  # type: ignore[override]
        """Return whether people are counted: a value may be in several groups."""
        return self.term is None

    @property
    def all_notes(self) -> tuple[str, ...]:
        """The notes; for distinct values, also which of them are counted."""
        return self.notes if self.term is None else (USED_ROWS_NOTE, *self.notes)

    def title_and_meaning(self, means: str) -> tuple[str, str]:
        """Return both in words, with the privacy unit's noun in the singular: the plan states only that."""
        once = "once per group" if self.asked.by else "once"
        if self.term is not None:
            return str(self), f"The number of different values, each counted {once}"
        if means == A_PERSON:
            return str(self), f"The number of people, each counted {once}"
        title = f"{unit_count_text(means)}{self.asked.groups_text}"
        return title, f"The number, with each {unit_noun(means)} counted {once}"

    def __str__(self) -> str:
        counted = "persons" if self.term is None else f"different values of {escape_control_chars(str(self.term))}"
        return f"number of {counted}{self.asked.groups_text}"

    @property
    def clamped_columns(self) -> tuple[tuple[Term, tuple[float, float] | None], ...]:
        """The column, without a range."""
        return () if self.term is None else ((self.term, None),)

    def resolve(self, schema: Schema, where: Term | None = None) -> Self:
        """Return the query for this schema, with its column or expression parsed."""
        term = None if self.term is None else resolve_term(self.term, schema)
        return self.with_fields(asked=self.asked.resolve(schema, where), term=term)

    def noisy_statistics(self) -> tuple[NoisyStatistic, ...]:
        """Return the count; each distinct value adds one, regardless of its number of rows."""
        if self.term is None:
            return super(count_distinct, self).noisy_statistics()
        noise_spec = NoiseSpec("different values", nearest_eighths(self.asked.relative_noise_size), whole_rows=True)
        return (NoisyStatistic(DistinctCount(ROW_COUNT, self.term, None), noise_spec, 1),)
