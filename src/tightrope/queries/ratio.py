"""The ratio of two sums, such as delay a mile: two noisy sums over the same rows."""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import Self, final

from tightrope.errors import PlanError
from tightrope.queries.intervals import OUTSIDE, Ratios, TwoNoises
from tightrope.queries.moment_estimates import PAIRS, expected, finite
from tightrope.queries.moments import OfPair, Range
from tightrope.queries.options import Given
from tightrope.queries.query import Integers, Noises, Record
from tightrope.queries.statistics import Noise, Vector, grid, together, value_sum
from tightrope.tables.expressions.expression import Term

# 95 % intervals for ratios of two noisy numbers, of any size: beyond one, the reciprocal is what is inverted.

Ends = tuple[float, float]


@dataclass(frozen=True, slots=True, eq=False)
class Odds:
    """Ratios r = s/t of numbers that are known as s + X and t + Y, both kept where they are likely 95 % of the time.

    Up to ``unit`` s − r t is looked at, beyond it t − s/r: the noise of the one is X − r Y, that of the other Y − X/r.
    """

    unit: float
    flat: Ratios
    steep: Ratios

    @classmethod
    def of(cls, noises: TwoNoises) -> Self:
        """X and Y; the unit is where both weigh the same."""
        top, bottom = noises.halves(OUTSIDE)
        unit = top / bottom
        return cls(unit, Ratios.of(noises, unit), Ratios.of(noises.swapped, 1 / unit))

    def interval(self, top: float, bottom: float, least: float, most: float) -> Ends:
        """Ends of all likely ratios from ``least`` to ``most`` (either may be infinite), given s + X and t + Y.

        Where there are none, what is seen is unlikely whatever the ratio: then all of them.
        """
        ends = self._beyond(-top, bottom, max(-most, self.unit), -least)
        parts = [
            self._below(top, bottom, least, most),
            self._beyond(top, bottom, max(least, self.unit), most),
            None if ends is None else (-ends[1], -ends[0]),
        ]
        found = [part for part in parts if part is not None]
        if not found:
            return least, most
        return min(low for low, _ in found), max(high for _, high in found)

    def _below(self, top: float, bottom: float, least: float, most: float) -> Ends | None:
        low, high = max(least, -self.unit), min(most, self.unit)
        return self.flat.likely(top, bottom, low, high) if low <= high else None

    def _beyond(self, top: float, bottom: float, least: float, most: float) -> Ends | None:
        """Ratios from ``least`` ≥ unit on, through their reciprocals; a reciprocal of zero is a ratio without limit."""
        if not least <= most:
            return None
        found = self.steep.likely(bottom, top, 1 / most, min(1 / least, self.steep.largest))
        return None if found is None else (1 / found[1], 1 / found[0] if found[0] > 0 else math.inf)


TOP, BOTTOM = "numerator", "denominator"
OUTWARDS = 1e-14
"""Relative margin for a few operations on doubles."""


@final
@dataclass(frozen=True, slots=True)
class ratio(OfPair):
    """The sum of one column over the sum of another, in rows that have both: not the mean of the ratios.

    ``between`` is the range of the numerator, ``of`` that of the denominator, which starts at 0 or above. The interval
    inverts the joint law of both noises. The other keywords are those of ``count``. Raises ``PlanError`` naming what
    is wrong.

    >>> str(ratio("delay", "distance", between=(-60, 180), of=(0, 3000)))
    'ratio of delay between -60 and 180 to distance between 0 and 3000'
    """

    numerator: Given = field(compare=False)
    """The column that is summed above, or an expression."""
    denominator: Given = field(compare=False)
    """The column that is summed below, or an expression."""

    kind = "ratio"
    meaning = "The ratio of two sums"
    boxes = True
    given = (TOP, BOTTOM)
    joined = "to"
    entries = (*given, "between", "of")
    notes = (
        PAIRS,
        "where the noisy denominator is less than one row may add to it, the ratio is withheld and the interval is all "
        "that can be; an end that is missing has no limit",
        "values are rounded to a grid of eight digits: the interval is that of the rounded values",
        "errors are stated for values in the middle of their ranges",
    )

    def __post_init__(self) -> None:
        self.check_pair(self.numerator, self.denominator)
        if not (self.of[0] >= 0 and self.of[1] > 0):
            remedy = "a sum that may be zero or change its sign divides nothing; move the zero of the column"
            raise PlanError("of", self.of, "a range of numbers from 0 on", remedy)

    def vectors(self) -> tuple[Vector, ...]:
        """Both sums."""
        tops = value_sum(TOP, self.first, grid(self.between, centred=False), self.asked.size)
        bottoms = value_sum(BOTTOM, self.second, grid(self.of, centred=False), self.asked.size)
        return _beside(tops, self.second), _beside(bottoms, self.first)

    @property
    def possible(self) -> Range:
        """The ratios that values within their ranges can have."""
        (low, high), (least, most) = self.between, self.of
        lower = low / most if low >= 0 else (low / least if least > 0 else -math.inf)
        upper = high / most if high <= 0 else (high / least if least > 0 else math.inf)
        return lower, upper

    def record(self, integers: Integers, noises: Noises) -> Record:
        """Sum over sum, within what can be."""
        lower, upper = self.possible
        step = noises[TOP].step, noises[BOTTOM].step
        bottom = integers[BOTTOM] * step[1]
        if bottom < self.of[1]:
            return {"value": None, "lower": finite(lower), "upper": finite(upper)}
        value = min(max(integers[TOP] * step[0] / bottom, lower), upper)
        low, high = self._likely(integers, noises, step[0] / step[1])
        return {"value": value, "lower": finite(min(low, value)), "upper": finite(max(high, value))}

    def _likely(self, integers: Integers, noises: Noises, scale: float) -> Range:
        """The ends in natural units: ``scale`` is that of a ratio of integers."""
        lower, upper = self.possible
        odds = _odds(noises[TOP], noises[BOTTOM])
        low, high = odds.interval(integers[TOP], integers[BOTTOM], lower / scale, upper / scale)
        return max(lower, low * scale * (1 - math.copysign(OUTWARDS, low))), min(
            upper, high * scale * (1 + math.copysign(OUTWARDS, high))
        )

    def errors(self, noises: Noises, people: int) -> tuple[float, float]:
        """For values in the middle of their ranges."""
        tops, bottoms = (people * math.fsum(ends) / 2 for ends in (self.between, self.of))
        exact = {TOP: round(tops / noises[TOP].step), BOTTOM: round(bottoms / noises[BOTTOM].step)}
        return expected(self.record(exact, noises))

    def withheld(self, noises: Noises, people: int) -> float:
        """P(the noisy denominator is less than one row may add), for values in the middle of their range."""
        middle = people * math.fsum(self.of) / 2
        return noises[BOTTOM].at_most(math.ceil((self.of[1] - middle) / noises[BOTTOM].step))


def _beside(vector: Vector, column: Term) -> Vector:
    return replace(vector, measure=replace(vector.measure, beside=column))


@lru_cache(maxsize=64)
def _odds(top: Noise, bottom: Noise) -> Odds:
    """Computed once for all groups."""
    return Odds.of(together(top, bottom))
