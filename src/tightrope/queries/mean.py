"""The mean of a column: a noisy centered sum over a noisy count, charged jointly."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Literal, Self, final

import numpy as np

from tightrope.numerics.root_finding import bisect_real
from tightrope.queries.column_query import ColumnQuery
from tightrope.queries.comparisons import LinearEstimate, NoiseWeight
from tightrope.queries.intervals import OUTSIDE, IndependentPair, RatioWidths
from tightrope.queries.moment_estimates import centered_factor, centered_sum
from tightrope.queries.moments import SpreadQuery
from tightrope.queries.query import Integers, Noises, Query, Record
from tightrope.queries.statistics import Noise, NoisyStatistic, column_grid, rounding_error, value_count, value_sum
from tightrope.tables.expressions.expression import Term
from tightrope.tables.request import FixedPoint, FixedProduct

CENTERED_SUM, USABLE = "sum", "usable"
COUNT_NOISE = 2.0
"""The count in a mean gets twice the relative noise of the sum: few values lie at the ends of their range."""


@final
@dataclass(frozen=True, slots=True)
class mean(ColumnQuery):
    """The mean of a column, each value clamped to ``bounds``; a noisy centered sum over a noisy count, charged jointly.

    ``column`` may be an expression: ``"minutes / 60"``; ``bounds`` may be left out if it has a range of its own.
    All other keywords are as in ``count``. Raises ``PlanError`` for an invalid parameter.

    >>> mean("age", bounds=(0, 120), by=["city", "sex"]).name
    'mean_age_by_city_sex'
    """

    beside_spread: bool = field(default=False, init=False, compare=False)
    """True if the sum is shared with a variance or standard deviation, which has a finer grid."""

    kind = "mean"
    comparable = True
    has_linear_estimate = True
    meaning = "The mean"
    clamped_number = "mean"
    additive = False
    uniform = False
    notes = (
        "Where the noisy count is below 1, the mean is suppressed and the interval is the whole range.",
        "The 95 % coverage includes releases in which the mean is suppressed. Among releases that show the mean of a "
        "small group, the coverage can be lower.",
        "Errors assume that the true mean lies halfway between the middle and one end of the range; for such a "
        "mean the expected error is an upper bound.",
    )

    @property
    def fixed_point_grid(self) -> FixedPoint:
        """The grid, with integers counted from the midpoint, which halves the sensitivity."""
        return column_grid(self.clamp_bounds, centered=True)

    def noisy_statistics(self) -> tuple[NoisyStatistic, ...]:
        """Return the centered sum and the number of usable values."""
        size = self.asked.relative_noise_size
        total = _centered_total(self.term, self.clamp_bounds, size, beside_spread=self.beside_spread)
        return total, value_count(USABLE, self.term, size * COUNT_NOISE)

    def specialize(self, together: Sequence[Query]) -> Self:
        """Return the query; beside a variance or standard deviation of the same values it uses their sum."""
        return self.with_fields(beside_spread=_has_query_of(together, SpreadQuery, self))

    def estimate(self, integers: Integers, noises: Noises, outside: float = OUTSIDE) -> Record:
        """Return midpoint + noisy centered sum / noisy count, clamped to the range; suppressed if the count is below 1.

        ``usable`` is the noisy count.
        """
        low, high = self.clamp_bounds
        middle, total, usable = (
            _middle_of_sum(noises[CENTERED_SUM].vector),
            integers[CENTERED_SUM] * noises[CENTERED_SUM].step_size,
            integers[USABLE],
        )
        if usable < 1:
            return {"value": None, "lower": low, "upper": high, "usable": usable}
        below, above = centered_interval(integers[CENTERED_SUM], usable, noises, outside)
        value, rounding = min(max(middle + total / usable, low), high), rounding_error(self.clamp_bounds)
        lower, upper = max(low, min(middle + below - rounding, value)), min(high, max(middle + above + rounding, value))
        return {"value": value, "lower": lower, "upper": upper, "usable": usable}

    def linear_estimate(self, integers: Integers, noises: Noises) -> LinearEstimate | None:
        """Return midpoint + noisy centered sum / noisy count; None if the count is below 1."""
        if integers[USABLE] < 1:
            return None
        step = noises[CENTERED_SUM].step_size
        return LinearEstimate(
            integers[CENTERED_SUM] * step,
            (NoiseWeight(noises[CENTERED_SUM], step), NoiseWeight(noises[USABLE], 0.0, 1.0)),
            bottom=integers[USABLE],
            offset=_middle_of_sum(noises[CENTERED_SUM].vector),
            allowance=step + rounding_error(self.clamp_bounds),
            possible=self.clamp_bounds,
        )

    def expected_error(self, noises: Noises, people: int) -> tuple[float, float]:
        """Return errors for a mean halfway between the middle and an end of the range, E|error| as an upper bound."""
        low, high = self.clamp_bounds
        half_range = (high - low) / 2
        expected = (noises[CENTERED_SUM].mean_absolute + noises[USABLE].mean_absolute * half_range / 2) / people
        lower, upper = centered_interval(people * half_range / 2 / noises[CENTERED_SUM].step_size, people, noises)
        return min(expected, half_range), min(half_range, (upper - lower) / 2)

    def suppression_probability(self, noises: Noises, people: int) -> float:
        """Return P(the noisy count is below 1)."""
        return noises[USABLE].lower_tail_probability(-people)


def _centered_total(term: Term, bounds: tuple[float, float], size: float, *, beside_spread: bool) -> NoisyStatistic:
    """Return the centered sum of a mean, with integers counted from the midpoint, which halves the sensitivity."""
    if beside_spread:
        return centered_sum(CENTERED_SUM, term, centered_factor("bounds", bounds), None, size)
    return value_sum(CENTERED_SUM, term, column_grid(bounds, centered=True), size)


def _has_query_of(queries: Sequence[Query], kind: type[object], of: ColumnQuery) -> bool:
    """Return whether one of the queries is of this kind, about the same values as ``of``."""
    values = of.term, of.clamp_bounds
    column_queries = (one for one in queries if isinstance(one, ColumnQuery) and isinstance(one, kind))
    return any((one.term, one.clamp_bounds) == values for one in column_queries)


def _middle_of_sum(total: NoisyStatistic) -> float:
    """Return the number from which the values of a centered sum are counted."""
    fixed_point = total.measure.fixed_point
    if isinstance(fixed_point, FixedProduct):
        return fixed_point.factors[0].middle
    return 0.0 if fixed_point is None else fixed_point.center * total.step_size


def centered_interval(total: float, usable: int, noises: Noises, outside: float = OUTSIDE) -> tuple[float, float]:
    """Return bounds on the centered mean s/n in natural units, from integers s + X and n + Y (``RatioWidths``).

    A centered mean is at most one row's sensitivity; rounding to the grid moves a value by at most half a step.
    """
    step = noises[CENTERED_SUM].step_size
    lower, upper = _cached_ratio_widths(noises[CENTERED_SUM], noises[USABLE], outside).ratio_interval(total, usable)
    return (lower - 1) * step, (upper + 1) * step


@lru_cache(maxsize=64)
def _cached_ratio_widths(total: Noise, usable: Noise, outside: float) -> RatioWidths:
    """Return the ratio widths, computed once for all groups."""
    return RatioWidths.from_noise_pair(
        IndependentPair(total.noise_tails, usable.noise_tails), float(total.vector.sensitivity), outside
    )


SUM_NAME = "sum"
SHARED_SUM_NOTE = (
    "It is computed from the noisy numbers of the mean or variance of the same values, so their errors are related."
)
ROUNDINGS_OF_SUM = 4
"""Roundings of a sum of two products, in units in the last place of the larger one."""
DEVIATIONS, TRAPEZOIDS = 16, 256
"""The last trapezoid under a tail probability ends at this many standard deviations; number of trapezoids."""
WIDTH_TOLERANCE = 1e-6
"""Relative precision of a half-width."""


@final
@dataclass(frozen=True, slots=True)
class sum(ColumnQuery):
    """The sum of a column, each value clamped to ``bounds``, which limits the effect of one row.

    ``column`` may be an expression: ``"minutes / 60"``; ``bounds`` may be left out if it has a range of its own.

    All other keywords are as in ``count``. Raises ``PlanError`` for an invalid parameter.

    >>> str(sum("income", bounds=(0, 200_000)))
    'sum of income between 0 and 200000'
    """

    beside: Literal["mean", "spread"] | None = field(default=None, init=False, compare=False)
    """The query of the same values, a mean or also a variance, whose centered sum and number of values are used."""

    kind = "sum"
    comparable = True
    has_linear_estimate = True
    meaning = "The total"
    clamped_number = "total"
    additive = True
    uniform = True

    @property
    def adds_up(self) -> bool:  # type: ignore[override]
        """Return whether the sum has noise of its own."""
        return self.beside is None

    @property
    def boxes(self) -> bool:  # type: ignore[override]
        """Return whether the sum has noise of its own."""
        return self.beside is None

    @property
    def is_one_noisy_integer(self) -> bool:  # type: ignore[override]
        """Return whether the sum has noise of its own."""
        return self.beside is None

    @property
    def all_notes(self) -> tuple[str, ...]:
        """A note on statistics that are shared with a mean."""
        return () if self.beside is None else (SHARED_SUM_NOTE,)

    def share_statistics(self, together: Sequence[Query]) -> Self:
        """Return the sum as the centered sum of a mean, plus the middle of the range for each value.

        It then adds no statistic of its own (docs/proofs/intervals.md).
        """
        if _has_query_of(together, SpreadQuery, self):
            return self.with_fields(beside="spread")
        return self.with_fields(beside="mean") if _has_query_of(together, mean, self) else self

    def noisy_statistics(self) -> tuple[NoisyStatistic, ...]:
        """Return the sum, on a grid that is finer than its noise; beside a mean, the statistics of the mean."""
        size = self.asked.relative_noise_size
        if self.beside is None:
            return (value_sum(SUM_NAME, self.term, column_grid(self.clamp_bounds, centered=False), size),)
        total = _centered_total(self.term, self.clamp_bounds, size, beside_spread=self.beside == "spread")
        middle = _middle_of_sum(total)
        if middle == 0:
            return (total,)
        # The least variance for the budget of both, but no more noise than in a mean, and no less than in the sum.
        ratio = math.sqrt(total.sensitivity * total.step_size / abs(middle))
        return total, value_count(USABLE, self.term, size * min(max(ratio, 1.0), COUNT_NOISE))

    def estimate(self, integers: Integers, noises: Noises, outside: float = OUTSIDE) -> Record:
        """Return noisy integer · step, beside a mean plus middle · noisy count; the ends are rounded outwards."""
        estimate = self.linear_estimate(integers, noises)
        value, width = estimate.top, _sum_half_width(estimate.weights, outside)
        width += estimate.allowance if len(estimate.weights) > 1 else 0.0
        lower, upper = math.nextafter(value - width, -math.inf), math.nextafter(value + width, math.inf)
        return {"value": value, "lower": lower, "upper": upper}

    def linear_estimate(self, integers: Integers, noises: Noises) -> LinearEstimate:
        """Return noisy integer · step, beside a mean plus middle · noisy count."""
        weights, (low, high) = self._noise_weights(noises), self.clamp_bounds
        terms = [integers[name] * weight.in_top for name, weight in zip(noises, weights, strict=True)]
        top = math.fsum(terms)
        rounding = 0.0 if len(terms) == 1 else math.ulp(max(map(abs, terms))) * ROUNDINGS_OF_SUM
        possible = (0.0 if low >= 0 else -math.inf, 0.0 if high <= 0 else math.inf)
        return LinearEstimate(top, weights, allowance=max(math.ulp(top), rounding), possible=possible)

    def expected_error(self, noises: Noises, people: int) -> tuple[float, float]:
        """Return the errors of the noise; beside a mean, E|error| as an upper bound."""
        del people
        weights = self._noise_weights(noises)
        expected = noises[SUM_NAME].mean_absolute if len(weights) == 1 else _sum_mean_absolute(weights)
        return expected, _sum_half_width(weights, OUTSIDE)

    def error_scale(self, vectors: Mapping[str, NoisyStatistic]) -> float:
        """Return the standard deviation of the noise, up to a factor."""
        weights = {USABLE: _middle_of_sum(vectors[CENTERED_SUM])}
        parts = (
            vector.noise_spec.noise_size * vector.sensitivity * weights.get(name, vector.step_size)
            for name, vector in vectors.items()
        )
        return math.hypot(*parts)

    def worst_error(self, noises: Noises) -> float:
        """Return the largest error of the noise."""
        weights = self._noise_weights(noises)
        return math.fsum(abs(weight.in_top) * weight.noise.noise_mechanism.worst_error for weight in weights)

    def _noise_weights(self, noises: Noises) -> tuple[NoiseWeight, ...]:
        """Return the noise of each vector with its weight in the sum, in the order of ``noises``."""
        if self.beside is None:
            return (NoiseWeight(noises[SUM_NAME], noises[SUM_NAME].step_size),)
        factors = {CENTERED_SUM: noises[CENTERED_SUM].step_size, USABLE: _middle_of_sum(noises[CENTERED_SUM].vector)}
        return tuple(NoiseWeight(noise, factors[name]) for name, noise in noises.items())


@lru_cache(maxsize=64)
def _sum_mean_absolute(weights: tuple[NoiseWeight, NoiseWeight]) -> float:
    """Return E|X + mY|, rounded up: the area under P(|X + mY| > t), which is convex, by trapezoids.

    Beyond the last one, at w, it is at most √(E (X + mY)² · P(|X + mY| > w)).
    """
    top, bottom = weights
    pair = IndependentPair(top.noise.noise_tails, bottom.noise.noise_tails)
    ratio, step = abs(bottom.in_top / top.in_top), abs(top.in_top)
    squares = [weight.in_top**2 * weight.noise.noise_mechanism.mean_squared_error for weight in weights]
    deviation = math.sqrt(math.fsum(squares)) / step
    widths = np.linspace(0.0, DEVIATIONS * deviation, TRAPEZOIDS + 1)
    beyond = np.minimum(pair.excess_probability(widths, np.full(len(widths), ratio)), 1.0)
    area = 0.5 + float(np.trapezoid(beyond, widths)) + deviation * math.sqrt(float(beyond[-1]))
    return min(area, deviation) * step


@lru_cache(maxsize=64)
def _sum_half_width(weights: tuple[NoiseWeight, ...], outside: float) -> float:
    """Return a half-width that the noise of a sum exceeds with probability at most ``outside``."""
    if len(weights) == 1:
        return weights[0].noise.half_width(1 - outside)
    top, bottom = weights
    pair = IndependentPair(top.noise.noise_tails, bottom.noise.noise_tails)
    # |X − mY| for m = |weight of Y / weight of X|: Y is symmetric.
    ratio = np.array([abs(bottom.in_top / top.in_top)])
    sum_of_widths = math.fsum(
        abs(one.in_top) * one.noise.noise_mechanism.half_width(1 - outside / 2) for one in weights
    )
    widest = sum_of_widths / abs(top.in_top)

    def is_enough(width: float) -> bool:
        return bool(pair.excess_probability(np.array([width]), ratio)[0] <= outside)

    if not is_enough(widest):
        return sum_of_widths
    width = bisect_real(is_enough, 0.0, widest, side="passes", within=WIDTH_TOLERANCE * widest)
    return min(sum_of_widths, (width + 0.5) * abs(top.in_top))
