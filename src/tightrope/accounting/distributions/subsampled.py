"""Poisson sampling of any loss distribution: each record is included with probability q, independently (theory §2).

A is the output distribution without the record, B with it (add-remove). Removing it compares (1−q)A + qB with A;
adding it compares A with (1−q)A + qB. The two directions compose separately; the worse is taken at the end.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from tightrope.accounting.distributions.atoms import Atoms
from tightrope.accounting.distributions.base import (
    BoundArrays,
    LossDistribution,
    bounds_by_sign_of_epsilon,
    bounds_midpoint,
    relative_half_width,
    scale_bounds,
)
from tightrope.accounting.distributions.flat_moment import (
    MIXTURE_ROUNDING,
    FlatMoment,
    base_epsilon_above,
    base_weight_and_epsilon,
    log_mixture,
    log_mixture_slope,
    relative_modulus_bound,
)
from tightrope.accounting.distributions.loss_cells import LossCells, loss_step_multiples, mixed_loss
from tightrope.accounting.distributions.moment_quadrature import CumulantEnclosure
from tightrope.numerics.arrays import Complexes, Floats
from tightrope.numerics.rounding import ROUND_OFF

MIN_MISSING_MASS = 1e-12
"""Masses whose sum differs from one by at most this add up to one up to rounding."""
STEEP_LOSS = 30.0
"""Cell losses beyond this are mapped by a sum of logarithms, with its own rounding error."""
EVERYWHERE = (-math.inf, math.inf)
Map = Callable[[Floats], Floats]


@dataclass(frozen=True, slots=True)
class PoissonRemove(LossDistribution):
    """Loss distribution of ((1−q)A + qB, A), from ``base``, the loss distribution of (B, A)."""

    base: LossDistribution
    rate: float

    @property
    def is_envelope(self) -> bool:
        return self.base.is_envelope

    @property
    def needs_quadrature(self) -> bool:
        return True

    @property
    def infinite_mass(self) -> float:
        return self.rate * self.base.infinite_mass

    @property
    def reverse_infinity_mass(self) -> float:
        return self.base.reverse_infinity_mass if self.rate == 1 else 0.0

    @property
    def largest_loss(self) -> float:
        top = self.base.largest_loss
        return top if math.isinf(top) or self.rate == 1 else float(log_mixture(np.array(top), self.rate))

    @property
    def zcdp_ceiling(self) -> float:
        """That of the base: e^{K} is convex in each of the two distributions, and is 1 if they are equal."""
        return self.base.zcdp_ceiling

    @property
    def infinity_mass_error(self) -> float:
        return self.base.infinity_mass_error + 4e-16

    @property
    def rounding_error_bound(self) -> float:
        """A loss moves by a fraction of the base's error (a larger fraction for larger losses), and is rounded."""
        return log_mixture_slope(self.base.largest_loss, self.rate) * self.base.rounding_error_bound + rounding_of(
            self.largest_loss, self.base.largest_loss
        )

    def compute_deltas(self, epsilon: BoundArrays) -> BoundArrays | None:
        """Return bounds on E_γ((1−q)A + qB ‖ A) = q E_γ'(B ‖ A) with γ' = (γ − 1 + q)/q, for γ ≥ 1."""
        base = self.base.compute_deltas(base_epsilon_above(epsilon, self.rate))
        return (
            None
            if base is None
            else scale_bounds(base, self.rate * (1 - MIXTURE_ROUNDING), self.rate * (1 + MIXTURE_ROUNDING))
        )

    def profile(self, epsilon: Floats) -> Floats | None:
        return bounds_midpoint(
            bounds_by_sign_of_epsilon(epsilon, self.compute_deltas, self.reverse_distribution().compute_deltas)
        )

    def profile_rounding_error(self, epsilon: Floats) -> Floats:
        return relative_half_width(
            bounds_by_sign_of_epsilon(epsilon, self.compute_deltas, self.reverse_distribution().compute_deltas),
            np.shape(epsilon),
        )

    def loss_cells(self, step: float) -> LossCells:
        """Cut where the sampled loss is a multiple of the step, l = log(1 + (e^λ − 1)/q); some bases use their own."""
        return self.loss_cells_between(step, *EVERYWHERE)

    def loss_cells_between(self, step: float, low: float, high: float) -> LossCells:
        return _add_missing_mass(cut_sampled_base(self, step, (low, high))).poisson_remove(self.rate)

    def cells_by_count(self, count: int) -> LossCells:
        return _add_missing_mass(self.base.cells_by_count(count)).poisson_remove(self.rate)

    def reverse_distribution(self) -> LossDistribution:
        return PoissonAdd(self.base.reverse_distribution(), self.rate)

    def log_moment(self, z: Complexes) -> Complexes | None:
        enclosure = self.enclose_cumulant(z)
        return None if enclosure is None else enclosure[0]

    def enclose_cumulant(self, z: Complexes) -> tuple[Complexes, Floats] | None:
        """Return log E_A (1 − q + q e^l)^{z+1} and its error for Laplace-type bases; None for others."""
        moment = _flat_moment(self.base, self.rate)
        return None if moment is None else moment.log_power(z + 1)

    def moment_decay_bound(self, c: float, y: float) -> float:
        moment = _flat_moment(self.base, self.rate)
        return 1.0 if moment is None else _modulus_bound(self, moment, complex(c, y), c + 1)


@dataclass(frozen=True, slots=True)
class PoissonAdd(LossDistribution):
    """Loss distribution of (A, (1−q)A + qB), from ``base``, the loss distribution of (A, B)."""

    base: LossDistribution
    rate: float

    @property
    def is_envelope(self) -> bool:
        return self.base.is_envelope

    @property
    def needs_quadrature(self) -> bool:
        return True

    @property
    def infinite_mass(self) -> float:
        return self.base.infinite_mass if self.rate == 1 else 0.0

    @property
    def reverse_infinity_mass(self) -> float:
        return self.rate * self.base.reverse_infinity_mass

    @property
    def largest_loss(self) -> float:
        """−log(1−q), or less if the base's loss is bounded."""
        if self.rate == 1:
            return self.base.largest_loss
        top = math.inf if self.base.infinite_mass > 0 else self.base.largest_loss
        return -math.log1p(-self.rate) if top == math.inf else -float(log_mixture(np.array(-top), self.rate))

    @property
    def zcdp_ceiling(self) -> float:
        """That of the base: e^{K} is convex in each of the two distributions, and is 1 if they are equal."""
        return self.base.zcdp_ceiling

    @property
    def infinity_mass_error(self) -> float:
        return self.base.infinity_mass_error + 4e-16

    @property
    def rounding_error_bound(self) -> float:
        """A loss moves by a fraction of the base's error (larger the further it is below 0), and is rounded."""
        steepest = log_mixture_slope(self.base.reverse_distribution().largest_loss, self.rate)
        return steepest * self.base.rounding_error_bound + rounding_of(self.largest_loss, self.base.largest_loss)

    def compute_deltas(self, epsilon: BoundArrays) -> BoundArrays | None:
        """Return bounds on E_γ(A ‖ (1−q)A + qB) = w E_γ'(A ‖ B), w = 1 − γ(1−q) and γ' = γq/w; 0 where w ≤ 0.

        For fixed ε and q it is the maximum of w A(S) − γq B(S) over events S, so it is nondecreasing in w and
        nonincreasing in ε.
        """
        weights, inner = base_weight_and_epsilon(epsilon, self.rate)
        base = self.base.compute_deltas(inner)
        return None if base is None else scale_bounds(base, *weights)

    def profile(self, epsilon: Floats) -> Floats | None:
        return bounds_midpoint(
            bounds_by_sign_of_epsilon(epsilon, self.compute_deltas, self.reverse_distribution().compute_deltas)
        )

    def profile_rounding_error(self, epsilon: Floats) -> Floats:
        return relative_half_width(
            bounds_by_sign_of_epsilon(epsilon, self.compute_deltas, self.reverse_distribution().compute_deltas),
            np.shape(epsilon),
        )

    def loss_cells(self, step: float) -> LossCells:
        """Cut where the sampled loss is a multiple of the step, by the mirror image of the map for removal."""
        return self.loss_cells_between(step, *EVERYWHERE)

    def loss_cells_between(self, step: float, low: float, high: float) -> LossCells:
        return _cut_base_evenly(
            self.base,
            (step, low, high),
            lambda loss: -_sampled_losses(-loss, self.rate),
            lambda loss: -_base_losses(-loss, self.rate),
        ).poisson_add(self.rate)

    def cells_by_count(self, count: int) -> LossCells:
        return self.base.cells_by_count(count).poisson_add(self.rate)

    def reverse_distribution(self) -> LossDistribution:
        return PoissonRemove(self.base.reverse_distribution(), self.rate)

    def log_moment(self, z: Complexes) -> Complexes | None:
        enclosure = self.enclose_cumulant(z)
        return None if enclosure is None else enclosure[0]

    def enclose_cumulant(self, z: Complexes) -> tuple[Complexes, Floats] | None:
        """Return log E_A (1 − q + q e^l)^{−z}, l the loss of (B, A), and its error for Laplace-type bases."""
        moment = _flat_moment(self.base.reverse_distribution(), self.rate)
        return None if moment is None else moment.log_power(-z)

    def moment_decay_bound(self, c: float, y: float) -> float:
        moment = _flat_moment(self.base.reverse_distribution(), self.rate)
        return 1.0 if moment is None else _modulus_bound(self, moment, complex(c, y), -c)


def _flat_moment(base: LossDistribution, rate: float) -> FlatMoment | None:
    """Return the moments of the sampled distribution, if the base is of Laplace type."""
    return FlatMoment.from_base(base.flat_form, rate, opposite=base.reverse_infinity_mass)


def _modulus_bound(distribution: PoissonRemove | PoissonAdd, moment: FlatMoment, point: complex, power: float) -> float:
    """Return a bound on |M(c + iy')| / M(c) for all y' ≥ y, with c + iy = ``point``."""

    def enclose_cumulant(z: Complexes) -> CumulantEnclosure:
        return moment.log_power(z + 1 if isinstance(distribution, PoissonRemove) else -z)

    return relative_modulus_bound(
        enclose_cumulant, point, moment.atom_moment(power), moment.oscillation_bound(power), moment.sampled_loss_span
    )


def rounding_of(largest: float, base: float) -> float:
    """Return the error of losses mapped from the base's, up to a largest one; 0 for an infinite one."""
    if not math.isfinite(largest):
        return 0.0
    return MIXTURE_ROUNDING * (abs(largest) + (base if STEEP_LOSS < base < math.inf else 0.0))


def cut_sampled_base(distribution: PoissonRemove, step: float, within: tuple[float, float] = EVERYWHERE) -> LossCells:
    """Cut the base of a sampled distribution at 0 and where the sampled loss is a multiple of the step."""
    return _cut_base_evenly(
        distribution.base,
        (step, *within),
        lambda loss: _sampled_losses(loss, distribution.rate),
        lambda loss: _base_losses(loss, distribution.rate),
    )


def _add_missing_mass(cells: LossCells) -> LossCells:
    """Add the mass missing under Q as an outcome that P never gives: this dominates.

    A cell whose mass under P underflows has no mass under Q in the sum, although the missing mass may be in it.
    """
    missing = 1 - cells.reverse_infinity_mass - math.fsum(cells.q_masses)
    return (
        replace(cells, reverse_infinity_mass=cells.reverse_infinity_mass + missing)
        if missing > MIN_MISSING_MASS
        else cells
    )


def _cut_base_evenly(
    base: LossDistribution, step_and_range: tuple[float, float, float], to_sampled: Map, to_base: Map
) -> LossCells:
    """Cut the base where its sampled loss is a multiple of a step, from one loss to another."""
    step, first, last = step_and_range
    outline = base.loss_cells(math.inf)
    ends = to_sampled(np.array([np.min(outline.lower), np.max(outline.upper)]))
    edges = to_base(loss_step_multiples(max(float(ends[0]), first), min(float(ends[1]), last), step))
    cut = base.cut_at_losses(np.append(edges[np.isfinite(edges)], 0.0))
    return base.loss_cells(step) if cut is None else cut


def _sampled_losses(loss: Floats, rate: float) -> Floats:
    return mixed_loss(np.minimum(loss, 600.0), rate)


def _base_losses(loss: Floats, rate: float) -> Floats:
    with np.errstate(divide="ignore", invalid="ignore"):
        small = np.log1p(np.expm1(np.minimum(loss, 600.0)) / rate)
    return np.where(np.isnan(small), -np.inf, small)


# Poisson sampling of a finite distribution, which stays finite (theory §2, add-remove).
#
# With B the outputs with the record and A those without it, an outcome of loss l = log B/A has mass (1−q)A + qB
# against A: the loss becomes log(1 − q + q e^l). Outcomes that only A has keep the loss log(1−q); those that only B
# has keep an infinite loss.


def sampled_removal_loss(base: Atoms, rate: float) -> Atoms:
    """Return the loss distribution of ((1−q)A + qB, A), 0 < q < 1, given the one of (B, A)."""
    losses = np.append(log_mixture(base.losses, rate), math.log1p(-rate))
    only_in_a = (1 - rate) * (base.reverse_infinity_mass + base.missing_reverse_mass)
    masses = np.append(rate * base.masses + (1 - rate) * base.reverse_masses, only_in_a)
    return _finite_sampled_distribution(PoissonRemove(base, rate), base, (losses, masses))


def sampled_addition_loss(base: Atoms, rate: float) -> Atoms:
    """Return the loss distribution of (A, (1−q)A + qB), 0 < q < 1, given the one of (A, B).

    Its infinite mass is only in A.
    """
    losses = np.append(-log_mixture(-base.losses, rate), -math.log1p(-rate))
    return _finite_sampled_distribution(
        PoissonAdd(base, rate), base, (losses, np.append(base.masses, base.infinite_mass))
    )


def _finite_sampled_distribution(
    distribution: PoissonRemove | PoissonAdd, base: Atoms, losses_and_masses: tuple[Floats, Floats]
) -> Atoms:
    """Return the finite distribution with its errors.

    Loss errors are a fraction of the base's; mass errors a factor e^slack, as a mass includes one of either side.

    A single step uses the formula of the base, whose losses are not rounded again and each have their own error.
    """
    losses, masses = losses_and_masses
    largest_base_loss = (
        base.largest_loss if isinstance(distribution, PoissonRemove) else -float(np.min(base.losses, initial=math.inf))
    )
    slack = log_mixture_slope(
        largest_base_loss + base.rounding_error_bound, distribution.rate
    ) * base.rounding_error_bound + MIXTURE_ROUNDING * float(np.max(np.abs(losses), initial=0.0))
    outside = {"infinite_mass": distribution.infinite_mass, "reverse_infinity_mass": distribution.reverse_infinity_mass}
    atoms = Atoms.merge_losses(losses, masses, **outside, rounding_error_bound=slack)
    mass_error = base.relative_mass_error + math.expm1(min(base.rounding_error_bound, 1.0)) + 8 * ROUND_OFF
    # The change of a loss relative to the base's is 1 − (1 − q) e^{∓l}.
    sign = -1 if isinstance(distribution, PoissonRemove) else 1
    with np.errstate(over="ignore"):
        change = np.clip(1 - (1 - distribution.rate) * np.exp(sign * atoms.losses), 0.0, 1.0) + 8 * ROUND_OFF
    rounding_error_bounds = base.rounding_error_bound * change * (1 + 1e-9) + MIXTURE_ROUNDING * np.abs(atoms.losses)
    formula = distribution if base.has_exact_reverse else None
    return replace(atoms, relative_mass_error=mass_error, formula=formula, rounding_error_bounds=rounding_error_bounds)
