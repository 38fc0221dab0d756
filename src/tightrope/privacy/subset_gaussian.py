"""Gaussian on a subset of fixed size: the step of DP-SGD with shuffled batches of m of n (GI Prop. 1; replace-one).

With A = N(0, 1), B = N(μ, 1), g = 1 − p + p e^{μx − μ²/2} and l = log g, outcomes x > μ/2 have loss l and P-mass φ g;
their mirror has loss −l and P-mass φ; the rest is an atom at 0. So M(z) = 1 + ∫_{x > μ/2} φ (g (g^z − 1) + g^{−z} − 1),
by Gauss–Legendre panels whose error is bounded in an ellipse (``docs/proofs/sampled-gaussian.md``).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from tightrope.errors import PrecisionError
from tightrope.privacy.cells import Cells
from tightrope.privacy.envelope import SMALL, Envelope, FarBound
from tightrope.privacy.gaussian import GaussianLaw
from tightrope.privacy.law import Complexes, Floats, LossLaw
from tightrope.privacy.moment_sum import FAR, by_height, log_sum
from tightrope.privacy.subsampled_gaussian import AFFORDABLE, GRID, QUADRATURE, ROUND_OFF, TAIL, PoissonGaussian
from tightrope.privacy.subset import Subset

NODES, WEIGHTS = (np.asarray(values, dtype=np.float64) for values in np.polynomial.legendre.leggauss(24))
HEIGHT = 2.917
"""Half the height of the ellipse ρ = 6 over the half-width of its panel."""
MOST_POINTS, MOST_OFF_AXIS = 1 << 19, 1 << 17


@dataclass(frozen=True, slots=True)
class SubsetGaussian(LossLaw):
    """Its own reverse."""

    mu: float
    rate: float

    @property
    def infinite_mass(self) -> float:
        return 0.0

    @property
    def opposite_mass(self) -> float:
        return 0.0

    @property
    def largest(self) -> float:
        return math.inf

    def reverse(self) -> SubsetGaussian:
        return self

    @property
    def _plain(self) -> Subset:
        return Subset(GaussianLaw(self.mu), self.rate)

    def profile(self, epsilon: Floats) -> Floats | None:
        """A single step in closed form."""
        return self._plain.profile(epsilon)

    def profile_error(self, epsilon: Floats) -> Floats:
        return self._plain.profile_error(epsilon)

    def cells(self, step: float) -> Cells:
        return self._plain.cells(step)

    @property
    def _sampled(self) -> PoissonGaussian:
        """Above 0 the losses are those of removing a record from a Poisson sample."""
        return PoissonGaussian(self.mu, self.rate, remove=True)

    def log_moment(self, z: Complexes) -> Complexes:
        """K(z); nodes in blocks of like |Im z|."""
        return by_height(z, self._block)

    def _block(self, z: Complexes) -> Complexes:
        loss, log_weight = self.points(float(np.min(z.real)), float(np.max(z.real)), float(np.max(np.abs(z.imag))))
        return log_sum(z, loss, log_weight)

    def points(self, least: float, most: float, y: float) -> tuple[Floats, Floats]:
        """Losses and logarithms of their P-masses, for least ≤ Re z ≤ most and |Im z| ≤ y.

        In the ellipse of a panel of half-width w the integrand grows by e^{|y|βμ + β²/2} cos(βμ/2)^{−c}, β = 2.917 w,
        at most; with the w chosen here e^{−52} is left after ρ^{−48}.
        """
        power = max(most + 1, -least)
        low, high = self.mu / 2, max(self.mu / 2, 0.0) + TAIL + self.mu * max(power, 0.0)
        half = min(0.75, 8 / (y * self.mu + 1e-300), min(2.5, math.sqrt(80 / max(most, 1.0))) / (HEIGHT * self.mu))
        count = math.ceil((high - low) / (2 * half))
        if not 2 * count * len(NODES) <= (MOST_POINTS if y == 0 else MOST_OFF_AXIS):
            raise PrecisionError(f"the moment at {most:.3g} + {y:.3g}i needs {count} panels")
        half = (high - low) / (2 * count)
        x = (low + half * (2 * np.arange(count)[:, None] + 1 + NODES)).ravel()
        loss = self._sampled.loss(x)
        log_weight = -(x**2) / 2 - math.log(2 * math.pi) / 2 + np.log(np.tile(half * WEIGHTS, count))
        rest = max(0.0, 1 - math.fsum(np.exp(log_weight + loss)) - math.fsum(np.exp(log_weight)))
        return (
            np.concatenate([loss, [0.0], -loss]),
            np.concatenate([log_weight + loss, [math.log(max(rest, 1e-300))], log_weight]),
        )

    def moment_error(self, z: Complexes, moment: Complexes) -> Floats:
        """Quadrature relative to M(c); rounding of Σ w (e^{zl} − 1) relative to Σ w |zl| max(1, e^{cl})."""
        at_c, size = _real(self, float(np.max(z.real)))
        rounding = 16 * ROUND_OFF * np.abs(z) * size
        floor = QUADRATURE + 16 * ROUND_OFF * (np.abs(z) * size > FAR)
        apart, left = (np.exp(np.clip(top - moment.real, -300.0, 300.0)) for top in (0.0, at_c))
        return np.asarray(
            np.minimum(rounding, 1e100) * apart + floor * left + 4 * ROUND_OFF * (np.abs(moment) + (at_c > 1))
        )

    def decay(self, c: float, y: float) -> float:
        """See ``envelope``: far out, where nothing is looked up, its far bound alone."""
        far = _far(self, c)(y)
        return far if far <= SMALL else _envelope(self, c).beyond(y)

    def far(self, c: float, at_c: float) -> FarBound:
        """The atom, and the variation of the densities φ g^{c+1}/l' and φ g^{−c}/l' on either side of it."""
        sampled = self._sampled
        x = np.linspace(self.mu / 2, self.mu / 2 + TAIL + self.mu * max(c + 1, 0.0), GRID)
        apart, share = float(x[1] - x[0]), sampled.share(x)
        steepness = (abs(c) + 1) * self.mu * np.append(share[1:], 1.0) + np.abs(x) + self.mu + apart
        logs = -(x**2) / 2 - math.log(2 * math.pi) / 2 - np.log(self.mu * share) - at_c + steepness * apart / 2
        loss = sampled.loss(x)
        peaks = [float(np.max(np.exp(np.minimum(logs + power * loss, 600.0)))) for power in (c + 1, -c)]
        _, weights = self.points(c, c, 0.0)
        atom = math.exp(float(weights[len(weights) // 2]) - at_c)
        return FarBound(np.array([min(1.0, atom)]), np.array([4 * sum(peaks)]))


@lru_cache(maxsize=4096)
def _real(law: SubsetGaussian, c: float) -> tuple[float, float]:
    """K(c), and Σ w |l| max(1, e^{cl})."""
    loss, log_weight = law.points(c, c, 0.0)
    at_c = float(law.log_moment(np.array([complex(c)]))[0].real)
    return at_c, float(np.sum(np.exp(np.minimum(log_weight + np.maximum(c * loss, 0.0), 200.0)) * np.abs(loss)))


@lru_cache(maxsize=512)
def _far(law: SubsetGaussian, c: float) -> FarBound:
    return law.far(c, _real(law, c)[0])


@lru_cache(maxsize=512)
def _envelope(law: SubsetGaussian, c: float) -> Envelope:
    """Of |M(c + iy)| / M(c)."""
    loss, log_weight = law.points(c, c, 0.0)
    farthest = AFFORDABLE / (law.mu * (TAIL + law.mu * (abs(c) + 1))) / 3
    return Envelope.on_line(law.log_moment, (c, _real(law, c)[0]), (loss, log_weight), _far(law, c), farthest)
