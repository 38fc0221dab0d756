"""Poisson-sampled Gaussian: the step of DP-SGD (theory §2, §3; add-remove).

With A = N(0, 1), B = N(μ, 1) and l(x) = log(1 − q + q e^{μx − μ²/2}), removing a record compares (1−q)A + qB with A
(loss l) and adding one compares A with (1−q)A + qB (loss −l). The moment is an integral over x of an analytic
function, so the trapezoidal rule converges exponentially; its step follows |Im z| and the zeros at Im x = π/μ.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from scipy import special

from tightrope.numerics.complex_log import log1p
from tightrope.privacy.cells import MOST, Cells
from tightrope.privacy.gaussian import REACH, GaussianLaw
from tightrope.privacy.law import Complexes, Floats, LossLaw
from tightrope.privacy.subsampled import PoissonAdd, PoissonRemove

CHUNK = 1 << 20
"""Cells of a (nodes × quadrature points) table held at once: 16 MiB of complex numbers."""
TAIL = 9.5
"""Standard deviations kept on each side: the rest is below 1e−20 of the integral."""
FARTHEST = 1e4
"""The modulus is not measured beyond this |Im z|."""
ROUND_OFF = 2.0**-53
OVERFLOW = 300.0
"""Real exponents beyond this are summed with their peak pulled out."""


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
        small = np.log1p(self.rate * np.expm1(np.minimum(exponent, 30.0)))
        return np.where(exponent > 30, np.logaddexp(math.log(self.rate) + exponent, math.log1p(-self.rate)), small)

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
        flat = np.asarray(z, dtype=np.complex128).ravel()
        result = np.empty_like(flat)
        order = np.argsort(np.abs(flat.imag), kind="stable")
        start = 0
        while start < len(order):
            reach = 2 * abs(flat[order[start]].imag) + 64
            block = order[start:][np.abs(flat[order[start:]].imag) <= reach]
            result[block] = self._block(flat[block])
            start += len(block)
        return result.reshape(np.shape(z))

    def _block(self, z: Complexes) -> Complexes:
        """Quadrature fine enough for every node of the block."""
        c, y = float(np.max(z.real)), float(np.max(np.abs(z.imag)))
        low, high = -TAIL - 1, TAIL + 1 + (self.mu * (1 + c) if self.remove else 0.0)
        frequency = y * self.mu + 10 + (25 + c / 2) * self.mu
        count = max(32, math.ceil((high - low) * frequency / (2 * math.pi)))
        x = np.asarray(low + (high - low) / count * np.arange(count + 1), dtype=np.float64)
        loss = self.loss(x)
        log_weight = -(x**2) / 2 - math.log(math.sqrt(2 * math.pi)) + math.log((high - low) / count)
        if self.remove:
            log_weight = log_weight + loss
        signed = loss if self.remove else -loss
        rows = max(1, CHUNK // len(x))
        return np.concatenate([_moments(z[i : i + rows], signed, log_weight) for i in range(0, len(z), rows)])

    def moment_error(self, c: float) -> float:
        """Each term of Σ w (e^{cl} − 1) is rounded; together they are no larger than c E|l| and K allow."""
        at_c = abs(float(self.log_moment(np.array([complex(c)]))[0].real))
        spread = math.sqrt(math.expm1(min(self.mu**2, 50.0)))
        return 16 * ROUND_OFF * (at_c + min(1.0, c * self.rate * spread))

    def decay(self, c: float, y: float) -> float:
        """Measured at y (the modulus falls with |y|; its certified envelope is not known here)."""
        far = c + 1j * min(y, FARTHEST)
        low, high = (self.log_moment(np.array([z], dtype=np.complex128))[0] for z in (far, complex(c)))
        return math.exp(min(0.0, low.real - high.real))

    def cells(self, step: float) -> Cells:
        """Intervals of x with losses no further apart than ``step`` and their exact normal masses."""
        low, high = -REACH, self.mu + REACH
        first, last = (float(self.loss(np.array(end))) for end in (low, high))
        losses = np.linspace(first, last, min(MOST, max(2, math.ceil((last - first) / step))) + 1)
        x = np.concatenate([[low], np.clip(self._inverse(losses[1:-1]), low, high), [high]])
        x = np.unique(x)
        a, b = _masses(x), _masses(x - self.mu)
        mixed, loss = (1 - self.rate) * a + self.rate * b, self.loss(x)
        if self.remove:
            return Cells(loss[:-1], loss[1:], mixed, a, 0.0, 0.0)
        return Cells(-loss[:0:-1], -loss[-2::-1], a[::-1], mixed[::-1], 0.0, 0.0)

    def _inverse(self, loss: Floats) -> Floats:
        """X with l(x) = loss."""
        with np.errstate(divide="ignore", invalid="ignore"):
            ratio = np.log(np.expm1(loss) / self.rate + 1)
        return np.asarray(np.nan_to_num(ratio, nan=-np.inf) / self.mu + self.mu / 2)


def _moments(z: Complexes, loss: Floats, log_weight: Floats) -> Complexes:
    """Log Σ w e^{zl}: near one as 1 + Σ w (e^{zl} − 1), far from it with the peak pulled out."""
    if float(np.max(z.real) * np.max(np.abs(loss))) < OVERFLOW:
        return log1p(_excess(z, loss) @ np.exp(log_weight))
    peaks = np.max(z.real[:, None] * loss + log_weight, axis=1)
    total = np.exp(z[:, None] * loss + (log_weight - peaks[:, None])) @ np.ones(len(loss))
    return np.asarray(np.log(total) + peaks)


def _excess(z: Complexes, loss: Floats) -> Complexes:
    """e^{zl} − 1 [n, k] without cancellation: expm1(a) cos b − 2 sin²(b/2) + i e^a sin b."""
    a, half = z.real[:, None] * loss, z.imag[:, None] * (loss / 2)
    sine, growth = np.sin(half), np.expm1(a)
    result = np.empty(a.shape, dtype=np.complex128)
    result.real = growth - 2 * (1 + growth) * sine**2
    result.imag = 2 * (1 + growth) * sine * np.cos(half)
    return result


def _masses(edges: Floats) -> Floats:
    """Normal masses between edges, each from the tail that keeps its digits."""
    left, right = edges[:-1], edges[1:]
    return np.where(right <= 0, special.ndtr(right) - special.ndtr(left), special.ndtr(-left) - special.ndtr(-right))
