"""Base class of lower bounds on the risk of every mechanism and estimator, as functions of the number of people."""

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
from tightrope.numerics.checks import check_non_negative, check_positive, check_probability
from tightrope.numerics.distributions import normalize_distribution
from tightrope.numerics.divergences import HELLINGER, KL, TOTAL_VARIATION
from tightrope.numerics.root_finding import bisect_integer, bracket_by_doubling

MAX_PEOPLE = 10**15
PEOPLE_TOLERANCE = 1e-3
"""Relative precision of the number of people above 1000; it stays on the proven side."""
LOWERING_FACTOR = 1 - 1e-9
"""Every bound is multiplied by this factor, to cover all rounding errors."""

Cost = Callable[[float], float]
COSTS: dict[str, Cost] = {"absolute": lambda error: error, "squared": lambda error: error * error}


class Limit(ABC):
    """A lower bound on the worst-case or Bayes risk of every mechanism within a constraint and every estimator."""

    __slots__ = ()

    @abstractmethod
    def risk(self, people: int) -> float:
        """Return a lower bound on the risk with this many people, one report each; it decreases in ``people``."""

    @property
    def guess_risk(self) -> float:
        """The worst risk of the best constant estimate, which needs no reports; ∞ if unknown."""
        return math.inf

    def people(self, risk: float) -> int:
        """Return a lower bound on the people that a mechanism needs for the risk; 0 if a constant estimate reaches it.

        The smallest n (to 1e−3 relative above 1000, from below) for which ``risk(n)`` is at most the risk; 0 if
        ``guess_risk`` is at most the risk. Raises ``InputError`` unless the risk is positive, or if 10¹⁵ people are too
        few.
        """
        target = check_positive("risk", risk)
        return 0 if target >= self.guess_risk else fewest_people(self.risk, target)


def fewest_people(bound: Callable[[int], float], target: float, *, from_: int = 1) -> int:
    """Return n + 1 for an n with bound(n) > target, nearly the largest; 1 if there is no such n ≥ 1.

    ``from_`` is a known lower bound on the result, at which the search starts.

    >>> fewest_people(lambda n: 1 / n, 0.01)
    100
    """

    def suffices(people: int) -> bool:
        return not bound(people) > target

    bracket = bracket_by_doubling(suffices, from_ - 1, from_, limit=MAX_PEOPLE)
    if bracket is None:
        raise _out_of_reach(target)
    return bisect_integer(suffices, *bracket, side="fails", relative=PEOPLE_TOLERANCE) + 1


def people_not_excluded(excluded: float, target: float) -> int:
    """Return the smallest integer ≥ ``excluded`` (lowered for rounding), at least 1; fewer people are excluded.

    >>> people_not_excluded(99.5, 0.01), people_not_excluded(-3.0, 0.01)
    (100, 1)
    """
    if excluded > MAX_PEOPLE:
        raise _out_of_reach(target)
    return max(1, math.ceil(excluded * LOWERING_FACTOR))


def _out_of_reach(target: float) -> InputError:
    return InputError("risk", target, f"within reach of {MAX_PEOPLE:.0e} people", "use a larger risk")


def resolve_cost_function(cost: str | Cost) -> Cost:
    """Return the cost function of an error ≥ 0: "absolute", "squared" or any non-decreasing function.

    >>> resolve_cost_function("squared")(3.0)
    9.0
    """
    if callable(cost):
        return cost
    if not isinstance(cost, str) or cost not in COSTS:
        raise InputError("cost", cost, f"one of {', '.join(COSTS)}, or a non-decreasing function of the error")
    return COSTS[cost]


def lower_bound(value: float) -> float:
    """Return the value lowered by ``LOWERING_FACTOR``; 0 if it is negative, infinite or NaN."""
    return value * LOWERING_FACTOR if 0 < value < math.inf else 0.0


@dataclass(frozen=True, slots=True, eq=False)
class Hypotheses:
    """P₀ and P₁ of one person's value: total variation, both KL divergences (nats), ``hellinger`` Σ (√P₀ − √P₁)².

    Each may be an upper bound; KL may be ∞, and ``hellinger`` is at most twice the total variation. ``laws`` holds P₀
    and P₁, shape [2, values], if there are finitely many values: limits of one given channel need it. Raises
    ``InputError`` if a total variation is not in [0, 1] or another number is negative.

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
                check_non_negative(name, value)
        hellinger = check_non_negative("hellinger", self.hellinger)
        object.__setattr__(self, "hellinger", min(hellinger, 2 * self.total_variation))

    @classmethod
    def from_distributions(cls, p0: ArrayLike, p1: ArrayLike) -> Hypotheses:
        """Return the divergences of two distributions over the same values, shape [values] each."""
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
        """Return the divergences of two normal distributions whose means are ``distance`` standard deviations apart.

        >>> round(Hypotheses.from_normal_shift(1.0).total_variation, 9)
        0.382924923
        """
        gap = check_non_negative("distance", distance)
        kl = gap * gap / 2
        return cls(float(2 * ndtr(gap / 2) - 1), kl, kl, -2 * math.expm1(-gap * gap / 8))


def make_hypotheses(p0: ArrayLike | Hypotheses, p1: ArrayLike | None) -> Hypotheses:
    """Return ``p0`` if it is ``Hypotheses``, otherwise the hypotheses of the two distributions."""
    if isinstance(p0, Hypotheses):
        if p1 is not None:
            raise InputError("p1", p1, "left out: p0 has both distributions")
        return p0
    if p1 is None:
        raise InputError("p1", p1, "the second distribution", "or pass Hypotheses as p0")
    return Hypotheses.from_distributions(p0, p1)
