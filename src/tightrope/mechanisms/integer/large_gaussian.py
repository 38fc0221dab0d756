"""Discrete Gaussian noise without a table: all integers, scales up to 10⁹."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from scipy import special

from tightrope.mechanisms.integer.gaussian_envelope import Envelope
from tightrope.mechanisms.integer.gaussian_sampling import GaussianSampler
from tightrope.mechanisms.integer.integer_mechanism import add_noise, entries
from tightrope.mechanisms.mechanism import Mechanism
from tightrope.mechanisms.tables.integer_tables import scale_between
from tightrope.numerics.checks import inner_probability, positive, whole
from tightrope.privacy.laws.gaussian import GaussianLaw
from tightrope.privacy.loss import PrivacyLoss
from tightrope.randomness.source import Source
from tightrope.randomness.stream import Stream

SMALLEST, LARGEST = 64.0, 1e9
UPWARDS = 1 + 2.0**-48
"""Takes a float that is right to a few units in the last place to the side where it is safe."""


@dataclass(frozen=True, slots=True)
class LargeGaussian(Mechanism):
    """P(X = x) = e^{−x²/(2 scale²)} / Z for every integer x, exactly; no output has infinite loss.

    *Privacy.* With Φ(u_k) = P(X < k), u_{k+1} − u_k ≤ 1/√(scale² − ½) for all k. So the ROC curve of (X, X + d), whose
    corners are (Φ(−u_k), Φ(u_{k−d})), lies above that of two normal laws d/√(scale² − ½) apart: the loss of a Gaussian
    whose scale is smaller by 1/(4 scale²) of itself dominates, at every shift (``docs/proofs/exact-sampling.md``).
    """

    scale: float
    sensitivity: int
    sampler: GaussianSampler = field(repr=False, compare=False)

    @classmethod
    def of(cls, scale: float, sensitivity: int = 1) -> Self:
        """For 64 ≤ scale ≤ 10⁹, taken as the exact number that the float is; raises ``InputError`` for others.

        >>> noise = LargeGaussian.of(1e9, 10**9)
        >>> round(noise.loss.delta(1), 9), noise.half_width(0.95)
        (0.126936738, 1959963985)
        """
        number = scale_between(scale, SMALLEST, LARGEST)
        sensitivity = whole("sensitivity", sensitivity, remedy="round the answers to fixed point first")
        positive("sensitivity", sensitivity)
        return cls(number, sensitivity, GaussianSampler(Envelope(number)))

    @property
    def loss(self) -> PrivacyLoss:
        """μ-GDP with μ = sensitivity / √(scale² − ½), rounded up; smaller shifts are dominated."""
        return PrivacyLoss.of(GaussianLaw(self.sensitivity / math.sqrt(self.scale**2 - 0.5) * UPWARDS))

    @property
    def mean_absolute_error(self) -> float:
        """E|X| = (2 scale² − 1/6) / (scale √(2π)), up to 1/(60 scale⁴) of itself (Euler–Maclaurin)."""
        return (2 * self.scale**2 - 1 / 6) / (self.scale * math.sqrt(2 * math.pi))

    @property
    def mean_squared_error(self) -> float:
        """E X² = scale²: Poisson's summation takes away less than e^{−19 scale²} of it."""
        return self.scale**2

    @property
    def worst_error(self) -> float:
        """There is none: ∞."""
        return math.inf

    def quantile(self, p: float) -> int:
        """The smallest x with P(X ≤ x) ≥ p, or a neighbour of it; raises ``InputError`` unless 0 < p < 1."""
        return math.ceil(self.scale * float(special.ndtri(inner_probability("p", p))) - 0.5)

    def half_width(self, confidence: float) -> int:
        """A w with P(|X| ≤ w) ≥ confidence; the smallest one, or the next.

        P(X > w) ≤ (1 + 1/(12 scale²)) Φ(−(w + ½)/scale): e^{−x²/2σ²} is at most 1 + 1/(24σ²) times its mean over
        [x − ½, x + ½], and Z is at least scale √(2π).
        """
        outside = (1 - inner_probability("confidence", confidence)) / (2 + 1 / (6 * self.scale**2))
        return math.ceil(-self.scale * float(special.ndtri(outside / UPWARDS)) * UPWARDS - 0.5)

    def sample(self, size: int, randomness: Source | None = None) -> NDArray[np.int64]:
        """``size`` independent draws of X, shape [size], exactly from its law."""
        return self.sampler.draw(whole("size", size, at_least=0), randomness or Stream())

    def release(self, value: Any, randomness: Source | None = None) -> Any:
        """Value + X for an integer or an array of integers; raises ``InputError`` for anything else."""
        return add_noise(value, self.sample(entries(value), randomness))
