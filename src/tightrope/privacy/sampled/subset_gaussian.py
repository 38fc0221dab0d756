"""Gaussian on a subset of fixed size: the step of DP-SGD with shuffled batches of m of n (GI Prop. 1; replace-one).

With A = N(0, 1), B = N(μ, 1), g = 1 − p + p e^{μx − μ²/2} and l = log g, outcomes x > μ/2 have loss l and P-mass φ g;
their mirror has loss −l and P-mass φ; the rest is an atom at 0. So M(z) = 1 + ∫_{x > μ/2} φ (g (g^z − 1) + g^{−z} − 1),
on a curve beside the real axis (``subset_line``; ``docs/proofs/sampled-gaussian.md``).
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import lru_cache

import numpy as np

from tightrope.numerics.arrays import Complexes, Floats
from tightrope.privacy.laws.gaussian import GaussianLaw
from tightrope.privacy.laws.law import LossLaw
from tightrope.privacy.laws.loss_cells import Cells
from tightrope.privacy.sampled.lifted_path import LiftedPath
from tightrope.privacy.sampled.line_moment import Enclosed, MomentLine
from tightrope.privacy.sampled.shifted_line import Power
from tightrope.privacy.sampled.subsampled_gaussian import ALIKE, PoissonGaussian, by_class, by_line, cut_for
from tightrope.privacy.sampled.subset import Subset
from tightrope.privacy.sampled.subset_line import power_of, subset_line


@dataclass(frozen=True, slots=True)
class SubsetGaussian(LossLaw):
    """Its own reverse."""

    mu: float
    rate: float
    end: float = math.inf
    """What lies beyond it counts as infinite loss."""

    @property
    def integrated(self) -> bool:
        return True

    @property
    def infinite_mass(self) -> float:
        return _line(self, 1.0).cut if self.end < math.inf else 0.0

    def trimmed(self, mass: float) -> SubsetGaussian:
        """The same with no more than this mass of its largest losses counted as infinite."""
        return replace(self, end=cut_for(mass, self.mu, self.rate))

    @property
    def knows_moment(self) -> bool:
        return True

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
        return None if self.end < math.inf else self._plain.profile(epsilon)

    def profile_error(self, epsilon: Floats) -> Floats:
        return self._plain.profile_error(epsilon)

    def _power(self, c: float) -> Power:
        return power_of(self.mu, self.rate, c, self.end)

    def cells(self, step: float) -> Cells:
        return self._plain.cells(step)

    def between(self, step: float, low: float, high: float) -> Cells:
        return self._plain.between(step, low, high)

    def evenly(self, count: int) -> Cells:
        return self._plain.evenly(count)

    def tail(self, z: Complexes) -> Enclosed:
        """Log ∫ φ g^{z+1} beyond the cut, for z that are real or share their real part."""
        return PoissonGaussian(self.mu, self.rate, remove=True, end=self.end).tail(z)

    def log_moment(self, z: Complexes) -> Complexes:
        """K(z), any shape; see ``enclosed``."""
        return self.enclosed(z)[0]

    def moment_error(self, z: Complexes, moment: Complexes) -> Floats:
        """See ``enclosed``."""
        del moment
        return self.enclosed(z)[1]

    def enclosed(self, z: Complexes) -> Enclosed:
        """K(z) and a bound on its error, z of any shape: conjugates below the real axis, line by line above it."""
        return by_line(z, self._on_axis, lambda c, upper: _line(self, c).cumulants(upper))

    def _on_axis(self, z: Complexes) -> Enclosed:
        """At real z, by nodes that are kept: they serve every z of their class."""
        return by_class(z, ALIKE, lambda widest: _real_line(self._power(widest)))

    def decay(self, c: float, y: float) -> float:
        """See ``lifted_path``; the atom at 0 stays."""
        return math.exp(_beyond(self, c, y)) if y > 0 else 1.0


@lru_cache(maxsize=4096)
def _at(law: SubsetGaussian, c: float) -> tuple[float, float]:
    """K(c) and its error."""
    value, error = law.enclosed(np.array([complex(c)]))
    return float(value[0].real), float(error[0])


@lru_cache(maxsize=64)
def _real_line(power: Power) -> MomentLine:
    return subset_line(power, None)


@lru_cache(maxsize=512)
def _line(law: SubsetGaussian, c: float) -> MomentLine:
    return subset_line(law._power(c), _at(law, c)[0])


@lru_cache(maxsize=512)
def _path(law: SubsetGaussian, c: float) -> LiftedPath:
    at_c = _at(law, c)[0] - _at(law, c)[1]
    still = min(1.0, _line(law, c).still * math.exp(-at_c) * (1 + 1e-9) + 1e-15)
    return LiftedPath.of(law._power(c), (c + 1, -c), at_c, still)


@lru_cache(maxsize=8192)
def _beyond(law: SubsetGaussian, c: float, y: float) -> float:
    return _path(law, c).log_bound(y)
