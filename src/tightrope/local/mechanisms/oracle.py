"""Base class of mechanisms for categories: two probabilities, and the estimates, errors and intervals from them."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import replace
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from tightrope.errors import InputError
from tightrope.local.parts.estimates import Shares, Tally, score_interval, simultaneous_z_score, tail_interval
from tightrope.local.parts.kernels import checked_rows, column_counts, count_occurrences
from tightrope.local.parts.losses import Change, LocalMechanism
from tightrope.local.parts.values import check_categories
from tightrope.numerics.arrays import Floats
from tightrope.numerics.checks import check_integer, check_probability
from tightrope.randomness.bits import Source

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

    from tightrope.channels.kernel import Kernel

NORMAL_FROM = 10
"""Reports for and against a value from which on a count is as good as normal."""


class FrequencyOracle(LocalMechanism):
    """A mechanism for one category in 0..k − 1 a person, for an untrusted collector.

    Each report *supports* some values: the true one with probability ``true_support_probability``, any given other one
    with ``false_support_probability`` (Wang, Blocki, Li, Jha 2017, "pure protocols"). With C_v the reports of n people
    that support v and A those that say anything, the share of v is estimated, without bias, by (C_v − b A) / (n (keep −
    other)), b = other / answered.
    """

    __slots__ = ()

    epsilon: float
    k: int

    @property
    @abstractmethod
    def true_support_probability(self) -> Fraction:
        """P(a report supports v) for a person whose value is v; exactly what is sampled."""

    @property
    @abstractmethod
    def false_support_probability(self) -> Fraction:
        """P(a report supports v) for a person with any other value; exactly what is sampled."""

    @property
    def answer_probability(self) -> Fraction:
        """P(a report says anything)."""
        return Fraction(1)

    @property
    @abstractmethod
    def change_probabilities(self) -> Change:
        """Changes between two people with different values: the probability, under the first, of reports more likely
        under the first, and of those more likely under the second. All of them have the same odds.
        """

    @property
    @abstractmethod
    def channel(self) -> Kernel:
        """One report as a channel: inputs are the k values, outputs the different reports, by their number.

        Chances are those that are sampled, to the last place of a float. Raises ``InputError`` where there are more
        than 2¹⁶ reports or 2²⁴ entries; randomized response has no matrix and no limit.
        """

    @property
    def report_bits(self) -> int:
        """The number of bits in a report."""
        return self.k if self.report_count is None else (self.report_count - 1).bit_length()

    @abstractmethod
    def perturb(self, values: ArrayLike, randomness: Source | None = None) -> NDArray[Any]:
        """One report for each of ``values``, shape [n]; fresh randomness of the operating system unless given.

        Raises ``InputError`` unless the values are whole numbers in 0..k − 1.
        """

    @property
    def report_count(self) -> int | None:
        """The number of different reports where they are numbers from 0; None where they are rows of k bits."""
        return None

    def count_reports(self, reports: ArrayLike) -> NDArray[np.int64]:
        """Counts of each report, shape [letters], or of each bit, shape [k]: counts of disjoint reports add up.

        Raises ``InputError`` for reports that the mechanism cannot produce.
        """
        if self.report_count is None:
            return column_counts(checked_rows("reports", reports, self.k), self.k)
        return count_occurrences(check_categories("reports", reports, self.report_count), self.report_count)

    def tally_of(self, people: int, counts: NDArray[np.int64]) -> Tally:
        """The tally of this many reports with these ``counts``; here each bit is a value that reports support."""
        return Tally(people, people, counts)

    def tally_reports(self, reports: ArrayLike) -> Tally:
        """Counts of the values that reports support; raises ``InputError`` for impossible reports."""
        counts = self.count_reports(reports)
        return self.tally_of(len(np.asarray(reports)), counts)

    @property
    def report_variances(self) -> tuple[Fraction, Fraction]:
        """Variance of one report's part of the estimate of v: from a person with another value, and with v itself.

        The part is (S − b A) / (p − q) for indicators S ⊂ A, b = q / a: its second moments are q − q²/a and
        p − 2bp + b²a, its means 0 and 1.
        """
        p, q, a = self.true_support_probability, self.false_support_probability, self.answer_probability
        own = p - 2 * p * q / a + q * q / a - (p - q) ** 2
        return (q - q * q / a) / (p - q) ** 2, own / (p - q) ** 2

    def estimate_variance(self, share: float, people: int) -> float:
        """Var of the estimate of a value that this ``share`` f of the people have: ((1 − f) v₀ + f v₁) / n.

        Raises ``InputError`` unless 0 ≤ f ≤ 1, and people ≥ 1.
        """
        other, own = self.report_variances
        exact = Fraction(check_probability("share", share))
        return float(((1 - exact) * other + exact * own) / check_integer("people", people))

    @property
    def mean_variance(self) -> float:
        """Variance of one person's report, averaged over all k values: of them k − 1 are others."""
        other, own = self.report_variances
        return float((other * (self.k - 1) + own) / self.k)

    def estimate(self, reports: ArrayLike, *, confidence: float = 0.95, simultaneous: bool = False) -> Shares:
        """Unbiased shares of all k values among those who reported, with intervals; see ``estimate_tally``."""
        return self.estimate_tally(self.tally_reports(reports), confidence=confidence, simultaneous=simultaneous)

    def estimate_tally(self, tally: Tally, *, confidence: float = 0.95, simultaneous: bool = False) -> Shares:
        """Shares from counts. Intervals are Wilson's, with the exact variance; normal, so where fewer than ten reports
        support a value, or fewer than ten do not, and where they are to be simultaneous, they are exact instead
        (Clopper and Pearson's), a little wide. Raises ``InputError`` without reports.
        """
        if tally.people < 1 or len(tally.counts) != self.k:
            raise InputError("tally", (tally.people, len(tally.counts)), f"of 1 report or more on {self.k} values")
        value = self._unbiased_shares(tally)
        ends = (
            self.exact_ends(tally, confidence, self.k)
            if simultaneous
            else self._interval_ends(tally, value, confidence)
        )
        lower, upper = np.minimum(ends[0], value), np.maximum(ends[1], value)
        return Shares(value, lower, upper, tally.people, confidence, simultaneous)

    def _interval_ends(self, tally: Tally, value: Floats, confidence: float) -> tuple[Floats, Floats]:
        other, own = self.report_variances
        lower, upper = score_interval(value, tally.people, (float(other), float(own)), simultaneous_z_score(confidence))
        few = np.flatnonzero(np.minimum(tally.counts, tally.people - tally.counts) < NORMAL_FROM)
        lower[few], upper[few] = self.exact_ends(replace(tally, counts=tally.counts[few]), confidence, 1)
        return lower, upper

    def exact_ends(self, tally: Tally, confidence: float, of: int | Floats) -> tuple[Floats, Floats]:
        """Ends of intervals that all hold, for ``of`` values that were looked at: from the chances of support.

        An array says of each interval which part 1 / of the errors it may make.
        """
        low, high = tail_interval(tally.counts, tally.people, confidence, of)
        other, width = (
            float(self.false_support_probability),
            float(self.true_support_probability - self.false_support_probability),
        )
        return (low - other) / width, (high - other) / width

    def _unbiased_shares(self, tally: Tally) -> Floats:
        base = float(self.false_support_probability / self.answer_probability * tally.answered)
        return np.asarray(
            (tally.counts - base)
            / (tally.people * float(self.true_support_probability - self.false_support_probability))
        )
