"""δ(ε) of one composed direction by contour integrals: which one, and how it becomes an interval (theory §3).

Above the mean loss and around it δ − δ_∞ is the integral to the right of 0; far below it 1 − δ is that between the
poles; below the mean under Q the reverse direction is mirrored.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field

import numpy as np

from tightrope.errors import PrecisionError
from tightrope.numerics.rounding import ROUND_OFF
from tightrope.privacy.engines.contour.line_integral import LineIntegral
from tightrope.privacy.engines.contour.real_axis import FINENESS, Source
from tightrope.privacy.laws.composition import Composition
from tightrope.privacy.laws.interval import Interval, outward

UNDERFLOW = -760.0
"""E to this power is 0 in double precision, with room for rounding."""


@dataclass(frozen=True, slots=True, eq=False)
class Integral:
    """Of one composed direction; ``PrecisionError`` where no digit is kept."""

    total: Composition
    lines: LineIntegral
    mirror: list[Integral] = field(default_factory=list)

    @classmethod
    def of(cls, total: Composition, source: Source | None = None, near: int | None = None) -> Integral:
        """With nothing known yet; ``source`` knows the moments of ``total``, and a saddle is ``near`` this index."""
        return cls(total, LineIntegral.of(total if source is None else source, near))

    def delta(self, epsilon: float) -> Interval:
        """An interval that holds δ(ε)."""
        if epsilon >= self.total.largest + self.total.slack:
            return self.total.infinite_bounds
        if self._vanishes(epsilon):
            return outward(self.total.infinite_mass, math.ulp(0.0) + self._infinite_error)
        return self._within(epsilon)

    def chernoff(self, epsilon: float) -> Interval:
        """Chernoff's bounds, which always hold.

        δ₀ ≤ e^{K(c) − cε} c^c/(1+c)^{1+c} for c > 0, and 1 − δ ≤ e^{K(c) − cε} for −1 < c < 0.
        """
        between = self.lines.between.chernoff(epsilon)
        below = outward(-math.expm1(min(between, 0.0)), 8 * ROUND_OFF)[0]
        return max(below, self.total.infinite_bounds[0]), self.ceiling(epsilon)

    def ceiling(self, epsilon: float) -> float:
        """The upper one."""
        above = self.total.infinite_mass + math.exp(min(self.lines.right.chernoff(epsilon), 0.0))
        return outward(above, 8 * ROUND_OFF * above + self._infinite_error)[1]

    @property
    def _infinite_error(self) -> float:
        """Of the infinite mass, and of adding to it."""
        return self.total.infinite_bounds[1] - self.total.infinite_mass + 4 * ROUND_OFF * self.total.infinite_mass

    def _within(self, epsilon: float) -> Interval:
        """By δ − δ_∞, or far below the mean loss by 1 − δ; below the mean under Q by the reverse direction's δ."""
        if epsilon < 0 and epsilon < self._mean(-1.0):
            return self._mirrored(epsilon)
        saddle = self.lines.right.saddle(epsilon)
        log_value = self.lines.estimate(epsilon, saddle)
        if log_value > -1 and epsilon < self._mean(0.0) and self._estimate_between(epsilon) < -1:
            value, error = self.lines.value(epsilon, between=True)
            return outward(1 - value, error + 4 * ROUND_OFF)
        value, error = self.lines.value(epsilon, between=False)
        low, high = outward(self.total.infinite_mass + value, error + self._infinite_error)
        return max(low, self.total.infinite_bounds[0]), high

    def _mirrored(self, epsilon: float) -> Interval:
        if not self.mirror:
            self.mirror.append(Integral.of(self.total.reverse()))
        low, high = self.mirror[0].delta(-epsilon)
        base, factor = -math.expm1(epsilon), math.exp(epsilon)
        return outward(base + factor * low, 8 * ROUND_OFF * base)[0], outward(base + factor * high, 8 * ROUND_OFF)[1]

    def _mean(self, at: float) -> float:
        """About K'(0) = E_P L or K'(−1) = E_Q L: it only decides between methods."""
        small = math.exp(min(self.lines.right.latest[0] if self.lines.right.latest else 0, 0) / FINENESS) * 1e-3
        end = at - small if at == 0 else at + small
        found, _ = self.total.moments(np.array([complex(end)]))
        return float(found[0].real) / (end - at)

    def _estimate_between(self, epsilon: float) -> float:
        try:
            return self.lines.estimate(epsilon, self.lines.between.saddle(epsilon), between=True)
        except PrecisionError:
            return 0.0

    def _vanishes(self, epsilon: float) -> bool:
        """Whether some δ − δ_∞ ≤ e^{K(c) − cε} proves it to be below the smallest double."""
        return self.lines.right.chernoff(epsilon) < UNDERFLOW
