"""The variance of a column and its square root: noisy sums of centred values and their squares over a noisy count."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Unpack, final

from tightrope.release.derived.factors import factor, reach, squares, total, usable_rows
from tightrope.release.derived.moments import USABLE, XX, Sample, X, main, variance_seen, variance_span
from tightrope.release.derived.record import EVEN, TYPICAL, expected, withheld_below
from tightrope.release.questions.asked import Asking, Given, spelled_out
from tightrope.release.questions.node import Integers, Noises, Record
from tightrope.release.questions.of_column import OfColumn
from tightrope.release.questions.vector import Vector


@dataclass(frozen=True, slots=True)
class Spread(OfColumn, ABC):
    """How far values lie from their mean: of the rows that are used, divided by their number, not by one less."""

    additive = False
    uniform = False
    notes = (
        "it is that of the rows that are used: squares are divided by their number, not by one less",
        "where the noisy count is below 1 it is withheld and the interval is all that can be",
        EVEN,
    )

    @staticmethod
    @abstractmethod
    def _of(variance: float) -> float:
        """What is answered, from the variance."""

    def vectors(self) -> tuple[Vector, ...]:
        """The number of values, their centred sum and that of their squares."""
        size, of = self.asked.size, factor("between", self.between)
        return (
            squares(XX, self.column, of, None, size),
            total(X, self.column, of, None, size),
            usable_rows(USABLE, self.column, None, size),
        )

    def record(self, integers: Integers, noises: Noises) -> Record:
        """S/N − (S/N)², within what can be; ``usable`` is the noisy number of values."""
        usable, most = integers[USABLE], reach(factor("between", self.between)) ** 2
        if usable < 1:
            return {"value": None, "lower": 0.0, "upper": self._of(most), "usable": usable}
        sample = Sample.of(integers, noises)
        found = variance_span(sample, X, sample.mean(X), main(1))
        seen = min(max(variance_seen(sample, X) / usable, 0.0), most)
        ends = self._of(min(found.low, seen)), self._of(max(found.high, seen))
        return {"value": self._of(seen), "lower": ends[0], "upper": ends[1], "usable": usable}

    def errors(self, noises: Noises, people: int) -> tuple[float, float]:
        """For values around the middle of their range (``record.TYPICAL``)."""
        squared = TYPICAL * noises[XX].vector.sensitivity * 2
        centre = noises[XX].vector.sensitivity
        return expected(self.record({XX: round(people * (squared - centre)), X: 0, USABLE: people}, noises))

    def withheld(self, noises: Noises, people: int) -> float:
        """P(the noisy count is below 1)."""
        return withheld_below(noises[USABLE], people)


@final
@dataclass(frozen=True, slots=True)
class Variance(Spread):
    """The variance of the clamped values of each group."""

    kind = "variance"
    meaning = "The variance"

    @staticmethod
    def _of(variance: float) -> float:
        return variance


@final
@dataclass(frozen=True, slots=True)
class StandardDeviation(Spread):
    """The standard deviation of the clamped values of each group."""

    kind = "standard_deviation"
    meaning = "The standard deviation"

    def __str__(self) -> str:
        return super(StandardDeviation, self).__str__().replace("_", " ", 1)

    @staticmethod
    def _of(variance: float) -> float:
        return math.sqrt(max(variance, 0.0))


@spelled_out
def variance(column: Given, *, between: tuple[float, float] | None = None, **asked: Unpack[Asking]) -> Variance:
    """The variance of a column, each value clamped to ``between``: of the rows that are used, divided by their number.

    Noisy sums of centred values and of their squares and a noisy count, charged jointly. The other keywords are those
    of ``count``. Raises ``PlanError`` naming what is wrong.

    >>> variance("income", between=(0, 200_000)).name
    'variance_income'
    """
    return Variance.of(column, between, asked)


@spelled_out
def standard_deviation(
    column: Given, *, between: tuple[float, float] | None = None, **asked: Unpack[Asking]
) -> StandardDeviation:
    """The square root of ``variance``, at the same cost.

    >>> str(standard_deviation("age", between=(0, 120), by="city"))
    'standard deviation of age between 0 and 120 by city'
    """
    return StandardDeviation.of(column, between, asked)
