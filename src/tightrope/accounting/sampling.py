"""Erasure: with a fixed probability nothing comes out (theory §5, GI Prop. 2); the loss is then 0."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import lru_cache

import numpy as np

from tightrope.accounting.distributions.atoms import Atoms
from tightrope.accounting.distributions.base import Ends, LossLaw, times
from tightrope.accounting.distributions.composition import Composition
from tightrope.accounting.distributions.gaussian import GaussianLaw
from tightrope.accounting.distributions.loss_cells import Cells
from tightrope.accounting.distributions.subsampled import PoissonAdd, PoissonRemove, sampled_add, sampled_remove
from tightrope.accounting.distributions.subsampled_gaussian import PoissonGaussian
from tightrope.accounting.distributions.subset import SubsetGaussian, subset
from tightrope.errors import InputError
from tightrope.numerics.arrays import Complexes, Floats
from tightrope.numerics.complex_functions import log1p
from tightrope.numerics.rounding import OVERFLOW, ROUND_OFF

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
    def _kept_probability(self) -> float:
        return 1 - self.probability

    @property
    def infinite_mass(self) -> float:
        return self._kept_probability * self.base.infinite_mass

    @property
    def opposite_mass(self) -> float:
        return self._kept_probability * self.base.opposite_mass

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
        return (
            None
            if base is None
            else times(base, self._kept_probability * (1 - ROUNDING), self._kept_probability * (1 + ROUNDING))
        )

    def profile(self, epsilon: Floats) -> Floats | None:
        """(1 − p) δ(ε) + p (1 − e^ε)₊."""
        base = self.base.profile(epsilon)
        return (
            None
            if base is None
            else self._kept_probability * base - self.probability * np.expm1(np.minimum(epsilon, 0.0))
        )

    def profile_error(self, epsilon: Floats) -> Floats:
        return self.base.profile_error(epsilon) + 1e-15

    def log_moment(self, z: Complexes) -> Complexes | None:
        """Log(1 + (1 − p)(M(z) − 1)), and with M pulled out where it is large."""
        base = self.base.log_moment(z)
        if base is None:
            return None
        steep = base.real >= OVERFLOW
        gentle, large = np.where(steep, 0.0, base), np.where(steep, base, 0.0)
        sums = large + np.log(self._kept_probability + self.probability * np.exp(-large))
        return np.where(steep, sums, log1p(np.asarray(self._kept_probability * np.expm1(gentle))))

    def moment_error(self, z: Complexes, moment: Complexes) -> Floats:
        """The base's and four roundings, relative to what is left of the sum."""
        base = self.base.log_moment(z)
        known = moment if base is None else base
        gone = np.exp(np.clip(known.real - moment.real, -700.0, 700.0))
        size = np.minimum(np.abs(known), 1 + gone) * 4e-16
        return np.asarray(
            self._kept_probability * gone * self.base.moment_error(z, known)
            + size * (1 + gone)
            + 1e-15 * np.abs(moment)
        )

    @property
    def infinite_error(self) -> float:
        return self.base.infinite_error + ROUNDING

    def decay(self, c: float, y: float) -> float:
        """What is erased does not decay."""
        moment = self.base.log_moment(np.array([complex(c)]))
        if moment is None:
            return 1.0
        share = self.probability / (
            self.probability + self._kept_probability * math.exp(min(float(moment[0].real), 700.0))
        )
        return min(1.0, share + (1 - share) * self.base.decay(c, y))

    def cells(self, step: float) -> Cells:
        """Those of the base, lighter, and one at 0."""
        zero = Cells.atoms(np.zeros(1), np.array([self.probability]), 0.0, 0.0)
        return self.base.cells(step).scaled(self._kept_probability).joined(zero)


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


# Running a mechanism on a random part of the data: one step's laws become others (theory §2).
#
# Each function takes the two directions of one step and returns the two of the sampled one.

Directions = tuple[Composition, Composition]
NOTHING_LOST = Composition((), ()), Composition((), ())
"""Of what nobody takes part in, or what never comes out."""


def poisson(remove: Composition, add: Composition, rate: float) -> Directions:
    """Each record takes part with probability ``rate``, independently."""
    if rate == 1 or not remove.laws:
        return remove, add
    if rate == 0:
        return NOTHING_LOST
    return Composition.of(_remove(remove.laws[0], rate)), Composition.of(_add(add.laws[0], rate))


def subset_of(remove: Composition, add: Composition, rate: float) -> Directions:
    """A uniform subset of fixed size takes part; the two directions must have one law."""
    if not remove.laws or rate == 0:
        return NOTHING_LOST
    law = common(remove.laws[0], add.laws[0])
    if law is None:
        remedy = "bound both by one first, such as tr.from_points with the larger delta at each epsilon"
        raise InputError("loss", "a pair whose two orders differ", "one law in both orders of the pair", remedy)
    if rate == 1:
        return remove, add
    both = Composition.of(_subset(law, rate))
    return both, both


def erase(remove: Composition, add: Composition, probability: float) -> Directions:
    """Nothing comes out with this probability."""
    if probability == 0 or not remove.laws:
        return remove, add
    if probability == 1:
        return NOTHING_LOST
    first, second = remove.laws[0], add.laws[0]
    one = Composition.of(_erased(first, probability))
    return one, one if second == first else Composition.of(_erased(second, probability))


def alone(remove: Composition, releases: int, done: str) -> None:
    """Raises ``InputError`` unless the loss is of one release, or of none.

    Releases that all run on one sample are one mechanism, and its law is not the sum of theirs: a sample for each is
    what ``k *`` means, one for all is said by their joint law.
    """
    count = max(releases, sum(remove.counts))
    if count > 1 and remove.laws:
        remedy = f"{done} each step, then compose: all on one sample would be a single mechanism, to be stated as one"
        raise InputError("loss", f"{count} steps", "a single step", remedy)


def common(first: LossLaw, second: LossLaw) -> LossLaw | None:
    """The law that both are, rounding apart; None where they differ."""
    if first == second:
        return first
    if not isinstance(first, Atoms) or not isinstance(second, Atoms):
        return None
    slack, inexact = first.slack + second.slack, first.inexact + second.inexact + 4 * ROUND_OFF
    same = (
        first.losses.shape == second.losses.shape
        and bool(np.all(np.abs(first.losses - second.losses) <= slack))
        and bool(np.all(np.abs(first.masses - second.masses) <= inexact * first.masses))
        and abs(first.infinite_mass - second.infinite_mass) <= inexact * first.infinite_mass
        and abs(first.opposite_mass - second.opposite_mass) <= inexact * first.opposite_mass
    )
    return replace(first, slack=slack, inexact=inexact) if same else None


@lru_cache(maxsize=256)
def _remove(law: LossLaw, rate: float) -> LossLaw:
    if isinstance(law, Atoms):
        return sampled_remove(law, rate)
    return PoissonGaussian(law.mu, rate, remove=True) if isinstance(law, GaussianLaw) else PoissonRemove(law, rate)


@lru_cache(maxsize=256)
def _add(law: LossLaw, rate: float) -> LossLaw:
    if isinstance(law, Atoms):
        return sampled_add(law, rate)
    return PoissonGaussian(law.mu, rate, remove=False) if isinstance(law, GaussianLaw) else PoissonAdd(law, rate)


@lru_cache(maxsize=256)
def _subset(law: LossLaw, rate: float) -> LossLaw:
    return SubsetGaussian(law.mu, rate) if isinstance(law, GaussianLaw) else subset(law, rate)


@lru_cache(maxsize=256)
def _erased(law: LossLaw, probability: float) -> LossLaw:
    return erased(law, probability)
