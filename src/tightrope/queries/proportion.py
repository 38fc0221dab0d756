"""The proportion of rows for which a condition is true: two noisy counts, where each row enters one."""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from decimal import Decimal
from typing import Self, final

from tightrope.documents.escaping import escape_control_chars
from tightrope.noise.worst_split import NoiseSpec, nearest_eighths
from tightrope.queries.column_query import column_term, measured_name, resolve_measured
from tightrope.queries.comparisons import LinearEstimate, NoiseWeight
from tightrope.queries.intervals import OUTSIDE
from tightrope.queries.options import Given
from tightrope.queries.query import Integers, Noises, Query, Record
from tightrope.queries.ratio import cached_ratio_interval
from tightrope.queries.statistics import NoisyStatistic
from tightrope.tables.expressions.expression import Term, term_facts
from tightrope.tables.expressions.leaves import PersonValue
from tightrope.tables.expressions.tree import NUMBERS
from tightrope.tables.request import FixedPoint, Measure
from tightrope.tables.schema import Schema

TRUE, FALSE = "true", "false"
ONES = FixedPoint(0.0, 1.0, Decimal(1), 0)


@final
@dataclass(frozen=True, slots=True)
class proportion(Query):
    """The proportion of rows in which ``column``, or a condition (``"delay > 15"``), is true (or 1), ignoring NULLs.

    Ones and zeros are counted separately and each row enters one count, so both need the budget of one: for small and
    large proportions the error is about half the error of a mean between 0 and 1. All other keywords are as in
    ``count``. Raises ``PlanError`` for an invalid parameter.

    >>> proportion("delayed", by="carrier").name
    'proportion_delayed_by_carrier'
    """

    column: Given = field(compare=False)
    """The column's name, or a condition."""
    term: Term = field(init=False, repr=False)
    """The column, checked."""
    is_number: bool = field(init=False, repr=False, compare=False)
    """True if the column of a resolved query has numbers, not booleans."""

    kind = "proportion"
    comparable = True
    has_linear_estimate = True
    meaning = "The proportion"
    additive = False
    uniform = False
    notes = (
        "True and false values are counted separately. A row is in only one of the two counts, so both need no more "
        "noise than one.",
        "Missing values are left out.",
        "Where the two noisy counts add up to less than 1, the proportion is suppressed and the interval is from 0 to "
        "1.",
    )
    remedy_for_texts = "say what counts as true, as in {column} == 'yes'"  # a comparison is nearly always meant
    entries = ("column",)
    person_values = ("any",)

    def __str__(self) -> str:
        if self.asked.per_person is not None:
            condition = self.term.part if isinstance(self.term, PersonValue) else self.term
            return f"share of persons with a row where {escape_control_chars(str(condition))}{self.asked.groups_text}"
        return f"share of {escape_control_chars(str(self.term))}{self.asked.groups_text}"

    def __post_init__(self) -> None:
        term = column_term("column", self.column)
        self.check_options(self.kind, str(term) if self.per_person is None else measured_name(term, self.per_person))
        self._set_fields(term=term, is_number=False)

    @property
    def all_notes(self) -> tuple[str, ...]:
        """The notes; for numbers, also which of them count as true."""
        if not self.is_number:
            return self.notes
        term = escape_control_chars(str(self.term))
        note = (
            f"{term} is a number, not true or false: values of at least 0.5 count as true, smaller ones as false. For "
            f"another condition write it, for example tr.proportion('{term} > 0')."
        )
        return (*self.notes, note)

    @property
    def clamped_columns(self) -> tuple[tuple[Term, tuple[float, float] | None], ...]:
        """The column, without a range: values are mapped to 0 or 1."""
        return ((self.term, None),)

    @property
    def number_terms(self) -> tuple[Term, ...]:
        """The column."""
        return (self.term,)

    def resolve(self, schema: Schema, where: Term | None = None) -> Self:
        """Return the query for this schema, with its column or condition parsed."""
        term = resolve_measured(self.term, schema, self.asked.per_person, None)
        is_number = term_facts(term, schema).kind in NUMBERS
        return self.with_fields(asked=self.asked.resolve(schema, where), term=term, is_number=is_number)

    def noisy_statistics(self) -> tuple[NoisyStatistic, ...]:
        """Return the number of ones, and the number of zeros (as a negative number)."""
        noise_spec = NoiseSpec("ones or zeros", nearest_eighths(self.asked.relative_noise_size), True)
        ones = NoisyStatistic(Measure(TRUE, self.term, ONES), noise_spec, 1, disjoint_set=str(self.term))
        return ones, replace(ones, measure=Measure(FALSE, self.term, replace(ONES, center=1)))

    def estimate(self, integers: Integers, noises: Noises, outside: float = OUTSIDE) -> Record:
        """Return ones over the sum of both counts, clamped to [0, 1]; ``usable`` is that noisy sum."""
        ones, zeros = integers[TRUE], -integers[FALSE]
        usable = ones + zeros
        if usable < 1:
            return {"value": None, "lower": 0.0, "upper": 1.0, "usable": usable}
        value = min(max(ones / usable, 0.0), 1.0)
        smallest_odds, largest_odds = cached_ratio_interval(noises[TRUE], noises[FALSE], outside).likely_ratios(
            ones, zeros, 0.0, math.inf
        )
        lower, upper = (
            _proportion_from_odds(smallest_odds, below=True),
            _proportion_from_odds(largest_odds, below=False),
        )
        return {"value": value, "lower": min(lower, value), "upper": max(upper, value), "usable": usable}

    def linear_estimate(self, integers: Integers, noises: Noises) -> LinearEstimate | None:
        """Return ones over the sum of both counts; None if that is below 1."""
        ones, zeros = integers[TRUE], -integers[FALSE]
        if ones + zeros < 1:
            return None
        weights = NoiseWeight(noises[TRUE], 1.0, 1.0), NoiseWeight(noises[FALSE], 0.0, -1.0)
        return LinearEstimate(ones, weights, bottom=ones + zeros, allowance=1e-14, possible=(0.0, 1.0))

    def expected_error(self, noises: Noises, people: int) -> tuple[float, float]:
        """Return the errors for a proportion near 0 or 1, where they are largest."""
        noise = noises[TRUE]
        return min(noise.mean_absolute / people, 0.5), min(noise.half_width() / people, 0.5)

    def suppression_probability(self, noises: Noises, people: int) -> float:
        """Return a bound on P(the counts add up to less than 1): then one of the noises is at most −people/2."""
        return min(1.0, 2 * noises[TRUE].lower_tail_probability(-math.ceil(people / 2)))


def _proportion_from_odds(odds: float, *, below: bool) -> float:
    """Return the proportion p = r/(1 + r), rounded outwards.

    >>> _proportion_from_odds(math.inf, below=False), round(_proportion_from_odds(1.0, below=True), 9)
    (1.0, 0.5)
    """
    proportion = 1.0 if math.isinf(odds) else odds / (1 + odds)
    return max(0.0, proportion * (1 - 1e-14)) if below else min(1.0, proportion * (1 + 1e-14))
