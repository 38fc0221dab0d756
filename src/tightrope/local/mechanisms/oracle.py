"""Base class of mechanisms for categories: estimates, errors and intervals from two probabilities."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import replace
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from tightrope.errors import InputError
from tightrope.local.parts.estimates import Shares, Tally, score_interval, simultaneous_z_score, tail_interval
from tightrope.local.parts.kernels import check_packed_rows, count_bits_by_column, count_occurrences
from tightrope.local.parts.losses import Change, LocalMechanism
from tightrope.local.parts.values import check_categories
from tightrope.numerics.arrays import Floats
from tightrope.numerics.checks import check_integer, check_probability
from tightrope.randomness.bits import Source

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

    from tightrope.channels.kernel import Kernel

NORMAL_FROM = 10
"""Normal intervals are used if at least this many reports support a value and at least this many do not."""


class FrequencyOracle(LocalMechanism):
    """A mechanism by which each person reports one category in 0..k − 1 to a collector who is not trusted.

    Each report *supports* some values: the true one with probability ``true_support_probability``, any given other one
    with ``false_support_probability`` (Wang, Blocki, Li, Jha 2017, "pure protocols"). With C_v the reports of n people
    that support v and A those that contain an answer, the share of v is estimated, without bias, by
    (C_v − b A) / (n (p − q)), b = q / a, with p, q and a = ``true_support_probability``, ``false_support_probability``,
    ``answer_probability``.
    """

    __slots__ = ()

    epsilon: float
    k: int

    @property
    @abstractmethod
    def true_support_probability(self) -> Fraction:
        """The probability p = P(a report supports v) for a person whose value is v; exactly what is sampled."""

    @property
    @abstractmethod
    def false_support_probability(self) -> Fraction:
        """The probability q = P(a report supports v) for a person with any other value; exactly what is sampled."""

    @property
    def answer_probability(self) -> Fraction:
        """The probability a = P(a report contains an answer, that is, may support values)."""
        return Fraction(1)

    @property
    @abstractmethod
    def report_change_probabilities(self) -> Change:
        """The probabilities P(A | v) and P(B | v) for two different values v and w.

        A are the reports that are more likely under v, B those that are more likely under w. The likelihood ratio is
        the same for all reports of A, and its inverse for all of B.
        """

    @property
    @abstractmethod
    def channel(self) -> Kernel:
        """One report as a channel from the k values to the report numbers.

        The probabilities are those that are sampled, rounded to floats. Raises ``InputError`` for more than 2¹⁶ reports
        or 2²⁴ entries; randomized response has no matrix and no such limit.
        """

    @property
    def report_bits(self) -> int:
        """The number of bits in a report."""
        return self.k if self.possible_report_count is None else (self.possible_report_count - 1).bit_length()

    @abstractmethod
    def perturb(self, values: ArrayLike, randomness: Source | None = None) -> NDArray[Any]:
        """Return one report for each of ``values``, shape [n]; uses the operating system's randomness by default.

        Raises ``InputError`` unless the values are integers in 0..k − 1.
        """

    @property
    def possible_report_count(self) -> int | None:
        """The number of different reports if they are numbers from 0; None if they are rows of k bits."""
        return None

    def count_reports(self, reports: ArrayLike) -> NDArray[np.int64]:
        """Return the counts of each report, shape [possible_report_count], or of each bit, shape [k].

        Counts of two batches can be added.

        Raises ``InputError`` for reports that the mechanism cannot produce.
        """
        if self.possible_report_count is None:
            return count_bits_by_column(check_packed_rows("reports", reports, self.k), self.k)
        return count_occurrences(
            check_categories("reports", reports, self.possible_report_count), self.possible_report_count
        )

    def tally_of_reports(self, people: int, counts: NDArray[np.int64]) -> Tally:
        """Return the tally of this many reports with these ``counts``; here each bit is a supported value."""
        return Tally(people, people, counts)

    def tally_reports(self, reports: ArrayLike) -> Tally:
        """Return the counts of the values that reports support; raises ``InputError`` for impossible reports."""
        counts = self.count_reports(reports)
        return self.tally_of_reports(len(np.asarray(reports)), counts)

    @property
    def report_variances(self) -> tuple[Fraction, Fraction]:
        """Variances of one report's term in the estimate of v: of a person with another value, and with v itself.

        The term is (S − b A) / (p − q) for indicators S ⊂ A, b = q / a. Its means are 0 and 1; the second moments of
        its numerator are q − q²/a and p − 2bp + b²a.
        """
        p, q, a = self.true_support_probability, self.false_support_probability, self.answer_probability
        own = p - 2 * p * q / a + q * q / a - (p - q) ** 2
        return (q - q * q / a) / (p - q) ** 2, own / (p - q) ** 2

    def estimate_variance(self, share: float, people: int) -> float:
        """Return the variance ((1 − f) v₀ + f v₁) / n of the estimate for a value with the true ``share`` f.

        (v₀, v₁) are ``report_variances``.

        Raises ``InputError`` unless 0 ≤ f ≤ 1, and people ≥ 1.
        """
        other, own = self.report_variances
        exact = Fraction(check_probability("share", share))
        return float(((1 - exact) * other + exact * own) / check_integer("people", people))

    @property
    def mean_variance(self) -> float:
        """The variance of one person's report, averaged over the k values, of which k − 1 are not the person's."""
        other, own = self.report_variances
        return float((other * (self.k - 1) + own) / self.k)

    def estimate(self, reports: ArrayLike, *, confidence: float = 0.95, simultaneous: bool = False) -> Shares:
        """Return unbiased shares of all k values among those who reported, with intervals; see ``estimate_tally``."""
        return self.estimate_tally(self.tally_reports(reports), confidence=confidence, simultaneous=simultaneous)

    def estimate_tally(self, tally: Tally, *, confidence: float = 0.95, simultaneous: bool = False) -> Shares:
        """Return shares from counts, with intervals. Raises ``InputError`` without reports.

        Intervals are Wilson's, with the exact variance. They are exact instead (Clopper and Pearson's, a little wide)
        if fewer than ten reports support a value, or fewer than ten do not, and if they are simultaneous.
        """
        if tally.people < 1 or len(tally.counts) != self.k:
            raise InputError("tally", (tally.people, len(tally.counts)), f"of 1 report or more on {self.k} values")
        value = self._unbiased_shares(tally)
        if simultaneous:
            ends = self.exact_ends(tally, confidence, self.k)
        else:
            ends = self._interval_ends(tally, value, confidence)
        lower, upper = np.minimum(ends[0], value), np.maximum(ends[1], value)
        return Shares(value, lower, upper, tally.people, confidence, simultaneous)

    def _interval_ends(self, tally: Tally, value: Floats, confidence: float) -> tuple[Floats, Floats]:
        other, own = self.report_variances
        lower, upper = score_interval(value, tally.people, (float(other), float(own)), simultaneous_z_score(confidence))
        few = np.flatnonzero(np.minimum(tally.counts, tally.people - tally.counts) < NORMAL_FROM)
        lower[few], upper[few] = self.exact_ends(replace(tally, counts=tally.counts[few]), confidence, 1)
        return lower, upper

    def exact_ends(self, tally: Tally, confidence: float, of: int | Floats) -> tuple[Floats, Floats]:
        """Return the ends of exact intervals that hold together for ``of`` values (Bonferroni).

        If ``of`` is an array, interval i misses with at most 1 / of[i] of the total error probability.
        """
        low, high = tail_interval(tally.counts, tally.people, confidence, of)
        other = float(self.false_support_probability)
        slope = float(self.true_support_probability - self.false_support_probability)
        return (low - other) / slope, (high - other) / slope

    def _unbiased_shares(self, tally: Tally) -> Floats:
        base = float(self.false_support_probability / self.answer_probability * tally.answered)
        slope = float(self.true_support_probability - self.false_support_probability)
        return np.asarray((tally.counts - base) / (tally.people * slope))
