"""A lower bound on the error of everybody, as a function of how many people report; and its inverse."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import ndtr

from tightrope.errors import InputError
from tightrope.numerics.arrays import Floats
from tightrope.numerics.checks import check_positive, check_probability, non_negative
from tightrope.numerics.distributions import normalize_distribution
from tightrope.numerics.divergences import HELLINGER, KL, TOTAL_VARIATION

MOST_PEOPLE = 10**15
PEOPLE_WITHIN = 1e-3
"""Relative precision of the number of people above 1000; it stays on the proven side."""
LOWERED = 1 - 1e-9
"""Every bound is lowered by this: rounding of what it is made of, with room."""

Cost = Callable[[float], float]
COSTS: dict[str, Cost] = {"absolute": lambda error: error, "squared": lambda error: error * error}


class Limit(ABC):
    """No mechanism within the constraint and no estimator, however clever, has a smaller worst-case or Bayes risk."""

    __slots__ = ()

    @abstractmethod
    def risk(self, people: int) -> float:
        """A lower bound on the risk with this many people, one report each; it falls with ``people``."""

    @property
    def guess_risk(self) -> float:
        """The worst risk of the best answer that needs no report; ∞ where that is not known."""
        return math.inf

    def people(self, risk: float) -> int:
        """A lower bound on the people that any mechanism needs for the risk; 0 if a constant guess reaches it.

        The least n (to 1e−3 relative above 1000, from below) for which the bound does not exclude the risk; 1 where
        it excludes nothing, 0 where ``guess_risk`` is at most the risk. Raises ``InputError`` unless the risk is
        positive, or where 10¹⁵ people are too few.
        """
        target = check_positive("risk", risk)
        return 0 if target >= self.guess_risk else fewest_people(self.risk, target)


def fewest_people(bound: Callable[[int], float], target: float, *, from_: int = 1) -> int:
    """One more than some n with bound(n) > target: bisection, ended on the side that was checked.

    ``from_`` is an answer of a smaller bound, to start at.

    >>> fewest_people(lambda n: 1 / n, 0.01)
    100
    """
    low, high = from_ - 1, from_
    while bound(high) > target:
        low, high = high, 2 * high
        if high > MOST_PEOPLE:
            raise _out_of_reach(target)
    while high - low > max(1, int(PEOPLE_WITHIN * low)):
        middle = (low + high) // 2
        low, high = (middle, high) if bound(middle) > target else (low, middle)
    return low + 1


def people_beyond(excluded: float, target: float) -> int:
    """The least whole number of people that is not excluded, where every smaller one than ``excluded`` is; at least 1.

    >>> people_beyond(99.5, 0.01), people_beyond(-3.0, 0.01)
    (100, 1)
    """
    if excluded > MOST_PEOPLE:
        raise _out_of_reach(target)
    return max(1, math.ceil(excluded * LOWERED))


def _out_of_reach(target: float) -> InputError:
    return InputError("risk", target, f"within reach of {MOST_PEOPLE:.0e} people", "ask for a larger risk")


def cost_of(cost: str | Cost) -> Cost:
    """The cost of an error ≥ 0: "absolute", "squared" or any function that does not fall.

    >>> cost_of("squared")(3.0)
    9.0
    """
    if callable(cost):
        return cost
    if not isinstance(cost, str) or cost not in COSTS:
        raise InputError("cost", cost, f"one of {', '.join(COSTS)}, or a function of the error that does not fall")
    return COSTS[cost]


def falls_to(value: float) -> float:
    """A bound as it leaves: lowered by ``LOWERED``, never negative, never NaN."""
    return value * LOWERED if 0 < value < math.inf else 0.0


# Two distributions to be tested, and their divergences without privacy.


@dataclass(frozen=True, slots=True, eq=False)
class Hypotheses:
    """P₀ and P₁ of one person's value: total variation, both KL divergences (nats), ``hellinger`` Σ (√P₀ − √P₁)².

    Each may be an upper bound; KL may be ∞, and ``hellinger`` is at most twice the total variation. ``laws`` of shape
    [2, values], where the values are finitely many: a given channel needs them. Raises ``InputError`` for numbers that
    are none.

    >>> coin = Hypotheses.from_distributions([0.5, 0.5], [0.4, 0.6])
    >>> round(coin.total_variation, 12), round(coin.kl, 9)
    (0.1, 0.020410997)
    """

    total_variation: float
    kl: float = math.inf
    reverse_kl: float = math.inf
    hellinger: float = 2.0
    laws: Floats | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "total_variation", check_probability("total_variation", self.total_variation))
        for name in ("kl", "reverse_kl"):
            value = getattr(self, name)
            if value != math.inf:
                non_negative(name, value)
        told = non_negative("hellinger", self.hellinger)
        object.__setattr__(self, "hellinger", min(told, 2 * self.total_variation))

    @classmethod
    def from_distributions(cls, p0: ArrayLike, p1: ArrayLike) -> Hypotheses:
        """Two laws over the same values, shape [values] each."""
        first = normalize_distribution("p0", p0)
        second = normalize_distribution("p1", p1, len(first))
        return cls(
            min(1.0, TOTAL_VARIATION.divergence_between(first, second)),
            KL.divergence_between(first, second),
            KL.divergence_between(second, first),
            HELLINGER.divergence_between(first, second),
            np.stack([first, second]),
        )

    @classmethod
    def from_normal_shift(cls, distance: float) -> Hypotheses:
        """Two normal laws whose means are ``distance`` standard deviations apart.

        >>> round(Hypotheses.from_normal_shift(1.0).total_variation, 9)
        0.382924923
        """
        gap = non_negative("distance", distance)
        kl = gap * gap / 2
        return cls(float(2 * ndtr(gap / 2) - 1), kl, kl, -2 * math.expm1(-gap * gap / 8))


def make_hypotheses(p0: ArrayLike | Hypotheses, p1: ArrayLike | None) -> Hypotheses:
    """Either two laws, or hypotheses made before."""
    if isinstance(p0, Hypotheses):
        if p1 is not None:
            raise InputError("p1", p1, "left out, as p0 holds both laws")
        return p0
    if p1 is None:
        raise InputError("p1", p1, "the second law", "or give Hypotheses alone")
    return Hypotheses.from_distributions(p0, p1)
