"""Lower bounds from tests between pairs of parameters: Le Cam's method, Assouad's method, and limits of the tests."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from tightrope.errors import InputError
from tightrope.local.limits.constraint import ReportDivergence
from tightrope.local.limits.limit import Cost, Limit, fewest_people, lower_bound
from tightrope.numerics.checks import check_inner_probability, check_integer, check_positive, check_probability

MAX_COMPOSED_REPORTS = 10**7
"""With more reports than this only the closed-form bounds are used, without the exact composition."""
EXACT_CANDIDATES = 8
"""Number of members of a family, the best by their closed-form bounds, that are composed exactly."""
ADVANTAGE_ROUNDING = 1e-12
"""Added to every advantage, for rounding."""


@dataclass(frozen=True, slots=True, eq=False)
class LeCam(Limit):
    """Le Cam's bound: ½ ℓ(τ) (1 − TV(M₀ⁿ, M₁ⁿ)) ≤ risk; the parameters of P₀ and P₁ are 2τ apart (AAC Lemma 3).

    ``separation`` is 2τ. The total variation of n reports is bounded by the least of: Pinsker √(n KL/2),
    Bretagnolle–Huber √(1 − e^{−n KL}), both orders; √(1 − B^{2n}), B = 1 − H²/2 the affinity of one report; and the
    exact composition of a dominating pair of one report (ours: ``docs/proofs/channels.md``). Sequentially interactive
    mechanisms are covered.
    """

    divergence: ReportDivergence
    separation: float
    cost: Cost

    def testing_advantage(self, people: int) -> float:
        """Return an upper bound on TV(M₀ⁿ, M₁ⁿ), the advantage of the best test with n reports over a coin flip."""
        return testing_advantage(self.divergence, people)

    def risk(self, people: int) -> float:
        return self._risk_from_advantage(self.testing_advantage(people))

    def closed_form_risk(self, people: int) -> float:
        """Return a lower bound on ``risk`` without the exact composition, which takes time."""
        return self._risk_from_advantage(min(1.0, closed_form_advantage(self.divergence, people) + ADVANTAGE_ROUNDING))

    def people(self, risk: float) -> int:
        """Return ``Limit.people``; the search starts at that for ``closed_form_risk``, since compositions take time."""
        target = check_positive("risk", risk)
        return fewest_people(self.risk, target, from_=fewest_people(self.closed_form_risk, target))

    def _risk_from_advantage(self, advantage: float) -> float:
        return lower_bound(self.cost(self.separation / 2) * (1 - advantage) / 2)


@dataclass(frozen=True, slots=True)
class Assouad(Limit):
    """Assouad's bound Σ_j ½ ℓ(τ) (1 − TV_j) for ``coordinates`` pairs, if the cost is a sum over coordinates.

    ``coordinate_limit`` holds for every coordinate, for all values of the other coordinates (Assouad's lemma, Yu 1997).
    """

    coordinates: int
    coordinate_limit: LeCam

    def risk(self, people: int) -> float:
        return self.coordinates * self.coordinate_limit.risk(people)

    def closed_form_risk(self, people: int) -> float:
        """Return a lower bound on ``risk`` without the exact composition; see ``LeCam.closed_form_risk``."""
        return self.coordinates * self.coordinate_limit.closed_form_risk(people)


def testing_advantage(divergence: ReportDivergence, people: int) -> float:
    """Return an upper bound on the total variation of n reports under the two hypotheses; see ``LeCam``."""
    bound = closed_form_advantage(divergence, people)
    if people <= MAX_COMPOSED_REPORTS:
        bound = min(bound, (people * divergence.loss).total_variation())
    return min(1.0, bound + ADVANTAGE_ROUNDING)


def closed_form_advantage(divergence: ReportDivergence, people: int) -> float:
    """Return the smallest closed-form bound on the total variation: Pinsker, Bretagnolle–Huber or affinity."""
    count = check_integer("people", people)
    # B = 1 − H²/2; H² may be far below the unit round-off.
    log_affinity = math.log1p(-divergence.hellinger / 2) if divergence.hellinger < 2 else -math.inf
    bounds = [1.0, math.sqrt(-math.expm1(2 * count * log_affinity))]
    for kl in (divergence.kl, divergence.reverse_kl):
        bounds += [math.sqrt(count * kl / 2), math.sqrt(-math.expm1(-count * kl))]
    return min(bounds)


def best_risk(family: Sequence[Assouad], people: int) -> float:
    """Return the largest bound of a family, among the ``EXACT_CANDIDATES`` best by ``closed_form_risk``."""
    rough = sorted(family, key=lambda limit: limit.closed_form_risk(people), reverse=True)
    return max(limit.risk(people) for limit in rough[:EXACT_CANDIDATES])


@dataclass(frozen=True, slots=True)
class Testing:
    """Limits on every test of P₀ against P₁ from n private reports (AAC Corollary 4)."""

    divergence: ReportDivergence

    @property
    def error_exponent(self) -> float:
        """Upper bound on −(1/n) log of the type-II error at any fixed type-I error, for non-interactive mechanisms.

        KL(M₀‖M₁), which is at most κ KL(P₀‖P₁) and at most η t log(1 + t(e^ε−1)) (ours), t = TV(P₀, P₁).
        """
        return self.divergence.kl

    def type_two_error(self, type_one_error: float, people: int) -> float:
        """Return a lower bound on the type-II error of every test with at most this type-I error.

        The trade-off curve of the composed dominating pair up to 10⁷ people; 1 − α − TV beyond, which may be 0.
        """
        alpha, count = check_probability("type_one_error", type_one_error), check_integer("people", people)
        by_advantage = 1 - alpha - testing_advantage(self.divergence, count)
        exact = (count * self.divergence.loss).tradeoff(alpha) if count <= MAX_COMPOSED_REPORTS else 0.0
        return lower_bound(max(by_advantage, exact))

    def people(self, type_one_error: float, type_two_error: float) -> int:
        """Return a lower bound on the people that a test with these errors needs. Both must be in (0, 1)."""
        alpha = check_inner_probability("type_one_error", type_one_error)
        beta = check_inner_probability("type_two_error", type_two_error)
        if self.divergence.kl == 0 and alpha + beta < 1:
            raise InputError(
                "hypotheses", self.divergence, "distributions whose reports differ", "no number of people is enough"
            )
        return fewest_people(lambda count: self.type_two_error(alpha, count), beta)
