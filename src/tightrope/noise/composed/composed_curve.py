"""δ of many equal releases of one symmetric noise, in floats and fast, for searches.

**No certificate**: errors from rounding, aliasing and moving losses to a lattice are small but not bounded (the noise
found changes by at most about 1e−5 of its scale, usually far less). Tables from which noise is drawn are certified from
their integers (``lattice_table``).

One release is a pair (X, X + Δ). Its losses l, with masses under P, are on a lattice. The masses are tilted by
e^{cl − K(c)} to the saddle point of ε, Fourier-transformed, raised to a power and transformed back: so the masses of
the sum have full relative accuracy near ε.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Self

import numpy as np
import scipy

from tightrope.accounting.methods.grid import split_to_lattice
from tightrope.numerics.arrays import Floats
from tightrope.numerics.complex_functions import power_by_squaring

Indices = np.ndarray[tuple[int], np.dtype[np.int64]]

WINDOW_DEVIATIONS = 26.0
"""Half-width of the window in standard deviations of the tilted sum."""
MAX_TRANSFORM_LENGTH = 1 << 22
"""Maximal length of the Fourier transform."""
MAX_TILT_EXPONENT = 600.0
"""Largest product of tilt c and loss: larger ones are irrelevant and would overflow."""
NEGLIGIBLE_NATS = 40.0
"""Terms below e^{−40} of the largest are omitted."""
MAX_NEWTON_STEPS = 60
LOG_ZERO = -700.0
"""Stand-in for log 0."""


@dataclass(frozen=True, slots=True, eq=False)
class ReleaseLosses:
    """The losses ``step * offsets`` of one release with their masses under P, and the mass of infinite loss."""

    step: float
    offsets: Indices
    masses: Floats
    infinite_mass: float

    @classmethod
    def from_weights(cls, half_weights: Floats, shift: int, step: float) -> Self:
        """Return the losses of the weights of |x| = 0, 1, …; atoms off the lattice are split between its points.

        The masses under P and Q stay the same.
        """
        p, q = shifted_pair(half_weights, shift)
        both = (p > 0) & (q > 0)
        offsets, masses = split_to_lattice(np.log(p[both]) - np.log(q[both]), p[both], step)
        return cls(step, *_distinct_offsets(offsets, masses), math.fsum(p[~both]))

    @classmethod
    def from_heights(cls, heights: Indices, shift: int, step: float) -> Self:
        """Return the losses of weights e^{−step·heights[|x|]}, which are on the lattice."""
        half_weights = normalize_half_weights(np.exp(-step * (heights - heights[0])))
        p, _ = shifted_pair(half_weights, shift)
        reach = len(heights) - 1
        outcomes = np.arange(-reach + shift, reach + 1)
        offsets = heights[np.abs(outcomes - shift)] - heights[np.abs(outcomes)]
        return cls(step, *_distinct_offsets(offsets, p[shift : 2 * reach + 1]), float(np.sum(p[:shift])))

    @property
    def finite_losses(self) -> Floats:
        return np.asarray(self.step * self.offsets, dtype=np.float64)

    @property
    def largest_loss(self) -> float:
        """The largest finite loss."""
        return self.step * float(np.max(self.offsets[self.masses > 0], initial=0))


def _distinct_offsets(offsets: Indices, masses: Floats) -> tuple[Indices, Floats]:
    """Return the distinct offsets and their total masses."""
    distinct, indices = np.unique(offsets, return_inverse=True)
    return distinct, np.bincount(indices, weights=masses, minlength=len(distinct)).astype(np.float64)


def normalize_half_weights(half_weights: Floats) -> Floats:
    """Return P(X = 0), P(X = 1), … from the weights of |x| = 0, 1, …"""
    return np.asarray(half_weights / (2 * float(np.sum(half_weights)) - float(half_weights[0])))


def shifted_pair(half_weights: Floats, shift: int) -> tuple[Floats, Floats]:
    """Return P, Q [2N + 1 + shift]: the distributions of X and of X + shift over −N..N + shift."""
    whole, pad = np.concatenate([half_weights[:0:-1], half_weights]), np.zeros(shift)
    return np.concatenate([whole, pad]), np.concatenate([pad, whole])


@dataclass(frozen=True, slots=True, eq=False)
class TiltedSum:
    """The finite sum of losses: its mass under P at each of the ascending ``losses`` is
    e^{log_scale − tilt_rate·loss} · tilted_masses.
    """

    losses: Floats
    tilted_masses: Floats
    tilt_rate: float
    log_scale: float

    def log_delta(self, epsilon: float) -> float:
        """Return log Σ P(s) (1 − e^{ε − s}) over s > ε."""
        first = int(np.searchsorted(self.losses, epsilon, side="right"))
        last = int(np.searchsorted(self.losses, epsilon + NEGLIGIBLE_NATS / self.tilt_rate, side="right"))
        gap = epsilon - self.losses[first:last]
        # Twice as fast as expm1, and accurate enough.
        factors = np.exp(self.tilt_rate * gap) - np.exp((self.tilt_rate + 1) * gap)
        value = float(np.dot(self.tilted_masses[first:last], factors))
        return self.log_scale - self.tilt_rate * epsilon + math.log(value) if value > 0 else LOG_ZERO

    @property
    def untilted_masses(self) -> Floats:
        """The masses under P, where they are representable."""
        logs = np.minimum(self.log_scale - self.tilt_rate * self.losses, 600.0)
        return np.asarray(np.minimum(np.exp(logs) * self.tilted_masses, 1.0))


@dataclass(frozen=True, slots=True, eq=False)
class ComposedCurve:
    """The privacy curve of ``count`` equal releases."""

    single_release: ReleaseLosses
    count: int

    @property
    def infinite_mass(self) -> float:
        """The infinite-loss mass of all releases, 1 − (1 − δ_∞)^k."""
        return -math.expm1(self.count * math.log1p(-min(self.single_release.infinite_mass, 1 - 1e-16)))

    def log_delta(self, epsilon: float) -> float:
        """Return log δ(ε)."""
        log_infinite_mass = math.log(max(self.infinite_mass, math.exp(LOG_ZERO)))
        if self.count * self.single_release.largest_loss <= epsilon:
            return log_infinite_mass
        finite = self.sum_tilted_by(self.saddle_point(epsilon), self.count).log_delta(epsilon)
        return float(np.logaddexp(log_infinite_mass, finite))

    def saddle_point(self, epsilon: float) -> float:
        """Return the c with k K'(c) = ε + 1/c + 1/(1 + c), by Newton's method inside a bracket, to a relative 0.001."""
        losses, masses = self.single_release.finite_losses, self.single_release.masses
        low, high = 0.0, MAX_TILT_EXPONENT / max(float(np.max(np.abs(losses))), 1e-300)
        c = min(self._gaussian_saddle(epsilon), high / 2)
        for _ in range(MAX_NEWTON_STEPS):
            weights = masses * np.exp(c * losses)
            total = float(np.sum(weights))
            mean = float(np.dot(weights, losses)) / total
            variance = float(np.dot(weights, losses**2)) / total - mean * mean
            slope = self.count * mean - epsilon - 1 / c - 1 / (1 + c)
            low, high = (c, high) if slope < 0 else (low, c)
            step = -slope / (self.count * max(variance, 0.0) + 1 / c**2 + 1 / (1 + c) ** 2)
            c = c + step if low < c + step < high else (low + high) / 2
            if abs(step) < 1e-3 * c or high - low < 1e-9 * high:
                break
        return c

    def _gaussian_saddle(self, epsilon: float) -> float:
        """Return the saddle point for a Gaussian with the sum's mean and variance, with 2/c for 1/c + 1/(1 + c)."""
        mean = self.count * float(np.dot(self.single_release.masses, self.single_release.finite_losses))
        variance = self.count * float(np.dot(self.single_release.masses, self.single_release.finite_losses**2)) + 1e-300
        distance = epsilon - mean
        return (distance + math.sqrt(distance * distance + 8 * variance)) / (2 * variance)

    def sum_tilted_by(self, tilt: float, count: int) -> TiltedSum:
        """Return the finite sum of ``count`` releases, tilted, on the coarsest lattice that contains its losses."""
        losses, offsets = self.single_release.finite_losses, self.single_release.offsets
        weights = self.single_release.masses * np.exp(tilt * losses)
        total = float(np.sum(weights))
        lowest = int(offsets.min())
        stride = max(1, int(np.gcd.reduce(offsets - lowest)))
        # Positions, tilted masses and mean of one release, in lattice steps.
        release_offsets = (offsets - lowest) // stride
        release_weights = weights / total
        release_mean = float(np.dot(release_weights, release_offsets))
        deviation = math.sqrt(count * float(np.dot(release_weights, (release_offsets - release_mean) ** 2)))
        # The transform is long enough for the whole sum of `count` releases, or for all but a negligible part of it.
        release_low, release_high = float(np.min(release_offsets)), float(np.max(release_offsets))
        full_length = 2 * count * max(release_high - release_mean, release_mean - release_low) + 4
        window = WINDOW_DEVIATIONS * deviation + 2 * (release_high - release_low) + 16
        length = int(scipy.fft.next_fast_len(min(math.ceil(min(full_length, window)), MAX_TRANSFORM_LENGTH), real=True))
        center, middle = round(release_mean), round(count * release_mean)
        wrapped = np.bincount((release_offsets - center) % length, weights=release_weights, minlength=length)
        convolved = scipy.fft.irfft(power_by_squaring(scipy.fft.rfft(wrapped), count), length)
        sum_masses = np.maximum(np.roll(convolved, length // 2 - (middle - count * center)), 0.0)
        positions, masses = np.arange(length) + middle - length // 2, np.asarray(sum_masses, dtype=np.float64)
        points = np.asarray(self.single_release.step * (count * lowest + stride * positions), dtype=np.float64)
        return TiltedSum(points, masses, tilt, count * math.log(total))


# How δ of many releases changes with each weight of their common distribution: gradient and curvature of log δ.
#
# For fixed other k − 1 factors, δ_k = Σ_x Q_x φ(P_x / Q_x), φ(r) = r δ_{k−1}(ε − log r): an f-divergence, convex
# in (P, Q). So with S the loss of the others, r = P_x/Q_x and u = ε − log r
#
#     ∂δ/∂P_x = k P(S > u),    ∂δ/∂Q_x = −k E[e^{ε − S}; S > u],    curvature k f_S(u) (dP_x − r dQ_x)² / P_x.
#
# The gradient includes all k factors; the curvature omits their interaction. Both are evaluated on a lattice, but are
# not the derivatives of ``ComposedCurve.log_delta``: this has kinks where losses cross lattice points, and a search
# with its derivatives would fit the lattice.

UNTILTED_FROM = 1e-9
"""Tail probabilities above this are taken from the untilted sum."""
SMOOTHING_WIDTH = 0.05
"""The density of S is averaged over this many of its standard deviations."""


@dataclass(frozen=True, slots=True, eq=False)
class CurveDerivatives:
    """Log δ(ε), its gradient [N + 1] in the weights of 0, ±1, …, and its curvature as a band matrix [Δ + 1, N + 1].

    Row Δ − j of the band holds the entries (i − j, i) (``scipy.linalg.solveh_banded``).
    """

    log_delta: float
    gradient: Floats
    curvature_band: Floats


def composed_curve_derivatives(
    half_weights: Floats, shift: int, step: float, count: int, epsilon: float
) -> CurveDerivatives:
    """Return the derivatives at normalized weights; ``step`` is that of the lattice for the other releases."""
    curve = ComposedCurve(ReleaseLosses.from_weights(half_weights, shift, step), count)
    log_delta = curve.log_delta(epsilon)
    p, q = shifted_pair(half_weights, shift)
    both = (p > 0) & (q > 0)
    losses = np.log(p[both]) - np.log(q[both])
    others, scale = _OtherReleases.from_curve(curve, epsilon), count / math.exp(log_delta)
    gradient_p, gradient_q = np.where(q > 0, 0.0, scale), np.zeros_like(q)
    above, weighted = others.tail_masses(epsilon - losses)
    gradient_p[both], gradient_q[both] = scale * above, -scale * weighted
    reach = len(half_weights) - 1
    outcomes = np.arange(-reach, reach + shift + 1)
    rows, columns = np.abs(outcomes), np.abs(outcomes - shift)
    gradient = _fold_over_sign(rows, gradient_p, reach) + _fold_over_sign(columns, gradient_q, reach)
    curvature = scale * others.loss_density(epsilon - losses) / p[both]
    # The upper band of Σ curvature (e_row − ratio e_column)(e_row − ratio e_column)ᵀ.
    band_rows = rows[both]
    band_columns = columns[both]
    ratio = p[both] / q[both]
    shape = (shift + 1, reach + 1)
    band = np.zeros(shape)
    last = shape[0] - 1
    column_distance, right = np.abs(band_rows - band_columns), np.maximum(band_rows, band_columns)
    mixed_terms = -curvature * ratio * np.where(column_distance == 0, 2.0, 1.0)
    np.add.at(band, (np.full_like(band_rows, last), band_rows), curvature)
    np.add.at(band, (np.full_like(band_rows, last), band_columns), curvature * ratio**2)
    np.add.at(band, (last - column_distance, right), mixed_terms)
    return CurveDerivatives(log_delta, gradient, band)


def _fold_over_sign(positions: Indices, values: Floats, reach: int) -> Floats:
    """Return the sums of the values over x and −x."""
    inside = positions <= reach
    return np.bincount(positions[inside], weights=values[inside], minlength=reach + 1).astype(np.float64)


@dataclass(frozen=True, slots=True, eq=False)
class _OtherReleases:
    """The loss of k − 1 releases: tilted to the saddle point, for precise masses near ε, and untilted."""

    tilted_sum: TiltedSum
    untilted_sum: TiltedSum
    epsilon: float

    @classmethod
    def from_curve(cls, curve: ComposedCurve, epsilon: float) -> _OtherReleases:
        count = curve.count - 1
        return cls(curve.sum_tilted_by(curve.saddle_point(epsilon), count), curve.sum_tilted_by(0.0, count), epsilon)

    def loss_density(self, u: Floats) -> Floats:
        """Return the density of S at u, averaged over a short interval."""
        masses, losses = self.untilted_sum.untilted_masses, self.untilted_sum.losses
        mean = float(np.dot(masses, losses))
        half_width = SMOOTHING_WIDTH * math.sqrt(max(float(np.dot(masses, (losses - mean) ** 2)), 1e-300))
        mass = self.tail_masses(u - half_width)[0] - self.tail_masses(u + half_width)[0]
        return np.asarray(np.maximum(mass, 0.0) / (2 * half_width))

    def tail_masses(self, u: Floats) -> tuple[Floats, Floats]:
        """Return P(S > u) and E[e^{ε − S}; S > u]."""
        tilted, untilted = _sum_tails(self.tilted_sum, self.epsilon, u), _sum_tails(self.untilted_sum, self.epsilon, u)
        use_untilted = untilted[0] > UNTILTED_FROM
        return np.where(use_untilted, untilted[0], tilted[0]), np.where(use_untilted, untilted[1], tilted[1])


def _sum_tails(total: TiltedSum, epsilon: float, u: Floats) -> tuple[Floats, Floats]:
    """Return P(S > u) and E[e^{ε − S}; S > u] of one sum."""
    masses = total.untilted_masses
    positions = np.searchsorted(total.losses, u, side="right")
    above = np.append(np.cumsum(masses[::-1])[::-1], 0.0)
    weighted = masses * np.exp(np.minimum(epsilon - total.losses, 300.0))
    weighted_above = np.append(np.cumsum(weighted[::-1])[::-1], 0.0)
    return above[positions], weighted_above[positions]
