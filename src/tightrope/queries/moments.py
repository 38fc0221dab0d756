"""Variance, standard deviation, covariance and correlation, from noisy sums of centered values over a noisy count."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import ClassVar, Self, final

from tightrope.documents.escaping import escape_control_chars
from tightrope.errors import PlanError
from tightrope.queries.column_query import (
    ColumnQuery,
    clamped_text,
    column_term,
    format_range_end,
    moved_values_text,
    value_range,
)
from tightrope.queries.intervals import OUTSIDE
from tightrope.queries.moment_estimates import (
    ASSUMED_CORRELATION,
    MISSING_VALUES_NOTE,
    NUISANCE_PROBABILITY,
    TYPICAL_MEAN_SQUARE,
    TYPICAL_VALUES_NOTE,
    USABLE,
    XX,
    XY,
    YY,
    NoisyMean,
    NoisySample,
    Span,
    Weights,
    X,
    Y,
    centered_bound,
    centered_factor,
    centered_products,
    centered_squares,
    centered_sum,
    covariance_span,
    expected_error_of_record,
    hidden_variance_probability,
    low_count_probability,
    narrow_end,
    noisy_covariance,
    noisy_variance,
    square_offset,
    usable_rows,
    variance_span,
)
from tightrope.queries.options import Given
from tightrope.queries.query import Integers, Noises, Query, Record
from tightrope.queries.statistics import NoisyStatistic
from tightrope.tables.expressions.expression import Term, resolve_term
from tightrope.tables.request import Factor
from tightrope.tables.schema import Schema


@dataclass(frozen=True, slots=True)
class SpreadQuery(ColumnQuery, ABC):
    """The spread of the values in the rows that are used: divided by n, not by n − 1."""

    additive = False
    comparable = True
    uniform = False
    clamping_effect_text = "without clamping, the spread can be larger"
    notes = (
        "It describes the rows used: squares are divided by n, not by n - 1.",
        "Where the noisy count is below 1, it is suppressed and the interval covers every possible value.",
        TYPICAL_VALUES_NOTE,
    )

    @staticmethod
    @abstractmethod
    def _value_from_variance(variance: float) -> float:
        """Return the answer for a variance."""

    def noisy_statistics(self) -> tuple[NoisyStatistic, ...]:
        """Return the sums of squares and of centered values, and the number of values."""
        size, factor = self.asked.relative_noise_size, centered_factor("bounds", self.clamp_bounds)
        return (
            centered_squares(XX, self.term, factor, None, size),
            centered_sum(X, self.term, factor, None, size),
            usable_rows(USABLE, self.term, None, size),
        )

    def estimate(self, integers: Integers, noises: Noises, outside: float = OUTSIDE) -> Record:
        """Return S/N − (S/N)², clamped to the possible values; ``usable`` is the noisy number of values."""
        usable, largest_variance = integers[USABLE], centered_bound(centered_factor("bounds", self.clamp_bounds)) ** 2
        if usable < 1:
            return {"value": None, "lower": 0.0, "upper": self._value_from_variance(largest_variance), "usable": usable}
        sample = NoisySample.from_integers(integers, noises, outside)
        span = variance_span(sample, X, sample.estimate_mean(X), sample.main_error_probability(1))
        noisy_value = min(max(noisy_variance(sample, X) / usable, 0.0), largest_variance)
        interval = (
            self._value_from_variance(min(span.low, noisy_value)),
            self._value_from_variance(min(max(span.high, noisy_value), largest_variance)),
        )
        return {
            "value": self._value_from_variance(noisy_value),
            "lower": interval[0],
            "upper": interval[1],
            "usable": usable,
        }

    def expected_error(self, noises: Noises, people: int) -> tuple[float, float]:
        """Return the errors for values around the middle of their range (``TYPICAL_MEAN_SQUARE``)."""
        squared = TYPICAL_MEAN_SQUARE * noises[XX].vector.sensitivity * 2
        center = noises[XX].vector.sensitivity
        return expected_error_of_record(
            self.estimate({XX: round(people * (squared - center)), X: 0, USABLE: people}, noises)
        )

    def suppression_probability(self, noises: Noises, people: int) -> float:
        """Return P(the noisy count is below 1)."""
        return low_count_probability(noises[USABLE], people)


@final
@dataclass(frozen=True, slots=True)
class variance(SpreadQuery):
    """The variance of a column, each value clamped to ``bounds``, in the rows that are used: divided by n, not n − 1.

    Noisy sums of centered values and of their squares and a noisy count, charged jointly. All other keywords are as in
    ``count``. Raises ``PlanError`` for an invalid parameter.

    >>> variance("income", bounds=(0, 200_000)).name
    'variance_income'
    """

    kind = "variance"
    meaning = "The variance"

    @staticmethod
    def _value_from_variance(variance: float) -> float:
        return variance


@final
@dataclass(frozen=True, slots=True)
class standard_deviation(SpreadQuery):
    """The square root of ``variance``, for the same budget.

    >>> str(standard_deviation("age", bounds=(0, 120), by="city"))
    'standard deviation of age between 0 and 120 by city'
    """

    kind = "standard_deviation"
    meaning = "The standard deviation"

    @property
    def statistic_name(self) -> str:
        """The statistic in words."""
        return "standard deviation"

    @staticmethod
    def _value_from_variance(variance: float) -> float:
        return math.sqrt(max(variance, 0.0))


Range = tuple[float, float]
OTHER_SUMS_NOISE = 2.0
"""Noise size of all other sums relative to that of the sum of products: their weights in the result are smaller."""


@dataclass(frozen=True, slots=True)
class ColumnPairQuery(Query, ABC):
    """A statistic of two columns, each clamped to its own bounds, in rows that have both values.

    A subclass declares both columns and the bounds of the second as fields, with the names in ``given`` and
    ``second_given``, and passes them to ``check_pair``.
    """

    bounds: tuple[float, float] = field(kw_only=True)
    """The lowest and highest value of the first column, to which its values are clamped."""
    second_bounds: tuple[float, float] = field(init=False, repr=False)
    """The lowest and highest value of the second column."""
    first: Term = field(init=False, repr=False)
    """The first column, checked."""
    second: Term = field(init=False, repr=False)
    """The second column, checked."""

    given: ClassVar[tuple[str, str]] = ("column", "other")
    """The parameters with the two columns."""
    second_given: ClassVar[str] = "other_bounds"
    """The parameter with the bounds of the second column."""
    joined: ClassVar[str] = "and"
    entries = (*given, "bounds", second_given)
    additive = False
    uniform = False

    def __str__(self) -> str:
        return self._text_with_ranges([" between {} and {}".format(*ends) for ends in self._range_ends])

    @property
    def default_title(self) -> str:
        """The query in words, with the ranges to which values are clamped."""
        return self._text_with_ranges([clamped_text(*ends) for ends in self._range_ends])

    @property
    def clamping_effect(self) -> str:
        """The effect of clamping in both columns."""
        moved = "; ".join(
            moved_values_text(*ends, f"values of {name}")
            for ends, name in zip(self._range_ends, self._column_names, strict=True)
        )
        return f"{moved[:1].upper()}{moved[1:]}. Without clamping, the answer can be another one."

    @property
    def _range_ends(self) -> list[tuple[str, str]]:
        return [(format_range_end(low), format_range_end(high)) for low, high in (self.bounds, self.second_bounds)]

    @property
    def _column_names(self) -> list[str]:
        return [escape_control_chars(str(term)) for term in (self.first, self.second)]

    def _text_with_ranges(self, ranges: Sequence[str]) -> str:
        first, second = (name + text for name, text in zip(self._column_names, ranges, strict=True))
        return f"{self.kind} of {first} {self.joined} {second}{self.asked.groups_text}"

    def check_pair(self, *columns: Given) -> None:
        """Check both columns, both ranges and the options; raises ``PlanError`` for an invalid parameter."""
        first, second = (column_term(name, column) for name, column in zip(self.given, columns, strict=True))
        if first == second:
            raise PlanError(self.given[1], str(second), f"another column than {str(first)!r}")
        bounds = value_range("bounds", self.bounds)
        second_bounds = value_range(self.second_given, getattr(self, self.second_given))
        self.check_options(self.kind, str(first), str(second))
        self._set_fields(
            first=first,
            second=second,
            bounds=bounds,
            second_bounds=second_bounds,
            **{self.second_given: second_bounds},
        )

    @property
    def clamped_columns(self) -> tuple[tuple[Term, tuple[float, float] | None], ...]:
        """Both columns, each clamped to its own range."""
        return (self.first, self.bounds), (self.second, self.second_bounds)

    @property
    def number_terms(self) -> tuple[Term, ...]:
        """Both columns."""
        return self.first, self.second

    def resolve(self, schema: Schema, where: Term | None = None) -> Self:
        """Return the query for this schema, with both columns parsed."""
        first, second = resolve_term(self.first, schema), resolve_term(self.second, schema)
        return self.with_fields(asked=self.asked.resolve(schema, where), first=first, second=second)


@dataclass(frozen=True, slots=True)
class MomentQuery(ColumnPairQuery, ABC):
    """A statistic of the moments of two columns: x is the first and y the second, each centered at its middle."""

    varies: ClassVar[tuple[str, ...]] = ()
    """The columns whose variation must be distinguishable from noise; otherwise the answer is suppressed."""

    @property
    def centered_factors(self) -> tuple[Factor, Factor]:
        """Both columns, counted from the middle of their ranges."""
        return centered_factor("bounds", self.bounds), centered_factor(self.second_given, self.second_bounds)

    def moment_statistics(self, *names: str) -> tuple[NoisyStatistic, ...]:
        """Return the sum of products, the requested sums of squares, both sums, and the number of rows."""
        (x, y), size = self.centered_factors, self.asked.relative_noise_size
        first, second, other_size = self.first, self.second, size * OTHER_SUMS_NOISE
        statistics = {
            XY: centered_products(XY, (first, second), (x, y), size),
            XX: centered_squares(XX, first, x, second, other_size),
            YY: centered_squares(YY, second, y, first, other_size),
            X: centered_sum(X, first, x, second, other_size),
            Y: centered_sum(Y, second, y, first, other_size),
            USABLE: usable_rows(USABLE, first, second, other_size),
        }
        return tuple(statistics[name] for name in (XY, *names, X, Y, USABLE))

    def typical_integers(self, noises: Noises, people: int) -> dict[str, int]:
        """Return the noise-free integers of a group: values around the middle, with a correlation of one half."""
        largest = {name: noise.vector.sensitivity for name, noise in noises.items()}
        squared = {
            name: round(people * largest[name] * (2 * TYPICAL_MEAN_SQUARE - 1)) for name in (XX, YY) if name in largest
        }
        product_sum = round(people * largest[XY] * ASSUMED_CORRELATION * TYPICAL_MEAN_SQUARE)
        return {X: 0, Y: 0, XY: product_sum, USABLE: people, **squared}

    def suppression_probability(self, noises: Noises, people: int) -> float:
        """Return P(the noisy count is below 1, or noise hides whether values differ), as for ``expected_error``."""
        low_count = low_count_probability(noises[USABLE], people)
        if not self.varies or people < 1:
            return low_count
        sample = NoisySample.from_integers(self.typical_integers(noises, people), noises)
        return min(
            1.0,
            low_count
            + math.fsum(
                hidden_variance_probability(sample, name, self.needed_variance(sample, name)) for name in self.varies
            ),
        )

    def needed_variance(self, sample: NoisySample, name: str) -> float:
        """Return the smallest n times a variance at which the answer is not suppressed."""
        del sample, name
        return 0.0


@final
@dataclass(frozen=True, slots=True)
class covariance(MomentQuery):
    """The covariance of two columns in the rows that have both values.

    ``column`` is clamped to ``bounds``, ``other`` to ``other_bounds``.

    Noisy sums of products and of centered values and a noisy count, charged jointly. All other keywords are as in
    ``count``. Raises ``PlanError`` for an invalid parameter.

    >>> covariance("height", "weight", bounds=(1, 2.5), other_bounds=(20, 200)).name
    'covariance_height_weight'
    """

    column: Given = field(compare=False)
    """The first column, or an expression."""
    other: Given = field(compare=False)
    """The second column, or an expression."""
    other_bounds: tuple[float, float] = field(kw_only=True, compare=False)
    """The lowest and highest value of the second column."""

    kind = "covariance"
    comparable = True
    meaning = "The covariance"
    notes = (
        "It describes the rows used: products are divided by n, not by n - 1.",
        MISSING_VALUES_NOTE,
        "Where the noisy count is below 1, it is suppressed and the interval covers every possible value.",
        TYPICAL_VALUES_NOTE,
    )

    def __post_init__(self) -> None:
        self.check_pair(self.column, self.other)

    def noisy_statistics(self) -> tuple[NoisyStatistic, ...]:
        """Return the sum of products, both sums, and the number of rows."""
        return self.moment_statistics()

    def estimate(self, integers: Integers, noises: Noises, outside: float = OUTSIDE) -> Record:
        """Return Sxy/N − Sx/N Sy/N, clamped to the possible values; ``usable`` is the noisy number of rows."""
        usable, (x, y) = integers[USABLE], self.centered_factors
        largest_covariance = centered_bound(x) * centered_bound(y)
        if usable < 1:
            return {"value": None, "lower": -largest_covariance, "upper": largest_covariance, "usable": usable}
        sample = NoisySample.from_integers(integers, noises, outside)
        means = sample.estimate_mean(X), sample.estimate_mean(Y)
        product = sample.product_of_mean_errors(*means)
        span = covariance_span(sample, means, product, sample.main_error_probability(3))
        value = min(max(noisy_covariance(sample) / usable, -largest_covariance), largest_covariance)
        lower, upper = max(min(span.low, value), -largest_covariance), min(max(span.high, value), largest_covariance)
        return {"value": value, "lower": lower, "upper": upper, "usable": usable}

    def expected_error(self, noises: Noises, people: int) -> tuple[float, float]:
        """Return the errors for values around the middle of their range (``TYPICAL_MEAN_SQUARE``)."""
        return expected_error_of_record(self.estimate(self.typical_integers(noises, people), noises))


ALL_CORRELATIONS = Span(-1.0, 1.0)


@final
@dataclass(frozen=True, slots=True)
class correlation(MomentQuery):
    """The correlation of two columns in the rows that have both values.

    ``column`` is clamped to ``bounds``, ``other`` to ``other_bounds``.

    Six noisy vectors, charged jointly: sums of products, squares and values, and a count. All other keywords are as in
    ``count``. Raises ``PlanError`` for an invalid parameter.

    >>> str(correlation("height", "weight", bounds=(1, 2.5), other_bounds=(20, 200)))
    'correlation of height between 1 and 2.5 and weight between 20 and 200'
    """

    column: Given = field(compare=False)
    """The first column, or an expression."""
    other: Given = field(compare=False)
    """The second column, or an expression."""
    other_bounds: tuple[float, float] = field(kw_only=True, compare=False)
    """The lowest and highest value of the second column."""

    kind = "correlation"
    comparable = True
    meaning = "The correlation"
    notes = (
        MISSING_VALUES_NOTE,
        "Where the noisy variance of a column is not positive, the correlation is suppressed. An interval from -1 to 1 "
        "excludes no correlation: the value next to it is only noise, as in a group where all values of a column are "
        "equal, which has no correlation at all.",
        TYPICAL_VALUES_NOTE,
    )

    varies = (X, Y)

    def __post_init__(self) -> None:
        self.check_pair(self.column, self.other)

    def noisy_statistics(self) -> tuple[NoisyStatistic, ...]:
        """Return the sums of products and squares, both sums, and the number of rows."""
        return self.moment_statistics(XX, YY)

    def estimate(self, integers: Integers, noises: Noises, outside: float = OUTSIDE) -> Record:
        """Return the covariance divided by both standard deviations, in [−1, 1]; ``usable`` is the noisy row count."""
        usable = integers[USABLE]
        if usable < 1:
            return {"value": None, "lower": -1.0, "upper": 1.0, "usable": usable}
        sample = NoisySample.from_integers(integers, noises, outside)
        variances = noisy_variance(sample, X), noisy_variance(sample, Y)
        if not min(variances) > 0:
            return {"value": None, "lower": -1.0, "upper": 1.0, "usable": usable}
        value = min(max(noisy_covariance(sample) / math.sqrt(variances[0]) / math.sqrt(variances[1]), -1.0), 1.0)
        span = _likely_correlations(sample, variances)
        return {"value": value, "lower": min(span.low, value), "upper": max(span.high, value), "usable": usable}

    def expected_error(self, noises: Noises, people: int) -> tuple[float, float]:
        """Return the errors for values around the middle (``TYPICAL_MEAN_SQUARE``) with a correlation of one half."""
        return expected_error_of_record(self.estimate(self.typical_integers(noises, people), noises))


CORRELATION_NUISANCES = 5
"""Both means, the product of their errors, and both variances."""
CELL_RATIO, INNER_RATIO = 1.25, 3.0
"""The ratio of both standard deviations, relative to the observed one, is examined in cells with ends of this ratio.

Beyond the second number and its reciprocal there is one cell each.
"""


def _likely_correlations(sample: NoisySample, variances: tuple[float, float]) -> Span:
    """Return the plausible correlations r: C − r (κ V + W/κ)/2 is pure noise at κ = √(W/V); V, W are variances · n."""
    means = sample.estimate_mean(X), sample.estimate_mean(Y)
    cells, covariance = _ratio_cells(sample, variances, means), noisy_covariance(sample)
    (mean_x, mean_y), product = (mean.span for mean in means), sample.product_of_mean_errors(*means)
    square_x, square_y = (
        mean.squared_span() + square_offset(sample.noises[name]) for mean, name in ((mean_x, XX), (mean_y, YY))
    )
    # V and W are too small by at most the squared errors of the means.
    spread_x, spread_y = (
        Span(part, part + sample.usable * mean.noise_bound**2) for part, mean in zip(variances, means, strict=True)
    )
    least_spread = math.sqrt(variances[0]) * math.sqrt(variances[1])
    outside = sample.main_error_probability(CORRELATION_NUISANCES)

    def plausible_in(piece: Span) -> Span:
        """Return a range that contains all plausible correlations of this range: c C − r (d V + e W)/2 is noise."""
        spans = []
        for c, d, e in cells:
            weights: Weights = {
                XY: c,
                XX: piece * d * 0.5,
                YY: piece * e * 0.5,
                X: piece * d * mean_x - c * mean_y,
                Y: piece * e * mean_y - c * mean_x,
                USABLE: c * mean_x * mean_y - piece * (d * square_x + e * square_y) * 0.5,
            }
            half_width = sample.noise_width(weights, outside) + c.high * product
            # (d V + e W)/2 with d e = c²: at least c √(V W), and convex or monotone between both ends of the cell.
            smallest = max((d.low * spread_x.low + e.low * spread_y.low) / 2, c.low * least_spread)
            largest = max(
                d.low * spread_x.high + e.high * spread_y.high, d.high * spread_x.high + e.low * spread_y.high
            )
            numerator = c * covariance + Span(-half_width, half_width)
            spans.append(numerator.divide_by_positive(Span(smallest, max(largest / 2, smallest))))
        return Span(min(span.low for span in spans), max(span.high for span in spans))

    value = min(max(covariance / least_spread, -1.0), 1.0)
    return Span(narrow_end(value, -1.0, plausible_in), narrow_end(value, 1.0, plausible_in))


def _ratio_cells(
    sample: NoisySample, variances: tuple[float, float], means: tuple[NoisyMean, NoisyMean]
) -> list[tuple[Span, Span, Span]]:
    """Return ranges of (c, c κ, c/κ) for all plausible ratios κ = √(W/V) of the standard deviations.

    c is 1 unless κ is far from the observed ratio u; then it is u/κ or κ/u, so that κ may be 0 or unbounded.
    """
    x, y = (variance_span(sample, name, mean, NUISANCE_PROBABILITY) for name, mean in zip((X, Y), means, strict=True))
    observed = math.sqrt(variances[1]) / math.sqrt(variances[0])
    low = min(math.sqrt(max(y.low, 0.0) / x.high) / observed, 1.0) if x.high > 0 else 0.0
    high = max(math.sqrt(y.high / x.low) / observed, 1.0) if x.low > 0 else math.inf
    first, last = max(low, 1 / INNER_RATIO), min(high, INNER_RATIO)
    count = max(math.ceil(math.log(last / first) / math.log(CELL_RATIO)), 1)
    edges = [first * (last / first) ** (index / count) for index in range(count)] + [last]
    u = Span(observed, observed)
    cells = [
        (Span(1.0, 1.0), u * Span(start, end), Span(1 / end, 1 / start) * (1 / observed))
        for start, end in pairwise(edges)
    ]
    if low < first:
        cells.append((Span(low, first), u * Span(low**2, first**2), Span(1 / observed, 1 / observed)))
    if high > last:
        cells.append((Span(1 / high, 1 / last), u, Span(1 / high**2, 1 / last**2) * (1 / observed)))
    return cells
