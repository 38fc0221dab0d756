"""Least-squares regression of one column on another, from noisy moments: slope and intercept."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Self, final

from tightrope.queries.intervals import OUTSIDE
from tightrope.queries.moment_estimates import (
    MISSING_VALUES_NOTE,
    NARROWING_STEPS,
    NUISANCE_PROBABILITY,
    TYPICAL_VALUES_NOTE,
    USABLE,
    XY,
    YY,
    NoisyMean,
    NoisySample,
    Span,
    Weights,
    X,
    Y,
    covariance_span,
    expected_error_of_record,
    finite_or_none,
    narrow_end,
    noisy_covariance,
    noisy_variance,
    span_around,
    square_offset,
    variance_span,
)
from tightrope.queries.moments import MomentQuery
from tightrope.queries.options import Given
from tightrope.queries.query import Integers, Noises, Record
from tightrope.queries.statistics import NoisyStatistic, rounding_error

ALL_HEIGHTS = ALL_SLOPES = Span(-math.inf, math.inf)
SLOPE_NUISANCES = 3
"""Both means, and the product of their errors."""
HEIGHT_NUISANCES = SLOPE_NUISANCES + 3
"""Also the slope, the covariance and the variance."""
MAX_SLOPE_DOUBLINGS = 11
"""A first bound on the slopes is doubled up to this many times, less one, until all larger slopes are excluded."""


@dataclass(frozen=True, slots=True, eq=False)
class RegressionLine:
    """The least-squares line of a noisy sample: x is the response and y the predictor, both centered.

    The slope is C/V, with C = n times the covariance (``covariance``) and V = n times the variance of y (``variance``).
    """

    sample: NoisySample
    x: NoisyMean
    y: NoisyMean
    covariance: float
    variance: float
    product_of_errors: float
    """A bound on n times the product of the errors of both means."""

    @classmethod
    def from_moments(cls, sample: NoisySample) -> Self:
        """Return the line of a sample, also if the variance of y cannot be distinguished from noise."""
        x, y = sample.estimate_mean(X), sample.estimate_mean(Y)
        product = sample.product_of_mean_errors(x, y)
        return cls(sample, x, y, noisy_covariance(sample), noisy_variance(sample, Y), product)

    @property
    def noisy_slope(self) -> float:
        """The noisy slope."""
        return self.covariance / self.variance

    @property
    def height_at_center(self) -> float:
        """The height of the line at y = 0, the middle of the range."""
        return self.x.value - self.noisy_slope * self.y.value

    def slope_span(self, outside: float) -> Span:
        """Return the plausible slopes b: C − b V is pure noise. Unbounded if V may be zero."""
        largest = self._largest_slope(outside)
        if not math.isfinite(largest):
            return ALL_SLOPES
        low, high = (
            narrow_end(self.noisy_slope, end, lambda piece: self._slopes_in(piece, outside))
            for end in (-largest, largest)
        )
        return Span(min(low, self.noisy_slope), max(high, self.noisy_slope))

    def _slopes_in(self, piece: Span, outside: float) -> Span:
        """Return a range that contains all plausible slopes of this range."""
        half_width = self.sample.noise_width(self._noise_weights(Span(1.0, 1.0), piece), outside)
        spread = Span(self.variance, self.variance + self.sample.usable * self.y.noise_bound**2)
        return span_around(self.covariance, half_width + self.product_of_errors).divide_by_positive(spread)

    def _largest_slope(self, outside: float) -> float:
        """Return a bound on the magnitude of all plausible slopes b: C / b − V is pure noise for larger ones, too."""
        numerator = abs(self.covariance) + self.product_of_errors
        exact = numerator + self.sample.noise_width(self._noise_weights(Span(1.0, 1.0), Span(0.0, 0.0)), outside)
        for doubling in range(MAX_SLOPE_DOUBLINGS):
            bound = exact / self.variance * 2.0**doubling if self.variance > 0 else 0.0
            if not bound > 0:
                return math.inf
            inverse = Span(-1 / bound, 1 / bound)
            half_width = self.sample.noise_width(self._noise_weights(inverse, Span(1.0, 1.0)), outside)
            if self.variance > numerator / bound + half_width:
                return bound
        return math.inf

    @classmethod
    def hidden_variance(cls, sample: NoisySample) -> float:
        """Return the width of the noise in V; if the noisy V is smaller, the line is suppressed."""
        line = cls.from_moments(sample)
        weights = line._noise_weights(Span(0.0, 0.0), Span(1.0, 1.0))
        return sample.noise_width(weights, sample.main_error_probability(SLOPE_NUISANCES))

    def _noise_weights(self, c: Span, d: Span) -> dict[str, Span]:
        """Return the weights of all noises in c C − d V."""
        x, y, center = self.x.span, self.y.span, square_offset(self.sample.noises[YY])
        return {
            XY: c,
            YY: -d,
            X: -(c * y),
            Y: d * y * 2 - c * x,
            USABLE: c * x * y - d * (y.squared_span() + center),
        }

    def height_span(self, at: float, outside: float) -> Span:
        """Return the plausible heights at y = ``at``.

        For u = at − mean of y and r = height − mean of x, C u − r V is pure noise. u and r are computed from the noisy
        means, so the noises of the sums of y and of x also enter through them: with the weights C/n and V/n.
        """
        slope = self.slope_span(NUISANCE_PROBABILITY)
        if not math.isfinite(slope.largest_magnitude):
            return ALL_HEIGHTS
        distance = Span(at, at) - self.y.span
        span, moments = self.x.span + slope * distance, self._moment_spans()
        for _ in range(NARROWING_STEPS):
            rises = (span - self.x.span).clip_to_span(slope * distance)
            weights = self._height_noise(distance, rises, moments)
            half_width = self.sample.noise_width(weights, outside)
            half_width += self._second_order_noise(distance, rises, moments)
            middle = self.x.value + self.covariance * (at - self.y.value) / self.variance
            span = span_around(middle, half_width / self.variance).clip_to_span(span)
        return span

    def _moment_spans(self) -> tuple[Span, Span]:
        """Return the plausible covariances and variances."""
        means, outside = (self.x, self.y), NUISANCE_PROBABILITY
        covariances = covariance_span(self.sample, means, self.product_of_errors, outside)
        return covariances, variance_span(self.sample, Y, self.y, outside)

    def _height_noise(self, distance: Span, rise: Span, moments: tuple[Span, Span]) -> Weights:
        x, y, center = self.x.span, self.y.span, square_offset(self.sample.noises[YY])
        covariance, variance = moments
        return {
            XY: distance,
            YY: -rise,
            X: variance - distance * y,
            Y: rise * y * 2 - distance * x - covariance,
            USABLE: distance * x * y - rise * (y.squared_span() + center) + covariance * y - variance * x,
        }

    def _second_order_noise(self, distance: Span, rise: Span, moments: tuple[Span, Span]) -> float:
        """Return a bound on the products of two noises: of the means and of the moments."""
        n, (covariance, variance) = self.sample.usable, moments
        noise_of_means = (covariance * n - self.covariance).largest_magnitude * self.y.noise_bound + (
            variance * n - self.variance
        ).largest_magnitude * self.x.noise_bound
        return noise_of_means + n * self.y.noise_bound * (
            self.x.noise_bound * distance.largest_magnitude + self.y.noise_bound * rise.largest_magnitude
        )


@final
@dataclass(frozen=True, slots=True)
class regression(MomentQuery):
    """The least-squares regression of ``column``, clamped to ``bounds``, on ``on``, clamped to ``on_bounds``.

    ``value`` is the slope and ``intercept`` the height at zero, each with a 95 % interval, from the rows that have
    both values. Five noisy vectors, charged jointly: sums of products, squares and values, and a count. All other
    keywords are as in ``count``. Raises ``PlanError`` for an invalid parameter.

    >>> str(regression("delay", on="distance", bounds=(0, 60), on_bounds=(0, 3000)))
    'regression of delay between 0 and 60 on distance between 0 and 3000'
    """

    column: Given = field(compare=False)
    """The column that the line predicts, or an expression."""
    on: Given = field(compare=False)
    """The predictor column, or an expression."""
    on_bounds: tuple[float, float] = field(kw_only=True, compare=False)
    """The lowest and highest value of ``on``."""

    kind = "regression"
    comparable = True
    meaning = "The slope of the line of least squares"
    given = ("column", "on")
    joined = "on"
    second_given = "on_bounds"
    entries = (*given, "bounds", second_given)
    varies = (Y,)
    notes = (
        "The value is the slope, with its interval; result.json and .to_pandas() also have the intercept and its "
        "interval.",
        MISSING_VALUES_NOTE,
        "Where the noise is so large that the variance of the explanatory column could be zero, the line is "
        "suppressed. A missing end means that there is no limit.",
        TYPICAL_VALUES_NOTE,
    )

    def __post_init__(self) -> None:
        self.check_pair(self.column, self.on)

    def noisy_statistics(self) -> tuple[NoisyStatistic, ...]:
        """Return the sum of products, the sum of squares of the predictor, both sums, and the number of rows."""
        return self.moment_statistics(YY)

    def estimate(self, integers: Integers, noises: Noises, outside: float = OUTSIDE) -> Record:
        """Return covariance over variance, and the intercept; ``usable`` is the noisy number of rows."""
        usable = integers[USABLE]
        sample = NoisySample.from_integers(integers, noises, outside)
        line = RegressionLine.from_moments(sample) if usable >= 1 else None
        slope = ALL_SLOPES if line is None else line.slope_span(sample.main_error_probability(SLOPE_NUISANCES))
        if line is None or not math.isfinite(slope.largest_magnitude):
            suppressed = dict.fromkeys(("value", "lower", "upper", "intercept", "intercept_lower", "intercept_upper"))
            return {**suppressed, "usable": usable}
        x, y = self.centered_factors
        intercepts, height_at_zero = (
            line.height_span(-y.middle, sample.main_error_probability(HEIGHT_NUISANCES)),
            line.height_at_center - line.noisy_slope * y.middle,
        )
        rounding = rounding_error((x.middle, line.noisy_slope * y.middle))
        return {
            "value": line.noisy_slope,
            "lower": min(slope.low, line.noisy_slope),
            "upper": max(slope.high, line.noisy_slope),
            "usable": usable,
            "intercept": x.middle + height_at_zero,
            "intercept_lower": finite_or_none(x.middle + min(intercepts.low, height_at_zero) - rounding),
            "intercept_upper": finite_or_none(x.middle + max(intercepts.high, height_at_zero) + rounding),
        }

    def needed_variance(self, sample: NoisySample, name: str) -> float:
        """Return the smallest n times a variance at which the slope is bounded."""
        del name
        return RegressionLine.hidden_variance(sample)

    def expected_error(self, noises: Noises, people: int) -> tuple[float, float]:
        """Return the errors of the slope, for values as in ``typical_integers``, with a correlation of one half."""
        return expected_error_of_record(self.estimate(self.typical_integers(noises, people), noises))
