"""One quantile by two choices of the exponential mechanism: its cell, and how far around it the interval reaches."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache
from typing import ClassVar

import numpy as np

from tightrope.mechanisms.choices.quantile import PARTS, QuantileChoice, cell_distances, half_widths, width_distances
from tightrope.numerics.arrays import Floats
from tightrope.release.quantiles.grid import ALL_CELLS, Grid
from tightrope.release.questions.node import Integers, Noises, Record
from tightrope.release.questions.vector import Noise, Vector, cell_choice

VALUE, WIDTH = "choice of the value, in rows below it", "choice of the width, in rows below its ends"
CENTRES = 16
VALUE_SIZE, WIDTH_SIZE = 0.75, 1.5
"""Of their noise: two thirds of the budget for the value, which is what people read."""


@dataclass(frozen=True, slots=True)
class Chosen:
    """The round number of the cell that is chosen; the interval holds the quantile but 5 % of the time."""

    grid: Grid
    below: int
    size: float

    notes: ClassVar[tuple[str, ...]] = (
        f"one of {ALL_CELLS:,} equal parts of the range is chosen, and how far around it the interval reaches: each by "
        "the exponential mechanism, at the price of noise in the number of rows below; the value is the round number "
        "of its part",
        "it has a value whatever the rows are: that of an empty group says nothing, and its interval is nearly always "
        "the whole range",
    )

    def vectors(self) -> tuple[Vector, ...]:
        """The choice of a cell, then that of a width around it."""
        value, width = QuantileChoice(self.below), QuantileChoice(self.below, around=VALUE)
        sized = (VALUE, value, VALUE_SIZE), (WIDTH, width, WIDTH_SIZE)
        first, second = (cell_choice(name, choice, part * self.size) for name, choice, part in sized)
        return first, second

    def record(self, integers: Integers, noises: Noises) -> Record:
        """The cell, and the cells around it."""
        del noises
        cell, around = integers[VALUE], integers[WIDTH]
        lower, upper = self.grid.held(cell - around, cell + around)
        return {"value": self.grid.middle(cell), "lower": lower, "upper": upper}

    def errors(self, noises: Noises, people: int) -> tuple[float, float]:
        """For values that are spread evenly over the range; where they lie closer together, errors are smaller."""
        expected, half = _errors(noises[VALUE], noises[WIDTH], people)
        return min(expected, 1.0) * self.grid.width, min(half, 1.0) * self.grid.width

    def withheld(self, noises: Noises, people: int) -> float:
        """Never."""
        del noises, people
        return 0.0


@lru_cache(maxsize=256)
def _errors(value: Noise, width: Noise, people: int) -> tuple[float, float]:
    """E|error| and the mean half-width in parts of the range, for rows at its first, third, … of 2n parts.

    The half-width is the mean over ``CENTRES`` of the cells that are chosen, equally likely parts of their law.
    """
    choice = value.vector.choice
    if choice is None:
        raise TypeError(value.vector.name)
    edges = np.clip((np.arange(ALL_CELLS + 1) - 0.5) / ALL_CELLS, 0.0, 1.0)
    below = np.floor(people * np.where(np.arange(ALL_CELLS + 1) == ALL_CELLS, 1.0, edges) + 0.5)
    excess = PARTS * below - choice.below * people
    truth = ALL_CELLS * (math.ceil(choice.below * people / PARTS) - 0.5) / people
    law = value.law.law(cell_distances(excess))
    expected = float(law @ np.abs(np.arange(ALL_CELLS) - truth)) + 0.25
    centres = np.searchsorted(np.cumsum(law), (np.arange(CENTRES) + 0.5) / CENTRES)
    reached: Floats = np.minimum(np.array(half_widths(ALL_CELLS)) + 0.5, ALL_CELLS / 2)
    target = choice.target(width.law, ALL_CELLS)
    laws = (width.law.law(width_distances(excess, int(centre), target)) for centre in centres)
    half = math.fsum(float(one @ reached) for one in laws) / CENTRES
    return expected / ALL_CELLS, math.nextafter(half / ALL_CELLS, math.inf)
