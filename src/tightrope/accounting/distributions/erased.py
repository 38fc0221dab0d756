"""Erasure: with a fixed probability nothing comes out (theory §5, GI Prop. 2); the loss is then 0."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np

from tightrope.accounting.distributions.atoms import Atoms
from tightrope.accounting.distributions.base import Ends, LossLaw, times
from tightrope.accounting.distributions.loss_cells import Cells
from tightrope.numerics.arrays import Complexes, Floats
from tightrope.numerics.complex_functions import log1p
from tightrope.numerics.rounding import OVERFLOW

ROUNDING = 4e-16


@dataclass(frozen=True, slots=True)
class Erased(LossLaw):
    """Loss 0 with probability ``probability``, else that of ``base``."""

    base: LossLaw
    probability: float

    @property
    def integrated(self) -> bool:
        return self.base.integrated

    @property
    def _kept(self) -> float:
        return 1 - self.probability

    @property
    def infinite_mass(self) -> float:
        return self._kept * self.base.infinite_mass

    @property
    def opposite_mass(self) -> float:
        return self._kept * self.base.opposite_mass

    @property
    def largest(self) -> float:
        return max(0.0, self.base.largest)

    @property
    def slack(self) -> float:
        return self.base.slack

    def reverse(self) -> Erased:
        return Erased(self.base.reverse(), self.probability)

    def deltas(self, epsilon: Ends) -> Ends | None:
        """(1 − p) δ(ε) at ε ≥ 0."""
        base = self.base.deltas(epsilon)
        return None if base is None else times(base, self._kept * (1 - ROUNDING), self._kept * (1 + ROUNDING))

    def profile(self, epsilon: Floats) -> Floats | None:
        """(1 − p) δ(ε) + p (1 − e^ε)₊."""
        base = self.base.profile(epsilon)
        return None if base is None else self._kept * base - self.probability * np.expm1(np.minimum(epsilon, 0.0))

    def profile_error(self, epsilon: Floats) -> Floats:
        return self.base.profile_error(epsilon) + 1e-15

    def log_moment(self, z: Complexes) -> Complexes | None:
        """Log(1 + (1 − p)(M(z) − 1)), and with M pulled out where it is large."""
        base = self.base.log_moment(z)
        if base is None:
            return None
        steep = base.real >= OVERFLOW
        gentle, large = np.where(steep, 0.0, base), np.where(steep, base, 0.0)
        sums = large + np.log(self._kept + self.probability * np.exp(-large))
        return np.where(steep, sums, log1p(np.asarray(self._kept * np.expm1(gentle))))

    def moment_error(self, z: Complexes, moment: Complexes) -> Floats:
        """The base's and four roundings, relative to what is left of the sum."""
        base = self.base.log_moment(z)
        known = moment if base is None else base
        gone = np.exp(np.clip(known.real - moment.real, -700.0, 700.0))
        size = np.minimum(np.abs(known), 1 + gone) * 4e-16
        return np.asarray(
            self._kept * gone * self.base.moment_error(z, known) + size * (1 + gone) + 1e-15 * np.abs(moment)
        )

    @property
    def infinite_error(self) -> float:
        return self.base.infinite_error + ROUNDING

    def decay(self, c: float, y: float) -> float:
        """What is erased does not decay."""
        moment = self.base.log_moment(np.array([complex(c)]))
        if moment is None:
            return 1.0
        share = self.probability / (self.probability + self._kept * math.exp(min(float(moment[0].real), 700.0)))
        return min(1.0, share + (1 - share) * self.base.decay(c, y))

    def cells(self, step: float) -> Cells:
        """Those of the base, lighter, and one at 0."""
        zero = Cells.atoms(np.zeros(1), np.array([self.probability]), 0.0, 0.0)
        return self.base.cells(step).scaled(self._kept).joined(zero)


def erased(law: LossLaw, probability: float) -> LossLaw:
    """The law with erasure; finite laws stay finite."""
    if not isinstance(law, Atoms):
        return Erased(law, probability)
    kept = 1 - probability
    found = Atoms.gather(
        np.append(law.losses, 0.0),
        np.append(np.maximum(law.masses * kept, math.ulp(0.0) * (kept > 0)), probability),
        infinite_mass=law.infinite_mass * kept,
        opposite_mass=law.opposite_mass * kept,
        slack=law.slack,
    )
    formula = Erased(law, probability) if law.reversible else None  # what is erased has no slack
    return replace(found, inexact=law.inexact + ROUNDING, formula=formula)
