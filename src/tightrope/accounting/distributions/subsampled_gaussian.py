"""Poisson-sampled Gaussian: the step of DP-SGD (theory §2, §3, §3.1; add-remove).

With A = N(0, 1), B = N(μ, 1) and l(x) = log g(x), g = 1 − q + q e^{μx − μ²/2}, removing a record compares (1−q)A + qB
with A (loss l) and adding one compares A with (1−q)A + qB (loss −l). So M(z) is ∫ φ g^{z+1} or ∫ φ g^{−z}, taken on a
line parallel to the real axis (``shifted_line``). ``docs/proofs/sampled-gaussian.md`` bounds the errors, and the
modulus far out.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import lru_cache

import numpy as np
from scipy import special

from tightrope.accounting.distributions.base import LossDistribution
from tightrope.accounting.distributions.gaussian import GaussianLossDistribution
from tightrope.accounting.distributions.line_moment import Enclosed, MomentLine
from tightrope.accounting.distributions.loss_cells import LossCells, mixed_loss
from tightrope.accounting.distributions.shifted_line import LiftedPath, PowerIntegrand, build_moment_line, tail_line
from tightrope.accounting.distributions.subsampled import PoissonAdd, PoissonRemove
from tightrope.errors import PrecisionError
from tightrope.numerics.arrays import Complexes, Floats

SHORT_POWER = 64.0
"""Larger powers have many nodes, so only a few such lines are cached."""
LEAST_DYING = 1e-9
"""At lower rates the losses are too small for the moment to decay at their scale."""
ALIKE = np.array([2.0**i for i in (3, 6, *range(9, 73))])
"""Real powers of a size between two of these share their nodes;"""
ALIKE_CUT = np.array([2.0**i for i in range(12, 73, 12)])
"""and between two of these for a truncated distribution, where larger powers do not need nodes further out."""


@dataclass(frozen=True, slots=True)
class PoissonGaussian(LossDistribution):
    """One direction; ``remove`` selects it."""

    mu: float
    rate: float
    remove: bool
    end: float = math.inf
    """Outcomes beyond it count as infinite loss; only for removing."""

    @property
    def needs_quadrature(self) -> bool:
        return True

    @property
    def infinite_mass(self) -> float:
        return float((1 - self.rate) * special.ndtr(-self.end) + self.rate * special.ndtr(self.mu - self.end))

    def trim_tail(self, mass: float) -> PoissonGaussian:
        """Return it with at most this mass of its largest losses counted as infinite, if they are unbounded."""
        return replace(self, end=cut_for(mass, self.mu, self.rate)) if self.remove else self

    @property
    def knows_moment(self) -> bool:
        return True

    @property
    def moment_decays(self) -> bool:
        return self.end == math.inf and self.rate > LEAST_DYING

    @property
    def opposite_mass(self) -> float:
        return 0.0

    @property
    def largest_loss(self) -> float:
        return math.inf if self.remove else -math.log1p(-self.rate)

    def reverse_distribution(self) -> PoissonGaussian:
        """The other direction of the same pair: log A/((1−q)A+qB) under A, or its opposite."""
        return PoissonGaussian(self.mu, self.rate, not self.remove)

    def sampled_loss(self, x: Floats) -> Floats:
        """l(x), without overflow and exact near zero."""
        exponent = self.mu * x - self.mu**2 / 2
        near = mixed_loss(exponent, self.rate)
        return np.where(exponent > 30, np.logaddexp(math.log(self.rate) + exponent, math.log1p(-self.rate)), near)

    @property
    def _general_distribution(self) -> PoissonRemove | PoissonAdd:
        base = GaussianLossDistribution(self.mu)
        return PoissonRemove(base, self.rate) if self.remove else PoissonAdd(base, self.rate)

    def profile(self, epsilon: Floats) -> Floats | None:
        """The closed form of a single step."""
        return None if self.end < math.inf else self._general_distribution.profile(epsilon)

    def profile_error(self, epsilon: Floats) -> Floats:
        """The same error as that of a sampled general distribution (``subsampled``)."""
        return self._general_distribution.profile_error(epsilon)

    @property
    def power_sign(self) -> int:
        """Sign of z in the power of g: p = z + 1 or −z."""
        return 1 if self.remove else -1

    def log_tail_integral(self, z: Complexes) -> Enclosed:
        """Log ∫ φ g^{z+1} beyond the cut, for z that are real or share their real part."""
        if np.any(z.imag):
            return _tail_moment_line(self, float(z.real[0])).enclose_cumulants(z + 1)
        return by_class(z + 1, ALIKE, lambda widest: _real_tail(self._power_integrand(widest)))

    def integrand_power(self, c: float) -> PowerIntegrand:
        """The integrand of M(c + iy)."""
        return PowerIntegrand(self.mu, self.rate, c + 1 if self.remove else -c, self.power_sign, self.end)

    def log_moment(self, z: Complexes) -> Complexes:
        """K(z), any shape; see ``enclose_cumulant``."""
        return self.enclose_cumulant(z)[0]

    def moment_error(self, z: Complexes, moment: Complexes) -> Floats:
        """See ``enclose_cumulant``."""
        del moment
        return self.enclose_cumulant(z)[1]

    def enclose_cumulant(self, z: Complexes) -> Enclosed:
        """K(z) and a bound on its error, z of any shape: conjugates below the real axis, line by line above it."""
        return by_line(z, self._on_axis, self._above_axis)

    def _on_axis(self, z: Complexes) -> Enclosed:
        """K(z) and its error at real z, with cached nodes that are shared by all powers of a class."""
        sizes = ALIKE_CUT if self.end < math.inf else ALIKE
        return by_class(z + 1 if self.remove else -z, sizes, lambda widest: _real_line(self._power_integrand(widest)))

    def _power_integrand(self, power: float) -> PowerIntegrand:
        """The integrand of this power."""
        return PowerIntegrand(self.mu, self.rate, power, self.power_sign, self.end)

    def _above_axis(self, c: float, z: Complexes) -> Enclosed:
        """K(z) and its error at z with Re z = c and Im z > 0."""
        return _moment_line(self, c).enclose_cumulants(z + 1 if self.remove else -z)

    def moment_decay_bound(self, c: float, y: float) -> float:
        """See ``LiftedPath``."""
        return math.exp(_log_tail_bound(self, c, y)) if y > 0 else 1.0

    def loss_cells(self, step: float) -> LossCells:
        return self._general_distribution.loss_cells(step)

    def cells_between(self, step: float, low: float, high: float) -> LossCells:
        return self._general_distribution.cells_between(step, low, high)

    def cells_by_count(self, count: int) -> LossCells:
        return self._general_distribution.cells_by_count(count)


def cut_for(mass: float, mu: float, rate: float) -> float:
    """Return the x beyond which (1 − q) N(0, 1) + q N(μ, 1) has at most this mass."""
    return max(-float(special.ndtri(mass / 2)), mu - float(special.ndtri(min(0.5, mass / 2 / rate))))


def by_class(powers: Complexes, sizes: Floats, nodes: Callable[[float], MomentLine]) -> Enclosed:
    """Log M at real powers [n]: powers of one sign between two ``sizes`` use the nodes of the larger one."""
    values, errors = np.empty_like(powers), np.empty(len(powers))
    places = np.searchsorted(sizes, np.abs(powers.real))
    if np.max(places) == len(sizes):
        raise PrecisionError(f"powers as large as {float(np.max(np.abs(powers.real))):.3g} are not known")
    widests = np.copysign(sizes[places], powers.real)
    for widest in set(widests.tolist()):
        chosen = widests == widest
        values[chosen], errors[chosen] = nodes(widest).enclose_cumulants(powers[chosen])
    return values, errors


def by_line(
    z: Complexes, on_axis: Callable[[Complexes], Enclosed], above: Callable[[float, Complexes], Enclosed]
) -> Enclosed:
    """K at z of any shape: real ones ``on_axis``, the others by lines of equal Re z above it, conjugates below."""
    flat = np.asarray(z, dtype=np.complex128).ravel()
    values, errors = np.empty_like(flat), np.empty(len(flat))
    real = flat.imag == 0
    if np.any(real):
        values[real], errors[real] = on_axis(flat[real])
    for c in set(flat.real[~real].tolist()):
        chosen = np.flatnonzero(~real & (flat.real == c))
        found, errors[chosen] = above(c, np.asarray(c + 1j * np.abs(flat.imag[chosen])))
        values[chosen] = np.where(flat.imag[chosen] > 0, found, found.conj())
    return values.reshape(np.shape(z)), errors.reshape(np.shape(z))


def _real_line(power: PowerIntegrand) -> MomentLine:
    return _short_line(power) if abs(power.real) <= SHORT_POWER or power.cut < math.inf else _long_line(power)


@lru_cache(maxsize=512)
def _short_line(power: PowerIntegrand) -> MomentLine:
    return build_moment_line(power, None)


@lru_cache(maxsize=16)
def _long_line(power: PowerIntegrand) -> MomentLine:
    return build_moment_line(power, None)


@lru_cache(maxsize=64)
def _real_tail(power: PowerIntegrand) -> MomentLine:
    return tail_line(power, None)


@lru_cache(maxsize=4096)
def _cumulant_at(law: PoissonGaussian, c: float) -> tuple[float, float]:
    """K(c) and its error."""
    value, error = law.enclose_cumulant(np.array([complex(c)]))
    return float(value[0].real), float(error[0])


@lru_cache(maxsize=512)
def _moment_line(law: PoissonGaussian, c: float) -> MomentLine:
    return build_moment_line(law.integrand_power(c), _cumulant_at(law, c)[0])


@lru_cache(maxsize=512)
def _lifted_path(law: PoissonGaussian, c: float) -> LiftedPath:
    power = law.integrand_power(c)
    return LiftedPath.from_powers(power, (power.real,), _cumulant_at(law, c)[0] - _cumulant_at(law, c)[1])


@lru_cache(maxsize=8192)
def _log_tail_bound(law: PoissonGaussian, c: float, y: float) -> float:
    return _lifted_path(law, c).log_bound(y)


@lru_cache(maxsize=512)
def _tail_moment_line(law: PoissonGaussian, c: float) -> MomentLine:
    value, error = law.log_tail_integral(np.array([complex(c)]))
    return tail_line(law.integrand_power(c), float(value[0].real + error[0]))
