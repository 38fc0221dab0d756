"""Ratios of two noisy numbers: of two sums over the same rows, such as delay per mile, and proportions."""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from decimal import Decimal
from functools import lru_cache
from typing import Self, final

from tightrope.documents.escaping import escape_control_chars
from tightrope.errors import PlanError
from tightrope.noise.worst_split import NoiseSpec, nearest_eighths
from tightrope.queries.column_query import column_term, measured_name, resolve_measured
from tightrope.queries.comparisons import LinearEstimate, NoiseWeight
from tightrope.queries.intervals import OUTSIDE, NoisePair, RatioWidths
from tightrope.queries.moment_estimates import MISSING_VALUES_NOTE, expected_error_of_record, finite_or_none
from tightrope.queries.moments import ColumnPairQuery, Range
from tightrope.queries.options import Given
from tightrope.queries.query import Integers, Noises, Query, Record
from tightrope.queries.statistics import Noise, NoisyStatistic, column_grid, noise_pair, value_sum
from tightrope.tables.expressions.expression import Term, term_facts
from tightrope.tables.expressions.leaves import PersonValue
from tightrope.tables.expressions.tree import NUMBERS
from tightrope.tables.request import FixedPoint, Measure
from tightrope.tables.schema import Schema

Ends = tuple[float, float]


@dataclass(frozen=True, slots=True, eq=False)
class RatioInterval:
    """Intervals of all plausible ratios r = s/t of numbers observed as s + X and t + Y, with coverage at least 95 %.

    For |r| up to ``unit``, s − r t is tested, with noise X − r Y (``small_ratios``); for larger |r|, t − s/r is tested,
    with noise Y − X/r (``reciprocals``).
    """

    unit: float
    small_ratios: RatioWidths
    reciprocals: RatioWidths

    @classmethod
    def from_noise_pair(cls, noises: NoisePair, outside: float = OUTSIDE) -> Self:
        """Return the intervals for X and Y; the unit is the ratio at which both have the same weight."""
        top, bottom = noises.approximate_half_widths(OUTSIDE)
        unit = top / bottom
        return cls(
            unit,
            RatioWidths.from_noise_pair(noises, unit, outside),
            RatioWidths.from_noise_pair(noises.swapped_pair, 1 / unit, outside),
        )

    def likely_ratios(self, top: float, bottom: float, least: float, most: float) -> Ends:
        """Return the ends of all plausible ratios from ``least`` to ``most`` (may be infinite), given s + X and t + Y.

        If no ratio is plausible: ``least`` and ``most``.
        """
        negated = self._ratios_beyond_unit(-top, bottom, max(-most, self.unit), -least)
        intervals = [
            self._ratios_below_unit(top, bottom, least, most),
            self._ratios_beyond_unit(top, bottom, max(least, self.unit), most),
            None if negated is None else (-negated[1], -negated[0]),
        ]
        found_parts = [interval for interval in intervals if interval is not None]
        if not found_parts:
            return least, most
        return min(low for low, _ in found_parts), max(high for _, high in found_parts)

    def _ratios_below_unit(self, top: float, bottom: float, least: float, most: float) -> Ends | None:
        low, high = max(least, -self.unit), min(most, self.unit)
        return self.small_ratios.likely_ratios_between(top, bottom, low, high) if low <= high else None

    def _ratios_beyond_unit(self, top: float, bottom: float, least: float, most: float) -> Ends | None:
        """Return the ends for ratios from ``least`` ≥ unit, by their reciprocals; zero stands for an infinite ratio."""
        if not least <= most:
            return None
        reciprocal_ends = self.reciprocals.likely_ratios_between(
            bottom, top, 1 / most, min(1 / least, self.reciprocals.largest)
        )
        return (
            None
            if reciprocal_ends is None
            else (1 / reciprocal_ends[1], 1 / reciprocal_ends[0] if reciprocal_ends[0] > 0 else math.inf)
        )


@lru_cache(maxsize=64)
def cached_ratio_interval(top: Noise, bottom: Noise, outside: float = OUTSIDE) -> RatioInterval:
    """Return the ratio intervals for two noises of one group, computed once for all groups."""
    return RatioInterval.from_noise_pair(noise_pair(top, bottom), outside)


TOP, BOTTOM = "numerator", "denominator"
OUTWARD_MARGIN = 1e-14
"""Relative margin for a few operations on doubles."""


@final
@dataclass(frozen=True, slots=True)
class ratio(ColumnPairQuery):
    """The sum of one column over the sum of another, in rows that have both values: not the mean of the ratios.

    ``bounds`` is the range of the numerator; ``denominator_bounds`` starts at 0 or above. The interval
    inverts the joint distribution of both noises. All other keywords are as in ``count``. Raises ``PlanError`` for an
    invalid parameter.

    >>> str(ratio("delay", "distance", bounds=(-60, 180), denominator_bounds=(0, 3000)))
    'ratio of delay between -60 and 180 to distance between 0 and 3000'
    """

    numerator: Given = field(compare=False)
    """The column of the numerator, or an expression."""
    denominator: Given = field(compare=False)
    """The column of the denominator, or an expression."""
    denominator_bounds: tuple[float, float] = field(kw_only=True, compare=False)
    """The lowest and highest value of the denominator."""

    kind = "ratio"
    comparable = True
    has_linear_estimate = True
    meaning = "The ratio of two sums"
    boxes = True
    given = (TOP, BOTTOM)
    joined = "to"
    second_given = "denominator_bounds"
    entries = (*given, "bounds", second_given)
    notes = (
        MISSING_VALUES_NOTE,
        "Where the noisy denominator is smaller than what one row can add to it, the ratio is suppressed and the "
        "interval covers every possible value. A missing end means that there is no limit.",
        "Values are rounded to eight digits; the interval is for the rounded values.",
        "Errors are stated for values in the middle of their ranges.",
    )

    def __post_init__(self) -> None:
        self.check_pair(self.numerator, self.denominator)
        if not (self.second_bounds[0] >= 0 and self.second_bounds[1] > 0):
            remedy = "the denominator must not be negative, as its sum could be zero; shift the column"
            raise PlanError("denominator_bounds", self.second_bounds, "a range that starts at 0 or above", remedy)

    def noisy_statistics(self) -> tuple[NoisyStatistic, ...]:
        """Return the sums of the numerator and of the denominator, over the rows that have both values."""
        numerator_sum = value_sum(
            TOP, self.first, column_grid(self.bounds, centered=False), self.asked.relative_noise_size
        )
        denominator_sum = value_sum(
            BOTTOM, self.second, column_grid(self.second_bounds, centered=False), self.asked.relative_noise_size
        )
        return _require_other_column(numerator_sum, self.second), _require_other_column(denominator_sum, self.first)

    @property
    def possible_ratios(self) -> Range:
        """The range of ratios of values within their bounds."""
        (low, high), (lowest_denominator, highest_denominator) = self.bounds, self.second_bounds
        lower = (
            low / highest_denominator
            if low >= 0
            else (low / lowest_denominator if lowest_denominator > 0 else -math.inf)
        )
        upper = (
            high / highest_denominator
            if high <= 0
            else (high / lowest_denominator if lowest_denominator > 0 else math.inf)
        )
        return lower, upper

    def estimate(self, integers: Integers, noises: Noises, outside: float = OUTSIDE) -> Record:
        """Return sum over sum, clamped to the possible ratios."""
        lower, upper = self.possible_ratios
        step = noises[TOP].step_size, noises[BOTTOM].step_size
        bottom = integers[BOTTOM] * step[1]
        if bottom < self.second_bounds[1]:
            return {"value": None, "lower": finite_or_none(lower), "upper": finite_or_none(upper)}
        value = min(max(integers[TOP] * step[0] / bottom, lower), upper)
        low, high = self._likely_interval(integers, noises, step[0] / step[1], outside)
        return {"value": value, "lower": finite_or_none(min(low, value)), "upper": finite_or_none(max(high, value))}

    def _likely_interval(self, integers: Integers, noises: Noises, scale: float, outside: float) -> Range:
        """Return the ends in natural units; ``scale`` converts from a ratio of integers."""
        lower, upper = self.possible_ratios
        ratio_interval = cached_ratio_interval(noises[TOP], noises[BOTTOM], outside)
        low, high = ratio_interval.likely_ratios(integers[TOP], integers[BOTTOM], lower / scale, upper / scale)
        return max(lower, low * scale * (1 - math.copysign(OUTWARD_MARGIN, low))), min(
            upper, high * scale * (1 + math.copysign(OUTWARD_MARGIN, high))
        )

    def linear_estimate(self, integers: Integers, noises: Noises) -> LinearEstimate | None:
        """Return sum over sum; None if the denominator is smaller than what one row can add."""
        steps = noises[TOP].step_size, noises[BOTTOM].step_size
        top, bottom = integers[TOP] * steps[0], integers[BOTTOM] * steps[1]
        if bottom < self.second_bounds[1]:
            return None
        weights = NoiseWeight(noises[TOP], steps[0]), NoiseWeight(noises[BOTTOM], 0.0, steps[1])
        allowance = OUTWARD_MARGIN * abs(top / bottom)
        return LinearEstimate(top, weights, bottom=bottom, allowance=allowance, possible=self.possible_ratios)

    def expected_error(self, noises: Noises, people: int) -> tuple[float, float]:
        """Return the errors for values in the middle of their ranges."""
        numerator, denominator = (people * math.fsum(ends) / 2 for ends in (self.bounds, self.second_bounds))
        integers = {
            TOP: round(numerator / noises[TOP].step_size),
            BOTTOM: round(denominator / noises[BOTTOM].step_size),
        }
        return expected_error_of_record(self.estimate(integers, noises))

    def suppression_probability(self, noises: Noises, people: int) -> float:
        """Return P(the noisy denominator is less than one row may add), for values in the middle of their range."""
        middle = people * math.fsum(self.second_bounds) / 2
        return noises[BOTTOM].lower_tail_probability(
            math.ceil((self.second_bounds[1] - middle) / noises[BOTTOM].step_size)
        )


def _require_other_column(vector: NoisyStatistic, column: Term) -> NoisyStatistic:
    return replace(vector, measure=replace(vector.measure, second_column=column))


# The proportion of rows for which a condition is true: two noisy counts, where each row enters one.

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
