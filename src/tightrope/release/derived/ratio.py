"""The ratio of two sums, such as delay a mile: two noisy sums over the same rows."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Unpack, final

from tightrope.engines.expressions.terms import Term
from tightrope.errors import PlanError
from tightrope.release.derived.odds import Odds
from tightrope.release.derived.pairs import OfPair, Range
from tightrope.release.derived.record import PAIRS, expected, finite
from tightrope.release.questions.asked import Asking, spelled_out
from tightrope.release.questions.fixed_point import grid
from tightrope.release.questions.node import Integers, Noises, Record
from tightrope.release.questions.vector import Noise, Vector, together, value_sum

TOP, BOTTOM = "numerator", "denominator"
OUTWARDS = 1e-14
"""Relative margin for a few operations on doubles."""


@final
@dataclass(frozen=True, slots=True)
class Ratio(OfPair):
    """The sum of ``column`` over the sum of ``other``, in rows that have both."""

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
        if not (self.of[0] >= 0 and self.of[1] > 0):
            remedy = "a sum that may be zero or change its sign divides nothing; move the zero of the column"
            raise PlanError("of", self.of, "a range of numbers from 0 on", remedy)

    def vectors(self) -> tuple[Vector, ...]:
        """Both sums."""
        tops = value_sum(TOP, self.column, grid(self.between, centred=False), self.asked.size)
        bottoms = value_sum(BOTTOM, self.other, grid(self.of, centred=False), self.asked.size)
        return _beside(tops, self.other), _beside(bottoms, self.column)

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


@spelled_out
def ratio(
    numerator: str, denominator: str, *, between: tuple[float, float], of: tuple[float, float], **asked: Unpack[Asking]
) -> Ratio:
    """The sum of one column over the sum of another, in rows that have both: not the mean of the ratios.

    ``between`` is the range of the numerator, ``of`` that of the denominator, which starts at 0 or above. The interval
    inverts the joint law of both noises. The other keywords are those of ``count``. Raises ``PlanError`` naming what
    is wrong.

    >>> str(ratio("delay", "distance", between=(-60, 180), of=(0, 3000)))
    'ratio of delay between -60 and 180 to distance between 0 and 3000'
    """
    return Ratio.asked_of((numerator, denominator), (between, of), asked)
