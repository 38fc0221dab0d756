"""What every mechanism for a number a person declares, and the mean that follows."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tightrope.errors import InputError
from tightrope.local.counting import occurrences
from tightrope.local.estimates import Shares, deviations
from tightrope.local.losses import Change, guarantee_of, loss_of
from tightrope.local.tally import Tally
from tightrope.local.values import Floats, categories, reals
from tightrope.randomness.source import Source, Words

if TYPE_CHECKING:
    from tightrope.certificates import Guarantee
    from tightrope.privacy.loss import PrivacyLoss


class MeanOracle(ABC):
    """A mechanism for one number in [lower, upper] a person. What ``decode`` reads is that number on average."""

    __slots__ = ()

    epsilon: float
    lower: float
    upper: float

    @property
    @abstractmethod
    def changed(self) -> Change:
        """What changes between the two values that are easiest to tell apart, ``lower`` and ``upper``."""

    @property
    @abstractmethod
    def letters(self) -> int:
        """How many different reports there are: they are whole numbers from 0."""

    @property
    def report_bits(self) -> int:
        """How many bits a report needs."""
        return (self.letters - 1).bit_length()

    @abstractmethod
    def perturb(self, values: ArrayLike, source: Source | None = None) -> NDArray[Any]:
        """One report for each of ``values``, shape [n]; raises ``InputError`` unless all lie in [lower, upper]."""

    @abstractmethod
    def decode(self, reports: ArrayLike) -> Floats:
        """Numbers whose expectation is the value of the person who reported, shape [n]."""

    @abstractmethod
    def variance_at(self, value: float) -> float:
        """Variance of ``decode`` of a report of somebody with this value."""

    @property
    def worst_variance(self) -> float:
        """The largest of them; all of them are largest at an end or in the middle."""
        return max(self.variance_at(value) for value in (self.lower, (self.lower + self.upper) / 2, self.upper))

    @property
    def loss(self) -> PrivacyLoss:
        """The privacy loss of one report, from the whole numbers that are sampled; neighbours are "local"."""
        return loss_of(self.changed)

    @property
    def guarantee(self) -> Guarantee:
        """The realised (ε, 0, η), rounded up."""
        return guarantee_of(self.changed)

    def estimate(self, reports: ArrayLike, *, confidence: float = 0.95) -> Shares:
        """The mean, without bias, with an interval from the spread of the reports; each of shape [].

        The interval speaks of the population that people come from; for the people themselves it is a little too wide.
        Normal: it needs some hundred reports. Raises ``InputError`` for fewer than two.
        """
        decoded = self.decode(reports)
        if len(decoded) < 2:
            raise InputError("number of reports", len(decoded), "at least 2", "one report has no spread")
        value, error = np.mean(decoded), np.std(decoded, ddof=1) / np.sqrt(len(decoded))
        half = deviations(confidence) * error
        lower, upper = np.asarray(value - half), np.asarray(value + half)
        return Shares(np.asarray(value), lower, upper, len(decoded), confidence)

    def tally(self, reports: ArrayLike) -> Tally:
        """How often each report occurs; raises ``InputError`` for reports that nobody can have made."""
        counts = self.counts(reports)
        return self.tally_of(int(counts.sum()), counts)

    def counts(self, reports: ArrayLike) -> NDArray[np.int64]:
        """How often each report occurs, shape [letters]: counts of disjoint reports add up."""
        return occurrences(categories("reports", reports, self.letters), self.letters)

    def tally_of(self, users: int, counts: NDArray[np.int64]) -> Tally:
        """The tally of so many reports with these ``counts``."""
        return Tally(users, users, counts)

    def estimate_tally(self, tally: Tally, *, confidence: float = 0.95) -> Shares:
        """``estimate`` of the reports that were counted; raises ``InputError`` for fewer than two.

        >>> from tightrope.local.one_bit import duchi
        >>> mechanism, bits = duchi(1.0), np.array([0, 1, 1], dtype=np.uint8)
        >>> bool(np.isclose(mechanism.estimate_tally(mechanism.tally(bits)).value, mechanism.estimate(bits).value))
        True
        """
        if tally.users < 2 or len(tally.counts) != self.letters:
            raise InputError("tally", (tally.users, len(tally.counts)), f"of 2 or more of {self.letters} reports")
        seen = np.flatnonzero(tally.counts)
        decoded, times = self.decode(seen), tally.counts[seen]
        value = np.asarray(np.sum(decoded * times) / tally.users)
        variance = np.sum((decoded - value) ** 2 * times) / (tally.users - 1)
        half = deviations(confidence) * np.sqrt(variance / tally.users)
        return Shares(value, np.asarray(value - half), np.asarray(value + half), tally.users, confidence)

    def places(self, values: ArrayLike, steps: int, source: Source) -> NDArray[np.int64]:
        """Values as whole numbers in 0..steps, rounded at random so that they are right on average.

        What is reported depends on the values through these alone, so no rounding here concerns privacy.
        """
        checked = reals("values", values, self.lower, self.upper)
        scaled = np.clip((checked - self.lower) / (self.upper - self.lower), 0.0, 1.0) * steps
        return rounded(scaled, source.words(len(scaled)))

    def numbers(self, places: Floats, steps: int) -> Floats:
        """The inverse of ``places``, for any real place."""
        return np.asarray(self.lower + (self.upper - self.lower) * (places / steps))


def rounded(numbers: Floats, words: Words) -> NDArray[np.int64]:
    """⌊x⌋ or ⌊x⌋ + 1, the latter with chance x − ⌊x⌋ to 2⁻⁶⁴.

    >>> rounded(np.array([2.0, 2.5]), np.array([0, 2**63 - 1], dtype=np.uint64)).tolist()
    [2, 3]
    """
    whole = np.floor(numbers)
    threshold = ((numbers - whole) * 2.0**64).astype(np.uint64)  # below 2^64: a double below 1 is at most 1 - 2^-53
    return np.asarray(whole.astype(np.int64) + (words < threshold))
