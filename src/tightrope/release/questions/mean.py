"""The mean of a column: a noisy centred sum over a noisy count, charged jointly."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Unpack, final

from tightrope.engines.request import FixedPoint
from tightrope.release.questions.asked import Asking, spelled_out
from tightrope.release.questions.fixed_point import grid
from tightrope.release.questions.node import Integers, Noises, Record
from tightrope.release.questions.of_column import OfColumn
from tightrope.release.questions.vector import Vector, value_count, value_sum

SUM, USABLE = "sum", "usable"
COUNT_NOISE = 2.0
"""The count in a mean gets twice the relative noise of the sum: values seldom lie at the ends of their range."""
SUM_CONFIDENCE, COUNT_CONFIDENCE = 0.96, 0.99


@final
@dataclass(frozen=True, slots=True)
class Mean(OfColumn):
    """The mean of the clamped values of each group."""

    kind = "mean"
    meaning = "The average"
    additive = False
    uniform = False
    notes = ("where the noisy count is below 1 the mean is withheld and the interval is the whole range",)

    @property
    def grid(self) -> FixedPoint:
        """Integers counted from the midpoint: half the sensitivity."""
        return grid(self.between, centred=True)

    def vectors(self) -> tuple[Vector, ...]:
        """The centred sum, and the number of usable values."""
        size = self.asked.size
        return value_sum(SUM, self.column, self.grid, size), value_count(USABLE, self.column, size * COUNT_NOISE)

    def record(self, integers: Integers, noises: Noises) -> Record:
        """Midpoint + noisy centred sum / noisy count, inside the range; withheld where the noisy count is below 1."""
        low, high = self.between
        middle, total, usable = self.grid.centre * noises[SUM].step, integers[SUM] * noises[SUM].step, integers[USABLE]
        if usable < 1:
            return {"value": None, "lower": low, "upper": high}
        below, above = centred_interval(total, float(usable), noises, max(high - middle, middle - low))
        value = min(max(middle + total / usable, low), high)
        return {"value": value, "lower": max(low, middle + below), "upper": min(high, middle + above)}

    def errors(self, noises: Noises, people: int) -> tuple[float, float]:
        """For values that lie halfway from the middle to an end."""
        low, high = self.between
        reach = (high - low) / 2
        expected = (noises[SUM].mean_absolute + noises[USABLE].mean_absolute * reach / 2) / people
        lower, upper = centred_interval(people * reach / 2, float(people), noises, reach)
        return min(expected, reach), (upper - lower) / 2

    def withheld(self, noises: Noises, people: int) -> float:
        """P(the noisy count is below 1)."""
        return noises[USABLE].at_most(-people)


@spelled_out
def mean(column: str, *, between: tuple[float, float], **asked: Unpack[Asking]) -> Mean:
    """The mean of a column, each value clamped to ``between``; a noisy centred sum over a noisy count, charged jointly.

    The other keywords are those of ``count``. Raises ``PlanError`` naming what is wrong.

    >>> mean("age", between=(0, 120), by=["city", "sex"]).name
    'mean_age_by_city_sex'
    """
    return Mean.of(column, between, asked)


def centred_interval(total: float, usable: float, noises: Noises, reach: float) -> tuple[float, float]:
    """Bounds on the centred mean s/n: |s − total| and |n − usable| are both within their widths 95 % of the time.

    The sum may fail 4 % of the time and the count 1 %: the count moves a mean less. n ≥ 1, |s/n| ≤ reach; rounding to
    the grid moves a value by at most half a step.
    """
    wide, off = noises[SUM].half_width(SUM_CONFIDENCE), noises[USABLE].half_width(COUNT_CONFIDENCE)
    fewest, most = max(1.0, usable - off), max(1.0, usable + off)
    low, high = total - wide, total + wide
    lower = low / (fewest if low < 0 else most)
    upper = high / (most if high < 0 else fewest)
    rounding = noises[SUM].step
    return max(-reach, lower - rounding), min(reach, upper + rounding)
