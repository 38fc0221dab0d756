"""Subset sampling: m of n records without replacement, p = m/n, replace-one neighbours (GI Prop. 1, theory §2).

For a symmetric loss, δ_p(ε) = p δ(log(1 + (e^ε − 1)/p)) for ε ≥ 0, mirrored below 0. Losses above 0 come from outcomes
whose law is pP + (1−p)Q against Q; losses below are their mirror; what is left is an atom at 0.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import cast

import numpy as np

from tightrope.errors import PrecisionError
from tightrope.numerics.arrays import Complexes, Floats
from tightrope.numerics.rounding import ROUND_OFF
from tightrope.privacy.laws.atoms import Atoms
from tightrope.privacy.laws.enclosed import by_sign, middle, spread
from tightrope.privacy.laws.law import Ends, LossLaw
from tightrope.privacy.laws.loss_cells import Cells
from tightrope.privacy.sampled.flat_moment import STEEP_POWER, FlatMoment, modulus
from tightrope.privacy.sampled.line_moment import Enclosed, logarithm
from tightrope.privacy.sampled.subsampled import EVERYWHERE, PoissonRemove, cut_for

POWER_ONE = np.ones(1, dtype=np.complex128)


@dataclass(frozen=True, slots=True)
class Subset(LossLaw):
    """The law of a symmetric ``base`` run on a subset; its own reverse."""

    base: LossLaw
    rate: float

    @property
    def integrated(self) -> bool:
        return True

    @property
    def _above(self) -> PoissonRemove:
        """Above 0 the pair is that of removing a record from a Poisson sample."""
        return PoissonRemove(self.base, self.rate)

    @property
    def infinite_mass(self) -> float:
        return self.rate * self.base.infinite_mass

    @property
    def opposite_mass(self) -> float:
        return self.infinite_mass

    @property
    def largest(self) -> float:
        return self._above.largest

    @property
    def infinite_error(self) -> float:
        return self.base.infinite_error + 4e-16

    @property
    def slack(self) -> float:
        return self._above.slack

    def reverse(self) -> Subset:
        return self

    def deltas(self, epsilon: Ends) -> Ends | None:
        return self._above.deltas(epsilon)

    def profile(self, epsilon: Floats) -> Floats | None:
        return middle(by_sign(epsilon, self.deltas, self.deltas))

    def profile_error(self, epsilon: Floats) -> Floats:
        return spread(by_sign(epsilon, self.deltas, self.deltas), np.shape(epsilon))

    def log_moment(self, z: Complexes) -> Complexes | None:
        known = self.enclosed(z)
        return None if known is None else known[0]

    def enclosed(self, z: Complexes) -> tuple[Complexes, Floats] | None:
        """1 − δ_∞ + ∫ (e^{(z+1)g} − e^g + e^{−zg} − 1) dQ over base losses above 0, for Laplace-type bases."""
        moment = self._flat
        if moment is None:
            return None
        if not moment.steepest(z + 1) < STEEP_POWER:
            raise PrecisionError(f"a sampled loss has no moment of powers up to {float(np.max(np.abs(z))):.3g}")
        (up, off), (one, wrong), (down, away) = (moment.excess(w) for w in (z + 1, POWER_ONE, -z))
        error = off + wrong + away + 4 * ROUND_OFF * (np.abs(up) + np.abs(one) + np.abs(down) + self.infinite_mass)
        return logarithm(up - one + down - self.infinite_mass, error)

    def decay(self, c: float, y: float) -> float:
        moment = self._flat
        if moment is None:
            return 1.0
        middle = 1 - self.infinite_mass - float(moment.excess(POWER_ONE)[0][0].real) - 2 * moment.held
        still = moment.atoms(c + 1) + moment.atoms(-c) + max(middle, 0.0) + 1e-12
        swing = moment.swing(c + 1) + moment.swing(-c)
        return modulus(self._enclosed, complex(c, y), still, swing, 2 * moment.span)

    def _enclosed(self, z: Complexes) -> Enclosed:
        return cast(Enclosed, self.enclosed(z))

    @property
    def _flat(self) -> FlatMoment | None:
        """Of base losses above 0."""
        return FlatMoment.of(self.base.flat, self.rate, above=True)

    def cells(self, step: float) -> Cells:
        """Cells of the base with an edge at 0, so that each is on one side."""
        return self.between(step, *EVERYWHERE)

    def between(self, step: float, low: float, high: float) -> Cells:
        return _both_sides(cut_for(self._above, step, (min(low, -high), max(high, -low))), self.rate)

    def evenly(self, count: int) -> Cells:
        base = self.base.evenly(count)
        astride = bool(np.any((base.lower < 0) & (base.upper > 0)))
        return super().evenly(count) if astride else _both_sides(base, self.rate)


def subset(law: LossLaw, rate: float) -> LossLaw:
    """The law of a symmetric loss run on a subset; finite laws stay finite."""
    if not isinstance(law, Atoms):
        return Subset(law, rate)
    cells = _both_sides(law.cells(0.0), rate)
    infinite = cells.infinite_mass
    sampled = Subset(law, rate)
    found = Atoms.gather(cells.lower, cells.p, infinite_mass=infinite, opposite_mass=infinite, slack=sampled.slack)
    inexact = law.inexact + math.expm1(min(law.slack, 1.0)) + 8e-16
    return replace(found, inexact=inexact, formula=sampled if law.reversible else None)


def _both_sides(base: Cells, rate: float) -> Cells:
    """Cells above 0, sampled; their mirror; and the rest at 0.

    With b and a the masses above 0 under both laws of the base and c that at 0, the rest is c + (1−p)(b − a + δ_∞), as
    all masses add up to one and the base is symmetric.
    """
    infinite = rate * base.infinite_mass
    positive = replace(base.part((base.lower >= 0) & (base.upper > 0)), opposite_mass=0.0)
    above = replace(positive.poisson_remove(rate), infinite_mass=infinite, opposite_mass=infinite)
    gained = positive.low * -np.expm1(-positive.lower) + positive.high * -np.expm1(-positive.upper)
    middle = math.fsum(base.p[(base.lower == 0) & (base.upper == 0)])
    rest = middle + (1 - rate) * (math.fsum(gained) + base.infinite_mass)
    return above.joined(above.mirrored()).joined(Cells.atoms(np.zeros(1), np.array([rest]), 0.0, 0.0))
