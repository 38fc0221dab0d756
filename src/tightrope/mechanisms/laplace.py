"""Laplace noise on the real line."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from tightrope.accounting.distributions.base import Flat, LossLaw
from tightrope.accounting.distributions.loss_cells import Cells, multiples
from tightrope.accounting.privacy_loss import PrivacyLoss
from tightrope.mechanisms.discrete.integer_mechanism import IntegerMechanism
from tightrope.mechanisms.discrete.integer_tables import geometric_table
from tightrope.mechanisms.discrete.noise_table import NoiseTable
from tightrope.mechanisms.mechanism import Continuous, checked, disclosed, ratio
from tightrope.numerics.arrays import Complexes, Floats
from tightrope.numerics.checks import whole
from tightrope.numerics.complex_functions import log1p
from tightrope.numerics.rounding import OVERFLOW, ROUND_OFF

# The loss of Laplace noise, whole or truncated: two atoms at ±ε and an exponential density between them.

DOUBLINGS = 12


@dataclass(frozen=True, slots=True)
class LaplaceLaw(LossLaw):
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
    def opposite_mass(self) -> float:
        return self.delta

    @property
    def largest(self) -> float:
        return self.epsilon

    @property
    def _excess(self) -> float:
        """S − 1."""
        return 2 * self.delta * math.exp(-self.epsilon) / -math.expm1(-self.epsilon) if self.delta else 0.0

    def reverse(self) -> LaplaceLaw:
        return self

    @property
    def flat(self) -> Flat:
        """Atoms (½ − δ) e^{−ε/2}, density (s/4) e^{−ε/2}."""
        middle = math.exp(-self.epsilon / 2)
        return Flat(self.epsilon, (0.5 - self.delta) * middle, (1 + self._excess) / 2 * self.epsilon * middle)

    def profile(self, epsilon: Floats) -> Floats:
        """δ + (½ − δ)(1 − u²) + (s/2)(1 − u)² with u = e^{(ε' − ε)/2} between ±ε; 1 − e^{ε'} below."""
        epsilon = np.asarray(epsilon, dtype=np.float64)
        gap = np.minimum(epsilon, self.epsilon) - self.epsilon
        lost = -np.expm1(gap / 2)
        inside = self.delta + (0.5 - self.delta) * -np.expm1(gap) + (1 + self._excess) / 2 * lost**2
        beyond = 0.0 - np.expm1(np.minimum(epsilon, 0.0)) + self.delta * np.exp(np.minimum(epsilon, 0.0))
        return np.where(epsilon < -self.epsilon, beyond, inside)

    def log_moment(self, z: Complexes) -> Complexes:
        """Log M(z), as log(1 + (M − 1)) where nothing overflows so that small ε keeps its digits."""
        if float(np.max(z.real)) * self.epsilon > OVERFLOW:
            return self._far(z)
        up, down = np.expm1(z * self.epsilon), np.expm1(-(z + 1) * self.epsilon)
        rest = ((z + 1) * up + z * down) / (2 * z + 1)
        rest = rest - self.delta * (up + down + 2) + self._excess / 2 * (up - down) / (2 * z + 1)
        return log1p(np.asarray(rest, dtype=np.complex128))

    def _far(self, z: Complexes) -> Complexes:
        """The same with e^{zε} pulled out."""
        down = np.exp(-(2 * z + 1) * self.epsilon)
        inner = (0.5 - self.delta) * (1 + down) + (1 + self._excess) / 2 * (1 - down) / (2 * z + 1)
        return np.asarray(z * self.epsilon + np.log(inner))

    def moment_error(self, z: Complexes, moment: Complexes) -> Floats:
        """The first-order terms of M − 1 cancel: what is left knows them to a rounding."""
        shrunk = np.exp(np.minimum(moment.real, 0.0))
        steep = np.maximum(1.0, (1 + np.abs(z)) / np.abs(2 * z + 1))
        small = 2 * np.abs(z) * np.abs(z + 1) / np.abs(z + 0.5) * self.epsilon
        return np.asarray(8 * ROUND_OFF * np.minimum(small, (4 + np.abs(z.real) * self.epsilon) * steep) / shrunk)

    @property
    def slack(self) -> float:
        """ε itself may be a rounded quotient."""
        return self.rounding * self.epsilon

    def decay(self, c: float, y: float) -> float:
        """The atoms do not decay, the density does, like 1/|2z + 1|; nearer by 1 − |φ(2y)|² ≤ 4 (1 − |φ(y)|²)."""
        down = math.exp(-(2 * c + 1) * self.epsilon)
        here = float(self.log_moment(np.array([complex(c)]))[0].real) - c * self.epsilon

        def mass_ratio_at(reach: float) -> float:
            density = (1 + self._excess) / 2 / abs(complex(2 * c + 1, 2 * reach))
            top = (0.5 - self.delta + density) * (1 + down)
            return math.exp(min(0.0, math.log(top) - here))

        doubled = ((1 - mass_ratio_at(y * 2.0**m) ** 2) / 4.0**m for m in range(DOUBLINGS))
        return math.sqrt(max(0.0, 1 - max(doubled)))

    def cells(self, step: float) -> Cells:
        return self.cut(multiples(-self.epsilon, self.epsilon, step))

    def cut(self, edges: Floats) -> Cells:
        """The two atoms, and intervals with their exact masses."""
        atom, ends = 0.5 - self.delta, np.array([self.epsilon, -self.epsilon])
        atoms = Cells.atoms(ends, np.array([atom, atom * math.exp(-self.epsilon)]), self.delta, self.delta)
        return atoms.joined(exponential_cells(self.epsilon, (1 + self._excess) / 2, edges))


def exponential_cells(epsilon: float, weight: float, edges: Floats) -> Cells:
    """Cells with these edges of the density (weight/2) e^{(l−ε)/2} on [−ε, ε].

    A cell of half-width t at a has P-mass w (e^t − 1) and e^a·Q-mass w (1 − e^{−t}), w = weight e^{(a−ε)/2}, so
    w · 4 sinh²(t/2) / (1 − e^{−2t}) goes to its upper end.
    """
    edges = np.unique(np.concatenate([[-epsilon, epsilon], edges[np.abs(edges) < epsilon]]))
    half = np.diff(edges) / 2
    scale = weight * np.exp((edges[:-1] - epsilon) / 2)
    high = scale * 4 * np.sinh(half / 2) ** 2 / -np.expm1(-2 * half)
    return Cells(edges[:-1], edges[1:], scale * np.expm1(half) - high, high, 0.0, 0.0)


@dataclass(frozen=True, slots=True)
class Laplace(Continuous):
    """Density e^{−|x|/scale}/(2·scale): ε = sensitivity/scale, δ = 0."""

    scale: float
    sensitivity: float
    twin = "discrete_laplace"

    @property
    def loss(self) -> PrivacyLoss:
        """Dominates all shifts up to the sensitivity. An infinite loss where there is no noise."""
        epsilon = ratio(self.scale, self.sensitivity)
        if math.isinf(epsilon):
            return disclosed(self.scale)
        exact = Fraction(self.sensitivity) / Fraction(self.scale) == Fraction(epsilon)
        return PrivacyLoss.of(LaplaceLaw(epsilon, rounding=0.0 if exact else 2.0**-53))

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
    """Laplace noise of mean absolute error ``scale``: (sensitivity/scale, 0)-private, η = 1 − e^{−ε/2} (theory §4).

    For accounting: ``sample`` raises and names ``discrete_laplace``. Without noise (``scale=0``) the loss is infinite:
    δ = 1 at every ε. Raises ``InputError`` unless the scale is finite and not negative, the sensitivity finite and
    positive, the scale at most 10³⁰⁰ times as large.

    >>> round(laplace(scale=1).loss.total_variation(), 12)
    0.393469340287
    """
    return Laplace(*checked(scale, sensitivity))


# Discrete Laplace noise: pure ε-DP on the integers.


@dataclass(frozen=True, slots=True)
class DiscreteLaplace(IntegerMechanism):
    """P(X = x) ∝ e^{−|x|/scale} on all integers; ε = sensitivity / scale, δ = 0."""

    scale: float
    sensitivity: int
    table: NoiseTable


def discrete_laplace(*, scale: float, sensitivity: int = 1) -> DiscreteLaplace:
    """Discrete Laplace (two-sided geometric) noise: E|X| = 1/sinh(1/scale), E X² = ½/sinh²(1/(2 scale)).

    Its tail is exact, so δ = 0; the scale that runs is larger by 2⁻⁴⁸, so that the certified ε, rounding included, is
    at most sensitivity / scale. Raises ``InputError`` unless 1/40 ≤ scale ≤ 10⁶ and sensitivity is a whole number ≥ 1.

    >>> noise = discrete_laplace(scale=2)
    >>> round(noise.mean_squared_error, 6), round(noise.loss.delta(0.5), 15), noise.half_width(0.95)
    (7.835396, 0.0, 6)
    """
    sensitivity = whole("sensitivity", sensitivity, remedy="round the answers to fixed point first")
    table = geometric_table(scale)
    return DiscreteLaplace(float(scale), sensitivity, table)
