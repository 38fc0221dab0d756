"""e^{−x²/2σ²} on the whole numbers: near the best for many answers."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from tightrope.mechanisms.continuous.gaussian import gaussian
from tightrope.mechanisms.families.family import NORMAL, SEARCHED_NATS, Family, Indices, RealTwin, Several, Sized
from tightrope.mechanisms.families.weights import LISTED_NATS, Need, Weights, cells
from tightrope.mechanisms.integer.discrete_gaussian import tabulated_gaussian
from tightrope.mechanisms.integer.integer_mechanism import IntegerMechanism


@dataclass(frozen=True, slots=True)
class Gaussian(Family):
    """Its losses lie on the lattice 1/2σ²."""

    name: ClassVar[str] = "discrete Gaussian"
    bounded: ClassVar[bool] = True
    real: ClassVar[RealTwin | None] = RealTwin(
        "analytic Gaussian", lambda size, sensitivity, delta: gaussian(scale=size, sensitivity=sensitivity)
    )

    def weights(self, size: float, need: Need) -> Weights:
        scale = max(size * need.shift * NORMAL, 0.1)
        count = max(2, math.ceil(math.sqrt(2 * LISTED_NATS) * scale))
        return Weights(np.exp(-((np.arange(count) / scale) ** 2) / 2))

    def noise(self, size: float, need: Need) -> IntegerMechanism:
        return tabulated_gaussian(scale=size, sensitivity=need.shift)

    def guess(self, epsilon: float, need: Need) -> float:
        return max(0.2, need.shift * math.sqrt(2 * math.log(1.25 / need.infinite_mass)) / epsilon / 2)

    def laws(self, asked: Several) -> Sequence[Sized]:
        reach = math.sqrt(2 * asked.depth)
        return (
            Sized(
                lambda size: np.exp(-((np.arange(cells(reach * size)) / size) ** 2) / 2), asked.gaussian_scale, _lattice
            ),
        )


def _lattice(size: float) -> tuple[float, Indices]:
    return 2 * size**2, np.arange(cells(math.sqrt(2 * SEARCHED_NATS) * size), dtype=np.int64) ** 2
