"""What is promised, as data: a triple (ε, δ, η)."""

from __future__ import annotations

import math
from dataclasses import dataclass

from tightrope.errors import InputError


@dataclass(frozen=True, slots=True)
class Guarantee:
    """(ε, δ)-privacy with total variation η (GI; theory §1).

    Admissible: δ ≤ η ≤ δ + (1−δ) tanh(ε/2). A larger η is no constraint and is clipped to that bound; a smaller one
    than δ makes δ := η, because δ never exceeds η. η defaults to the bound. ε is in nats. Raises ``InputError``
    unless ε ≥ 0 (∞ is allowed: no bound at that δ) and δ, η are probabilities.

    >>> Guarantee(1.0, 1e-6).total_variation < 0.463
    True
    >>> Guarantee(1.0, 0.01, 0.3).attack_success
    0.65
    """

    epsilon: float
    delta: float = 0.0
    total_variation: float = 1.0

    def __post_init__(self) -> None:
        if not _number(self.epsilon) or not self.epsilon >= 0:
            raise InputError("epsilon", self.epsilon, "a number >= 0", "a typical value is 1")
        for name in ("delta", "total_variation"):
            value = getattr(self, name)
            if not _number(value) or not 0 <= value <= 1:
                raise InputError(name, value, "a probability in [0, 1]")
        object.__setattr__(self, "delta", min(self.delta, self.total_variation))
        object.__setattr__(self, "total_variation", min(self.total_variation, self.largest_total_variation))

    @property
    def largest_total_variation(self) -> float:
        """δ + (1−δ) tanh(ε/2): what (ε, δ) alone implies."""
        return min(1.0, self.delta + (1 - self.delta) * math.tanh(self.epsilon / 2))

    @property
    def attack_success(self) -> float:
        """How often an attacker with an even prior is right, at best: (1 + η)/2."""
        return (1 + self.total_variation) / 2

    def explain(self) -> str:
        """The promise in one paragraph for everybody, and a picture of 100 guesses; every number is rounded up.

        >>> print(Guarantee(1.0, 1e-6).explain())  # doctest: +ELLIPSIS
        An attacker who sees what comes out and guesses ... is right at most 73.2 % of the time; a coin ...
        """
        from tightrope.certificates.words import chances
        from tightrope.certificates.words.explained import of_numbers

        stated = self.total_variation < self.largest_total_variation
        eta = self.total_variation if stated else chances.total_variation(self.epsilon, self.delta)
        return str(of_numbers(self.epsilon, self.delta, chances.success(eta)))


def _number(value: object) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)
