"""Le Cam's method: two parameters that reports cannot tell apart; and Assouad's: many such pairs at once."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from tightrope.errors import InputError
from tightrope.local.limits.constraint import ReportDivergence
from tightrope.local.limits.limit import Cost, Limit, falls_to, fewest_people
from tightrope.numerics.checks import check_integer, check_positive, check_probability, inner_probability

COMPOSED = 10**7
"""More reports than this are not composed exactly: the closed bounds alone remain."""
CLOSEST = 8
"""Members of a family that are looked at closely."""
ADVANTAGE_ROUNDING = 1e-12
"""Added to every advantage."""


@dataclass(frozen=True, slots=True, eq=False)
class LeCam(Limit):
    """½ ℓ(τ) (1 − TV(M₀ⁿ, M₁ⁿ)) ≤ risk, where the parameters of P₀ and P₁ are 2τ = ``separation`` apart (AAC Lemma 3).

    The total variation of n reports is bounded by the least of: Pinsker √(n KL/2), Bretagnolle–Huber √(1 − e^{−n KL}),
    both orders; √(1 − B^{2n}), B = 1 − H²/2 the affinity of one report; and the exact composition of a dominating pair
    of one report (ours: ``docs/proofs/channels.md``). Sequentially interactive mechanisms are covered.
    """

    one: ReportDivergence
    separation: float
    cost: Cost

    def testing_advantage(self, people: int) -> float:
        """An upper bound on TV(M₀ⁿ, M₁ⁿ): how much better than a coin n reports tell the two apart."""
        return testing_advantage(self.one, people)

    def risk(self, people: int) -> float:
        return self._risk_from_advantage(self.testing_advantage(people))

    def rough_risk(self, people: int) -> float:
        """The same without the composition: a smaller bound, for next to nothing."""
        return self._risk_from_advantage(min(1.0, rough_advantage(self.one, people) + ADVANTAGE_ROUNDING))

    def people(self, risk: float) -> int:
        """As for every limit; found from the closed bounds first, because compositions of a given channel take time."""
        target = check_positive("risk", risk)
        return fewest_people(self.risk, target, from_=fewest_people(self.rough_risk, target))

    def _risk_from_advantage(self, advantage_at_most: float) -> float:
        return falls_to(self.cost(self.separation / 2) * (1 - advantage_at_most) / 2)


@dataclass(frozen=True, slots=True)
class Assouad(Limit):
    """Σ_j ½ ℓ(τ) (1 − TV_j): ``coordinates`` pairs at once, where the cost adds up over coordinates.

    ``each`` bounds what n reports say of one coordinate for any values of the others (Assouad's lemma, Yu 1997).
    """

    coordinates: int
    each: LeCam

    def risk(self, people: int) -> float:
        return self.coordinates * self.each.risk(people)

    def rough_risk(self, people: int) -> float:
        """Without the composition; see ``LeCam.rough_risk``."""
        return self.coordinates * self.each.rough_risk(people)


def testing_advantage(one: ReportDivergence, people: int) -> float:
    """An upper bound on the total variation of n reports under the two hypotheses; see ``LeCam``."""
    bound = rough_advantage(one, people)
    if people <= COMPOSED:
        bound = min(bound, (people * one.loss).total_variation())
    return min(1.0, bound + ADVANTAGE_ROUNDING)


def rough_advantage(one: ReportDivergence, people: int) -> float:
    """The least of the closed bounds: Pinsker, Bretagnolle–Huber, affinity."""
    count = check_integer("people", people)
    # B = 1 − H²/2; H² may be far below the unit round-off.
    log_affinity = math.log1p(-one.hellinger / 2) if one.hellinger < 2 else -math.inf
    bounds = [1.0, math.sqrt(-math.expm1(2 * count * log_affinity))]
    for kl in (one.kl, one.reverse_kl):
        bounds += [math.sqrt(count * kl / 2), math.sqrt(-math.expm1(-count * kl))]
    return min(bounds)


def best_risk(family: Sequence[Assouad], people: int) -> float:
    """The largest bound of a family: the ``CLOSEST`` that are best by the closed bounds are composed exactly."""
    rough = sorted(family, key=lambda one: one.rough_risk(people), reverse=True)
    return max(one.risk(people) for one in rough[:CLOSEST])


# How well two hypotheses can be told apart from private reports: error exponent, finite n, how many people.


@dataclass(frozen=True, slots=True)
class Testing:
    """Limits on every test of P₀ against P₁ from n private reports (AAC Corollary 4)."""

    one: ReportDivergence

    @property
    def error_exponent(self) -> float:
        """Upper bound on −(1/n) log of the type-II error at any fixed type-I error: KL(M₀‖M₁) ≤ κ KL(P₀‖P₁), and ours.

        Non-interactive mechanisms; the second bound is η t log(1 + t(e^ε−1)), t = TV(P₀, P₁).
        """
        return self.one.kl

    def type_two_error(self, type_one_error: float, people: int) -> float:
        """Lower bound on the type-II error of every test with at most this type-I error.

        The trade-off curve of the composed dominating pair up to 10⁷ people; 1 − α − TV beyond, which may be 0.
        """
        alpha, count = check_probability("type_one_error", type_one_error), check_integer("people", people)
        by_advantage = 1 - alpha - testing_advantage(self.one, count)
        exact = (count * self.one.loss).tradeoff(alpha) if count <= COMPOSED else 0.0
        return falls_to(max(by_advantage, exact))

    def people(self, type_one_error: float, type_two_error: float) -> int:
        """With fewer people no test has both errors this small. Raises ``InputError`` unless both are in (0, 1)."""
        alpha = inner_probability("type_one_error", type_one_error)
        beta = inner_probability("type_two_error", type_two_error)
        if self.one.kl == 0 and alpha + beta < 1:
            raise InputError("hypotheses", self.one, "two laws whose reports differ", "no number of people is enough")
        return fewest_people(lambda count: self.type_two_error(alpha, count), beta)
