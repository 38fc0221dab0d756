"""Poisson-sampled Gaussian: the step of DP-SGD (theory §2, §3, §3.1; add-remove).

With A = N(0, 1), B = N(μ, 1) and l(x) = log g(x), g = 1 − q + q e^{μx − μ²/2}, removing a record compares (1−q)A + qB
with A (loss l) and adding one compares A with (1−q)A + qB (loss −l). So M(z) is ∫ φ g^{z+1} or ∫ φ g^{−z}, taken on a
line parallel to the real axis (``subsampled_gaussian_nodes``). ``docs/proofs/sampled-gaussian.md`` bounds the errors,
and |M(z)| for large Im z.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Self

import numpy as np
from scipy import special

from tightrope.accounting.distributions.base import LossDistribution
from tightrope.accounting.distributions.gaussian import GaussianLossDistribution
from tightrope.accounting.distributions.loss_cells import LossCells, mixed_loss
from tightrope.accounting.distributions.moment_quadrature import CumulantEnclosure, MomentQuadrature
from tightrope.accounting.distributions.subsampled import PoissonAdd, PoissonRemove
from tightrope.accounting.distributions.subsampled_gaussian_nodes import (
    LiftedPath,
    MomentIntegrand,
    build_quadrature,
    quadrature_beyond_cut,
)
from tightrope.errors import PrecisionError
from tightrope.numerics.arrays import Complexes, Floats

MAX_CACHED_POWER = 64.0
"""For larger powers the node arrays are long, so only 16 of them are cached."""
MIN_DECAY_RATE = 1e-9
"""Below this sampling rate the moment's decay in y is too slow to be used."""
POWER_CLASSES = np.array([2.0**i for i in (3, 6, *range(9, 73))])
"""Real powers with a modulus between two neighbors of this list share the nodes of the larger one."""
TRUNCATED_POWER_CLASSES = np.array([2.0**i for i in range(12, 73, 12)])
"""The same list for truncated distributions; it is coarser, because larger powers need no wider range."""


class LineMomentDistribution(LossDistribution):
    """Loss ± log g(x) of an outcome x on the real line: moments M = ∫ φ g^p by quadrature on a line or a curve.

    Outcomes x beyond ``cut`` count as infinite loss; only if ``remove``: then the loss is log g.
    """

    __slots__ = ()
    remove: bool
    cut: float

    @abstractmethod
    def integrand_with_exponent(self, exponent: float) -> MomentIntegrand:
        """Return the integrand φ g^p with Re p = ``exponent``."""

    @abstractmethod
    def with_tail_beyond(self, mass: float) -> Self:
        """Return a copy whose cut leaves at most this mass beyond it."""

    @property
    def needs_quadrature(self) -> bool:
        return True

    def trim_tail(self, mass: float) -> LineMomentDistribution:
        """Return a copy that counts the largest losses, of total mass at most ``mass``, as infinite.

        Adding a record has bounded losses: then return self.
        """
        return self.with_tail_beyond(mass) if self.remove else self

    @property
    def has_moment(self) -> bool:
        return True

    @property
    def reverse_infinity_mass(self) -> float:
        return 0.0

    @property
    def power_sign(self) -> int:
        """Sign of z in the power of g: p = z + 1 or −z."""
        return 1 if self.remove else -1

    def log_tail_integral(self, z: Complexes) -> CumulantEnclosure:
        """Return log of the tail integral ∫_{x > cut} φ g^{z+1} and its error.

        All z must be real, or have the same real part.
        """
        if np.any(z.imag):
            return _tail_quadrature(self, float(z.real[0])).enclose_cumulants(z + 1)
        return log_moments_by_power_class(
            z + 1, POWER_CLASSES, lambda power: _cached_tail(self.integrand_with_exponent(power), None)
        )

    def moment_integrand(self, c: float) -> MomentIntegrand:
        """Return the integrand of M(c + iy)."""
        return self.integrand_with_exponent(c + 1 if self.remove else -c)

    def log_moment(self, z: Complexes) -> Complexes:
        """Return K(z), any shape; see ``enclose_cumulant``."""
        return self.enclose_cumulant(z)[0]

    def log_moment_error(self, z: Complexes, moment: Complexes) -> Floats:
        """Return the error bound of ``enclose_cumulant`` at z."""
        del moment
        return self.enclose_cumulant(z)[1]

    def enclose_cumulant(self, z: Complexes) -> CumulantEnclosure:
        """Return K(z) and its error for z of any shape.

        Values below the real axis are conjugates of those above; z with equal Re z share one set of nodes.
        """
        return cumulants_by_real_part(z, self._cumulants_on_axis, self._cumulants_above_axis)

    def _cumulants_on_axis(self, z: Complexes) -> CumulantEnclosure:
        """Return K(z) and its error at real z, with cached nodes that all powers of a class share."""
        classes = TRUNCATED_POWER_CLASSES if self.cut < math.inf else POWER_CLASSES

        def real_axis_quadrature(power: float) -> MomentQuadrature:
            is_small = abs(power) <= MAX_CACHED_POWER or self.cut < math.inf
            return (_cached_small if is_small else _cached_large)(self.integrand_with_exponent(power), None)

        return log_moments_by_power_class(z + 1 if self.remove else -z, classes, real_axis_quadrature)

    def _cumulants_above_axis(self, c: float, z: Complexes) -> CumulantEnclosure:
        """Return K(z) and its error at z with Re z = c and Im z > 0."""
        return _line_quadrature(self, c).enclose_cumulants(z + 1 if self.remove else -z)

    def moment_decay_bound(self, c: float, y: float) -> float:
        """Return an upper bound on |M(c + iy')| / M(c) for all |y'| ≥ y (``LiftedPath``)."""
        return math.exp(_log_decay_bound(self, c, y)) if y > 0 else 1.0


@dataclass(frozen=True, slots=True)
class PoissonGaussian(LineMomentDistribution):
    """Privacy loss of one step in one direction: removing a record if ``remove``, otherwise adding one."""

    mu: float
    rate: float
    remove: bool
    cut: float = math.inf

    @property
    def infinite_mass(self) -> float:
        return float((1 - self.rate) * special.ndtr(-self.cut) + self.rate * special.ndtr(self.mu - self.cut))

    def with_tail_beyond(self, mass: float) -> PoissonGaussian:
        return replace(self, cut=tail_cutoff(mass, self.mu, self.rate))

    @property
    def moment_decay_bounds(self) -> bool:
        return self.cut == math.inf and self.rate > MIN_DECAY_RATE

    @property
    def largest_loss(self) -> float:
        return math.inf if self.remove else -math.log1p(-self.rate)

    @property
    def zcdp_ceiling(self) -> float:
        """That of the Gaussian without sampling, which loses more."""
        return GaussianLossDistribution(self.mu).zcdp_ceiling

    def reverse_distribution(self) -> PoissonGaussian:
        """Return the loss distribution of the pair in the other direction, without truncation."""
        return PoissonGaussian(self.mu, self.rate, not self.remove)

    def loss_at_outcome(self, x: Floats) -> Floats:
        """Return l(x) = log g(x) without overflow or cancellation near 0."""
        exponent = self.mu * x - self.mu**2 / 2
        loss = mixed_loss(exponent, self.rate)
        return np.where(exponent > 30, np.logaddexp(math.log(self.rate) + exponent, math.log1p(-self.rate)), loss)

    @property
    def _generic_subsampled(self) -> PoissonRemove | PoissonAdd:
        """The same distribution from the generic subsampling code, which has a closed-form profile."""
        base = GaussianLossDistribution(self.mu)
        return PoissonRemove(base, self.rate) if self.remove else PoissonAdd(base, self.rate)

    def profile(self, epsilon: Floats) -> Floats | None:
        """Return the closed form of a single step; None if the distribution is truncated."""
        return None if self.cut < math.inf else self._generic_subsampled.profile(epsilon)

    def profile_rounding_error(self, epsilon: Floats) -> Floats:
        """Return the error bound of the generic subsampled distribution's profile."""
        return self._generic_subsampled.profile_rounding_error(epsilon)

    def integrand_with_exponent(self, exponent: float) -> MomentIntegrand:
        return MomentIntegrand(self.mu, self.rate, exponent, self.power_sign, self.cut)

    def loss_cells(self, step: float) -> LossCells:
        return self._generic_subsampled.loss_cells(step)

    def loss_cells_between(self, step: float, low: float, high: float) -> LossCells:
        return self._generic_subsampled.loss_cells_between(step, low, high)

    def cells_by_count(self, count: int) -> LossCells:
        return self._generic_subsampled.cells_by_count(count)


def tail_cutoff(mass: float, mu: float, rate: float) -> float:
    """Return the x beyond which (1 − q) N(0, 1) + q N(μ, 1) has at most this mass."""
    return max(-float(special.ndtri(mass / 2)), mu - float(special.ndtri(min(0.5, mass / 2 / rate))))


def log_moments_by_power_class(
    powers: Complexes, class_limits: Floats, quadrature_for: Callable[[float], MomentQuadrature]
) -> CumulantEnclosure:
    """Return log M and its error at real powers [n].

    Powers of one sign between two ``class_limits`` use the quadrature of the larger limit.
    """
    values, errors = np.empty_like(powers), np.empty(len(powers))
    class_index = np.searchsorted(class_limits, np.abs(powers.real))
    if np.max(class_index) == len(class_limits):
        order = float(np.max(np.abs(powers.real)))
        raise PrecisionError(f"a moment of order {order:.3g} is beyond the supported range; use more noise")
    class_powers = np.copysign(class_limits[class_index], powers.real)
    for class_power in set(class_powers.tolist()):
        in_class = class_powers == class_power
        values[in_class], errors[in_class] = quadrature_for(class_power).enclose_cumulants(powers[in_class])
    return values, errors


def cumulants_by_real_part(
    z: Complexes,
    on_axis: Callable[[Complexes], CumulantEnclosure],
    above: Callable[[float, Complexes], CumulantEnclosure],
) -> CumulantEnclosure:
    """Return K and its error at z of any shape.

    ``on_axis`` is called for the real ones, ``above`` for each group with equal Re z; below the axis, K is conjugate.
    """
    flat = np.asarray(z, dtype=np.complex128).ravel()
    values, errors = np.empty_like(flat), np.empty(len(flat))
    real = flat.imag == 0
    if np.any(real):
        values[real], errors[real] = on_axis(flat[real])
    for c in set(flat.real[~real].tolist()):
        on_line = np.flatnonzero(~real & (flat.real == c))
        upper, errors[on_line] = above(c, np.asarray(c + 1j * np.abs(flat.imag[on_line])))
        values[on_line] = np.where(flat.imag[on_line] > 0, upper, upper.conj())
    return values.reshape(np.shape(z)), errors.reshape(np.shape(z))


# Cached quadratures and bounds. Few of the long node arrays of large powers are kept.


_cached_small = lru_cache(maxsize=512)(build_quadrature)
_cached_large = lru_cache(maxsize=16)(build_quadrature)
_cached_tail = lru_cache(maxsize=64)(quadrature_beyond_cut)


@lru_cache(maxsize=4096)
def _cumulant_at(distribution: LineMomentDistribution, c: float) -> tuple[float, float]:
    """Return K(c) and its error."""
    value, error = distribution.enclose_cumulant(np.array([complex(c)]))
    return float(value[0].real), float(error[0])


@lru_cache(maxsize=512)
def _line_quadrature(distribution: LineMomentDistribution, c: float) -> MomentQuadrature:
    return build_quadrature(distribution.moment_integrand(c), _cumulant_at(distribution, c)[0])


@lru_cache(maxsize=512)
def _lifted_path(distribution: LineMomentDistribution, c: float) -> LiftedPath:
    integrand = distribution.moment_integrand(c)
    log_moment, error = _cumulant_at(distribution, c)
    return LiftedPath.from_exponents(integrand, (integrand.real_exponent,), log_moment - error)


@lru_cache(maxsize=8192)
def _log_decay_bound(distribution: LineMomentDistribution, c: float, y: float) -> float:
    return _lifted_path(distribution, c).log_bound(y)


@lru_cache(maxsize=512)
def _tail_quadrature(distribution: LineMomentDistribution, c: float) -> MomentQuadrature:
    value, error = distribution.log_tail_integral(np.array([complex(c)]))
    return quadrature_beyond_cut(distribution.moment_integrand(c), float(value[0].real + error[0]))
