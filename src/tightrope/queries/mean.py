"""The mean of a column: a noisy centered sum over a noisy count, charged jointly."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Self, final

from tightrope.queries.column_query import ColumnQuery
from tightrope.queries.comparisons import LinearEstimate, NoiseWeight
from tightrope.queries.intervals import OUTSIDE, IndependentPair, RatioWidths
from tightrope.queries.moment_estimates import centered_factor, centered_sum
from tightrope.queries.moments import SpreadQuery
from tightrope.queries.query import Integers, Noises, Query, Record
from tightrope.queries.statistics import Noise, NoisyStatistic, column_grid, rounding_error, value_count, value_sum
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
        "Errors assume that the true mean lies halfway between the middle and one end of the range; the expected "
        "error is an upper bound.",
    )

    @property
    def fixed_point_grid(self) -> FixedPoint:
        """The grid, with integers counted from the midpoint, which halves the sensitivity."""
        return column_grid(self.clamp_bounds, centered=True)

    def noisy_statistics(self) -> tuple[NoisyStatistic, ...]:
        """Return the centered sum and the number of usable values."""
        size = self.asked.relative_noise_size
        total = value_sum(CENTERED_SUM, self.term, self.fixed_point_grid, size)
        if self.beside_spread:
            factor = centered_factor("bounds", self.clamp_bounds)
            total = centered_sum(CENTERED_SUM, self.term, factor, None, size)
        return total, value_count(USABLE, self.term, size * COUNT_NOISE)

    def specialize(self, together: Sequence[Query]) -> Self:
        """Return the query; beside a variance or standard deviation of the same values it uses their sum."""
        beside = any(
            isinstance(one, SpreadQuery) and (one.term, one.clamp_bounds) == (self.term, self.clamp_bounds)
            for one in together
        )
        return self.with_fields(beside_spread=beside)

    def estimate(self, integers: Integers, noises: Noises, outside: float = OUTSIDE) -> Record:
        """Return midpoint + noisy centered sum / noisy count, clamped to the range; suppressed if the count is below 1.

        ``usable`` is the noisy count.
        """
        low, high = self.clamp_bounds
        middle, total, usable = (
            _middle_of_sum(noises[CENTERED_SUM]),
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
            offset=_middle_of_sum(noises[CENTERED_SUM]),
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


def _middle_of_sum(total: Noise) -> float:
    """Return the number from which the values of a centered sum are counted."""
    fixed_point = total.vector.measure.fixed_point
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


@final
@dataclass(frozen=True, slots=True)
class sum(ColumnQuery):
    """The sum of a column, each value clamped to ``bounds``, which limits the effect of one row.

    ``column`` may be an expression: ``"minutes / 60"``; ``bounds`` may be left out if it has a range of its own.

    All other keywords are as in ``count``. Raises ``PlanError`` for an invalid parameter.

    >>> str(sum("income", bounds=(0, 200_000)))
    'sum of income between 0 and 200000'
    """

    kind = "sum"
    is_one_noisy_integer = True
    comparable = True
    has_linear_estimate = True
    meaning = "The total"
    clamped_number = "total"
    additive = True
    uniform = True
    adds_up = True
    boxes = True

    def noisy_statistics(self) -> tuple[NoisyStatistic, ...]:
        """Return the sum, on a grid that is finer than its noise."""
        return (
            value_sum(
                SUM_NAME, self.term, column_grid(self.clamp_bounds, centered=False), self.asked.relative_noise_size
            ),
        )

    def estimate(self, integers: Integers, noises: Noises, outside: float = OUTSIDE) -> Record:
        """Return noisy integer · step; the ends are rounded outwards."""
        value, width = integers[SUM_NAME] * noises[SUM_NAME].step_size, noises[SUM_NAME].half_width(1 - outside)
        lower, upper = math.nextafter(value - width, -math.inf), math.nextafter(value + width, math.inf)
        return {"value": value, "lower": lower, "upper": upper}

    def linear_estimate(self, integers: Integers, noises: Noises) -> LinearEstimate:
        """Return noisy integer · step."""
        step, (low, high) = noises[SUM_NAME].step_size, self.clamp_bounds
        top = integers[SUM_NAME] * step
        possible = (0.0 if low >= 0 else -math.inf, 0.0 if high <= 0 else math.inf)
        return LinearEstimate(top, (NoiseWeight(noises[SUM_NAME], step),), allowance=math.ulp(top), possible=possible)

    def expected_error(self, noises: Noises, people: int) -> tuple[float, float]:
        """Return the errors of the noise."""
        del people
        return noises[SUM_NAME].mean_absolute, noises[SUM_NAME].half_width()

    def worst_error(self, noises: Noises) -> float:
        """Return the largest error of the noise."""
        return noises[SUM_NAME].worst_error
