"""δ of many equal releases of one symmetric noise, in floats and fast: what searches look at.

**No certificate**: rounding, aliasing and the moving of losses to a lattice are small (near 1e−5 of the noise at
worst, usually far less) but not enclosed. What is sampled is certified from its integers (``lattice_table``).

One release is a pair (X, X + Δ). Its losses l with masses P sit on a lattice; tilted by e^{cl − K(c)} to the saddle of
ε they are transformed, raised to the power and transformed back: the sum's masses have full relative accuracy near ε.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Self

import numpy as np
import scipy

from tightrope.accounting.methods.grid import split_to_lattice
from tightrope.numerics.arrays import Complexes, Floats

Indices = np.ndarray[tuple[int], np.dtype[np.int64]]

SPREAD = 26.0
"""Half-width of the window in standard deviations of the tilted sum."""
MOST_CURVE_POINTS = 1 << 22
STEEPEST_TILT = 600.0
"""Largest c times a loss: larger products are irrelevant and would overflow."""
NEGLIGIBLE_NATS = 40.0
"""Terms smaller than the rest by a factor e^{−40} are left out."""
NEWTON = 60
FAINTEST = -700.0
"""Stand-in for log 0."""


@dataclass(frozen=True, slots=True, eq=False)
class ReleaseLosses:
    """The losses ``step * offsets`` of one release with their masses under P, and the mass of infinite loss."""

    step: float
    offsets: Indices
    masses: Floats
    infinite_mass: float

    @classmethod
    def from_weights(cls, half: Floats, shift: int, step: float) -> Self:
        """Return losses of any distribution: atoms off the lattice are split, keeping their masses under P and Q."""
        p, q = shifted_pair(half, shift)
        both = (p > 0) & (q > 0)
        offsets, masses = split_to_lattice(np.log(p[both]) - np.log(q[both]), p[both], step)
        return cls(step, *_distinct_offsets(offsets, masses), math.fsum(p[~both]))

    @classmethod
    def from_heights(cls, heights: Indices, shift: int, step: float) -> Self:
        """Return the losses of the distribution e^{−step·heights[|x|]}, which lie on the lattice."""
        half = normalize_half_weights(np.exp(-step * (heights - heights[0])))
        p, _ = shifted_pair(half, shift)
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
    """Distinct offsets and their masses."""
    distinct, places = np.unique(offsets, return_inverse=True)
    return distinct, np.bincount(places, weights=masses, minlength=len(distinct)).astype(np.float64)


def normalize_half_weights(half: Floats) -> Floats:
    """Probabilities of 0, 1, … from weights of 0, ±1, …"""
    return np.asarray(half / (2 * float(np.sum(half)) - float(half[0])))


def shifted_pair(half: Floats, shift: int) -> tuple[Floats, Floats]:
    """P, Q [2N + 1 + shift]: the distributions of X and of X + shift over −N..N + shift."""
    whole, pad = np.concatenate([half[:0:-1], half]), np.zeros(shift)
    return np.concatenate([whole, pad]), np.concatenate([pad, whole])


@dataclass(frozen=True, slots=True, eq=False)
class TiltedSum:
    """Masses under P of the finite sum at ascending losses are e^{log_scale − tilt·loss} · tilted."""

    losses: Floats
    tilted_masses: Floats
    tilt_rate: float
    log_scale: float

    def log_delta(self, epsilon: float) -> float:
        """Log Σ P(s) (1 − e^{ε − s}) over s > ε."""
        first = int(np.searchsorted(self.losses, epsilon, side="right"))
        last = int(np.searchsorted(self.losses, epsilon + NEGLIGIBLE_NATS / self.tilt_rate, side="right"))
        gap = epsilon - self.losses[first:last]
        gains = np.exp(self.tilt_rate * gap) - np.exp(
            (self.tilt_rate + 1) * gap
        )  # twice as fast as expm1, and near enough
        value = float(np.dot(self.tilted_masses[first:last], gains))
        return self.log_scale - self.tilt_rate * epsilon + math.log(value) if value > 0 else FAINTEST

    @property
    def untilted_masses(self) -> Floats:
        """Under P, where they are representable."""
        logs = np.minimum(self.log_scale - self.tilt_rate * self.losses, 600.0)
        return np.asarray(np.minimum(np.exp(logs) * self.tilted_masses, 1.0))


@dataclass(frozen=True, slots=True, eq=False)
class ComposedCurve:
    """``count`` releases."""

    single_release: ReleaseLosses
    count: int

    @property
    def infinite_mass(self) -> float:
        """1 − (1 − δ_∞)^k."""
        return -math.expm1(self.count * math.log1p(-min(self.single_release.infinite_mass, 1 - 1e-16)))

    def log_delta(self, epsilon: float) -> float:
        """Log δ(ε)."""
        lost = math.log(max(self.infinite_mass, math.exp(FAINTEST)))
        if self.count * self.single_release.largest_loss <= epsilon:
            return lost
        finite = self.sum_tilted_by(self.saddle_point(epsilon), self.count).log_delta(epsilon)
        return float(np.logaddexp(lost, finite))

    def saddle_point(self, epsilon: float) -> float:
        """The c with k K'(c) = ε + 1/c + 1/(1 + c), by Newton's method inside a bracket, to a thousandth."""
        losses, masses = self.single_release.finite_losses, self.single_release.masses
        low, high = 0.0, STEEPEST_TILT / max(float(np.max(np.abs(losses))), 1e-300)
        c = min(self._gaussian_saddle(epsilon), high / 2)
        for _ in range(NEWTON):
            weights = masses * np.exp(c * losses)
            whole = float(np.sum(weights))
            mean = float(np.dot(weights, losses)) / whole
            variance = float(np.dot(weights, losses**2)) / whole - mean * mean
            slope = self.count * mean - epsilon - 1 / c - 1 / (1 + c)
            low, high = (c, high) if slope < 0 else (low, c)
            step = -slope / (self.count * max(variance, 0.0) + 1 / c**2 + 1 / (1 + c) ** 2)
            c = c + step if low < c + step < high else (low + high) / 2
            if abs(step) < 1e-3 * c or high - low < 1e-9 * high:
                break
        return c

    def _gaussian_saddle(self, epsilon: float) -> float:
        """The same for a Gaussian with the mean and the variance of the sum, and 2/c for what is added to ε."""
        mean = self.count * float(np.dot(self.single_release.masses, self.single_release.finite_losses))
        variance = self.count * float(np.dot(self.single_release.masses, self.single_release.finite_losses**2)) + 1e-300
        above = epsilon - mean
        return (above + math.sqrt(above * above + 8 * variance)) / (2 * variance)

    def sum_tilted_by(self, tilt: float, count: int) -> TiltedSum:
        """The finite sum of ``count`` releases, tilted, on the coarsest lattice that holds it."""
        losses, offsets = self.single_release.finite_losses, self.single_release.offsets
        weights = self.single_release.masses * np.exp(tilt * losses)
        whole = float(np.sum(weights))
        lowest = int(offsets.min())
        stride = max(1, int(np.gcd.reduce(offsets - lowest)))
        # Places around the mean of the sum of `count` draws, and their masses, by transform.
        sum_offsets = (offsets - lowest) // stride
        sum_weights = weights / whole
        sum_mean = float(np.dot(sum_weights, sum_offsets))
        deviation = math.sqrt(count * float(np.dot(sum_weights, (sum_offsets - sum_mean) ** 2)))
        # A transform that holds the sum, or all of it that matters.
        sum_low, sum_high = float(np.min(sum_offsets)), float(np.max(sum_offsets))
        widest = 2 * count * max(sum_high - sum_mean, sum_mean - sum_low) + 4
        window = SPREAD * deviation + 2 * (sum_high - sum_low) + 16
        sum_points = int(scipy.fft.next_fast_len(min(math.ceil(min(widest, window)), MOST_CURVE_POINTS), real=True))
        center, middle = round(sum_mean), round(count * sum_mean)
        wrapped = np.bincount((sum_offsets - center) % sum_points, weights=sum_weights, minlength=sum_points)
        back = scipy.fft.irfft(_power_by_squaring(scipy.fft.rfft(wrapped), count), sum_points)
        sum_masses = np.maximum(np.roll(back, sum_points // 2 - (middle - count * center)), 0.0)
        places, masses = np.arange(sum_points) + middle - sum_points // 2, np.asarray(sum_masses, dtype=np.float64)
        points = np.asarray(self.single_release.step * (count * lowest + stride * places), dtype=np.float64)
        return TiltedSum(points, masses, tilt, count * math.log(whole))


def _power_by_squaring(base: Complexes, count: int) -> Complexes:
    """base^count by squaring."""
    result, square = np.ones_like(base), base
    while count:
        if count & 1:
            result = result * square
        count >>= 1
        if count:
            square = square * square
    return result


# How δ of many releases changes with each weight of their common distribution: gradient and curvature of log δ.
#
# With the other k − 1 factors held, δ_k = Σ_x Q_x φ(P_x / Q_x), φ(r) = r δ_{k−1}(ε − log r): an f-divergence, convex
# in (P, Q). So with S the loss of the others, r = P_x/Q_x and u = ε − log r
#
#     ∂δ/∂P_x = k P(S > u),    ∂δ/∂Q_x = −k E[e^{ε − S}; S > u],    curvature k f_S(u) (dP_x − r dQ_x)² / P_x.
#
# The gradient includes all k factors; the curvature omits their interaction. Both are read from a lattice, but are not
# derivatives of the value that ``composed_curve`` computes on one: that has kinks where losses cross lattice points,
# and a search that follows them fits the lattice.

LIKELY = 1e-9
"""Tail probabilities above this are read from the sum that is not tilted."""
SMOOTHED = 0.05
"""The density of S is averaged over this many of its standard deviations."""


@dataclass(frozen=True, slots=True, eq=False)
class CurveDerivatives:
    """Log δ(ε), its gradient [N + 1] in the weights of 0, ±1, …, and its curvature as a band matrix [Δ + 1, N + 1].

    Row Δ − j of the band holds the entries (i − j, i) (``scipy.linalg.solveh_banded``).
    """

    log_delta: float
    gradient: Floats
    curvature_band: Floats


def curve_derivatives(half: Floats, shift: int, step: float, count: int, epsilon: float) -> CurveDerivatives:
    """At normalized weights ``half``; the losses of the others on a lattice of width ``step``."""
    curve = ComposedCurve(ReleaseLosses.from_weights(half, shift, step), count)
    log_delta = curve.log_delta(epsilon)
    p, q = shifted_pair(half, shift)
    both = (p > 0) & (q > 0)
    losses = np.log(p[both]) - np.log(q[both])
    others, scale = _OtherReleases.from_curve(curve, epsilon), count / math.exp(log_delta)
    over_p, over_q = np.where(q > 0, 0.0, scale), np.zeros_like(q)
    above, below = others.tail_masses(epsilon - losses)
    over_p[both], over_q[both] = scale * above, -scale * below
    reach = len(half) - 1
    outcomes = np.arange(-reach, reach + shift + 1)
    rows, columns = np.abs(outcomes), np.abs(outcomes - shift)
    gradient = _fold_over_sign(rows, over_p, reach) + _fold_over_sign(columns, over_q, reach)
    dense = scale * others.loss_density(epsilon - losses) / p[both]
    # The upper band of Σ dense (e_row − ratio e_column)(…)ᵀ.
    band_rows = rows[both]
    band_columns = columns[both]
    ratio = p[both] / q[both]
    shape = (shift + 1, reach + 1)
    band = np.zeros(shape)
    last = shape[0] - 1
    apart, right = np.abs(band_rows - band_columns), np.maximum(band_rows, band_columns)
    cross = -dense * ratio * np.where(apart == 0, 2.0, 1.0)
    np.add.at(band, (np.full_like(band_rows, last), band_rows), dense)
    np.add.at(band, (np.full_like(band_rows, last), band_columns), dense * ratio**2)
    np.add.at(band, (last - apart, right), cross)
    return CurveDerivatives(log_delta, gradient, band)


def _fold_over_sign(places: Indices, values: Floats, reach: int) -> Floats:
    """Values added up over x and −x."""
    inside = places <= reach
    return np.bincount(places[inside], weights=values[inside], minlength=reach + 1).astype(np.float64)


@dataclass(frozen=True, slots=True, eq=False)
class _OtherReleases:
    """The loss of k − 1 releases: tilted to the saddle, where masses near ε are precise, and not tilted."""

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
        wide = SMOOTHED * math.sqrt(max(float(np.dot(masses, (losses - mean) ** 2)), 1e-300))
        held = self.tail_masses(u - wide)[0] - self.tail_masses(u + wide)[0]
        return np.asarray(np.maximum(held, 0.0) / (2 * wide))

    def tail_masses(self, u: Floats) -> tuple[Floats, Floats]:
        """P(S > u) and E[e^{ε − S}; S > u]."""
        near, plain = _sum_tails(self.tilted_sum, self.epsilon, u), _sum_tails(self.untilted_sum, self.epsilon, u)
        likely = plain[0] > LIKELY
        return np.where(likely, plain[0], near[0]), np.where(likely, plain[1], near[1])


def _sum_tails(total: TiltedSum, epsilon: float, u: Floats) -> tuple[Floats, Floats]:
    masses = total.untilted_masses
    places = np.searchsorted(total.losses, u, side="right")
    above = np.append(np.cumsum(masses[::-1])[::-1], 0.0)
    weighted = masses * np.exp(np.minimum(epsilon - total.losses, 300.0))
    below = np.append(np.cumsum(weighted[::-1])[::-1], 0.0)
    return above[places], below[places]
