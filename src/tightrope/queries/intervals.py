"""95 % intervals by inverting laws of noise: counts that are seen only beyond a threshold, ratios of two noisy numbers.

``docs/proofs/intervals.md`` has the directions: every interval holds the truth at least 95 % of the time.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Protocol, Self

import numpy as np

from tightrope.mechanisms.discrete.box_table import AnyTable, BoxTable
from tightrope.mechanisms.discrete.scaled_noise import Widened
from tightrope.numerics.arrays import Floats
from tightrope.randomness.alias_sampler import TOTAL

# How likely noise lies beyond any place: the exact tail probabilities in floats, for many places at once.

NEGLIGIBLE_TAIL = 1e-22
"""An endless table is listed until less than this is left; further on this much counts as left."""


@dataclass(frozen=True, slots=True, eq=False)
class Tails:
    """P(Y > y) for y = 0, 1, … of a table, stretched ``factor`` times. Sums of positive terms: relative error 1e−11."""

    factor: float
    table: Floats

    @classmethod
    def of(cls, noise: Widened) -> Self:
        """Those of the integers that run."""
        weights = _weights(noise.table)
        left = 0.0 if noise.table.tail is None else weights[-1]
        return cls(float(noise.factor), np.append(np.cumsum(weights[::-1])[::-1], left))

    def beyond(self, place: Floats) -> Floats:
        """P(X > x) at whole numbers of either sign.

        The rest of the cell of the table that x lies in, and all later cells (``Widened.survival``).
        """
        x = np.where(place < 0, -place - 1, place)
        m = self.factor
        y = np.floor(x / m)
        left = m - 1 - (x - y * m)
        low, high = left * (left + 1) / 2, (m * (m - 1) - (m - 1 - left) * (m - left)) / 2
        before, here, after = self._at(y - 1), self._at(y), self._at(y + 1)
        cell = (before - here) * low + (here - after) * high
        tail = (cell + (m * m - m * (m - 1) / 2) * here + m * (m - 1) / 2 * after) / (m * m)
        return np.where(place < 0, 1 - tail, tail)

    def smooth(self, place: Floats) -> Floats:
        """P(X + V > t) at any t, V uniform on (−½, ½): continuous, symmetric and unimodal as X is."""
        x = np.floor(place + 0.5)
        part = place + 0.5 - x
        return (1 - part) * self.beyond(x - 1) + part * self.beyond(x)

    def _at(self, y: Floats) -> Floats:
        """P(Y > y) for whole y ≥ −1."""
        found = self.table[np.minimum(np.maximum(y, 0), len(self.table) - 1).astype(np.int64)]
        return np.where(y < 0, 1 - self.table[0], found)


def _weights(table: AnyTable) -> Floats:
    """P(Y = 1), P(Y = 2), …, and what is left."""
    if isinstance(table, BoxTable):
        return table.listed()
    half = np.array([w / TOTAL for w in table.half])
    if table.tail is None:
        return half
    block = np.array([w / TOTAL for w in table.tail.block])
    left, parts = table.tail.escape_in / TOTAL, [half]
    while left > NEGLIGIBLE_TAIL:
        parts.append(left * block)
        left *= table.tail.escape / TOTAL
    return np.concatenate([*parts, [left]])


# The noise of two numbers of one group, independent or of one box: how often |X − mY| is beyond a width, at most.
#
# ``docs/proofs/intervals.md`` has the directions.

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


OUTSIDE = 0.05
ROUNDING = 1e-10
"""Relative margin for sums of tail probabilities in floats."""
RATIOS, HALVINGS, STRETCHED, SHRUNK = 160, 13, 1.25, 14
"""Ratios at which a width is kept, halvings that find it, by how much the first guess is raised until it does, and how
often it is divided by three while it does."""


def shown_interval(tails: Tails, value: int, above: int, outside: float = OUTSIDE) -> tuple[int, int]:
    """Ends of all n ≥ 1 for which ``value`` = n + Y is among the likeliest of what is shown, n + Y > ``above``.

    The likeliest are all but ``outside`` of them.

    ``above`` is the largest |Y|, Y symmetric and unimodal: likelier is nearer to n.
    """
    counts = np.arange(max(1, value - above), value + above + 1, dtype=np.float64)
    off, cut = np.abs(value - counts), above - counts
    shown = tails.beyond(cut)
    nearer = tails.beyond(np.maximum(cut, -off)) - tails.beyond(off - 1)
    held = counts[(off == 0) | (nearer < (1 - outside) * (1 + ROUNDING) * shown)]
    return int(held[0]), int(held[-1])


@dataclass(frozen=True, slots=True, eq=False)
class Ratios:
    """Ratios m = s/n of numbers that are known as s + X and n + Y: |s + X − m (n + Y)| ≤ widths[i] 95 % of the time.

    ``widths[i]`` serves all |m| between ``largest`` i/k and ``largest`` (i+1)/k. X and Y are symmetric and unimodal, so
    the width does not fall with |m|.
    """

    largest: float
    widths: Floats

    @classmethod
    def of(cls, noises: TwoNoises, largest: float) -> Self:
        """The widths of X − mY."""
        ratios = largest * np.arange(1, RATIOS + 1) / RATIOS
        first, second = noises.halves(OUTSIDE * 0.9)
        high = first + ratios * second
        while not np.all(noises.outside(high, ratios) <= OUTSIDE * (1 - ROUNDING)):
            high = high * STRETCHED
        for _ in range(SHRUNK):
            enough = noises.outside(high / 3, ratios) <= OUTSIDE * (1 - ROUNDING)
            if not np.any(enough):
                break
            high = np.where(enough, high / 3, high)
        low = high / 3
        for _ in range(HALVINGS):
            middle = (low + high) / 2
            enough = noises.outside(middle, ratios) <= OUTSIDE * (1 - ROUNDING)
            low, high = np.where(enough, low, middle), np.where(enough, middle, high)
        return cls(largest, high * (1 + ROUNDING) + 0.5)

    def interval(self, top: float, bottom: float) -> tuple[float, float]:
        """Ends of all ratios up to ``largest`` that s + X = ``top`` and n + Y = ``bottom`` leave likely.

        Where there are none, what is seen is unlikely whatever the ratio: then the end that is nearest, and as far
        inwards as the noise reaches.
        """
        found = self.likely(top, bottom, -self.largest, self.largest)
        if found is not None:
            return found
        reach = float(self.widths[-1] / max(abs(bottom), 1.0))
        inner = max(self.largest - reach, -self.largest)
        return (inner, self.largest) if top * bottom > 0 else (-self.largest, -inner)

    def likely(self, top: float, bottom: float, least: float, most: float) -> tuple[float, float] | None:
        """Ends of the likely ratios from ``least`` to ``most``, which lie within ± ``largest``; None where none is."""
        edges = self.largest * np.arange(RATIOS + 1) / RATIOS
        low = np.maximum(np.concatenate([-edges[:0:-1], edges[:-1]]), least)
        high = np.minimum(np.concatenate([-edges[-2::-1], edges[1:]]), most)
        widths = np.concatenate([self.widths[::-1], self.widths])
        if bottom != 0:
            ends = (top - widths) / bottom, (top + widths) / bottom
            low, high = np.maximum(low, np.minimum(*ends)), np.minimum(high, np.maximum(*ends))
            held = low <= high
        else:
            held = (abs(top) <= widths) & (low <= high)
        return (float(low[held].min()), float(high[held].max())) if np.any(held) else None
