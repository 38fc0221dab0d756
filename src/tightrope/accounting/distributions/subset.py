"""Subset sampling: m of n records without replacement, p = m/n, replace-one neighbours (GI Prop. 1, theory §2).

For a symmetric loss, δ_p(ε) = p δ(log(1 + (e^ε − 1)/p)) for ε ≥ 0, mirrored below 0. Losses above 0 come from outcomes
whose law is pP + (1−p)Q against Q; losses below are their mirror; what is left is an atom at 0.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import cast

import numpy as np
from scipy import special

from tightrope.accounting.distributions.atoms import Atoms
from tightrope.accounting.distributions.base import Ends, LossLaw, by_sign, middle, spread
from tightrope.accounting.distributions.flat_moment import STEEP_POWER, FlatMoment, modulus
from tightrope.accounting.distributions.gaussian import GaussianLaw
from tightrope.accounting.distributions.line_moment import Enclosed, MomentLine, logarithm
from tightrope.accounting.distributions.loss_cells import Cells
from tightrope.accounting.distributions.shifted_line import (
    ANGLE,
    CUT_OFF_NATS,
    LEVEL,
    MOST_NODES,
    QUADRATURE_NATS,
    SHORT,
    TAIL,
    Curve,
    LiftedPath,
    Power,
    softplus,
)
from tightrope.accounting.distributions.subsampled import EVERYWHERE, PoissonRemove, cut_for
from tightrope.accounting.distributions.subsampled_gaussian import ALIKE, PoissonGaussian, by_class, by_line
from tightrope.accounting.distributions.subsampled_gaussian import cut_for as subset_cut_for
from tightrope.errors import PrecisionError
from tightrope.numerics.arrays import Complexes, Floats
from tightrope.numerics.rounding import ROUND_OFF

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
        middle = 1 - self.infinite_mass - float(moment.excess(POWER_ONE)[0][0].real) - 2 * moment.conditional_mass
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
    positive = replace(base.select_cells((base.lower >= 0) & (base.upper > 0)), opposite_mass=0.0)
    above = replace(positive.poisson_remove(rate), infinite_mass=infinite, opposite_mass=infinite)
    gained = positive.low * -np.expm1(-positive.lower) + positive.high * -np.expm1(-positive.upper)
    middle = math.fsum(base.p[(base.lower == 0) & (base.upper == 0)])
    rest = middle + (1 - rate) * (math.fsum(gained) + base.infinite_mass)
    return above.joined(above.mirrored()).joined(Cells.atoms(np.zeros(1), np.array([rest]), 0.0, 0.0))


# Nodes for the moments of a Gaussian on a subset: curves from μ/2 outwards (``docs/proofs/sampled-gaussian.md``).
#
# M(z) = 1 + ∫_{x>μ/2} φ (g (g^z − 1) + g^{−z} − 1) dx. The first part is taken on x = μ/2 + β log(1 + e^{τ + iα}),
# which leaves the real axis at an angle, levels off at the height αβ and is analytic in τ; the second on the
# conjugate. With βμ ≤ 1, |g| ≥ 1 on all of the strip between, so that for y > 0 neither part is larger there than on
# the real axis. The linear term is ∫ φ (g − 1) log g, of one sign on the real axis. Where the law is cut, the first
# curve ends on the axis.

NEAREST = -22.0
"""τ from which on x is told from μ/2: the integrand is of second order there, in e^τ, and so is what is cut off."""

PANEL = 0.25
GAUSS = np.polynomial.legendre.leggauss(16)


def power_of(mu: float, rate: float, c: float, cut: float) -> Power:
    """Of the larger part, g^{c+1}."""
    return Power(mu, rate, max(c + 1, 0.0), 1, cut)


def subset_line(power: Power, log_moment: float | None) -> MomentLine:
    """Nodes for real z up to c where ``log_moment`` is None; else for all z = c + iy, y > 0, log M(c) being known."""
    beta = min(LEVEL, 1 / power.mu)
    top = math.pi * beta / 2
    # On the strip's far side φ is larger, and where the curve is steep an x counts by its whole neighbourhood.
    step = 2 * math.pi * ANGLE / (QUADRATURE_NATS + top**2 / 2 + power.mu / 2 + 4)
    angle = 0.0 if log_moment is None else ANGLE
    high = power.ends()[1]
    above = _curve(power, (beta, step, angle), high, ends_there=high == power.cut)
    below = _curve(power, (beta, step, angle), TAIL + power.mu, ends_there=False)
    real = below if angle == 0 else _curve(power, (beta, step, 0.0), TAIL + power.mu, ends_there=False)
    weight = np.exp(real.log_weight).real
    # ∫ φ g beyond the cut, in closed form, and ∫ φ g log g, by Gauss's rule: it falls by e^{−10} a panel at most.
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


def _curve(power: Power, shape: tuple[float, float, float], high: float, *, ends_there: bool) -> Curve:
    """From μ/2 to ``high``, β, the step of τ and the angle α being given; it is left where it is cut, or goes on."""
    beta, step, angle = shape
    length = (high - power.mu / 2) / beta
    farthest = length + (SHORT if ends_there else CUT_OFF_NATS / 20)  # at the cut the integrand is of first order
    if not (farthest - NEAREST) / step <= MOST_NODES:
        raise PrecisionError(f"a moment of {power!r} on a subset needs {farthest / step:.3g} points")
    tau = step * np.arange(math.floor(NEAREST / step), math.ceil(farthest / step) + 1)
    first = np.asarray(tau + complex(0.0, angle), dtype=np.complex128)
    away = softplus(first)
    log_slope = first - away
    if ends_there:  # away = s(w) − s(w − T) and its slope is e^w (1 − e^{−T}) / (1 + e^w)(1 + e^{w−T})
        late = softplus(np.asarray(first - length))
        away, log_slope = away - late, log_slope - late + math.log(-math.expm1(-length))
    return Curve.of(power, power.mu / 2 + beta * away, math.log(step * beta) + log_slope, beta * away)


# Gaussian on a subset of fixed size: the step of DP-SGD with shuffled batches of m of n (GI Prop. 1; replace-one).
#
# With A = N(0, 1), B = N(μ, 1), g = 1 − p + p e^{μx − μ²/2} and l = log g, outcomes x > μ/2 have loss l and P-mass φ
# g; their mirror has loss −l and P-mass φ; the rest is an atom at 0. So M(z) = 1 + ∫_{x > μ/2} φ (g (g^z − 1) +
# g^{−z} − 1), on a curve beside the real axis (``subset_line``; ``docs/proofs/sampled-gaussian.md``).


@dataclass(frozen=True, slots=True)
class SubsetGaussian(LossLaw):
    """Its own reverse."""

    mu: float
    rate: float
    end: float = math.inf
    """What lies beyond it counts as infinite loss."""

    @property
    def integrated(self) -> bool:
        return True

    @property
    def infinite_mass(self) -> float:
        return _line(self, 1.0).cut if self.end < math.inf else 0.0

    def trimmed(self, mass: float) -> SubsetGaussian:
        """The same with no more than this mass of its largest losses counted as infinite."""
        return replace(self, end=subset_cut_for(mass, self.mu, self.rate))

    @property
    def knows_moment(self) -> bool:
        return True

    @property
    def opposite_mass(self) -> float:
        return 0.0

    @property
    def largest(self) -> float:
        return math.inf

    def reverse(self) -> SubsetGaussian:
        return self

    @property
    def _plain(self) -> Subset:
        return Subset(GaussianLaw(self.mu), self.rate)

    def profile(self, epsilon: Floats) -> Floats | None:
        """A single step in closed form."""
        return None if self.end < math.inf else self._plain.profile(epsilon)

    def profile_error(self, epsilon: Floats) -> Floats:
        return self._plain.profile_error(epsilon)

    def _power(self, c: float) -> Power:
        return power_of(self.mu, self.rate, c, self.end)

    def cells(self, step: float) -> Cells:
        return self._plain.cells(step)

    def between(self, step: float, low: float, high: float) -> Cells:
        return self._plain.between(step, low, high)

    def evenly(self, count: int) -> Cells:
        return self._plain.evenly(count)

    def tail(self, z: Complexes) -> Enclosed:
        """Log ∫ φ g^{z+1} beyond the cut, for z that are real or share their real part."""
        return PoissonGaussian(self.mu, self.rate, remove=True, end=self.end).tail(z)

    def log_moment(self, z: Complexes) -> Complexes:
        """K(z), any shape; see ``enclosed``."""
        return self.enclosed(z)[0]

    def moment_error(self, z: Complexes, moment: Complexes) -> Floats:
        """See ``enclosed``."""
        del moment
        return self.enclosed(z)[1]

    def enclosed(self, z: Complexes) -> Enclosed:
        """K(z) and a bound on its error, z of any shape: conjugates below the real axis, line by line above it."""
        return by_line(z, self._on_axis, lambda c, upper: _line(self, c).cumulants(upper))

    def _on_axis(self, z: Complexes) -> Enclosed:
        """At real z, by nodes that are kept: they serve every z of their class."""
        return by_class(z, ALIKE, lambda widest: _real_line(self._power(widest)))

    def decay(self, c: float, y: float) -> float:
        """See ``lifted_path``; the atom at 0 stays."""
        return math.exp(_log_tail_bound(self, c, y)) if y > 0 else 1.0


@lru_cache(maxsize=4096)
def _at(law: SubsetGaussian, c: float) -> tuple[float, float]:
    """K(c) and its error."""
    value, error = law.enclosed(np.array([complex(c)]))
    return float(value[0].real), float(error[0])


@lru_cache(maxsize=64)
def _real_line(power: Power) -> MomentLine:
    return subset_line(power, None)


@lru_cache(maxsize=512)
def _line(law: SubsetGaussian, c: float) -> MomentLine:
    return subset_line(law._power(c), _at(law, c)[0])


@lru_cache(maxsize=512)
def _path(law: SubsetGaussian, c: float) -> LiftedPath:
    at_c = _at(law, c)[0] - _at(law, c)[1]
    still = min(1.0, _line(law, c).still * math.exp(-at_c) * (1 + 1e-9) + 1e-15)
    return LiftedPath.of(law._power(c), (c + 1, -c), at_c, still)


@lru_cache(maxsize=8192)
def _log_tail_bound(law: SubsetGaussian, c: float, y: float) -> float:
    return _path(law, c).log_bound(y)
