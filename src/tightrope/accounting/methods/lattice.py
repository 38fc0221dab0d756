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

from tightrope.accounting.methods.method import DeltaGuess, approximate_epsilon_at
from tightrope.errors import PrecisionError
from tightrope.numerics.arrays import Complexes, Floats
from tightrope.numerics.complex_functions import log1p
from tightrope.numerics.rounding import OVERFLOW, ROUND_OFF

# A tilted sum on a lattice, with all quantities that δ needs for every ε: masses, and their sums over blocks.
#
# With P-masses e^{K − cl} m_l, δ(ε) = e^{K − cε} Σ_{l > ε} m_l e^{−c(l−ε)} (1 − e^{ε−l}). A block that begins at b
# gives e^{−c(b−ε)} (A (1 − e^{ε−b}) + D e^{ε−b}) with A = Σ m_l e^{−c(l−b)} and D = Σ m_l e^{−c(l−b)} (1 − e^{b−l}):
# only positive terms, one a block for each ε.

SHORT_BLOCK = 64
"""Smallest number of points in a block."""


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
    """Masses of the tilted sum; their error relative to their Euclidean norm, and a bound on the mass outside or folded
    in from there; the error of K(c).
    """

    shape: TiltShape
    points: LatticePoints
    masses: Floats
    error: float
    outside: float
    scale_error: float

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
        whole, lifted, starts = self._block_sums
        gaps = np.minimum(epsilon - starts[-(-first // size) :], 0.0)
        kept, rest = whole[-(-first // size) :], lifted[-(-first // size) :]
        far = float(np.dot(np.exp(self.shape.tilt * gaps), kept * -np.expm1(gaps) + rest * np.exp(gaps)))
        # Cauchy-Schwarz: the error of the masses is bounded in the Euclidean norm (Parseval).
        off = self.error * self._weight_norm_bound(len(self.masses) - first) * self.mass_norm + self.outside
        return near + far, off

    def _weight_norm_bound(self, points: int) -> float:
        """A bound on the Euclidean norm of g(u) = e^{−cu} (1 − e^{−u}) at that many points: Σ g² ≤ max g · Σ g."""
        if not points:
            return 0.0
        c, width = self.shape.tilt, self.points.step_width
        top = math.exp(c * math.log(c) - (1 + c) * math.log1p(c))
        return 1.001 * math.sqrt(top * min(points * top, 2 * top + self._weight_integral(c) / width))

    @staticmethod
    def _weight_integral(c: float) -> float:
        """∫ g over u > 0; g rises to its top and falls, so no sum of steps exceeds that by more than twice the top."""
        return 1 / (c * (1 + c))

    @cached_property
    def _block_size(self) -> int:
        """The number of points in a block, about the number of blocks."""
        return max(SHORT_BLOCK, math.isqrt(len(self.masses)))

    @cached_property
    def _block_sums(self) -> tuple[Floats, Floats, Floats]:
        """A, D and the first loss of every block."""
        size = self._block_size
        count = -(-len(self.masses) // size)
        held = np.zeros(count * size)
        np.maximum(self.masses, 0.0, out=held[: len(self.masses)])
        along = -self.points.step_width * np.arange(size)
        weights = np.exp(self.shape.tilt * along)
        rows = held.reshape(count, size)
        starts = self.points.losses_at(0, count * size)[::size]
        return rows @ weights, rows @ (weights * -np.expm1(along)), starts


Indices = np.ndarray[tuple[int], np.dtype[np.int64]]
MOST_POINTS = 1 << 24
NEARLY = -1 + 1e-16
TINY_MASS = 1e-318
"""Bound on the sum of masses below double precision."""
VANISHING = -1e4 + 0j
MOST_FACTORS = 1 << 12
"""Largest number of copies whose transforms are multiplied; more are raised to a power by logarithms."""
FEW_ATOMS = 48
"""Number of atoms up to which the characteristic function is summed term by term, with φ − 1 fully accurate."""


FINENESS = 8
"""Tilts are taken on a geometric grid, this many to a factor e, so that neighboring ε share a transform."""
TILTS_KEPT = 4
OUTLINE = 1000
ESCAPING = 1e-19
AGREE = 2e-15
"""Largest difference between the sum of the masses and its known value that rounding explains."""
STEEP_BLOCK = 0.1
STEEPEST_TILT = 600.0


@dataclass(frozen=True, slots=True, eq=False)
class LatticePart:
    """``count`` copies of a distribution with ``masses`` at losses ``offsets * step``; they sum to 1 − ``missing``."""

    offsets: Indices
    masses: Floats
    count: int
    missing: float
    astray: float = 0.0
    """Bound on the error of the sum of the masses: all copies together multiply it."""
    _outlines: dict[int, LatticePart] = field(default_factory=dict, repr=False)

    @classmethod
    def from_masses(cls, offsets: Indices, masses: Floats, count: int, missing: float | None) -> Self:
        """Use ``missing`` if it is given and the masses agree with it up to rounding, else one minus their sum."""
        absent = 1 - math.fsum(masses)
        if missing is None:
            return cls(offsets, masses, count, absent)
        astray = abs(absent - missing)
        return cls(offsets, masses, count, missing) if astray < AGREE else cls(offsets, masses, count, absent, astray)

    def coarse_outline(self, rate: float) -> LatticePart:
        """Return a coarse copy, of at least ``OUTLINE`` points, that resolves e^{rate·j}, for a rough saddle search."""
        most = min(len(self.offsets) // OUTLINE, math.floor(min(STEEP_BLOCK / rate, 2.0**62)))
        block = 1 << (max(most, 1).bit_length() - 1)
        if block not in self._outlines:
            self._outlines[block] = self._sum_blocks(block)
        return self._outlines[block]

    def _sum_blocks(self, block: int) -> LatticePart:
        """Merge each block of ``block`` points into its first point."""
        starts = np.arange(0, len(self.offsets), block)
        return LatticePart(self.offsets[starts], np.add.reduceat(self.masses, starts), self.count, self.missing)


@dataclass(frozen=True, slots=True, eq=False)
class Lattice:
    """A sum of independent lattice losses, and the total mass at +∞."""

    step: float
    parts: tuple[LatticePart, ...]
    infinite_mass: float
    spare: float = 0.0
    """Nats of height above the saddle up to which a cached tilt is reused: each amplifies rounding by a factor e."""
    _kept: dict[float, TiltedSum] = field(default_factory=dict, repr=False)

    def delta(self, epsilon: float) -> tuple[float, float]:
        """Return δ(ε) of the sum and a bound on its absolute rounding error."""
        if not self.parts or epsilon >= self._support_bounds()[1] * self.step:
            return self._edge_case_delta(epsilon)
        sum_ = self._tilted_near_saddle(epsilon)
        shape = sum_.shape
        height = shape.log_scale - shape.tilt * epsilon
        if not height < STEEPEST_TILT:
            return 0.5, 0.5  # too far from the tilted mean for any bound
        value, spread = ((math.exp(height + math.log(part)) if part > 0 else 0.0) for part in sum_.delta_above(epsilon))
        rounding = (abs(shape.log_scale) + abs(shape.tilt * epsilon) + 64) * ROUND_OFF
        spread += value * (rounding + sum_.scale_error) + TINY_MASS
        return self.infinite_mass + value, spread + 4 * ROUND_OFF * self.infinite_mass

    def approximate_epsilon(self, target: float) -> DeltaGuess | None:
        """Return ε with δ about ``target``, from the saddle point."""
        rest = target - self.infinite_mass
        if not (rest > 0 and self.parts):
            return None
        found = approximate_epsilon_at(
            lambda c: np.array([self._approximate_cumulant(float(at)) for at in c]), math.log(rest)
        )
        return found if found is not None and found.epsilon < self._support_bounds()[1] * self.step else None

    def masses_near(self, epsilon: float, reach: float) -> tuple[Floats, Floats, float]:
        """Return losses within ``reach`` of ε, their masses, and a bound on the Euclidean norm of the masses' error."""
        if not self.parts or epsilon - reach > self._support_bounds()[1] * self.step:
            return np.zeros(0), np.zeros(0), 0.0
        sum_ = self._tilted_near_saddle(epsilon)
        first, last = (sum_.index_above(end) for end in (epsilon - reach - self.step, epsilon + reach))
        losses = sum_.points.losses_at(first, last)
        weights = np.exp(np.minimum(sum_.shape.log_scale - sum_.shape.tilt * losses, 700.0))
        off = float(np.max(weights, initial=0.0)) * (sum_.error * sum_.mass_norm + sum_.outside)
        return losses, np.clip(weights * sum_.masses[first:last], 0.0, 1.0), off

    def mass_lower_bounds(self, losses: Floats) -> Floats:
        """Lower bounds on the masses at these consecutive losses."""
        if len(losses) == 0:
            return losses
        found, masses, error = self.masses_near(
            float(losses[len(losses) // 2]), float(losses[-1] - losses[0]) + self.step
        )
        result = np.zeros_like(losses)
        if len(found):
            places = np.rint((found - losses[0]) / self.step).astype(np.int64)
            inside = (places >= 0) & (places < len(losses))
            result[places[inside]] = np.maximum(masses[inside] - error, 0.0)
        return result

    def _tilted_near_saddle(self, epsilon: float) -> TiltedSum:
        """Return the sum tilted just below the saddle of ε, or a cached one whose tilt is nearly as good.

        The tilt is never above: K may rise like a wall there, and a sum tilted beyond it has its mass far from ε.
        """
        near = (
            min(self._kept.values(), key=lambda kept: kept.saddle_excess(epsilon), default=None) if self.spare else None
        )
        if near is not None and near.saddle_excess(epsilon) <= self.spare:
            return near
        tilt = math.exp(math.floor(math.log(self._find_saddle(epsilon)) * FINENESS) / FINENESS)
        if tilt not in self._kept:
            while len(self._kept) >= TILTS_KEPT:
                self._kept.pop(next(iter(self._kept)))
            self._kept[tilt] = self._compose_tilted(tilt)
        return self._kept[tilt]

    def _edge_case_delta(self, epsilon: float) -> tuple[float, float]:
        """Return δ and its error for an empty composition, or for an ε above all finite losses."""
        alone = 0.0 - math.expm1(min(0.0, epsilon)) if not self.parts else 0.0
        value = self.infinite_mass + (1 - self.infinite_mass) * alone
        return value, 4 * ROUND_OFF * value

    def _support_bounds(self) -> tuple[int, int]:
        return (
            sum(p.count * int(p.offsets[0]) for p in self.parts),
            sum(p.count * int(p.offsets[-1]) for p in self.parts),
        )

    def _find_saddle(self, epsilon: float) -> float:
        """Minimizer of K(c) − cε − log c − log(1 + c) on a log scale; any c > 0 is valid, this one is accurate."""

        def log_integrand(log_tilt: float) -> float:
            c = math.exp(log_tilt)
            return self._approximate_cumulant(c) - c * epsilon - log_tilt - math.log1p(c)

        widest = math.log(700 / self.step)
        found = scipy.optimize.minimize_scalar(
            log_integrand, bounds=(-12.0, widest), method="bounded", options={"xatol": 1e-2}
        )
        return math.exp(float(found.x))

    def _approximate_cumulant(self, c: float) -> float:
        """Return an approximation of K(c), from coarse outlines of the distributions."""
        rate = c * self.step
        return math.fsum(p.count * _log_moment(p.coarse_outline(rate), rate)[0] for p in self.parts)

    def _compose_tilted(self, tilt: float) -> TiltedSum:
        """Tilt each distribution, transform, raise to its power, multiply, transform back."""
        moments = [_log_moment(part, tilt * self.step) for part in self.parts]
        log_scale = math.fsum(part.count * k for part, (k, *_) in zip(self.parts, moments, strict=True))
        errors = (part.count * (off + part.astray) for part, (*_, off) in zip(self.parts, moments, strict=True))
        scale_error = math.expm1(min(math.fsum(errors), 700.0))
        origin, stride, parts = self._coarsen_lattice([masses for _, masses, _ in moments])
        found = _compose_by_transform(parts)
        points = LatticePoints(self.step, origin + stride * found.first, stride)
        mean = self.step * (origin + stride * found.mean)
        shape = TiltShape(tilt, mean, (self.step * stride) ** 2 * found.variance, log_scale)
        return TiltedSum(shape, points, found.masses, found.wobble * ROUND_OFF, found.outside, scale_error)

    def _coarsen_lattice(self, masses: Sequence[Floats]) -> tuple[int, int, list[LatticePart]]:
        """Return the coarsest lattice that contains the sum: origin, stride, and the tilted steps on it.

        Sums of atoms at ±1 are all even or all odd: on the fine lattice, half the points would hold rounding errors.
        """
        stride = math.gcd(*(int(np.gcd.reduce(part.offsets - part.offsets[0])) for part in self.parts)) or 1
        origin = sum(part.count * int(part.offsets[0]) for part in self.parts)
        steps = [
            LatticePart((part.offsets - part.offsets[0]) // stride, mass, part.count, 0.0)
            for part, mass in zip(self.parts, masses, strict=True)
        ]
        return origin, stride, steps


class ComposedMasses(NamedTuple):
    """First index and masses of a sum; their error in units of rounding and Euclidean norm; the mass beyond them; about
    mean and variance.
    """

    first: int
    masses: Floats
    wobble: float
    outside: float
    mean: float
    variance: float


def _compose_by_transform(parts: Sequence[LatticePart]) -> ComposedMasses:
    """Compose by Fourier transform."""
    means = [float(np.dot(part.masses, part.offsets)) for part in parts]
    centers = [round(mean) for mean in means]
    mean = math.fsum(part.count * mean for part, mean in zip(parts, means, strict=True))
    middle, variance = round(mean), _mass_variance(parts, means)
    points, outside = _transform_length(parts, means, middle, math.sqrt(variance))
    shift = sum(part.count * center for part, center in zip(parts, centers, strict=True)) - middle
    transformed, wobble = np.ones(points // 2 + 1, dtype=np.complex128), 16 * math.log2(points) + 200
    for part, center in zip(parts, centers, strict=True):
        # φ^count at the nodes, and its error in units of rounding.
        offsets = part.offsets - center
        count = part.count
        if len(offsets) <= FEW_ATOMS:
            powered, off = np.exp(count * _log_characteristic(offsets, part.masses, points)), 20 * math.sqrt(count)
        else:
            wrapped = np.bincount(np.mod(offsets, points), weights=part.masses, minlength=points)
            turned = scipy.fft.rfft(wrapped)
            if count <= MOST_FACTORS:
                powered, off = _power_by_squaring(turned, count), 8.0 * count
            else:
                logarithm = np.log(turned, where=turned != 0, out=np.zeros_like(turned))
                powered, off = np.exp(count * _safe_log(turned, logarithm)), 4.0 * count
        transformed, wobble = transformed * powered, wobble + off
    # Far from 0 the logarithm is known to a rounding of itself only, and the power multiplies that.
    far = float(np.max(np.abs(transformed[points // 6 :]), initial=0.0))
    wobble += 8 * far * sum(part.count for part in parts)
    masses = np.roll(scipy.fft.irfft(transformed, points), points // 2 + shift)
    return ComposedMasses(middle - points // 2, masses, wobble, outside, mean, variance)


def _mass_variance(parts: Sequence[LatticePart], means: list[float]) -> float:
    steps = zip(parts, means, strict=True)
    return math.fsum(p.count * float(np.dot(p.masses, (p.offsets - mu) ** 2)) for p, mu in steps)


def _power_by_squaring(base: Complexes, count: int) -> Complexes:
    """Return the power, by repeated squaring."""
    result = None
    while True:
        if count & 1:
            result = base if result is None else result * base
        count >>= 1
        if not count:
            return np.ones_like(base) if result is None else result
        base = base * base


def _transform_length(
    parts: Sequence[LatticePart], means: list[float], middle: int, deviation: float
) -> tuple[int, float]:
    """Return a transform length for the support, or for all but a mass of ``ESCAPING`` (Chernoff), and that mass."""
    low = sum(part.count * int(part.offsets[0]) for part in parts)
    high = sum(part.count * int(part.offsets[-1]) for part in parts)
    whole = 2 * max(high - middle, middle - low) + 4
    length = max(80 * deviation + 100, 128)
    while length < whole and _log_escaping_mass(parts, means, length / 2) > math.log(ESCAPING):
        length *= 2
    needed = math.ceil(min(length, whole)) | 1
    if needed > MOST_POINTS:
        raise PrecisionError(f"the composed loss needs {needed} lattice points, more than {MOST_POINTS}")
    points = scipy.fft.next_fast_len(needed, real=True)
    return points + points % 2, 0.0 if points >= whole else 2 * ESCAPING


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
    error = 4 * size / max(1 + excess, ROUND_OFF) + 2 * abs(math.log1p(max(excess, NEARLY)))
    return math.log1p(max(excess, NEARLY)), weights / float(np.sum(weights)), ROUND_OFF * error


def _log_characteristic(offsets: Indices, masses: Floats, points: int) -> Complexes:
    """Log φ(−θ) of a few atoms from φ(−θ) − 1 = Σ p (−2 sin²(θj/2) − i sin θj)."""
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
    return np.where(value == 0, VANISHING, logarithm)


def _log_escaping_mass(parts: Sequence[LatticePart], means: list[float], reach: float) -> float:
    """Return the log of a bound on the mass further than ``reach`` points from the mean, on either side."""

    def side_bound(sign: int) -> float:
        steps = [
            (*_outermost_masses(p.offsets, p.masses, sign), mu, p.count) for p, mu in zip(parts, means, strict=True)
        ]

        def tail_bound(log_rate: float) -> float:
            rate = math.exp(log_rate)
            return math.fsum(n * _centered_log_moment(j, m, mu, sign * rate) for j, m, mu, n in steps) - rate * reach

        return float(
            scipy.optimize.minimize_scalar(
                tail_bound, bounds=(-14.0, 6.0), method="bounded", options={"xatol": 1e-2}
            ).fun
        )

    return max(side_bound(1), side_bound(-1)) + math.log(2)


def _outermost_masses(offsets: Indices, masses: Floats, sign: int) -> tuple[Indices, Floats]:
    """Merge blocks of neighboring points at their outer end, which increases every exponential moment on that side."""
    block = max(1, len(offsets) // OUTLINE)
    starts = np.arange(0, len(offsets), block)
    ends = starts if sign < 0 else np.minimum(starts + block, len(offsets)) - 1
    return offsets[ends], np.add.reduceat(masses, starts)


def _centered_log_moment(offsets: Indices, masses: Floats, mean: float, rate: float) -> float:
    """Log E e^{rate (J − mean)} of one tilted step."""
    held = masses > 0
    exponent = rate * (offsets[held] - mean)
    peak = float(np.max(exponent))
    return peak + math.log(float(np.dot(masses[held], np.exp(exponent - peak))) + 5e-324)
