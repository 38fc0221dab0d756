"""e^{−(|x|/s)^q}, 1 ≤ q ≤ 2: the Laplace law at one end, the Gaussian at the other.

It takes nine tenths of what there is to gain over the classic families where those two cross (theory §4.3).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, Self

import numpy as np

from tightrope.mechanisms.families.family import Several, Shaped, Sized
from tightrope.mechanisms.families.weights import LISTED_NATS, Need, Weights, cells
from tightrope.numerics.arrays import Floats


@dataclass(frozen=True, slots=True)
class ExponentialPower(Shaped):
    """The shape is the power q."""

    power: float = 1.5
    name: ClassVar[str] = "exponential power"
    bounded: ClassVar[bool] = True
    most_releases: ClassVar[int | None] = 300  # for more, noise between Laplace and Gaussian gains less than 0.05 %
    ends: ClassVar[tuple[float, float]] = (1.0, 2.0)
    grid: ClassVar[tuple[float, ...]] = (1.9, 1.75, 1.6, 1.5, 1.4, 1.3, 1.2, 1.15, 1.1, 1.05, 1.02)
    near: ClassVar[str] = "discrete Gaussian"

    def at(self, shape: float) -> Self:
        return type(self)(shape)

    def weights(self, size: float, need: Need) -> Weights:
        scale = max(size * need.shift / _mean_absolute(self.power), 0.1)
        count = max(2, math.ceil(LISTED_NATS ** (1 / self.power) * scale))
        return Weights(np.exp(-((np.arange(count) / scale) ** self.power)))

    def listed(self, scale: float, nats: float) -> Floats:
        reach = np.arange(cells(scale * nats ** (1 / self.power)) + 1)
        return np.asarray(np.exp(-((reach / scale) ** self.power)), dtype=np.float64)

    @property
    def deviation(self) -> float:
        return _deviation(self.power)

    def laws(self, asked: Several) -> Sequence[Sized]:
        return (Sized(lambda scale: self.listed(scale, asked.depth), asked.gaussian_scale / self.deviation),)


def _mean_absolute(power: float) -> float:
    """E|X|/s = Γ(2/q)/Γ(1/q).

    >>> _mean_absolute(1.0)
    1.0
    """
    return math.exp(math.lgamma(2 / power) - math.lgamma(1 / power))


def _deviation(power: float) -> float:
    """√(E X²)/s = √(Γ(3/q)/Γ(1/q)).

    >>> round(_deviation(2.0) ** 2, 12)
    0.5
    """
    return math.exp((math.lgamma(3 / power) - math.lgamma(1 / power)) / 2)
