"""The limit on the squared error of a proportion or a mean, with the right constant: van Trees with a Beta prior.

For a few people Le Cam's two points, the ends of the interval, say more.
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
from tightrope.local.limits.limit import COSTS, Hypotheses, Limit, falls_to, fewest_people, people_beyond
from tightrope.local.limits.testing import LeCam
from tightrope.numerics.checks import check_integer, check_positive

FEW_PEOPLE = 64
"""The number of people above which the two-point bound is weaker than the prior's."""


@dataclass(frozen=True, slots=True)
class ProportionLimit(Limit):
    """E (θ̂ − θ)² for a proportion in [0, 1], hence for the mean of values in [0, 1]; times ``width``² for others.

    ``1/(n E J(θ) + I_a)`` with θ ~ Beta(a, a), I_a the information of that prior (van Trees), the best a; ``J(θ)`` is
    the largest Fisher information of one report, reached by randomized response. Sequentially interactive mechanisms
    are covered: J bounds every channel at every θ, and the information of reports adds up, conditionally on earlier
    ones. ``docs/proofs/shares.md``.
    """

    guarantee: Guarantee
    width: float = 1.0

    def __post_init__(self) -> None:
        check_positive("width", self.width)

    @property
    def guess_risk(self) -> float:
        """Of the middle, without any report."""
        return self.width**2 / 4

    def risk(self, people: int) -> float:
        count = check_integer("people", people)
        near = falls_to(
            self.width**2
            * best_concentration(lambda a: 1 / (count * self._expected_information(a) + _beta_information(a)))
        )
        return max(near, self._risk_at_ends().risk(count)) if count <= FEW_PEOPLE else near

    def people(self, risk: float) -> int:
        target = check_positive("risk", risk) / self.width**2
        if target >= self.guess_risk / self.width**2:
            return 0
        if self.guarantee.total_variation == 0:
            return fewest_people(self.risk, risk)
        least = people_beyond(
            best_concentration(lambda a: (1 / target - _beta_information(a)) / self._expected_information(a)), risk
        )
        return least if least > FEW_PEOPLE else max(least, fewest_people(self._risk_at_ends().risk, risk))

    def _risk_at_ends(self) -> LeCam:
        """Everybody has the least value, or everybody the largest."""
        far = AnyMechanism(self.guarantee).report_divergence(Hypotheses(1.0, hellinger=2.0))
        return LeCam(far, self.width, COSTS["squared"])

    def _expected_information(self, a: float) -> float:
        """E J(θ), from above."""
        return mean_information(self.guarantee, a)


def _beta_information(a: float) -> float:
    """The information of Beta(a, a) about θ: along the direction (1, −1)/√2 it is half of that."""
    return 2 * prior_information(2, a)


def mean_information(guarantee: Guarantee, a: float) -> float:
    """E J(θ), θ ~ Beta(a, a), from above: the most one report can say of a proportion, on average over the prior.

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
