"""Poisson-sampled Gaussian: the step of DP-SGD (theory §2, §3; add-remove).

With A = N(0, 1), B = N(μ, 1) and l(x) = log g(x), g = 1 − q + q e^{μx − μ²/2}, removing a record compares (1−q)A + qB
with A (loss l) and adding one compares A with (1−q)A + qB (loss −l). So M(z) is ∫ φ g^{z+1} or ∫ φ g^{−z}: analytic,
and the trapezoidal rule converges exponentially. ``docs/proofs/sampled-gaussian.md`` bounds its error, what is cut off
and the modulus far out.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from scipy import optimize, special

from tightrope.errors import PrecisionError
from tightrope.privacy.cells import Cells, mixed_loss
from tightrope.privacy.envelope import SMALL, Envelope, FarBound
from tightrope.privacy.gaussian import GaussianLaw
from tightrope.privacy.law import Complexes, Floats, LossLaw
from tightrope.privacy.moment_sum import FAR, OVERFLOW, by_height, log_sum
from tightrope.privacy.subsampled import PoissonAdd, PoissonRemove

TAIL = 11.0
"""Standard deviations kept on each side of the integrand: the rest is below 1e−26 of the integral."""
DIGITS = 52.0
"""The trapezoidal rule is off by e^{−52} of M(c) at most."""
QUADRATURE = 1e-22
"""Both together, relative to M(c)."""
WIDE = np.linspace(0.02, 0.95, 40)
"""Half-widths of the strip of analyticity that are tried, as a part of π/μ."""
GRID = 8000
AFFORDABLE = 5e4
"""Points x times 2π at which the modulus is still looked up, to bound it."""
MOST_POINTS, MOST_OFF_AXIS = 1 << 20, 1 << 15
"""Points x of one quadrature, for real z and others: what needs more is left to other engines."""
ROUND_OFF = 2.0**-53


@dataclass(frozen=True, slots=True)
class PoissonGaussian(LossLaw):
    """One direction; ``remove`` says which."""

    mu: float
    rate: float
    remove: bool

    @property
    def infinite_mass(self) -> float:
        return 0.0

    @property
    def opposite_mass(self) -> float:
        return 0.0

    @property
    def largest(self) -> float:
        return math.inf if self.remove else -math.log1p(-self.rate)

    def reverse(self) -> PoissonGaussian:
        """The other direction of the same pair: log A/((1−q)A+qB) under A, or its opposite."""
        return PoissonGaussian(self.mu, self.rate, not self.remove)

    def loss(self, x: Floats) -> Floats:
        """l(x), without overflow and exact near zero."""
        exponent = self.mu * x - self.mu**2 / 2
        near = mixed_loss(exponent, self.rate)
        return np.where(exponent > 30, np.logaddexp(math.log(self.rate) + exponent, math.log1p(-self.rate)), near)

    def share(self, x: Floats) -> Floats:
        """σ = l'/μ: the share of the sampled part in the mixture."""
        odds = math.log(self.rate) - math.log1p(-self.rate)
        return np.asarray(special.expit(self.mu * x - self.mu**2 / 2 + odds))

    @property
    def _plain(self) -> PoissonRemove | PoissonAdd:
        base = GaussianLaw(self.mu)
        return PoissonRemove(base, self.rate) if self.remove else PoissonAdd(base, self.rate)

    def profile(self, epsilon: Floats) -> Floats | None:
        """A single step in closed form."""
        return self._plain.profile(epsilon)

    def profile_error(self, epsilon: Floats) -> Floats:
        """See ``subsampled``."""
        return self._plain.profile_error(epsilon)

    def log_moment(self, z: Complexes) -> Complexes:
        """K(z) by quadrature; nodes in blocks of like |Im z|, so that smooth ones stay cheap."""
        return by_height(z, self._block)

    def _block(self, z: Complexes) -> Complexes:
        """Quadrature fine enough for every node of the block."""
        x, log_weight = self._nodes(float(np.min(z.real)), float(np.max(z.real)), float(np.max(np.abs(z.imag))))
        loss = self.loss(x) if self.remove else -self.loss(x)
        return log_sum(z, loss, log_weight)

    def exponent(self, c: float) -> float:
        """The power p of g in M(c) = ∫ φ g^p."""
        return c + 1 if self.remove else -c

    def _nodes(self, least: float, most: float, y: float) -> tuple[Floats, Floats]:
        """Points x and the logarithms of their weights under P, for least ≤ Re z ≤ most and |Im z| ≤ y."""
        down, up = sorted((self.exponent(least), self.exponent(most)))
        low, high = min(-TAIL, self._mode(down) - TAIL if down < 0 else 0.0), TAIL + self.mu * max(up, 0.0)
        count = math.ceil((high - low) * self._frequency(down, y) / (2 * math.pi))
        if not count <= (MOST_POINTS if y == 0 else MOST_OFF_AXIS):
            raise PrecisionError(f"the moment at {most:.3g} + {y:.3g}i needs {count} points of a quadrature")
        x = np.asarray(low + (high - low) / count * np.arange(count + 1), dtype=np.float64)
        log_weight = -(x**2) / 2 + math.log((high - low) / count / math.sqrt(2 * math.pi))
        return x, log_weight + self.loss(x) if self.remove else log_weight

    def _frequency(self, power: float, y: float) -> float:
        """2π/h for which the rule is off by e^{−DIGITS} M(c).

        In |Im x| ≤ a < π/μ the integrand is at most e^{a²/2 + |y|aμ} times its value at Re x, and cos(aμ/2)^p times
        that where p < 0; so the error is below 2 e^{a²/2 + |y|aμ − 2πa/h} cos(aμ/2)^{min(p, 0)} M(c), for the best a.
        """
        a = np.minimum(WIDE * math.pi / self.mu, 20.0)
        loss = min(power, 0.0) * np.log(np.cos(a * self.mu / 2))
        return y * self.mu + float(np.min(a / 2 + (DIGITS + loss) / a))

    def _mode(self, power: float) -> float:
        """Where φ g^p, p < 0, is largest, to 0.1: it is log-concave, and falls at least like a normal law."""
        low = power * self.mu - 1
        root = optimize.brentq(lambda x: x - power * self.mu * float(self.share(np.array(x))), low, 1.0, xtol=0.1)
        return float(root) - 0.2

    def moment_error(self, z: Complexes, moment: Complexes) -> Floats:
        """Quadrature relative to M(c); rounding of Σ w (e^{zl} − 1) relative to Σ w |zl| max(1, e^{cl})."""
        c = float(np.max(z.real))
        at_c, size = _real(self, c)
        rounding = 16 * ROUND_OFF * np.abs(z) * size
        floor = QUADRATURE + 16 * ROUND_OFF * (np.abs(z) * size > FAR)
        apart, left = (np.exp(np.clip(top - moment.real, -300.0, 300.0)) for top in (0.0, at_c))
        steep = 64 * ROUND_OFF * (1 + np.abs(moment)) if abs(c) * self._largest_loss(c) > OVERFLOW else 0.0
        return np.asarray(np.minimum(rounding, 1e100) * apart + floor * left + steep + 4 * ROUND_OFF * np.abs(moment))

    def decay(self, c: float, y: float) -> float:
        """See ``envelope``: far out, where nothing is looked up, its far bound alone."""
        far = _far(self, c)(y)
        return far if far <= SMALL else _envelope(self, c).beyond(y)

    def cells(self, step: float) -> Cells:
        return self._plain.cells(step)

    def _largest_loss(self, c: float) -> float:
        """The largest |l| on the points that M(c) is summed over."""
        high = TAIL + self.mu * max(self.exponent(c), 0.0)
        return max(float(self.loss(np.array(high))), -math.log1p(-self.rate))

    def far(self, c: float, at_c: float) -> FarBound:
        """What ``envelope`` needs far out: cut away x below a point; the density φ g^p / l' of the rest has two peaks.

        The logarithm of φ g^p has slope pμσ − x and that of l' has μ(1 − σ), so a fine grid tells masses and peaks.
        """
        power = self.exponent(c)
        ends = (self._mode(power) if power < 0 else 0.0) - self.mu - TAIL, max(power, 0.0) * self.mu + TAIL
        x = np.linspace(*ends, GRID)
        apart, share = float(x[1] - x[0]), self.share(x)
        steepness = abs(power) * self.mu * np.append(share[1:], 1.0) + np.abs(x) + self.mu + apart
        logs = power * self.loss(x) - x**2 / 2 - math.log(2 * math.pi) / 2 - at_c + steepness * apart / 2
        masses = np.cumsum(np.exp(np.minimum(logs, 600.0))) * apart + 1e-20
        slopes = (
            self.mu * x
            - self.mu**2 / 2
            + math.log(self.rate * self.mu)
            - np.maximum(self.loss(x), math.log1p(-self.rate))
        )
        peaks = np.maximum.accumulate(np.exp(np.minimum(logs - slopes, 600.0))[::-1])[::-1]
        return FarBound(masses, 4 * peaks)


@lru_cache(maxsize=4096)
def _real(law: PoissonGaussian, c: float) -> tuple[float, float]:
    """K(c), and Σ w |l| max(1, e^{cl})."""
    x, log_weight = law._nodes(c, c, 0.0)
    loss = law.loss(x) if law.remove else -law.loss(x)
    at_c = float(law.log_moment(np.array([complex(c)]))[0].real)
    return at_c, float(np.sum(np.exp(np.minimum(log_weight + np.maximum(c * loss, 0.0), 200.0)) * np.abs(loss)))


@lru_cache(maxsize=512)
def _far(law: PoissonGaussian, c: float) -> FarBound:
    return law.far(c, _real(law, c)[0])


@lru_cache(maxsize=512)
def _envelope(law: PoissonGaussian, c: float) -> Envelope:
    """Of |M(c + iy)| / M(c)."""
    x, log_weight = law._nodes(c, c, 0.0)
    loss = law.loss(x) if law.remove else -law.loss(x)
    farthest = AFFORDABLE / (law.mu * float(x[-1] - x[0]))
    return Envelope.on_line(law.log_moment, (c, _real(law, c)[0]), (loss, log_weight), _far(law, c), farthest)
