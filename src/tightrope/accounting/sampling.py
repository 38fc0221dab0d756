"""Erasure: with a fixed probability the output is suppressed (theory §5, GI Prop. 2); the loss is then 0."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import lru_cache

import numpy as np

from tightrope.accounting.distributions.atoms import Atoms
from tightrope.accounting.distributions.base import BoundArrays, LossDistribution, scale_bounds
from tightrope.accounting.distributions.composition import Composition
from tightrope.accounting.distributions.gaussian import GaussianLossDistribution
from tightrope.accounting.distributions.gaussian_mixture import (
    MAX_COMPONENTS,
    MAX_SHIFT,
    MIN_SHIFT,
    GaussianMixture,
    binomial_log_weights,
    mixture_distribution,
)
from tightrope.accounting.distributions.loss_cells import LossCells
from tightrope.accounting.distributions.replace_one_gaussian import ReplaceOneGaussian, truncated_batch_distribution
from tightrope.accounting.distributions.subsampled import (
    PoissonAdd,
    PoissonRemove,
    sampled_addition_loss,
    sampled_removal_loss,
)
from tightrope.accounting.distributions.subsampled_gaussian import PoissonGaussian
from tightrope.accounting.distributions.subset import subset_distribution
from tightrope.errors import InputError
from tightrope.numerics.arrays import Complexes, Floats
from tightrope.numerics.complex_functions import log1p
from tightrope.numerics.rounding import OVERFLOW, ROUND_OFF

ROUNDING = 4e-16
MAX_ALLOCATED_MU = 4.0
"""Largest sensitivity over scale of steps to which records are allocated at random."""


@dataclass(frozen=True, slots=True)
class ErasedDistribution(LossDistribution):
    """Loss 0 with probability ``probability``, otherwise the loss of ``base``."""

    base: LossDistribution
    probability: float

    @property
    def is_envelope(self) -> bool:
        return self.base.is_envelope

    @property
    def needs_quadrature(self) -> bool:
        return self.base.needs_quadrature

    @property
    def _kept_probability(self) -> float:
        return 1 - self.probability

    @property
    def infinite_mass(self) -> float:
        return self._kept_probability * self.base.infinite_mass

    @property
    def reverse_infinity_mass(self) -> float:
        return self._kept_probability * self.base.reverse_infinity_mass

    @property
    def largest_loss(self) -> float:
        return max(0.0, self.base.largest_loss)

    @property
    def rounding_error_bound(self) -> float:
        return self.base.rounding_error_bound

    def reverse_distribution(self) -> ErasedDistribution:
        return ErasedDistribution(self.base.reverse_distribution(), self.probability)

    def compute_deltas(self, epsilon: BoundArrays) -> BoundArrays | None:
        """Return (1 − p) δ(ε) at ε ≥ 0."""
        base = self.base.compute_deltas(epsilon)
        return (
            None
            if base is None
            else scale_bounds(base, self._kept_probability * (1 - ROUNDING), self._kept_probability * (1 + ROUNDING))
        )

    def profile(self, epsilon: Floats) -> Floats | None:
        """Return (1 − p) δ(ε) + p (1 − e^ε)₊."""
        base = self.base.profile(epsilon)
        return (
            None
            if base is None
            else self._kept_probability * base - self.probability * np.expm1(np.minimum(epsilon, 0.0))
        )

    def profile_rounding_error(self, epsilon: Floats) -> Floats:
        return self.base.profile_rounding_error(epsilon) + 1e-15

    def log_moment(self, z: Complexes) -> Complexes | None:
        """Return log(1 + (1 − p)(M(z) − 1)), divided by M inside the logarithm if that is large."""
        base = self.base.log_moment(z)
        if base is None:
            return None
        steep = base.real >= OVERFLOW
        gentle, large = np.where(steep, 0.0, base), np.where(steep, base, 0.0)
        sums = large + np.log(self._kept_probability + self.probability * np.exp(-large))
        return np.where(steep, sums, log1p(np.asarray(self._kept_probability * np.expm1(gentle))))

    def log_moment_error(self, z: Complexes, moment: Complexes) -> Floats:
        """Return the base's error and four roundings, relative to the sum that remains."""
        base = self.base.log_moment(z)
        base_moment = moment if base is None else base
        moment_ratio = np.exp(np.clip(base_moment.real - moment.real, -700.0, 700.0))
        size = np.minimum(np.abs(base_moment), 1 + moment_ratio) * 4e-16
        return np.asarray(
            self._kept_probability * moment_ratio * self.base.log_moment_error(z, base_moment)
            + size * (1 + moment_ratio)
            + 1e-15 * np.abs(moment)
        )

    @property
    def zcdp_ceiling(self) -> float:
        """That of the base: a part of the outcomes has loss 0."""
        return self.base.zcdp_ceiling

    @property
    def infinity_mass_error(self) -> float:
        return self.base.infinity_mass_error + ROUNDING

    def moment_decay_bound(self, c: float, y: float) -> float:
        """The erased part does not decay."""
        moment = self.base.log_moment(np.array([complex(c)]))
        if moment is None:
            return 1.0
        fixed = self.probability / (
            self.probability + self._kept_probability * math.exp(min(float(moment[0].real), 700.0))
        )
        return min(1.0, fixed + (1 - fixed) * self.base.moment_decay_bound(c, y))

    def loss_cells(self, step: float) -> LossCells:
        """Return the base's cells with scaled masses, and one at 0."""
        zero = LossCells.from_atoms(np.zeros(1), np.array([self.probability]), 0.0, 0.0)
        return self.base.loss_cells(step).scale_masses(self._kept_probability).join_bounds(zero)


def erase_distribution(law: LossDistribution, probability: float) -> LossDistribution:
    """Return the distribution with erasure; finite distributions stay finite."""
    if not isinstance(law, Atoms):
        return ErasedDistribution(law, probability)
    factor = 1 - probability
    atoms = Atoms.merge_losses(
        np.append(law.losses, 0.0),
        np.append(np.maximum(law.masses * factor, math.ulp(0.0) * (factor > 0)), probability),
        infinite_mass=law.infinite_mass * factor,
        reverse_infinity_mass=law.reverse_infinity_mass * factor,
        rounding_error_bound=law.rounding_error_bound,
    )
    formula = ErasedDistribution(law, probability) if law.has_exact_reverse else None  # erasure adds no rounding error
    return replace(atoms, relative_mass_error=law.relative_mass_error + ROUNDING, formula=formula)


# Running a mechanism on a random part of the data: how one step's loss distributions change (theory §2).
#
# Each function takes the two directions of one step and returns the two of the sampled one.

Directions = tuple[Composition, Composition]
NOTHING_LOST = Composition((), ()), Composition((), ())
"""The loss when the sample or the output is always empty."""


def sample_poisson(remove: Composition, add: Composition, rate: float) -> Directions:
    """Return both directions if each record is included with probability ``rate``, independently."""
    if rate == 1 or not remove.laws:
        return remove, add
    if rate == 0:
        return NOTHING_LOST
    removal = _poisson_sampled(remove.laws[0], rate, remove=True)
    addition = _poisson_sampled(add.laws[0], rate, remove=False)
    return Composition.from_distribution(removal), Composition.from_distribution(addition)


def replace_one_sampled(remove: Composition, add: Composition, rate: float) -> Directions:
    """Return both directions if one record of a Poisson sample is replaced by another one.

    Each of the two moves the output by the sensitivity, at worst in opposite directions. Raises ``InputError`` unless
    the loss belongs to a Gaussian.
    """
    if rate == 0 or not remove.laws:
        return NOTHING_LOST
    law = remove.laws[0]
    if not isinstance(law, GaussianLossDistribution) or law != add.laws[0]:
        remedy = "for other mechanisms use subset_sample, or two groups of add-remove"
        raise InputError("loss", "a loss of another mechanism", "a loss of Gaussian noise", remedy)
    if rate < 1 and not MIN_SHIFT <= law.mu <= MAX_SHIFT:
        raise InputError("sensitivity over scale", law.mu, f"from {MIN_SHIFT:g} to {MAX_SHIFT:g}")
    both = GaussianLossDistribution(2 * law.mu, law.rounding) if rate == 1 else ReplaceOneGaussian(law.mu, rate)
    return Composition.from_distribution(both), Composition.from_distribution(both)


def truncated_poisson_sampled(remove: Composition, add: Composition, rate: float, sizes: tuple[int, int]) -> Directions:
    """Return both directions if a record is replaced and samples are cut to a size; ``sizes``: it, and all records."""
    both, _ = replace_one_sampled(remove, add, rate)
    law = both.laws[0]
    if isinstance(law, ReplaceOneGaussian):
        both = Composition.from_distribution(_truncated_batches(law.mu, rate, *sizes))
    return both, both


_truncated_batches = lru_cache(maxsize=64)(truncated_batch_distribution)


def sample_subset(remove: Composition, add: Composition, rate: float) -> Directions:
    """Return both directions on a uniform subset of fixed size; they must have the same loss distribution."""
    if not remove.laws or rate == 0:
        return NOTHING_LOST
    law = common_distribution(remove.laws[0], add.laws[0])
    if law is None:
        remedy = "bound both by one first, such as tr.from_points with the larger delta at each epsilon"
        raise InputError("loss", "a pair whose two orders differ", "the same loss in both orders", remedy)
    if rate == 1:
        return remove, add
    both = Composition.from_distribution(subset_distribution(law, rate))
    return both, both


def group_directions(remove: Composition, add: Composition, size: int) -> Directions:
    """Return both directions for a group of records that are all added or removed, in every step.

    The number of those in a Poisson sample has the distribution Binomial(size, rate), and all may shift the output in
    one direction: the worst case (``docs/proofs/gaussian-mixture.md``). Raises ``InputError`` unless all steps are
    plain or Poisson-sampled Gaussians.
    """
    return _group_direction(remove, size), _group_direction(add, size)


def _group_direction(total: Composition, size: int) -> Composition:
    grouped = Composition((), ())
    for law, count in zip(total.laws, total.counts, strict=True):
        grouped = grouped + Composition.from_distribution(_grouped_distribution(law, size)) * count
    return grouped


def _grouped_distribution(law: LossDistribution, size: int) -> LossDistribution:
    if isinstance(law, GaussianLossDistribution):
        return GaussianLossDistribution(law.mu * size, law.rounding)
    if not isinstance(law, PoissonGaussian):
        remedy = "only Gaussian steps, Poisson-sampled or not; state others with the sensitivity of the whole group"
        raise InputError("loss", "another step", "of Gaussian steps of add-remove neighbors", remedy)
    if not (size < MAX_COMPONENTS and law.mu >= MIN_SHIFT and size * law.mu <= MAX_SHIFT):
        allowed = f"below {MAX_COMPONENTS}, and at most {MAX_SHIFT:g} times the scale over the sensitivity"
        raise InputError("size", size, allowed, "larger groups of sampled records are not supported")
    shifts = [law.mu * i for i in range(size + 1)]
    return mixture_distribution(shifts, binomial_log_weights(size, law.rate), remove=law.remove)


def allocate_gaussian(remove: Composition, add: Composition, steps: int) -> Directions:
    """Return both directions of an epoch in which each record is in one of ``steps`` Gaussian steps, at random."""
    if steps == 1 or not remove.laws:
        return remove, add
    law = remove.laws[0]
    if not isinstance(law, GaussianLossDistribution) or not 0 < law.mu <= MAX_ALLOCATED_MU:
        remedy = f"use gaussian(scale=...), with a scale of at least 1/{MAX_ALLOCATED_MU:g} of the sensitivity"
        raise InputError("loss", "a step of another mechanism", "that of a Gaussian step", remedy)
    from tightrope.accounting.distributions.allocated_gaussian import AllocatedGaussian

    removal = AllocatedGaussian(law.mu, steps, remove=True)
    return Composition.from_distribution(removal), Composition.from_distribution(removal.reverse_distribution())


def erase_directions(remove: Composition, add: Composition, probability: float) -> Directions:
    """Return both directions if the output is suppressed with this probability."""
    if probability == 0 or not remove.laws:
        return remove, add
    if probability == 1:
        return NOTHING_LOST
    first, second = remove.laws[0], add.laws[0]
    erased = Composition.from_distribution(_cached_erasure(first, probability))
    return erased, erased if second == first else Composition.from_distribution(_cached_erasure(second, probability))


def require_single_release(remove: Composition, releases: int, done: str) -> None:
    """Raise ``InputError`` unless the loss is of at most one release.

    Releases that all run on one sample are one mechanism, and its loss is not the sum of theirs: ``k *`` means a new
    sample for each release; for one sample shared by all, state their joint loss distribution.
    """
    count = max(releases, sum(remove.counts))
    if count > 1 and remove.laws:
        remedy = f"{done} each step, then compose: releases on one sample are one mechanism; state it as one"
        raise InputError("loss", f"{count} steps", "a single step", remedy)


def common_distribution(first: LossDistribution, second: LossDistribution) -> LossDistribution | None:
    """Return the distribution that both are, up to rounding; None if they differ."""
    if first == second:
        return first
    if not isinstance(first, Atoms) or not isinstance(second, Atoms):
        return None
    slack = first.rounding_error_bound + second.rounding_error_bound
    inexact = first.relative_mass_error + second.relative_mass_error + 4 * ROUND_OFF
    same = (
        first.losses.shape == second.losses.shape
        and bool(np.all(np.abs(first.losses - second.losses) <= slack))
        and bool(np.all(np.abs(first.masses - second.masses) <= inexact * first.masses))
        and abs(first.infinite_mass - second.infinite_mass) <= inexact * first.infinite_mass
        and abs(first.reverse_infinity_mass - second.reverse_infinity_mass) <= inexact * first.reverse_infinity_mass
    )
    return replace(first, rounding_error_bound=slack, relative_mass_error=inexact) if same else None


@lru_cache(maxsize=512)
def _poisson_sampled(law: LossDistribution, rate: float, *, remove: bool) -> LossDistribution:
    if isinstance(law, Atoms):
        return sampled_removal_loss(law, rate) if remove else sampled_addition_loss(law, rate)
    if isinstance(law, GaussianLossDistribution):
        return PoissonGaussian(law.mu, rate, remove=remove)
    if isinstance(law, GaussianMixture):
        return GaussianMixture(law.components.sample_all(rate), remove)
    return PoissonRemove(law, rate) if remove else PoissonAdd(law, rate)


_cached_erasure = lru_cache(maxsize=256)(erase_distribution)
