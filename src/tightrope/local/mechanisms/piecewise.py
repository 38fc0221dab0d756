"""The piecewise mechanism for a mean (Wang et al. 2019): a number near the own one, more often than one far from it."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tightrope.local.mechanisms.means import MeanOracle
from tightrope.local.parts.losses import Change
from tightrope.local.parts.odds import WORD, checked_epsilon, favoured
from tightrope.local.parts.values import between as checked_between
from tightrope.local.parts.values import categories
from tightrope.mechanisms.tables.integer_weights import LARGEST_STEP
from tightrope.numerics.arrays import Floats
from tightrope.randomness.integers import below
from tightrope.randomness.source import Source
from tightrope.randomness.stream import Stream

WINDOW_STEPS = 1 << 16
"""Places of a window, less one: values are rounded at random to 1 / 2¹⁶ of their range."""


@dataclass(frozen=True, slots=True)
class Window(MeanOracle):
    """A window of ``length`` cells begins at one of 0..2¹⁶; with chance inside / 2⁶⁴ the report is a cell of it.

    There are 2¹⁶ + length cells; inside and outside the window they are uniform. The paper's interval is the case of
    infinitely many cells.
    """

    epsilon: float
    lower: float
    upper: float
    length: int
    inside: int

    @property
    def chance(self) -> Fraction:
        """P(the report is in the window)."""
        return Fraction(self.inside, WORD)

    @property
    def changed(self) -> Change:
        """Windows at the two ends do not meet, and windows that meet change less."""
        return self.chance, (1 - self.chance) * self.length / WINDOW_STEPS

    @property
    def letters(self) -> int:
        return WINDOW_STEPS + self.length

    def perturb(self, values: ArrayLike, randomness: Source | None = None) -> NDArray[Any]:
        """Cells, shape [n]."""
        randomness = randomness or Stream()
        start = self.places(values, WINDOW_STEPS, randomness)
        people = len(start)
        near, far = below(self.length, people, randomness), below(WINDOW_STEPS, people, randomness)
        is_inside = randomness.words(people) < np.uint64(self.inside)
        outside = far + self.length * (far >= start)
        return np.where(is_inside, start + near, outside).astype(np.uint32)

    def decode(self, reports: ArrayLike) -> Floats:
        """The place whose reports have this cell on average, as a number."""
        cells = categories("reports", reports, self.letters)
        base, slope = (float(number) for number in self._line())
        return self.numbers(np.asarray((cells - base) / slope, dtype=np.float64), WINDOW_STEPS)

    def _line(self) -> tuple[Fraction, Fraction]:
        """E[cell] = base + slope · start: the window's mean, and that of the other cells by subtraction."""
        rest, length, cells = 1 - self.chance, self.length, self.letters
        triangle = Fraction(length * (length - 1), 2)
        all_cells = Fraction(cells * (cells - 1), 2)
        base = self.chance * triangle / length + rest * (all_cells - triangle) / WINDOW_STEPS
        return base, self.chance - rest * length / WINDOW_STEPS

    def _variance_at(self, value: float) -> float:
        """Of the decoded report, the rounding to places included."""
        exact = Fraction(value - self.lower) / Fraction(self.upper - self.lower) * WINDOW_STEPS
        first = min(int(exact), WINDOW_STEPS - 1)
        share = exact - first
        square = (1 - share) * self._square(first) + share * self._square(first + 1)
        base, slope = self._line()
        spread = (square - (base + slope * exact) ** 2) / slope**2
        return float(spread) * ((self.upper - self.lower) / WINDOW_STEPS) ** 2

    def _square(self, start: int) -> Fraction:
        """E[cell²] for a window that begins at ``start``."""
        window = _squares(start + self.length) - _squares(start)
        rest = _squares(self.letters) - window
        return self.chance * window / self.length + (1 - self.chance) * rest / WINDOW_STEPS


def _squares(count: int) -> Fraction:
    """0² + 1² + … + (count − 1)²."""
    return Fraction((count - 1) * count * (2 * count - 1), 6)


def piecewise(epsilon: float, *, between: tuple[float, float] = (-1.0, 1.0)) -> Window:
    """The mean of numbers in ``between``, ε-LDP, by the piecewise mechanism in whole numbers.

    The window has e^{−ε/2} times as many cells as the rest, which makes the worst variance least. Better than one bit
    above ε ≈ 1.3. Raises ``InputError`` unless ε > 0 is finite and lower < upper.

    >>> mechanism = piecewise(2.0)
    >>> round(mechanism.worst_variance, 4), round(mechanism.variance_at(0.0), 4)
    (1.2276, 0.6456)
    """
    epsilon, ends = checked_epsilon(epsilon), checked_between(between)
    length = max(1, round(WINDOW_STEPS * math.exp(-min(epsilon, LARGEST_STEP) / 2)))
    return Window(epsilon, *ends, length, favoured(epsilon, Fraction(WINDOW_STEPS, length)))
