"""Base class of mechanisms for one number a person, and the estimate of the mean."""

from __future__ import annotations

import math
from abc import abstractmethod
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tightrope.errors import InputError
from tightrope.local.parts.estimates import Shares, Tally, simultaneous_z_score
from tightrope.local.parts.kernels import count_occurrences
from tightrope.local.parts.losses import Change, LocalMechanism
from tightrope.local.parts.values import check_categories, check_reals
from tightrope.numerics.arrays import Floats
from tightrope.numerics.checks import check_finite
from tightrope.randomness.bits import Source, Words


class MeanOracle(LocalMechanism):
    """A mechanism for one number in [lower, upper] a person; the expectation of a decoded report is this number."""

    __slots__ = ()

    epsilon: float
    lower: float
    upper: float

    @property
    @abstractmethod
    def report_change_probabilities(self) -> Change:
        """The change of probability between the two most distinguishable values, ``lower`` and ``upper``."""

    @property
    @abstractmethod
    def possible_report_count(self) -> int:
        """The number of different reports, which are integers from 0."""

    @property
    def report_bits(self) -> int:
        """The number of bits in a report."""
        return (self.possible_report_count - 1).bit_length()

    @abstractmethod
    def perturb(self, values: ArrayLike, randomness: Source | None = None) -> NDArray[Any]:
        """One report for each of ``values``, shape [n]; raises ``InputError`` unless all lie in [lower, upper]."""

    @abstractmethod
    def decode_reports(self, reports: ArrayLike) -> Floats:
        """Numbers whose expectation is the value of the person who reported, shape [n]."""

    @abstractmethod
    def _variance_at(self, value: float) -> float:
        """Variance of ``decode_reports`` of a report of a person with this value, which lies in [lower, upper]."""

    def variance_at(self, value: float) -> float:
        """Return the variance of a decoded report for this value; ``InputError`` unless it is in bounds."""
        if not self.lower <= check_finite("value", value) <= self.upper:
            raise InputError("value", value, f"a number in [{self.lower:g}, {self.upper:g}]")
        return self._variance_at(value)

    @property
    def worst_variance(self) -> float:
        """The largest ``variance_at`` of all values, which is at an end or in the middle."""
        return max(self.variance_at(value) for value in (self.lower, (self.lower + self.upper) / 2, self.upper))

    def estimate(self, reports: ArrayLike, *, confidence: float = 0.95) -> Shares:
        """Return the unbiased mean with an interval; each of shape []. See ``estimate_tally``."""
        return self.estimate_tally(self.tally_reports(reports), confidence=confidence)

    def estimate_tally(self, tally: Tally, *, confidence: float = 0.95) -> Shares:
        """Return the unbiased mean from the counts of reports, with an interval from their sample variance.

        The interval is for the mean of the population that people are drawn from; for that of the people themselves it
        is a little too wide. It is normal, for about a hundred reports or more. The variance is at least
        ``least_report_variance``, since all reports may happen to agree. Raises ``InputError`` for fewer than two.
        """
        self.check_tally(tally)
        reports = np.flatnonzero(tally.counts)
        decoded, times = self.decode_reports(reports), tally.counts[reports]
        value = float(np.sum(decoded * times) / tally.people)
        variance = float(np.sum((decoded - value) ** 2 * times) / (tally.people - 1))
        half = simultaneous_z_score(confidence) * math.sqrt(
            max(variance, self.least_report_variance(value)) / tally.people
        )
        return Shares(np.asarray(value), np.asarray(value - half), np.asarray(value + half), tally.people, confidence)

    def check_tally(self, tally: Tally) -> None:
        """Raise ``InputError`` unless the tally counts at least two reports of this mechanism."""
        if tally.people < 2 or len(tally.counts) != self.possible_report_count:
            expected = f"of at least 2 reports, each one of {self.possible_report_count}"
            raise InputError("tally", (tally.people, len(tally.counts)), expected, "one report has no spread")

    def least_report_variance(self, value: float) -> float:
        """Return the least variance of a decoded report in any population with this mean, clipped to the bounds.

        It is the variance if all people have this value, since V(x) + x² is convex.
        """
        return self._variance_at(min(max(value, self.lower), self.upper))

    def tally_reports(self, reports: ArrayLike) -> Tally:
        """Return the counts of each report; raises ``InputError`` for reports that the mechanism cannot produce."""
        counts = self.count_reports(reports)
        return self.tally_of_reports(int(counts.sum()), counts)

    def count_reports(self, reports: ArrayLike) -> NDArray[np.int64]:
        """Return the counts of each report, shape [possible_report_count]; counts of disjoint sets add up."""
        return count_occurrences(
            check_categories("reports", reports, self.possible_report_count), self.possible_report_count
        )

    def tally_of_reports(self, people: int, counts: NDArray[np.int64]) -> Tally:
        """Return the tally of this many reports with these ``counts``."""
        return Tally(people, people, counts)

    def randomized_grid_indices(self, values: ArrayLike, steps: int, randomness: Source) -> NDArray[np.int64]:
        """Return values as integers in 0..steps, rounded at random so that they are unbiased.

        Reports depend on the values only through these integers, so rounding errors here do not affect privacy.
        """
        checked = check_reals("values", values, self.lower, self.upper)
        scaled = np.clip((checked - self.lower) / (self.upper - self.lower), 0.0, 1.0) * steps
        return round_randomly(scaled, randomness.random_words(len(scaled)))

    def grid_values(self, positions: Floats, steps: int) -> Floats:
        """Return the values at real positions on the grid 0..steps, also beyond its ends."""
        return np.asarray(self.lower + (self.upper - self.lower) * (positions / steps))


def round_randomly(numbers: Floats, words: Words) -> NDArray[np.int64]:
    """Return ⌊x⌋ or ⌊x⌋ + 1, the latter with probability x − ⌊x⌋, to 2⁻⁶⁴.

    >>> round_randomly(np.array([2.0, 2.5]), np.array([0, 2**63 - 1], dtype=np.uint64)).tolist()
    [2, 3]
    """
    whole = np.floor(numbers)
    threshold = ((numbers - whole) * 2.0**64).astype(np.uint64)  # below 2^64: a double below 1 is at most 1 - 2^-53
    return np.asarray(whole.astype(np.int64) + (words < threshold))
