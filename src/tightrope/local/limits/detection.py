"""How well two hypotheses can be told apart from private reports: error exponent, finite n, how many people."""

from __future__ import annotations

from dataclasses import dataclass

from tightrope.errors import InputError
from tightrope.local.limits.constraint import Reported
from tightrope.local.limits.limit import falls_to, fewest_people
from tightrope.local.limits.two_point import COMPOSED, advantage
from tightrope.numerics.checks import inner_probability, probability, whole


@dataclass(frozen=True, slots=True)
class Testing:
    """Limits on every test of P₀ against P₁ from n private reports (AAC Corollary 4)."""

    one: Reported

    @property
    def exponent(self) -> float:
        """Upper bound on −(1/n) log of the type-II error at any fixed type-I error: KL(M₀‖M₁) ≤ κ KL(P₀‖P₁), and ours.

        Non-interactive mechanisms; the second bound is η t log(1 + t(e^ε−1)), t = TV(P₀, P₁).
        """
        return self.one.kl

    def type_two_error(self, type_one_error: float, people: int) -> float:
        """Lower bound on the type-II error of every test with at most this type-I error.

        The trade-off curve of the composed dominating pair up to 10⁷ people; 1 − α − TV beyond, which may be 0.
        """
        alpha, count = probability("type_one_error", type_one_error), whole("people", people)
        by_advantage = 1 - alpha - advantage(self.one, count)
        exact = (count * self.one.loss).tradeoff(alpha) if count <= COMPOSED else 0.0
        return falls_to(max(by_advantage, exact))

    def people(self, type_one_error: float, type_two_error: float) -> int:
        """With fewer people no test has both errors this small. Raises ``InputError`` unless both are in (0, 1)."""
        alpha = inner_probability("type_one_error", type_one_error)
        beta = inner_probability("type_two_error", type_two_error)
        if self.one.kl == 0 and alpha + beta < 1:
            raise InputError("hypotheses", self.one, "two laws whose reports differ", "no number of people is enough")
        return fewest_people(lambda count: self.type_two_error(alpha, count), beta)
