"""The sum of a column."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Unpack, final

from tightrope.release.questions.asked import Asking, Given, spelled_out
from tightrope.release.questions.fixed_point import grid
from tightrope.release.questions.node import Integers, Noises, Record
from tightrope.release.questions.of_column import OfColumn
from tightrope.release.questions.vector import Vector, value_sum

SUM = "sum"


@final
@dataclass(frozen=True, slots=True)
class Sum(OfColumn):
    """The sum of the clamped values of each group."""

    kind = "sum"
    meaning = "The total"
    additive = True
    uniform = True
    adds_up = True
    boxes = True

    def vectors(self) -> tuple[Vector, ...]:
        """One, on a grid that is finer than its noise."""
        return (value_sum(SUM, self.column, grid(self.between, centred=False), self.asked.size),)

    def record(self, integers: Integers, noises: Noises) -> Record:
        """Noisy integer · step; the ends are rounded outwards."""
        value, width = integers[SUM] * noises[SUM].step, noises[SUM].half_width()
        lower, upper = math.nextafter(value - width, -math.inf), math.nextafter(value + width, math.inf)
        return {"value": value, "lower": lower, "upper": upper}

    def errors(self, noises: Noises, people: int) -> tuple[float, float]:
        """Those of the noise."""
        del people
        return noises[SUM].mean_absolute, noises[SUM].half_width()

    def worst(self, noises: Noises) -> float:
        """That of the noise."""
        return noises[SUM].worst


@spelled_out
def sum(column: Given, *, between: tuple[float, float] | None = None, **asked: Unpack[Asking]) -> Sum:
    """The sum of a column, each value clamped to ``between``: it bounds what one row can change.

    ``column`` may be an expression: ``"minutes / 60"``; ``between`` may be left out where it has a range by itself.

    The other keywords are those of ``count``. Raises ``PlanError`` naming what is wrong.

    >>> str(sum("income", between=(0, 200_000)))
    'sum of income between 0 and 200000'
    """
    return Sum.of(column, between, asked)
