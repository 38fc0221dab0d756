"""Exact composition of laws whose losses lie on one lattice: tilt, transform, raise to the power (theory §2).

The composed law is tilted to the saddle point of the ε asked for, so that the transform's absolute rounding error is
small *relative* to the mass that decides δ. Only positive terms are added afterwards.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy import fft, optimize

from tightrope.errors import PrecisionError
from tightrope.numerics.complex_log import log1p
from tightrope.privacy.law import Complexes, Floats

Indices = np.ndarray[tuple[int], np.dtype[np.int64]]
ROUND_OFF = 2.0**-53
MOST_POINTS = 1 << 24
VANISHING = -1e4 + 0j
FEW = 48
"""Up to so many atoms the characteristic function is summed term by term, with full relative accuracy of φ − 1."""


@dataclass(frozen=True, slots=True, eq=False)
class LatticePart:
    """``count`` copies of the law with ``masses`` at the losses ``offsets * step``."""

    offsets: Indices
    masses: Floats
    count: int


@dataclass(frozen=True, slots=True, eq=False)
class Lattice:
    """A sum of independent lattice losses and the mass at +∞ of the whole."""

    step: float
    parts: tuple[LatticePart, ...]
    infinite_mass: float

    def delta(self, epsilon: float) -> tuple[float, float]:
        """δ(ε) of the sum and a bound on its absolute rounding error."""
        if not self.parts or epsilon >= self._support()[1] * self.step:
            return self._edge(epsilon)
        tilt = self._saddle(epsilon)
        start, masses, log_scale, error = self._tilted(tilt)
        losses = (start + np.arange(len(masses))) * self.step
        first = int(np.searchsorted(losses, epsilon, side="right"))
        gap = epsilon - losses[first:]
        gains = np.exp(tilt * gap) * -np.expm1(gap)
        scale = math.exp(log_scale - tilt * epsilon)
        value = scale * float(np.dot(np.maximum(masses[first:], 0.0), gains))
        # Cauchy-Schwarz: the error of the masses is bounded in the Euclidean norm (Parseval).
        spread = scale * error * float(np.linalg.norm(gains)) * float(np.linalg.norm(masses))
        spread += value * (abs(log_scale) + abs(tilt * epsilon) + 64) * ROUND_OFF
        return self.infinite_mass + value, spread + 4 * ROUND_OFF * self.infinite_mass

    def _edge(self, epsilon: float) -> tuple[float, float]:
        """No composition at all, or an ε that no finite loss exceeds."""
        alone = 0.0 - math.expm1(min(0.0, epsilon)) if not self.parts else 0.0
        value = self.infinite_mass + (1 - self.infinite_mass) * alone
        return value, 4 * ROUND_OFF * value

    def _support(self) -> tuple[int, int]:
        return (
            sum(p.count * int(p.offsets[0]) for p in self.parts),
            sum(p.count * int(p.offsets[-1]) for p in self.parts),
        )

    def _cumulant(self, tilt: float) -> float:
        """K(c) of the sum of the finite losses."""
        return math.fsum(p.count * _log_moment(p, tilt * self.step)[0] for p in self.parts)

    def _saddle(self, epsilon: float) -> float:
        """Minimiser of K(c) − cε − log c − log(1 + c) on a log scale; any c > 0 is valid, this one is accurate."""

        def height(log_tilt: float) -> float:
            c = math.exp(log_tilt)
            return self._cumulant(c) - c * epsilon - log_tilt - math.log1p(c)

        widest = math.log(700 / self.step)
        found = optimize.minimize_scalar(height, bounds=(-12.0, widest), method="bounded", options={"xatol": 1e-3})
        return math.exp(float(found.x))

    def _tilted(self, tilt: float) -> tuple[int, Floats, float, float]:
        """First lattice index, tilted masses of the sum, K(c), and their error relative to their Euclidean norm."""
        tilted = [(part, *_log_moment(part, tilt * self.step)) for part in self.parts]
        log_scale = math.fsum(part.count * k for part, k, _ in tilted)
        means = [float(np.dot(masses, part.offsets)) for part, _, masses in tilted]
        centres = [round(mean) for mean in means]
        middle = round(math.fsum(part.count * mean for (part, *_), mean in zip(tilted, means, strict=True)))
        points = self._points([(part, masses) for part, _, masses in tilted], means, middle)
        nodes = np.arange(points // 2 + 1)
        shift = sum(part.count * centre for (part, *_), centre in zip(tilted, centres, strict=True)) - middle
        exponent = -1j * _phase(nodes, shift, points)
        wobble = 16 * math.log2(points) + 200
        for (part, _, masses), centre in zip(tilted, centres, strict=True):
            exponent = exponent + part.count * _log_characteristic(part.offsets - centre, masses, nodes, points)
            wobble += 4 * part.count if len(part.offsets) > FEW else 20 * math.sqrt(part.count)
        wrapped = fft.irfft(np.exp(exponent), points)
        return middle - points // 2, np.roll(wrapped, points // 2), log_scale, wobble * ROUND_OFF

    def _points(self, tilted: Sequence[tuple[LatticePart, Floats]], means: list[float], middle: int) -> int:
        """A transform length that holds the support, or all of it but a mass of 1e−19 (Chernoff)."""
        low, high = self._support()
        whole = 2 * max(high - middle, middle - low) + 4
        variance = math.fsum(
            p.count * float(np.dot(m, (p.offsets - mu) ** 2)) for (p, m), mu in zip(tilted, means, strict=True)
        )
        length = max(80 * math.sqrt(variance) + 100, 128)
        while length < whole and _escape(tilted, means, length / 2) > math.log(1e-19):
            length *= 2
        points = fft.next_fast_len(math.ceil(min(length, whole)) | 1, real=True)
        if points > MOST_POINTS:
            raise PrecisionError(f"the composed loss needs {points} lattice points, more than {MOST_POINTS}")
        return points + points % 2


def _log_moment(part: LatticePart, rate: float) -> tuple[float, Floats]:
    """Log Σ p e^{rate·j} and the tilted masses, which sum to one."""
    exponent = rate * part.offsets
    peak = float(np.max(exponent))
    weights = part.masses * np.exp(exponent - peak)
    total = float(np.sum(weights))
    return math.log(total) + peak, weights / total


def _log_characteristic(offsets: Indices, masses: Floats, nodes: Indices, points: int) -> Complexes:
    """Log φ(−θ); for few atoms from φ(−θ) − 1 = Σ p (−2 sin²(θj/2) − i sin θj), for many by one transform."""
    if len(offsets) <= FEW:
        angle = np.zeros(len(nodes), dtype=np.complex128)
        for offset, mass in zip(offsets, masses, strict=True):
            turn = _phase(nodes, int(offset), points)
            angle += mass * (-2 * np.sin(turn / 2) ** 2 - 1j * np.sin(turn))
        return _log(1 + angle, log1p(np.where(angle == -1, 0, angle)))
    wrapped = np.bincount(np.mod(offsets, points), weights=masses, minlength=points)
    turned = fft.rfft(wrapped)
    return _log(turned, np.log(turned, where=turned != 0, out=np.zeros_like(turned)))


def _phase(nodes: Indices, offset: int, points: int) -> Floats:
    """θ·offset modulo 2π for θ = 2π·node/points, reduced in whole numbers: no digit is lost far out."""
    return np.asarray(2 * math.pi / points * (nodes * (offset % points) % points))


def _log(value: Complexes, logarithm: Complexes) -> Complexes:
    """The logarithm, or one whose exponential vanishes where the value does."""
    return np.where(value == 0, VANISHING, logarithm)


def _escape(tilted: Sequence[tuple[LatticePart, Floats]], means: list[float], reach: float) -> float:
    """Log of a bound on the mass further than ``reach`` points from the mean, on either side."""

    def tail(log_rate: float, sign: int) -> float:
        rate = math.exp(log_rate)
        return (
            math.fsum(p.count * _centred(p, m, mu, sign * rate) for (p, m), mu in zip(tilted, means, strict=True))
            - rate * reach
        )

    sides = (
        optimize.minimize_scalar(lambda r, s=s: tail(r, s), bounds=(-14.0, 6.0), method="bounded") for s in (1, -1)
    )
    return max(float(side.fun) for side in sides) + math.log(2)


def _centred(part: LatticePart, masses: Floats, mean: float, rate: float) -> float:
    """Log E e^{rate (J − mean)} of one tilted step."""
    held = masses > 0
    exponent = rate * (part.offsets[held] - mean)
    peak = float(np.max(exponent))
    return peak + math.log(float(np.dot(masses[held], np.exp(exponent - peak))) + 5e-324)
