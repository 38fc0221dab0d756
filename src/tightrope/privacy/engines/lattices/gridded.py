"""The engine of last resort, as fine as it must be."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property

from tightrope.errors import PrecisionError
from tightrope.privacy.engines.engine import Engine
from tightrope.privacy.engines.lattices import grid
from tightrope.privacy.engines.lattices.window import Outline, Window
from tightrope.privacy.engines.saddle import Guess
from tightrope.privacy.laws.composition import Composition
from tightrope.privacy.laws.interval import Interval, outward

GRIDS = (1 << 13, 1 << 16, 1 << 19)
"""Lattice points for the widest law."""
GRIDS_KEPT = 4
NARROW_ENOUGH = 1e-7
"""Relative width of a bracket that is good enough not to try a finer grid."""

STILL = 1e-8
"""Relative fall of the upper end, from one grid to the next, that leaves a 64th of that to gain."""


@dataclass(frozen=True)
class Gridded(Engine):
    """Grids, each eight times finer than the last, until the bracket is narrow."""

    total: Composition
    _made: dict[tuple[int, Window], grid.Grid] = field(default_factory=dict)
    name = "grid"

    def delta(self, epsilon: float) -> Interval:
        if epsilon >= self.total.largest + self.total.slack:
            return self.total.infinite_bounds
        low, high = 0.0, 1.0
        for points in GRIDS:
            try:
                finer = self._grid(points, epsilon).delta(epsilon)
            except PrecisionError:
                if points == GRIDS[0]:
                    raise
                break
            low, high = max(low, finer[0]), min(high, finer[1])
            if high - low <= NARROW_ENOUGH * low:
                break
        return outward(low, low * self.total.inexact)[0], outward(high, high * self.total.inexact)[1]

    def upper(self, epsilon: float) -> float:
        """Without lower ends: as they move by h², an upper end that stays where it was is as good as it gets."""
        if epsilon >= self.total.largest + self.total.slack:
            return self.delta(epsilon)[1]
        high = 1.0
        for points in GRIDS:
            try:
                finer = self._grid(points, epsilon).above(epsilon)
            except PrecisionError:
                if points == GRIDS[0]:
                    raise
                break
            settled, high = finer >= high * (1 - STILL), min(high, finer)
            if settled:
                break
        return outward(high, high * self.total.inexact)[1]

    def guess(self, target: float) -> Guess | None:
        """From the coarsest grid."""
        try:
            return self._grid(GRIDS[0], 0.0).upper.guess(target)
        except PrecisionError:
            return None

    def _grid(self, points: int, epsilon: float) -> grid.Grid:
        """Of the window that serves ε; few are kept."""
        key = points, self._outline.window(epsilon)
        if key not in self._made:
            while len(self._made) >= GRIDS_KEPT:
                self._made.pop(next(iter(self._made)))
            self._made[key] = grid.grid(self.total, points, self._outline, key[1])
        return self._made[key]

    @cached_property
    def _outline(self) -> Outline:
        return Outline.of(self.total)
