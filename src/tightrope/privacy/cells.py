"""A loss law cut into cells: intervals of loss with their exact masses under P and under Q.

Everything without a closed form passes through here. An atom is a cell of width zero. From cells come a law that
dominates (each cell's mass moved to its ends, keeping both masses: the chord of the profile) and one that is
dominated (each cell's mass moved to its lower end).
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from tightrope.privacy.law import Floats

CAP = 600.0
"""Losses above this many nats are treated as infinite by upper bounds, and as this by lower ones."""


MOST = 1 << 19
"""Cells that a law is cut into at most: wider ones keep bounds valid, only less tight."""


@dataclass(frozen=True, slots=True, eq=False)
class Cells:
    """Shape [n] each: ends of the intervals of loss and their masses under P and Q; the two infinite masses."""

    lower: Floats
    upper: Floats
    p: Floats
    q: Floats
    infinite_mass: float
    opposite_mass: float
    slack: float = 0.0

    def capped(self) -> Cells:
        """Cells that reach beyond ``CAP`` counted as infinite loss: there e^{−loss} leaves double precision."""
        high = self.upper > CAP
        if not np.any(high):
            return self
        lost = self.infinite_mass + float(np.sum(self.p[high])) * (1 + 1e-12)
        lower, upper, p, q = (values[~high] for values in (self.lower, self.upper, self.p, self.q))
        return Cells(lower, upper, p, q, min(1.0, lost), self.opposite_mass, self.slack)

    def ends(self) -> tuple[Floats, Floats]:
        """Losses and P-masses [2n] of the dominating atoms: a + b = p and a e^{-lower} + b e^{-upper} = q."""
        width = self.upper - self.lower
        wide = width > 0
        excess = self.p[wide] - self.q[wide] * np.exp(np.minimum(self.lower[wide], CAP))
        high = np.zeros_like(self.p)
        high[wide] = np.clip(excess / -np.expm1(-width[wide]), 0.0, self.p[wide])
        return np.concatenate([self.lower, self.upper]), np.concatenate([self.p - high, high])

    def poisson_remove(self, rate: float) -> Cells:
        """Cells of ((1−q)A + qB, A) from those of (B, A): l → log(1−q+qe^l); see ``subsampled``."""
        return self._with_absent(
            self._mapped(self.lower, rate),
            self._mapped(self.upper, rate),
            (1 - rate) * self.q + rate * self.p,
            self.q,
            ((1 - rate) * self.opposite_mass, self.opposite_mass, math.log1p(-rate) if rate < 1 else -math.inf),
            (rate * self.infinite_mass, 0.0 if rate < 1 else self.opposite_mass),
        )

    def poisson_add(self, rate: float) -> Cells:
        """Cells of (A, (1−q)A + qB) from those of (A, B): l → −log(1−q+qe^{−l})."""
        return self._with_absent(
            -self._mapped(-self.lower, rate),
            -self._mapped(-self.upper, rate),
            self.p,
            (1 - rate) * self.p + rate * self.q,
            (self.infinite_mass, (1 - rate) * self.infinite_mass, -math.log1p(-rate) if rate < 1 else math.inf),
            (0.0 if rate < 1 else self.infinite_mass, rate * self.opposite_mass),
        )

    @staticmethod
    def _mapped(loss: Floats, rate: float) -> Floats:
        """log(1 − q + q e^l), exact near l = 0 and without overflow."""
        with np.errstate(over="ignore"):
            small = np.log1p(rate * np.expm1(np.minimum(loss, 30.0)))
        keep = math.log1p(-rate) if rate < 1 else -math.inf
        return np.where(loss > 30, np.logaddexp(math.log(rate) + loss, keep), small)

    def _with_absent(
        self,
        lower: Floats,
        upper: Floats,
        p: Floats,
        q: Floats,
        absent: tuple[float, float, float],
        infinite: tuple[float, float],
    ) -> Cells:
        """Join the atom of outcomes that only one of A, B gives: its P-mass, Q-mass and loss."""
        if absent[0] > 0 and math.isfinite(absent[2]):
            lower, upper = np.append(lower, absent[2]), np.append(upper, absent[2])
            p, q = np.append(p, absent[0]), np.append(q, absent[1])
        return Cells(lower, upper, p, q, *infinite, slack=self.slack)
