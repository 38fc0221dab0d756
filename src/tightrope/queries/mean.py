"""The mean of a column: a noisy centred sum over a noisy count, charged jointly."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache
from typing import final

from tightrope.queries.column_query import OfColumn
from tightrope.queries.intervals import Independent, Ratios
from tightrope.queries.query import Integers, Noises, Record
from tightrope.queries.statistics import Noise, Vector, grid, rounding, value_count, value_sum
from tightrope.tables.request import FixedPoint

SUM, USABLE = "sum", "usable"
COUNT_NOISE = 2.0
"""The count in a mean gets twice the relative noise of the sum: values seldom lie at the ends of their range."""


@final
@dataclass(frozen=True, slots=True)
class mean(OfColumn):
    """The mean of a column, each value clamped to ``between``; a noisy centred sum over a noisy count, charged jointly.

    ``column`` may be an expression: ``"minutes / 60"``; ``between`` may be left out where it has a range by itself.
    The other keywords are those of ``count``. Raises ``PlanError`` naming what is wrong.

    >>> mean("age", between=(0, 120), by=["city", "sex"]).name
    'mean_age_by_city_sex'
    """

    kind = "mean"
    meaning = "The average"
    additive = False
    uniform = False
    notes = (
        "where the noisy count is below 1 the mean is withheld and the interval is the whole range",
        "the 95 % of a mean are over all that may happen, withholding it included: a small group has no promise of its "
        "own for the case that its mean is shown",
    )

    @property
    def grid(self) -> FixedPoint:
        """Integers counted from the midpoint: half the sensitivity."""
        return grid(self.clamp_bounds, centred=True)

    def vectors(self) -> tuple[Vector, ...]:
        """The centred sum, and the number of usable values."""
        size = self.asked.size
        return value_sum(SUM, self.term, self.grid, size), value_count(USABLE, self.term, size * COUNT_NOISE)

    def record(self, integers: Integers, noises: Noises) -> Record:
        """Midpoint + noisy centred sum / noisy count, inside the range; withheld where the noisy count is below 1.

        ``usable`` is that noisy count: it was paid for.
        """
        low, high = self.clamp_bounds
        middle, total, usable = self.grid.centre * noises[SUM].step, integers[SUM] * noises[SUM].step, integers[USABLE]
        if usable < 1:
            return {"value": None, "lower": low, "upper": high, "usable": usable}
        below, above = centred_interval(integers[SUM], usable, noises)
        value, off = min(max(middle + total / usable, low), high), rounding(self.clamp_bounds)
        lower, upper = max(low, min(middle + below - off, value)), min(high, max(middle + above + off, value))
        return {"value": value, "lower": lower, "upper": upper, "usable": usable}

    def errors(self, noises: Noises, people: int) -> tuple[float, float]:
        """For values that lie halfway from the middle to an end."""
        low, high = self.clamp_bounds
        reach = (high - low) / 2
        expected = (noises[SUM].mean_absolute + noises[USABLE].mean_absolute * reach / 2) / people
        lower, upper = centred_interval(people * reach / 2 / noises[SUM].step, people, noises)
        return min(expected, reach), min(reach, (upper - lower) / 2)

    def withheld(self, noises: Noises, people: int) -> float:
        """P(the noisy count is below 1)."""
        return noises[USABLE].at_most(-people)


def centred_interval(total: float, usable: int, noises: Noises) -> tuple[float, float]:
    """95 % bounds on the centred mean s/n in natural units, from the integers s + X and n + Y (``intervals.Ratios``).

    No centred mean is farther than the row's sensitivity; rounding to the grid moves a value by at most half a step.
    """
    step = noises[SUM].step
    lower, upper = _ratios(noises[SUM], noises[USABLE]).interval(total, usable)
    return (lower - 1) * step, (upper + 1) * step


@lru_cache(maxsize=64)
def _ratios(total: Noise, usable: Noise) -> Ratios:
    """Computed once for all groups."""
    return Ratios.of(Independent(total.tails, usable.tails), float(total.vector.sensitivity))


# The sum of a column.

TOTAL = "sum"


@final
@dataclass(frozen=True, slots=True)
class sum(OfColumn):
    """The sum of a column, each value clamped to ``between``: it bounds what one row can change.

    ``column`` may be an expression: ``"minutes / 60"``; ``between`` may be left out where it has a range by itself.

    The other keywords are those of ``count``. Raises ``PlanError`` naming what is wrong.

    >>> str(sum("income", between=(0, 200_000)))
    'sum of income between 0 and 200000'
    """

    kind = "sum"
    meaning = "The total"
    additive = True
    uniform = True
    adds_up = True
    boxes = True

    def vectors(self) -> tuple[Vector, ...]:
        """One, on a grid that is finer than its noise."""
        return (value_sum(TOTAL, self.term, grid(self.clamp_bounds, centred=False), self.asked.size),)

    def record(self, integers: Integers, noises: Noises) -> Record:
        """Noisy integer · step; the ends are rounded outwards."""
        value, width = integers[TOTAL] * noises[TOTAL].step, noises[TOTAL].half_width()
        lower, upper = math.nextafter(value - width, -math.inf), math.nextafter(value + width, math.inf)
        return {"value": value, "lower": lower, "upper": upper}

    def errors(self, noises: Noises, people: int) -> tuple[float, float]:
        """Those of the noise."""
        del people
        return noises[TOTAL].mean_absolute, noises[TOTAL].half_width()

    def worst(self, noises: Noises) -> float:
        """That of the noise."""
        return noises[TOTAL].worst
