"""The noise of two numbers of one group, independent or of one box: how often |X − mY| is beyond a width, at most.

``docs/proofs/intervals.md`` has the directions.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Protocol

import numpy as np

from tightrope.numerics.arrays import Floats
from tightrope.release.questions.widths.tails import Tails

INNER, INNER_PARTS, OUTER, OUTER_PARTS = 1e-2, 192, 1e-6, 64
"""The second noise is gathered outwards: so many parts up to where this much is left; what is further is lost."""


class TwoNoises(Protocol):
    """X and Y, both symmetric and unimodal on the whole numbers."""

    @property
    def swapped(self) -> TwoNoises:
        """Y and X."""

    def halves(self, outside: float) -> tuple[float, float]:
        """About the widths that |X| and |Y| exceed ``outside`` of the time: for grids and first guesses, no bound."""

    def outside(self, widths: Floats, ratios: Floats) -> Floats:
        """P(|X − mY| > w + ½) at most, for each width and its ratio m ≥ 0; shape [n] each."""


@dataclass(frozen=True, eq=False)  # not slotted: what all ratios share is kept
class Independent:
    """X from ``top``, Y from ``bottom``."""

    top: Tails
    bottom: Tails

    @property
    def swapped(self) -> Independent:
        return Independent(self.bottom, self.top)

    def halves(self, outside: float) -> tuple[float, float]:
        return half_width(self.top, outside), half_width(self.bottom, outside)

    @cached_property
    def _second(self) -> tuple[Floats, Floats]:
        return _gathered(self.bottom)

    def outside(self, widths: Floats, ratios: Floats) -> Floats:
        places, masses = self._second
        shifts = ratios[:, None] * places
        beyond = self.top.smooth(widths[:, None] - shifts) + self.top.smooth(widths[:, None] + shifts)
        found: Floats = beyond @ masses + (1 - masses.sum())
        return found


@dataclass(frozen=True, slots=True, eq=False)
class InOneBox:
    """Two numbers of one point: given the half-width R, independent, and no less peaked than uniform up to f (R + 1).

    ``chances`` of R = 0, 1, …; ``factors`` are the f of both.
    """

    chances: Floats
    factors: tuple[float, float]

    @property
    def swapped(self) -> InOneBox:
        return InOneBox(self.chances, self.factors[::-1])

    def halves(self, outside: float) -> tuple[float, float]:
        reach = np.arange(1, len(self.chances) + 1)
        low, high = 0.0, float(len(self.chances))
        while high - low > 1e-3 * high:
            middle = (low + high) / 2
            beyond = float(np.maximum(1 - middle / reach, 0.0) @ self.chances)
            low, high = (middle, high) if beyond > outside else (low, middle)
        return high * self.factors[0], high * self.factors[1]

    def outside(self, widths: Floats, ratios: Floats) -> Floats:
        """Of two uniform numbers: a corner of their rectangle where w is near its reach, else a strip."""
        reach = np.arange(1, len(self.chances) + 1)
        first, second = np.full_like(ratios, self.factors[0]), np.abs(ratios) * self.factors[1]
        more, less = np.maximum(first, second)[:, None], np.maximum(np.minimum(first, second), 1e-300)[:, None]
        scaled = (widths - ratios / 2)[:, None] / reach
        corner = np.maximum(more + less - scaled, 0.0) ** 2 / (4 * more * less)
        found: Floats = np.where(scaled < more - less, 1 - scaled / more, corner) @ self.chances
        return found


def half_width(tails: Tails, outside: float) -> float:
    """A width that |X| exceeds at most ``outside`` of the time, and hardly a larger one than needed."""
    return _half(tails, outside / 2)


def sum_widths(tails: Tails, most: int, outside: float) -> Floats:
    """Widths w[m], m = 0 … ``most``: P(X₁ + … + Xₘ > w[m]) ≤ ``outside`` for independent noises; shape [most + 1].

    Chernoff: E e^{θX} = E cosh(θX) ≤ Σ p cosh(θ x), each part of |X| moved to its outer end; what lies further than
    all parts is added as a probability, m times. ∞ where that alone is more than ``outside``.
    """
    places, masses = _gathered(tails)
    lost = max(1 - float(masses.sum()), 0.0)
    widths = np.zeros(most + 1)
    scale = math.sqrt(float(masses @ places**2)) or 1.0
    rates = np.geomspace(1e-3, 10, 200) / scale
    with np.errstate(over="ignore"):
        growth = np.log(np.cosh(rates[:, None] * places) @ masses)
    for many in range(1, most + 1):
        left = outside - many * lost
        widths[many] = np.min((many * growth - math.log(left)) / rates) if left > 0 else math.inf
    return widths


def _half(tails: Tails, outside: float) -> float:
    """A place that X is beyond at most ``outside`` of the time: about the first, and one more."""
    low, high = 0.0, tails.factor * len(tails.table)
    while high - low > max(1.0, 1e-3 * high):
        middle = math.floor((low + high) / 2)
        low, high = (middle, high) if float(tails.beyond(np.array(middle))) > outside else (low, middle)
    return high + 1


def _gathered(tails: Tails) -> tuple[Floats, Floats]:
    """Places of |Y| and their probabilities, each part moved to its outer end; what is further is left out."""
    inner, outer = _half(tails, INNER), _half(tails, OUTER)
    ends = np.concatenate(
        [
            [0.0],
            np.ceil(np.linspace(0, inner, INNER_PARTS + 1)[1:]),
            np.ceil(np.linspace(inner, outer, OUTER_PARTS + 1)[1:]),
        ]
    )
    ends = np.unique(ends)
    beyond = tails.beyond(ends)
    return ends, np.concatenate([[1 - 2 * beyond[0]], 2 * (beyond[:-1] - beyond[1:])])
