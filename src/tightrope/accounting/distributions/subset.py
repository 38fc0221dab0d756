"""Subset sampling: m of n records without replacement, p = m/n, replace-one neighbors (GI Prop. 1, theory §2).

For a symmetric loss, δ_p(ε) = p δ(log(1 + (e^ε − 1)/p)) for ε ≥ 0, mirrored below 0. Losses above 0 come from outcomes
with the distribution pP + (1−p)Q against Q; losses below are their mirror image; the rest is an atom at 0.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import cast

import numpy as np
from scipy import special

from tightrope.accounting.distributions.atoms import Atoms
from tightrope.accounting.distributions.base import (
    Ends,
    LossDistribution,
    bounds_midpoint,
    by_sign,
    relative_half_width,
)
from tightrope.accounting.distributions.flat_moment import STEEP_POWER, FlatMoment, relative_modulus_bound
from tightrope.accounting.distributions.gaussian import GaussianLossDistribution
from tightrope.accounting.distributions.line_moment import Enclosed, MomentLine, log_one_plus
from tightrope.accounting.distributions.loss_cells import LossCells
from tightrope.accounting.distributions.shifted_line import (
    ANGLE,
    CUT_OFF_NATS,
    LEVEL,
    MOST_NODES,
    QUADRATURE_NATS,
    SHORT,
    TAIL,
    IntegrandCurve,
    LiftedPath,
    PowerIntegrand,
    complex_softplus,
)
from tightrope.accounting.distributions.subsampled import EVERYWHERE, PoissonRemove, cut_for
from tightrope.accounting.distributions.subsampled_gaussian import ALIKE, PoissonGaussian, by_class, by_line
from tightrope.accounting.distributions.subsampled_gaussian import cut_for as subset_cut_for
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
    def opposite_mass(self) -> float:
        return self.infinite_mass

    @property
    def largest_loss(self) -> float:
        return self._positive_part.largest_loss

    @property
    def infinite_error(self) -> float:
        return self.base.infinite_error + 4e-16

    @property
    def rounding_bound(self) -> float:
        return self._positive_part.rounding_bound

    def reverse_distribution(self) -> Subset:
        return self

    def compute_deltas(self, epsilon: Ends) -> Ends | None:
        return self._positive_part.compute_deltas(epsilon)

    def profile(self, epsilon: Floats) -> Floats | None:
        return bounds_midpoint(by_sign(epsilon, self.compute_deltas, self.compute_deltas))

    def profile_error(self, epsilon: Floats) -> Floats:
        return relative_half_width(by_sign(epsilon, self.compute_deltas, self.compute_deltas), np.shape(epsilon))

    def log_moment(self, z: Complexes) -> Complexes | None:
        known = self.enclose_cumulant(z)
        return None if known is None else known[0]

    def enclose_cumulant(self, z: Complexes) -> tuple[Complexes, Floats] | None:
        """1 − δ_∞ + ∫ (e^{(z+1)g} − e^g + e^{−zg} − 1) dQ over base losses above 0, for Laplace-type bases."""
        moment = self._flat_moment
        if moment is None:
            return None
        if not moment.largest_exponent(z + 1) < STEEP_POWER:
            raise PrecisionError(f"a sampled loss has no moment of powers up to {float(np.max(np.abs(z))):.3g}")
        (up, off), (one, wrong), (down, away) = (moment.moment_excess(w) for w in (z + 1, POWER_ONE, -z))
        error = off + wrong + away + 4 * ROUND_OFF * (np.abs(up) + np.abs(one) + np.abs(down) + self.infinite_mass)
        return log_one_plus(up - one + down - self.infinite_mass, error)

    def moment_decay_bound(self, c: float, y: float) -> float:
        moment = self._flat_moment
        if moment is None:
            return 1.0
        middle = (
            1 - self.infinite_mass - float(moment.moment_excess(POWER_ONE)[0][0].real) - 2 * moment.conditional_mass
        )
        still = moment.atom_moment(c + 1) + moment.atom_moment(-c) + max(middle, 0.0) + 1e-12
        swing = moment.oscillation_bound(c + 1) + moment.oscillation_bound(-c)
        return relative_modulus_bound(self._cumulant_bounds, complex(c, y), still, swing, 2 * moment.sampled_loss_span)

    def _cumulant_bounds(self, z: Complexes) -> Enclosed:
        return cast(Enclosed, self.enclose_cumulant(z))

    @property
    def _flat_moment(self) -> FlatMoment | None:
        """Moments of the base's losses above 0."""
        return FlatMoment.from_base(self.base.flat_form, self.rate, above=True)

    def loss_cells(self, step: float) -> LossCells:
        """Return cells of the base with an edge at 0, so that each is on one side."""
        return self.cells_between(step, *EVERYWHERE)

    def cells_between(self, step: float, low: float, high: float) -> LossCells:
        return _both_sides(cut_for(self._positive_part, step, (min(low, -high), max(high, -low))), self.rate)

    def cells_by_count(self, count: int) -> LossCells:
        base = self.base.cells_by_count(count)
        astride = bool(np.any((base.lower < 0) & (base.upper > 0)))
        return super().cells_by_count(count) if astride else _both_sides(base, self.rate)


def subset_distribution(law: LossDistribution, rate: float) -> LossDistribution:
    """The loss distribution of a symmetric loss run on a subset; finite distributions stay finite."""
    if not isinstance(law, Atoms):
        return Subset(law, rate)
    cells = _both_sides(law.loss_cells(0.0), rate)
    infinite = cells.infinite_mass
    sampled = Subset(law, rate)
    found = Atoms.merge_losses(
        cells.lower, cells.p_masses, infinite_mass=infinite, opposite_mass=infinite, slack=sampled.rounding_bound
    )
    inexact = law.relative_mass_error + math.expm1(min(law.rounding_bound, 1.0)) + 8e-16
    return replace(found, relative_mass_error=inexact, formula=sampled if law.has_exact_reverse else None)


def _both_sides(base: LossCells, rate: float) -> LossCells:
    """Return the cells above 0, sampled; their mirror image; and the rest at 0.

    With b and a the masses above 0 under both distributions of the base and c the one at 0, the rest is
    c + (1−p)(b − a + δ_∞), as all masses add up to one and the base is symmetric.
    """
    infinite = rate * base.infinite_mass
    positive = replace(base.select_cells((base.lower >= 0) & (base.upper > 0)), opposite_mass=0.0)
    above = replace(positive.poisson_remove(rate), infinite_mass=infinite, opposite_mass=infinite)
    gained = positive.low * -np.expm1(-positive.lower) + positive.high * -np.expm1(-positive.upper)
    middle = math.fsum(base.p_masses[(base.lower == 0) & (base.upper == 0)])
    rest = middle + (1 - rate) * (math.fsum(gained) + base.infinite_mass)
    return above.join_bounds(above.reverse_cells()).join_bounds(
        LossCells.from_atoms(np.zeros(1), np.array([rest]), 0.0, 0.0)
    )


# Nodes for the moments of a Gaussian on a subset: curves from μ/2 outwards (``docs/proofs/sampled-gaussian.md``).
#
# M(z) = 1 + ∫_{x>μ/2} φ (g (g^z − 1) + g^{−z} − 1) dx. The first part is taken on x = μ/2 + β log(1 + e^{τ + iα}),
# which leaves the real axis at an angle, levels off at the height αβ and is analytic in τ; the second on the
# conjugate. With βμ ≤ 1, |g| ≥ 1 on the whole strip between, so that for y > 0 both parts are at most as large there
# as on the real axis. The linear term is ∫ φ (g − 1) log g, of one sign on the real axis. If the distribution is
# truncated, the first curve ends on the axis.

NEAREST = -22.0
"""τ from which on x is distinguished from μ/2: the integrand, and so the error of cutting off, is O(e^{2τ}) there."""

PANEL = 0.25
GAUSS = np.polynomial.legendre.leggauss(16)


def power_of(mu: float, rate: float, c: float, cut: float) -> PowerIntegrand:
    """Return the integrand of the larger part, g^{c+1}."""
    return PowerIntegrand(mu, rate, max(c + 1, 0.0), 1, cut)


def subset_line(power: PowerIntegrand, log_moment: float | None) -> MomentLine:
    """Nodes for real z up to c without ``log_moment``; with ``log_moment`` = log M(c), for all z = c + iy, y > 0."""
    beta = min(LEVEL, 1 / power.mu)
    top = math.pi * beta / 2
    # On the strip's far side φ is larger, and where the curve is steep, x stands for its whole neighborhood.
    step = 2 * math.pi * ANGLE / (QUADRATURE_NATS + top**2 / 2 + power.mu / 2 + 4)
    angle = 0.0 if log_moment is None else ANGLE
    high = power.integration_range()[1]
    above = _integration_curve(power, (beta, step, angle), high, ends_there=high == power.cut)
    below = _integration_curve(power, (beta, step, angle), TAIL + power.mu, ends_there=False)
    real = below if angle == 0 else _integration_curve(power, (beta, step, 0.0), TAIL + power.mu, ends_there=False)
    weight = np.exp(real.log_weight).real
    # ∫ φ g beyond the cut, in closed form, and ∫ φ g log g, by Gauss's rule: it falls by at most e^{−10} a panel.
    if power.cut == math.inf:
        subset_line_beyond = 0.0, 0.0
    else:
        mass = power.rate * special.ndtr(power.mu - power.cut) + (1 - power.rate) * special.ndtr(-power.cut)
        panels = power.cut + PANEL * np.arange(math.ceil(TAIL / PANEL))
        x = (panels[:, None] + PANEL * (GAUSS[0] + 1) / 2).ravel()
        density = np.exp(power.log_size(x) + (1 - power.real) * power.log_g(x))
        subset_line_beyond_weight = np.tile(GAUSS[1] * PANEL / 2, len(panels))
        subset_line_beyond = float(mass), float((subset_line_beyond_weight * density) @ power.log_g(x))
    terms, gone = (weight * real.gain * real.loss).real, subset_line_beyond
    relative = real.blurred + 2 * real.moved / np.maximum(np.abs(real.loss), 1e-300) + 8
    return MomentLine(
        np.concatenate([above.log_weight + above.loss, below.log_weight.conj()]),
        np.concatenate([above.loss, -below.loss.conj()]),
        np.concatenate([above.blurred, below.blurred]) + len(above.x) + len(below.x) + 8,
        np.concatenate([above.moved, below.moved]),
        complex(math.fsum(terms) - gone[1]),
        float(terms @ relative) * ROUND_OFF + 1e-12 * gone[1] + 16 * math.exp(-QUADRATURE_NATS) * power.rate**2,
        max(1 - float(np.sum(weight * (2 + real.gain.real))), 0.0),
        16 * math.exp(-QUADRATURE_NATS) * (1 + (power.mu * power.rate) ** 2),
        math.nan if log_moment is None else log_moment,
        gone[0],
    )


def _integration_curve(
    power: PowerIntegrand, shape: tuple[float, float, float], high: float, *, ends_there: bool
) -> IntegrandCurve:
    """The curve from μ/2 to ``high``, for given β, step of τ and angle α; it ends there at a cut, or continues."""
    beta, step, angle = shape
    length = (high - power.mu / 2) / beta
    farthest = length + (SHORT if ends_there else CUT_OFF_NATS / 20)  # at the cut the integrand is of first order
    if not (farthest - NEAREST) / step <= MOST_NODES:
        raise PrecisionError(f"a moment of {power!r} on a subset needs {farthest / step:.3g} points")
    tau = step * np.arange(math.floor(NEAREST / step), math.ceil(farthest / step) + 1)
    first = np.asarray(tau + complex(0.0, angle), dtype=np.complex128)
    away = complex_softplus(first)
    log_slope = first - away
    if ends_there:  # away = s(w) − s(w − T) and its slope is e^w (1 − e^{−T}) / (1 + e^w)(1 + e^{w−T})
        late = complex_softplus(np.asarray(first - length))
        away, log_slope = away - late, log_slope - late + math.log(-math.expm1(-length))
    return IntegrandCurve.from_points(power, power.mu / 2 + beta * away, math.log(step * beta) + log_slope, beta * away)


# Gaussian on a subset of fixed size: the step of DP-SGD with shuffled batches of m of n (GI Prop. 1; replace-one).
#
# With A = N(0, 1), B = N(μ, 1), g = 1 − p + p e^{μx − μ²/2} and l = log g, outcomes x > μ/2 have loss l and P-mass φ
# g; their mirror images have loss −l and P-mass φ; the rest is an atom at 0. So M(z) = 1 + ∫_{x > μ/2} φ (g (g^z − 1)
# + g^{−z} − 1), on a curve off the real axis (``subset_line``; ``docs/proofs/sampled-gaussian.md``).


@dataclass(frozen=True, slots=True)
class SubsetGaussian(LossDistribution):
    """The loss distribution of a Gaussian on a subset; its own reverse."""

    mu: float
    rate: float
    end: float = math.inf
    """Outcomes beyond it count as infinite loss."""

    @property
    def needs_quadrature(self) -> bool:
        return True

    @property
    def infinite_mass(self) -> float:
        return _moment_line(self, 1.0).cut if self.end < math.inf else 0.0

    def trim_tail(self, mass: float) -> SubsetGaussian:
        """Return it with at most this mass of its largest losses counted as infinite."""
        return replace(self, end=subset_cut_for(mass, self.mu, self.rate))

    @property
    def knows_moment(self) -> bool:
        return True

    @property
    def opposite_mass(self) -> float:
        return 0.0

    @property
    def largest_loss(self) -> float:
        return math.inf

    def reverse_distribution(self) -> SubsetGaussian:
        return self

    @property
    def _general_distribution(self) -> Subset:
        return Subset(GaussianLossDistribution(self.mu), self.rate)

    def profile(self, epsilon: Floats) -> Floats | None:
        """The closed form of a single step."""
        return None if self.end < math.inf else self._general_distribution.profile(epsilon)

    def profile_error(self, epsilon: Floats) -> Floats:
        return self._general_distribution.profile_error(epsilon)

    def _power_integrand(self, c: float) -> PowerIntegrand:
        return power_of(self.mu, self.rate, c, self.end)

    def loss_cells(self, step: float) -> LossCells:
        return self._general_distribution.loss_cells(step)

    def cells_between(self, step: float, low: float, high: float) -> LossCells:
        return self._general_distribution.cells_between(step, low, high)

    def cells_by_count(self, count: int) -> LossCells:
        return self._general_distribution.cells_by_count(count)

    def log_tail_integral(self, z: Complexes) -> Enclosed:
        """Log ∫ φ g^{z+1} beyond the cut, for z that are real or share their real part."""
        return PoissonGaussian(self.mu, self.rate, remove=True, end=self.end).log_tail_integral(z)

    def log_moment(self, z: Complexes) -> Complexes:
        """K(z), any shape; see ``enclose_cumulant``."""
        return self.enclose_cumulant(z)[0]

    def moment_error(self, z: Complexes, moment: Complexes) -> Floats:
        """See ``enclose_cumulant``."""
        del moment
        return self.enclose_cumulant(z)[1]

    def enclose_cumulant(self, z: Complexes) -> Enclosed:
        """K(z) and a bound on its error, z of any shape: conjugates below the real axis, line by line above it."""
        return by_line(z, self._on_axis, lambda c, upper: _moment_line(self, c).enclose_cumulants(upper))

    def _on_axis(self, z: Complexes) -> Enclosed:
        """K(z) and its error at real z, with cached nodes that are shared by all z of a class."""
        return by_class(z, ALIKE, lambda widest: _real_line(self._power_integrand(widest)))

    def moment_decay_bound(self, c: float, y: float) -> float:
        """See ``LiftedPath``; the atom at 0 does not decay."""
        return math.exp(_log_tail_bound(self, c, y)) if y > 0 else 1.0


@lru_cache(maxsize=4096)
def _cumulant_at(law: SubsetGaussian, c: float) -> tuple[float, float]:
    """K(c) and its error."""
    value, error = law.enclose_cumulant(np.array([complex(c)]))
    return float(value[0].real), float(error[0])


@lru_cache(maxsize=64)
def _real_line(power: PowerIntegrand) -> MomentLine:
    return subset_line(power, None)


@lru_cache(maxsize=512)
def _moment_line(law: SubsetGaussian, c: float) -> MomentLine:
    return subset_line(law._power_integrand(c), _cumulant_at(law, c)[0])


@lru_cache(maxsize=512)
def _lifted_path(law: SubsetGaussian, c: float) -> LiftedPath:
    at_c = _cumulant_at(law, c)[0] - _cumulant_at(law, c)[1]
    still = min(1.0, _moment_line(law, c).still * math.exp(-at_c) * (1 + 1e-9) + 1e-15)
    return LiftedPath.from_powers(law._power_integrand(c), (c + 1, -c), at_c, still)


@lru_cache(maxsize=8192)
def _log_tail_bound(law: SubsetGaussian, c: float, y: float) -> float:
    return _lifted_path(law, c).log_bound(y)
