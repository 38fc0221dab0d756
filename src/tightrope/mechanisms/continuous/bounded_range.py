"""Bounded range: the exponential mechanism and everything whose loss lies in an interval of length ε.

Per outcome the loss lies in [t − ε, t] for some t; the two-point law that uses the ends is worst, and the best t for
each ε' gives the profile δ(ε') = (1 − e^{(ε'−ε)/2})² / (1 − e^{−ε}) (Dong, Durfee and Rogers, 2020).
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from tightrope.mechanisms.continuous.laplace_law import exponential_cells
from tightrope.mechanisms.pairs import LossOnly
from tightrope.numerics.arrays import Complexes, Floats
from tightrope.numerics.checks import positive
from tightrope.numerics.complex_log import log1p
from tightrope.numerics.rounding import OVERFLOW
from tightrope.privacy.laws.flat import Flat
from tightrope.privacy.laws.law import LossLaw
from tightrope.privacy.laws.loss_cells import Cells, multiples
from tightrope.privacy.loss import PrivacyLoss


@dataclass(frozen=True, slots=True)
class BoundedRangeLaw(LossLaw):
    """Density e^{(l−ε)/2} / (2(1 − e^{−ε})) on [−ε, ε]; its own reverse."""

    epsilon: float

    @property
    def infinite_mass(self) -> float:
        return 0.0

    @property
    def opposite_mass(self) -> float:
        return 0.0

    @property
    def largest(self) -> float:
        return self.epsilon

    @property
    def _weight(self) -> float:
        return -1 / math.expm1(-self.epsilon)

    def reverse(self) -> BoundedRangeLaw:
        return self

    @property
    def flat(self) -> Flat:
        """No atoms, density e^{−ε/2} / (2(1 − e^{−ε}))."""
        return Flat(self.epsilon, 0.0, self._weight * self.epsilon * math.exp(-self.epsilon / 2))

    def profile(self, epsilon: Floats) -> Floats:
        epsilon = np.asarray(epsilon, dtype=np.float64)
        lost = np.expm1((np.clip(epsilon, -self.epsilon, self.epsilon) - self.epsilon) / 2)
        return np.where(epsilon < -self.epsilon, -np.expm1(np.minimum(epsilon, 0.0)), self._weight * lost**2)

    def log_moment(self, z: Complexes) -> Complexes:
        """M(z) = (e^{zε} − e^{−(z+1)ε}) / ((2z+1)(1 − e^{−ε})), as log(1 + (M − 1)) where nothing overflows."""
        if float(np.max(z.real)) * self.epsilon > OVERFLOW:
            inner = -np.expm1(-(2 * z + 1) * self.epsilon) / (2 * z + 1)
            return np.asarray(z * self.epsilon + np.log(self._weight * inner))
        up, down = np.expm1(z * self.epsilon), np.expm1(-(z + 1) * self.epsilon)
        rest = (up - down) / (2 * z + 1) * self._weight - 1
        return log1p(np.asarray(rest, dtype=np.complex128))

    def moment_error(self, z: Complexes, moment: Complexes) -> Floats:
        """M − 1 is a difference of numbers near 1."""
        return 2e-15 * np.maximum(1.0, 1 / np.abs(2 * z + 1)) / np.exp(np.minimum(moment.real, 0.0))

    def decay(self, c: float, y: float) -> float:
        """|e^{2aε} − e^{2iyε}| / |2z + 1| with a = c + ½: at most coth(aε) times a / |z + ½|."""
        a = c + 0.5
        return min(1.0, a / math.hypot(a, y) / math.tanh(a * self.epsilon))

    def cells(self, step: float) -> Cells:
        return self.cut(multiples(-self.epsilon, self.epsilon, step))

    def cut(self, edges: Floats) -> Cells:
        return exponential_cells(self.epsilon, self._weight, edges)


def bounded_range(*, epsilon: float) -> LossOnly:
    """The loss of every mechanism of bounded range ε: the exponential mechanism, report noisy max with Gumbel noise.

    Such a mechanism is (ε, 0)-private, but loses less than randomised response does: η = tanh(ε/4). The exponential
    mechanism that samples in proportion to e^{ε u / (2Δ)} (e^{ε u / Δ} for a monotone utility u) has range ε.
    Composition holds with **parameters fixed in advance**. Neighbours: as the sensitivity of u says. Raises
    ``InputError`` unless ε is finite and positive.

    >>> round(bounded_range(epsilon=1).loss.total_variation(), 12)
    0.244918662404
    >>> round((10 * bounded_range(epsilon=0.1).loss).epsilon(1e-6), 6)
    0.686129
    """
    return LossOnly(PrivacyLoss.of(BoundedRangeLaw(positive("epsilon", epsilon))))
