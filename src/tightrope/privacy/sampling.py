"""Running a mechanism on a random part of the data: one step's laws become others (theory §2).

Each function takes the two directions of one step and returns the two of the sampled one.
"""

from __future__ import annotations

from functools import lru_cache

from tightrope.errors import InputError
from tightrope.privacy.atoms import Atoms
from tightrope.privacy.composition import Composition
from tightrope.privacy.erased import erased
from tightrope.privacy.gaussian import GaussianLaw
from tightrope.privacy.law import LossLaw
from tightrope.privacy.subsampled import PoissonAdd, PoissonRemove
from tightrope.privacy.subsampled_atoms import sampled_add, sampled_remove
from tightrope.privacy.subsampled_gaussian import PoissonGaussian
from tightrope.privacy.subset import subset
from tightrope.privacy.subset_gaussian import SubsetGaussian

Directions = tuple[Composition, Composition]
FIRST = "sample each step first, then compose them"


def poisson(remove: Composition, add: Composition, rate: float) -> Directions:
    """Each record takes part with probability ``rate``, independently."""
    if rate == 1:
        return remove, add
    return Composition.of(_remove(_single(remove), rate)), Composition.of(_add(_single(add), rate))


def subset_of(remove: Composition, add: Composition, rate: float) -> Directions:
    """A uniform subset of fixed size takes part."""
    law = _single(remove)
    if add.laws != remove.laws:
        raise InputError("loss", "an asymmetric pair", "one with equal directions", "state it by tr.from_points first")
    if rate == 1:
        return remove, add
    both = Composition.of(_subset(law, rate))
    return both, both


def erase(remove: Composition, add: Composition, probability: float) -> Directions:
    """Nothing comes out with this probability."""
    if probability == 0:
        return remove, add
    first, second = _single(remove), _single(add)
    one = Composition.of(_erased(first, probability))
    return one, one if second == first else Composition.of(_erased(second, probability))


def _single(total: Composition) -> LossLaw:
    """The one law of a step; compositions cannot be sampled after the fact."""
    if total.counts != (1,):
        raise InputError("loss", f"{sum(total.counts)} steps", "a single step", FIRST)
    return total.laws[0]


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
