"""The hybrid mechanism for a mean (Wang et al. 2019): a coin that everybody sees chooses one bit or the window."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tightrope.local.mechanisms.duchi import OneBit, duchi
from tightrope.local.mechanisms.means import MeanOracle
from tightrope.local.mechanisms.piecewise import Window, piecewise
from tightrope.local.parts.losses import Change, joined
from tightrope.local.parts.odds import WORD, checked_epsilon
from tightrope.local.parts.values import categories, reals
from tightrope.numerics.arrays import Floats
from tightrope.randomness.source import Source
from tightrope.randomness.stream import Stream

TURN = 0.61
"""The ε up to which one bit alone is best (the paper's ε*, rounded; it concerns variance only)."""


@dataclass(frozen=True, slots=True)
class Mixture(MeanOracle):
    """With chance weight / 2⁶⁴ a cell of ``window``, else a bit of ``bit``, numbered after the cells."""

    epsilon: float
    bit: OneBit
    window: Window
    weight: int

    @property
    def lower(self) -> float:  # type: ignore[override]
        """The lower end of both."""
        return self.bit.lower

    @property
    def upper(self) -> float:  # type: ignore[override]
        """The upper end of both."""
        return self.bit.upper

    @property
    def share(self) -> Fraction:
        """P(the report is a cell), whatever the value is."""
        return Fraction(self.weight, WORD)

    @property
    def changed(self) -> Change:
        """Both kinds change most between the same two values."""
        return joined((self.share, self.window.changed), (1 - self.share, self.bit.changed))

    @property
    def letters(self) -> int:
        return self.window.letters + 2

    def perturb(self, values: ArrayLike, randomness: Source | None = None) -> NDArray[Any]:
        """Cells, or two more for the bits, shape [n]."""
        numbers, randomness = reals("values", values, self.lower, self.upper), randomness or Stream()
        is_cell = randomness.words(len(numbers)) < np.uint64(self.weight)
        out = np.empty(len(numbers), dtype=np.uint32)
        out[is_cell] = self.window.perturb(numbers[is_cell], randomness)
        out[~is_cell] = self.bit.perturb(numbers[~is_cell], randomness) + np.uint32(self.window.letters)
        return out

    def decode(self, reports: ArrayLike) -> Floats:
        """Each kind of report as it is decoded."""
        heard, first = categories("reports", reports, self.letters), self.window.letters
        out = np.empty(len(heard))
        is_cell = heard < first
        out[is_cell] = self.window.decode(heard[is_cell])
        out[~is_cell] = self.bit.decode((heard[~is_cell] - first).astype(np.uint8))
        return out

    def _variance_at(self, value: float) -> float:
        """Both have the same mean: variances are mixed."""
        share = float(self.share)
        return share * self.window.variance_at(value) + (1 - share) * self.bit.variance_at(value)


def hybrid(epsilon: float, *, between: tuple[float, float] = (-1.0, 1.0)) -> Mixture:
    """The mean of numbers in ``between``, ε-LDP: cells with chance 1 − e^{−ε/2} above ε = 0.61, else one bit.

    Its worst variance is at most that of ``duchi`` and ``piecewise`` (Wang et al. 2019).
    Raises ``InputError`` unless ε > 0 is finite and lower < upper.

    >>> mechanism = hybrid(2.0)
    >>> mechanism.worst_variance < min(piecewise(2.0).worst_variance, duchi(2.0).worst_variance)
    True
    """
    epsilon = checked_epsilon(epsilon)
    share = -math.expm1(-epsilon / 2) if epsilon > TURN else 0.0
    weight = min(int(share * WORD), WORD - 1)
    return Mixture(epsilon, duchi(epsilon, between=between), piecewise(epsilon, between=between), weight)
