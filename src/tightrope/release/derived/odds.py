"""95 % intervals for ratios of two noisy numbers, of any size: beyond one, the reciprocal is what is inverted."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Self

from tightrope.release.questions.widths.intervals import OUTSIDE, Ratios
from tightrope.release.questions.widths.two_noises import TwoNoises

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
        parts = [
            self._below(top, bottom, least, most),
            self._beyond(top, bottom, max(least, self.unit), most),
            _mirrored(self._beyond(-top, bottom, max(-most, self.unit), -least)),
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


def _mirrored(ends: Ends | None) -> Ends | None:
    return None if ends is None else (-ends[1], -ends[0])
