"""Laplace noise on the real line."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from tightrope.accounting.bounds import TrueValueOf
from tightrope.accounting.distributions.base import FlatForm, LossDistribution
from tightrope.accounting.distributions.loss_cells import LossCells, loss_step_multiples
from tightrope.accounting.privacy_loss import PrivacyLoss
from tightrope.mechanisms.discrete.integer_mechanism import IntegerMechanism
from tightrope.mechanisms.discrete.integer_tables import geometric_table
from tightrope.mechanisms.discrete.noise_table import NoiseTable
from tightrope.mechanisms.mechanism import (
    ContinuousMechanism,
    check_noise_size,
    full_disclosure_loss,
    sensitivity_ratio,
)
from tightrope.numerics.arrays import Complexes, Floats
from tightrope.numerics.checks import check_integer
from tightrope.numerics.complex_functions import log1p
from tightrope.numerics.rounding import OVERFLOW, ROUND_OFF

# The loss of Laplace noise, full or truncated: two atoms at ±ε and an exponential density between them.

DOUBLINGS = 12


@dataclass(frozen=True, slots=True)
class LaplaceDistribution(LossDistribution):
    """Mass δ at +∞, ½ − δ at +ε, (½ − δ)e^{−ε} at −ε, density (s/4) e^{(l−ε)/2} between (theory §3); its own reverse.

    s = 1 + 2δ/(e^ε − 1). δ = 0 is the Laplace mechanism with ε = Δ/b; δ > 0 the truncated one.
    """

    epsilon: float
    delta: float = 0.0
    rounding: float = 0.0

    @property
    def infinite_mass(self) -> float:
        return self.delta

    @property
    def reverse_infinity_mass(self) -> float:
        return self.delta

    @property
    def largest_loss(self) -> float:
        return self.epsilon

    @property
    def _density_excess(self) -> float:
        """S − 1."""
        return 2 * self.delta * math.exp(-self.epsilon) / -math.expm1(-self.epsilon) if self.delta else 0.0

    def reverse_distribution(self) -> LaplaceDistribution:
        return self

    @property
    def flat_form(self) -> FlatForm:
        """Flat form: atoms (½ − δ) e^{−ε/2}, density (s/4) e^{−ε/2}."""
        middle = math.exp(-self.epsilon / 2)
        return FlatForm(
            self.epsilon, (0.5 - self.delta) * middle, (1 + self._density_excess) / 2 * self.epsilon * middle
        )

    def profile(self, epsilon: Floats) -> Floats:
        """Return δ + (½ − δ)(1 − u²) + (s/2)(1 − u)² with u = e^{(ε' − ε)/2} between ±ε; 1 − e^{ε'} below."""
        epsilon = np.asarray(epsilon, dtype=np.float64)
        gap = np.minimum(epsilon, self.epsilon) - self.epsilon
        one_minus_u = -np.expm1(gap / 2)
        inside = self.delta + (0.5 - self.delta) * -np.expm1(gap) + (1 + self._density_excess) / 2 * one_minus_u**2
        beyond = 0.0 - np.expm1(np.minimum(epsilon, 0.0)) + self.delta * np.exp(np.minimum(epsilon, 0.0))
        return np.where(epsilon < -self.epsilon, beyond, inside)

    def log_moment(self, z: Complexes) -> Complexes:
        """Return log M(z), as log(1 + (M − 1)) unless it overflows, so that small ε keeps its digits."""
        if float(np.max(z.real)) * self.epsilon > OVERFLOW:
            return self._scaled_log_moment(z)
        up, down = np.expm1(z * self.epsilon), np.expm1(-(z + 1) * self.epsilon)
        moment_minus_one = ((z + 1) * up + z * down) / (2 * z + 1)
        moment_minus_one = (
            moment_minus_one - self.delta * (up + down + 2) + self._density_excess / 2 * (up - down) / (2 * z + 1)
        )
        return log1p(np.asarray(moment_minus_one, dtype=np.complex128))

    def _scaled_log_moment(self, z: Complexes) -> Complexes:
        """Return log M(z) with e^{zε} factored out."""
        down = np.exp(-(2 * z + 1) * self.epsilon)
        inner = (0.5 - self.delta) * (1 + down) + (1 + self._density_excess) / 2 * (1 - down) / (2 * z + 1)
        return np.asarray(z * self.epsilon + np.log(inner))

    def log_moment_error(self, z: Complexes, moment: Complexes) -> Floats:
        """Bound the error: the first-order terms of M − 1 cancel, and the rest is accurate to a rounding."""
        clipped_moment = np.exp(np.minimum(moment.real, 0.0))
        growth = np.maximum(1.0, (1 + np.abs(z)) / np.abs(2 * z + 1))
        first_order = 2 * np.abs(z) * np.abs(z + 1) / np.abs(z + 0.5) * self.epsilon
        return np.asarray(
            8 * ROUND_OFF * np.minimum(first_order, (4 + np.abs(z.real) * self.epsilon) * growth) / clipped_moment
        )

    @property
    def rounding_error_bound(self) -> float:
        """ε itself may be a rounded quotient."""
        return self.rounding * self.epsilon

    def moment_decay_bound(self, c: float, y: float) -> float:
        """Return a bound: the density decays like 1/|2z + 1|, the atoms do not; 1 − |φ(2y)|² ≤ 4 (1 − |φ(y)|²)."""
        down = math.exp(-(2 * c + 1) * self.epsilon)
        log_scaled_moment = float(self.log_moment(np.array([complex(c)]))[0].real) - c * self.epsilon

        def mass_ratio_at(reach: float) -> float:
            density = (1 + self._density_excess) / 2 / abs(complex(2 * c + 1, 2 * reach))
            top = (0.5 - self.delta + density) * (1 + down)
            return math.exp(min(0.0, math.log(top) - log_scaled_moment))

        doubled = ((1 - mass_ratio_at(y * 2.0**m) ** 2) / 4.0**m for m in range(DOUBLINGS))
        return math.sqrt(max(0.0, 1 - max(doubled)))

    def loss_cells(self, step: float) -> LossCells:
        return self.cut_at_losses(loss_step_multiples(-self.epsilon, self.epsilon, step))

    def cut_at_losses(self, edges: Floats) -> LossCells:
        """Return the two atoms, and intervals with their exact masses."""
        atom, ends = 0.5 - self.delta, np.array([self.epsilon, -self.epsilon])
        atoms = LossCells.from_atoms(ends, np.array([atom, atom * math.exp(-self.epsilon)]), self.delta, self.delta)
        return atoms.join_bounds(exponential_cells(self.epsilon, (1 + self._density_excess) / 2, edges))


def exponential_cells(epsilon: float, weight: float, edges: Floats) -> LossCells:
    """Return cells with these edges for the density (weight/2) e^{(l−ε)/2} on [−ε, ε].

    A cell of half-width t at a has P-mass w (e^t − 1) and e^a·Q-mass w (1 − e^{−t}), w = weight e^{(a−ε)/2}, so
    w · 4 sinh²(t/2) / (1 − e^{−2t}) goes to its upper end.
    """
    edges = np.unique(np.concatenate([[-epsilon, epsilon], edges[np.abs(edges) < epsilon]]))
    half = np.diff(edges) / 2
    scale = weight * np.exp((edges[:-1] - epsilon) / 2)
    high = scale * 4 * np.sinh(half / 2) ** 2 / -np.expm1(-2 * half)
    return LossCells(edges[:-1], edges[1:], scale * np.expm1(half) - high, high, 0.0, 0.0)


@dataclass(frozen=True, slots=True)
class Laplace(ContinuousMechanism):
    """Density e^{−|x|/scale}/(2·scale): ε = sensitivity/scale, δ = 0."""

    scale: float
    sensitivity: float
    integer_counterpart = "discrete_laplace"

    @property
    def loss(self) -> PrivacyLoss:
        """Privacy loss that dominates all shifts up to the sensitivity. Infinite if scale = 0."""
        epsilon = sensitivity_ratio(self.scale, self.sensitivity)
        if math.isinf(epsilon):
            return full_disclosure_loss(self.scale)
        exact = Fraction(self.sensitivity) / Fraction(self.scale) == Fraction(epsilon)
        law = LaplaceDistribution(epsilon, rounding=0.0 if exact else 2.0**-53)
        return PrivacyLoss.from_distribution(law, true_value_of=TrueValueOf.MECHANISMS)

    @property
    def mean_absolute_error(self) -> float:
        return self.scale

    @property
    def mean_squared_error(self) -> float:
        return 2 * self.scale * self.scale

    @property
    def worst_error(self) -> float:
        return math.inf if self.scale > 0 else 0.0

    def _upper_quantile(self, tail: float) -> float:
        return -self.scale * math.log(2 * tail)


def laplace(*, scale: float, sensitivity: float = 1.0) -> Laplace:
    """Return Laplace noise of mean absolute error ``scale``: (sensitivity/scale, 0)-private, η = 1 − e^{−ε/2}.

    For accounting: ``sample`` raises and names ``discrete_laplace``. Without noise (``scale=0``) the loss is infinite:
    δ = 1 at every ε. Raises ``InputError`` unless the scale is finite and not negative, the sensitivity finite and
    positive, the scale at most 10³⁰⁰ times as large.

    >>> round(laplace(scale=1).loss.total_variation(), 12)
    0.393469340287
    """
    return Laplace(*check_noise_size(scale, sensitivity))


# Discrete Laplace noise: pure ε-DP on the integers.


@dataclass(frozen=True, slots=True)
class DiscreteLaplace(IntegerMechanism):
    """P(X = x) ∝ e^{−|x|/scale} on all integers; ε = sensitivity / scale, δ = 0."""

    scale: float
    sensitivity: int
    table: NoiseTable


def discrete_laplace(*, scale: float, sensitivity: int = 1) -> DiscreteLaplace:
    """Return discrete Laplace (two-sided geometric) noise: E|X| = 1/sinh(1/scale), E X² = ½/sinh²(1/(2 scale)).

    Its tail is exact, so δ = 0; the actual scale is larger by 2⁻⁴⁸, so that the certified ε, rounding included, is at
    most sensitivity / scale. Raises ``InputError`` unless 1/40 ≤ scale ≤ 10⁶ and sensitivity is an integer ≥ 1.

    >>> noise = discrete_laplace(scale=2)
    >>> round(noise.mean_squared_error, 6), round(noise.loss.delta(0.5), 15), noise.half_width(0.95)
    (7.835396, 0.0, 6)
    """
    sensitivity = check_integer("sensitivity", sensitivity, remedy="round the answers to fixed point first")
    table = geometric_table(scale)
    return DiscreteLaplace(float(scale), sensitivity, table)
