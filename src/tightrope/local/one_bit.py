"""One bit a person for a mean (Duchi, Jordan, Wainwright 2018): round to an end at random, then randomised response."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tightrope.channels import SymmetricChannel
from tightrope.local.estimates import Shares, tail_interval
from tightrope.local.losses import Change
from tightrope.local.means import MeanOracle, several
from tightrope.local.odds import checked_epsilon
from tightrope.local.response import Response, k_randomized_response
from tightrope.local.values import Floats, categories
from tightrope.local.values import between as checked_between
from tightrope.randomness.source import Source
from tightrope.randomness.stream import Stream


@dataclass(frozen=True, slots=True)
class OneBit(MeanOracle):
    """Bit 1 for the upper end, 0 for the lower; the bit goes through ``response``."""

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
        return 2

    def perturb(self, values: ArrayLike, source: Source | None = None) -> NDArray[Any]:
        """Bits, shape [n]."""
        source = source or Stream()
        return self.response.perturb(self.places(values, 1, source), source)

    def decode(self, reports: ArrayLike) -> Floats:
        """The two numbers beyond the ends that bits stand for."""
        bits = categories("reports", reports, 2)
        p, q = self.response.keep, self.response.other
        ends = self.numbers(np.array([float(-q / (p - q)), float((1 - q) / (p - q))]), 1)
        return np.asarray(ends[bits])

    def _variance_at(self, value: float) -> float:
        """π (1 − π) (width / (p − q))² for the chance π of a 1."""
        p, q = float(self.response.keep), float(self.response.other)
        chance = q + (p - q) * (value - self.lower) / (self.upper - self.lower)
        return chance * (1 - chance) * ((self.upper - self.lower) / (p - q)) ** 2

    def estimate(self, reports: ArrayLike, *, confidence: float = 0.95) -> Shares:
        """The mean, without bias, with Clopper and Pearson's interval for the chance of a 1; each of shape [].

        Bits of people from a population are binomial, whatever the population is: no approximation, few reports or
        many, at the ends as in the middle. Raises ``InputError`` for fewer than two reports.
        """
        bits = several(categories("reports", reports, 2))
        ones, q, slope = int(np.count_nonzero(bits)), self.response.other, self.response.keep - self.response.other
        low, high = tail_interval(np.array([ones]), len(bits), confidence, 1)
        share = float((Fraction(ones, len(bits)) - q) / slope)
        ends = ((float(low[0]) - float(q)) / float(slope), (float(high[0]) - float(q)) / float(slope))
        value, lower, upper = self.numbers(np.array([share, min(ends[0], share), max(ends[1], share)]), 1)
        return Shares(np.asarray(value), np.asarray(lower), np.asarray(upper), len(bits), confidence)


def duchi(epsilon: float, *, between: tuple[float, float] = (-1.0, 1.0)) -> OneBit:
    """The mean of numbers in ``between`` from one bit a person, ε-LDP.

    Variance ((e^ε + 1) / (e^ε − 1))² − x² for x in [−1, 1]: the least possible for small ε.
    Raises ``InputError`` unless ε > 0 is finite and lower < upper.

    >>> mechanism = duchi(1.0)
    >>> round(mechanism.variance_at(0.0), 9), sorted(set(mechanism.perturb([0.3] * 100).tolist()))
    (4.682694377, [0, 1])
    """
    return OneBit(checked_epsilon(epsilon), *checked_between(between), k_randomized_response(epsilon, 2))
