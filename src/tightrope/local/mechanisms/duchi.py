"""One bit a person for a mean (Duchi, Jordan, Wainwright 2018): round to an end at random, then randomised response.

A cap on the total variation is kept by silence (GI Thm 7), which costs fewer people than a smaller ε.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tightrope.channels import SymmetricChannel
from tightrope.local.mechanisms.means import MeanOracle
from tightrope.local.mechanisms.response import Response, k_randomized_response, response_with_erasure
from tightrope.local.parts.estimates import Shares, tail_interval
from tightrope.local.parts.losses import Change
from tightrope.local.parts.odds import checked_epsilon
from tightrope.local.parts.tally import Tally
from tightrope.local.parts.values import between as checked_between
from tightrope.local.parts.values import categories
from tightrope.numerics.arrays import Floats
from tightrope.randomness.source import Source
from tightrope.randomness.stream import Stream


@dataclass(frozen=True, slots=True)
class OneBit(MeanOracle):
    """Bit 1 for the upper end, 0 for the lower; the bit goes through ``response``, which may stay silent (2)."""

    epsilon: float
    lower: float
    upper: float
    response: Response

    @property
    def changed(self) -> Change:
        return self.response.changed

    @property
    def channel(self) -> SymmetricChannel:
        """Inputs are the two ends; the row of a number between them is the mixture with its mean."""
        return self.response.channel

    @property
    def letters(self) -> int:
        return self.response.letters

    def perturb(self, values: ArrayLike, randomness: Source | None = None) -> NDArray[Any]:
        """Bits, or 2 for silence, shape [n]."""
        randomness = randomness or Stream()
        return self.response.perturb(self.places(values, 1, randomness), randomness)

    def decode(self, reports: ArrayLike) -> Floats:
        """The two numbers beyond the ends that bits stand for; silence stands for the middle."""
        beyond = 1 / (2 * (self.response.keep - self.response.other))
        places = [Fraction(1, 2) - beyond, Fraction(1, 2) + beyond, Fraction(1, 2)]
        return np.asarray(
            self.numbers(np.array(list(map(float, places))), 1)[categories("reports", reports, self.letters)]
        )

    def _variance_at(self, value: float) -> float:
        """(width / 2)² (a / (p − q)² − y²), a the chance of an answer, y the value's place in [−1, 1]."""
        slope, answered = float(self.response.keep - self.response.other), float(self.response.answered)
        half = (self.upper - self.lower) / 2
        return answered * (half / slope) ** 2 - (value - self.lower - half) ** 2

    def estimate_tally(self, tally: Tally, *, confidence: float = 0.95) -> Shares:
        """The mean, without bias, with Clopper and Pearson's interval for the chance of a 1; each of shape [].

        Bits of people from a population are binomial, whatever the population is: no approximation, few reports or
        many, at the ends as in the middle. Where silence is a third report the interval is that of other mechanisms.
        Raises ``InputError`` for fewer than two reports.
        """
        if self.response.silence:
            return super(OneBit, self).estimate_tally(tally, confidence=confidence)
        self.check_tally(tally)
        ones, q, slope = int(tally.counts[1]), self.response.other, self.response.keep - self.response.other
        low, high = tail_interval(np.array([ones]), tally.people, confidence, 1)
        share = float((Fraction(ones, tally.people) - q) / slope)
        ends = ((float(low[0]) - float(q)) / float(slope), (float(high[0]) - float(q)) / float(slope))
        value, lower, upper = self.numbers(np.array([share, min(ends[0], share), max(ends[1], share)]), 1)
        return Shares(np.asarray(value), np.asarray(lower), np.asarray(upper), tally.people, confidence)


def duchi(
    epsilon: float, *, between: tuple[float, float] = (-1.0, 1.0), total_variation: float | None = None
) -> OneBit:
    """The mean of numbers in ``between`` from one bit a person, ε-LDP and, where asked for, of total variation η.

    Variance ((e^ε + 1) / (e^ε − 1))² − x² for x in [−1, 1]: the least possible for small ε. A total variation is kept
    by silence: variance 1 / (η tanh(ε/2)) − x², where a smaller ε would need 1 / η² − x². An η of tanh(ε/2) or more is
    no constraint. Raises ``InputError`` unless ε > 0 is finite, lower < upper and 0 < η ≤ 1.

    >>> mechanism = duchi(1.0)
    >>> round(mechanism.variance_at(0.0), 9), sorted(set(mechanism.perturb([0.3] * 100).tolist()))
    (4.682694377, [0, 1])
    >>> round(duchi(1.0, total_variation=0.1).variance_at(0.0), 6)
    21.639534
    """
    ends = checked_between(between)
    if total_variation is None:
        return OneBit(checked_epsilon(epsilon), *ends, k_randomized_response(epsilon, 2))
    return OneBit(checked_epsilon(epsilon), *ends, response_with_erasure(epsilon, total_variation))
