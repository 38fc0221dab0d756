"""Running a mechanism on a random part of the data: one step's laws become others (theory §2).

Each function takes the two directions of one step and returns the two of the sampled one.
"""

from __future__ import annotations

from dataclasses import replace
from functools import lru_cache

import numpy as np

from tightrope.accounting.distributions.atoms import Atoms
from tightrope.accounting.distributions.base import LossLaw
from tightrope.accounting.distributions.composition import Composition
from tightrope.accounting.distributions.erased import erased
from tightrope.accounting.distributions.gaussian import GaussianLaw
from tightrope.accounting.distributions.subsampled import PoissonAdd, PoissonRemove, sampled_add, sampled_remove
from tightrope.accounting.distributions.subsampled_gaussian import PoissonGaussian
from tightrope.accounting.distributions.subset import SubsetGaussian, subset
from tightrope.errors import InputError
from tightrope.numerics.rounding import ROUND_OFF

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
