"""A lower bound on the squared error of a proportion or a mean: van Trees with a Beta prior.

For few people, Le Cam's bound with the two ends of the interval is larger and is used too.
"""

from __future__ import annotations

from dataclasses import dataclass

from tightrope.documents.budget import Guarantee
from tightrope.local.limits.constraint import AnyMechanism
from tightrope.local.limits.fisher_information import (
    best_concentration,
    inverse_growth,
    mean_reciprocal,
    prior_information,
)
from tightrope.local.limits.limit import COSTS, Hypotheses, Limit, fewest_people, lower_bound, people_not_excluded
from tightrope.local.limits.testing import LeCam
from tightrope.numerics.checks import check_integer, check_positive

FEW_PEOPLE = 64
"""Largest number of people for which Le Cam's bound is computed too."""


@dataclass(frozen=True, slots=True)
class ProportionLimit(Limit):
    """E (θ̂ − θ)² ``width``² for a proportion θ in [0, 1], hence for the mean of values in an interval of this width.

    ``1/(n E J(θ) + I_a)`` for the best a, with θ ~ Beta(a, a) and I_a the information of that prior (van Trees);
    ``J(θ)`` is the largest Fisher information of one report, reached by randomized response. Sequentially interactive
    mechanisms are covered: J bounds every channel at every θ, and the information of reports adds up, conditionally on
    earlier ones. ``docs/proofs/shares.md``.
    """

    guarantee: Guarantee
    width: float = 1.0

    def __post_init__(self) -> None:
        check_positive("width", self.width)

    @property
    def guess_risk(self) -> float:
        """The worst risk of the middle as a constant estimate, without any reports."""
        return self.width**2 / 4

    def risk(self, people: int) -> float:
        count = check_integer("people", people)
        best = best_concentration(lambda a: 1 / (count * mean_information(self.guarantee, a) + _beta_information(a)))
        by_van_trees = lower_bound(self.width**2 * best)
        return max(by_van_trees, self._end_points_limit().risk(count)) if count <= FEW_PEOPLE else by_van_trees

    def people(self, risk: float) -> int:
        target = check_positive("risk", risk) / self.width**2
        if target >= self.guess_risk / self.width**2:
            return 0
        if self.guarantee.total_variation == 0:
            return fewest_people(self.risk, risk)
        excluded = best_concentration(
            lambda a: (1 / target - _beta_information(a)) / mean_information(self.guarantee, a)
        )
        least = people_not_excluded(excluded, risk)
        return least if least > FEW_PEOPLE else max(least, fewest_people(self._end_points_limit().risk, risk))

    def _end_points_limit(self) -> LeCam:
        """Return Le Cam's bound for two hypotheses: all people have the smallest value, or all have the largest."""
        divergence = AnyMechanism(self.guarantee).report_divergence(Hypotheses(1.0, hellinger=2.0))
        return LeCam(divergence, self.width, COSTS["squared"])


def _beta_information(a: float) -> float:
    """Return the information of Beta(a, a) about θ: twice that along the unit vector (1, −1)/√2."""
    return 2 * prior_information(2, a)


def mean_information(guarantee: Guarantee, a: float) -> float:
    """Return E J(θ), θ ~ Beta(a, a), rounded up; J(θ) is the largest Fisher information of a report about θ.

    J(θ) = Σ (p − q)²/(θp + (1−θ)q) of the dominating pair
    = ``δ/θ + δ/(1−θ) + (η−δ)(1/(u + θ) + 1/(u + 1 − θ))``, u = 1/(e^ε − 1).

    >>> import math
    >>> round(mean_information(Guarantee(1.0), 1e9), 6) == round(4 * math.tanh(0.5) ** 2, 6)
    True
    """
    u = inverse_growth(guarantee.epsilon)
    exclusive = guarantee.delta * (2 * a - 1) / (a - 1)
    shared = (guarantee.total_variation - guarantee.delta) * float(mean_reciprocal(u, a, a))
    return 2 * (exclusive + shared)
