"""Plateaus as wide as the shift, each e^{−ε} times the one before."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from tightrope.mechanisms.continuous.staircase import staircase
from tightrope.mechanisms.families.family import SEARCHED_NATS, Family, Heights, RealTwin, Several
from tightrope.mechanisms.families.weights import Need, Weights, cells
from tightrope.mechanisms.integer.discrete_staircase import discrete_staircase
from tightrope.mechanisms.integer.integer_mechanism import IntegerMechanism

MOST_STAIRS = 12


@dataclass(frozen=True, slots=True)
class Staircase(Family):
    """In plans the plateaus are as wide as a worst part's shift, the first one for the least E|X|
    (γ = 1/(1 + e^{ε/2})).
    """

    name: ClassVar[str] = "discrete staircase"
    smallest_shift: ClassVar[int] = 2
    real: ClassVar[RealTwin | None] = RealTwin(
        "staircase", lambda size, sensitivity, delta: staircase(epsilon=sensitivity / size, sensitivity=sensitivity)
    )

    def weights(self, size: float, need: Need) -> Weights:
        period = need.shift * max(need.parts)
        epsilon = min(period / (size * need.shift), 38.0)
        high = min(period, max(1, round(period / (1 + math.exp(epsilon / 2)))))
        plateaus = max(2, math.ceil(need.depth / epsilon))
        levels = np.exp(-epsilon * np.arange(plateaus))
        half = np.concatenate([np.full(high, 1.0), np.repeat(levels[1:], period)])
        return Weights(half, head=high, ratio=math.exp(-epsilon), width=period)

    def noise(self, size: float, need: Need) -> IntegerMechanism:
        return discrete_staircase(epsilon=1 / size, sensitivity=need.shift)

    def laws(self, asked: Several) -> Sequence[Heights]:
        """A law for every width of the first plateau."""
        return [_of_width(asked.shift, high) for high in first_widths(asked.shift, MOST_STAIRS)]


def first_widths(shift: int, most: int) -> list[int]:
    """Widths of the first plateau that are tried: about ``most`` of 1..shift.

    >>> first_widths(3, 12)
    [1, 2, 3]
    """
    return sorted({1 + round(i * (shift - 1) / most) for i in range(most + 1)})


def _of_width(shift: int, high: int) -> Heights:
    return Heights(lambda size: shift * ((np.arange(cells(SEARCHED_NATS * size)) + shift - high) // shift))
