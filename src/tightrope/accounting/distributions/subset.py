"""Subset sampling: m of n records without replacement, p = m/n, replace-one neighbors (GI Prop. 1, theory §2).

For a symmetric loss, δ_p(ε) = p δ(log(1 + (e^ε − 1)/p)) for ε ≥ 0, mirrored below 0. Losses above 0 come from outcomes
with the distribution pP + (1−p)Q against Q; losses below are their mirror image; the rest is an atom at 0.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import cast

import numpy as np
from scipy import special

from tightrope.accounting.distributions.atoms import Atoms
from tightrope.accounting.distributions.base import (
    BoundArrays,
    LossDistribution,
    bounds_by_sign_of_epsilon,
    bounds_midpoint,
    relative_half_width,
)
from tightrope.accounting.distributions.flat_moment import MAX_PLAIN_EXPONENT, FlatMoment, relative_modulus_bound
from tightrope.accounting.distributions.gaussian import GaussianLossDistribution
from tightrope.accounting.distributions.loss_cells import LossCells
from tightrope.accounting.distributions.moment_quadrature import CumulantEnclosure, MomentQuadrature, log_one_plus
from tightrope.accounting.distributions.subsampled import EVERYWHERE, PoissonRemove, cut_sampled_base
from tightrope.accounting.distributions.subsampled_gaussian import (
    POWER_CLASSES,
    PoissonGaussian,
    cumulants_by_real_part,
    log_moments_by_power_class,
    tail_cutoff,
)
from tightrope.accounting.distributions.subsampled_gaussian_nodes import (
    CURVE_ANGLE,
    CUT_APPROACH_NATS,
    LARGEST_BETA,
    MAX_NODES,
    NORMAL_TAIL_WIDTH,
    QUADRATURE_NATS,
    TRUNCATION_NATS,
    IntegrandCurve,
    LiftedPath,
    MomentIntegrand,
    complex_softplus,
    node_limit_error,
)
from tightrope.errors import PrecisionError
from tightrope.numerics.arrays import Complexes, Floats
from tightrope.numerics.rounding import ROUND_OFF

POWER_ONE = np.ones(1, dtype=np.complex128)


@dataclass(frozen=True, slots=True)
class Subset(LossDistribution):
    """The loss distribution of a symmetric ``base`` run on a subset; its own reverse."""

    base: LossDistribution
    rate: float

    @property
    def is_envelope(self) -> bool:
        return self.base.is_envelope

    @property
    def needs_quadrature(self) -> bool:
        return True

    @property
    def _positive_part(self) -> PoissonRemove:
        """Above 0 the pair equals the pair for removing a record from a Poisson sample."""
        return PoissonRemove(self.base, self.rate)

    @property
    def infinite_mass(self) -> float:
        return self.rate * self.base.infinite_mass

    @property
    def reverse_infinity_mass(self) -> float:
        return self.infinite_mass

    @property
    def largest_loss(self) -> float:
        return self._positive_part.largest_loss

    @property
    def infinity_mass_error(self) -> float:
        return self.base.infinity_mass_error + 4e-16

    @property
    def rounding_error_bound(self) -> float:
        return self._positive_part.rounding_error_bound

    @property
    def zcdp_ceiling(self) -> float:
        """The bound of the base, whose profile is larger everywhere."""
        return self.base.zcdp_ceiling

    def reverse_distribution(self) -> Subset:
        return self

    def compute_deltas(self, epsilon: BoundArrays) -> BoundArrays | None:
        return self._positive_part.compute_deltas(epsilon)

    def profile(self, epsilon: Floats) -> Floats | None:
        return bounds_midpoint(bounds_by_sign_of_epsilon(epsilon, self.compute_deltas, self.compute_deltas))

    def profile_rounding_error(self, epsilon: Floats) -> Floats:
        return relative_half_width(
            bounds_by_sign_of_epsilon(epsilon, self.compute_deltas, self.compute_deltas), np.shape(epsilon)
        )

    def log_moment(self, z: Complexes) -> Complexes | None:
        enclosure = self.enclose_cumulant(z)
        return None if enclosure is None else enclosure[0]

    def enclose_cumulant(self, z: Complexes) -> tuple[Complexes, Floats] | None:
        """Return K(z) and its error for Laplace-type bases; None for others.

        M(z) = 1 − δ_∞ + ∫ (e^{(z+1)g} − e^g + e^{−zg} − 1) dQ over base losses above 0.
        """
        moment = self._flat_moment
        if moment is None:
            return None
        if not moment.largest_exponent(z + 1) < MAX_PLAIN_EXPONENT:
            raise PrecisionError(f"a sampled loss has no moment of powers up to {float(np.max(np.abs(z))):.3g}")
        (up, up_error), (one, one_error) = (moment.moment_excess(w) for w in (z + 1, POWER_ONE))
        down, down_error = moment.moment_excess(-z)
        error = up_error + one_error + down_error
        error = error + 4 * ROUND_OFF * (np.abs(up) + np.abs(one) + np.abs(down) + self.infinite_mass)
        return log_one_plus(up - one + down - self.infinite_mass, error)

    def moment_decay_bound(self, c: float, y: float) -> float:
        moment = self._flat_moment
        if moment is None:
            return 1.0
        excess = float(moment.moment_excess(POWER_ONE)[0][0].real)
        zero_loss_mass = max(1 - self.infinite_mass - excess - 2 * moment.conditional_mass, 0.0)
        atoms = moment.atom_moment(c + 1) + moment.atom_moment(-c) + zero_loss_mass + 1e-12
        oscillation = moment.oscillation_bound(c + 1) + moment.oscillation_bound(-c)
        cumulant = cast(Callable[[Complexes], CumulantEnclosure], self.enclose_cumulant)
        return relative_modulus_bound(cumulant, complex(c, y), atoms, oscillation, 2 * moment.sampled_loss_span)

    @property
    def _flat_moment(self) -> FlatMoment | None:
        """Moments of the base's losses above 0."""
        return FlatMoment.from_base(self.base.flat_form, self.rate, above=True)

    def loss_cells(self, step: float) -> LossCells:
        """Return cells of the base with an edge at 0, so that each is on one side."""
        return self.loss_cells_between(step, *EVERYWHERE)

    def loss_cells_between(self, step: float, low: float, high: float) -> LossCells:
        return _both_sides(cut_sampled_base(self._positive_part, step, (min(low, -high), max(high, -low))), self.rate)

    def cells_by_count(self, count: int) -> LossCells:
        base = self.base.cells_by_count(count)
        contains_zero = bool(np.any((base.lower < 0) & (base.upper > 0)))
        return super().cells_by_count(count) if contains_zero else _both_sides(base, self.rate)


@lru_cache(maxsize=256)
def subset_distribution(distribution: LossDistribution, rate: float) -> LossDistribution:
    """Return the loss distribution of a symmetric loss run on a subset; finite distributions stay finite."""
    if isinstance(distribution, GaussianLossDistribution):
        return SubsetGaussian(distribution.mu, rate)
    if not isinstance(distribution, Atoms):
        return Subset(distribution, rate)
    cells = _both_sides(distribution.loss_cells(0.0), rate)
    infinite = cells.infinite_mass
    sampled = Subset(distribution, rate)
    atoms = Atoms.merge_losses(
        cells.lower,
        cells.p_masses,
        infinite_mass=infinite,
        reverse_infinity_mass=infinite,
        rounding_error_bound=sampled.rounding_error_bound,
    )
    mass_error = distribution.relative_mass_error + math.expm1(min(distribution.rounding_error_bound, 1.0)) + 8e-16
    return replace(atoms, relative_mass_error=mass_error, formula=sampled if distribution.has_exact_reverse else None)


def _both_sides(base: LossCells, rate: float) -> LossCells:
    """Return the cells above 0, sampled; their mirror image; and the rest at 0.

    With b and a the masses above 0 under both distributions of the base and c the one at 0, the rest is
    c + (1−p)(b − a + δ_∞), as all masses add up to one and the base is symmetric.
    """
    infinite = rate * base.infinite_mass
    positive = replace(base.select_cells((base.lower >= 0) & (base.upper > 0)), reverse_infinity_mass=0.0)
    above = replace(positive.poisson_remove(rate), infinite_mass=infinite, reverse_infinity_mass=infinite)
    differences = positive.low * -np.expm1(-positive.lower) + positive.high * -np.expm1(-positive.upper)
    at_zero = math.fsum(base.p_masses[(base.lower == 0) & (base.upper == 0)])
    zero_mass = at_zero + (1 - rate) * (math.fsum(differences) + base.infinite_mass)
    return above.join_bounds(above.reverse_cells()).join_bounds(
        LossCells.from_atoms(np.zeros(1), np.array([zero_mass]), 0.0, 0.0)
    )


# Nodes for the moments of a Gaussian on a subset: curves from μ/2 outwards (``docs/proofs/sampled-gaussian.md``).
#
# M(z) = 1 + ∫_{x>μ/2} φ (g (g^z − 1) + g^{−z} − 1) dx. The first part is taken on x = μ/2 + β log(1 + e^{τ + iα}),
# which leaves the real axis at an angle, levels off at the height αβ and is analytic in τ; the second on the
# conjugate. With βμ ≤ 1, |g| ≥ 1 on the whole strip between, so that for y > 0 both parts are at most as large there
# as on the real axis. The linear term is ∫ φ (g − 1) log g, of one sign on the real axis. If the distribution is
# truncated, the first curve ends on the axis.

SMALLEST_TAU = -22.0
"""Closer to μ/2 than e^{−22} the integrand, and so the error of leaving that part out, is O(e^{2τ})."""

PANEL_WIDTH = 0.25
"""Width of the panels of Gauss's rule."""
GAUSS_RULE = np.polynomial.legendre.leggauss(16)


def subset_quadrature(integrand: MomentIntegrand, log_moment: float | None) -> MomentQuadrature:
    """Return the quadrature of M: for real z up to c if ``log_moment`` is None.

    Otherwise ``log_moment`` is log M(c), and the nodes serve every z = c + iy, y > 0. ``integrand`` has the larger
    part, g^{c+1}.
    """
    beta = min(LARGEST_BETA, 1 / integrand.mu)
    strip_height = math.pi * beta / 2
    # On the strip's upper edge φ is larger, and where the curve is steep, x stands for its whole neighborhood.
    step = 2 * math.pi * CURVE_ANGLE / (QUADRATURE_NATS + strip_height**2 / 2 + integrand.mu / 2 + 4)
    angle = 0.0 if log_moment is None else CURVE_ANGLE
    high, normal_end = integrand.integration_range()[1], NORMAL_TAIL_WIDTH + integrand.mu
    above = _integration_curve(integrand, (beta, step, angle), high, ends_there=high == integrand.cut)
    below = _integration_curve(integrand, (beta, step, angle), normal_end, ends_there=False)
    real = below if angle == 0 else _integration_curve(integrand, (beta, step, 0.0), normal_end, ends_there=False)
    weight = np.exp(real.log_weight).real
    # ∫ φ g beyond the cut, in closed form, and ∫ φ g log g, by Gauss's rule: it falls by at most e^{−10} a panel.
    mass_beyond, linear_beyond = 0.0, 0.0
    if integrand.cut < math.inf:
        q = integrand.rate
        mass_beyond = float(q * special.ndtr(integrand.mu - integrand.cut) + (1 - q) * special.ndtr(-integrand.cut))
        panels = integrand.cut + PANEL_WIDTH * np.arange(math.ceil(NORMAL_TAIL_WIDTH / PANEL_WIDTH))
        x = (panels[:, None] + PANEL_WIDTH * (GAUSS_RULE[0] + 1) / 2).ravel()
        density = np.exp(integrand.log_values(x) + (1 - integrand.real_exponent) * integrand.log_g(x))
        gauss_weight = np.tile(GAUSS_RULE[1] * PANEL_WIDTH / 2, len(panels))
        linear_beyond = float((gauss_weight * density) @ integrand.log_g(x))
    terms = (weight * real.g_minus_one * real.loss).real
    term_error = real.weight_error + 2 * real.loss_error / np.maximum(np.abs(real.loss), 1e-300) + 8
    linear_error = float(terms @ term_error) * ROUND_OFF + 1e-12 * linear_beyond
    return MomentQuadrature(
        np.concatenate([above.log_weight + above.loss, below.log_weight.conj()]),
        np.concatenate([above.loss, -below.loss.conj()]),
        np.concatenate([above.weight_error, below.weight_error]) + len(above.x) + len(below.x) + 8,
        np.concatenate([above.loss_error, below.loss_error]),
        linear=complex(math.fsum(terms) - linear_beyond),
        linear_error=linear_error + 16 * math.exp(-QUADRATURE_NATS) * integrand.rate**2,
        zero_loss_mass=max(1 - float(np.sum(weight * (2 + real.g_minus_one.real))), 0.0),
        truncation_error=16 * math.exp(-QUADRATURE_NATS) * (1 + (integrand.mu * integrand.rate) ** 2),
        log_moment=math.nan if log_moment is None else log_moment,
        mass_beyond_cut=mass_beyond,
    )


def _integration_curve(
    integrand: MomentIntegrand, shape: tuple[float, float, float], high: float, *, ends_there: bool
) -> IntegrandCurve:
    """Return the curve from μ/2 to ``high`` for given β, step of τ and angle α; it ends at a cut, or continues."""
    beta, step, angle = shape
    length = (high - integrand.mu / 2) / beta
    largest_tau = length + (CUT_APPROACH_NATS if ends_there else TRUNCATION_NATS / 20)  # of first order at the cut
    node_count = (largest_tau - SMALLEST_TAU) / step
    if not node_count <= MAX_NODES:
        raise node_limit_error(integrand, node_count)
    tau = step * np.arange(math.floor(SMALLEST_TAU / step), math.ceil(largest_tau / step) + 1)
    w = np.asarray(tau + complex(0.0, angle), dtype=np.complex128)
    distance = complex_softplus(w)
    log_slope = w - distance
    if ends_there:  # distance = s(w) − s(w − T) and its slope is e^w (1 − e^{−T}) / (1 + e^w)(1 + e^{w−T})
        shifted = complex_softplus(np.asarray(w - length))
        distance, log_slope = distance - shifted, log_slope - shifted + math.log(-math.expm1(-length))
    x_minus_half_mu = beta * distance
    log_dx = math.log(step * beta) + log_slope
    return IntegrandCurve.from_points(integrand, integrand.mu / 2 + x_minus_half_mu, log_dx, x_minus_half_mu)


# Gaussian on a subset of fixed size: the step of DP-SGD with shuffled batches of m of n (GI Prop. 1; replace-one).
#
# With A = N(0, 1), B = N(μ, 1), g = 1 − p + p e^{μx − μ²/2} and l = log g, outcomes x > μ/2 have loss l and P-mass φ
# g; their mirror images have loss −l and P-mass φ; the rest is an atom at 0. So M(z) = 1 + ∫_{x > μ/2} φ (g (g^z − 1)
# + g^{−z} − 1), on a curve off the real axis (``subset_quadrature``; ``docs/proofs/sampled-gaussian.md``).


@dataclass(frozen=True, slots=True)
class SubsetGaussian(LossDistribution):
    """The loss distribution of a Gaussian on a subset; its own reverse."""

    mu: float
    rate: float
    cut: float = math.inf
    """Outcomes x beyond it count as infinite loss."""

    @property
    def needs_quadrature(self) -> bool:
        return True

    @property
    def infinite_mass(self) -> float:
        return _line_quadrature(self, 1.0).mass_beyond_cut if self.cut < math.inf else 0.0

    def trim_tail(self, mass: float) -> SubsetGaussian:
        """Return a copy that counts the largest losses, of total mass at most ``mass``, as infinite."""
        return replace(self, cut=tail_cutoff(mass, self.mu, self.rate))

    @property
    def has_moment(self) -> bool:
        return True

    @property
    def reverse_infinity_mass(self) -> float:
        return 0.0

    @property
    def largest_loss(self) -> float:
        return math.inf

    @property
    def zcdp_ceiling(self) -> float:
        """The bound of the Gaussian without sampling, whose profile is larger everywhere."""
        return GaussianLossDistribution(self.mu).zcdp_ceiling

    def reverse_distribution(self) -> SubsetGaussian:
        return self

    @property
    def _generic_subsampled(self) -> Subset:
        """The same distribution from the generic subsampling code, which has a closed-form profile."""
        return Subset(GaussianLossDistribution(self.mu), self.rate)

    def profile(self, epsilon: Floats) -> Floats | None:
        """Return the closed form of a single step; None if the distribution is truncated."""
        return None if self.cut < math.inf else self._generic_subsampled.profile(epsilon)

    def profile_rounding_error(self, epsilon: Floats) -> Floats:
        return self._generic_subsampled.profile_rounding_error(epsilon)

    def _moment_integrand(self, c: float) -> MomentIntegrand:
        """Return the integrand of the larger part of M(c + iy), g^{c+1}."""
        return MomentIntegrand(self.mu, self.rate, max(c + 1, 0.0), 1, self.cut)

    def loss_cells(self, step: float) -> LossCells:
        return self._generic_subsampled.loss_cells(step)

    def loss_cells_between(self, step: float, low: float, high: float) -> LossCells:
        return self._generic_subsampled.loss_cells_between(step, low, high)

    def cells_by_count(self, count: int) -> LossCells:
        return self._generic_subsampled.cells_by_count(count)

    def log_tail_integral(self, z: Complexes) -> CumulantEnclosure:
        """Return log of the tail integral ∫_{x > cut} φ g^{z+1} and its error.

        All z must be real, or have the same real part.
        """
        return PoissonGaussian(self.mu, self.rate, remove=True, cut=self.cut).log_tail_integral(z)

    def log_moment(self, z: Complexes) -> Complexes:
        """Return K(z), any shape; see ``enclose_cumulant``."""
        return self.enclose_cumulant(z)[0]

    def log_moment_error(self, z: Complexes, moment: Complexes) -> Floats:
        """Return the error bound of ``enclose_cumulant`` at z."""
        del moment
        return self.enclose_cumulant(z)[1]

    def enclose_cumulant(self, z: Complexes) -> CumulantEnclosure:
        """Return K(z) and its error for z of any shape.

        Values below the real axis are conjugates of those above; z with equal Re z share one set of nodes. Real z of a
        class share cached nodes.
        """
        return cumulants_by_real_part(
            z,
            lambda real: log_moments_by_power_class(
                real, POWER_CLASSES, lambda power: _cached_quadrature(self._moment_integrand(power), None)
            ),
            lambda c, upper: _line_quadrature(self, c).enclose_cumulants(upper),
        )

    def moment_decay_bound(self, c: float, y: float) -> float:
        """Return an upper bound on |M(c + iy')| / M(c) for all |y'| ≥ y (``LiftedPath``), 0's atom included."""
        return math.exp(_log_decay_bound(self, c, y)) if y > 0 else 1.0


@lru_cache(maxsize=4096)
def _cumulant_at(distribution: SubsetGaussian, c: float) -> tuple[float, float]:
    """Return K(c) and its error."""
    value, error = distribution.enclose_cumulant(np.array([complex(c)]))
    return float(value[0].real), float(error[0])


_cached_quadrature = lru_cache(maxsize=64)(subset_quadrature)


@lru_cache(maxsize=512)
def _line_quadrature(distribution: SubsetGaussian, c: float) -> MomentQuadrature:
    return subset_quadrature(distribution._moment_integrand(c), _cumulant_at(distribution, c)[0])


@lru_cache(maxsize=512)
def _lifted_path(distribution: SubsetGaussian, c: float) -> LiftedPath:
    log_moment, error = _cumulant_at(distribution, c)
    lower = log_moment - error
    zero_loss_mass = min(1.0, _line_quadrature(distribution, c).zero_loss_mass * math.exp(-lower) * (1 + 1e-9) + 1e-15)
    return LiftedPath.from_exponents(distribution._moment_integrand(c), (c + 1, -c), lower, zero_loss_mass)


@lru_cache(maxsize=8192)
def _log_decay_bound(distribution: SubsetGaussian, c: float, y: float) -> float:
    return _lifted_path(distribution, c).log_bound(y)
