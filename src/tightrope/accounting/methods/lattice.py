"""Exact composition of distributions with losses on one lattice: tilt, transform, raise to the power (theory §2).

The composed distribution is tilted to the saddle point of ε, so that the transform's absolute rounding error is
small *relative* to the mass that determines δ. Only positive terms are added afterwards.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import NamedTuple, Self

import numpy as np
import scipy

from tightrope.accounting.methods.method import EpsilonGuess, approximate_epsilon_at
from tightrope.errors import PrecisionError
from tightrope.numerics.arrays import Complexes, Floats
from tightrope.numerics.complex_functions import log1p, power_by_squaring
from tightrope.numerics.rounding import OVERFLOW, ROUND_OFF

Indices = np.ndarray[tuple[int], np.dtype[np.int64]]
MIN_BLOCK_SIZE = 64
"""Smallest number of points in a block."""
MAX_POINTS = 1 << 24
MIN_EXCESS = -1 + 1e-16
TINY_MASS = 1e-318
"""Bound on the sum of masses below double precision."""
LOG_ZERO = -1e4 + 0j
"""Stands for the logarithm of 0: its exponential is 0."""
MAX_SQUARED_COPIES = 1 << 12
"""Largest number of copies whose transforms are multiplied; more are raised to a power by logarithms."""
FEW_ATOMS = 48
"""Number of atoms up to which the characteristic function is summed term by term, with φ − 1 fully accurate."""
TILTS_PER_FACTOR_E = 8
"""Tilts are taken on a geometric grid, this many to a factor e, so that neighboring ε share a transform."""
CACHED_TILTS = 4
OUTLINE_POINTS = 1000
ESCAPING_MASS = 1e-19
SUM_TOLERANCE = 2e-15
"""Largest difference between the sum of the masses and its known value that rounding explains."""
MAX_BLOCK_EXPONENT = 0.1
MAX_LOG_FACTOR = 600.0


class TiltShape(NamedTuple):
    """The tilt c, approximate mean and variance of the sum tilted by it, and K(c)."""

    tilt: float
    mean: float
    variance: float
    log_scale: float


class LatticePoints(NamedTuple):
    """Losses step · (origin, origin + stride, …)."""

    step: float
    origin: int
    stride: int

    @property
    def step_width(self) -> float:
        return self.step * self.stride

    def losses_at(self, first: int, last: int) -> Floats:
        """Return the losses with these indices."""
        return self.step * np.asarray(self.origin + self.stride * np.arange(first, last), dtype=np.float64)


@dataclass(frozen=True, eq=False)
class TiltedSum:
    """A tilted sum on a lattice, with all that δ needs for every ε: masses m_l, and their sums over blocks.

    With P-masses e^{K − cl} m_l, δ(ε) = e^{K − cε} Σ_{l > ε} m_l e^{−c(l−ε)} (1 − e^{ε−l}). A block that begins at b
    gives e^{−c(b−ε)} (A (1 − e^{ε−b}) + D e^{ε−b}) with A = Σ m_l e^{−c(l−b)} and D = Σ m_l e^{−c(l−b)} (1 − e^{b−l}):
    only positive terms, one a block for each ε.
    """

    shape: TiltShape
    points: LatticePoints
    masses: Floats
    error: float
    """Error of the masses, relative to their Euclidean norm."""
    outside: float
    """Bound on the mass outside the points, or folded in from there."""
    scale_error: float
    """Error of K(c)."""

    def index_above(self, epsilon: float) -> int:
        """Return the first index with a loss above ε."""
        step, origin, stride = self.points
        return min(max(0, math.floor((epsilon / step - origin) / stride) + 1), len(self.masses))

    def saddle_excess(self, epsilon: float) -> float:
        """Return the excess of K(c) − cε − log c − log(1 + c) over the saddle of ε, in nats, by a parabola."""
        c = self.shape.tilt
        slope = self.shape.mean - epsilon - 1 / c - 1 / (1 + c)
        return slope**2 / (2 * (self.shape.variance + 1 / c**2 + 1 / (1 + c) ** 2))

    @cached_property
    def mass_norm(self) -> float:
        """The Euclidean norm of the masses."""
        return float(np.linalg.norm(self.masses))

    def delta_above(self, epsilon: float) -> tuple[float, float]:
        """Return Σ m_l e^{−c(l−ε)} (1 − e^{ε−l}) over l > ε, and a bound on its error from the masses."""
        first, size = self.index_above(epsilon), self._block_size
        stop = min(-(-first // size) * size, len(self.masses))
        gap = np.minimum(epsilon - self.points.losses_at(first, stop), 0.0)
        near = float(np.dot(np.maximum(self.masses[first:stop], 0.0), np.exp(self.shape.tilt * gap) * -np.expm1(gap)))
        weighted, lifted, starts = (part[-(-first // size) :] for part in self._block_sums)
        gaps = np.minimum(epsilon - starts, 0.0)
        far = float(np.dot(np.exp(self.shape.tilt * gaps), weighted * -np.expm1(gaps) + lifted * np.exp(gaps)))
        # Cauchy-Schwarz: the error of the masses is bounded in the Euclidean norm (Parseval).
        error = self.error * self._weight_norm_bound(len(self.masses) - first) * self.mass_norm + self.outside
        return near + far, error

    def _weight_norm_bound(self, points: int) -> float:
        """Return a bound on the Euclidean norm of g(u) = e^{−cu} (1 − e^{−u}) at this many points.

        Σ g² ≤ max g · Σ g. As g rises to its top and falls, a sum of steps exceeds ∫ g by at most twice the top.
        """
        if not points:
            return 0.0
        c, width = self.shape.tilt, self.points.step_width
        top = math.exp(c * math.log(c) - (1 + c) * math.log1p(c))
        integral = 1 / (c * (1 + c))
        return 1.001 * math.sqrt(top * min(points * top, 2 * top + integral / width))

    @cached_property
    def _block_size(self) -> int:
        """The number of points in a block, about the number of blocks."""
        return max(MIN_BLOCK_SIZE, math.isqrt(len(self.masses)))

    @cached_property
    def _block_sums(self) -> tuple[Floats, Floats, Floats]:
        """A, D and the first loss of every block."""
        size = self._block_size
        count = -(-len(self.masses) // size)
        masses = np.zeros(count * size)
        np.maximum(self.masses, 0.0, out=masses[: len(self.masses)])
        offsets = -self.points.step_width * np.arange(size)
        weights = np.exp(self.shape.tilt * offsets)
        rows = masses.reshape(count, size)
        starts = self.points.losses_at(0, count * size)[::size]
        return rows @ weights, rows @ (weights * -np.expm1(offsets)), starts


@dataclass(frozen=True, slots=True, eq=False)
class LatticePart:
    """``count`` copies of a distribution with ``masses`` at losses ``offsets * step``; they sum to 1 − ``missing``."""

    offsets: Indices
    masses: Floats
    count: int
    missing: float
    sum_error: float = 0.0
    """Bound on the error of the sum of the masses: all copies together multiply it."""
    _outlines: dict[int, LatticePart] = field(default_factory=dict, repr=False)

    @classmethod
    def from_masses(cls, offsets: Indices, masses: Floats, count: int, missing: float | None) -> Self:
        """Use ``missing`` if it is given and the masses agree with it up to rounding, else one minus their sum."""
        absent = 1 - math.fsum(masses)
        if missing is None:
            return cls(offsets, masses, count, absent)
        sum_error = abs(absent - missing)
        if sum_error < SUM_TOLERANCE:
            return cls(offsets, masses, count, missing)
        return cls(offsets, masses, count, absent, sum_error)

    def coarse_outline(self, rate: float) -> LatticePart:
        """Return a coarse copy, of at least ``OUTLINE_POINTS`` points, that resolves e^{rate·j}, to find saddles."""
        largest = min(len(self.offsets) // OUTLINE_POINTS, math.floor(min(MAX_BLOCK_EXPONENT / rate, 2.0**62)))
        block = 1 << (max(largest, 1).bit_length() - 1)
        if block not in self._outlines:  # each block is merged into its first point
            starts = np.arange(0, len(self.offsets), block)
            masses = np.add.reduceat(self.masses, starts)
            self._outlines[block] = LatticePart(self.offsets[starts], masses, self.count, self.missing)
        return self._outlines[block]


@dataclass(frozen=True, slots=True, eq=False)
class Lattice:
    """A sum of independent lattice losses, and the total mass at +∞."""

    step: float
    parts: tuple[LatticePart, ...]
    infinite_mass: float
    tilt_tolerance: float = 0.0
    """Nats of height above the saddle up to which a cached tilt is reused: each amplifies rounding by a factor e."""
    _cached_sums: dict[float, TiltedSum] = field(default_factory=dict, repr=False)

    def delta(self, epsilon: float) -> tuple[float, float]:
        """Return δ(ε) of the sum and a bound on its absolute rounding error."""
        if not self.parts or epsilon >= self._largest_loss:
            at_zero_loss = 0.0 - math.expm1(min(0.0, epsilon)) if not self.parts else 0.0
            value = self.infinite_mass + (1 - self.infinite_mass) * at_zero_loss
            return value, 4 * ROUND_OFF * value
        tilted = self._tilted_near_saddle(epsilon)
        shape = tilted.shape
        log_factor = shape.log_scale - shape.tilt * epsilon
        if not log_factor < MAX_LOG_FACTOR:
            return 0.5, 0.5  # too far from the tilted mean for any bound
        value, error = (
            (math.exp(log_factor + math.log(part)) if part > 0 else 0.0) for part in tilted.delta_above(epsilon)
        )
        rounding = (abs(shape.log_scale) + abs(shape.tilt * epsilon) + 64) * ROUND_OFF
        error += value * (rounding + tilted.scale_error) + TINY_MASS
        return self.infinite_mass + value, error + 4 * ROUND_OFF * self.infinite_mass

    def approximate_epsilon_at(self, target: float) -> EpsilonGuess | None:
        """Return ε with δ about ``target``, from the saddle point."""
        rest = target - self.infinite_mass
        if not (rest > 0 and self.parts):
            return None
        guess = approximate_epsilon_at(
            lambda c: np.array([self._approximate_cumulant(float(at)) for at in c]), math.log(rest)
        )
        return guess if guess is not None and guess.epsilon < self._largest_loss else None

    def masses_near(self, epsilon: float, reach: float) -> tuple[Floats, Floats, float]:
        """Return losses within ``reach`` of ε, their masses, and a bound on the Euclidean norm of the masses' error."""
        if not self.parts or epsilon - reach > self._largest_loss:
            return np.zeros(0), np.zeros(0), 0.0
        tilted = self._tilted_near_saddle(epsilon)
        first, last = (tilted.index_above(end) for end in (epsilon - reach - self.step, epsilon + reach))
        losses = tilted.points.losses_at(first, last)
        weights = np.exp(np.minimum(tilted.shape.log_scale - tilted.shape.tilt * losses, 700.0))
        error = float(np.max(weights, initial=0.0)) * (tilted.error * tilted.mass_norm + tilted.outside)
        return losses, np.clip(weights * tilted.masses[first:last], 0.0, 1.0), error

    def mass_lower_bounds(self, losses: Floats) -> Floats:
        """Return lower bounds on the masses at these consecutive losses."""
        if len(losses) == 0:
            return losses
        middle, extent = float(losses[len(losses) // 2]), float(losses[-1] - losses[0])
        lattice_losses, masses, error = self.masses_near(middle, extent + self.step)
        bounds = np.zeros_like(losses)
        if len(lattice_losses):
            indices = np.rint((lattice_losses - losses[0]) / self.step).astype(np.int64)
            inside = (indices >= 0) & (indices < len(losses))
            bounds[indices[inside]] = np.maximum(masses[inside] - error, 0.0)
        return bounds

    def _tilted_near_saddle(self, epsilon: float) -> TiltedSum:
        """Return the sum tilted just below the saddle of ε, or a cached one whose tilt is nearly as good.

        The tilt is never above: K may rise like a wall there, and a sum tilted beyond it has its mass far from ε.
        """
        if self.tilt_tolerance and self._cached_sums:
            nearest = min(self._cached_sums.values(), key=lambda tilted: tilted.saddle_excess(epsilon))
            if nearest.saddle_excess(epsilon) <= self.tilt_tolerance:
                return nearest
        tilt = math.exp(math.floor(math.log(self._find_saddle(epsilon)) * TILTS_PER_FACTOR_E) / TILTS_PER_FACTOR_E)
        if tilt not in self._cached_sums:
            while len(self._cached_sums) >= CACHED_TILTS:
                self._cached_sums.pop(next(iter(self._cached_sums)))
            self._cached_sums[tilt] = self._compose_tilted(tilt)
        return self._cached_sums[tilt]

    @property
    def _largest_loss(self) -> float:
        """Largest finite loss of the sum."""
        return sum(p.count * int(p.offsets[-1]) for p in self.parts) * self.step

    def _find_saddle(self, epsilon: float) -> float:
        """Return the minimizer of K(c) − cε − log c − log(1 + c); any c > 0 is valid, this one is accurate."""

        def log_integrand(log_tilt: float) -> float:
            c = math.exp(log_tilt)
            return self._approximate_cumulant(c) - c * epsilon - log_tilt - math.log1p(c)

        widest = math.log(700 / self.step)
        minimum = scipy.optimize.minimize_scalar(
            log_integrand, bounds=(-12.0, widest), method="bounded", options={"xatol": 1e-2}
        )
        return math.exp(float(minimum.x))

    def _approximate_cumulant(self, c: float) -> float:
        """Return an approximation of K(c), from coarse outlines of the distributions."""
        rate = c * self.step
        return math.fsum(p.count * _log_moment(p.coarse_outline(rate), rate)[0] for p in self.parts)

    def _compose_tilted(self, tilt: float) -> TiltedSum:
        """Tilt each distribution, transform, raise to its power, multiply, transform back."""
        moments = [_log_moment(part, tilt * self.step) for part in self.parts]
        log_scale = math.fsum(part.count * k for part, (k, *_) in zip(self.parts, moments, strict=True))
        errors = (part.count * (error + part.sum_error) for part, (*_, error) in zip(self.parts, moments, strict=True))
        scale_error = math.expm1(min(math.fsum(errors), 700.0))
        # The coarsest lattice that contains the sum: sums of atoms at ±1 are all even or all odd, and on the fine
        # lattice half the points would hold rounding errors.
        stride = math.gcd(*(int(np.gcd.reduce(part.offsets - part.offsets[0])) for part in self.parts)) or 1
        origin = sum(part.count * int(part.offsets[0]) for part in self.parts)
        steps = [
            LatticePart((part.offsets - part.offsets[0]) // stride, masses, part.count, 0.0)
            for part, (_, masses, _) in zip(self.parts, moments, strict=True)
        ]
        composed = _compose_by_transform(steps)
        points = LatticePoints(self.step, origin + stride * composed.first, stride)
        mean = self.step * (origin + stride * composed.mean)
        shape = TiltShape(tilt, mean, (self.step * stride) ** 2 * composed.variance, log_scale)
        error = composed.rounding_units * ROUND_OFF
        return TiltedSum(shape, points, composed.masses, error, composed.outside, scale_error)


class ComposedMasses(NamedTuple):
    """Masses of a sum at consecutive indices from ``first``, with approximate mean and variance."""

    first: int
    masses: Floats
    rounding_units: float
    """Error of the masses, in units of rounding times their Euclidean norm."""
    outside: float
    """Bound on the mass at other indices."""
    mean: float
    variance: float


def _compose_by_transform(parts: Sequence[LatticePart]) -> ComposedMasses:
    """Compose by Fourier transform."""
    means = [float(np.dot(part.masses, part.offsets)) for part in parts]
    centers = [round(mean) for mean in means]
    mean = math.fsum(part.count * mean for part, mean in zip(parts, means, strict=True))
    middle = round(mean)
    variance = math.fsum(
        part.count * float(np.dot(part.masses, (part.offsets - mu) ** 2)) for part, mu in zip(parts, means, strict=True)
    )
    points, outside = _transform_length(parts, means, middle, math.sqrt(variance))
    shift = sum(part.count * center for part, center in zip(parts, centers, strict=True)) - middle
    transformed, rounding_units = np.ones(points // 2 + 1, dtype=np.complex128), 16 * math.log2(points) + 200
    for part, center in zip(parts, centers, strict=True):
        # φ^count at the nodes, and its error in units of rounding.
        offsets = part.offsets - center
        count = part.count
        if len(offsets) <= FEW_ATOMS:
            power, error = np.exp(count * _log_characteristic(offsets, part.masses, points)), 20 * math.sqrt(count)
        else:
            wrapped = np.bincount(np.mod(offsets, points), weights=part.masses, minlength=points)
            power, error = raise_to_power(scipy.fft.rfft(wrapped), count)
        transformed, rounding_units = transformed * power, rounding_units + error
    # Far from 0 the logarithm is known to a rounding of itself only, and the power multiplies that.
    far = float(np.max(np.abs(transformed[points // 6 :]), initial=0.0))
    rounding_units += 8 * far * sum(part.count for part in parts)
    masses = np.roll(scipy.fft.irfft(transformed, points), points // 2 + shift)
    return ComposedMasses(middle - points // 2, masses, rounding_units, outside, mean, variance)


def raise_to_power(transform: Complexes, count: int) -> tuple[Complexes, float]:
    """Return the power of a transform of masses, and its error in units of rounding."""
    if count <= MAX_SQUARED_COPIES:
        return power_by_squaring(transform, count), 8.0 * count
    logarithm = np.log(transform, where=transform != 0, out=np.zeros_like(transform))
    return np.exp(count * _safe_log(transform, logarithm)), 4.0 * count


def _transform_length(
    parts: Sequence[LatticePart], means: list[float], middle: int, deviation: float
) -> tuple[int, float]:
    """Return a transform length for the support, or for all but ``ESCAPING_MASS`` (Chernoff), and the mass left out."""
    low = sum(part.count * int(part.offsets[0]) for part in parts)
    high = sum(part.count * int(part.offsets[-1]) for part in parts)
    full_length = 2 * max(high - middle, middle - low) + 4
    length = max(80 * deviation + 100, 128)
    while length < full_length and _log_escaping_mass(parts, means, length / 2) > math.log(ESCAPING_MASS):
        length *= 2
    needed = math.ceil(min(length, full_length)) | 1
    if needed > MAX_POINTS:
        raise PrecisionError(f"the composed loss needs {needed} lattice points, more than {MAX_POINTS}")
    points = scipy.fft.next_fast_len(needed, real=True)
    return points + points % 2, 0.0 if points >= full_length else 2 * ESCAPING_MASS


def _log_moment(part: LatticePart, rate: float) -> tuple[float, Floats, float]:
    """Return K = log Σ p e^{rate·j}, the tilted masses, which sum to one, and the error of K.

    K uses Σ p (e^{rate·j} − 1) − missing, since k copies would multiply an error of the masses' sum by k.
    """
    exponent = rate * part.offsets
    peak = float(np.max(np.abs(exponent)))
    if peak > OVERFLOW:
        top = float(np.max(exponent))
        weights = part.masses * np.exp(exponent - top)
        total = float(np.sum(weights))
        return math.log(total) + top, weights / total, ROUND_OFF * (8 + 2 * peak)
    growth = np.expm1(exponent)
    excess = float(np.dot(part.masses, growth)) - part.missing
    size = float(np.dot(part.masses, np.abs(growth))) + part.missing
    weights = part.masses * np.exp(exponent)
    error = 4 * size / max(1 + excess, ROUND_OFF) + 2 * abs(math.log1p(max(excess, MIN_EXCESS)))
    return math.log1p(max(excess, MIN_EXCESS)), weights / float(np.sum(weights)), ROUND_OFF * error


def _log_characteristic(offsets: Indices, masses: Floats, points: int) -> Complexes:
    """Return log φ(−θ) of a few atoms from φ(−θ) − 1 = Σ p (−2 sin²(θj/2) − i sin θj)."""
    nodes = np.arange(points // 2 + 1)
    angle = np.zeros(len(nodes), dtype=np.complex128)
    for offset, mass in zip(offsets, masses, strict=True):
        # θ·offset for θ = 2π·node/points, reduced to [−π, π] in integers: no digit is lost far out, or near 0.
        phase_offset = int(offset)
        turns = nodes * (phase_offset % points) % points
        turn = np.asarray(2 * math.pi / points * np.where(2 * turns > points, turns - points, turns))
        angle += mass * (-2 * np.sin(turn / 2) ** 2 - 1j * np.sin(turn))
    return _safe_log(1 + angle, log1p(np.where(angle == -1, 0, angle)))


def _safe_log(value: Complexes, logarithm: Complexes) -> Complexes:
    """Return the logarithm, or one whose exponential vanishes if the value is 0."""
    return np.where(value == 0, LOG_ZERO, logarithm)


def _log_escaping_mass(parts: Sequence[LatticePart], means: list[float], reach: float) -> float:
    """Return the log of a bound on the mass further than ``reach`` points from the mean, on either side."""

    def side_bound(sign: int) -> float:
        steps = []
        for part, mean in zip(parts, means, strict=True):
            # Merge blocks of neighboring points at their outer end: it increases every exponential moment on that side.
            block = max(1, len(part.offsets) // OUTLINE_POINTS)
            starts = np.arange(0, len(part.offsets), block)
            ends = starts if sign < 0 else np.minimum(starts + block, len(part.offsets)) - 1
            masses = np.add.reduceat(part.masses, starts)
            positive = masses > 0
            steps.append((part.offsets[ends][positive] - mean, masses[positive], part.count))

        def tail_bound(log_rate: float) -> float:
            rate = math.exp(log_rate)
            log_moments = []
            for distances, masses, count in steps:
                exponent = sign * rate * distances
                peak = float(np.max(exponent))
                total = float(np.dot(masses, np.exp(exponent - peak))) + 5e-324
                log_moments.append(count * (peak + math.log(total)))
            return math.fsum(log_moments) - rate * reach

        return float(
            scipy.optimize.minimize_scalar(
                tail_bound, bounds=(-14.0, 6.0), method="bounded", options={"xatol": 1e-2}
            ).fun
        )

    return max(side_bound(1), side_bound(-1)) + math.log(2)
