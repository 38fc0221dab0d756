"""What an audit has found: lower bounds that hold together, and what they say against a claim."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tightrope.audit.claims import Claimed, Points, claimed_points
from tightrope.audit.rates import Rates
from tightrope.audit.verdicts import Verdict, judged
from tightrope.numerics.arrays import Floats
from tightrope.numerics.checks import inner_probability, non_negative, probability


@dataclass(frozen=True, slots=True, eq=False)
class Finding:
    """Lower bounds on what two laws give away, all of them together with probability ``confidence``.

    ``runs`` are the sizes of both samples; ``failure`` is the chance to fail that the bounds at every threshold have,
    and ``points`` what was to be refuted when they were made.
    """

    rates: Rates
    runs: tuple[int, int]
    confidence: float
    failure: float
    points: Points

    def epsilon(self, delta: float) -> float:
        """A lower bound on the ε at this δ, for the worse of the two directions; 0 where nothing was seen."""
        return self.rates.epsilon(probability("delta", delta))

    def delta(self, epsilon: float) -> float:
        """A lower bound on the δ at this ε ≥ 0, for the worse of the two directions."""
        return self.rates.delta(non_negative("epsilon", epsilon))

    def total_variation(self) -> float:
        """A lower bound on the total variation η: an attacker is right at least (1 + η)/2 of the time."""
        return self.rates.total_variation()

    def true_positive_rate(self, false_positive_rate: float) -> float:
        """What an attacker finds of the first input's runs at this share of false alarms, at least."""
        rate = inner_probability("false_positive_rate", false_positive_rate)
        return float(self.rates.true_positives_at(np.array([rate]))[0])

    def tradeoff(self, false_positive_rate: float) -> float:
        """An upper bound on the trade-off curve: the type-II error at this type-I error, at most."""
        return 1 - self.true_positive_rate(false_positive_rate)

    @property
    def curve(self) -> tuple[Floats, Floats]:
        """Corners of the curve: false-positive rates in ascending order, and true-positive rates."""
        return self.rates.false_positive, self.rates.true_positive

    def against(self, claim: Claimed) -> Verdict:
        """Whether the claim is refuted, and if not, how large an ε this test would have seen.

        ``claim`` is a ``Budget``, ``Guarantee``, ``PrivacyLoss`` or points (ε, δ). A claim that holds is refuted with
        probability 1 − ``confidence`` at most, and may be chosen after the scores were seen.
        """
        return judged(self.rates, claimed_points(claim), self.runs, self.confidence, self.failure)
