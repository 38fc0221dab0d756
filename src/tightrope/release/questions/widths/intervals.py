"""95 % intervals by inverting laws of noise: counts that are seen only beyond a threshold, ratios of two noisy numbers.

``docs/proofs/intervals.md`` has the directions: every interval holds the truth at least 95 % of the time.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

import numpy as np

from tightrope.numerics.arrays import Floats
from tightrope.release.questions.widths.tails import Tails
from tightrope.release.questions.widths.two_noises import TwoNoises

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
