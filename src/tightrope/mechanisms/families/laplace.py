"""e^{−|x|/t} on the whole numbers."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from tightrope.mechanisms.continuous.laplace import laplace
from tightrope.mechanisms.families.family import SEARCHED_NATS, Family, Heights, RealTwin, Several
from tightrope.mechanisms.families.weights import Need, Weights, cells
from tightrope.mechanisms.integer.discrete_laplace import discrete_laplace
from tightrope.mechanisms.integer.integer_mechanism import IntegerMechanism


@dataclass(frozen=True, slots=True)
class Laplace(Family):
    """Geometric on either side: the least noise of one answer where δ = 0."""

    name: ClassVar[str] = "discrete Laplace"
    real: ClassVar[RealTwin | None] = RealTwin(
        "Laplace", lambda size, sensitivity, delta: laplace(scale=size, sensitivity=sensitivity)
    )

    def weights(self, size: float, need: Need) -> Weights:
        scale = max(size * need.shift, 0.026)
        count = max(2, math.ceil(need.depth * scale))
        return Weights(np.exp(-np.arange(count) / scale), head=1, ratio=math.exp(-1 / scale))

    def noise(self, size: float, need: Need) -> IntegerMechanism:
        return discrete_laplace(scale=size, sensitivity=need.shift)

    def guess(self, epsilon: float, need: Need) -> float:
        return need.shift / epsilon

    def laws(self, asked: Several) -> Sequence[Heights]:
        return (Heights(lambda size: np.arange(cells(SEARCHED_NATS * size))),)
