"""Two laws that somebody wants to tell apart, and how far apart they are before any privacy."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import ndtr

from tightrope.errors import InputError
from tightrope.numerics.arrays import Floats
from tightrope.numerics.checks import non_negative, probability
from tightrope.numerics.divergences import HELLINGER, KL, TOTAL_VARIATION
from tightrope.numerics.laws import law


@dataclass(frozen=True, slots=True, eq=False)
class Hypotheses:
    """P₀ and P₁ of one person's value: total variation, both KL divergences (nats), ``hellinger`` Σ (√P₀ − √P₁)².

    Each may be an upper bound; KL may be ∞, and ``hellinger`` is at most twice the total variation. ``laws`` of shape
    [2, values], where the values are finitely many: a given channel needs them. Raises ``InputError`` for numbers that
    are none.

    >>> coin = Hypotheses.of([0.5, 0.5], [0.4, 0.6])
    >>> round(coin.total_variation, 12), round(coin.kl, 9)
    (0.1, 0.020410997)
    """

    total_variation: float
    kl: float = math.inf
    reverse_kl: float = math.inf
    hellinger: float = 2.0
    laws: Floats | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "total_variation", probability("total_variation", self.total_variation))
        for name in ("kl", "reverse_kl"):
            value = getattr(self, name)
            if value != math.inf:
                non_negative(name, value)
        told = non_negative("hellinger", self.hellinger)
        object.__setattr__(self, "hellinger", min(told, 2 * self.total_variation))

    @classmethod
    def of(cls, p0: ArrayLike, p1: ArrayLike) -> Hypotheses:
        """Two laws over the same values, shape [values] each."""
        first = law("p0", p0)
        second = law("p1", p1, len(first))
        return cls(
            min(1.0, TOTAL_VARIATION.between(first, second)),
            KL.between(first, second),
            KL.between(second, first),
            HELLINGER.between(first, second),
            np.stack([first, second]),
        )

    @classmethod
    def gaussian(cls, distance: float) -> Hypotheses:
        """Two normal laws whose means are ``distance`` standard deviations apart.

        >>> round(Hypotheses.gaussian(1.0).total_variation, 9)
        0.382924923
        """
        gap = non_negative("distance", distance)
        kl = gap * gap / 2
        return cls(float(2 * ndtr(gap / 2) - 1), kl, kl, -2 * math.expm1(-gap * gap / 8))


def hypotheses(p0: ArrayLike | Hypotheses, p1: ArrayLike | None) -> Hypotheses:
    """Either two laws, or hypotheses made before."""
    if isinstance(p0, Hypotheses):
        if p1 is not None:
            raise InputError("p1", p1, "left out, as p0 holds both laws")
        return p0
    if p1 is None:
        raise InputError("p1", p1, "the second law", "or give Hypotheses alone")
    return Hypotheses.of(p0, p1)
