"""A bound on |M(c + iy')| / M(c) for every y' ≥ y: the integral of the modulus on a path above the real axis.

M(c + iy) = ∫ φ g^p is the same on x + i b(x), where |g^p| ≤ |g|^{Re p} e^{−|y| arg g}: it falls as y grows. Cells of
the law tilted by c bound it: cell i gives at most its mass times exp(b²/2 + ½ log(1 + b'²) + more − y arg g) at its
worst ends, so that the sum less M(c) keeps its sign and digits however near to one the modulus is. With b = s κ, s = y,
where −(w κ')' + w κ = w l' for the tilted density w, the bound is exact to second order in y (for one part; near it for
two): ``docs/proofs/sampled-gaussian.md``.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np
from scipy import linalg, special

from tightrope.numerics.arrays import Floats
from tightrope.privacy.sampled.shifted_line import TAIL, Power

PATH_CELLS = 2000
FARTHEST = 1.5
"""Where the path levels off."""
SLOPES = (0.125, 0.5, 1.0)
"""Multiples of y that are tried for s."""
STEEPER = (1.0, 30.0, 1000.0)
"""And s is no larger than these multiples of what lifts nearly all of the law to ``FARTHEST``."""
NEARLY_ALL = -1 + 1e-15
"""A sum of rounded parts is no less than nothing."""
BEYOND = 1e-21
"""More than what lies beyond the cells can hold, on any path."""


@dataclass(frozen=True, slots=True, eq=False)
class Tilted:
    """φ g^power / M(c) in cells [n] between points x [n + 1]: bounds on their masses."""

    power: float
    least: Floats
    most: Floats

    @classmethod
    def of(cls, x: Floats, loss: Floats, share: Floats, power: Power, at_c: float) -> Tilted:
        """From log g and σ = (log g)'/μ at x, and log M(c). The slope of the log is pμσ − x.

        A cell that is cut counts whole where it adds, and not at all where it takes away; those beyond it are empty.
        """
        apart = np.diff(x)
        steepness = abs(power.real) * power.mu * share[1:] + np.maximum(np.abs(x[1:]), np.abs(x[:-1]))
        logs = power.real * loss - x**2 / 2 - math.log(2 * math.pi) / 2 - at_c
        high = np.maximum(logs[1:], logs[:-1]) + steepness * apart / 2
        low = np.minimum(logs[1:], logs[:-1]) - steepness * apart / 2
        least = np.where(x[1:] <= power.cut, np.exp(np.minimum(low, 600.0)) * apart, 0.0)
        return cls(power.real, least, np.where(x[:-1] < power.cut, np.exp(np.minimum(high, 600.0)) * apart, 0.0))


@dataclass(frozen=True, slots=True, eq=False)
class LiftedPath:
    """What a path's bound needs: points x, the shape of b, log g's exponent and the parts of the tilted law."""

    x: Floats
    kernel: Floats
    share: Floats
    mu: float
    parts: tuple[Tilted, ...]
    still: float
    drop: float
    steep: float
    """The s that lifts all but one part in a hundred to where paths level off."""

    @classmethod
    def of(cls, power: Power, powers: tuple[float, ...], at_c: float, still: float = 0.0) -> LiftedPath:
        """For the integrand's power; for two, c + 1 and −c, from the point μ/2 of the real axis on.

        ``still`` is a bound on the mass that has loss 0 and stays, over M(c) = e^{at_c}. Only the first power is cut.
        """
        low, high = power.ends()
        if len(powers) > 1:
            low, high = power.mu / 2, max(high, TAIL + power.mu)
        x = np.linspace(low, high, PATH_CELLS + 1)
        loss, cut = power.log_g(x), power.cut < math.inf
        share = np.asarray(
            special.expit(power.mu * x - power.mu**2 / 2 + math.log(power.rate) - math.log1p(-power.rate))
        )
        each = [replace(power, real=real, cut=power.cut if i == 0 else math.inf) for i, real in enumerate(powers)]
        parts = tuple(Tilted.of(x, loss, share, one, at_c) for one in each)
        logs = np.logaddexp.reduce([one.real * loss - x**2 / 2 for one in each])
        # Where it is cut a path comes down to the real axis again, along which nothing need die.
        at_cut = FARTHEST**2 / 2 + float(power.log_size(np.array(power.cut))) - at_c if cut else -math.inf
        drop = FARTHEST * math.exp(min(at_cut, 700.0))  # e^700 says as little as ∞
        kernel = _kernel(x, np.asarray(logs), power.mu * share, pinned=len(powers) > 1)
        masses = np.cumsum(sum(part.most for part in parts))
        steep = FARTHEST / max(float(kernel[int(np.searchsorted(masses, 0.99 * masses[-1]))]), 1e-300)
        return cls(x, kernel, share, power.mu, parts, still, drop, steep)

    def log_bound(self, y: float) -> float:
        """Log of the bound, at most 0: the best of several paths, each of which falls with y."""
        paths = {min(slope * y, self.steep * more) for slope in SLOPES for more in STEEPER}
        return min(0.0, *(self._on(y, path) for path in paths))

    def _on(self, y: float, slope: float) -> float:
        """On the path s = ``slope``: Σ mass (e^{…} − 1), less M(c) from the start, where cells whose bracket is
        negative count with the least mass they may have; or Σ mass e^{…}, which is better where little is left.
        """
        height = np.minimum(slope * self.kernel, min(FARTHEST, math.pi / 2 / self.mu))
        rise = np.diff(height) / np.diff(self.x)
        angle = self.mu * height
        odds = self.share / (1 - self.share + 1e-300)  # q e^u / (1 − q)
        turned = np.arctan2(odds * np.sin(angle), 1 + odds * np.cos(angle))
        common = height[1:] ** 2 / 2 + np.log1p(rise**2) / 2 - y * turned[:-1] * (1 - 1e-12)
        excess, left = BEYOND + self.drop, self.still + BEYOND + self.drop
        for part in self.parts:
            bracket = np.expm1(np.minimum(common + self._swollen(part.power, angle), 700.0))
            excess += float(np.dot(np.where(bracket > 0, part.most, part.least), bracket))
            left += float(np.dot(part.most, bracket + 1))
        return min(math.log1p(max(excess, NEARLY_ALL)), math.log(left))

    def _swollen(self, power: float, angle: Floats) -> Floats | float:
        """Log (|g|/g)^power, at most: |g|² = g² (1 − 2σ(1 − σ)(1 − cos angle)), which only a negative power feels."""
        if power >= 0:
            return 0.0
        spread = self.share * (1 - self.share)
        most = np.maximum(spread[1:], spread[:-1])
        most[(self.share[:-1] < 0.5) & (self.share[1:] > 0.5)] = 0.25
        return np.asarray(power / 2 * np.log1p(-2 * most * (1 - np.cos(angle[1:]))))


def _kernel(x: Floats, logs: Floats, slope: Floats, *, pinned: bool) -> Floats:
    """The b that minimises ∫ w ((b² + b'²)/2 − l' b), w = e^{logs}: −(w b')' + w b = w l'; made to rise.

    Free ends have b' = 0; ``pinned`` has b = 0 at the first point, where the path must leave the real axis.
    """
    apart = float(x[1] - x[0])
    up, down = np.zeros_like(x), np.zeros_like(x)
    up[:-1] = np.exp(np.clip(np.diff(logs) / 2, -600.0, 600.0))  # w between x_i and x_{i+1}, over w_i
    down[1:] = np.exp(np.clip(-np.diff(logs) / 2, -600.0, 600.0))
    right = apart**2 * slope
    if pinned:
        up[0], right[0] = 0.0, 0.0
    bands = np.zeros((3, len(x)))
    bands[0, 1:], bands[1], bands[2, :-1] = -up[:-1], up + down + apart**2, -down[1:]
    return np.asarray(np.maximum.accumulate(np.maximum(linalg.solve_banded((1, 1), bands, right), 0.0)))
